/**
 * Every change is one synchronous step, which computes all new items before it changes any slice. An error during the
 * computation therefore changes nothing.
 */
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import { SessionError } from "../../model/sessionError.ts"
import type { AnySlice } from "../../model/Slice.ts"
import type { SliceChanged } from "../Session.ts"
import { invalid, quoteId, idFault } from "./ids.ts"

export type Items = ReadonlyArray<unknown>

/** The holder of a cell. `changed` is called with a new last item that another writer has set. */
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

export type SliceStep = readonly [entry: InstalledSlice, items: Items]

const noItems: Items = Object.freeze([])

export const kept = (items: Items): Items => {
  if (!Array.isArray(items)) throw new TypeError("the items of a slice are an array")
  if (items.length === 0) return noItems
  return Object.isFrozen(items) ? items : Object.freeze([...(items as Items)])
}

export class State {
  /** The changes and the published events. A slow reader loses nothing, and values without a reader are not kept. */
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

  /** The slices in the order of their installation. */
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

  /** Applies the steps, notifies the other holders of cells, and publishes the changes. */
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
    if (this.#isReducing) throw new Error("a reducer answers new items; it may not change the session itself")
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

/** Notifies all holders even if one throws, and then throws the first error. */
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
