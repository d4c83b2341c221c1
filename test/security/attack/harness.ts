/**
 * Runs operations against the attacker, checks the outside after every call, and counts. An attempt is a call during which the
 * attacker swapped at least once, because other calls prove nothing.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type Attacker, type Program, start } from "./attackers.ts"
import { type Ground, type Scene, prepare, removeAttacked, slots } from "./ground.ts"
import type { Failure, Operation, Outcome, Subject, Verdict } from "./operations.ts"
import { isSoak } from "../../runs.ts"

export type Kind = Verdict["kind"] | "misnamed" | "leftovers"

export interface Tally {
  readonly operation: string
  readonly scene: string
  calls: number
  attempts: number
  swaps: number
  successes: number
  readonly refusals: Record<string, number>
  readonly counts: Record<Kind, number>
  readonly evidence: Array<string>
  milliseconds: number
}

export interface Quota {
  readonly attempts: number
  /** The time limit, for a slow attacker. */
  readonly milliseconds: number
  /** The kind of complaint that ends the attempts early, for the controls. */
  readonly until?: Kind
}

const gap = 16_000

const newTally = (operation: string, scene: string): Tally => ({
  operation,
  scene,
  calls: 0,
  attempts: 0,
  swaps: 0,
  successes: 0,
  refusals: {},
  counts: { escape: 0, wrong: 0, undeclared: 0, partial: 0, misnamed: 0, leftovers: 0 },
  evidence: [],
  milliseconds: 0
})

const accuse = (tally: Tally, { kind, why }: { readonly kind: Kind; readonly why: string }): void => {
  if (tally.counts[kind]++ === 0) tally.evidence.push(`${kind}: ${why}`)
}

const moved = "another program moved or replaced this directory while it was read; try again"

/** Returns a complaint when a failure shows a path on the host or a mistake of our own. */
const isUnfit = (operation: Operation, failure: Failure, ground: Ground): string | undefined => {
  const { _tag, code, detail } = failure as { readonly _tag: string; readonly code?: string; readonly detail?: string }
  if (operation.tellsMoves === true && _tag === "Unavailable" && detail === moved) return undefined
  if (code === "EBADF") return "used a closed descriptor"
  if (_tag === "Unavailable" || _tag === "Unsupported" || _tag === "Died")
    return `said ${JSON.stringify({ ...failure, cause: undefined })}`
  const text = JSON.stringify({ ...failure, cause: undefined, path: undefined })
  return text.includes(ground.root) || text.includes("/proc/") || text.includes("/out")
    ? `showed a path on the host: ${text}`
    : undefined
}

/** Tests whether the error hides its cause: its code has a specific error, or it blames the caller for an exchanged entry. */
const isMisnamed = (operation: Operation, failure: Failure): boolean => {
  const { _tag, code } = failure as { readonly _tag: string; readonly code?: string }
  if (code !== undefined) return /^(?:EINVAL|EISDIR|ENOTDIR|ELOOP|ENOENT|EEXIST|[A-Z][a-z]+[A-Za-z]*)$/.test(code)
  return _tag === "InvalidArgument" && operation.mayBlame !== true
}

const tagOf = (failure: Failure): string => {
  const { _tag, code, why } = failure as { readonly _tag: string; readonly code?: string; readonly why?: string }
  return [_tag, why, code].filter((part) => part !== undefined).join(":")
}

const judgeOne = (tally: Tally, operation: Operation, ground: Ground, n: number, outcome: Outcome): void => {
  const verdict = operation.judge?.(ground, n, outcome)
  if (verdict !== undefined) accuse(tally, verdict)
  if (outcome._tag === "Success") {
    tally.successes++
    return
  }
  const tag = tagOf(outcome.failure)
  tally.refusals[tag] = (tally.refusals[tag] ?? 0) + 1
  const unfit = isUnfit(operation, outcome.failure, ground)
  if (unfit !== undefined) accuse(tally, { kind: "wrong", why: unfit })
  if (isMisnamed(operation, outcome.failure))
    accuse(tally, { kind: "misnamed", why: JSON.stringify({ ...outcome.failure, cause: undefined }) })
}

