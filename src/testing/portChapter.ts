import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { FileStat } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { plantFiles } from "./chapter.ts"
import { equal, fails } from "./expect.ts"
import { capture, directory, type Files, link, picture } from "./Files.ts"
import { type Ability, type Law, make, unnoted } from "./Law.ts"
import { encodeUtf8 } from "./operations.ts"

export const toPath = (path: string): FsPath => path as FsPath

export const exampleTree: Files = { file: "text", "dir/inner": "x", empty: directory }
export const linkedTree: Files = { ...exampleTree, tofile: link("file"), todir: link("dir"), nowhere: link("none") }

export const writing: ReadonlyArray<Ability> = ["write"]
export const changing: ReadonlyArray<Ability> = ["write", "delete"]

export const expectPortTree = (port: Backend, files: Files): Effect.Effect<void, unknown> =>
  Effect.flatMap(capture(unnoted(port)), (found) => equal(found, picture(files), "the tree afterwards"))

export const lawOnPort = (
  needs: ReadonlyArray<Ability>,
  name: string,
  what: string,
  files: Files,
  body: (port: Backend) => Effect.fn.Return<void, unknown, Scope.Scope>
): Law =>
  make({ name, ref: `port: ${what}`, kind: "port", needs }, function* (fs, port) {
    yield* plantFiles(fs, files)
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
  lawOnPort(needs, name, what, files, function* (port) {
    yield* fails(call(port), tag, fields)
    yield* expectPortTree(port, files)
  })

export const writeText = (
  port: Backend,
  path: string,
  content: string,
  mode: "create" | "replace" | "append" = "replace"
): Effect.Effect<FileStat, Fault> => port.write<never, never>(toPath(path), encodeUtf8(content), mode)

/** The allowed faults for a path through an entry that is not a directory. */
export const wrongKindTags = ["NotFound", "NotADirectory", "NotAFile"] as const
