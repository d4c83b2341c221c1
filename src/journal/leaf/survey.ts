/**
 * Reads the journal from the latest checkpoint when a leaf starts. Collects the answered requests, the begun changes, and the
 * leaves. Waits until every replaced leaf has ended, so that no request is carried out twice. A live leaf completes when it
 * reads the announcement of its successor. A killed leaf on this machine is detected. Any other leaf counts as ended after the
 * longest time that a leaf needs to complete.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as FsPath from "../../model/FsPath.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"
import * as Installation from "../../runtime/installation.ts"
import { type FileStarted, isEfferent, isTerminal } from "../FileSystemEntry.ts"
import { Entry, type Recorded, type Scrivener } from "../model.ts"
import { type DaemonChanged, LeafCheckpoint } from "../entries/status.ts"
import type { JournalError } from "../errors.ts"
import * as Instance from "../lifecycle.ts"
import * as AnsweredModule from "./answered.ts"
import type { Answered } from "./answered.ts"
import * as Registry from "./registry.ts"

// Checkpoints shorten the start of a leaf. A running leaf appends an entry with a position up to which every request has an
// answer. The next leaf finds the latest checkpoint and looks for open requests after this position only. A leaf ignores a
// checkpoint that another installation made, or that does not match the journal. Without a valid checkpoint, the leaf reads the
// journal from its beginning.

/**
 * The smallest number of positions between two checkpoints. After twice this number, any extended leaf of the installation
 * appends a checkpoint.
 */
const checkpointInterval = 1_024

const maxSearchedPositions = 65_536

/** The leaves at a position up to which every request has an answer. */
interface CheckpointState {
  readonly position: number
  readonly leaves: Registry.Registry
  /** The leaves that append no FileStarted before a change, and have not ended normally. */
  readonly silent: ReadonlyMap<string, Registry.AnnouncedLeaf>
}

const journalStart: CheckpointState = { position: 0, leaves: Registry.empty(), silent: new Map() }

const encode = Schema.encodeEffect(Schema.toCodecJson(Entry))

const digestAt = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  position: number
): Effect.fn.Return<string | undefined, JournalError> {
  const found = yield* Stream.runHead(journal.stored(position - 1)).pipe(
    Effect.map(Option.getOrUndefined),
    Effect.catchIf(
      ({ reason }) => reason === "compacted",
      () => Effect.undefined
    )
  )
  if (found?.position !== position) return undefined
  return sha256(Buffer.from(JSON.stringify([position, found.at, yield* Effect.orDie(encode(found.entry))])))
})

type CheckpointFields = Pick<LeafCheckpoint, "through" | "digest" | "leaves">

const authenticatedText = ({ digest, leaves, through }: CheckpointFields): string =>
  `journal checkpoint ${JSON.stringify([
    through,
    digest,
    leaves.map(({ daemon, instance, prefix, position, extended, grace, running, down, unfinished, silent }) => [
      daemon,
      instance,
      prefix,
      position,
      extended,
      grace,
      running,
      down,
      unfinished,
      silent
    ])
  ])}`

const stateOf = ({ leaves, through }: CheckpointFields): CheckpointState | undefined => {
  const running: Array<Registry.AnnouncedLeaf> = []
  const down: Array<Registry.AnnouncedLeaf> = []
  const unfinished = new Map<string, Registry.AnnouncedLeaf>()
  const silent = new Map<string, Registry.AnnouncedLeaf>()
  for (const leaf of leaves) {
    const prefix = FsPath.parse(leaf.prefix, "branch")
    if (typeof prefix !== "string" || leaf.position > through) return undefined
    const { daemon, extended, grace, instance, position } = leaf
    const announced = { daemon, instance, prefix, extended, grace, position }
    if (leaf.running) running.push(announced)
    if (leaf.down) down.push(announced)
    if (leaf.unfinished) unfinished.set(instance, announced)
    if (leaf.silent) silent.set(instance, announced)
  }
  return { position: through, leaves: Registry.make({ running, unfinished, down }), silent }
}

const trustedState = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  fields: LeafCheckpoint,
  position: number
): Effect.fn.Return<CheckpointState | undefined, JournalError> {
  if (fields.through < 1 || fields.through >= position || !Installation.isSignatureOf(authenticatedText(fields), fields.code))
    return undefined
  return (yield* digestAt(journal, fields.through)) === fields.digest ? stateOf(fields) : undefined
})

