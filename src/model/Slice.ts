/**
 * A slice is a part of a session's state, described as data.
 *
 * A slice defines its items, how an event changes them, and whether a rollback restores them. The session holds the items;
 * a reducer returns a new list and never mutates the old list.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * A function that computes the next items from the current items and an event. The function must not mutate its
 * arguments.
 *
 * @since 0.1.0
 */
export interface Reducer<A, E = A> {
  (items: ReadonlyArray<A>, event: E): ReadonlyArray<A>
}

/**
 * The reaction of a slice to events that are published to the whole session.
 *
 * @since 0.1.0
 */
export interface Handler<A> {
  readonly accepts: (event: unknown) => boolean
  /** Computes the next items from an accepted event. */
  reduce(items: ReadonlyArray<A>, event: unknown): ReadonlyArray<A>
}

/**
 * A typed part of a session's state. `A` is the type of an item; `E` is the type of the events that `dispatch` takes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Slice<A, E = A> {
  /** The name of the slice, which is unique in a session. A saved session uses this name as the key. */
  readonly name: string
  readonly schema: Schema.Codec<A, unknown>
  /** The effect of a rollback: `state` items are restored, `log` items are kept. */
  readonly policy: "state" | "log"
  /** Computes the next items. Declared as a method so that every slice is assignable to `AnySlice`. */
  reduce(items: ReadonlyArray<A>, event: E): ReadonlyArray<A>
  readonly handlers: ReadonlyArray<Handler<A>>
  /** The items at installation and after a reset. */
  readonly initial: ReadonlyArray<A>
}

/**
 * A slice of any type, for tables of slices.
 *
 * @since 0.1.0
 */
export type AnySlice = Slice<unknown, unknown>

/**
 * Adds an item at the end.
 *
 * @since 0.1.0
 */
export const append = <A>(items: ReadonlyArray<A>, item: A): ReadonlyArray<A> => [...items, item]

/**
 * Replaces all items with the new item.
 *
 * @since 0.1.0
 */
export const replaceLatest = <A>(_items: ReadonlyArray<A>, item: A): ReadonlyArray<A> => [item]

/**
 * Returns a reducer that replaces the item with the same key, or else adds the new item at the end.
 *
 * @since 0.1.0
 */
export const upsert =
  <A>(keyOf: (item: A) => unknown): Reducer<A> =>
  (items, item) => {
    const key = keyOf(item)
    const index = items.findIndex((other) => Object.is(keyOf(other), key))
    return index === -1 ? [...items, item] : items.with(index, item)
  }

/**
 * Returns a handler for the published events that match the schema.
 *
 * @since 0.1.0
 */
export const on = <A, E>(event: Schema.Codec<E, unknown>, reduce: Reducer<A, E>): Handler<A> => ({
  accepts: Schema.is(event as unknown as Schema.Codec<unknown, unknown>),
  reduce: (items, published) => reduce(items, published as E)
})

/**
 * The options of a slice: rollback policy, reducers and initial items.
 *
 * @since 0.1.0
 */
export interface Options<A, E> {
  /** @default "state" */
  readonly policy?: "state" | "log" | undefined
  /** The reducer of `dispatch`. @default append */
  readonly reduce?: Reducer<A, E> | undefined
  /** The handlers of published events. @default none */
  readonly on?: ReadonlyArray<Handler<A>> | undefined
  /** @default none */
  readonly initial?: ReadonlyArray<A> | undefined
}

/**
 * Creates a slice.
 *
 * A session refuses a name that is empty, longer than 200 characters or only dots, or contains slashes, backslashes,
 * control characters or lone surrogates.
 *
 * @example
 * ```ts
 * const Note = Slice.make("Note", Schema.String, { reduce: Slice.replaceLatest })
 * const session = yield* Session.make({ slices: [Note] })
 * yield* session.dispatch(Note, "first")
 * yield* session.dispatch(Note, "second")
 * yield* session.all(Note) // => ["second"]
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const make = <A, I, E = A>(name: string, schema: Schema.Codec<A, I>, options: Options<A, E> = {}): Slice<A, E> => ({
  name,
  schema: schema as unknown as Schema.Codec<A, unknown>,
  policy: options.policy ?? "state",
  reduce: options.reduce ?? (append as unknown as Reducer<A, E>),
  handlers: options.on ?? [],
  initial: options.initial ?? []
})
