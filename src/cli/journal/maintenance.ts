import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type Compacted, type Verified, verify as verifyFile } from "../../journal/Journal.ts"
import type { JournalError } from "../../journal/errors.ts"
import { soundPartHint } from "../advice.ts"
import { withProgress, writeDocument } from "../answer.ts"
import { Complaint, damagedCode, usage } from "../exit.ts"
import * as humanise from "../humanise.ts"
import type { TextStyle } from "../look.ts"
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
  unanswered: "a leaf has not answered the request at this position yet",
  recent: "a leaf needs the latest entries to recognise repeated requests"
}

const formatResult = (look: TextStyle, file: string, { contents, first, kept, removed }: Compacted): string =>
  `${
    removed === 0
      ? `Removed nothing from ${look.name(file)}`
      : `Removed ${humanise.count(removed, "entry")} and ${humanise.count(contents, "content")} from ${look.name(file)}`
  }; it begins at position ${look.yellow(`${first}`)}${kept === undefined ? "" : `, since ${reasons[kept]}`}\n`

export const compact = Effect.fnUntraced(function* ({ before, file }: { readonly file: string; readonly before: string }) {
  const path = yield* existingJournal(file)
  const removeBefore = yield* parseBefore(before)
  const { compact } = yield* Effect.promise(() => import("../../journal/Journal.ts"))
  const compacted = yield* compact(path, { before: removeBefore }).pipe(withProgress(`Compacting ${file}`))
  yield* writeDocument(Answer, { file, ...compacted }, (look) => formatResult(look, file, compacted))
})

const VerifyAnswer = Schema.Struct({
  file: Schema.String,
  entries: Schema.Int,
  after: Schema.optionalKey(Schema.Int),
  chained: Schema.Boolean,
  head: Schema.optionalKey(Schema.String),
  torn: Schema.Boolean,
  contents: Schema.Struct({ referenced: Schema.Int, missing: Schema.Int, damaged: Schema.Int })
})

const corruptComplaint = (file: string, { _tag, detail, operation, position, reason }: JournalError): Complaint =>
  new Complaint({
    error: { _tag, operation, reason, detail, ...(position !== undefined && { position }) },
    message: `"${file}" is damaged: ${detail}`,
    hint: position === undefined ? "Give a journal that --journal FILE recorded." : soundPartHint(position),
    code: damagedCode
  })

const incompleteComplaint = (file: string, { damaged, missing }: Verified["contents"]): Complaint =>
  new Complaint({
    error: { _tag: "JournalError", operation: "verify", reason: "corrupt", missing, damaged },
    message: `the contents of "${file}" are damaged: ${humanise.whole(missing)} missing, ${humanise.whole(damaged)} damaged`,
    hint: "The contents are stored beside the journal, in the directory FILE.contents.",
    code: damagedCode
  })

const formatVerification = (
  look: TextStyle,
  file: string,
  { after, chained, contents, entries, head, torn }: Verified
): string => {
  const lines = [
    `${look.name(file)} is sound: ${humanise.count(entries, "entry")}, ${humanise.count(contents.referenced, "content")}`,
    ...(after === undefined ? [] : [`compacted: the entries up to ${after} were removed`]),
    chained
      ? `chained${head === undefined ? "" : `, with the head ${head}`}`
      : "without a hash chain, so some changes would go unnoticed",
    ...(torn ? ["the last append is incomplete and is ignored"] : [])
  ]
  return lines.map((line) => `${line}\n`).join("")
}

export const verify = Effect.fnUntraced(function* ({ file }: { readonly file: string }) {
  const path = yield* existingJournal(file)
  const verified = yield* verifyFile(path).pipe(
    withProgress(`Reading ${file}`),
    Effect.catchIf(
      ({ reason }) => reason === "corrupt",
      (error) => Effect.fail(corruptComplaint(file, error))
    )
  )
  const { contents } = verified
  if (contents.missing > 0 || contents.damaged > 0) return yield* incompleteComplaint(file, contents)
  yield* writeDocument(VerifyAnswer, { file, ...verified }, (look) => formatVerification(look, file, verified))
})
