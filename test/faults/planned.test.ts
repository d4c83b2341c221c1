/** Each primitive call of each operation fails once with each fault, before or after its work. */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { Fault } from "../../src/model/FsError.ts"
import { adversarial, faulty, type Planned, type Step } from "../../src/testing/Faults.ts"
import { capture, picture as pictureOf, plant, type Picture } from "../../src/testing/Files.ts"
import { fastDirectory, host, losingNothing } from "./ground.ts"
import { failure, type Failure, files, type Operation, operations, steps } from "./operations.ts"
import { isSoak } from "../runs.ts"

/** Faults of the disk itself, independent of the tree. */
const hard: ReadonlyArray<Fault> = [
  { _tag: "IoError", code: "EIO", detail: "planned" },
  { _tag: "DiskFull" },
  { _tag: "AccessDenied", why: "permission" },
  { _tag: "Timeout", detail: "planned" },
  { _tag: "Unavailable", detail: "planned" }
]

/** Faults that a concurrent change can cause at a step that saw another state before. */
const soft: ReadonlyArray<Fault> = [
  { _tag: "NotFound" },
  { _tag: "AlreadyExists" },
  { _tag: "NotADirectory" },
  { _tag: "NotAFile" },
  { _tag: "DirectoryNotEmpty" },
  { _tag: "InvalidPath", detail: "planned" },
  { _tag: "PathTooLong", detail: "planned" },
  { _tag: "InvalidArgument", argument: "path", detail: "planned" },
  { _tag: "LimitExceeded", limit: "planned", allowed: 1, actual: 2 },
  { _tag: "NotText", encoding: "utf-8", offset: 0 },
  { _tag: "Conflict", expected: null, actual: null },
  { _tag: "Unsupported", feature: "planned" },
  { _tag: "IoError", code: "EXDEV", detail: "planned" }
]

interface Ground {
  readonly name: string
  readonly fresh: Effect.Effect<Algebra, never, Scope.Scope>
  /** Wraps the filesystem that the operations run on. */
  readonly over: (fs: Algebra) => Algebra
  readonly hard: ReadonlyArray<Fault>
  readonly soft: ReadonlyArray<Fault>
  /** True if each directory is on its own disk. */
  readonly crossing: boolean
}

const memory = Effect.map(InMemory.make(), make)
const onDisk = Effect.flatMap(fastDirectory, (root) => host(root))

const plain = (fs: Algebra): Algebra => fs

const some = (all: ReadonlyArray<Fault>, count: number) => (isSoak ? all : all.slice(0, count))

const grounds: ReadonlyArray<Ground> = [
  { name: "InMemory", fresh: memory, over: plain, hard, soft, crossing: false },
  {
    name: "InMemory, where a move must copy",
    fresh: memory,
    over: adversarial,
    hard: some(hard, 2),
    soft: some(soft, 2),
    crossing: true
  },
  { name: "PosixHost", fresh: onDisk, over: plain, hard: some(hard, 1), soft: some(soft, 1), crossing: false },
  {
    name: "PosixHost, where a move must copy",
    fresh: onDisk,
    over: adversarial,
    hard: some(hard, 1),
    soft: some(soft, 0),
    crossing: true
  }
]

/** Empties the filesystem and writes the usual tree again. */
const restored = (fs: Algebra): Effect.Effect<void, unknown> =>
  Effect.andThen(
    Effect.flatMap(fs.list("."), (all) =>
      Effect.forEach(all, ({ name }) => fs.delete(name, { recursive: true }), { discard: true })
    ),
    plant(fs.port, files)
  )

interface Outcome {
  readonly failed: Failure | undefined
  readonly died: boolean
  readonly reached: boolean
  readonly found: Picture
}

const attempted = (self: Operation, fs: Algebra, over: Ground["over"], plan: Planned): Effect.Effect<Outcome, unknown> =>
  Effect.gen(function* () {
    const broken = faulty([plan])(over(fs))
    const exit = yield* Effect.exit(failure(self, broken))
    const died = Exit.hasDies(exit)
    if (Exit.isFailure(exit) && !died) throw new Error(Cause.pretty(exit.cause))
    return {
      failed: Exit.isSuccess(exit) ? exit.value : undefined,
      died,
      reached: broken.happened.some(({ fault }) => fault !== undefined),
      found: yield* capture(fs.port)
    }
  })

const old = pictureOf(files)

