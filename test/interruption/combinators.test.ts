/**
 * Combinators that make several steps of one operation keep the guarantees of the filesystems below, and their own state stays
 * correct.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { quota, readOnly, subdirectory } from "../../src/filesystem/Decorator.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { changes, commit, overlay } from "../../src/filesystem/Overlay.ts"
import { plant } from "../../src/testing/Files.ts"
import { before, type Case, changing, isSame, large, old, readings } from "./cases.ts"
import {
  descriptorsIn,
  everyPoint,
  guard,
  isClean,
  type Moment,
  onDisk,
  plantOnDisk,
  scopeUntilEnd,
  temporary,
  throughIt,
  Trigger,
  victimOf
} from "./harness.ts"
import { type Bench, sweep } from "./sweep.ts"

type Benches = Effect.Effect<Bench, unknown, Scope.Scope>

const planted = Effect.tap(temporary, (root) => Effect.sync(() => plantOnDisk(root, before)))

const memory = Effect.map(InMemory.make(), make)

/** Makes an overlay on a disk. The lower filesystem must not change. */
const overlaid = (upper: "memory" | "disk"): Benches =>
  Effect.gen(function* () {
    const root = yield* planted
    const lower = make(yield* PosixHost.make({ root }))
    const above = yield* temporary
    const top = upper === "memory" ? yield* memory : make(yield* PosixHost.make({ root: above }))
    const { port } = overlay(top)(lower)
    return {
      port,
      look: throughIt(port),
      check: (_, __, what) =>
        Effect.sync(() => assert.isTrue(isSame(onDisk(root), old), `${what}: the lower filesystem has changed`)),
      closed: (what) => assert.deepStrictEqual([...descriptorsIn(root), ...descriptorsIn(above)], [], what)
    }
  })

/** A second disk is mounted at `n`, so a move there is a copy and a removal. */
const mounted: Benches = Effect.gen(function* () {
  const base = make(yield* InMemory.make())
  yield* plant(base.port, before)
  const root = yield* temporary
  const { port } = yield* mount("n", make(yield* PosixHost.make({ root })))(base)
  return {
    port,
    also: { n: "directory" },
    look: throughIt(port),
    closed: (what) => assert.deepStrictEqual(descriptorsIn(root), [], what)
  }
})

const maxBytes = 1_000_000
const maxFiles = 50

/** A filesystem with a quota. After each interruption exactly the free space can be written, and not one byte more. */
const limited: Benches = Effect.gen(function* () {
  const base = yield* memory
  yield* plant(base.port, before)
  const { port } = yield* quota({ maxBytes, maxFiles })(base)
  return {
    port,
    look: throughIt(base.port),
    check: (fs, found, what) =>
      Effect.gen(function* () {
        const files = Object.values(found).filter((content) => content !== "directory")
        const used = files.reduce((bytes, content) => bytes + (content.startsWith("->") ? 0 : content.length - 4), 0)
        const left = maxBytes - used
        const error = yield* Effect.flip(fs.writeBytes("fill", new Uint8Array(left + 1)))
        assert.strictEqual(error._tag, "DiskFull", what)
        yield* fs.writeBytes("fill", new Uint8Array(left))
        for (let i = files.length + 1; i < maxFiles; i++) yield* fs.writeBytes(`z${i}`, new Uint8Array())
        assert.strictEqual((yield* Effect.flip(fs.writeBytes("one more", new Uint8Array())))._tag, "DiskFull", what)
        for (const { path } of yield* fs.list()) if (/^(z\d+|fill)$/.test(path)) yield* fs.delete(path)
      }).pipe(Effect.mapError((error) => new Error(`${what}: the quota does not count the existing files`, { cause: error })))
  }
})

const below: Benches = Effect.gen(function* () {
  const base = yield* memory
  yield* base.mkdir("work/shop")
  const { port } = yield* subdirectory("work/shop")(base)
  yield* plant(port, before)
  return { port, look: throughIt(port) }
})

