/**
 * Settles, when a root is opened, the transactions that killed processes left in it, below it or above it.
 *
 * A transaction is completed or cleared if that is permitted and its files are proven to be the recorded ones.
 * Otherwise it is reported.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { relative, sep } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, mapPath } from "../../port/Backend.ts"
import type { Recovery, Settled } from "../../port/hostRoots.ts"
import { isInside } from "../../runtime/openRoots.ts"
import { pause } from "../../runtime/processLock.ts"
import * as Transactions from "../../runtime/transactions.ts"
import { conclude, decode, finished, type Part } from "./record.ts"
import * as Recover from "./recover.ts"
import { takingRoots } from "./turn.ts"

export interface Opened {
  readonly root: Transactions.Root
  readonly port: Backend
  readonly open: (path: string) => Effect.Effect<Backend, Fault, Scope.Scope>
  readonly permits: (path: FsPath.FsPath) => boolean
  readonly report: Recovery["report"]
  readonly reported: Set<string>
}

/** The longest wait, in milliseconds, for a process that is renaming entries. */
const patience = 2_000

const isSwapping = ({ state }: Transactions.Entry): boolean => state === "forward" || state === "back"

const swapping = ({ header }: Transactions.Entry, root: Transactions.Root): Fault => ({
  _tag: "Unavailable",
  detail: `process ${header.owner} is changing files of ${JSON.stringify(root.path)} and has not come to an end; try again`
})

const isPermitted = ({ info, rules }: Backend): boolean =>
  !info.readOnly && (rules?.permits === undefined || (rules.permits("write") && rules.permits("delete")))

const toPath = (from: string, to: string): FsPath.FsPath => {
  const path = relative(from, to)
  return FsPath.fromSegments(path === "" ? [] : path.split(sep))
}

interface Concern {
  readonly index: number
  readonly relation: "same" | "inside" | "above"
}

/** Returns the roots of a record that share files with the opened root and are still the same directories. */
const concerns = (roots: ReadonlyArray<Transactions.Root>, opened: Transactions.Root): ReadonlyArray<Concern> =>
  roots.flatMap((root, index): ReadonlyArray<Concern> => {
    if (Transactions.isSame(root, opened)) return [{ index, relation: "same" }]
    const isBelow = isInside(opened.path, root.path)
    if (root.path === opened.path || !(isBelow || isInside(root.path, opened.path))) return []
    const there = Transactions.rootAt(root.path)
    return there !== undefined && Transactions.isSame(there, root) ? [{ index, relation: isBelow ? "inside" : "above" }] : []
  })

const pathsOf = ({ modes, steps }: Part): ReadonlyArray<FsPath.FsPath> => [...steps, ...modes].map(({ path }) => path)

const isReached = (part: Part, at: FsPath.FsPath): boolean =>
  [...pathsOf(part), ...part.probes, ...part.regions.flatMap((region) => (region === undefined ? [] : [region.path]))].some(
    (path) => FsPath.isWithin(at, path) || FsPath.isWithin(path, at)
  )

const told = (entry: Transactions.Entry, index: number, part: Part | undefined): Omit<Settled, "outcome"> => {
  const paths = part === undefined ? [] : pathsOf(part)
  return { root: entry.header.roots[index]!.path, owner: entry.header.owner, paths: paths.slice(0, 3), count: paths.length }
}

const notPermitted = "this filesystem may not change what it changes"

const blocked = (detail: string, { file }: Transactions.Entry): string =>
  `${detail}; look at both, and remove its record ${JSON.stringify(file)}`

const settlePart = Effect.fnUntraced(function* (
  entry: Transactions.Entry,
  port: Backend,
  part: Part
): Effect.fn.Return<Pick<Settled, "outcome" | "detail">, Fault> {
  const { header, state } = entry
  const hasBegun = isSwapping(entry)
  if (hasBegun) {
    const detail = yield* Recover.finish({ port, part, token: header.token, isBack: state === "back" })
    if (detail !== undefined) return { outcome: "left", detail: blocked(detail, entry) }
    // Mark the record as done, because this process may be killed too. A record of several roots has one common state, so
    // it stays unchanged.
    if (header.roots.length === 1) yield* finished(entry)
  }
  yield* Recover.clear(port, part, header.token, state === "preparing")
  if (hasBegun) return { outcome: "finished" }
  return state === "done" ? { outcome: "cleared", detail: "which had come to an end" } : { outcome: "cleared" }
})