const latestCheckpoint = (journal: Scrivener<Entry>, before: number): Effect.Effect<CheckpointState, JournalError> =>
  journal.readBackward(before).pipe(
    Stream.takeWhile(({ position }) => position > before - maxSearchedPositions),
    Stream.filter(({ entry }) => entry._tag === "LeafCheckpoint"),
    Stream.mapEffect(({ entry, position }) => trustedState(journal, entry as LeafCheckpoint, position)),
    Stream.filter((found) => found !== undefined),
    Stream.runHead,
    Effect.map(Option.getOrElse(() => journalStart))
  )

export interface Checkpoints {
  /** Observes an entry. The caller must add the entry to `answered` first. */
  readonly observe: (recorded: Recorded<Entry>) => void
  readonly appendIfDue: () => Effect.Effect<void> | undefined
}

export const makeCheckpoints = (
  journal: Scrivener<Entry>,
  me: Registry.AnnouncedLeaf,
  answered: Pick<Answered, "has">,
  from: CheckpointState
): Checkpoints => {
  /** The positions of unanswered requests of all leaves, in order. */
  const open = new Map<string, number>()
  let states: Array<CheckpointState> = [from]
  let position = from.position
  let lastCheckpointPosition = from.position

  const recordLeaf = (entry: Extract<Entry, { readonly _tag: "DaemonChanged" }>): void => {
    const last = states.at(-1)!
    const leaves = last.leaves.copy()
    const silent = new Map(last.silent)
    const announced = leaves.observe(entry, position)
    if (announced?.extended === false) silent.set(entry.instance, announced)
    if (entry.status === "Completed" && entry.failure === undefined) silent.delete(entry.instance)
    states.push({ position, leaves, silent })
  }

  const through = (): number => (open.values().next().value ?? position + 1) - 1

  const stateAt = (wanted: number): CheckpointState => {
    const at = states.findLastIndex((state) => state.position <= wanted)
    states = states.slice(Math.max(0, at))
    return { ...states[0]!, position: wanted }
  }

  const append = Effect.fnUntraced(function* (state: CheckpointState): Effect.fn.Return<void, JournalError> {
    const digest = yield* digestAt(journal, state.position)
    if (digest === undefined) return
    const running = state.leaves.running()
    const down = state.leaves.down()
    // Keep the order of the running leaves, because the first leaf answers requests for paths without an owner.
    const all = new Map(
      [...running, ...down, ...state.leaves.unfinished.values(), ...state.silent.values()].map((leaf) => [leaf.instance, leaf])
    )
    const leaves = [...all.values()].map(({ daemon, extended, grace, instance, position, prefix }) => ({
      daemon,
      instance,
      prefix,
      extended,
      grace,
      position,
      running: running.some((leaf) => leaf.instance === instance),
      down: down.some((leaf) => leaf.instance === instance),
      unfinished: state.leaves.unfinished.has(instance),
      silent: state.silent.has(instance)
    }))
    const fields = { through: state.position, digest, leaves }
    yield* journal.append(new LeafCheckpoint({ ...fields, code: Installation.signName(authenticatedText(fields)) }))
  })

  return {
    observe: (recorded) => {
      position = recorded.position
      const { entry } = recorded
      if (entry._tag === "DaemonChanged") recordLeaf(entry)
      else if (entry._tag === "LeafCheckpoint") {
        // Ignore checkpoints of other installations, because leaves of this installation do not trust them.
        if (Installation.isSignatureOf(authenticatedText(entry), entry.code))
          lastCheckpointPosition = Math.max(lastCheckpointPosition, Math.min(entry.through, position))
      } else if (isTerminal(entry)) open.delete(entry.correlationId)
      else if (isEfferent(entry)) {
        if (entry._tag === "FileWriteChunk" && entry.discard === true) open.delete(entry.correlationId)
        else if (!answered.has(entry.correlationId) && !open.has(entry.correlationId)) open.set(entry.correlationId, position)
      }
    },
    appendIfDue: () => {
      if (!me.extended || position <= me.position || through() - lastCheckpointPosition < checkpointInterval) return undefined
      const wanted = through()
      const writer = states
        .at(-1)!
        .leaves.running()
        .find(({ extended }) => extended)
      // The first extended leaf may belong to another installation. So any extended leaf of this installation appends a
      // checkpoint after twice the interval.
      if (writer?.instance !== me.instance && wanted - lastCheckpointPosition < 2 * checkpointInterval) return undefined
      lastCheckpointPosition = wanted
      return Effect.ignore(append(stateAt(wanted)))
    }
  }
}

