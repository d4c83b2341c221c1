/**
 * What the journal says when a leaf begins, from the latest checkpoint on: what has been answered, what has been begun, and which leaves there are. One whose place this
 * leaf takes ends first, so that none of them does what the other does: a living one completes as soon as it has read of this one, one that
 * was killed is known to be dead, and of one of which nothing is known nothing is left after the time that it may take to complete.
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
  /** Up to where nothing is to be done, and the leaves there. */
  readonly from: Checkpoints.Beginning
  readonly answered: Answered.Answered
  /** Of what has not been answered. */
  readonly started: ReadonlyMap<string, FileStarted>
  /** By instance those before this one that did not say what they begin, and have not finished what they had in hand. */
  readonly silent: ReadonlyMap<string, Registry.Announced>
  /** The leaves directly after this one was announced. */
  readonly leaves: Registry.Registry
  /** When that was. */
  readonly at: number
}

/** How often it is looked whether one has been killed, in milliseconds. */
const pause = 100

const isDaemonChanged = (entry: Entry): entry is DaemonChanged => entry._tag === "DaemonChanged"

/** Entries behind a position, as far as a compacted journal still has them. */
const storedAfter = (journal: Scrivener<Entry>, after: number): Stream.Stream<Recorded<Entry>, JournalError> =>
  Stream.catchIf(
    journal.stored(after),
    ({ reason }) => reason === "compacted",
    () => journal.stored()
  )

/** `undefined`: another leaf has taken this one's place while it waited, and waits for the same. */
export const make = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  me: Pick<Registry.Announced, "daemon" | "prefix" | "instance" | "position">,
  /** How long one of which nothing is known is waited for, in milliseconds. */
  patience: number
): Effect.fn.Return<Survey | undefined, JournalError> {
  const from = yield* Checkpoints.latest(journal, me.position)
  const answered = Answered.make()
  const over = Answered.make()
  const started = new Map<string, FileStarted>()
  const silent = new Map(from.silent)
  const leaves = from.leaves.copy()
  let mine: Pick<Survey, "leaves" | "at"> | undefined
  let isSuperseded = false
  // What a request after the checkpoint repeats may have been answered before it.
  let after = Math.max(0, from.position - Answered.window)

  const absorb = (recorded: Recorded<Entry>): void => {
    const { at, entry, position } = recorded
    after = position
    if (position <= from.position) {
      answered.move(recorded)
      return
    }
    over.move(recorded)
    if (entry._tag === "DaemonChanged") {
      const announced = leaves.see(entry, position)
      if (announced?.extended === false && position < me.position) silent.set(entry.instance, announced)
      if (entry.status === "Completed" && entry.failure === undefined) silent.delete(entry.instance)
      if (position === me.position) mine = { leaves: leaves.copy(), at }
      else if (announced !== undefined && position > me.position && Registry.supersedes(announced, me)) isSuperseded = true
    } else if (entry._tag === "FileStarted") {
      if (!over.has(entry.correlationId)) started.set(entry.correlationId, entry)
    } else if (isTerminal(entry)) {
      answered.expect(entry.correlationId, position)
      started.delete(entry.correlationId)
    }
  }
  const until = (yield* Clock.currentTimeMillis) + patience
  for (;;) {
    yield* Stream.runForEachArray(storedAfter(journal, after), (page) => Effect.sync(() => page.forEach(absorb)))
    const left = until - (yield* Clock.currentTimeMillis)
    const isAwaited = ({ instance, position }: Registry.Announced): boolean => {
      const isOver = position < me.position ? Instance.isOver(instance) : true
      return isOver === false || (isOver === undefined && left > 0)
    }
    const before = [...leaves.unfinished.values()].filter((other) => Registry.supersedes(me, other) && isAwaited(other))
    // Who comes later waits in turn: what is this leaf's before that is still to be done.
    if (before.length === 0) return { from, answered, started, silent, ...mine! }
    if (isSuperseded) return undefined
    yield* Effect.raceFirst(journal.waitFor(after, isDaemonChanged), Effect.sleep(pause))
  }
})