const lookAround = (tally: Tally, { bystander, outside }: Ground, all: boolean): void => {
  const touched = outside.touched(all)
  if (touched !== undefined) {
    accuse(tally, { kind: "escape", why: touched })
    outside.rebuild()
  }
  const mistaken = bystander.touched(all)
  if (mistaken !== undefined) {
    accuse(tally, { kind: "wrong", why: mistaken })
    bystander.rebuild()
  }
}

/** Turns a defect into an outcome, which no operation may have. */
const settled = (call: Effect.Effect<unknown, Failure>): Effect.Effect<Outcome> =>
  Effect.map(Effect.exit(call), (exit) => {
    if (Exit.isSuccess(exit)) return { _tag: "Success", success: exit.value }
    const error = Cause.findErrorOption(exit.cause)
    const died = (): Failure => ({ _tag: "Died", why: String(Cause.squash(exit.cause)) }) as Failure
    return { _tag: "Failure", failure: Option.getOrElse(error, died) }
  })

/** Runs one call, or several at the same time with names of their own. */
const batch = (
  tally: Tally,
  subject: Subject,
  operation: Operation,
  ground: Ground,
  attacker: Attacker,
  first: number,
  width: number
) =>
  Effect.gen(function* () {
    const numbers = Array.from({ length: width }, (_, index) => first + index)
    for (const n of numbers) operation.prepare?.(ground, n)
    const before = attacker.swaps()
    const outcomes = yield* Effect.all(
      numbers.map((n) => settled(operation.run(subject, ground, n))),
      { concurrency: "unbounded" }
    )
    tally.attempts += Math.min(width, attacker.swaps() - before)
    tally.calls += width
    lookAround(tally, ground, first % 64 === 0)
    outcomes.forEach((outcome, index) => judgeOne(tally, operation, ground, numbers[index]!, outcome))
  })

const isLeftover = (name: string): boolean => name.startsWith(".~")

const leftoversIn = (directory: string): ReadonlyArray<string> => {
  const found = Fs.readdirSync(directory).filter(isLeftover)
  for (const name of found) removeAttacked(join(directory, name))
  return found
}

/** Counts the entries in new directories that were moved to the grave, and removes them. */
const exhume = (grave: string, ...others: ReadonlyArray<string>): { readonly made: number; readonly leftovers: number } => {
  const directories = Fs.existsSync(grave) ? Fs.readdirSync(grave).map((name) => join(grave, name)) : []
  let made = 0
  let leftovers = 0
  for (const directory of [...directories, ...others]) {
    if (!Fs.lstatSync(directory, { throwIfNoEntry: false })?.isDirectory()) continue
    const names = Fs.readdirSync(directory)
    made += names.filter((name) => /^new-\d+$/.test(name)).length
    leftovers += names.filter(isLeftover).length
    for (const name of names) removeAttacked(join(directory, name))
  }
  for (const directory of directories) removeAttacked(directory)
  return { made, leftovers }
}

const isEnough = (tally: Tally, quota: Quota, begun: number): boolean =>
  tally.attempts >= quota.attempts ||
  performance.now() - begun > quota.milliseconds ||
  (quota.until !== undefined && tally.counts[quota.until] > 0)

/** The number of attempts between two counts of the entries in the grave. */
const period = 1500

