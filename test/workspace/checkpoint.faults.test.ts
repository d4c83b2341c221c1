import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as References from "effect/References"
import { isDeepStrictEqual as isEqual } from "node:util"
import { begin, snapshotRecords, change, type Ground, ground, kinds, Note, picture, under, type Way } from "./checkpointing.ts"

const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"

const ways: ReadonlyArray<readonly [claim: string, way: Way]> = [
  ["fails", "fails"],
  ["succeeds but reports a failure", "fails after"],
  ["dies", "dies"],
  ["is interrupted", "hangs"],
  ["succeeds and is then interrupted", "hangs after"]
]

/** The distances between the steps that get a fault: in a rollback, and in taking a checkpoint, which has fewer steps. */
const strides: Readonly<Record<keyof typeof kinds, readonly [back: number, taking: number]>> = isSoak
  ? { memory: [1, 1], layerSession: [1, 1], vfsState: [1, 1], host: [1, 1], overlay: [1, 1] }
  : { memory: [1, 1], layerSession: [1, 1], vfsState: [9, 4], host: [14, 4], overlay: [8, 4] }

const isTyped = (exit: Exit.Exit<unknown, unknown>): boolean =>
  Exit.isFailure(exit) && !Cause.hasDies(exit.cause) && !Cause.hasInterrupts(exit.cause)

const differing = (actual: object, expected: object): string =>
  Object.keys({ ...actual, ...expected })
    .filter((key) => !isEqual(actual[key as never], expected[key as never]))
    .map((key) => `${key}: ${JSON.stringify(actual[key as never])} for ${JSON.stringify(expected[key as never])}`)
    .join("; ")

interface Tally {
  met: number
  done: number
  undone: number
  readonly complaints: Array<string>
}

/** Runs `attempt` for every nth step. `attempt` returns complaints, or `undefined` when the nth step does not exist. */
const each = Effect.fnUntraced(function* (
  stride: number,
  attempt: (
    plan: { readonly nth: number; readonly way: Way },
    tally: Tally
  ) => Effect.Effect<ReadonlyArray<string> | undefined, unknown>,
  way: Way
) {
  const tally: Tally = { met: 0, done: 0, undone: 0, complaints: [] }
  for (let nth = 1; ; nth += stride) {
    const complaints = yield* attempt({ nth, way }, tally)
    if (complaints === undefined) return tally
    tally.met++
    tally.complaints.push(...complaints.map((complaint) => `step ${nth}: ${complaint}`))
  }
})

/** Compares the state with both expected states. A call that fails with a typed error must have changed nothing. */
const judged = <A extends object>(
  exit: Exit.Exit<unknown, unknown>,
  after: A,
  { done, undone }: { readonly done: A; readonly undone: A },
  tally: Tally
): ReadonlyArray<string> => {
  const isDone = Exit.isSuccess(exit) || (!isTyped(exit) && isEqual(after, done))
  if (isDone) tally.done++
  else tally.undone++
  const wrong = differing(after, isDone ? done : undone)
  return wrong === "" ? [] : [`${isDone ? "done" : "not done"}, but ${wrong}`]
}

const rollingBack = (one: Ground, stride: number, way: Way) =>
  Effect.gen(function* () {
    yield* begin(one)
    yield* one.checkpoint.take("one")
    const done = yield* picture(one)
    yield* change(one)
    return yield* each(
      stride,
      Effect.fnUntraced(function* (plan, tally) {
        const undone = yield* picture(one)
        const known = yield* snapshotRecords(one)
        const { exit, steps } = yield* under(one, plan, one.checkpoint.rollback("one"))
        if (steps < plan.nth) return undefined
        const after = yield* picture(one)
        const wrong = judged(exit, after, { done, undone }, tally)
        const unlike = differing(yield* snapshotRecords(one), known)
        if (isEqual(after, done)) yield* change(one)
        return unlike === "" ? wrong : [...wrong, unlike]
      }),
      way
    )
  })

