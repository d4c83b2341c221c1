/**
 * Runs one command in a container until none of its processes is left.
 *
 * Killing the engine's client ends nothing inside. So the processes are killed inside, and the client shows that the
 * command is over by its own end.
 */
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Duration from "effect/Duration"
import * as Stream from "effect/Stream"
import type { ExecOptions } from "../../../filesystem/Sandbox.ts"
import type { Fault } from "../../../model/FsError.ts"
import { makeAnnouncement, makeEndsCollector, type OutputEnds, readForwarding } from "./collecting.ts"
import * as CommandLine from "./commandLine.ts"
import { codeOf, type Engine, engineFault, inRealTime, unavailable } from "./engine.ts"
import { type Container, gone, random } from "./life.ts"

export interface Command extends Pick<ExecOptions, "detach" | "onOutput"> {
  readonly directory: string
  readonly command: ReadonlyArray<string>
  readonly environment: Readonly<Record<string, string>> | undefined
  readonly input: Uint8Array | Stream.Stream<Uint8Array> | undefined
  readonly timeout: Duration.Input
  readonly isAlone: () => boolean
  readonly keptBytes: number
}

export interface Outcome {
  /** A command has not begun if the directory could not be entered, or the container had ended before. */
  readonly state: "begun" | "notEntered" | "ended"
  readonly code: number | undefined
  readonly stdout: OutputEnds
  readonly stderr: OutputEnds
  readonly hasReachedProcessLimit: boolean
}

interface RunningState {
  readonly isEnded: () => boolean
  /** Returns the start time (clock ticks since boot) and the pid; empty before the start. */
  readonly since: () => string
}

/** Between two checks whether a command still reads its input. */
const inputCheckInterval = "200 millis"
const killInterval = "30 millis"
/** Milliseconds for the first kill request. They double with each unanswered request. */
const firstKillTimeoutMillis = 1000
/** Milliseconds after which a container that does not answer counts as dead. */
const aliveTimeoutMillis = 5000
/** The container is ended after this time, if processes start others faster than they are killed. */
const maxKillTime = "20 seconds"

/** All processes are gone, some may be left, or the container did not answer in time. */
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
  // The container handles requests in order, so new requests would delay the answers. Wait longer each time.
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

/** Tests for exit codes of an engine's own failures, or of the end of a container. */
const mayBeEngineExit = (code: number | undefined): boolean => code === undefined || code >= 125

/**
 * Ends the input when the command has ended.
 *
 * Otherwise the engine would continue to read, and an endless stream or a person at a terminal would keep the command
 * from ending.
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
  /** Kills the remaining processes. Those without a mark are included only if no other command can own them. */
  const killRemaining = Effect.suspend(() => killAll(container, mark, isAlone() ? running : { ...running, since: () => "" }))
  yield* Effect.addFinalizer(() => (isEnded ? Effect.void : kill))
  return { announced, clear: killRemaining, finishing, kill, stdout, stderr }
})

/** Runs a command. Fails with Unavailable if the command could not run or its result is unknown. */
export const execute = (engine: Engine, container: Container, requested: Command): Effect.Effect<Outcome, Fault> =>
  Effect.scoped(
    Effect.gen(function* () {
      const refusedBefore = container.refused()
      const {
        announced,
        clear: killRemaining,
        finishing,
        kill,
        stderr,
        stdout
      } = yield* Effect.uninterruptible(startCommand(engine, container, requested))
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
        // Wait for the last output, but not if nobody reads it.
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
          engineFault(engine.program, "runs no command in the container", { code, stderr: announced.before() })
        )
      }
      if (code === undefined) {
        yield* kill
        return yield* Effect.fail(unavailable(`${engine.program} was killed while it ran the command`))
      }
      // Each of these calls also updates the number of refused processes.
      yield* requested.detach === true ? isAlive(container) : killRemaining
      // When the client ends, the death of a container together with its command may not be known yet.
      if (mayBeEngineExit(code) && container.isEnded()) return yield* Effect.fail(gone)
      return outcome(code)
    })
  )
