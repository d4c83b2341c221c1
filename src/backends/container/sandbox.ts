import { invalidArgument, notADirectory, unavailable } from "../../model/Fault.ts"
import { permission } from "../faults.ts"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { ExecError, ExecOptions, ExecResult, Sandbox } from "../../filesystem/Sandbox.ts"
import * as bounds from "../../filesystem/sandbox/bounds.ts"
import {
  cutBytes,
  cutCharacters,
  cutMark,
  type CutText,
  textOf,
  textOfEnd,
  textOfStart
} from "../../filesystem/sandbox/bounds.ts"
import * as FsError from "../../model/FsError.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import * as CommandLine from "./commandLine.ts"
import {
  codeOf,
  type Engine,
  engineFault,
  inRealTime,
  makeAnnouncement,
  makeEndsCollector,
  type OutputEnds,
  readForwarding
} from "./engine.ts"
import { type Container, gone, random } from "./lifecycle.ts"
import type { Plan } from "./options.ts"

// Runs one command in a container until none of its processes is left.
//
// Killing the engine's client ends nothing in the container. So the processes are killed inside the container. The end
// of the client shows that the command has ended.

interface Command extends Pick<ExecOptions, "detach" | "onOutput"> {
  readonly directory: string
  readonly command: ReadonlyArray<string>
  readonly environment: Readonly<Record<string, string>> | undefined
  readonly input: Uint8Array | Stream.Stream<Uint8Array> | undefined
  readonly timeout: Duration.Input
  readonly isAlone: () => boolean
  readonly keptBytes: number
}

interface Outcome {
  /**
   * The progress of the command. `notEntered`: the working directory could not be entered. `ended`: the container had
   * ended before the command began.
   */
  readonly state: "begun" | "notEntered" | "ended"
  readonly code: number | undefined
  readonly stdout: OutputEnds
  readonly stderr: OutputEnds
  readonly hasReachedProcessLimit: boolean
}

interface RunningState {
  readonly isEnded: () => boolean
  /** Returns the start time (clock ticks since boot) and the pid of the command, or an empty text before its start. */
  readonly since: () => string
}

const inputCheckInterval = "200 millis"
const killInterval = "30 millis"
/**
 * The time to wait for the answer to the first kill request, in milliseconds. The time doubles after each unanswered
 * request.
 */
const firstKillTimeoutMillis = 1000
/** The time in milliseconds after which a container that does not answer counts as dead. */
const aliveTimeoutMillis = 5000
/**
 * The time after which the container is ended, if its processes start other processes faster than they can be killed.
 */
const maxKillTime = "20 seconds"

/**
 * The result of a kill request. `done`: no process is left. `again`: some processes may be left. `unanswered`: the
 * container did not answer in time.
 */
type KillResult = "done" | "again" | "unanswered"

const killAll = (container: Container, mark: string, running: RunningState): Effect.Effect<void> => {
  const killOnce = (wait: number): Effect.Effect<KillResult> =>
    Effect.suspend(() => {
      if (container.isEnded()) return Effect.succeed("done")
      const wasEnded = running.isEnded()
      return Effect.match(Effect.timeoutOption(container.kill(mark, running.since()), wait), {
        onFailure: (): KillResult => (container.isEnded() ? "done" : "again"),
        onSuccess: (count): KillResult =>
          Option.isNone(count)
            ? "unanswered"
            : // The engine's client may be about to start the command, unless it has ended or the command has started.
              count.value === 0 && (wasEnded || running.since() !== "")
              ? "done"
              : "again"
      })
    })
  // The container handles requests in order, so each request delays the answers to later requests. Wait longer each
  // time.
  const repeated = (wait: number): Effect.Effect<void> =>
    Effect.flatMap(killOnce(wait), (killing) =>
      killing === "done"
        ? Effect.void
        : Effect.andThen(Effect.sleep(killInterval), repeated(killing === "unanswered" ? wait * 2 : wait))
    )
  return inRealTime(
    Effect.timeoutOrElse(repeated(firstKillTimeoutMillis), { duration: maxKillTime, orElse: () => container.end })
  )
}

/** Tests whether an exit code may mean that the engine failed or the container ended, rather than the command. */
const mayBeEngineExit = (code: number | undefined): boolean => code === undefined || code >= 125

/**
 * Ends the input when the command has ended.
 *
 * Otherwise the engine would continue to read the input. With an endless stream or a terminal, the call would never
 * end.
 */
