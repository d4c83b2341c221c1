/**
 * Records: the data that recovery needs to complete or discard a transaction, written outside the tree before the first
 * change.
 *
 * A record does not store the progress, because the staged entries that still exist show it. It stores a digest of each
 * of them, so that recovery puts only those in place.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import type { HostRoot } from "../../port/hostRoots.ts"
import * as Transactions from "../../runtime/transactions.ts"
import type { Digested } from "./digest.ts"
import type { Region } from "./places.ts"
import type { ModeChange, Move, Plan } from "./plan.ts"

export interface Part {
  /** The regions by the indexes that steps use; `undefined` for a region in another root. */
  readonly regions: ReadonlyArray<Region | undefined>
  readonly steps: ReadonlyArray<Move>
  readonly modes: ReadonlyArray<ModeChange>
  readonly probes: ReadonlyArray<FsPath.FsPath>
  /** The start of the transaction by the clock of the root: milliseconds since 1970. */
  readonly since: number | undefined
}

const key = /^\u0000(?:[0-9a-f]{2})+$/

const isSegment = (segment: string): boolean =>
  key.test(segment) || (segment !== "." && FsPath.parse(segment) === segment && !segment.includes("/"))

const isPath = (text: string): boolean => text === FsPath.root || text.split("/").every(isSegment)

const Path = Schema.String.check(
  Schema.makeFilter((text: string) => isPath(text) || "must be a path in normal form")
) as unknown as Schema.Codec<FsPath.FsPath, string>

const Whole = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
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
      root: Whole,
      index: Whole,
      path: Path,
      isFlat: Schema.Boolean,
      since: Schema.optionalKey(Schema.Number)
    }),
    Schema.Struct({
      _tag: Schema.Literal("step"),
      root: Whole,
      path: Path,
      region: Whole,
      slot: Whole,
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
      root: Whole,
      path: Path,
      kind: Schema.Literals(["file", "directory"]),
      was: Mode,
      becomes: Mode,
      opens: Schema.Boolean
    }),
    Schema.Struct({ _tag: Schema.Literal("probe"), root: Whole, path: Path }),
    Schema.Struct({ _tag: Schema.Literal("end") })
  ])
)
type Line = (typeof Line)["Type"]

const decodeLine = Schema.decodeUnknownResult(Line)

const isWhole = ({ modes, regions, steps }: Part): boolean =>
  steps.every(
    ({ digest, next, path, region }) =>
      regions[region] !== undefined && path !== FsPath.root && (next === undefined) === (digest === undefined)
  ) && modes.every(({ kind, path }) => kind === "directory" || path !== FsPath.root)

interface Growing {
  readonly regions: Array<Region | undefined>
  readonly steps: Array<Move>
  readonly modes: Array<ModeChange>
  readonly probes: Array<FsPath.FsPath>
  since: number | undefined
}

const mostRegions = 100_000

const take = (into: Growing, line: Line): void => {
  if (line._tag === "end") return
  const { root: _, ...rest } = line
  if (rest._tag === "region") {
    into.regions[rest.index] = { path: rest.path, isFlat: rest.isFlat }
    into.since ??= rest.since
  } else if (rest._tag === "step") {
    const { _tag, ...step } = rest
    into.steps.push(step)
  } else if (rest._tag === "mode") {
    const { _tag, ...mode } = rest
    into.modes.push(mode)
  } else into.probes.push(rest.path)
}

/**
 * Decodes the parts of a record, one for each of its roots; returns `undefined` for an invalid or incomplete record.
 */
export const decode = (body: string, roots: number): ReadonlyArray<Part> | undefined => {
  const parts = Array.from({ length: roots }, (): Growing => ({
    regions: [],
    steps: [],
    modes: [],
    probes: [],
    since: undefined
  }))
  const lines = body.split("\n")
  if (lines.pop() !== "") return undefined
  const last = lines.length - 1
  for (const [at, text] of lines.entries()) {
    const decoded = decodeLine(text)
    if (Result.isFailure(decoded)) return undefined
    const line = decoded.success
    if (line._tag === "end") return at === last && parts.every(isWhole) ? parts : undefined
    const into = parts[line.root]
    if (into === undefined || (line._tag === "region" && line.index >= mostRegions)) return undefined
    take(into, line)
  }
  return undefined
}

const lineOf = (line: Line): string => `${JSON.stringify(line)}\n`

const linesOf = function* (part: Part, root: number): Generator<string> {
  for (const [index, region] of part.regions.entries()) {
    if (region === undefined) continue
    const since = part.since === undefined ? {} : { since: part.since }
    yield lineOf({ _tag: "region", root, index, path: region.path, isFlat: region.isFlat, ...since })
  }
  for (const step of part.steps) yield lineOf({ _tag: "step", root, ...step })
  for (const mode of part.modes) yield lineOf({ _tag: "mode", root, ...mode })
  for (const path of part.probes) yield lineOf({ _tag: "probe", root, path })
}

const atOnce = 1000

const unkept = (cause?: unknown): Fault => ({
  _tag: "Unavailable",
  detail:
    "the record of this change cannot be kept, so nothing was changed; this user needs a private directory, " +
    "in XDG_STATE_HOME, ~/.local/state or the temporary directory, and space on its disk",
  ...(cause === undefined ? {} : { cause })
})

const trying = <A>(run: () => A): Effect.Effect<A, Fault> => Effect.try({ try: run, catch: unkept })

