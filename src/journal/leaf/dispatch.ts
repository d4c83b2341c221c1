/**
 * Processes the journal entry by entry. Takes the unanswered requests that this leaf is in charge of, including those from
 * before its start. Counts only the bytes of chunked writes, because their content stays in the journal.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { isBytes } from "../../model/bytes.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import * as Instance from "../daemon/instance.ts"
import { DaemonChanged } from "../entries/daemon.ts"
import { type Efferent, FileFault, FileWriteChunk, isEfferent, isMutation, isTerminal } from "../FileSystemEntry.ts"
import type { Entry, Recorded } from "../Journal.ts"
import * as Charge from "./charge.ts"
import * as Deadlines from "./deadlines.ts"
import * as Faults from "./faults.ts"
import type { Hands } from "./hands.ts"
import type { Left, Serving, Sharing, Transfer, Work } from "./model.ts"
import { perform, refusal, refusedPath } from "./operations.ts"
import * as Registry from "./registry.ts"
import type { Survey } from "./survey.ts"
import * as Views from "./views.ts"

type Doing = Effect.Effect<void> | undefined

type Intent = Exclude<Efferent, FileWriteChunk>

const noPath: Fault = { _tag: "InvalidPath", detail: "the first part of a write must name one" }

const nothing = new Uint8Array(0)

/**
 * The shortest interval in milliseconds between checks whether the leaf in charge of an open request is dead. A longer grace lengthens it.
 */
const leastPulse = 1_000

const firstOf = (chunk: FileWriteChunk): FileWriteChunk =>
  new FileWriteChunk({ ...chunk, data: nothing }, { disableChecks: true })

export interface Dispatch {
  /** Processes an entry. Returns an effect to run before the next entry, or "superseded" if this leaf must end. */
  readonly see: (recorded: Recorded<Entry>) => Doing | "superseded"
  /** Returns the decisions that had to wait until all entries up to now were processed. */
  readonly seen: () => Doing
  /** Enforces the deadlines of open requests. Never ends. */
  readonly watch: Effect.Effect<never>
}

