/**
 * A record contains the data that recovery needs to complete or discard a transaction. The record is written outside the
 * tree before the first change.
 *
 * A record does not store the progress, because the remaining staged entries show the progress. The record stores a digest
 * of each staged entry, and recovery publishes only entries that match their digest.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { unavailable } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import type { HostRoot } from "../../port/hostRoots.ts"
import * as Transactions from "../../runtime/transactions.ts"
import type { StagedDigest } from "./stage.ts"
import type { ModeChange, Move, Plan, Region } from "./plan.ts"

export interface RecordPart {
  /** The regions, by the index that steps use. `undefined` for a region that is in another root. */
  readonly regions: ReadonlyArray<Region | undefined>
  readonly steps: ReadonlyArray<Move>
  readonly modes: ReadonlyArray<ModeChange>
  readonly probes: ReadonlyArray<FsPath.FsPath>
  /** The time at which staging was complete, in milliseconds since 1970, by the clock of the root's disk. */
  readonly since: number | undefined
}

const keyPattern = /^\u0000(?:[0-9a-f]{2})+$/

const isSegment = (segment: string): boolean =>
  keyPattern.test(segment) || (segment !== "." && FsPath.parse(segment) === segment && !segment.includes("/"))

const isPath = (text: string): boolean => text === FsPath.root || text.split("/").every(isSegment)

const Path = Schema.String.check(
  Schema.makeFilter((text: string) => isPath(text) || "the path must be in normal form")
) as unknown as Schema.Codec<FsPath.FsPath, string>

const NonNegativeInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Mode = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0o777 }))
const Kind = Schema.Literals(["file", "symlink", "directory"])
const Digest = Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/))

const Mark = Schema.Struct({
  kind: Kind,
  sizeBytes: Schema.Number,
  modified: Schema.optionalKey(Schema.Number)
})

const Line = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({
      _tag: Schema.Literal("region"),
      root: NonNegativeInt,
      index: NonNegativeInt,
      path: Path,
      isFlat: Schema.Boolean,
      since: Schema.optionalKey(Schema.Number)
    }),
    Schema.Struct({
      _tag: Schema.Literal("step"),
      root: NonNegativeInt,
      path: Path,
      region: NonNegativeInt,
      slot: NonNegativeInt,
      next: Schema.optionalKey(Kind),
      was: Schema.optionalKey(Mark),
      keeps: Schema.Boolean,
      opens: Schema.optionalKey(Mode),
      shuts: Schema.optionalKey(Mode),
      digest: Schema.optionalKey(Digest),
      hasBits: Schema.optionalKey(Schema.Boolean)
    }),
    Schema.Struct({
      _tag: Schema.Literal("mode"),
      root: NonNegativeInt,
      path: Path,
      kind: Schema.Literals(["file", "directory"]),
      was: Mode,
      becomes: Mode,
      opens: Schema.Boolean
    }),
    Schema.Struct({ _tag: Schema.Literal("probe"), root: NonNegativeInt, path: Path }),
    Schema.Struct({ _tag: Schema.Literal("end") })
  ])
)
type Line = (typeof Line)["Type"]

const decodeLine = Schema.decodeUnknownResult(Line)

const isCompletePart = ({ modes, regions, steps }: RecordPart): boolean =>
  steps.every(
    ({ digest, next, path, region }) =>
      regions[region] !== undefined && path !== FsPath.root && (next === undefined) === (digest === undefined)
  ) && modes.every(({ kind, path }) => kind === "directory" || path !== FsPath.root)

interface RecordPartBuilder {
  readonly regions: Array<Region | undefined>
  readonly steps: Array<Move>
  readonly modes: Array<ModeChange>
  readonly probes: Array<FsPath.FsPath>
  since: number | undefined
}

const emptyPart = (): RecordPartBuilder => ({ regions: [], steps: [], modes: [], probes: [], since: undefined })

const maxRegions = 100_000

const take = (into: RecordPartBuilder, line: Exclude<Line, { readonly _tag: "end" }>): void => {
  if (line._tag === "region") {
    into.regions[line.index] = { path: line.path, isFlat: line.isFlat }
    into.since ??= line.since
  } else if (line._tag === "step") {
    const { _tag, root: _, ...step } = line
    into.steps.push(step)
  } else if (line._tag === "mode") {
    const { _tag, root: _, ...mode } = line
    into.modes.push(mode)
  } else into.probes.push(line.path)
}