const isSame = (one: Picture, other: Picture): boolean =>
  Object.keys(one).length === Object.keys(other).length && Object.entries(other).every(([path, line]) => one[path] === line)

interface Point {
  readonly self: Operation
  readonly step: Step
  readonly when: "before" | "after"
  readonly fault: Fault | "die"
  readonly crossing: boolean
  readonly complete: Picture
}

/**
 * Tests whether a file may exist twice. Between two disks a move is a copy and a removal. The copy may remain beside the
 * original, also when the failed step had done its work.
 */
const mayStandTwice = ({ crossing, self, step, when }: Point): boolean =>
  crossing && self.name.startsWith("move") && (self.name.includes("over") || (when === "after" && step !== "SetAttributes"))

/** Tests whether a partly moved or deleted tree is valid: every file is complete, and a move lost none. */
const isPart = ({ self }: Point, found: Picture): boolean => {
  const contents = Object.values(found)
  if (!contents.every((content) => Object.values(old).includes(content))) return false
  return self.name.startsWith("move")
    ? Object.values(old).every((content) => contents.includes(content))
    : Object.entries(old).every(([path, content]) => found[path] === content || /^d(\/|$)/.test(path))
}

const isAllowed = (point: Point, { failed, died, found }: Outcome): boolean => {
  const { complete, fault, self } = point
  if (self.kind === "reads") return isSame(found, old)
  const hasFailed = died || failed !== undefined
  if (!hasFailed && (fault === "die" || hard.includes(fault))) return isSame(found, complete)
  if (isSame(found, old) || isSame(found, complete)) return true
  if (mayStandTwice(point) && isSame(found, { ...old, ...complete })) return true
  return self.kind === "tree" && !self.name.startsWith("copy") && isPart(point, found)
}

/** Tests whether the error is declared and names the fault. A fault that the operation does not declare becomes an IoError. */
const isTold = ({ fault }: Point, { failed }: Outcome): boolean =>
  failed === undefined ||
  (failed.isDeclared &&
    (typeof fault !== "object" ||
      !hard.includes(fault) ||
      failed._tag === fault._tag ||
      (failed._tag === "IoError" && failed.code === fault._tag) ||
      (failed._tag === "Conflict" && fault._tag === "AccessDenied")))

/**
 * Returns the faults and moments that the port's contract allows. A fault about the state of the tree occurs only before the
 * work.
 */
const ways = ({ hard, soft }: Ground): ReadonlyArray<Pick<Point, "fault" | "when">> => [
  ...[...hard, "die" as const].flatMap((fault) => [
    { fault, when: "before" as const },
    { fault, when: "after" as const }
  ]),
  ...soft.map((fault) => ({ fault, when: "before" as const }))
]

/** Returns all violations after each step has failed in each way. */
const wrongs = Effect.fnUntraced(function* (
  self: Operation,
  ground: Ground
): Effect.fn.Return<ReadonlyArray<string>, unknown, Scope.Scope> {
  const fs = yield* ground.fresh
  yield* restored(fs)
  const watched = faulty([])(ground.over(fs))
  assert.isUndefined(yield* failure(self, watched))
  const complete = yield* capture(fs.port)
  assert.strictEqual(isSame(complete, old), self.kind === "reads" || self.name === "setAttributes")
  yield* restored(fs)
  const wrong: Array<string> = []
  for (const [i, { operation: step, path }] of watched.happened.entries()) {
    for (const { fault, when } of ways(ground)) {
      const outcome = yield* attempted(self, fs, ground.over, { operation: steps, nth: i + 1, when, fault })
      assert.isTrue(outcome.reached, `step ${i + 1} of ${self.name}`)
      const point: Point = { self, step, when, fault, crossing: ground.crossing, complete }
      const what = `${typeof fault === "object" ? fault._tag : fault} ${when} ${step} of ${path}`
      if (!isTold(point, outcome)) wrong.push(`${what}: ${JSON.stringify(outcome.failed)}`)
      if (!isAllowed(point, outcome)) wrong.push(`${what}: ${JSON.stringify(outcome.found)}`)
      if (!isSame(outcome.found, old)) yield* restored(fs)
    }
  }
  return wrong
})

describe("a failed step leaves the old or the new tree, and the call fails with a declared error:", () => {
  for (const ground of grounds) {
    for (const self of operations) {
      it.live(`${ground.name}: ${self.name}`, () =>
        losingNothing(Effect.map(wrongs(self, ground), (wrong) => assert.deepStrictEqual(wrong, [])))
      )
    }
  }
})
