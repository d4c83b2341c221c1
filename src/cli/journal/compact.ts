import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type { Compacted } from "../../journal/Journal.ts"
import { writeDocument } from "../answer.ts"
import { usage } from "../exit.ts"
import * as humanise from "../humanise.ts"
import type { TextStyle } from "../look.ts"
import { withProgress } from "../progress.ts"
import { existingJournal } from "./file.ts"

const Answer = Schema.Struct({
  file: Schema.String,
  removed: Schema.Int,
  first: Schema.Int,
  contents: Schema.Int,
  kept: Schema.optionalKey(Schema.Literals(["unanswered", "recent"]))
})

const parseBefore = (text: string) => {
  if (/^[1-9][0-9]*$/.test(text) && Number.isSafeInteger(Number(text))) return Effect.succeed(Number(text))
  const time = /^\d{4}-/.test(text) ? DateTime.make(text) : Option.none()
  return Option.isSome(time)
    ? Effect.succeed(DateTime.toUtc(time.value))
    : usage(
        `"${text}" is neither a position nor a time`,
        "Give a position, from 1 on, or a time such as 2026-01-31 or 2026-01-31T12:00:00Z."
      )
}

const reasons: Readonly<Record<NonNullable<Compacted["kept"]>, string>> = {
  unanswered: "a leaf has not answered the request there yet",
  recent: "a leaf needs the latest entries to recognise repeated requests"
}

const formatResult = (look: TextStyle, file: string, { contents, first, kept, removed }: Compacted): string =>
  `${
    removed === 0
      ? `Removed nothing from ${look.name(file)}`
      : `Removed ${humanise.count(removed, "entry")} and ${humanise.count(contents, "content")} from ${look.name(file)}`
  }; it begins at position ${look.yellow(`${first}`)}${kept === undefined ? "" : `, since ${reasons[kept]}`}\n`

export const compact = Effect.fnUntraced(function* (file: string, { before }: { readonly before: string }) {
  const path = yield* existingJournal(file)
  const removeBefore = yield* parseBefore(before)
  const { compact } = yield* Effect.promise(() => import("../../journal/Journal.ts"))
  const compacted = yield* compact(path, { before: removeBefore }).pipe(withProgress(`Compacting ${file}`))
  yield* writeDocument(Answer, { file, ...compacted }, (look) => formatResult(look, file, compacted))
})
