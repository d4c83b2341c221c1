/** A claim is taken for the path in the underlying filesystem, even through combinators. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as InMemory from "../../src/backends/InMemory.ts"
import { quota, readOnly, retry, subdirectory, traced } from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { mapPath, portable } from "../../src/port/Backend.ts"

/** Builds a filesystem that records the claimed paths. */
const claiming = (claimed: Array<string>, options?: Parameters<typeof InMemory.make>[0]) =>
  Effect.map(InMemory.make({ tree: { d: { F: "old" }, F: "old" }, ...options }), (port) =>
    make({
      ...port,
      locks: {
        ...port.locks!,
        claim: (path, effect) =>
          Effect.suspend(() => {
            claimed.push(path)
            return effect
          })
      }
    })
  )

type Combine = (fs: Algebra) => Effect.Effect<Algebra, unknown, Scope.Scope>

const memory = (caseInsensitive = false) => Effect.map(InMemory.make({ caseInsensitive, tree: { other: {} } }), make)

const combinators: ReadonlyArray<readonly [name: string, combine: Combine, path: string, claimed: string]> = [
  ["no combinator", Effect.succeed, "d/F", "d/F"],
  ["traced", (fs) => Effect.succeed(traced(fs)), "d/F", "d/F"],
  ["retry", (fs) => Effect.succeed(retry({ times: 1 })(fs)), "d/F", "d/F"],
  ["quota", quota({ maxFiles: 9 }), "d/F", "d/F"],
  ["portable", (fs) => Effect.succeed(make(portable(fs.port))), "d/F", "d/F"],
  ["subdirectory", subdirectory("d"), "F", "d/F"],
  [
    "mapPath",
    (fs) =>
      Effect.succeed(
        make(
          mapPath(
            fs.port,
            (path) => (path === "." ? path : `d/${path}`) as FsPath,
            (path) => path
          )
        )
      ),
    "F",
    "d/F"
  ],
  ["a mount, inside of it", (fs) => Effect.flatMap(memory(), mount("m/n", fs)), "m/n/d/F", "d/F"],
  ["a mount, outside of it", (fs) => Effect.flatMap(memory(), (other) => mount("m", other)(fs)), "d/F", "d/F"],
  ["a case-insensitive mount", (fs) => Effect.flatMap(memory(true), mount("m", fs)), "M/D/f", "d/F"],
  ["an overlay, as its upper filesystem", (fs) => Effect.map(memory(), overlay(fs)), "d/F", "d/F"],
  [
    "a subdirectory of a mount in a subdirectory",
    (fs) =>
      Effect.flatMap(memory(), (other) =>
        Effect.flatMap(subdirectory("d")(fs), (inner) =>
          Effect.flatMap(mount("other/m", inner)(other), (whole) => subdirectory("other")(whole))
        )
      ),
    "m/F",
    "d/F"
  ]
]

describe("a claim through", () => {
  for (const [name, combine, path, expected] of combinators) {
    it.effect(`${name} is on the path in the filesystem below`, () =>
      Effect.gen(function* () {
        const claimed: Array<string> = []
        const fs = yield* combine(yield* claiming(claimed))
        yield* fs.edit(path, { oldText: "old", newText: "new" })
        yield* fs.write(path, "newer", { ifMatch: yield* fs.version(path) })
        yield* fs.delete(path, { ifMatch: yield* fs.version(path) })
        assert.deepStrictEqual(claimed, [expected, expected, expected])
      })
    )
  }

  it.effect("a mount or mapPath is absent if the filesystem supports no claims", () =>
    Effect.gen(function* () {
      const fs = yield* Effect.flatMap(memory(), mount("m", yield* memory()))
      yield* fs.write("m/f", "old")
      yield* fs.edit("m/f", { oldText: "old", newText: "new" })
      assert.strictEqual(yield* fs.readString("m/f"), "new")
      assert.isUndefined(
        mapPath(
          (yield* memory()).port,
          (path) => path,
          (path) => path
        ).locks!.claim
      )
    })
  )

  it.effect("a read-only filesystem is never taken", () =>
    Effect.gen(function* () {
      const claimed: Array<string> = []
      const fs = readOnly(yield* claiming(claimed))
      yield* Effect.flip(fs.edit("F", { oldText: "old", newText: "new" }))
      yield* fs.edit("F", { oldText: "old", newText: "new" }, { dryRun: true })
      assert.deepStrictEqual(claimed, [])
    })
  )

  it.effect("a filesystem is taken after the lock of the path, so a waiting call claims nothing", () =>
    Effect.gen(function* () {
      const order: Array<string> = []
      const port = yield* InMemory.make({ tree: { f: "old" } })
      const exclusive: NonNullable<typeof port.locks>["exclusive"] = (paths, effect) =>
        port.locks!.exclusive(
          paths,
          Effect.suspend(() => {
            order.push("lock")
            return effect
          })
        )
      const fs = make({
        ...port,
        locks: {
          exclusive,
          claim: (_, effect) =>
            Effect.suspend(() => {
              order.push("claim")
              return Effect.ensuring(
                effect,
                Effect.sync(() => void order.push("end"))
              )
            })
        }
      })
      const expected = ["lock", "claim", "end"]
      const calls = Effect.fnUntraced(function* (call: (ifMatch: string) => Effect.Effect<unknown, unknown>) {
        const ifMatch = yield* fs.version("f")
        order.length = 0
        yield* call(ifMatch)
        assert.deepStrictEqual(order, expected)
      })
      yield* calls((ifMatch) => fs.write("f", "a", { ifMatch }))
      yield* calls((ifMatch) => fs.write("f", "a", { ifMatch, mode: "append", version: true }))
      yield* calls(() => fs.edit("f", { oldText: "aa", newText: "b" }))
      yield* calls((ifMatch) => fs.delete("f", { ifMatch }))
    })
  )
})
