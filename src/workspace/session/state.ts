/**
 * Every change is one synchronous step, which computes all new items before it changes any slice. An error during the
 * computation therefore changes nothing.
 */
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import { SessionError } from "../../model/sessionError.ts"
import type { AnySlice } from "../../model/Slice.ts"
import type { SliceChanged } from "../Session.ts"
import { invalid, shown, whyUnfit } from "./ids.ts"

export type Items = ReadonlyArray<unknown>

/** The holder of a cell. `changed` is called with a new last item that another writer has set. */
export interface Holder {
  readonly changed: (latest: unknown) => void
}

export interface Entry {
  readonly slice: AnySlice
  readonly name: string
  readonly policy: AnySlice["policy"]
  readonly initial: Items
  items: Items
  readonly holders: Set<Holder>
}

export type Step = readonly [entry: Entry, items: Items]

const none: Items = Object.freeze([])

export const kept = (items: Items): Items => {
  if (!Array.isArray(items)) throw new TypeError("the items of a slice are an array")
  if (items.length === 0) return none
  return Object.isFrozen(items) ? items : Object.freeze([...(items as Items)])
}

export class State {
  /** The changes and the published events. A slow reader loses nothing, and values without a reader are not kept. */
  readonly changes: PubSub.PubSub<SliceChanged>
  readonly events: PubSub.PubSub<unknown>
  readonly #entries = new Map<string, Entry>()
  #isReducing = false

  private constructor(changes: PubSub.PubSub<SliceChanged>, events: PubSub.PubSub<unknown>) {
    this.changes = changes
    this.events = events
  }

  static readonly make: Effect.Effect<State> = Effect.gen(function* () {
    return new State(yield* PubSub.unbounded<SliceChanged>(), yield* PubSub.unbounded<unknown>())
  })

  /** The slices in the order of their installation. */
  get entries(): ReadonlyArray<Entry> {
    return [...this.#entries.values()]
  }

  find(slice: AnySlice): Entry | undefined {
    const entry = this.#entries.get(slice.name)
    return entry?.slice === slice ? entry : undefined
  }

  entryOf(operation: string, slice: AnySlice): Entry | SessionError {
    const there = this.#entries.get(slice.name)
    if (there?.slice === slice) return there
    if (there !== undefined) {
      const detail = `another slice called ${shown(slice.name)} is installed`
      return new SessionError({ operation, reason: "duplicateSlice", detail })
    }
    const why = whyUnfit(slice.name)
    if (why !== undefined) return invalid(operation, `${shown(slice.name)} cannot be the name of a slice: ${why}`)
    const initial = kept(slice.initial)
    return { slice, name: slice.name, policy: slice.policy, initial, items: initial, holders: new Set() }
  }

  install(entry: Entry): void {
    this.#mayChange()
    this.#entries.set(entry.name, entry)
  }

  installed(operation: string, slice: AnySlice): Entry | SessionError {
    const entry = this.entryOf(operation, slice)
    if (!(entry instanceof SessionError)) this.install(entry)
    return entry
  }

  /** Returns the items after an event. The reducer may throw. */
  reduced(entry: Entry, event: unknown): Items {
    return this.#reducing(() => kept(entry.slice.reduce(entry.items, event)))
  }

  published(event: unknown): ReadonlyArray<Step> {
    return this.#reducing(() =>
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
  change(cause: SliceChanged["cause"], steps: ReadonlyArray<Step>, by?: Holder): void {
    this.#mayChange()
    const others: Array<Entry> = []
    const changed: Array<SliceChanged> = []
    for (const [entry, items] of steps) {
      if (items === entry.items) continue
      if (entry.holders.size > 0 && !Object.is(items.at(-1), entry.items.at(-1))) others.push(entry)
      entry.items = items
      changed.push(Object.freeze({ slice: entry.name, items, cause }))
    }
    for (const change of changed) PubSub.publishUnsafe(this.changes, change)
    tellHolders(others, by)
  }

  #mayChange(): void {
    if (this.#isReducing) throw new Error("a reducer answers new items; it may not change the session itself")
  }

  #reducing<A>(reduce: () => A): A {
    this.#mayChange()
    this.#isReducing = true
    try {
      return reduce()
    } finally {
      this.#isReducing = false
    }
  }
}

/** Notifies all holders even if one throws, and then throws the first error. */
const tellHolders = (entries: ReadonlyArray<Entry>, by: Holder | undefined): void => {
  const thrown: Array<unknown> = []
  for (const entry of entries) {
    for (const holder of Array.from(entry.holders)) {
      if (holder === by) continue
      try {
        holder.changed(entry.items.at(-1))
      } catch (error) {
        thrown.push(error)
      }
    }
  }
  if (thrown.length > 0) throw thrown[0]
}
