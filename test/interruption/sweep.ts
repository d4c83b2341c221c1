/** Interrupts one case at each point in turn, each time on a new filesystem, and checks what must hold. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Cause from "effect/Cause"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Algebra, make as derive } from "../../src/filesystem/Filesystem.ts"
import type { Backend } from "../../src/port/Backend.ts"
import { after, type Case, isInParts, isSame, old } from "./cases.ts"
import {
  type Density,
  everyPoint,
  guard,
  isClean,
  type Moment,
  type Picture,
  scopeUntilEnd,
  throughPort,
  Trigger,
  victimOf
} from "./harness.ts"

/** A filesystem that holds `before`, for one scope. */
export interface Bench {
  readonly port: Backend
  /** Makes the filesystem for the operation from a port, which may have a trigger. @default `Filesystem.make` */
  readonly derive?: (port: Backend) => Effect.Effect<Algebra, unknown, Scope.Scope>
  /** Entries that are always present and cannot be removed. */
  readonly also?: Picture
  /** Reads the real tree, without the filesystem under test if possible. */
  readonly look: Effect.Effect<Picture, unknown>
  /** Checks more after the operation, before the filesystem is closed. */
  readonly check?: (fs: Algebra, found: Picture, what: string) => Effect.Effect<void, unknown>
  readonly closed?: (what: string) => void
}

export interface Bounds extends Partial<Density> {
  /** True if an interrupted operation on a tree must change nothing. */
  readonly isAtomic?: boolean
}

const difference = (found: Picture, expected: Picture): string =>
  [...new Set([...Object.keys(found), ...Object.keys(expected)])]
    .filter((path) => found[path] !== expected[path])
    .map(
      (path) =>
        `${path}: ${found[path]?.slice(0, 40) ?? "nothing"} (${found[path]?.length ?? 0}) for ${expected[path]?.slice(0, 40) ?? "nothing"}`
    )
    .join("; ")

interface Verdict {
  readonly exit: Exit.Exit<unknown, unknown>
  readonly found: Picture
  readonly what: string
  readonly isAtomic: boolean
  readonly also: Picture
}

const judge = (self: Case, { also, exit, found, isAtomic, what }: Verdict): void => {
  assert.isTrue(isClean(exit), `${what}: ${Exit.isFailure(exit) ? Cause.pretty(exit.cause) : ""}`)
  assert.notExists(
    Object.keys(found).find((path) => path.includes(".~fsa-")),
    `${what}: a temporary file is left`
  )
  const past = { ...old, ...also }
  const now = { ...after(self), ...also }
  if (Exit.isSuccess(exit)) return assert.isTrue(isSame(found, now), `${what}: done, but ${difference(found, now)}`)
  if (self.leaves === "parts" && !isAtomic) {
    return assert.isTrue(isInParts(self, found, also), `${what}: torn: ${difference(found, past)}`)
  }
  assert.isTrue(
    isSame(found, past) || isSame(found, now),
    `${what}: neither the old tree (${difference(found, past)}) nor the new one (${difference(found, now)})`
  )
}

/** Checks that all locks are free: every entry can be written to and removed without waiting. */
const isFree = (fs: Algebra, found: Picture, kept: ReadonlyArray<string>, what: string): Effect.Effect<void, unknown> =>
  guard(
    `${what}: a lock was never released`,
    Effect.gen(function* () {
      yield* fs.write("a", "afterwards")
      yield* fs.write("n/m/afterwards", "afterwards")
      const paths = [...Object.keys(found), "a", "n", "n/m"].filter((path) => !kept.includes(path))
      const tops = paths.filter((path) => !path.includes("/") || kept.includes(path.slice(0, path.lastIndexOf("/"))))
      for (const path of new Set(tops)) yield* fs.delete(path, { recursive: true, missing: "ignore" })
      const left = yield* Stream.runCollect(fs.walk())
      assert.deepStrictEqual(
        left.map(({ path }) => path as string),
        kept,
        what
      )
    })
  )

/** Runs the case once for each point. Returns the number of points. */
export const sweep = (
  self: Case,
  moment: Moment,
  bench: Effect.Effect<Bench, unknown, Scope.Scope>,
  { apart = 8, dense = 60, isAtomic = false }: Bounds = {}
): Effect.Effect<number, unknown> =>
  everyPoint(
    (nth) =>
      Effect.gen(function* () {
        const what = `${self.name}, interrupted (${moment} ${nth})`
        const scope = yield* scopeUntilEnd
        const made = yield* Scope.provide(bench, scope)
        const trigger = new Trigger(moment, nth)
        const built = made.derive ?? ((port: Backend) => Effect.sync(() => derive(port)))
        const fs = yield* Scope.provide(built(throughPort(trigger, made.port).port), scope)
        const exit = yield* guard(`${what}: it never ended`, victimOf(trigger, self.run(fs)))
        const found = yield* made.look
        const also = made.also ?? {}
        judge(self, { exit, found, what, isAtomic, also })
        if (made.check !== undefined) yield* made.check(fs, found, what)
        yield* isFree(fs, found, Object.keys(also), what)
        yield* Scope.close(scope, Exit.void)
        made.closed?.(what)
        return trigger.hasFired
      }).pipe(Effect.scoped),
    { apart, dense }
  )
