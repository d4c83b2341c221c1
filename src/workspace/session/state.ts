/**
 * The state of a session. Each change is one synchronous step, which computes all new items before it changes any slice. An
 * error in the computation therefore changes nothing.
 */
import * as Cause from "effect/Cause"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as PubSub from "effect/PubSub"
import type { AnySlice } from "../../model/Slice.ts"
import { SessionError } from "../../model/sessionError.ts"
import { type Kept, type Participant, type Prepared, type Unmask, Unmasking } from "../../port/slices.ts"
import type { SessionSnapshot, SliceChanged } from "../Session.ts"
import { idFault, invalid, quoteId } from "./ids.ts"

// The captures and restores of participants. Steps that can fail come first, and are undone after a failure. The later steps
// cannot fail.

interface Share {
  readonly participant: Participant
  readonly kept: Kept
}

/** Runs all effects, even if some die, and finally dies with the causes of all effects that died. */
export const runAll = (effects: ReadonlyArray<Effect.Effect<void>>): Effect.Effect<void> =>
  Effect.gen(function* () {
    const reasons: Array<Cause.Reason<never>> = []
    for (const effect of effects) {
      const exit = yield* Effect.exit(effect)
      if (Exit.isFailure(exit)) reasons.push(...exit.cause.reasons)
    }
    if (reasons.length > 0) return yield* Effect.failCause(Cause.fromReasons(reasons))
  })

/**
 * Runs the effect while all participants are locked, including participants that join while this function waits. The caller
 * must have locked the session.
 */
export const holdAll = <A, E, R>(
  participants: ReadonlyMap<string, Participant>,
  effect: Effect.Effect<A, E, R>,
  held: ReadonlyArray<Participant> = []
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const next = [...participants.values()].find((one) => !held.includes(one))
    if (next === undefined) return effect
    const inner = holdAll(participants, effect, [...held, next])
    return next.exclusively?.(inner) ?? inner
  })

/**
 * Acquires all items in order. Each step is uninterruptible, except where it allows interruption itself. After a failure, or an
 * interruption between two steps, undoes the earlier steps.
 */
const acquireAll = Effect.fnUntraced(function* <A, B>(
  items: ReadonlyArray<A>,
  acquire: (item: A) => Effect.Effect<B, SessionError>,
  undo: (acquired: B) => Effect.Effect<void>,
  unmask: Unmask
): Effect.fn.Return<ReadonlyArray<B>, SessionError> {
  const acquired: Array<B> = []
  for (const item of items) {
    const step = Effect.provideService(acquire(item), Unmasking, unmask)
    const exit = yield* Effect.exit(Effect.andThen(unmask(Effect.void), step))
    if (Exit.isFailure(exit)) {
      yield* runAll(acquired.reverse().map(undo))
      return yield* Effect.failCause(exit.cause)
    }
    acquired.push(exit.value)
  }
  return acquired
})

const captureAll = (
  participants: ReadonlyArray<Participant>,
  unmask: Unmask
): Effect.Effect<ReadonlyArray<Share>, SessionError> =>
  acquireAll(
    participants.filter(({ capture }) => capture !== undefined),
    (participant) => Effect.map(participant.capture!, (kept): Share => ({ participant, kept })),
    ({ kept }) => kept.release,
    unmask
  )

const prepareAll = (shares: ReadonlyArray<Share>, unmask: Unmask): Effect.Effect<ReadonlyArray<Prepared>, SessionError> =>
  acquireAll(
    shares,
    ({ kept }) => kept.prepare,
    ({ discard }) => discard,
    unmask
  )

const releaseAll = (shares: ReadonlyArray<Share>): Effect.Effect<void> => runAll(shares.map(({ kept }) => kept.release))

export const resetAll = (participants: ReadonlyArray<Participant>): Effect.Effect<void> =>
  runAll(participants.map(({ reset }) => reset ?? Effect.void))

export type Items = ReadonlyArray<unknown>

/**
 * The user of a cell, which is the last item of a slice as one value. `changed` is called with the new last item if another
 * writer has changed the last item.
 */
export interface CellHolder {
  readonly changed: (latest: unknown) => void
}

export interface InstalledSlice {
  readonly slice: AnySlice
  readonly name: string
  readonly policy: AnySlice["policy"]
  readonly initial: Items
  items: Items
  readonly holders: Set<CellHolder>
}

type SliceStep = readonly [entry: InstalledSlice, items: Items]

const noItems: Items = Object.freeze([])

export const kept = (items: Items): Items => {
  if (!Array.isArray(items)) throw new TypeError("the items of a slice must be an array")
  if (items.length === 0) return noItems
  return Object.isFrozen(items) ? items : Object.freeze([...(items as Items)])
}