/** Makes all attempts of one operation on one ground, with its own attacker. */
export const assault = (
  subject: Subject,
  operation: Operation,
  { name }: Scene,
  ground: Ground,
  program: Program,
  quota: Quota
): Effect.Effect<Tally> => {
  const tally = newTally(operation.name, name)
  const begun = performance.now()
  const grave = join(ground.root, "grave")
  const run = Effect.fnUntraced(function* (attacker: Attacker) {
    let made = 0
    for (let n = 0; !isEnough(tally, quota, begun);) {
      // The first half runs one call at a time, the second half several.
      const width = tally.attempts < quota.attempts / 2 ? 1 : slots
      yield* batch(tally, subject, operation, ground, attacker, n, width)
      n += width
      if (n % period < width) {
        const found = exhume(grave)
        made += found.made
        tally.counts.leftovers += found.leftovers
      }
      if (n % 64 < width) yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    }
    tally.swaps = (yield* Effect.promise(attacker.stop)).swaps
    lookAround(tally, ground, true)
    const rest = exhume(grave, ...(ground.places.length === 0 ? [join(ground.root, ground.at)] : []))
    const left = [ground.root, ...ground.places.map(({ at }) => at("."))].flatMap(leftoversIn)
    tally.counts.leftovers += rest.leftovers + left.length
    if (left.length > 0) tally.evidence.push(`leftovers: ${left[0]}`)
    if (operation.makes === true && Fs.existsSync(grave) && made + rest.made !== tally.successes) {
      accuse(tally, { kind: "wrong", why: `${tally.successes} calls succeeded, and ${made + rest.made} entries were made` })
    }
    tally.milliseconds = performance.now() - begun
    return tally
  })
  return Effect.acquireUseRelease(
    Effect.promise(() => {
      // A missing entry, used up by the last operation, would keep the attacker from its first swap.
      operation.prepare?.(ground, 0)
      return start(program, ground.attack, gap, join(ground.root, "..", "counter"))
    }),
    run,
    (attacker) => Effect.promise(attacker.stop)
  )
}

const descriptorsIn = (directory: string): number =>
  Fs.readdirSync("/proc/self/fd").filter((descriptor) => {
    try {
      return Fs.readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(directory)
    } catch {
      return false
    }
  }).length

/** Plays a scene on its own ground with all operations, one after the other. */
export const play = (
  top: string,
  scene: Scene,
  operations: ReadonlyArray<Operation>,
  subjectAt: (root: string) => Promise<{ readonly subject: Subject; readonly close: () => Promise<void> }>,
  program: Program,
  quotaOf: (operation: Operation) => Quota
): Effect.Effect<ReadonlyArray<Tally>> =>
  Effect.gen(function* () {
    const ground = prepare(top, scene)
    const held = descriptorsIn(top)
    const { close, subject } = yield* Effect.promise(() => subjectAt(ground.root))
    const tallies: Array<Tally> = []
    for (const operation of operations) {
      const tally = yield* assault(subject, operation, scene, ground, program, quotaOf(operation))
      tallies.push(tally)
      report(tally)
      // An attacker that is dead or too slow would not recover for the other operations.
      if (tally.attempts < quotaOf(operation).attempts && quotaOf(operation).until === undefined) break
    }
    yield* Effect.promise(close)
    const left = descriptorsIn(top) - held
    if (left > 0) accuse(tallies[0]!, { kind: "leftovers", why: `${left} descriptors are open after the scope has closed` })
    const differs = ground.outside.differs()
    if (differs !== undefined) accuse(tallies[0]!, { kind: "escape", why: differs })
    ground.release()
    return tallies
  })

export const isLoud = isSoak || process.env["DEBUG"] !== undefined

export const line = ({ attempts, calls, counts, milliseconds, operation, refusals, scene, successes, swaps }: Tally): string =>
  `${operation} | ${scene}: ${attempts} attempts of ${calls} calls, ${swaps} swaps, ${Math.round(milliseconds)} ms; ` +
  `${counts.escape} escapes, ${counts.wrong} wrong, ${counts.undeclared} undeclared, ${counts.partial} partial, ${counts.misnamed} misnamed, ${counts.leftovers} left over; ` +
  `${successes} done, refused ${JSON.stringify(refusals)}`

export const report = (tally: Tally): void => {
  if (!isLoud) return
  console.log(line(tally))
  for (const evidence of tally.evidence) console.log(`    ${evidence}`)
}
