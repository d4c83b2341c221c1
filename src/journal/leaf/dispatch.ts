/**
 * Processes the journal entry by entry, and takes the unanswered requests of which this leaf is in charge, even from before
 * its start. For a chunked write, only the number of bytes is kept in memory, because the content stays in the journal.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import * as Instance from "../lifecycle.ts"
import { DaemonChanged } from "../entries/status.ts"
import { type Efferent, FileFault, FileWriteChunk, isEfferent, isMutation, isTerminal } from "../FileSystemEntry.ts"
import type { Entry, Recorded } from "../model.ts"
import { type Deadlines, type Executor, makeDeadlines } from "./executor.ts"
import { faultAnswer, sizeOf } from "../entries/values.ts"
import * as Faults from "./model.ts"
import type { EarlierWork, LeafContext, PathOwnership, Transfer, Work } from "./model.ts"
import * as Views from "./operations.ts"
import { pathFault, performRequest, settingsFault } from "./operations.ts"
import * as Registry from "./registry.ts"
import type { Survey } from "./survey.ts"

type Action = Effect.Effect<void> | undefined

type Intent = Exclude<Efferent, FileWriteChunk>

const missingPathFault: Fault = { _tag: "InvalidPath", detail: "the first FileWriteChunk of the write has no path" }

const noBytes = new Uint8Array(0)

/** The shortest interval between two checks whether the leaf in charge of a request is dead, in milliseconds. */
const minPulseMillis = 1_000

const withoutData = (chunk: FileWriteChunk): FileWriteChunk =>
  new FileWriteChunk({ ...chunk, data: noBytes }, { disableChecks: true })

export interface Dispatch {
  /** Processes an entry. Returns an effect to run before the next entry, or "superseded" if this leaf must end. */
  readonly processEntry: (recorded: Recorded<Entry>) => Action | "superseded"
  readonly runPostponed: () => Action
  readonly watch: Effect.Effect<never>
}

