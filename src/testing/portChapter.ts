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

export const expectPortTree = (port: Backend, files: Files): Effect.Effect<void, unknown> =>
  Effect.flatMap(capture(unnoted(port)), (found) => equal(found, picture(files), "the tree afterwards"))

export interface PortForms {
  readonly law: (name: string, body: (port: Backend) => Effect.fn.Return<void, unknown, Scope.Scope>) => Law
  /** Returns a law that requires the primitive call to fail with one of the tags and to change nothing. */
  readonly refuses: (
    name: string,
    call: (port: Backend) => Effect.Effect<unknown, Fault, Scope.Scope>,
    tag: Fault["_tag"] | ReadonlyArray<Fault["_tag"]>,
    fields?: { readonly [field: string]: unknown }
  ) => Law
}

export const portForms =
  (...needs: ReadonlyArray<Ability>) =>
  (part: string, files: Files = {}): PortForms => {
    const law: PortForms["law"] = (name, body) =>
      make({ name, ref: `port: ${part}`, kind: "port", needs }, function* (fs, port) {
        yield* plantFiles(fs, files)
        yield* Effect.gen(() => body(port))
      })
    return {
      law,
      refuses: (name, call, tag, fields) =>
        law(`${name} fails with ${[tag].flat().join(" or ")}`, function* (port) {
          yield* fails(call(port), tag, fields)
          yield* expectPortTree(port, files)
        })
    }
  }

export const writeText = (
  port: Backend,
  path: string,
  content: string,
  mode: "create" | "replace" | "append" = "replace"
): Effect.Effect<FileStat, Fault> => port.write<never, never>(toPath(path), encodeUtf8(content), mode)

/** The allowed faults for a path that leads to or through a link or a file where a directory is needed. */
export const wrongKindTags = ["NotFound", "NotADirectory", "NotAFile"] as const
