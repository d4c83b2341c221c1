import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { define } from "../../definition.ts"
import * as bounds from "../../../filesystem/sandbox/bounds.ts"
import { listed } from "../../text/words.ts"
import { answerOf, withSandbox, touchesEverything, Value } from "./run.ts"
import { cutCharacters } from "../../../filesystem/sandbox/streams.ts"

/** The exit code of a shell for a missing program. */
const programNotFoundCode = 127

const interpreters = { javascript: "node", python: "python3", sh: "sh" } as const

const otherLanguages = Effect.map(
  withSandbox((sandbox) => sandbox.exec(["sh", "-c", 'for name in node python3 sh; do command -v "$name"; done'])),
  ({ stdout }) => {
    const names = new Set(stdout.split("\n").map((line) => line.slice(line.lastIndexOf("/") + 1)))
    const found = Object.entries(interpreters).flatMap(([language, program]) => (names.has(program) ? [language] : []))
    return found.length === 0 || found.length === Object.keys(interpreters).length
      ? ""
      : `\nthe image has ${listed(found)}: give one of these as language`
  }
).pipe(Effect.orElseSucceed(() => ""))

export const evaluate = define({
  name: "eval",
  description:
    "Run a few lines of code in the sandbox, for at most 5 seconds, and get what they print. Print what you want to know; nothing is kept between calls.",
  parameters: Schema.Struct({
    code: Schema.String.annotate({ description: "The program; at most 4,096 characters." }),
    language: Schema.optionalKey(
      Schema.Literals(["javascript", "python", "sh"]).annotate({
        description: "The language of the code. Default: the one the sandbox is set up for, usually javascript."
      })
    )
  }),
  value: Value,
  does: "changes",
  idempotent: false,
  examples: [{ code: "console.log(0.1 + 0.2)" }, { code: "print(sum(range(10)))", language: "python" }],
  touches: () => Effect.succeed(touchesEverything),
  handle: Effect.fnUntraced(function* ({ code, language }, call) {
    const fault = bounds.checkCommand(call.tool, { code })
    if (fault !== undefined) return yield* Effect.fail(fault)
    const options = { language, timeout: `${bounds.evalTimeoutSeconds} seconds` as const }
    const result = yield* withSandbox((sandbox) => sandbox.eval(code, options))
    const answer = answerOf(result, call.settings, (text) => cutCharacters(text, bounds.maxEvalOutputCharacters))
    const languageHint = result.exitCode === programNotFoundCode ? yield* otherLanguages : ""
    return { ...answer, message: `${answer.message}${languageHint}` }
  })
})
