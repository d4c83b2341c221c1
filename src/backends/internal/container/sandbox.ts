import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../../model/bytes.ts"
import type { Algebra } from "../../../filesystem/Filesystem.ts"
import type { ExecError, ExecOptions, ExecResult, Sandbox } from "../../../filesystem/Sandbox.ts"
import * as bounds from "../../../filesystem/sandbox/bounds.ts"
import { type Cut, cutBytes, cutCharacters, mark, textOf, textOfEnd, textOfStart } from "../../../filesystem/sandbox/streams.ts"
import * as FsError from "../../../model/FsError.ts"
import type { Fault } from "../../../model/FsError.ts"
import * as FsPath from "../../../model/FsPath.ts"
import type { Engine } from "./engine.ts"
import type { Ends } from "./collecting.ts"
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

const judge = (asked: Omit<bounds.Asked, "stdin">, options: ExecOptions, seconds: number): Fault | undefined => {
  const { cwd, env, stdin } = options
  const wrong = bounds.check("exec", {
    ...asked,
    cwd,
    env,
    stdin: isText(stdin) ? stdin : undefined,
    timeout_seconds: seconds
  })
  if (wrong !== undefined) return invalid(wrong.argument === "timeout_seconds" ? "timeout" : wrong.argument, wrong.detail)
  return isBytes(stdin) && stdin.length > bounds.maxStdin
    ? invalid("stdin", `it has ${stdin.length} bytes where ${bounds.maxStdin} are allowed; put it in a file`)
    : undefined
}

interface Bound {
  readonly most: number
  readonly cut: (text: string) => Cut
}

const inBytes: Bound = { most: bounds.maxStream / 2, cut: (text) => cutBytes(text, bounds.maxStream) }

/** Each character has at most four bytes. */
const inCharacters: Bound = { most: 2 * bounds.maxEvalStream, cut: (text) => cutCharacters(text, bounds.maxEvalStream) }

interface Shown extends Cut {
  readonly bytes: Uint8Array
}

const shownOf = ({ first, isCut, last }: Ends, { cut }: Bound): Shown => {
  const bytes = isCut ? first : Buffer.concat([first, last])
  const kept = textOfStart(first) + mark + textOfEnd(last, last.length, true)
  const shown = cut(isCut ? kept : textOf(bytes, bytes.length))
  return { text: shown.text, isCut: isCut || shown.isCut, bytes: new Uint8Array(bytes) }
}

const timeIsUp = 124

const maxTries = 3

const resultOf = (outcome: Outcome, bound: Bound, durationMillis: number, pids: number): ExecResult => {
  const [out, err] = [shownOf(outcome.stdout, bound), shownOf(outcome.stderr, bound)]
  return {
    exitCode: outcome.code ?? timeIsUp,
    stdout: out.text,
    stderr: err.text,
    stdoutBytes: out.bytes,
    durationMillis,
    timedOut: outcome.code === undefined,
    truncated: out.isCut || err.isCut,
    ...(outcome.isRefused ? { processLimit: pids } : {})
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

export interface Places {
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

export const make = ({ engine, files, plan, running }: Places): typeof Sandbox.Service => {
  let commands = 0
  let hasDetached = false

  const placeOf = (cwd: string | undefined): Effect.Effect<string, Fault> => {
    if (cwd === undefined || FsPath.parse(cwd) === FsPath.root) return Effect.succeed(plan.workdir)
    return Effect.flatMap(Effect.mapError(files.stat(cwd), FsError.toFault), ({ isDirectory, path }) =>
      isDirectory ? Effect.succeed(`${plan.workdir}/${path}`) : Effect.fail<Fault>({ _tag: "NotADirectory" })
    )
  }

  /** Runs a command, and retries in a new container if the old one ended before the command started. */
  const begun = Effect.fnUntraced(function* (command: Command) {
    for (let tries = 0; tries < maxTries; tries++) {
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
    bound: Bound
  ) {
    const directory = yield* placeOf(cwd)
    hasDetached ||= detach === true
    const { durationMillis, outcome } = yield* begun({
      directory,
      command,
      environment: env,
      input: isText(stdin) ? encoder.encode(stdin) : stdin,
      timeout: seconds * 1000,
      most: bound.most,
      detach,
      onOutput,
      isAlone: () => commands === 1 && !hasDetached
    })
    if (outcome.state === "notEntered") {
      // The directory existed a moment ago, so report why it cannot be entered.
      yield* placeOf(cwd)
      return yield* Effect.fail(denied)
    }
    return resultOf(outcome, bound, durationMillis, plan.pids)
  })

  const asking = (
    operation: string,
    { cwd }: ExecOptions,
    effect: () => Effect.Effect<ExecResult, Fault>
  ): Effect.Effect<ExecResult, ExecError> =>
    Effect.mapError(Effect.suspend(effect), (fault) => FsError.promote(fault, operation, cwd ?? FsPath.root, tags) as ExecError)

  return {
    exec: (command, options = {}) =>
      asking("exec", options, () => {
        const seconds = secondsOf(options.timeout ?? defaultTimeout)
        const fault = shapeFault(command, options) ?? judge({ command }, options, seconds)
        return fault === undefined ? run(command, options, Math.max(bounds.minTimeout, seconds), inBytes) : Effect.fail(fault)
      }),
    eval: (code, { language = plan.evalLanguage, ...options } = {}) =>
      asking("eval", options, () => {
        const seconds = secondsOf(options.timeout ?? `${bounds.evalTimeout} seconds`)
        const program = Object.hasOwn(programs, language) ? programs[language] : undefined
        if (program === undefined) return Effect.fail(invalid("language", "it must be one of javascript, python, sh"))
        if (!isText(code)) return Effect.fail(invalid("code", "it must be text"))
        const fault = shapeFault([], options) ?? judge({ code }, options, seconds)
        return fault === undefined
          ? run(program(code), options, bounds.clampedTimeout(seconds), inCharacters)
          : Effect.fail(fault)
      })
  }
}
