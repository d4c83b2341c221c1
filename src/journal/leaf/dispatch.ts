/**
 * Goes along the journal from its beginning, entry by entry: what is this leaf's and has no answer is taken in hand, what stood there
 * before this leaf did too. Parts of writes are counted, not kept: their content is in the journal.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { DaemonChanged } from "../entries/daemon.ts"
import { type Efferent, FileFault, FileWrite, FileWriteChunk, isEfferent, isMutation, isTerminal } from "../FileSystemEntry.ts"
import type { Entry, Recorded } from "../Journal.ts"
import * as Deadlines from "./deadlines.ts"
import * as Faults from "./faults.ts"
import type { Hands } from "./hands.ts"
import type { Left, Serving, Transfer, Work } from "./model.ts"
import { perform, refusal, refusedPath } from "./operations.ts"
import * as Registry from "./registry.ts"
import type { Survey } from "./survey.ts"

type Doing = Effect.Effect<void> | undefined

type Intent = Exclude<Efferent, FileWriteChunk>

/** What nobody serves, and when it was asked. */
interface Unclaimed {
  /** Without the content. */
  readonly intent: Efferent
  readonly path: FsPath.FsPath
  readonly at: number
  isDue: boolean
}

const noPath: Fault = { _tag: "InvalidPath", detail: "the first part of a write must name one" }

const nothing = new Uint8Array(0)

/** What is asked, without the content. */
const without = (intent: Intent): Intent =>
  intent._tag === "FileWrite" ? new FileWrite({ ...intent, content: nothing }, { disableChecks: true }) : intent
const firstOf = (chunk: FileWriteChunk): FileWriteChunk =>
  new FileWriteChunk({ ...chunk, data: nothing }, { disableChecks: true })

export interface Dispatch {
  /** Answers what is to be done before the next one, where that is anything; "superseded" where there is no next one. */
  readonly see: (recorded: Recorded<Entry>) => Doing | "superseded"
  /** What was only to be decided when everything up to here has been seen. */
  readonly seen: () => Doing
  /** Lets nothing wait for too long. Never ends. */
  readonly watch: Effect.Effect<never>
}

