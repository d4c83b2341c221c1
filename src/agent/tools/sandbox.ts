import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { type ExecError, type ExecResult, Sandbox } from "../../filesystem/Sandbox.ts"
import * as bounds from "../../filesystem/sandbox/bounds.ts"
import { cutBytes, cutCharacters, type CutText, cutToFit } from "../../filesystem/sandbox/bounds.ts"
import { root } from "../../model/FsPath.ts"
import { type Answer, type Call, define, optional, refused, type ToolFailure, type Touch } from "../definition.ts"
import { listed } from "../../model/words.ts"

// Accepts environment variables from models. The schema announces a list of names and values, because a strict schema cannot
// describe unknown keys. An object with the variables as keys is accepted too, because many models send such an object.

const Variables = Schema.Array(
  Schema.Struct({
    name: Schema.String.annotate({ description: "Letters, digits and _, at most 80, with no digit first." }),
    value: Schema.String.annotate({ description: "At most 512 characters." })
  })
).annotate({ description: "Environment variables, at most 64." })
const ByName = Schema.Record(Schema.String, Schema.String)

type Sent = typeof Variables.Type | typeof ByName.Type

const isSent = Schema.is(Schema.Union([Variables, ByName]))

const Environment: Schema.Codec<Sent> = Schema.declare<Sent>((input): input is Sent => isSent(input), {
  expected: "a list of {name, value}",
  toCodecJson: () => Schema.link<Sent>()(Variables, SchemaTransformation.passthrough() as never)
})

const isList = (sent: Sent): sent is typeof Variables.Type => Array.isArray(sent)

const byName = (sent: Sent): Readonly<Record<string, string>> =>
  isList(sent) ? Object.fromEntries(sent.map(({ name, value }) => [name, value])) : sent

const Value = Schema.Struct({
  exit_code: Schema.Int,
  stdout: Schema.String,
  stderr: Schema.String,
  duration_ms: Schema.Number,
  timed_out: Schema.Boolean,
  truncated: Schema.Boolean
})

/**
 * The accesses that each call declares. A program may change any file, so the call is refused unless the policies permit access
 * to all files.
 */
const touchesEverything: ReadonlyArray<Touch> = [
  { access: "write", path: root },
  { access: "delete", path: root }
]

const noSandbox = refused("No sandbox available.", "Provide a layer of fs-algebra's Sandbox to the tools.")

const withSandbox = <A>(use: (sandbox: typeof Sandbox.Service) => Effect.Effect<A, ExecError>): Effect.Effect<A, ToolFailure> =>
  Effect.flatMap(Effect.serviceOption(Sandbox), (sandbox) =>
    Option.isNone(sandbox) ? Effect.fail<ToolFailure>(noSandbox) : use(sandbox.value)
  )

const formatStream = (name: string, text: string): string => (text === "" ? "" : `\n${name}:\n${text.replace(/\n$/, "")}`)

const headline = ({ durationMillis, exitCode, processLimit, timedOut }: ExecResult): string => {
  const time = `${Math.round(durationMillis)} ms`
  const refused =
    processLimit === undefined
      ? ""
      : `, a process was refused because only ${processLimit} are allowed (run fewer processes at once, end processes that are still running, or ask the user for a higher limit)`
  return `${timedOut ? `exit code ${exitCode}: timed out after ${time}` : `exit code ${exitCode} after ${time}`}${refused}`
}

const answerOf = (
  result: ExecResult,
  { budget, measure }: Call["settings"],
  cutStream: ((text: string) => CutText) | undefined
): Answer<typeof Value.Type> => {
  const [out, err] = [cutStream?.(result.stdout), cutStream?.(result.stderr)]
  const truncated = cutStream !== undefined && (result.truncated || (out?.isCut ?? false) || (err?.isCut ?? false))
  const head = `${headline(result)}${truncated ? ", the output is cut" : ""}`
  const message = (stdout: string, stderr: string): string => {
    const streams = formatStream("stdout", stdout) + formatStream("stderr", stderr)
    return streams === "" && cutStream !== undefined ? `${head}, no output` : head + streams
  }
  const shown = cutToFit([out?.text ?? "", err?.text ?? ""], (stdout, stderr) => measure(message(stdout, stderr)) <= budget)
  return {
    message: message(...shown),
    value: {
      exit_code: result.exitCode,
      stdout: out?.text ?? "",
      stderr: err?.text ?? "",
      duration_ms: result.durationMillis,
      timed_out: result.timedOut,
      truncated
    }
  }
}

const programNotFoundCode = 127

const interpreters = { javascript: "node", python: "python3", sh: "sh" } as const

const otherLanguages = Effect.map(
  withSandbox((sandbox) => sandbox.exec(["sh", "-c", 'for name in node python3 sh; do command -v "$name"; done'])),
  ({ stdout }) => {
    const names = new Set(stdout.split("\n").map((line) => line.slice(line.lastIndexOf("/") + 1)))
    const found = Object.entries(interpreters).flatMap(([language, program]) => (names.has(program) ? [language] : []))
    return found.length === 0 || found.length === Object.keys(interpreters).length
      ? ""
      : `\nthe image has ${listed(found)}: set language to one of these`
  }
).pipe(Effect.orElseSucceed(() => ""))

export const evaluate = define({
  name: "eval",
  description:
    "Run a few lines of code in the sandbox, for at most 5 seconds, and get what they print. Print what you want to know; nothing is kept between calls.",
  parameters: Schema.Struct({
    code: Schema.String.annotate({ description: "The program; at most 4,096 characters." }),
    language: optional(
      Schema.Literals(["javascript", "python", "sh"]),
      "The language of the code. Default: the language of the sandbox, usually javascript."
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

const defaultTimeoutSeconds = 30

/** Returns the arguments to run. The space before the command keeps sh from reading the command as an option. */
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
    cwd: optional(Schema.String, 'The directory to run in, relative to the root, without "." and "..". Default: the root.'),
    env: Schema.optionalKey(Environment),
    stdin: optional(Schema.String, "The program's standard input; at most 48,000 characters. Default: nothing."),
    timeout_seconds: optional(
      Schema.Finite,
      "Seconds after which the program is stopped, with exit code 124; from 1 to 120. Default: 30."
    ),
    detach: optional(
      Schema.Boolean,
      "Whether background processes, such as a server, keep running after the command. Default: false, they end with the command."
    ),
    capture_output: optional(Schema.Boolean, "Whether to return the output; false returns only the exit code. Default: true.")
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
