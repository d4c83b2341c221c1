import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { duration } from "./humanise.ts"
import { styleFor, type TextStyle } from "./look.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"

/**
 * Shows a line of progress while the effect runs. The line appears only on a terminal, after one second, and disappears at the
 * end. `detail` is called each time the line is drawn.
 */
export const withProgress =
  (what: string, detail?: () => string) =>
  <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Screen> =>
    Effect.flatMap(Screen, (screen) => {
      if (!screen.showsProgress) return self
      return Effect.flatMap(Clock.currentTimeNanos, (start) => {
        const draw = Effect.flatMap(Clock.currentTimeNanos, (now) =>
          screen.status(
            [what, detail?.(), duration(now - start)].filter((part) => part !== undefined && part !== "").join(" · ")
          )
        )
        const drawRepeatedly = Effect.andThen(Effect.sleep("1 second"), Effect.repeat(draw, Schedule.spaced("200 millis")))
        return Effect.scoped(
          Effect.andThen(
            Effect.acquireRelease(Effect.forkScoped(drawRepeatedly), () => screen.status("")),
            self
          )
        ) as Effect.Effect<A, E, R>
      })
    })

type Encodable<A> = Schema.Codec<A, unknown>

const encoder = <A>(schema: Encodable<A>): ((value: A) => string) => {
  const encode = Schema.encodeSync(Schema.toCodecJson(schema))
  return (value) => `${JSON.stringify(encode(value))}\n`
}

export const writeDocument = Effect.fnUntraced(function* <A>(
  schema: Encodable<A>,
  value: A,
  show: (look: TextStyle) => string
) {
  const screen = yield* Screen
  const { json } = yield* Settings
  yield* screen.write(json ? encoder(schema)(value) : show(styleFor(screen)))
})

/** The format of a list. `lines` formats a chunk of items, and may keep some text until `end` is called. */
export interface ListFormat<A> {
  readonly lines: (items: ReadonlyArray<A>) => string
  readonly end?: () => string
}

/** Writes a list in the format of `show` or, with --json, one line of JSON per item. Returns the number of items. */
export const list = Effect.fnUntraced(function* <A, E, R>(
  schema: Encodable<A>,
  items: Stream.Stream<A, E, R>,
  show: (look: TextStyle) => ListFormat<A>
) {
  const screen = yield* Screen
  const { json } = yield* Settings
  const encode = encoder(schema)
  const listFormat: ListFormat<A> = json ? { lines: (items) => items.map(encode).join("") } : show(styleFor(screen))
  const write = (text: string) => (text === "" ? Effect.void : screen.write(text))
  let count = 0
  yield* Stream.runForEachArray(items, (items) => {
    count += items.length
    return write(listFormat.lines(items))
  })
  if (listFormat.end !== undefined) yield* write(listFormat.end())
  return count
})

export const listLines = <A, E, R>(
  schema: Encodable<A>,
  items: Stream.Stream<A, E, R>,
  line: (look: TextStyle, item: A) => string
) => list(schema, items, (look) => ({ lines: (items) => items.map((item) => line(look, item)).join("") }))

export const writeRemark = Effect.fnUntraced(function* (text: string, value: object) {
  const screen = yield* Screen
  const { json } = yield* Settings
  yield* screen.warn(json ? JSON.stringify(value) : text)
})