const unwritable: Benches = Effect.gen(function* () {
  const root = yield* planted
  const fs = make(yield* PosixHost.make({ root }))
  return {
    port: readOnly(fs).port,
    derive: (port) => Effect.succeed({ ...make(port), write: fs.write, delete: fs.delete }),
    look: Effect.sync(() => onDisk(root)),
    closed: (what) => assert.deepStrictEqual(descriptorsIn(root), [], what)
  }
})

const benches: ReadonlyArray<
  readonly [name: string, bench: Benches, cases: ReadonlyArray<Case>, copies: boolean, moments: ReadonlyArray<Moment>]
> = [
  ["overlay in memory over a disk", overlaid("memory"), changing, true, ["step", "call"]],
  ["overlay on a disk over a disk", overlaid("disk"), changing, true, ["called", "after"]],
  ["mount of a disk in memory", mounted, changing, true, ["step", "call", "called", "after"]],
  ["quota", limited, changing, false, ["step", "before", "after"]],
  ["subdirectory", below, changing, false, ["step", "after"]],
  ["readOnly", unwritable, readings, false, ["step", "call"]]
]

for (const [name, bench, cases, copies, moments] of benches) {
  for (const moment of moments) {
    describe(`${name}, interrupted (${moment}):`, () => {
      for (const self of cases) {
        // A move that copies and deletes may leave the tree in both places, but never in neither.
        const inParts = copies && self.name === "move of a tree"
        // A single-file move needs two changes here, so it is interrupted at every point.
        const bounds =
          copies && self.name === "move of a file" ? { dense: 1000 } : { apart: 50, dense: moment === "step" ? 4 : 10 }
        it.live(self.name, () => Effect.asVoid(sweep(inParts ? { ...self, leaves: "parts" } : self, moment, bench, bounds)))
      }
    })
  }
}

describe("an interrupted Overlay.commit", () => {
  const edits = [
    ["a", "new"],
    ["n/m/c", large],
    ["d/e/g", "TWO"]
  ] as const
  for (const moment of ["step", "call", "called"] as const) {
    it.live(`leaves the shown tree unchanged, and a second commit completes it (${moment})`, () =>
      Effect.gen(function* () {
        const points = yield* everyPoint(
          (nth) =>
            Effect.gen(function* () {
              const what = `commit, interrupted (${moment} ${nth})`
              const scope = yield* scopeUntilEnd
              const inScope = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>) => Scope.provide(effect, scope)
              const root = yield* inScope(planted)
              const fs = overlay(yield* inScope(memory))(make(yield* inScope(PosixHost.make({ root }))))
              for (const [path, content] of edits) yield* fs.write(path, content)
              yield* fs.delete("d/empty", { recursive: true })
              yield* fs.move("x.txt", "p/x.txt")
              yield* fs.setAttributes("d/f", { mode: 0o600 })
              const shown = yield* throughIt(fs.port)
              const trigger = new Trigger(moment, nth)
              const exit = yield* guard(what, victimOf(trigger, commit(fs)))
              assert.isTrue(isClean(exit), what)
              assert.isTrue(isSame(yield* throughIt(fs.port), shown), `${what}: it shows something else`)
              const found = onDisk(root)
              for (const [path, content] of Object.entries(found)) {
                assert.isTrue(content === old[path] || content === shown[path], `${what}: ${path} is torn`)
              }
              yield* guard(`${what}: again`, commit(fs))
              assert.isTrue(isSame(onDisk(root), shown), `${what}: the next commit did not bring the rest`)
              assert.deepStrictEqual(yield* changes(fs), [], what)
              yield* Scope.close(scope, Exit.void)
              assert.deepStrictEqual(descriptorsIn(root), [], what)
              return trigger.hasFired
            }).pipe(Effect.scoped),
          { apart: 20, dense: 15 }
        )
        assert.isAbove(points, 20)
      })
    )
  }
})