export class State {
  /** The changes of the slices. A slow reader misses no change. Changes are dropped if there is no reader. */
  readonly changes: PubSub.PubSub<SliceChanged>
  readonly events: PubSub.PubSub<unknown>
  readonly #entries = new Map<string, InstalledSlice>()
  #isReducing = false

  private constructor(changes: PubSub.PubSub<SliceChanged>, events: PubSub.PubSub<unknown>) {
    this.changes = changes
    this.events = events
  }

  static readonly make: Effect.Effect<State> = Effect.gen(function* () {
    return new State(yield* PubSub.unbounded<SliceChanged>(), yield* PubSub.unbounded<unknown>())
  })

  get entries(): ReadonlyArray<InstalledSlice> {
    return [...this.#entries.values()]
  }

  find(slice: AnySlice): InstalledSlice | undefined {
    const entry = this.#entries.get(slice.name)
    return entry?.slice === slice ? entry : undefined
  }

  entryOf(operation: string, slice: AnySlice): InstalledSlice | SessionError {
    const installedSlice = this.#entries.get(slice.name)
    if (installedSlice?.slice === slice) return installedSlice
    if (installedSlice !== undefined) {
      const detail = `another slice called ${quoteId(slice.name)} is installed`
      return new SessionError({ operation, reason: "duplicateSlice", detail })
    }
    const why = idFault(slice.name)
    if (why !== undefined) return invalid(operation, `${quoteId(slice.name)} cannot be the name of a slice: ${why}`)
    const initial = kept(slice.initial)
    return { slice, name: slice.name, policy: slice.policy, initial, items: initial, holders: new Set() }
  }

  install(entry: InstalledSlice): void {
    this.#assertMayChange()
    this.#entries.set(entry.name, entry)
  }

  installSlice(operation: string, slice: AnySlice): InstalledSlice | SessionError {
    const entry = this.entryOf(operation, slice)
    if (!(entry instanceof SessionError)) this.install(entry)
    return entry
  }

  /** Returns the items after an event. The reducer may throw. */
  reduceEvent(entry: InstalledSlice, event: unknown): Items {
    return this.#whileReducing(() => kept(entry.slice.reduce(entry.items, event)))
  }

  stepsOfEvent(event: unknown): ReadonlyArray<SliceStep> {
    return this.#whileReducing(() =>
      this.entries.map((entry) => {
        let items = entry.items
        for (const handler of entry.slice.handlers) {
          if (handler.accepts(event)) items = kept(handler.reduce(items, event))
        }
        return [entry, items]
      })
    )
  }

  change(cause: SliceChanged["cause"], steps: ReadonlyArray<SliceStep>, except?: CellHolder): void {
    this.#assertMayChange()
    const notified: Array<InstalledSlice> = []
    const changed: Array<SliceChanged> = []
    for (const [entry, items] of steps) {
      if (items === entry.items) continue
      if (entry.holders.size > 0 && !Object.is(items.at(-1), entry.items.at(-1))) notified.push(entry)
      entry.items = items
      changed.push(Object.freeze({ slice: entry.name, items, cause }))
    }
    for (const change of changed) PubSub.publishUnsafe(this.changes, change)
    notifyHolders(notified, except)
  }

  #assertMayChange(): void {
    if (this.#isReducing) throw new Error("a reducer must return the new items, and must not change the session")
  }

  #whileReducing<A>(reduce: () => A): A {
    this.#assertMayChange()
    this.#isReducing = true
    try {
      return reduce()
    } finally {
      this.#isReducing = false
    }
  }
}

/** Notifies all users of cells other than `except`, even if one throws, and finally throws the first error. */
const notifyHolders = (entries: ReadonlyArray<InstalledSlice>, except: CellHolder | undefined): void => {
  const errors: Array<unknown> = []
  for (const entry of entries) {
    for (const holder of Array.from(entry.holders)) {
      if (holder === except) continue
      try {
        holder.changed(entry.items.at(-1))
      } catch (error) {
        errors.push(error)
      }
    }
  }
  if (errors.length > 0) throw errors[0]
}

interface TakenSnapshot {
  readonly snapshot: SessionSnapshot
  readonly items: ReadonlyMap<AnySlice, Items>
  readonly shares: ReadonlyArray<Share>
}

const unknownSnapshot = (operation: string, detail: string): SessionError =>
  new SessionError({ operation, reason: "unknown", detail })