const settleConcern = Effect.fnUntraced(function* (
  self: Opened,
  entry: Transactions.Entry,
  parts: ReadonlyArray<Part>,
  { index, relation }: Concern
): Effect.fn.Return<Settled | undefined, Fault, Scope.Scope> {
  const root = entry.header.roots[index]!
  const part = parts[index]!
  const base = relation === "above" ? toPath(root.path, self.root.path) : toPath(self.root.path, root.path)
  if (relation === "above" && !isReached(part, base)) return undefined
  const common = told(entry, index, part)
  const fromOpened = (path: FsPath.FsPath): FsPath.FsPath | undefined =>
    relation === "same"
      ? path
      : relation === "inside"
        ? FsPath.below(base, path)
        : FsPath.isWithin(base, path)
          ? FsPath.relative(base, path)
          : undefined
  const mayChange = (path: FsPath.FsPath): boolean => {
    const seen = fromOpened(path)
    return seen === undefined || self.permits(seen)
  }
  if (!isPermitted(self.port) || !pathsOf(part).every(mayChange)) return { ...common, outcome: "left", detail: notPermitted }
  const port =
    relation === "same"
      ? self.port
      : relation === "above"
        ? yield* self.open(root.path)
        : mapPath(
            self.port,
            (path) => FsPath.below(base, path),
            (path) => FsPath.relative(base, path)
          )
  return { ...common, ...(yield* settlePart(entry, port, part)) }
})

const unreadable = "its record could not be read; what it has staged stays where it is"

/**
 * Settles one record under the lock of its roots. Reads it again, because another process may have settled it
 * meanwhile.
 */
const settleEntry = Effect.fnUntraced(function* (self: Opened, id: string): Effect.fn.Return<void, Fault, Scope.Scope> {
  for (let left = 0; ;) {
    const entry = latest((yield* Transactions.list()).entries).find((each) => each.id === id)
    if (entry === undefined || !isLeft(entry)) return
    const concern = concerns(entry.header.roots, self.root)[left]
    if (concern === undefined) return
    const body = yield* Transactions.bodyOf(entry)
    const parts = body === undefined ? undefined : decode(body, entry.header.roots.length)
    if (parts === undefined || !Transactions.isToken(entry.header.token)) {
      Transactions.putAside(entry.file)
      return yield* report(self, entry, { ...told(entry, concern.index, undefined), outcome: "left", detail: unreadable })
    }
    const settled = yield* settleConcern(self, entry, parts, concern)
    if (settled !== undefined) yield* report(self, entry, settled)
    if (settled === undefined || settled.outcome === "left") left++
    else {
      yield* conclude(entry, parts, concern.index)
      Transactions.abandoned.delete(id)
    }
  }
})

const report = (self: Opened, { id, state }: Transactions.Entry, settled: Settled): Effect.Effect<void> => {
  const key = JSON.stringify([id, state, settled.outcome, settled.detail])
  if (self.reported.has(key)) return Effect.void
  self.reported.add(key)
  return self.report(settled)
}

const isLeft = (entry: Transactions.Entry): boolean => Transactions.isAlive(entry) === false

/**
 * Returns the latest record of each id. A rewritten record may still exist in its earlier state; the later state
 * counts.
 */
const latest = (entries: ReadonlyArray<Transactions.Entry>): ReadonlyArray<Transactions.Entry> => {
  const later = new Set(entries.flatMap(({ id, state }) => (state === "preparing" || state === "turn" ? [] : [id])))
  return entries.filter(({ id, state }) => state !== "turn" && (state !== "preparing" || !later.has(id)))
}

const related = ({ root }: Opened): Effect.Effect<ReadonlyArray<Transactions.Entry>, Fault> =>
  Effect.map(Transactions.list(), ({ entries }) =>
    latest(entries).filter(({ header }) => header.roots.some((one) => Transactions.isRelated(one, root)))
  )

const awaited = (self: Opened): Effect.Effect<void, Fault> => {
  const attempt = (waited: number): Effect.Effect<void, Fault> =>
    Effect.flatMap(related(self), (entries) => {
      const swap = entries.find((entry) => isSwapping(entry) && Transactions.isAlive(entry) === true)
      if (swap === undefined) return Effect.void
      if (waited >= patience) return Effect.fail(swapping(swap, self.root))
      return Effect.andThen(pause(10), attempt(waited + 10))
    })
  return attempt(0)
}

/** Settles one record. A failure is reported and does not block the others. */
const settleOne = (self: Opened, entry: Transactions.Entry): Effect.Effect<void> =>
  Effect.scoped(Effect.suspend(() => takingRoots([...entry.header.roots, self.root], settleEntry(self, entry.id)))).pipe(
    Effect.catch((fault) => {
      const detail = fault._tag === "AccessDenied" && fault["why"] === "busy" ? "another process is at work there" : why(fault)
      return report(self, entry, { ...told(entry, 0, undefined), outcome: "left", detail })
    })
  )

const why = (fault: Fault): string => {
  const { detail, path } = fault
  return `${fault._tag}${typeof path === "string" ? ` ${JSON.stringify(path)}` : ""}${typeof detail === "string" ? `: ${detail}` : ""}`
}

/**
 * Settles all transactions that concern a root.
 *
 * Fails with Unavailable if a live process is renaming entries in it and does not finish within two seconds. Every
 * other failure is reported.
 */
export const settle = Effect.fnUntraced(function* (self: Opened): Effect.fn.Return<void, Fault> {
  yield* awaited(self)
  for (const entry of yield* related(self)) {
    if (isLeft(entry)) yield* settleOne(self, entry)
    else if (Transactions.isAlive(entry) === undefined) {
      yield* report(self, entry, { ...told(entry, 0, undefined), outcome: "left" })
    }
  }
})
