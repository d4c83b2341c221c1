import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { JournalError } from "../../journal/errors.ts"
import { verify as verifyFile, type Verified } from "../../journal/Journal.ts"
import { writeDocument } from "../answer.ts"
import { Complaint, notAsWrittenCode } from "../exit.ts"
import * as humanise from "../humanise.ts"
import type { TextStyle } from "../look.ts"
import { withProgress } from "../progress.ts"
import { soundPartHint } from "./advice.ts"
import { existingJournal } from "./file.ts"

const Answer = Schema.Struct({
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
    code: notAsWrittenCode
  })

const incompleteComplaint = (file: string, { damaged, missing }: Verified["contents"]): Complaint =>
  new Complaint({
    error: { _tag: "JournalError", operation: "verify", reason: "corrupt", missing, damaged },
    message: `the contents of "${file}" are damaged: ${humanise.whole(missing)} missing, ${humanise.whole(damaged)} damaged`,
    hint: "They lie beside the journal, in the directory with its name and .contents.",
    code: notAsWrittenCode
  })

const formatResult = (look: TextStyle, file: string, { after, chained, contents, entries, head, torn }: Verified): string => {
  const lines = [
    `${look.name(file)} is sound: ${humanise.count(entries, "entry")}, ${humanise.count(contents.referenced, "content")}`,
    ...(after === undefined ? [] : [`compacted: the entries up to ${after} were removed`]),
    chained
      ? `chained${head === undefined ? "" : `, with the head ${head}`}`
      : "not chained, so some changes would go unnoticed",
    ...(torn ? ["the last append was not completely written, so it counts as never made"] : [])
  ]
  return lines.map((line) => `${line}\n`).join("")
}

export const verify = Effect.fnUntraced(function* (file: string) {
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
  yield* writeDocument(Answer, { file, ...verified }, (look) => formatResult(look, file, verified))
})