const stopInputAfterEnd = (container: Container, input: Stream.Stream<Uint8Array>, running: RunningState) =>
  Effect.gen(function* () {
    const over = yield* Deferred.make<void>()
    const isOver = Effect.suspend(() =>
      running.since() === ""
        ? Effect.succeed(false)
        : Effect.map(container.isRunning(running.since()), (isRunning) => !isRunning)
    )
    const watching = Effect.repeat(Effect.delay(isOver, inputCheckInterval), { until: (isSo) => isSo })
    yield* Effect.forkScoped(Effect.andThen(Effect.exit(inRealTime(watching)), Deferred.succeed(over, undefined)))
    return Stream.interruptWhen(input, Deferred.await(over))
  })

const isAlive = (container: Container): Effect.Effect<boolean> =>
  inRealTime(
    Effect.match(Effect.timeoutOption(container.kill("-", ""), aliveTimeoutMillis), {
      onFailure: () => false,
      onSuccess: () => !container.isEnded()
    })
  )

const startCommand = Effect.fnUntraced(function* (
  engine: Engine,
  container: Container,
  { command, directory, environment, input, isAlone, keptBytes: maxKeptBytes, onOutput }: Command
) {
  const mark = random()
  const args = { name: container.name, mark, directory, command, environment, hasInput: input !== undefined }
  const [stdout, stderr] = [makeEndsCollector(maxKeptBytes), makeEndsCollector(maxKeptBytes)]
  const announced = makeAnnouncement(mark)
  let isEnded = false
  const running = { isEnded: () => isEnded, since: () => /^goes ([0-9]+ [0-9]+)$/.exec(announced.line() ?? "")?.[1] ?? "" }
  const commandInput = Stream.isStream(input) ? yield* stopInputAfterEnd(container, input, running) : input
  const client = yield* engine.start(CommandLine.exec(args), commandInput)
  const pass = (stream: "stdout" | "stderr") => (bytes: Uint8Array) =>
    onOutput === undefined || bytes.length === 0 ? Effect.void : onOutput(bytes, stream)
  const ending = Effect.tap(codeOf(client), () => Effect.sync(() => (isEnded = true)))
  const finishing = yield* Effect.forkScoped(
    Effect.map(
      Effect.all(
        [
          ending,
          readForwarding(client.stdout, stdout.take, pass("stdout")),
          readForwarding(Stream.map(client.stderr, announced.strip), stderr.take, pass("stderr"))
        ],
        { concurrency: "unbounded" }
      ),
      ([code]) => code
    )
  )
  const kill = killAll(container, mark, running)
  /**
   * Kills the remaining processes of the command. Kills processes without a mark only if no other running command may
   * have started them.
   */
  const killRemaining = Effect.suspend(() => killAll(container, mark, isAlone() ? running : { ...running, since: () => "" }))
  yield* Effect.addFinalizer(() => (isEnded ? Effect.void : kill))
  return { announced, finishing, kill, killRemaining, stdout, stderr }
})

/** Runs a command. Fails with Unavailable if the engine cannot run it or its result is unknown. */
const execute = (engine: Engine, container: Container, requested: Command): Effect.Effect<Outcome, Fault> =>
  Effect.scoped(
    Effect.gen(function* () {
      const refusedBefore = container.refused()
      const { announced, finishing, kill, killRemaining, stderr, stdout } = yield* Effect.uninterruptible(
        startCommand(engine, container, requested)
      )
      const outcome = (code: number | undefined): Outcome => ({
        state: announced.line() === "stays" ? "notEntered" : "begun",
        code,
        stdout: stdout.ends(),
        stderr: stderr.ends(),
        hasReachedProcessLimit: container.refused() > refusedBefore
      })
      const exitInTime = yield* Effect.timeoutOption(Fiber.await(finishing), requested.timeout)
      if (Option.isNone(exitInTime)) {
        yield* kill
        // Wait for the last output, but only for a limited time, because the caller may have stopped reading.
        yield* inRealTime(Effect.timeoutOption(Fiber.await(finishing), firstKillTimeoutMillis))
        return outcome(undefined)
      }
      const code = yield* Fiber.join(finishing)
      if (mayBeEngineExit(code) && !(yield* isAlive(container))) {
        yield* container.end
        return announced.line() === undefined ? { ...outcome(code), state: "ended" as const } : yield* Effect.fail(gone)
      }
      if (announced.line() === undefined) {
        return yield* Effect.fail(
          engineFault(engine.program, "cannot run commands in the container", { code, stderr: announced.before() })
        )
      }
      if (code === undefined) {
        yield* kill
        return yield* Effect.fail(unavailable(`${engine.program} was killed while it was running the command`))
      }
      // `isAlive` and `killRemaining` also update the number of refused processes.
      yield* requested.detach === true ? isAlive(container) : killRemaining
      // If the container died together with the command, the end of the container may become known after the end of the
      // client. So test for the end of the container last.
      if (mayBeEngineExit(code) && container.isEnded()) return yield* Effect.fail(gone)
      return outcome(code)
    })
  )