/** Decodes a record into its parts, one for each root. Returns `undefined` for an invalid or incomplete record. */
export const decode = (body: string, roots: number): ReadonlyArray<RecordPart> | undefined => {
  const parts = Array.from({ length: roots }, emptyPart)
  const lines = body.split("\n")
  if (lines.pop() !== "") return undefined
  const last = lines.length - 1
  for (const [at, text] of lines.entries()) {
    const decoded = decodeLine(text)
    if (Result.isFailure(decoded)) return undefined
    const line = decoded.success
    if (line._tag === "end") return at === last && parts.every(isCompletePart) ? parts : undefined
    const into = parts[line.root]
    if (into === undefined || (line._tag === "region" && line.index >= maxRegions)) return undefined
    take(into, line)
  }
  return undefined
}

const lineOf = (line: Line): string => `${JSON.stringify(line)}\n`

const linesOf = function* (part: RecordPart, root: number): Generator<string> {
  for (const [index, region] of part.regions.entries()) {
    if (region === undefined) continue
    const since = part.since === undefined ? {} : { since: part.since }
    yield lineOf({ _tag: "region", root, index, path: region.path, isFlat: region.isFlat, ...since })
  }
  for (const step of part.steps) yield lineOf({ _tag: "step", root, ...step })
  for (const mode of part.modes) yield lineOf({ _tag: "mode", root, ...mode })
  for (const path of part.probes) yield lineOf({ _tag: "probe", root, path })
}

const linesPerYield = 1000

export const cannotWriteRecord = (cause?: unknown): Fault => ({
  ...unavailable(
    "nothing was changed, because the record of the transaction cannot be written; make sure that this user has a private " +
      "directory in XDG_STATE_HOME, ~/.local/state or the temporary directory, with space on its disk"
  ),
  ...(cause === undefined ? {} : { cause })
})

const attemptRecord = <A>(run: () => A): Effect.Effect<A, Fault> => Effect.try({ try: run, catch: cannotWriteRecord })

/** Writes a record with a state. Atomically replaces a record with the same id and state. */
const publishRecord = (
  id: string,
  header: Transactions.Header,
  parts: ReadonlyArray<RecordPart>,
  state: Transactions.State,
  isDurable: boolean
): Effect.Effect<void, Fault> =>
  Effect.uninterruptible(
    Effect.acquireUseRelease(
      Effect.flatMap(
        attemptRecord(() => Transactions.draft(id, header, isDurable)),
        (draft) => (draft === undefined ? Effect.fail(cannotWriteRecord()) : Effect.succeed(draft))
      ),
      (draft) =>
        Effect.gen(function* () {
          let lines: Array<string> = []
          for (const [root, part] of parts.entries()) {
            for (const line of linesOf(part, root)) {
              if (lines.push(line) < linesPerYield) continue
              const text = lines.join("")
              lines = []
              yield* attemptRecord(() => draft.write(text))
              yield* Effect.yieldNow
            }
          }
          lines.push(lineOf({ _tag: "end" }))
          yield* attemptRecord(() => draft.write(lines.join("")))
          yield* attemptRecord(() => draft.publish(state))
        }),
      (draft) => Effect.sync(draft.discard)
    )
  )

interface PartsByRoot {
  readonly roots: ReadonlyArray<HostRoot>
  readonly parts: ReadonlyArray<RecordPart>
}

