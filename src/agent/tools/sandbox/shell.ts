/** `shell`: one program, found and run in the sandbox. It is no shell unless the command asks for one, so nothing is expanded. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { define } from "../../definition.ts"
import * as bounds from "../../../filesystem/sandbox/bounds.ts"
import { byName, Environment } from "./environment.ts"
import { answerOf, asking, everything, Value } from "./run.ts"
import { cutBytes } from "../../../filesystem/sandbox/streams.ts"

const defaultTimeout = 30

export const shell = define({
  name: "shell",
  description:
    "Run one program in the sandbox and get its exit code and output. No shell syntax: for pipes or globs run sh -c, for files use the file tools.",
  parameters: Schema.Struct({
    command: Schema.Array(Schema.String).annotate({
      description:
        'The program and its arguments, one each, as in ["grep", "-c", "a b", "notes.txt"]; at most 4,096 characters in all.'
    }),
    cwd: Schema.optionalKey(
      Schema.String.annotate({
        description: 'The directory to run in, relative to the root, without "." and "..". Default: the root.'
      })
    ),
    env: Schema.optionalKey(Environment),
    stdin: Schema.optionalKey(
      Schema.String.annotate({
        description: "What the program reads from its standard input; at most 48,000 characters. Default: nothing."
      })
    ),
    timeout_seconds: Schema.optionalKey(
      Schema.Finite.annotate({
        description: "After so many seconds the program is stopped, with exit code 124; from 1 to 120. Default: 30."
      })
    ),
    capture_output: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "Whether to answer what it writes; if not, only the exit code. Default: true." })
    )
  }),
  value: Value,
  does: "changes",
  idempotent: false,
  examples: [
    { command: ["node", "--test"], timeout_seconds: 60 },
    { command: ["sh", "-c", "ls *.md | wc -l"], cwd: "docs", env: [{ name: "LC_ALL", value: "C" }] }
  ],
  touches: () => Effect.succeed(everything),
  handle: Effect.fnUntraced(function* (params, call) {
    const env = params.env && byName(params.env)
    const wrong = bounds.check(call.tool, { ...params, env, cwd: params.cwd?.trim() })
    if (wrong !== undefined) return yield* Effect.fail(wrong)
    const cwd = params.cwd === undefined ? undefined : yield* call.path(params.cwd, { argument: "cwd", blank: "root" })
    const seconds = bounds.clampedTimeout(params.timeout_seconds ?? defaultTimeout)
    const options = { cwd, env, stdin: params.stdin, timeout: `${seconds * 1000} millis` as const }
    const result = yield* asking((sandbox) => sandbox.exec(params.command, options))
    const captures = params.capture_output ?? true
    return answerOf(result, call.settings, captures ? (text) => cutBytes(text, bounds.maxStream) : undefined)
  })
})