export interface Survey {
  readonly checkpoint: CheckpointState
  readonly answered: AnsweredModule.Answered
  readonly started: ReadonlyMap<string, FileStarted>
  readonly silent: ReadonlyMap<string, Registry.AnnouncedLeaf>
}

const checkIntervalMillis = 100

const isDaemonChanged = (entry: Entry): entry is DaemonChanged => entry._tag === "DaemonChanged"

/** Reads the entries after a position. If a compaction has removed some of these entries, reads the remaining entries. */
const storedAfter = (journal: Scrivener<Entry>, after: number): Stream.Stream<Recorded<Entry>, JournalError> =>
  Stream.catchIf(
    journal.stored(after),
    ({ reason }) => reason === "compacted",
    () => journal.stored()
  )

/**
 * Reads the journal and waits for the replaced leaves. Returns `undefined` if a newer leaf replaces this leaf during the wait.
 */
export const make = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  me: Pick<Registry.AnnouncedLeaf, "daemon" | "prefix" | "instance" | "position">,
  /** The longest wait in milliseconds for a leaf of unknown state. */
  maxWaitMillis: number
): Effect.fn.Return<Survey | undefined, JournalError> {
  const checkpoint = yield* latestCheckpoint(journal, me.position)
  const answered = AnsweredModule.make()
  const seenAnswers = AnsweredModule.make()
  const started = new Map<string, FileStarted>()
  const silent = new Map(checkpoint.silent)
  const leaves = checkpoint.leaves.copy()
  let isSuperseded = false
  // Also read the last positions before the checkpoint, because a later request may repeat an id that was answered there.
  let after = Math.max(0, checkpoint.position - AnsweredModule.duplicateWindow)

  const processEntry = (recorded: Recorded<Entry>): void => {
    const { entry, position } = recorded
    after = position
    if (position <= checkpoint.position) {
      answered.advanceTo(recorded)
      return
    }
    seenAnswers.advanceTo(recorded)
    if (entry._tag === "DaemonChanged") {
      const announced = leaves.observe(entry, position)
      if (announced?.extended === false && position < me.position) silent.set(entry.instance, announced)
      if (entry.status === "Completed" && entry.failure === undefined) silent.delete(entry.instance)
      if (announced !== undefined && position > me.position && Registry.supersedes(announced, me)) isSuperseded = true
    } else if (entry._tag === "FileStarted") {
      if (!seenAnswers.has(entry.correlationId)) started.set(entry.correlationId, entry)
    } else if (isTerminal(entry)) {
      answered.expect(entry.correlationId, position)
      started.delete(entry.correlationId)
    }
  }
  const deadlineMillis = (yield* Clock.currentTimeMillis) + maxWaitMillis
  for (;;) {
    yield* Stream.runForEachArray(storedAfter(journal, after), (page) => Effect.sync(() => page.forEach(processEntry)))
    const remainingMillis = deadlineMillis - (yield* Clock.currentTimeMillis)
    const isAwaited = ({ instance, position }: Registry.AnnouncedLeaf): boolean => {
      const isOver = position < me.position ? Instance.hasEnded(instance) : true
      return isOver === false || (isOver === undefined && remainingMillis > 0)
    }
    const awaitedLeaves = [...leaves.unfinished.values()].filter((other) => Registry.supersedes(me, other) && isAwaited(other))
    // Start even if a newer leaf has replaced this leaf, because the newer leaf waits until this leaf completes.
    if (awaitedLeaves.length === 0) return { checkpoint, answered, started, silent }
    if (isSuperseded) return undefined
    yield* Effect.raceFirst(journal.waitFor(after, isDaemonChanged), Effect.sleep(checkIntervalMillis))
  }
})