export const make = (self: Serving, hands: Hands, survey: Survey, me: Registry.Announced, clock: Clock.Clock): Dispatch => {
  const { instance, journal, settings } = self
  const { answered } = survey
  const leaves = survey.from.leaves.copy()
  const transfers = new Map<string, Transfer>()
  /** Writes in parts that are others'. */
  const foreign = new Set<string>()
  const unclaimed = new Map<string, Unclaimed>()
  let position = 0
  let postponed: Array<{ readonly until: number; readonly decide: () => Doing }> = []

  const isFirst = (): boolean => leaves.first()?.instance === instance

  const refuse = (intent: Efferent, shown: string, fault: Fault): Doing => {
    const error = Faults.errorOf(fault, intent, shown)
    return hands.say(Faults.answer(error, intent.correlationId, shown, settings.extended))
  }
  const ioError = (intent: Efferent, shown: string, detail: string): Doing => refuse(intent, shown, { _tag: "IoError", detail })
  const shownOf = (intent: Efferent): string => intent.path ?? "."

  // ── whose it is ──

  type Whose = "mine" | "nobody's" | "another's"

  /** What stood in the journal before this leaf did: another's, unless that one is no more, or could leave it to this one in time. */
  const whoseBefore = (path: FsPath.FsPath | undefined, at: number): Whose => {
    const then = path === undefined ? undefined : leaves.ownerOf(path)
    const now = path === undefined ? undefined : survey.leaves.ownerOf(path)
    const inCharge = then ?? leaves.first()
    if (inCharge !== undefined && survey.leaves.isRunning(inCharge.instance)) {
      const isLeft = then === undefined && now?.instance === instance && survey.at - at < settings.grace / 2
      return isLeft ? "mine" : "another's"
    }
    if ((now ?? survey.leaves.first())?.instance !== instance) return "another's"
    return now === undefined && path !== undefined ? "nobody's" : "mine"
  }
  const whose = (path: FsPath.FsPath | undefined, recorded: Recorded<Entry>): Whose => {
    if (recorded.position < me.position) return whoseBefore(path, recorded.at)
    const owner = path === undefined ? undefined : leaves.ownerOf(path)
    if (owner !== undefined) return owner.instance === instance ? "mine" : "another's"
    return path !== undefined ? "nobody's" : isFirst() ? "mine" : "another's"
  }

  // ── what nobody serves ──

  const notServed = ({ intent }: Unclaimed): Doing => {
    const path = shownOf(intent)
    const error = Faults.errorOf({ _tag: "NotFound" }, intent, path)
    return hands.say(
      new FileFault({
        correlationId: intent.correlationId,
        faultKind: "NotFound",
        path,
        message: `${error.operation} ${JSON.stringify(path)}: no leaf serves this path`,
        ...(settings.extended ? { error } : {})
      })
    )
  }
  const due = (): Doing => {
    if (!isFirst()) return undefined
    const all = [...unclaimed.values()].filter(({ isDue }) => isDue)
    for (const { intent } of all) unclaimed.delete(intent.correlationId)
    return all.length === 0 ? undefined : Effect.forEach(all, (one) => notServed(one) ?? Effect.void, { discard: true })
  }
  const graces = Deadlines.make<Unclaimed>(clock, settings.grace, (one) => {
    one.isDue = true
    return postpone(due)
  })
  const wait = (intent: Efferent, path: FsPath.FsPath, at: number): void => {
    const { correlationId } = intent
    const one = { intent, path, at, isDue: false }
    unclaimed.set(correlationId, one)
    graces.renew(one)
  }
  const forget = (correlationId: string): void => {
    const one = unclaimed.get(correlationId)
    if (one !== undefined) graces.drop(one)
    unclaimed.delete(correlationId)
    foreign.delete(correlationId)
  }

  /** Decides when all that the journal holds now has been seen. */
  const postpone = (decide: () => Doing): Effect.Effect<void> =>
    Effect.matchEffect(journal.last, {
      onFailure: () => Effect.void,
      onSuccess: (until) => {
        if (until <= position) return decide() ?? Effect.void
        postponed.push({ until, decide })
        return Effect.void
      }
    })

  // ── in hand ──

  const leftBy = (intent: Efferent, path: FsPath.FsPath, recorded: Pick<Recorded<Entry>, "position">): Left | undefined => {
    if (recorded.position >= me.position || !isMutation(intent)) return undefined
    const then = leaves.ownerOf(path)?.instance
    // One that came later may have been told to resume all.
    const mayHave = (leaf: Registry.Announced): boolean =>
      leaf.instance === then || (leaf.position > recorded.position && FsPath.isWithin(leaf.prefix, path))
    return {
      started: survey.started.get(intent.correlationId),
      isUncertain: [...survey.silent.values()].some(mayHave)
    }
  }
  const take = (
    intent: Efferent,
    shown: string,
    path: FsPath.FsPath,
    to: FsPath.FsPath | undefined,
    at: number,
    left: Left | undefined,
    transfer?: Transfer
  ): Doing => {
    const work: Work = { intent, shown, path, to, position: at, transfer, left, isAnswered: false, hasBegun: false }
    hands.take(
      work,
      Effect.suspend(() => perform(self, work))
    )
    return hands.room()
  }

  const onIntent = (intent: Intent, recorded: Recorded<Entry>): Doing => {
    const { correlationId, path: shown } = intent
    if (hands.holds(correlationId) || transfers.has(correlationId)) return inFlight(intent, shown)
    if (answered.has(correlationId)) return undefined
    if (unclaimed.has(correlationId)) return isFirst() ? inFlight(intent, shown) : undefined
    const parsed = FsPath.parse(shown, "branch")
    const path = typeof parsed === "string" ? parsed : undefined
    const mine = whose(path, recorded)
    if (mine === "another's") return undefined
    if (mine === "nobody's") return void wait(without(intent), path!, recorded.at)
    const fault = refusal(settings, intent)
    if (fault !== undefined) return refuse(intent, shown, fault)
    if (typeof parsed !== "string") return refuse(intent, shown, parsed)
    const refused = refusedPath(settings, parsed)
    if (refused !== undefined) return refuse(intent, shown, refused)
    const to = intent._tag === "FileMove" ? FsPath.parse(intent.to, "branch") : undefined
    if (typeof to === "object") return refuse(intent, intent._tag === "FileMove" ? intent.to : shown, to)
    if (to !== undefined) {
      const refused = refusedPath(settings, to) ?? elsewhere(to, recorded)
      if (refused !== undefined) return refuse(intent, shown, refused)
    }
    return take(intent, shown, parsed, to, recorded.position, leftBy(intent, parsed, recorded))
  }
  const inFlight = (intent: Efferent, shown: string): Doing =>
    ioError(intent, shown, "another entry with this correlation id is still being carried out")
  const elsewhere = (to: FsPath.FsPath, { position }: Recorded<Entry>): Fault | undefined =>
    (position < me.position ? survey.leaves : leaves).ownerOf(to)?.instance === instance
      ? undefined
      : { _tag: "IoError", code: "EXDEV", detail: "another leaf serves the path that it is to be moved to" }

  // ── in parts ──

  const idles: Deadlines.Deadlines<Transfer> = Deadlines.make<Transfer>(clock, settings.idle, (transfer) =>
    postpone(() => {
      const { correlationId } = transfer.first
      if (transfers.get(correlationId) !== transfer || idles.has(transfer)) return undefined
      return drop(transfer, { _tag: "Timeout", detail: `its next part did not come within ${settings.idle} ms` })
    })
  )
  const drop = (transfer: Transfer, fault: Fault): Doing => {
    transfers.delete(transfer.first.correlationId)
    idles.drop(transfer)
    return refuse(transfer.first, shownOf(transfer.first), fault)
  }
  const give = (correlationId: string): Doing => {
    const transfer = transfers.get(correlationId)
    if (transfer !== undefined) idles.drop(transfer)
    transfers.delete(correlationId)
    return void forget(correlationId)
  }
  const begin = (chunk: FileWriteChunk, recorded: Recorded<Entry>): Doing => {
    const shown = chunk.path
    const parsed = shown === undefined ? noPath : FsPath.parse(shown, "branch")
    const path = typeof parsed === "string" ? parsed : undefined
    const mine = whose(path, recorded)
    if (mine !== "mine") {
      foreign.add(chunk.correlationId)
      return mine === "nobody's" ? void wait(firstOf(chunk), path!, recorded.at) : undefined
    }
    const fault = refusal(settings, chunk) ?? (path === undefined ? (parsed as Fault) : refusedPath(settings, path))
    if (fault !== undefined) return refuse(chunk, shownOf(chunk), fault)
    const transfer: Transfer = { first: firstOf(chunk), path: path!, position: recorded.position, next: 0 }
    transfers.set(chunk.correlationId, transfer)
    return add(transfer, chunk, recorded)
  }
  const add = (transfer: Transfer, chunk: FileWriteChunk, recorded: Recorded<Entry>): Doing => {
    const { first, path } = transfer
    if (chunk.offset !== transfer.next) {
      return drop(transfer, {
        _tag: "IoError",
        detail: `a part at offset ${chunk.offset} came where ${transfer.next} was next`
      })
    }
    if (chunk.path !== undefined && chunk.path !== first.path) {
      return drop(transfer, { _tag: "IoError", detail: "a later part names another path than the first" })
    }
    transfer.next += chunk.data instanceof Uint8Array ? chunk.data.length : chunk.data.size
    const { maxFileSize } = settings.limits
    if (transfer.next > maxFileSize) {
      const allowed = Math.floor(maxFileSize)
      return drop(transfer, { _tag: "LimitExceeded", limit: "maxFileSize", allowed, actual: transfer.next })
    }
    if (!chunk.isFinal) return void (recorded.position > me.position && idles.renew(transfer))
    transfers.delete(first.correlationId)
    idles.drop(transfer)
    return take(first, shownOf(first), path, undefined, recorded.position, leftBy(first, path, recorded), transfer)
  }
  const onChunk = (chunk: FileWriteChunk, recorded: Recorded<Entry>): Doing => {
    const { correlationId } = chunk
    if (chunk.discard === true) return give(correlationId)
    const transfer = transfers.get(correlationId)
    if (transfer !== undefined) return add(transfer, chunk, recorded)
    if (hands.holds(correlationId)) return inFlight(chunk, shownOf(chunk))
    if (answered.has(correlationId) || foreign.has(correlationId)) return undefined
    if (chunk.offset === 0) return begin(chunk, recorded)
    return whose(undefined, recorded) === "mine"
      ? ioError(chunk, shownOf(chunk), `a part at offset ${chunk.offset} came where none was before`)
      : undefined
  }
  /** What was not complete when this leaf began goes on only where changes do. */
  const leaveBehind = (): Doing => {
    const all = [...transfers.values()]
    if (settings.resumesChanges) {
      all.forEach(idles.renew)
      return undefined
    }
    const detail = "not executed: it was not complete when the leaf that had it ended"
    return all.length === 0
      ? undefined
      : Effect.forEach(all, (transfer) => drop(transfer, { _tag: "IoError", detail }) ?? Effect.void, { discard: true })
  }

  // ── other leaves ──

  const onDaemon = (changed: DaemonChanged, recorded: Recorded<Entry>): Doing | "superseded" => {
    const announced = leaves.see(changed, recorded.position)
    if (recorded.position === me.position) return leaveBehind()
    if (announced !== undefined && recorded.position > me.position) {
      if (Registry.supersedes(announced, me)) return "superseded"
      // The newcomer takes what it could come in time for.
      for (const [correlationId, { at, path }] of unclaimed) {
        if (FsPath.isWithin(announced.prefix, path) && recorded.at - at < settings.grace / 2) forget(correlationId)
      }
    }
    return due()
  }

  return {
    see: (recorded) => {
      position = recorded.position
      const { entry } = recorded
      if (entry._tag === "DaemonChanged") return onDaemon(entry, recorded)
      if (isEfferent(entry)) return entry._tag === "FileWriteChunk" ? onChunk(entry, recorded) : onIntent(entry, recorded)
      if (isTerminal(entry)) {
        answered.add(entry.correlationId)
        forget(entry.correlationId)
      }
      return undefined
    },
    seen: () => {
      if (postponed.length === 0) return undefined
      const ready = postponed.filter(({ until }) => until <= position)
      postponed = postponed.filter(({ until }) => until > position)
      return Effect.forEach(ready, ({ decide }) => decide() ?? Effect.void, { discard: true })
    },
    watch: Effect.raceFirst(graces.run, idles.run)
  }
}
