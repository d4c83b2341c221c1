import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../../model/bytes.ts"
import type { Algebra } from "../../../filesystem/Filesystem.ts"
import type { ExecError, ExecOptions, ExecResult, Sandbox } from "../../../filesystem/Sandbox.ts"
import * as bounds from "../../../filesystem/sandbox/bounds.ts"
import {
  type CutText,
  cutBytes,
  cutCharacters,
  cutMark,
  textOf,
  textOfEnd,
  textOfStart
} from "../../../filesystem/sandbox/streams.ts"
import * as FsError from "../../../model/FsError.ts"
import type { Fault } from "../../../model/FsError.ts"
import * as FsPath from "../../../model/FsPath.ts"
import type { Engine } from "./engine.ts"
import type { OutputEnds } from "./collecting.ts"
import { type Command, execute, type Outcome } from "./execution.ts"
import { type Container, gone } from "./life.ts"
import type { Plan } from "./options.ts"

const defaultTimeout = "30 seconds"

const invalid = (argument: string, detail: string): Fault => ({ _tag: "InvalidArgument", argument, detail })

const isText = (value: unknown): value is string => typeof value === "string"

const shapeFault = (command: ReadonlyArray<string>, { cwd, env, stdin }: ExecOptions): Fault | undefined => {
  if (!Array.isArray(command) || !command.every(isText)) return invalid("command", "it must be a list of texts")
  if (cwd !== undefined && !isText(cwd)) return invalid("cwd", "it must be text")
  if (env !== undefined && !Object.values(env).every(isText)) return invalid("env", "its values must be text")
  if (stdin !== undefined && !isText(stdin) && !isBytes(stdin) && !Stream.isStream(stdin))
    return invalid("stdin", "it must be text, bytes or a stream of bytes")
  return undefined
}

const secondsOf = (timeout: Duration.Input): number => {
  if (typeof timeout === "number" && Number.isNaN(timeout)) return Number.NaN
  try {
    return Duration.toSeconds(timeout)
  } catch {
    return Number.NaN
  }
}

const checkBounds = (asked: Omit<bounds.CommandRequest, "stdin">, options: ExecOptions, seconds: number): Fault | undefined => {
  const { cwd, env, stdin } = options
  const wrong = bounds.checkCommand("exec", {
    ...asked,
    cwd,
    env,
    stdin: isText(stdin) ? stdin : undefined,
    timeout_seconds: seconds
  })
  if (wrong !== undefined) return invalid(wrong.argument === "timeout_seconds" ? "timeout" : wrong.argument, wrong.detail)
  return isBytes(stdin) && stdin.length > bounds.maxStdinCharacters
    ? invalid("stdin", `it has ${stdin.length} bytes where ${bounds.maxStdinCharacters} are allowed; put it in a file`)
    : undefined
}

interface OutputLimit {
  readonly keptBytes: number
  readonly cut: (text: string) => CutText
}

const byteLimit: OutputLimit = { keptBytes: bounds.maxOutputBytes / 2, cut: (text) => cutBytes(text, bounds.maxOutputBytes) }

/** Each character has at most four bytes. */
const characterLimit: OutputLimit = {
  keptBytes: 2 * bounds.maxEvalOutputCharacters,
  cut: (text) => cutCharacters(text, bounds.maxEvalOutputCharacters)
}

interface ShownOutput extends CutText {
  readonly bytes: Uint8Array
}

const shownOf = ({ first, isCut, last }: OutputEnds, { cut }: OutputLimit): ShownOutput => {
  const bytes = isCut ? first : Buffer.concat([first, last])
  const kept = textOfStart(first) + cutMark + textOfEnd(last, last.length, true)
  const shown = cut(isCut ? kept : textOf(bytes, bytes.length))
  return { text: shown.text, isCut: isCut || shown.isCut, bytes: new Uint8Array(bytes) }
}

const timeoutExitCode = 124

const maxContainers = 3

const resultOf = (outcome: Outcome, outputLimit: OutputLimit, durationMillis: number, pids: number): ExecResult => {
  const [out, err] = [shownOf(outcome.stdout, outputLimit), shownOf(outcome.stderr, outputLimit)]
  return {
    exitCode: outcome.code ?? timeoutExitCode,
    stdout: out.text,
    stderr: err.text,
    stdoutBytes: out.bytes,
    durationMillis,
    timedOut: outcome.code === undefined,
    truncated: out.isCut || err.isCut,
    ...(outcome.hasReachedProcessLimit ? { processLimit: pids } : {})
  }
}

