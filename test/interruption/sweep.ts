/** One case, interrupted at each point in turn on a filesystem of its own, and what must hold every time. */
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
  /** What the operation is called on, made of a port on which the trigger may sit. */
  readonly derive?: (port: Backend) => Effect.Effect<Algebra, unknown, Scope.Scope>
  /** What stands there besides, whatever happens, and cannot be removed. */
  readonly also?: Picture
  /** What is really there, whoever is asked. */
  readonly look: Effect.Effect<Picture, unknown>
  /** What else must hold, when the operation is over and the filesystem not yet closed. */
  readonly check?: (fs: Algebra, found: Picture, what: string) => Effect.Effect<void, unknown>
  /** When it has been closed. */
  readonly closed?: (what: string) => void
}

export interface Bounds extends Partial<Density> {
  /** Whether a call on a tree changes nothing, too, unless it is done. */
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

/** All turns are free again: whatever is there can be written to and removed, at once. */
const isFree = (fs: Algebra, found: Picture, kept: ReadonlyArray<string>, what: string): Effect.Effect<void, unknown> =>
  guard(
    `${what}: a turn was never given back`,
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

/** Answers how many points there were. */
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
