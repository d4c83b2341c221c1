/**
 * Reads the journal when a leaf starts, from the latest checkpoint on: the answered requests, the begun changes, and the leaves. Waits
 * until every leaf that this one replaces has ended, so that no request is carried out twice. A living leaf completes as soon as it reads
 * the announcement of this one. A killed leaf on this machine is known to be dead. Any other leaf counts as ended after the time that it
 * may take to complete.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Instance from "../daemon/instance.ts"
import type { DaemonChanged } from "../entries/daemon.ts"
import type { JournalError } from "../errors.ts"
import { type FileStarted, isTerminal } from "../FileSystemEntry.ts"
import type { Entry, Recorded, Scrivener } from "../Journal.ts"
import * as Answered from "./answered.ts"
import * as Checkpoints from "./checkpoints.ts"
import * as Registry from "./registry.ts"

export interface Survey {
  readonly checkpoint: Checkpoints.CheckpointState
  readonly answered: Answered.Answered
  readonly started: ReadonlyMap<string, FileStarted>
  readonly silent: ReadonlyMap<string, Registry.AnnouncedLeaf>
  /** The leaves directly after the announcement of this one. */
  readonly leaves: Registry.Registry
  /** The time of that announcement, in milliseconds since 1970. */
  readonly at: number
}

const checkIntervalMillis = 100

const isDaemonChanged = (entry: Entry): entry is DaemonChanged => entry._tag === "DaemonChanged"

/** Reads the entries after a position, as far as a compacted journal still has them. */
const storedAfter = (journal: Scrivener<Entry>, after: number): Stream.Stream<Recorded<Entry>, JournalError> =>
  Stream.catchIf(
    journal.stored(after),
    ({ reason }) => reason === "compacted",
    () => journal.stored()
  )

/** Surveys the journal. Returns `undefined` if a newer leaf has replaced this one meanwhile. The newer leaf waits for the same leaves. */
export const make = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  me: Pick<Registry.AnnouncedLeaf, "daemon" | "prefix" | "instance" | "position">,
  /** The longest wait in milliseconds for a leaf of unknown state. */
  maxWaitMillis: number
): Effect.fn.Return<Survey | undefined, JournalError> {
  const checkpoint = yield* Checkpoints.latestCheckpoint(journal, me.position)
  const answered = Answered.make()
  const seenAnswers = Answered.make()
  const started = new Map<string, FileStarted>()
  const silent = new Map(checkpoint.silent)
  const leaves = checkpoint.leaves.copy()
  let atAnnouncement: Pick<Survey, "leaves" | "at"> | undefined
  let isSuperseded = false
  // The window before the checkpoint matters, because a later request may repeat an id that was answered there.
  let after = Math.max(0, checkpoint.position - Answered.duplicateWindow)

  const processEntry = (recorded: Recorded<Entry>): void => {
    const { at, entry, position } = recorded
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
      if (position === me.position) atAnnouncement = { leaves: leaves.copy(), at }
      else if (announced !== undefined && position > me.position && Registry.supersedes(announced, me)) isSuperseded = true
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
    // A newer leaf waits for this one, so this leaf first finishes its open requests.
    if (awaitedLeaves.length === 0) return { checkpoint, answered, started, silent, ...atAnnouncement! }
    if (isSuperseded) return undefined
    yield* Effect.raceFirst(journal.waitFor(after, isDaemonChanged), Effect.sleep(checkIntervalMillis))
  }
})