export const make = (self: Serving, hands: Hands, survey: Survey, me: Registry.Announced, clock: Clock.Clock): Dispatch => {
  const { instance, journal, settings } = self
  const { answered } = survey
  const leaves = survey.from.leaves.copy()
  const views = Views.make(self)
  const sharing: Sharing = {
    owns: (path) => leaves.ownerOf(path)?.instance === instance,
    isPinned: leaves.isPinned
  }
  const open = new Map<string, Charge.Open>()
  /** Leaves that do not announce changes and have not ended normally: their requests may have been carried out. */
  const silent = new Map(survey.silent)
  const reported = new Set<string>()
  let position = 0
  let postponed: Array<{ readonly until: number; readonly decide: () => Doing }> = []

  const refuse = (intent: Efferent, shown: string, fault: Fault): Doing => {
    const error = Faults.errorOf(fault, intent, shown)
    return hands.say(Faults.answer(error, intent.correlationId, shown, settings.extended))
  }
  const shownOf = (intent: Efferent): string => intent.path ?? "."
  const isMine = (request: Charge.Open): boolean => request.charge?.instance === instance
  const isOpen = (request: Charge.Open): boolean => open.get(request.intent.correlationId) === request

  const all = (requests: ReadonlyArray<Charge.Open>, what: (request: Charge.Open) => Doing): Doing =>
    requests.length === 0
      ? undefined
      : Effect.forEach(requests, (request) => Effect.suspend(() => what(request) ?? Effect.void), { discard: true })

  /** Makes a decision after all entries that the journal holds now have been processed. */
  const postpone = (decide: () => Doing): Effect.Effect<void> =>
    Effect.matchEffect(journal.last, {
      onFailure: () => Effect.void,
      onSuccess: (until) => {
        if (until <= position) return decide() ?? Effect.void
        postponed.push({ until, decide })
        return Effect.void
      }
    })

  const graces: Deadlines.Deadlines<Charge.Open> = Deadlines.make(clock, me.grace, (request) => {
    request.isDue = true
    return due(request)
  })
  const due = (request: Charge.Open): Effect.Effect<void> =>
    postpone(() => (isOpen(request) && isMine(request) && request.isDue ? notServed(request) : undefined))
  const pulse = Math.max(me.grace, leastPulse)
  const pulses: Deadlines.Deadlines<Charge.Open> = Deadlines.make(clock, pulse, (request) =>
    postpone(() => {
      if (!isOpen(request) || pulses.has(request)) return undefined
      if (isMine(request)) {
        request.heldFor += pulse
        return onMine(request)
      }
      pulses.renew(request)
      return report(request.charge)
    })
  )
  const idles: Deadlines.Deadlines<Charge.Open> = Deadlines.make(clock, settings.idle, (request) =>
    postpone(() =>
      isOpen(request) && isMine(request) && !idles.has(request)
        ? drop(request, { _tag: "Timeout", detail: `its next part did not come within ${settings.idle} ms` })
        : undefined
    )
  )

  const forget = (correlationId: string): void => {
    const request = open.get(correlationId)
    if (request === undefined) return
    for (const deadlines of [graces, pulses, idles]) deadlines.drop(request)
    open.delete(correlationId)
  }
  const drop = (request: Charge.Open, fault: Fault): Doing => {
    forget(request.intent.correlationId)
    return refuse(request.intent, request.shown, fault)
  }

  /** Appends the end of another leaf if it is known to be dead, so that its requests pass on. */
  const report = (leaf: Registry.Announced | undefined): Doing => {
    if (leaf === undefined || reported.has(leaf.instance) || Instance.isOver(leaf.instance) !== true) return undefined
    const { daemon, extended, prefix } = leaf
    const ended = new DaemonChanged({
      daemon,
      instance: leaf.instance,
      status: "Completed",
      failure: "it ended without saying so",
      prefix,
      extended
    })
    return Effect.matchEffect(journal.append(ended), {
      onFailure: () => Effect.void,
      onSuccess: () => Effect.sync(() => void reported.add(leaf.instance))
    })
  }

  /** Tests whether a superseded leaf may still be carrying out the request. The wait is limited to the same time as in the survey. */
  const isHeldByAnother = ({ heldFor, tried }: Charge.Open): boolean =>
    heldFor < 2 * settings.timeout &&
    tried.some(
      (leaf) =>
        leaf.instance !== instance &&
        leaves.unfinished.has(leaf.instance) &&
        // The survey has already waited for the leaves that this leaf supersedes.
        !(leaf.position < me.position && Registry.supersedes(me, leaf)) &&
        Instance.isOver(leaf.instance) !== true
    )

  const onMine = (request: Charge.Open): Doing => {
    if (!request.serves) return request.isDue ? due(request) : undefined
    if (isHeldByAnother(request)) return void pulses.renew(request)
    return act(request)
  }
  const onCharge = (request: Charge.Open): Doing => {
    if (request.serves) {
      graces.drop(request)
      request.isDue = false
    } else if (!request.isDue && !graces.has(request)) graces.renew(request)
    if (isMine(request)) {
      pulses.drop(request)
      return onMine(request)
    }
    idles.drop(request)
    return void pulses.renew(request)
  }

  const mayHaveBegun = ({ intent, started, tried }: Charge.Open): boolean =>
    isMutation(intent) && (started !== undefined || tried.some((leaf) => silent.has(leaf.instance)))

  const notServed = (request: Charge.Open): Doing => {
    const { intent, shown } = request
    forget(intent.correlationId)
    const doubt = mayHaveBegun(request) ? "; the leaf that had it has ended without an answer, and may have carried it out" : ""
    const error = Faults.errorOf({ _tag: "Unavailable", detail: `no leaf serves this path${doubt}` }, intent, shown)
    // Includes the complete error even if the leaf is not extended, because the eleven kinds have no Unavailable.
    return hands.say(
      new FileFault({ correlationId: intent.correlationId, faultKind: "IoError", path: shown, message: error.message, error })
    )
  }

  const isLeft = ({ position, tried }: Charge.Open): boolean =>
    position < me.position || tried.some((leaf) => leaf.instance !== instance)
  const leftBy = (request: Charge.Open): Left | undefined => {
    const { intent, started, tried } = request
    if (!isLeft(request) || !isMutation(intent)) return undefined
    const begunBy = started?.instance
    // A leaf over other files cannot compare the recorded state.
    const isElsewhere = tried.some((leaf) => leaf.instance === begunBy && !Registry.supersedes(me, leaf))
    return isElsewhere
      ? { started: undefined, isUncertain: true }
      : { started, isUncertain: tried.some((leaf) => silent.has(leaf.instance)) }
  }
  const take = (request: Charge.Open, to: FsPath.FsPath | undefined): Doing => {
    const { intent, shown, transfer } = request
    const left = leftBy(request)
    forget(intent.correlationId)
    const work: Work = {
      intent,
      shown,
      path: request.path!,
      to,
      position: request.wholeAt ?? request.position,
      transfer,
      mounts: leaves.namesIn(request.path!),
      isOwn: sharing.owns(request.path!),
      sharing,
      left,
      isAnswered: false,
      hasBegun: false
    }
    hands.take(
      work,
      Effect.suspend(() => perform(views.of(intent), work))
    )
    return hands.room()
  }

  /** Carries out a request, or answers why it cannot. A chunked write runs once it is complete. */
  const act = (request: Charge.Open): Doing => {
    const { intent, path, transfer } = request
    const fault = refusal(settings, intent) ?? request.fault ?? (path === undefined ? noPath : refusedPath(settings, path))
    if (fault !== undefined) return drop(request, fault)
    if (transfer !== undefined) {
      const { maxFileSize } = settings.limits
      if (transfer.next > maxFileSize) {
        const allowed = Math.floor(maxFileSize)
        return drop(request, { _tag: "LimitExceeded", limit: "maxFileSize", allowed, actual: transfer.next })
      }
      if (request.wholeAt === undefined) {
        // A write that was incomplete when this leaf got it continues only if the leaf resumes changes.
        if (!isLeft(request) || settings.resumesChanges) return void idles.renew(request)
        return drop(request, {
          _tag: "IoError",
          detail: "not executed: it was not complete when the leaf that had it ended"
        })
      }
    }
    const to = intent._tag === "FileMove" ? FsPath.parse(intent.to, "branch") : undefined
    if (typeof to === "object") {
      forget(intent.correlationId)
      return refuse(intent, intent._tag === "FileMove" ? intent.to : request.shown, to)
    }
    const goes = intent._tag === "FileDelete" || intent._tag === "FileMove"
    if (goes && leaves.isPinned(path!)) return drop(request, { _tag: "AccessDenied", why: "root" })
    const refused = to === undefined ? undefined : (refusedPath(settings, to) ?? elsewhere(to))
    return refused === undefined ? take(request, to) : drop(request, refused)
  }
  const elsewhere = (to: FsPath.FsPath): Fault | undefined =>
    leaves.ownerOf(to)?.instance === instance && !leaves.isPinned(to)
      ? undefined
      : { _tag: "IoError", code: "EXDEV", detail: "another leaf serves the path that it is to be moved to" }

  const isAfterStart = (): boolean => position > me.position

  const add = (intent: Efferent, at: number, fault?: Fault): Charge.Open => {
    const isParts = intent._tag === "FileWriteChunk"
    const parsed = intent.path === undefined ? noPath : FsPath.parse(intent.path, "branch")
    const path = typeof parsed === "string" && fault === undefined ? parsed : undefined
    const request: Charge.Open = {
      intent,
      shown: shownOf(intent),
      path,
      position,
      transfer: isParts && path !== undefined ? { first: intent, path, position, next: 0 } : undefined,
      wholeAt: isParts ? undefined : position,
      fault: fault ?? (typeof parsed === "string" ? undefined : parsed),
      started: survey.started.get(intent.correlationId),
      charge: undefined,
      serves: false,
      since: at,
      isDue: false,
      heldFor: 0,
      tried: []
    }
    open.set(intent.correlationId, request)
    Charge.assign(request, leaves, at)
    return request
  }
  const inFlight = (intent: Efferent): Doing =>
    refuse(intent, shownOf(intent), {
      _tag: "IoError",
      detail: "another entry with this correlation id is still being carried out"
    })

  const onIntent = (intent: Intent, { at }: Recorded<Entry>): Doing => {
    const { correlationId } = intent
    if (hands.holds(correlationId)) return inFlight(intent)
    if (answered.has(correlationId)) return undefined
    const held = open.get(correlationId)
    if (held !== undefined) return isAfterStart() && isMine(held) ? inFlight(intent) : undefined
    const request = add(intent, at)
    return isAfterStart() ? onCharge(request) : undefined
  }

  const append = (request: Charge.Open, transfer: Transfer, chunk: FileWriteChunk): void => {
    const { first, next } = transfer
    if (request.fault !== undefined || request.wholeAt !== undefined) return
    if (chunk.offset !== next) {
      request.fault = { _tag: "IoError", detail: `a part at offset ${chunk.offset} came where ${next} was next` }
    } else if (chunk.path !== undefined && chunk.path !== first.path) {
      request.fault = { _tag: "IoError", detail: "a later part names another path than the first" }
    } else {
      transfer.next += isBytes(chunk.data) ? chunk.data.length : chunk.data.size
      if (chunk.isFinal) request.wholeAt = position
    }
  }
  const onChunk = (chunk: FileWriteChunk, { at }: Recorded<Entry>): Doing => {
    const { correlationId } = chunk
    if (chunk.discard === true) return void forget(correlationId)
    const held = open.get(correlationId)
    if (held === undefined) {
      if (hands.holds(correlationId)) return inFlight(chunk)
      if (answered.has(correlationId)) return undefined
    }
    const detail = `a part at offset ${chunk.offset} came where none was before`
    const request = held ?? add(firstOf(chunk), at, chunk.offset === 0 ? undefined : { _tag: "IoError", detail })
    if (request.transfer === undefined) {
      if (held !== undefined) return isAfterStart() && isMine(held) ? inFlight(chunk) : undefined
    } else append(request, request.transfer, chunk)
    if (!isAfterStart()) return undefined
    if (held === undefined) return onCharge(request)
    return isMine(request) && request.serves && !pulses.has(request) ? act(request) : undefined
  }

  const inOrder = (requests: ReadonlyArray<Charge.Open>): ReadonlyArray<Charge.Open> =>
    [...requests].sort((one, other) => (one.wholeAt ?? one.position) - (other.wholeAt ?? other.position))

  const onDaemon = (changed: DaemonChanged, recorded: Recorded<Entry>): Doing | "superseded" => {
    const { at } = recorded
    const announced = leaves.see(changed, recorded.position)
    let moved: Array<Charge.Open>
    if (announced !== undefined) {
      moved = [...open.values()].filter((request) => Charge.pass(request, announced, leaves, at))
    } else {
      if (changed.status === "Running") return undefined
      moved = [...open.values()].filter(({ charge }) => charge?.instance === changed.instance)
      for (const request of moved) Charge.assign(request, leaves, at)
    }
    if (recorded.position < me.position) return undefined
    if (recorded.position === me.position) return all(inOrder([...open.values()]), onCharge)
    if (announced === undefined) {
      if (changed.instance === instance) return "superseded"
      if (changed.failure === undefined) silent.delete(changed.instance)
    } else {
      if (Registry.supersedes(announced, me)) return "superseded"
      if (!announced.extended) silent.set(announced.instance, announced)
    }
    // Requests that waited for a superseded leaf may be free now.
    const freed = [...open.values()].filter(
      (request) => isMine(request) && pulses.has(request) && !moved.includes(request) && !isHeldByAnother(request)
    )
    return all(inOrder([...moved, ...freed]), onCharge)
  }

  return {
    see: (recorded) => {
      position = recorded.position
      const { entry } = recorded
      if (entry._tag === "DaemonChanged") return onDaemon(entry, recorded)
      if (isEfferent(entry)) return entry._tag === "FileWriteChunk" ? onChunk(entry, recorded) : onIntent(entry, recorded)
      if (isTerminal(entry)) {
        answered.add(entry.correlationId)
        const request = open.get(entry.correlationId)
        // Keep a chunked write open if this leaf's fault was about another entry with the same id.
        const goesOn = request?.transfer !== undefined && request.serves && isMine(request) && isAfterStart()
        if (!goesOn) forget(entry.correlationId)
      } else if (entry._tag === "FileStarted") {
        const request = open.get(entry.correlationId)
        if (request !== undefined) request.started = entry
      }
      return undefined
    },
    seen: () => {
      if (postponed.length === 0) return undefined
      const ready = postponed.filter(({ until }) => until <= position)
      postponed = postponed.filter(({ until }) => until > position)
      return Effect.forEach(ready, ({ decide }) => decide() ?? Effect.void, { discard: true })
    },
    watch: Effect.raceAllFirst([graces.run, idles.run, pulses.run])
  }
}
