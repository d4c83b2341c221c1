import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { SessionError } from "../../model/sessionError.ts"
import type { AnySlice } from "../../model/Slice.ts"
import type { Participant, Prepared, Unmask } from "../../port/slices.ts"
import type { SessionSnapshot } from "../Session.ts"
import { quoteId } from "./ids.ts"
import { captureAll, prepareAll, releaseAll, resetAll, runAll, type Share } from "./participants.ts"
import type { Items, State } from "./state.ts"

interface TakenSnapshot {
  readonly snapshot: SessionSnapshot
  readonly items: ReadonlyMap<AnySlice, Items>
  readonly shares: ReadonlyArray<Share>
}

const unknownSnapshot = (operation: string, detail: string): SessionError =>
  new SessionError({ operation, reason: "unknown", detail })

/** The snapshots of one session. Callers of a method that returns an effect must hold the session. */
export class SessionSnapshots {
  readonly #sessionId: string
  readonly #state: State
  readonly #participants: ReadonlyMap<string, Participant>
  /** The snapshots in the order in which they were taken. */
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
      const detail = "it is no snapshot of this session, or one that has been forgotten or replaced"
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

  /** Returns the participants that joined after the snapshot. A restore resets them, like slices that were installed later. */
  #newcomers({ shares }: TakenSnapshot): ReadonlyArray<Participant> {
    return [...this.#participants.values()].filter(
      (one) => one.capture !== undefined && !shares.some(({ participant }) => participant === one)
    )
  }
}
