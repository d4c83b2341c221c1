import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Transfer from "../../src/engine/transfer.ts"
import { Filesystem, InMemory } from "../../src/index.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"
import * as Request from "../../src/port/Request.ts"

const [from, to] = ["from" as FsPath, "to" as FsPath]

/** Copies a tree. Changes it after the copy has listed it. Returns the paths and contents below the copy, and the result. */
const copyWhile = (
  reads: ReadonlyArray<"Read" | "ReadMany">,
  change: (fs: Filesystem.Algebra) => Effect.Effect<unknown, unknown>
) =>
  Effect.gen(function* () {
    const fs = yield* Filesystem.Filesystem
    yield* fs.writeBytes("from/a", Uint8Array.of(1), { createParents: true })
    yield* fs.writeBytes("from/b", Uint8Array.of(2, 2))
    const { perform: _, ...port } = fs.port
    const read = Request.performing(fs.port, "Read")!
    const handlers: Request.Handlers = {
      Read: read,
      ReadMany: ({ maxBytes, paths }) =>
        Effect.asSome(
          Effect.forEach(paths, (path) =>
            Effect.orElseSucceed(Effect.map(read({ _tag: "Read", path, maxBytes }), Option.getOrUndefined), () => undefined)
          )
        )
    }
    const changing: Backend = {
      ...port,
      perform: Request.only(Request.handlers(handlers), new Set(reads)),
      list: (path) => Effect.tap(port.list(path), () => Effect.orDie(change(fs)))
    }
    const result = yield* Transfer.copy(changing, from, to, false)
    const { matches } = yield* fs.glob("to/**")
    return { result, matches: matches.map(({ path }) => path), fs }
  })

describe.each([
  ["that reads many files in one step", ["Read", "ReadMany"]],
  ["that reads whole files in one step", ["Read"]],
  ["that opens files", []]
] as const)("on a backend %s, the copy of a tree that changes after it was listed", (_, reads) => {
  it.effect("skips a file that was removed", () =>
    Effect.gen(function* () {
      const { matches, result } = yield* copyWhile(reads, (fs) => fs.delete("from/a"))
      assert.deepStrictEqual(matches, ["to/b"])
      assert.deepStrictEqual(result, { files: 1, directories: 1, bytes: 2 })
    }).pipe(Effect.provide(InMemory.layer()))
  )

  it.effect("copies the symlink that has replaced a file", () =>
    Effect.gen(function* () {
      const { fs, result } = yield* copyWhile(reads, (fs) => Effect.andThen(fs.delete("from/a"), fs.symlink("from/a", "b")))
      assert.strictEqual(yield* fs.readLink("to/a"), "b")
      assert.strictEqual(result.files, 2)
    }).pipe(Effect.provide(InMemory.layer()))
  )

  it.effect("copies the new content and the new mode of a file that was replaced", () =>
    Effect.gen(function* () {
      const { fs } = yield* copyWhile(reads, (fs) =>
        Effect.andThen(fs.writeBytes("from/a", Uint8Array.of(7, 8)), fs.setAttributes("from/a", { mode: 0o600 }))
      )
      assert.deepStrictEqual((yield* fs.readBytes("to/a")).content, Uint8Array.of(7, 8))
      assert.strictEqual((yield* fs.stat("to/a")).mode, 0o600)
    }).pipe(Effect.provide(InMemory.layer()))
  )

  it.effect("fails and removes the copy if a directory has replaced a file", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      const error = yield* Effect.flip(copyWhile(reads, (fs) => Effect.andThen(fs.delete("from/a"), fs.mkdir("from/a"))))
      assert.strictEqual((error as { readonly _tag: string })._tag, "NotAFile")
      assert.isFalse(yield* fs.exists("to"))
    }).pipe(Effect.provide(InMemory.layer()))
  )
})