export const make = (
  self: LeafContext,
  executor: Executor,
  survey: Survey,
  me: Registry.AnnouncedLeaf,
  clock: Clock.Clock
): Dispatch => {
  const { instance, journal, settings } = self
  const { answered } = survey
  const leaves = survey.checkpoint.leaves.copy()
  const views = Views.make(self)
  const sharing: PathOwnership = {
    owns: (path) => leaves.ownerOf(path)?.instance === instance,
    isPrefixDirectory: leaves.isPrefixDirectory
  }
  const open = new Map<string, Registry.OpenRequest>()
  /**
   * The leaves that append no FileStarted before a change, and have not ended normally. Such a leaf may have carried out
   * unanswered requests.
   */
  const silent = new Map(survey.silent)
  const reported = new Set<string>()
  let position = 0
  let postponed: Array<{ readonly until: number; readonly decide: () => Action }> = []

  const refuse = (intent: Efferent, shown: string, fault: Fault): Action => {
    const error = Faults.errorOf(fault, intent, shown)
    return executor.answerUnstarted(faultAnswer(error, intent.correlationId, shown, settings.extended))
  }
  const shownOf = (intent: Efferent): string => intent.path ?? "."
  const isMine = (request: Registry.OpenRequest): boolean => request.leafInCharge?.instance === instance
  const isOpen = (request: Registry.OpenRequest): boolean => open.get(request.intent.correlationId) === request

  const forEachRequest = (
    requests: ReadonlyArray<Registry.OpenRequest>,
    action: (request: Registry.OpenRequest) => Action
  ): Action =>
    requests.length === 0
      ? undefined
      : Effect.forEach(requests, (request) => Effect.suspend(() => action(request) ?? Effect.void), { discard: true })

  /** Runs `decide` after all current entries of the journal have been processed. */
  const postpone = (decide: () => Action): Effect.Effect<void> =>
    Effect.matchEffect(journal.last, {
      onFailure: () => Effect.void,
      onSuccess: (until) => {
        if (until <= position) return decide() ?? Effect.void
        postponed.push({ until, decide })
        return Effect.void
      }
    })

  const graceDeadlines: Deadlines<Registry.OpenRequest> = makeDeadlines(clock, me.grace, (request) => {
    request.isDue = true
    return decideWhenDue(request)
  })
  const decideWhenDue = (request: Registry.OpenRequest): Effect.Effect<void> =>
    postpone(() => (isOpen(request) && isMine(request) && request.isDue ? answerUnserved(request) : undefined))
  const pulseMillis = Math.max(me.grace, minPulseMillis)
  const pulseDeadlines: Deadlines<Registry.OpenRequest> = makeDeadlines(clock, pulseMillis, (request) =>
    postpone(() => {
      if (!isOpen(request) || pulseDeadlines.has(request)) return undefined
      if (isMine(request)) {
        request.waitedMillis += pulseMillis
        return actOnOwn(request)
      }
      pulseDeadlines.renew(request)
      return reportDead(request.leafInCharge)
    })
  )
  const idleDeadlines: Deadlines<Registry.OpenRequest> = makeDeadlines(clock, settings.idleMillis, (request) =>
    postpone(() =>
      isOpen(request) && isMine(request) && !idleDeadlines.has(request)
        ? dropWith(request, {
            _tag: "Timeout",
            detail: `the next FileWriteChunk did not arrive within ${settings.idleMillis} ms`
          })
        : undefined
    )
  )

  const closeRequest = (correlationId: string): void => {
    const request = open.get(correlationId)
    if (request === undefined) return
    for (const deadlines of [graceDeadlines, pulseDeadlines, idleDeadlines]) deadlines.drop(request)
    open.delete(correlationId)
  }
  const dropWith = (request: Registry.OpenRequest, fault: Fault): Action => {
    closeRequest(request.intent.correlationId)
    return refuse(request.intent, request.givenPath, fault)
  }

  /** Reports a leaf as completed if its run is known to have ended, so that other leaves take its requests. */
  const reportDead = (leaf: Registry.AnnouncedLeaf | undefined): Action => {
    if (leaf === undefined || reported.has(leaf.instance) || Instance.hasEnded(leaf.instance) !== true) return undefined
    const { daemon, extended, prefix } = leaf
    const endEntry = new DaemonChanged({
      daemon,
      instance: leaf.instance,
      status: "Completed",
      failure: "the process of the leaf has ended",
      prefix,
      extended
    })
    return Effect.matchEffect(journal.append(endEntry), {
      onFailure: () => Effect.void,
      onSuccess: () => Effect.sync(() => void reported.add(leaf.instance))
    })
  }

  /**
   * Tests whether another leaf may still be carrying out the request. Returns false after twice the timeout, because the other
   * leaf then counts as ended.
   */
  const mayRunElsewhere = ({ waitedMillis: heldFor, triedLeaves: tried }: Registry.OpenRequest): boolean =>
    heldFor < 2 * settings.timeoutMillis &&
    tried.some(
      (leaf) =>
        leaf.instance !== instance &&
        leaves.unfinished.has(leaf.instance) &&
        // Skip the leaves that this leaf replaces, because this leaf has waited for their end before its start.
        !(leaf.position < me.position && Registry.supersedes(me, leaf)) &&
        Instance.hasEnded(leaf.instance) !== true
    )

  const actOnOwn = (request: Registry.OpenRequest): Action => {
    if (!request.isServing) return request.isDue ? decideWhenDue(request) : undefined
    if (mayRunElsewhere(request)) return void pulseDeadlines.renew(request)
    return runOrRefuse(request)
  }
  const onAssigned = (request: Registry.OpenRequest): Action => {
    if (request.isServing) {
      graceDeadlines.drop(request)
      request.isDue = false
    } else if (!request.isDue && !graceDeadlines.has(request)) graceDeadlines.renew(request)
    if (isMine(request)) {
      pulseDeadlines.drop(request)
      return actOnOwn(request)
    }
    idleDeadlines.drop(request)
    return void pulseDeadlines.renew(request)
  }

  const mayHaveBegun = ({ intent, started, triedLeaves: tried }: Registry.OpenRequest): boolean =>
    isMutation(intent) && (started !== undefined || tried.some((leaf) => silent.has(leaf.instance)))

  const answerUnserved = (request: Registry.OpenRequest): Action => {
    const { intent, givenPath: shown } = request
    closeRequest(intent.correlationId)
    const doubt = mayHaveBegun(request) ? "; the previous leaf ended without an answer and may have made the change" : ""
    const error = Faults.errorOf({ _tag: "Unavailable", detail: `no leaf serves this path${doubt}` }, intent, shown)
    // Add the complete error even if the leaf is not extended, because FaultKind has no Unavailable.
    return executor.answerUnstarted(
      new FileFault({ correlationId: intent.correlationId, faultKind: "IoError", path: shown, message: error.message, error })
    )
  }

  const hadEarlierLeaf = ({ position, triedLeaves: tried }: Registry.OpenRequest): boolean =>
    position < me.position || tried.some((leaf) => leaf.instance !== instance)
  const earlierWorkOn = (request: Registry.OpenRequest): EarlierWork | undefined => {
    const { intent, started, triedLeaves: tried } = request
    if (!hadEarlierLeaf(request) || !isMutation(intent)) return undefined
    const begunBy = started?.instance
    // If this leaf serves other files than the leaf that began the change, it cannot compare its files with the recorded
    // state.
    const isOverOtherFiles = tried.some((leaf) => leaf.instance === begunBy && !Registry.supersedes(me, leaf))
    return isOverOtherFiles
      ? { started: undefined, isUncertain: true }
      : { started, isUncertain: tried.some((leaf) => silent.has(leaf.instance)) }
  }
  const take = (request: Registry.OpenRequest, to: FsPath.FsPath | undefined): Action => {
    const { intent, givenPath: shown, transfer } = request
    const left = earlierWorkOn(request)
    closeRequest(intent.correlationId)
    const work: Work = {
      intent,
      givenPath: shown,
      path: request.path!,
      to,
      position: request.completeAt ?? request.position,
      transfer,
      mounts: leaves.prefixNamesIn(request.path!),
      isOwn: sharing.owns(request.path!),
      ownership: sharing,
      earlierWork: left,
      isAnswered: false,
      hasBegun: false
    }
    executor.take(
      work,
      Effect.suspend(() => performRequest(views.viewFor(intent), work))
    )
    return executor.waitForRoom()
  }

  const runOrRefuse = (request: Registry.OpenRequest): Action => {
    const { intent, path, transfer } = request
    const fault =
      settingsFault(settings, intent) ?? request.fault ?? (path === undefined ? missingPathFault : pathFault(settings, path))
    if (fault !== undefined) return dropWith(request, fault)
    if (transfer !== undefined) {
      const { maxFileSize } = settings.limits
      if (transfer.nextOffset > maxFileSize) {
        const allowed = Math.floor(maxFileSize)
        return dropWith(request, { _tag: "LimitExceeded", limit: "maxFileSize", allowed, actual: transfer.nextOffset })
      }
      if (request.completeAt === undefined) {
        // This leaf began the write, or may resume changes of an earlier leaf, so it waits for the next chunk.
        if (!hadEarlierLeaf(request) || settings.resumesChanges) return void idleDeadlines.renew(request)
        return dropWith(request, {
          _tag: "IoError",
          detail:
            "not executed: this leaf does not continue a write from before its start or from another leaf; send the write again"
        })
      }
    }
    const to = intent._tag === "FileMove" ? FsPath.parse(intent.to, "branch") : undefined
    if (typeof to === "object") {
      closeRequest(intent.correlationId)
      return refuse(intent, intent._tag === "FileMove" ? intent.to : request.givenPath, to)
    }
    const removesEntry = intent._tag === "FileDelete" || intent._tag === "FileMove"
    if (removesEntry && leaves.isPrefixDirectory(path!)) return dropWith(request, { _tag: "AccessDenied", why: "root" })
    const targetFault = to === undefined ? undefined : (pathFault(settings, to) ?? targetServedElsewhere(to))
    return targetFault === undefined ? take(request, to) : dropWith(request, targetFault)
  }
  const targetServedElsewhere = (to: FsPath.FsPath): Fault | undefined =>
    leaves.ownerOf(to)?.instance === instance && !leaves.isPrefixDirectory(to)
      ? undefined
      : { _tag: "IoError", code: "EXDEV", detail: "another leaf serves the target of the move" }

  const isAfterStart = (): boolean => position > me.position

  const add = (intent: Efferent, at: number, fault?: Fault): Registry.OpenRequest => {
    const isChunked = intent._tag === "FileWriteChunk"
    const parsed = intent.path === undefined ? missingPathFault : FsPath.parse(intent.path, "branch")
    const path = typeof parsed === "string" && fault === undefined ? parsed : undefined
    const request: Registry.OpenRequest = {
      intent,
      givenPath: shownOf(intent),
      path,
      position,
      transfer: isChunked && path !== undefined ? { first: intent, path, position, nextOffset: 0 } : undefined,
      completeAt: isChunked ? undefined : position,
      fault: fault ?? (typeof parsed === "string" ? undefined : parsed),
      started: survey.started.get(intent.correlationId),
      leafInCharge: undefined,
      isServing: false,
      since: at,
      isDue: false,
      waitedMillis: 0,
      triedLeaves: []
    }
    open.set(intent.correlationId, request)
    Registry.assign(request, leaves, at)
    return request
  }
  const answerDuplicateId = (intent: Efferent): Action =>
    refuse(intent, shownOf(intent), {
      _tag: "IoError",
      detail: "a request with this correlation id is still running; give each request a new id"
    })

  const onIntent = (intent: Intent, { at }: Recorded<Entry>): Action => {
    const { correlationId } = intent
    if (executor.holds(correlationId)) return answerDuplicateId(intent)
    if (answered.has(correlationId)) return undefined
    const existingRequest = open.get(correlationId)
    if (existingRequest !== undefined) return isAfterStart() && isMine(existingRequest) ? answerDuplicateId(intent) : undefined
    const request = add(intent, at)
    return isAfterStart() ? onAssigned(request) : undefined
  }

  const appendChunk = (request: Registry.OpenRequest, transfer: Transfer, chunk: FileWriteChunk): void => {
    const { first, nextOffset: next } = transfer
    if (request.fault !== undefined || request.completeAt !== undefined) return
    if (chunk.offset !== next) {
      request.fault = { _tag: "IoError", detail: `a FileWriteChunk of the write has offset ${chunk.offset} instead of ${next}` }
    } else if (chunk.path !== undefined && chunk.path !== first.path) {
      request.fault = { _tag: "IoError", detail: "a later FileWriteChunk of the write has a different path" }
    } else {
      transfer.nextOffset += sizeOf(chunk.data)
      if (chunk.isFinal) request.completeAt = position
    }
  }
  const onChunk = (chunk: FileWriteChunk, { at }: Recorded<Entry>): Action => {
    const { correlationId } = chunk
    if (chunk.discard === true) return void closeRequest(correlationId)
    const existingRequest = open.get(correlationId)
    if (existingRequest === undefined) {
      if (executor.holds(correlationId)) return answerDuplicateId(chunk)
      if (answered.has(correlationId)) return undefined
    }
    const detail = `the first FileWriteChunk of the write has offset ${chunk.offset} instead of 0`
    const request = existingRequest ?? add(withoutData(chunk), at, chunk.offset === 0 ? undefined : { _tag: "IoError", detail })
    if (request.transfer === undefined) {
      if (existingRequest !== undefined) return isAfterStart() && isMine(existingRequest) ? answerDuplicateId(chunk) : undefined
    } else appendChunk(request, request.transfer, chunk)
    if (!isAfterStart()) return undefined
    if (existingRequest === undefined) return onAssigned(request)
    return isMine(request) && request.isServing && !pulseDeadlines.has(request) ? runOrRefuse(request) : undefined
  }

  const inOrder = (requests: ReadonlyArray<Registry.OpenRequest>): ReadonlyArray<Registry.OpenRequest> =>
    [...requests].sort((one, other) => (one.completeAt ?? one.position) - (other.completeAt ?? other.position))

  const onDaemon = (changed: DaemonChanged, recorded: Recorded<Entry>): Action | "superseded" => {
    const { at } = recorded
    const announced = leaves.observe(changed, recorded.position)
    let reassigned: Array<Registry.OpenRequest>
    if (announced !== undefined) {
      reassigned = [...open.values()].filter((request) => Registry.pass(request, announced, leaves, at))
    } else {
      if (changed.status === "Running") return undefined
      reassigned = [...open.values()].filter(({ leafInCharge: charge }) => charge?.instance === changed.instance)
      for (const request of reassigned) Registry.assign(request, leaves, at)
    }
    if (recorded.position < me.position) return undefined
    if (recorded.position === me.position) return forEachRequest(inOrder([...open.values()]), onAssigned)
    if (announced === undefined) {
      if (changed.instance === instance) return "superseded"
      if (changed.failure === undefined) silent.delete(changed.instance)
    } else {
      if (Registry.supersedes(announced, me)) return "superseded"
      if (!announced.extended) silent.set(announced.instance, announced)
    }
    // Requests that waited for a replaced leaf may now be able to run.
    const freed = [...open.values()].filter(
      (request) => isMine(request) && pulseDeadlines.has(request) && !reassigned.includes(request) && !mayRunElsewhere(request)
    )
    return forEachRequest(inOrder([...reassigned, ...freed]), onAssigned)
  }

  return {
    processEntry: (recorded) => {
      position = recorded.position
      const { entry } = recorded
      if (entry._tag === "DaemonChanged") return onDaemon(entry, recorded)
      if (isEfferent(entry)) return entry._tag === "FileWriteChunk" ? onChunk(entry, recorded) : onIntent(entry, recorded)
      if (isTerminal(entry)) {
        answered.add(entry.correlationId)
        const request = open.get(entry.correlationId)
        // If this leaf is receiving a chunked write, the write stays open, because the answer belongs to a duplicate request
        // with the same id.
        const staysOpen = request?.transfer !== undefined && request.isServing && isMine(request) && isAfterStart()
        if (!staysOpen) closeRequest(entry.correlationId)
      } else if (entry._tag === "FileStarted") {
        const request = open.get(entry.correlationId)
        if (request !== undefined) request.started = entry
      }
      return undefined
    },
    runPostponed: () => {
      if (postponed.length === 0) return undefined
      const ready = postponed.filter(({ until }) => until <= position)
      postponed = postponed.filter(({ until }) => until > position)
      return Effect.forEach(ready, ({ decide }) => decide() ?? Effect.void, { discard: true })
    },
    watch: Effect.raceAllFirst([graceDeadlines.run, idleDeadlines.run, pulseDeadlines.run])
  }
}