/** Writes a record and gives it its state. Replaces a record with the same state atomically. */
const publish = (
  id: string,
  header: Transactions.Header,
  parts: ReadonlyArray<Part>,
  state: Transactions.State,
  isDurable: boolean
): Effect.Effect<void, Fault> =>
  Effect.uninterruptible(
    Effect.acquireUseRelease(
      Effect.flatMap(
        trying(() => Transactions.draft(id, header, isDurable)),
        (draft) => (draft === undefined ? Effect.fail(unkept()) : Effect.succeed(draft))
      ),
      (draft) =>
        Effect.gen(function* () {
          let lines: Array<string> = []
          for (const [root, part] of parts.entries()) {
            for (const line of linesOf(part, root)) {
              if (lines.push(line) < atOnce) continue
              const text = lines.join("")
              lines = []
              yield* trying(() => draft.write(text))
              yield* Effect.yieldNow
            }
          }
          lines.push(lineOf({ _tag: "end" }))
          yield* trying(() => draft.write(lines.join("")))
          yield* trying(() => draft.publish(state))
        }),
      (draft) => Effect.sync(draft.discard)
    )
  )

interface Divided {
  readonly roots: ReadonlyArray<HostRoot>
  readonly parts: ReadonlyArray<Part>
}

const divide = (
  { hostRoots }: Backend,
  { modes, regions, steps }: Pick<Plan, "regions" | "steps" | "modes">,
  digests: ReadonlyMap<number, Digested>,
  probes: ReadonlyArray<FsPath.FsPath>,
  since: ReadonlyMap<number, number>
): Divided => {
  const roots: Array<HostRoot> = []
  const parts: Array<Growing> = []
  const at = (path: FsPath.FsPath): { readonly part: Growing; readonly path: FsPath.FsPath } | undefined => {
    const origin = hostRoots?.originOf(path)
    if (origin === undefined) return undefined
    let index = roots.indexOf(origin.root)
    if (index === -1) {
      index = roots.push(origin.root) - 1
      parts.push({ regions: [], steps: [], modes: [], probes: [], since: undefined })
    }
    return { part: parts[index]!, path: origin.path }
  }
  for (const [index, { isFlat, path }] of regions.entries()) {
    const found = at(path)
    if (found === undefined) continue
    found.part.regions[index] = { path: found.path, isFlat }
    found.part.since ??= since.get(index)
  }
  for (const { after: _, before: __, isRespelt: ___, path, ...move } of steps) {
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
  /** True if the transaction changes a disk, where a later process could find its leftovers. */
  readonly isKept: boolean
  readonly prepare: Effect.Effect<void, Fault>
  /**
   * Completes the record before the first visible change. `digests` holds the digests of staged entries by slot,
   * `since` the start times by region.
   */
  readonly forward: (digests: ReadonlyMap<number, Digested>, since: ReadonlyMap<number, number>) => Effect.Effect<void, Fault>
  readonly advance: (from: Transactions.State, to: Transactions.State) => Effect.Effect<void, Fault>
  readonly drop: (state: Transactions.State) => Effect.Effect<void>
}

const [noDigests, noTimes] = [new Map<number, Digested>(), new Map<number, number>()]

export const make = (port: Backend, plan: Plan, token: string, probes: ReadonlyArray<FsPath.FsPath> = []): Record => {
  const id = Transactions.makeId()
  const prepared = divide(port, { ...plan, steps: [] }, noDigests, probes, noTimes)
  if (prepared.roots.length === 0) {
    const unrecorded = Effect.void
    return {
      id,
      isKept: false,
      prepare: unrecorded,
      forward: () => unrecorded,
      advance: () => unrecorded,
      drop: () => unrecorded
    }
  }
  const isDurable = prepared.roots.some((root) => root.isDurable)
  const write = ({ parts, roots }: Divided, state: Transactions.State): Effect.Effect<void, Fault> =>
    Effect.suspend(() => publish(id, Transactions.ownHeader(token, roots.map(identityOf)), parts, state, isDurable))
  const dropped = (state: Transactions.State): Effect.Effect<void> => Effect.ignore(trying(() => Transactions.drop(id, state)))
  return {
    id,
    isKept: true,
    prepare: write(prepared, "preparing"),
    // If both files exist, the later state counts.
    forward: (digests, since) =>
      Effect.andThen(
        Effect.suspend(() => write(divide(port, plan, digests, probes, since), "forward")),
        dropped("preparing")
      ),
    advance: (from, to) => trying(() => Transactions.advance(id, from, to)),
    drop: dropped
  }
}

/** Marks the transaction of a dead process as done, except for its staged files. */
export const finished = ({ id, state }: Transactions.Entry): Effect.Effect<void, Fault> =>
  trying(() => Transactions.advance(id, state, "done"))

/** Removes the part of one root from the record of a dead process, and the record with its last part. */
export const conclude = (
  { file, header, id, state }: Transactions.Entry,
  parts: ReadonlyArray<Part>,
  concluded: number
): Effect.Effect<void, Fault> => {
  const others = <A>(all: ReadonlyArray<A>): ReadonlyArray<A> => all.filter((_, index) => index !== concluded)
  const roots = others(header.roots)
  if (roots.length === 0) {
    return trying(() => {
      Transactions.dropFile(file)
      Transactions.drop(id, "done")
    })
  }
  return publish(id, { ...header, roots }, others(parts), state, false)
}
