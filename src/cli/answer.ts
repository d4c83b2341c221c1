/**
 * An answer is either one document or a list; both are encoded with the schema of what they are, or shown to a person. Lists are
 * written an array at a time as they come, so that the first lines are there before the last are known.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { type Look, look } from "./look.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"

type Encodable<A> = Schema.Codec<A, unknown>

const encoder = <A>(schema: Encodable<A>): ((value: A) => string) => {
  const encode = Schema.encodeSync(Schema.toCodecJson(schema))
  return (value) => `${JSON.stringify(encode(value))}\n`
}

/** One document, or what `show` makes of it. */
export const document = Effect.fnUntraced(function* <A>(schema: Encodable<A>, value: A, show: (look: Look) => string) {
  const screen = yield* Screen
  const { json } = yield* Settings
  yield* screen.write(json ? encoder(schema)(value) : show(look(screen)))
})

/** How a list is shown: `lines` for each array that comes, `end` for what was held back. */
export interface Lines<A> {
  readonly lines: (items: ReadonlyArray<A>) => string
  readonly end?: () => string
}

/** One line of JSON for each, or what `show` makes of them. Answers how many there were. */
export const list = Effect.fnUntraced(function* <A, E, R>(
  schema: Encodable<A>,
  items: Stream.Stream<A, E, R>,
  show: (look: Look) => Lines<A>
) {
  const screen = yield* Screen
  const { json } = yield* Settings
  const encode = encoder(schema)
  const shown: Lines<A> = json ? { lines: (items) => items.map(encode).join("") } : show(look(screen))
  const write = (text: string) => (text === "" ? Effect.void : screen.write(text))
  let count = 0
  yield* Stream.runForEachArray(items, (items) => {
    count += items.length
    return write(shown.lines(items))
  })
  if (shown.end !== undefined) yield* write(shown.end())
  return count
})

/** A remark for people on standard error, or its JSON where the answer is JSON. */
export const remark = Effect.fnUntraced(function* (text: string, value: object) {
  const screen = yield* Screen
  const { json } = yield* Settings
  yield* screen.warn(json ? JSON.stringify(value) : text)
})
