import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { type ExecError, type ExecResult, Sandbox } from "../../../filesystem/Sandbox.ts"
import { root } from "../../../model/FsPath.ts"
import type { Answer, Call, Touch, ToolFailure } from "../../definition.ts"
import { refused } from "../../definition.ts"
import { type CutText, cutToFit } from "../../../filesystem/sandbox/streams.ts"

export const Value = Schema.Struct({
  exit_code: Schema.Int,
  stdout: Schema.String,
  stderr: Schema.String,
  duration_ms: Schema.Number,
  timed_out: Schema.Boolean,
  /** True if one of the streams was cut. */
  truncated: Schema.Boolean
})

/** The touches of a program: it may change any file, so a caller without access to all files may not run one. */
export const touchesEverything: ReadonlyArray<Touch> = [
  { access: "write", path: root },
  { access: "delete", path: root }
]

const noSandbox = refused("No sandbox available.", "Provide a layer of fs-algebra's Sandbox to the tools.")

export const withSandbox = <A>(
  use: (sandbox: typeof Sandbox.Service) => Effect.Effect<A, ExecError>
): Effect.Effect<A, ToolFailure> =>
  Effect.flatMap(Effect.serviceOption(Sandbox), (sandbox) =>
    Option.isNone(sandbox) ? Effect.fail<ToolFailure>(noSandbox) : use(sandbox.value)
  )

const formatStream = (name: string, text: string): string => (text === "" ? "" : `\n${name}:\n${text.replace(/\n$/, "")}`)

const headline = ({ durationMillis, exitCode, processLimit, timedOut }: ExecResult): string => {
  const time = `${Math.round(durationMillis)} ms`
  const refused =
    processLimit === undefined
      ? ""
      : `, a process was refused because only ${processLimit} are allowed (run fewer at once, end those left running, or ask the user for more)`
  return `${timedOut ? `exit code ${exitCode}: timed out after ${time}` : `exit code ${exitCode} after ${time}`}${refused}`
}

/** Formats a result. Without a function that shortens each stream, the streams are left out. */
export const answerOf = (
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