const splitByRoot = (
  { hostRoots }: Backend,
  { modes, regions, steps }: Pick<Plan, "regions" | "steps" | "modes">,
  digests: ReadonlyMap<number, StagedDigest>,
  probes: ReadonlyArray<FsPath.FsPath>,
  since: ReadonlyMap<number, number>
): PartsByRoot => {
  const roots: Array<HostRoot> = []
  const parts: Array<RecordPartBuilder> = []
  const at = (path: FsPath.FsPath): { readonly part: RecordPartBuilder; readonly path: FsPath.FsPath } | undefined => {
    const origin = hostRoots?.hostPathOf(path)
    if (origin === undefined) return undefined
    let index = roots.indexOf(origin.root)
    if (index === -1) {
      index = roots.push(origin.root) - 1
      parts.push(emptyPart())
    }
    return { part: parts[index]!, path: origin.path }
  }
  for (const [index, { isFlat, path }] of regions.entries()) {
    const found = at(path)
    if (found === undefined) continue
    found.part.regions[index] = { path: found.path, isFlat }
    found.part.since ??= since.get(index)
  }
  for (const { after: _, before: __, replacesOtherSpelling: ___, path, ...move } of steps) {
    const found = at(path)
    const digest = digests.get(move.slot)
    found?.part.steps.push({ path: found.path, ...move, ...digest })
  }
  for (const mode of modes) {
    const found = at(mode.path)
    found?.part.modes.push({ ...mode, path: found.path })
  }
  for (const path of probes) {
    const found = at(path)
    found?.part.probes.push(found.path)
  }
  return { roots, parts }
}

const identityOf = ({ device, inode, path }: HostRoot): Transactions.Root => ({ path, device, inode })

export interface Record {
  readonly id: string
  /**
   * True if a record is written. Only a transaction on a disk of the host has a record, because a later process could find its
   * leftovers.
   */
  readonly isRecorded: boolean
  readonly prepare: Effect.Effect<void, Fault>
  /**
   * Completes the record before the first visible change. `digests` contains the digests of staged entries by slot. `since`
   * contains the time of each region at which staging was complete, in milliseconds since 1970.
   */
  readonly recordStaged: (
    digests: ReadonlyMap<number, StagedDigest>,
    since: ReadonlyMap<number, number>
  ) => Effect.Effect<void, Fault>
  readonly advance: (from: Transactions.State, to: Transactions.State) => Effect.Effect<void, Fault>
  readonly drop: (state: Transactions.State) => Effect.Effect<void>
}

const [noDigests, noTimes] = [new Map<number, StagedDigest>(), new Map<number, number>()]

export const make = (port: Backend, plan: Plan, token: string, probes: ReadonlyArray<FsPath.FsPath> = []): Record => {
  const id = Transactions.makeId()
  const prepared = splitByRoot(port, { ...plan, steps: [] }, noDigests, probes, noTimes)
  if (prepared.roots.length === 0) {
    const nothing = () => Effect.void
    return { id, isRecorded: false, prepare: Effect.void, recordStaged: nothing, advance: nothing, drop: nothing }
  }
  const isDurable = prepared.roots.some((root) => root.isDurable)
  const write = ({ parts, roots }: PartsByRoot, state: Transactions.State): Effect.Effect<void, Fault> =>
    Effect.suspend(() => publishRecord(id, Transactions.ownHeader(token, roots.map(identityOf)), parts, state, isDurable))
  const removeState = (state: Transactions.State): Effect.Effect<void> =>
    Effect.ignore(attemptRecord(() => Transactions.removeRecord(id, state)))
  return {
    id,
    isRecorded: true,
    prepare: write(prepared, "preparing"),
    // For a moment, records of both states exist. Recovery then uses the record of the later state.
    recordStaged: (digests, since) =>
      Effect.andThen(
        Effect.suspend(() => write(splitByRoot(port, plan, digests, probes, since), "forward")),
        removeState("preparing")
      ),
    advance: (from, to) => attemptRecord(() => Transactions.renameState(id, from, to)),
    drop: removeState
  }
}

/** Marks the transaction of a dead process as done, so that only its staged entries remain to be removed. */
export const markDone = ({ id, state }: Transactions.Entry): Effect.Effect<void, Fault> =>
  attemptRecord(() => Transactions.renameState(id, state, "done"))

/** Removes the part of one root from the record of a dead process. Removes the record if no part remains. */
export const removePart = (
  { file, header, id, state }: Transactions.Entry,
  parts: ReadonlyArray<RecordPart>,
  concluded: number
): Effect.Effect<void, Fault> => {
  const others = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> => all.filter((_, index) => index !== concluded)
  const roots = others(header.roots)
  if (roots.length === 0) {
    return attemptRecord(() => {
      Transactions.removeFile(file)
      Transactions.removeRecord(id, "done")
    })
  }
  return publishRecord(id, { ...header, roots }, others(parts), state, false)
}