const defaultTimeout = "30 seconds"

const isText = (value: unknown): value is string => typeof value === "string"

const shapeFault = (command: ReadonlyArray<string>, { cwd, env, stdin }: ExecOptions): Fault | undefined => {
  if (!Array.isArray(command) || !command.every(isText)) return invalidArgument("command", "it must be an array of strings")
  if (cwd !== undefined && !isText(cwd)) return invalidArgument("cwd", "it must be a string")
  if (env !== undefined && !Object.values(env).every(isText))
    return invalidArgument("env", "the values of the variables must be strings")
  if (stdin !== undefined && !isText(stdin) && !isBytes(stdin) && !Stream.isStream(stdin))
    return invalidArgument("stdin", "it must be a string, a Uint8Array or a stream of bytes")
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
  if (wrong !== undefined)
    return invalidArgument(wrong.argument === "timeout_seconds" ? "timeout" : wrong.argument, wrong.detail)
  return isBytes(stdin) && stdin.length > bounds.maxStdinCharacters
    ? invalidArgument(
        "stdin",
        `it has ${stdin.length} bytes, but at most ${bounds.maxStdinCharacters} are allowed; write it to a file instead`
      )
    : undefined
}

interface OutputLimit {
  readonly keptBytes: number
  readonly cut: (text: string) => CutText
}

const byteLimit: OutputLimit = { keptBytes: bounds.maxOutputBytes / 2, cut: (text) => cutBytes(text, bounds.maxOutputBytes) }

/** The limit of `eval` output in characters. Each end keeps half of them, with at most four bytes per character. */
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

const tags = new Set([
  ...FsError.tagsOf(FsError.PathError),
  ...FsError.tagsOf(FsError.BackendError),
  "NotFound",
  "NotADirectory",
  "InvalidArgument"
])

const encoder = new TextEncoder()

interface SandboxParts {
  readonly engine: Engine
  readonly plan: Plan
  readonly files: Algebra
  readonly running: Effect.Effect<Container, Fault>
}

const programs = {
  javascript: (code: string) => ["node", `--eval=${code}`],
  python: (code: string) => ["python3", "-c", code],
  // The shell would interpret code that begins with "-" or "+" as options, so add a space.
  sh: (code: string) => ["sh", "-c", /^[-+]/.test(code) ? ` ${code}` : code]
} as const

export const make = ({ engine, files, plan, running }: SandboxParts): typeof Sandbox.Service => {
  let commands = 0
  let hasDetached = false

  const placeOf = (cwd: string | undefined): Effect.Effect<string, Fault> => {
    if (cwd === undefined || FsPath.parse(cwd) === FsPath.root) return Effect.succeed(plan.workdir)
    return Effect.flatMap(Effect.mapError(files.stat(cwd), FsError.toFault), ({ isDirectory, path }) =>
      isDirectory ? Effect.succeed(`${plan.workdir}/${path}`) : Effect.fail(notADirectory)
    )
  }

  /** Runs a command, and retries in a new container if the old container ended before the command started. */
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
      // The directory was checked before the start. Check the directory again, to report why the command could not enter it.
      yield* placeOf(cwd)
      return yield* Effect.fail(permission)
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
        if (program === undefined) return Effect.fail(invalidArgument("language", "it must be javascript, python or sh"))
        if (!isText(code)) return Effect.fail(invalidArgument("code", "it must be a string"))
        const fault = shapeFault([], options) ?? checkBounds({ code }, options, seconds)
        return fault === undefined
          ? run(program(code), options, bounds.clampedTimeout(seconds), characterLimit)
          : Effect.fail(fault)
      })
  }
}