/** The snapshots of one session. The caller of a method that returns an effect must have locked the session. */
export class SessionSnapshots {
  readonly #sessionId: string
  readonly #state: State
  readonly #participants: ReadonlyMap<string, Participant>
  readonly #taken = new Map<string, TakenSnapshot>()

  constructor(sessionId: string, state: State, participants: ReadonlyMap<string, Participant>) {
    this.#sessionId = sessionId
    this.#state = state
    this.#participants = participants
  }

  get snapshots(): ReadonlyArray<SessionSnapshot> {
    return [...this.#taken.values()].map(({ snapshot }) => snapshot)
  }

  byId(operation: string, id: string): SessionSnapshot | SessionError {
    return this.#taken.get(id)?.snapshot ?? unknownSnapshot(operation, `there is no snapshot ${quoteId(id)}`)
  }

  take(snapshotId: string): Effect.Effect<SessionSnapshot, SessionError> {
    return Effect.uninterruptibleMask((unmask) =>
      Effect.gen({ self: this }, function* () {
        const shares = yield* captureAll([...this.#participants.values()], unmask)
        const snapshot = this.#keep(snapshotId, yield* DateTime.now, shares)
        return yield* Effect.as(releaseAll(snapshot.replaced), snapshot.value)
      })
    )
  }

  #keep(snapshotId: string, createdAt: DateTime.Utc, shares: ReadonlyArray<Share>) {
    const stateSlices = this.#state.entries.filter(({ policy }) => policy === "state")
    const items = new Map(stateSlices.map((entry): [AnySlice, Items] => [entry.slice, entry.items]))
    const value: SessionSnapshot = Object.freeze({
      sessionId: this.#sessionId,
      snapshotId,
      createdAt,
      items: <A>(slice: AnySlice) => (items.get(slice) ?? []) as ReadonlyArray<A>
    })
    const replaced = this.#taken.get(snapshotId)?.shares ?? []
    this.#taken.delete(snapshotId)
    this.#taken.set(snapshotId, { snapshot: value, items, shares })
    return { value, replaced }
  }

  forget(id: string): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const found = this.#taken.get(id)
      this.#taken.delete(id)
      return Effect.as(releaseAll(found?.shares ?? []), found !== undefined)
    })
  }

  releaseParticipant(participant: Participant): Effect.Effect<void> {
    return Effect.suspend(() => {
      const its: Array<Share> = []
      for (const [id, taken] of this.#taken) {
        its.push(...taken.shares.filter((share) => share.participant === participant))
        this.#taken.set(id, { ...taken, shares: taken.shares.filter((share) => share.participant !== participant) })
      }
      return releaseAll(its)
    })
  }

  prepare(operation: string, snapshot: SessionSnapshot): Effect.Effect<Prepared, SessionError> {
    return Effect.uninterruptibleMask((unmask) => this.#prepare(operation, snapshot, unmask))
  }

  restore(operation: string, snapshot: SessionSnapshot): Effect.Effect<void, SessionError> {
    return Effect.uninterruptibleMask((unmask) =>
      Effect.flatMap(this.#prepare(operation, snapshot, unmask), ({ commit }) => commit)
    )
  }

  #prepare(operation: string, snapshot: SessionSnapshot, unmask: Unmask): Effect.Effect<Prepared, SessionError> {
    const taken = this.#taken.get(snapshot?.snapshotId)
    if (taken === undefined || taken.snapshot !== snapshot) {
      const detail = "the snapshot belongs to another session, or was forgotten or replaced"
      return Effect.fail(unknownSnapshot(operation, detail))
    }
    return Effect.map(prepareAll(taken.shares, unmask), (prepared) => ({
      commit: Effect.uninterruptible(
        runAll([
          Effect.sync(() => this.#restoreSlices(taken)),
          ...prepared.map(({ commit }) => commit),
          Effect.suspend(() => resetAll(this.#newcomers(taken)))
        ])
      ),
      discard: Effect.uninterruptible(runAll(prepared.map(({ discard }) => discard)))
    }))
  }

  #restoreSlices({ items }: TakenSnapshot): void {
    const stateSlices = this.#state.entries.filter(({ policy }) => policy === "state")
    this.#state.change(
      "rollback",
      stateSlices.map((entry) => [entry, items.get(entry.slice) ?? entry.initial])
    )
  }

  /**
   * Returns the participants that joined after the snapshot. A restore resets these participants, like slices that were
   * installed later.
   */
  #newcomers({ shares }: TakenSnapshot): ReadonlyArray<Participant> {
    return [...this.#participants.values()].filter(
      (one) => one.capture !== undefined && !shares.some(({ participant }) => participant === one)
    )
  }
}