const taking = (one: Ground, stride: number, way: Way) =>
  Effect.gen(function* () {
    yield* begin(one)
    yield* one.checkpoint.take("one")
    yield* change(one)
    return yield* each(
      stride,
      Effect.fnUntraced(function* (plan, tally) {
        const before = { ...(yield* picture(one)), snapshotRecords: yield* snapshotRecords(one) }
        const { exit, steps } = yield* under(one, plan, one.checkpoint.take("two"))
        if (steps < plan.nth) return undefined
        const taken = (yield* one.checkpoint.list).find(({ id }) => id === "two")
        const isDone = Exit.isSuccess(exit) || (!isTyped(exit) && taken !== undefined)
        if (!isDone) {
          tally.undone++
          const wrong = differing({ ...(yield* picture(one)), snapshotRecords: yield* snapshotRecords(one) }, before)
          return wrong === "" ? [] : [`not done, but ${wrong}`]
        }
        tally.done++
        const complaints: Array<string> = []
        const target = yield* picture(one)
        if (!isEqual(target.tree, before.tree)) complaints.push("the tree is another one")
        yield* change_(one)
        yield* one.checkpoint.rollback("two")
        const back = differing(yield* picture(one), target)
        if (back !== "") complaints.push(`what was taken is not what comes back: ${back}`)
        yield* one.checkpoint.forget("two")
        const left = differing({ ...(yield* picture(one)), snapshotRecords: yield* snapshotRecords(one) }, before)
        if (left !== "") complaints.push(`something is left: ${left}`)
        return complaints
      }),
      way
    )
  })

/** Makes a small change to the files and to the session. */
const change_ = ({ fs, session }: Ground) =>
  Effect.andThen(
    Effect.orDie(fs.write("a.txt", "and another", { mode: "overwrite" })),
    Effect.orDie(session.set(Note, "and another"))
  )

const replacing = (one: Ground, stride: number, way: Way) =>
  Effect.gen(function* () {
    yield* begin(one)
    yield* one.checkpoint.take("base")
    return yield* each(
      stride,
      Effect.fnUntraced(function* (plan, tally) {
        yield* one.checkpoint.rollback("base")
        yield* one.checkpoint.take("one")
        const old = yield* picture(one)
        yield* change(one)
        const before = yield* picture(one)
        const known = yield* snapshotRecords(one)
        const { exit, steps } = yield* under(one, plan, one.checkpoint.take("one"))
        if (steps < plan.nth) return undefined
        const now = yield* picture(one)
        const records = yield* snapshotRecords(one)
        yield* change_(one)
        yield* one.checkpoint.rollback("one")
        const back = yield* picture(one)
        const isDone = Exit.isSuccess(exit) || (!isTyped(exit) && isEqual(back.tree, now.tree))
        if (isDone) tally.done++
        else tally.undone++
        const complaints: Array<string> = []
        if (!isEqual(now.tree, before.tree)) complaints.push("the tree is another one")
        if (!isDone) {
          const unlike = differing({ ...now, ...records }, { ...before, ...known })
          if (unlike !== "") complaints.push(`not done, but ${unlike}`)
        }
        const wrong = differing(back, isDone ? now : old)
        if (wrong !== "") complaints.push(`${isDone ? "the new one" : "the old one"} does not come back: ${wrong}`)
        return complaints
      }),
      way
    )
  })

for (const [name, make] of Object.entries(kinds) as ReadonlyArray<[keyof typeof kinds, (typeof kinds)["memory"]]>) {
  const [back, taken] = strides[name]
  describe(`a checkpoint over ${name}`, () => {
    for (const [claim, way] of ways) {
      it.live(`is rolled back in both the session and the files, or in neither, if one step ${claim}`, () =>
        Effect.gen(function* () {
          const { complaints, done, met, undone } = yield* rollingBack(yield* ground(make), back, way)
          assert.deepStrictEqual(complaints, [])
          assert.isAbove(met, 2)
          assert.isAbove(undone, 0)
          // Only a fault after the last step leaves the rollback done. With a stride, that step may not be tested.
          if ((isSoak || back === 1) && way === "hangs after") assert.isAbove(done, 0)
        }).pipe(Effect.scoped)
      )

      it.live(`is taken of both the session and the files, or nothing changes, if one step ${claim}`, () =>
        Effect.gen(function* () {
          const { complaints, met, undone } = yield* taking(yield* ground(make), taken, way)
          assert.deepStrictEqual(complaints, [])
          assert.isAbove(met, 1)
          assert.isAbove(undone, 0)
        }).pipe(Effect.scoped)
      )

      it.live(`is replaced completely, or remains, if one step ${claim}`, () =>
        Effect.gen(function* () {
          const { complaints, met, undone } = yield* replacing(yield* ground(make), taken, way)
          assert.deepStrictEqual(complaints, [])
          assert.isAbove(met, 1)
          assert.isAbove(undone, 0)
          // A failure to forget the old checkpoint is logged, so the log is silenced.
        }).pipe(Effect.scoped, Effect.provideService(References.MinimumLogLevel, "None"))
      )
    }
  })
}
