import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FileStat } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { arrange } from "./chapter.ts"
import { equal, fails } from "./expect.ts"
import { capture, directory, type Files, link, picture } from "./Files.ts"
import { type Ability, type Law, make, unnoted } from "./Law.ts"
import { utf8 } from "./operations.ts"

export const at = (path: string): FsPath => path as FsPath

export const tree: Files = { file: "text", "dir/inner": "x", empty: directory }
export const linked: Files = { ...tree, tofile: link("file"), todir: link("dir"), nowhere: link("none") }

export const writing: ReadonlyArray<Ability> = ["write"]
export const changing: ReadonlyArray<Ability> = ["write", "delete"]

export const leaves = (port: Backend, files: Files): Effect.Effect<void, unknown> =>
  Effect.flatMap(capture(unnoted(port)), (found) => equal(found, picture(files), "the tree afterwards"))

export const on = (
  needs: ReadonlyArray<Ability>,
  name: string,
  what: string,
  files: Files,
  body: (port: Backend) => Effect.fn.Return<void, unknown, Scope.Scope>
): Law =>
  make({ name, ref: `port: ${what}`, kind: "port", needs }, function* (fs, port) {
    yield* arrange(fs, files)
    yield* body(port)
  })

/** Returns a law that a primitive call fails with one of the tags and changes nothing. */
export const refuses = (
  needs: ReadonlyArray<Ability>,
  name: string,
  what: string,
  files: Files,
  call: (port: Backend) => Effect.Effect<unknown, Fault, Scope.Scope>,
  tag: Fault["_tag"] | ReadonlyArray<Fault["_tag"]>,
  fields?: { readonly [field: string]: unknown }
): Law =>
  on(needs, name, what, files, function* (port) {
    yield* fails(call(port), tag, fields)
    yield* leaves(port, files)
  })

export const put = (
  port: Backend,
  path: string,
  content: string,
  mode: "create" | "replace" | "append" = "replace"
): Effect.Effect<FileStat, Fault> => port.write<never, never>(at(path), utf8(content), mode)

/** The allowed faults for a path through an entry that is not a directory. */
export const wrongKind = ["NotFound", "NotADirectory", "NotAFile"] as const