const denied: Fault = { _tag: "AccessDenied", why: "permission" }

const tags = new Set([
  ...FsError.tagsOf(FsError.PathError),
  ...FsError.tagsOf(FsError.BackendError),
  "NotFound",
  "NotADirectory",
  "InvalidArgument"
])

const encoder = new TextEncoder()

export interface SandboxParts {
  readonly engine: Engine
  readonly plan: Plan
  readonly files: Algebra
  readonly running: Effect.Effect<Container, Fault>
}

const programs = {
  javascript: (code: string) => ["node", `--eval=${code}`],
  python: (code: string) => ["python3", "-c", code],
  // The shell would interpret code that begins like an option, so a blank is added.
  sh: (code: string) => ["sh", "-c", /^[-+]/.test(code) ? ` ${code}` : code]
} as const

export const make = ({ engine, files, plan, running }: SandboxParts): typeof Sandbox.Service => {
  let commands = 0
  let hasDetached = false

  const placeOf = (cwd: string | undefined): Effect.Effect<string, Fault> => {
    if (cwd === undefined || FsPath.parse(cwd) === FsPath.root) return Effect.succeed(plan.workdir)
    return Effect.flatMap(Effect.mapError(files.stat(cwd), FsError.toFault), ({ isDirectory, path }) =>
      isDirectory ? Effect.succeed(`${plan.workdir}/${path}`) : Effect.fail<Fault>({ _tag: "NotADirectory" })
    )
  }

  /** Runs a command, and retries in a new container if the old one ended before the command started. */
  const runInContainer = Effect.fnUntraced(function* (command: Command) {
    for (let tries = 0; tries < maxContainers; tries++) {
      const container = yield* running
      const before = yield* Clock.currentTimeMillis
      const outcome = yield* Effect.acquireUseRelease(
        Effect.sync(() => void commands++),
        () => execute(engine, container, command),
        () => Effect.sync(() => void commands--)
      )
      const durationMillis = (yield* Clock.currentTimeMillis) - before
      if (outcome.state !== "ended") return { durationMillis, outcome }
    }
    return yield* Effect.fail(gone)
  })

  const run = Effect.fnUntraced(function* (
    command: ReadonlyArray<string>,
    { cwd, detach, env, onOutput, stdin }: ExecOptions,
    seconds: number,
    outputLimit: OutputLimit
  ) {
    const directory = yield* placeOf(cwd)
    hasDetached ||= detach === true
    const { durationMillis, outcome } = yield* runInContainer({
      directory,
      command,
      environment: env,
      input: isText(stdin) ? encoder.encode(stdin) : stdin,
      timeout: seconds * 1000,
      keptBytes: outputLimit.keptBytes,
      detach,
      onOutput,
      isAlone: () => commands === 1 && !hasDetached
    })
    if (outcome.state === "notEntered") {
      // The directory existed a moment ago, so report why it cannot be entered.
      yield* placeOf(cwd)
      return yield* Effect.fail(denied)
    }
    return resultOf(outcome, outputLimit, durationMillis, plan.pids)
  })

  const withExecError = (
    operation: string,
    { cwd }: ExecOptions,
    effect: () => Effect.Effect<ExecResult, Fault>
  ): Effect.Effect<ExecResult, ExecError> =>
    Effect.mapError(Effect.suspend(effect), (fault) => FsError.promote(fault, operation, cwd ?? FsPath.root, tags) as ExecError)

  return {
    exec: (command, options = {}) =>
      withExecError("exec", options, () => {
        const seconds = secondsOf(options.timeout ?? defaultTimeout)
        const fault = shapeFault(command, options) ?? checkBounds({ command }, options, seconds)
        return fault === undefined
          ? run(command, options, Math.max(bounds.minTimeoutSeconds, seconds), byteLimit)
          : Effect.fail(fault)
      }),
    eval: (code, { language = plan.evalLanguage, ...options } = {}) =>
      withExecError("eval", options, () => {
        const seconds = secondsOf(options.timeout ?? `${bounds.evalTimeoutSeconds} seconds`)
        const program = Object.hasOwn(programs, language) ? programs[language] : undefined
        if (program === undefined) return Effect.fail(invalid("language", "it must be one of javascript, python, sh"))
        if (!isText(code)) return Effect.fail(invalid("code", "it must be text"))
        const fault = shapeFault([], options) ?? checkBounds({ code }, options, seconds)
        return fault === undefined
          ? run(program(code), options, bounds.clampedTimeout(seconds), characterLimit)
          : Effect.fail(fault)
      })
  }
}
