/**
 * One command in a container, from its start until nothing of it is left or it has ended by itself. Killing the engine's client ends
 * nothing inside; so what is to end is killed inside, and the client, which ends when its command has, tells that it is over.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Duration from "effect/Duration"
import type { Fault } from "../../../model/FsError.ts"
import { announced, collecting } from "./collecting.ts"
import * as CommandLine from "./commandLine.ts"
import { codeOf, type Engine, failed, inRealTime, unavailable } from "./engine.ts"
import { type Container, gone, random } from "./life.ts"

export interface Command {
  /** Absolute, inside. */
  readonly directory: string
  readonly command: ReadonlyArray<string>
  readonly environment: Readonly<Record<string, string>> | undefined
  readonly input: Uint8Array | undefined
  readonly timeout: Duration.Input
  /** Bytes that are kept of each stream. */
  readonly most: number
}

export interface Outcome {
  /** Whether the command was begun; where not, the directory could not be entered, or the container had ended before. */
  readonly state: "begun" | "notEntered" | "ended"
  /** `undefined` when the time was up. */
  readonly code: number | undefined
  readonly stdout: Buffer
  readonly stderr: Buffer
}

interface Running {
  readonly isEnded: () => boolean
  /** Ticks of the system at which it started, and its number; nothing while it has not. */
  readonly since: () => string
}

const pause = "30 millis"
const patience = "1 second"
const longest = "10 seconds"

/** Until nothing of it is left. A container in which that cannot be had is ended itself: by then it is full, or works against us. */
const killAll = (container: Container, mark: string, running: Running): Effect.Effect<void> => {
  const once: Effect.Effect<boolean> = Effect.suspend(() => {
    if (container.isEnded()) return Effect.succeed(true)
    const wasEnded = running.isEnded()
    return Effect.match(Effect.timeoutOption(container.kill(mark, running.since()), patience), {
      onFailure: () => container.isEnded(),
      onSuccess: (count) => wasEnded && Option.contains(count, 0)
    })
  })
  const repeated: Effect.Effect<void> = Effect.flatMap(once, (isDone) =>
    isDone ? Effect.void : Effect.andThen(Effect.sleep(pause), repeated)
  )
  return inRealTime(Effect.timeoutOrElse(repeated, { duration: longest, orElse: () => container.end }))
}

/** Codes that an engine gives for troubles of its own, or that the end of a container gives. */
const isDoubtful = (code: number | undefined): boolean => code === undefined || code >= 125

const isAlive = (container: Container): Effect.Effect<boolean> =>
  inRealTime(
    Effect.match(Effect.timeoutOption(container.kill("-", ""), patience), {
      onFailure: () => false,
      onSuccess: () => !container.isEnded()
    })
  )

const started = Effect.fnUntraced(function* (
  engine: Engine,
  container: Container,
  { command, directory, environment, input, most }: Command
) {
  const mark = random()
  const args = { name: container.name, mark, directory, command, environment, hasInput: input !== undefined }
  const client = yield* engine.start(CommandLine.exec(args), input)
  const [stdout, stderr] = [collecting(most), announced(mark, most)]
  let isEnded = false
  const finishing = yield* Effect.forkScoped(
    Effect.map(
      Effect.all([codeOf(client), stdout.from(client.stdout), stderr.from(client.stderr)], { concurrency: "unbounded" }),
      ([code]) => {
        isEnded = true
        return code
      }
    )
  )
  const running = { isEnded: () => isEnded, since: () => /^goes ([0-9]+ [0-9]+)$/.exec(stderr.line() ?? "")?.[1] ?? "" }
  const kill = killAll(container, mark, running)
  // Before the client is, when nobody wants it any more.
  yield* Effect.addFinalizer(() => (isEnded ? Effect.void : kill))
  return { finishing, kill, stdout, stderr }
})

/** Fails with Unavailable where the command could not be run, or what became of it is not known. */
export const execute = (engine: Engine, container: Container, asked: Command): Effect.Effect<Outcome, Fault> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { finishing, kill, stderr, stdout } = yield* Effect.uninterruptible(started(engine, container, asked))
      const outcome = (code: number | undefined): Outcome => ({
        state: stderr.line() === "stays" ? "notEntered" : "begun",
        code,
        stdout: stdout.bytes(),
        stderr: stderr.bytes()
      })
      const inTime = yield* Effect.timeoutOption(Fiber.await(finishing), asked.timeout)
      // The end of the scope kills it.
      if (Option.isNone(inTime)) return outcome(undefined)
      const code = yield* Fiber.join(finishing)
      if (isDoubtful(code) && !(yield* isAlive(container))) {
        yield* container.end
        return stderr.line() === undefined ? { ...outcome(code), state: "ended" as const } : yield* Effect.fail(gone)
      }
      if (stderr.line() === undefined) {
        return yield* Effect.fail(failed(engine.program, "runs no command in the container", { code, stderr: stderr.before() }))
      }
      if (code === undefined) {
        yield* kill
        return yield* Effect.fail(unavailable(`${engine.program} was killed while it ran the command`))
      }
      return outcome(code)
    })
  )
