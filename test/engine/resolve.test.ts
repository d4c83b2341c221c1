/** Path resolution while another process changes the tree between its steps. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { Fault } from "../../src/model/FsError.ts"
import type { Backend } from "../../src/port/Backend.ts"

const tree = {
  in: { file: "inside" },
  other: { file: "another" },
  l: { link: "in" },
  lone: { link: "none/../in" }
} as InMemory.Tree

/** Replaces the link `l` with `next` right before its text is read, up to `times` times. */
const swapping = (port: Backend, next: (port: Backend) => Effect.Effect<unknown, unknown>, times = 1): Backend => {
  let left = times
  const links = port.links!
  const follow: typeof links.read = (path) =>
    path === "l" && left-- > 0 ? Effect.andThen(Effect.orDie(next(port)), links.read(path)) : links.read(path)
  return { ...port, links: { ...links, follow } }
}

const inMemory = Effect.orDie(InMemory.make({ tree }))
const outcome = (effect: Effect.Effect<unknown, { readonly _tag: string }>) =>
  Effect.match(effect, { onSuccess: (value) => value, onFailure: ({ _tag }) => _tag })

type Step = (port: Backend) => Effect.Effect<unknown, Fault>

const byDirectory: Step = (port) =>
  Effect.andThen(port.remove("l" as never), port.rename("other" as never, "l" as never, { replace: false }))
const byNothing: Step = (port) => port.remove("l" as never)
const byFile: Step = (port) =>
  Effect.andThen(port.remove("l" as never), port.write<never, never>("l" as never, new TextEncoder().encode("file"), "create"))

describe("a symlink that is replaced between its stat and its readlink:", () => {
  const cases: ReadonlyArray<
    readonly [string, Step, (fs: Algebra) => Effect.Effect<unknown, { readonly _tag: string }>, unknown]
  > = [
    ["readString enters a directory in its place", byDirectory, (fs) => fs.readString("l/file"), "another"],
    ["readString fails with NotFound below a file in its place", byFile, (fs) => fs.readString("l/file"), "NotFound"],
    ["write fails with NotADirectory below a file in its place", byFile, (fs) => fs.write("l/new", ""), "NotADirectory"],
    ["stat describes a file in its place", byFile, (fs) => Effect.map(fs.stat("l"), ({ kind }) => kind), "file"],
    ["stat fails with NotFound if nothing is in its place", byNothing, (fs) => fs.stat("l/file"), "NotFound"],
    ["exists returns false if nothing is in its place", byNothing, (fs) => fs.exists("l/file"), false],
    ["list fails with NotFound if nothing is in its place", byNothing, (fs) => fs.list("l"), "NotFound"]
  ]
  for (const [claim, by, run, expected] of cases) {
    it.effect(claim, () =>
      Effect.gen(function* () {
        const port = yield* inMemory
        assert.deepStrictEqual(yield* outcome(run(make(swapping(port, by)))), expected)
      })
    )
  }

  it.effect(
    "an entry that is a link for stat but never for readlink fails with InvalidPath after a bounded number of reads",
    () =>
      Effect.gen(function* () {
        const port = yield* inMemory
        const links = port.links!
        let reads = 0
        const follow = () =>
          Effect.suspend(() => (reads++, Effect.fail({ _tag: "InvalidArgument", argument: "path", detail: "" } as const)))
        const fs = make({ ...port, links: { ...links, follow } })
        assert.strictEqual(yield* outcome(fs.readString("l/file")), "InvalidPath")
        assert.isAtMost(reads, 1024)
      })
  )
})

describe("a listing whose entries disappear for a moment", () => {
  const unsized = (port: Backend, gone: (path: string) => boolean): Backend => ({
    ...port,
    perform: undefined,
    explore: undefined,
    list: (path) => Effect.map(port.list(path), (all) => all.map(({ sizeBytes: _, ...child }) => child)),
    stat: (path) => (gone(path) ? Effect.succeed(undefined) : port.stat(path))
  })
  const names = (fs: Algebra) => Effect.map(fs.list("in"), (all) => all.map(({ name, sizeBytes }) => `${name} ${sizeBytes}`))

  it.effect("is complete if they reappear", () =>
    Effect.gen(function* () {
      const port = yield* inMemory
      let left = 3
      const fs = make(unsized(port, (path) => path === "in/file" && left-- > 0))
      assert.deepStrictEqual(yield* outcome(names(fs)), ["file 6"])
    })
  )

  it.effect("omits entries that were removed", () =>
    Effect.gen(function* () {
      const port = yield* inMemory
      const base = unsized(port, () => false)
      const fs = make({
        ...base,
        stat: (path) => (path === "in/file" ? Effect.as(Effect.ignore(port.remove(path)), undefined) : base.stat(path))
      })
      assert.deepStrictEqual(yield* outcome(names(fs)), [])
    })
  )
})
