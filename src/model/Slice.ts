/**
 * A part of a session's state as data: what its items are, how an event makes other items of them, and whether a rollback takes them
 * back. The items themselves are kept by the session; a reducer answers new ones and changes none.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

/**
 * From the items and an event to the items afterwards. What it is given is not changed.
 *
 * @since 0.1.0
 */
export interface Reducer<A, E = A> {
  (items: ReadonlyArray<A>, event: E): ReadonlyArray<A>
}

/**
 * What a slice makes of events that are published to the whole session.
 *
 * @since 0.1.0
 */
export interface Handler<A> {
  readonly accepts: (event: unknown) => boolean
  /** A Reducer of what is accepted. */
  reduce(items: ReadonlyArray<A>, event: unknown): ReadonlyArray<A>
}

/**
 * `A` is an item, `E` what `dispatch` takes.
 *
 * @since 0.1.0
 */
export interface Slice<A, E = A> {
  /** Unique in a session, and what it is called where it is saved. */
  readonly name: string
  readonly schema: Schema.Codec<A, unknown>
  /** `state` is taken back by a rollback, `log` is kept. */
  readonly policy: "state" | "log"
  /** A Reducer; as a method, so that any slice is one of what nobody knows. */
  reduce(items: ReadonlyArray<A>, event: E): ReadonlyArray<A>
  readonly handlers: ReadonlyArray<Handler<A>>
  /** What it holds when it is installed, and after a reset. */
  readonly initial: ReadonlyArray<A>
}

/**
 * Of any slice; for tables.
 *
 * @since 0.1.0
 */
export type AnySlice = Slice<unknown, unknown>

/**
 * One more item at the end.
 *
 * @since 0.1.0
 */
export const append = <A>(items: ReadonlyArray<A>, item: A): ReadonlyArray<A> => [...items, item]

/**
 * The item alone.
 *
 * @since 0.1.0
 */
export const replaceLatest = <A>(_items: ReadonlyArray<A>, item: A): ReadonlyArray<A> => [item]

/**
 * The item in the place of the one with its key, or at the end.
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
 * Takes the published events that the schema accepts.
 *
 * @since 0.1.0
 */
export const on = <A, E>(event: Schema.Codec<E, unknown>, reduce: Reducer<A, E>): Handler<A> => ({
  accepts: Schema.is(event as unknown as Schema.Codec<unknown, unknown>),
  reduce: (items, published) => reduce(items, published as E)
})

/**
 * How long a slice keeps its items, and what it makes of what is dispatched.
 *
 * @since 0.1.0
 */
export interface Options<A, E> {
  /** @default "state" */
  readonly policy?: "state" | "log" | undefined
  /** What `dispatch` does. @default append */
  readonly reduce?: Reducer<A, E> | undefined
  /** What published events do. @default nothing */
  readonly on?: ReadonlyArray<Handler<A>> | undefined
  /** @default none */
  readonly initial?: ReadonlyArray<A> | undefined
}

/**
 * A session refuses it where the name is empty, longer than 200 characters, only dots, or has separators or control characters.
 *
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
