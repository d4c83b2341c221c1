import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { define } from "../../definition.ts"
import * as bounds from "../../../filesystem/sandbox/bounds.ts"
import { byName, Environment } from "./environment.ts"
import { answerOf, withSandbox, touchesEverything, Value } from "./run.ts"
import { cutBytes } from "../../../filesystem/sandbox/streams.ts"

const defaultTimeoutSeconds = 30

/** Returns the arguments to run. The space before the line keeps sh from taking it as an option. */
const argv = (command: string | ReadonlyArray<string>): ReadonlyArray<string> =>
  typeof command !== "string"
    ? command
    : command.trim() === ""
      ? []
      : ["sh", "-c", /^[-+]/.test(command) ? ` ${command}` : command]

export const shell = define({
  name: "shell",
  description:
    "Run a command in the sandbox and get its exit code and output. For reading and changing files use the file tools.",
  parameters: Schema.Struct({
    command: Schema.Union([Schema.Array(Schema.String), Schema.String]).annotate({
      description:
        'A line for sh, such as "npm test | tail", or a program and its arguments, such as ["grep", "-c", "a b", "notes.txt"]; at most 4,096 characters'
    }),
    cwd: Schema.optionalKey(
      Schema.String.annotate({
        description: 'The directory to run in, relative to the root, without "." and "..". Default: the root.'
      })
    ),
    env: Schema.optionalKey(Environment),
    stdin: Schema.optionalKey(
      Schema.String.annotate({
        description: "The program's standard input; at most 48,000 characters. Default: nothing."
      })
    ),
    timeout_seconds: Schema.optionalKey(
      Schema.Finite.annotate({
        description: "Seconds after which the program is stopped, with exit code 124; from 1 to 120. Default: 30."
      })
    ),
    detach: Schema.optionalKey(
      Schema.Boolean.annotate({
        description:
          "Whether background processes, such as a server, keep running; if not, they end with the command. Default: false."
      })
    ),
    capture_output: Schema.optionalKey(
      Schema.Boolean.annotate({ description: "Whether to return its output; if not, only the exit code. Default: true." })
    )
  }),
  value: Value,
  does: "changes",
  idempotent: false,
  examples: [
    { command: ["node", "--test"], timeout_seconds: 60 },
    { command: "ls *.md | wc -l", cwd: "docs", env: [{ name: "LC_ALL", value: "C" }] }
  ],
  touches: () => Effect.succeed(touchesEverything),
  handle: Effect.fnUntraced(function* (params, call) {
    const env = params.env && byName(params.env)
    const command = argv(params.command)
    const fault = bounds.checkCommand(call.tool, { ...params, command, env, cwd: params.cwd?.trim() })
    if (fault !== undefined) return yield* Effect.fail(fault)
    const cwd = params.cwd === undefined ? undefined : yield* call.path(params.cwd, { argument: "cwd", blank: "root" })
    const seconds = bounds.clampedTimeout(params.timeout_seconds ?? defaultTimeoutSeconds)
    const options = { cwd, env, stdin: params.stdin, detach: params.detach, timeout: `${seconds * 1000} millis` as const }
    const result = yield* withSandbox((sandbox) => sandbox.exec(command, options))
    const captures = params.capture_output ?? true
    return answerOf(result, call.settings, captures ? (text) => cutBytes(text, bounds.maxOutputBytes) : undefined)
  })
})
