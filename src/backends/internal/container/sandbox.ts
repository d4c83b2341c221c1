/**
 * `exec` and `eval` as callers know them: what is asked for is judged, its directory is looked up where the files are, and what comes
 * back is cut to what anybody will read.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Algebra } from "../../../filesystem/Filesystem.ts"
import type { ExecError, ExecOptions, ExecResult, Sandbox } from "../../../filesystem/Sandbox.ts"
import * as bounds from "../../../filesystem/sandbox/bounds.ts"
import { type Cut, cutBytes, cutCharacters, mark, textOf } from "../../../filesystem/sandbox/streams.ts"
import * as FsError from "../../../model/FsError.ts"
import type { Fault } from "../../../model/FsError.ts"
import * as FsPath from "../../../model/FsPath.ts"
import type { Engine } from "./engine.ts"
import { type Command, execute, type Outcome } from "./execution.ts"
import { type Container, gone } from "./life.ts"
import type { Plan } from "./options.ts"

const defaultTimeout = "30 seconds"

const invalid = (argument: string, detail: string): Fault => ({ _tag: "InvalidArgument", argument, detail })

const isText = (value: unknown): value is string => typeof value === "string"

/** Of what no type has checked. */
const shapeFault = (command: ReadonlyArray<string>, { cwd, env, stdin }: ExecOptions): Fault | undefined => {
  if (!Array.isArray(command) || !command.every(isText)) return invalid("command", "it must be a list of texts")
  if (cwd !== undefined && !isText(cwd)) return invalid("cwd", "it must be text")
  if (env !== undefined && !Object.values(env).every(isText)) return invalid("env", "its values must be text")
  if (stdin !== undefined && !isText(stdin) && !(stdin instanceof Uint8Array))
    return invalid("stdin", "it must be text or bytes")
  return undefined
}

/** Seconds, as asked for; NaN is no time at all. */
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
  return stdin instanceof Uint8Array && stdin.length > bounds.maxStdin
    ? invalid("stdin", `it has ${stdin.length} bytes where ${bounds.maxStdin} are allowed; put it in a file`)
    : undefined
}

/** How much of a stream is shown. */
interface Bound {
  /** Bytes that are kept for it: a few more than are shown, which tell that there are more. */
  readonly most: number
  readonly cut: (bytes: Buffer) => Cut
  /** How many of the bytes lie before the cut. */
  readonly length: (bytes: Buffer) => number
}

/** Where the character of this number begins: every byte that continues none begins one. */
const startOf = (bytes: Buffer, character: number): number => {
  let left = character
  for (let at = 0; at < bytes.length; at++) if ((bytes[at]! & 0xc0) !== 0x80 && left-- === 0) return at
  return bytes.length
}

const bounded = (most: number, length: Bound["length"], cutText: (text: string) => Cut): Bound => ({
  most,
  cut: (bytes) => {
    const shown = length(bytes)
    // What is no text may grow as it is decoded.
    const cut = cutText(textOf(bytes, shown))
    return shown < bytes.length && !cut.isCut ? { text: cut.text + mark, isCut: true } : cut
  },
  length
})

const inBytes = bounded(
  bounds.maxStream + 1,
  (bytes) => Math.min(bytes.length, bounds.maxStream),
  (text) => cutBytes(text, bounds.maxStream)
)

/** A character has at most four bytes. */
const inCharacters = bounded(
  4 * bounds.maxEvalStream + 1,
  (bytes) => Math.min(startOf(bytes, bounds.maxEvalStream), 4 * bounds.maxEvalStream),
  (text) => cutCharacters(text, bounds.maxEvalStream)
)

const timeIsUp = 124

/** Containers in which a command is tried. */
const maxTries = 3

const resultOf = (outcome: Outcome, { cut, length }: Bound, durationMillis: number): ExecResult => {
  const [out, err] = [cut(outcome.stdout), cut(outcome.stderr)]
  return {
    exitCode: outcome.code ?? timeIsUp,
    stdout: out.text,
    stderr: err.text,
    stdoutBytes: new Uint8Array(outcome.stdout.subarray(0, length(outcome.stdout))),
    durationMillis,
    timedOut: outcome.code === undefined,
    truncated: out.isCut || err.isCut
  }
}

const denied: Fault = { _tag: "AccessDenied", why: "permission" }

/** What may be told of a directory that a command is to run in. */
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
  /** The files that are the container's `workdir`. */
  readonly files: Algebra
  readonly running: Effect.Effect<Container, Fault>
}

const programs = {
  javascript: (code: string) => ["node", `--eval=${code}`],
  python: (code: string) => ["python3", "-c", code],
  // Code that begins like an option is none.
  sh: (code: string) => ["sh", "-c", /^[-+]/.test(code) ? ` ${code}` : code]
} as const

export const make = ({ engine, files, plan, running }: Places): typeof Sandbox.Service => {
  /** In which it is to run, absolute, inside. Fails as looking at it fails. */
  const placeOf = (cwd: string | undefined): Effect.Effect<string, Fault> => {
    if (cwd === undefined || FsPath.parse(cwd) === FsPath.root) return Effect.succeed(plan.workdir)
    return Effect.flatMap(Effect.mapError(files.stat(cwd), FsError.toFault), ({ isDirectory, path }) =>
      isDirectory ? Effect.succeed(`${plan.workdir}/${path}`) : Effect.fail<Fault>({ _tag: "NotADirectory" })
    )
  }

  /** In another container where one has ended before it was asked, which is not always known in time. */
  const begun = Effect.fnUntraced(function* (command: Command) {
    for (let tries = 0; tries < maxTries; tries++) {
      const container = yield* running
      const before = yield* Clock.currentTimeMillis
      const outcome = yield* execute(engine, container, command)
      const durationMillis = (yield* Clock.currentTimeMillis) - before
      if (outcome.state !== "ended") return { durationMillis, outcome }
    }
    return yield* Effect.fail(gone)
  })

  const run = Effect.fnUntraced(function* (
    command: ReadonlyArray<string>,
    { cwd, env, stdin }: ExecOptions,
    seconds: number,
    bound: Bound
  ) {
    const directory = yield* placeOf(cwd)
    const { durationMillis, outcome } = yield* begun({
      directory,
      command,
      environment: env,
      input: isText(stdin) ? encoder.encode(stdin) : stdin,
      timeout: seconds * 1000,
      most: bound.most
    })
    if (outcome.state === "notEntered") {
      // It was there a moment ago.
      yield* placeOf(cwd)
      return yield* Effect.fail(denied)
    }
    return resultOf(outcome, bound, durationMillis)
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
        return fault === undefined ? run(command, options, bounds.clampedTimeout(seconds), inBytes) : Effect.fail(fault)
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
