/**
 * Manages one container at a time, which is started on demand and replaced after its death.
 *
 * The first process of the container reads input from this process. The container ends when this process closes the
 * input or ends. The engine then removes the container with its volumes.
 */
import { filesystemClosed } from "../faults.ts"
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { Fault } from "../../model/FsError.ts"
import { Fs, randomBytes } from "../../runtime/node.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import { attempt } from "../posix/errors.ts"
import * as CommandLine from "./commandLine.ts"
import { codeOf, type Engine, engineFault, inRealTime, isUnreachable, makeCollector } from "./engine.ts"
import { unavailable } from "../../model/Fault.ts"
import type { Caller, Plan } from "./options.ts"

const isLeftOver = (engine: Engine, name: string) =>
  Effect.map(engine.run(CommandLine.inspectOwner(name)), ({ stdout }) => {
    const owner = CommandLine.owner(stdout)
    return owner !== undefined && Identity.isDead(owner) === true
  })

/** Removes leftover containers. Never fails: if the engine does not respond, later calls report the failure. */
export const sweep = (engine: Engine): Effect.Effect<void> =>
  Effect.ignore(
    Effect.flatMap(engine.run(CommandLine.listContainers), ({ stdout }) =>
      Effect.forEach(
        CommandLine.parseNames(stdout),
        (name) =>
          Effect.flatMap(isLeftOver(engine, name), (isLeft) => (isLeft ? engine.run(CommandLine.remove(name)) : Effect.void)),
        { discard: true }
      )
    )
  )

// Tests whether a container is ready: a command runs and can write in the container's own workspace.
//
// podman makes the container's user the owner of a new volume. But if the image already has the directory, podman keeps the
// directory's owner. In this case, this module changes the owner of the volume.

type ProbeResult = "ready" | "foreign"

const probe = (engine: Engine, name: string): Effect.Effect<ProbeResult, Fault> =>
  Effect.flatMap(engine.run(CommandLine.probe(name)), (ended) => {
    const answer = ended.stdout.trim()
    return answer === "ready" || answer === "foreign"
      ? Effect.succeed(answer)
      : Effect.fail(engineFault(engine.program, "cannot run commands in the container", ended))
  })

const changeVolumeOwner = (
  engine: Engine,
  { user, workdir }: Plan,
  caller: Caller,
  name: string
): Effect.Effect<unknown, Fault> =>
  Effect.flatMap(engine.run(CommandLine.inspectVolume(name, workdir)), ({ stdout }) => {
    const volume = stdout.trim()
    if (!volume.startsWith("/")) return Effect.void
    return caller?.uid === 0
      ? attempt(() => Fs.chownSync(volume, user.uid, user.gid))
      : engine.run(CommandLine.changeVolumeOwner(user, volume))
  })

/**
 * Checks that the container runs commands, and with `exec` also that its user may write in the workspace. If necessary,
 * changes the owner of the volume. Never changes the owner of a shared directory, which belongs to the caller.
 */
export const awaitReady = (engine: Engine, plan: Plan, caller: Caller) =>
  Effect.fnUntraced(function* (name: string): Effect.fn.Return<void, Fault> {
    if ((yield* probe(engine, name)) === "ready" || plan.strategy === "overlay") return
    yield* Effect.ignore(changeVolumeOwner(engine, plan, caller, name))
    if ((yield* probe(engine, name)) === "ready") return
    const detail = `the container's user may not write to ${plan.workdir}, which is part of the image; choose another workdir`
    return yield* Effect.fail(unavailable(detail))
  })

export interface Container {
  readonly name: string
  readonly isEnded: () => boolean
  readonly ended: Effect.Effect<void>
  /**
   * Kills the processes with the mark, and the processes without any mark that started at `since` or later. Returns the
   * number of killed processes.
   *
   * `since` is the start time and the pid that a command has announced.
   */
  readonly kill: (mark: string, since: string) => Effect.Effect<number, Fault>
  readonly isRunning: (since: string) => Effect.Effect<boolean, Fault>
  readonly refused: () => number
  readonly end: Effect.Effect<void>
}

export interface ContainerManager {
  readonly running: Effect.Effect<Container, Fault>
  readonly latest: () => Container | undefined
}

export const gone: Fault = unavailable("the container has ended")

export const random = (): string => randomBytes(12).toString("hex")

const encoder = new TextEncoder()

const endTimeout = "3 seconds"

/**
 * Removes the container.
 *
 * If the container is in an unexpected state, such as paused in podman, the engine fails and keeps the container. So
 * the removal is retried, except if the engine's service does not respond.
 */
const remove = (engine: Engine, name: string, times = 50): Effect.Effect<void> => {
  const gone = Effect.map(
    engine.run(CommandLine.remove(name)),
    ({ code, stderr }) => code === 0 || /no such container/i.test(stderr) || isUnreachable(stderr)
  )
  const retriedRemoval = Effect.repeat(gone, { until: (isGone) => isGone, schedule: Schedule.spaced("100 millis"), times })
  return inRealTime(Effect.ignore(Effect.timeoutOption(retriedRemoval, "30 seconds")))
}

interface Dialogue {
  readonly ready: Effect.Effect<void>
  readonly take: (line: string) => void
  readonly answer: (nonce: string) => Effect.Effect<number>
  readonly forget: (nonce: string) => void
  readonly refused: () => number
}

const isCount = (text: string): boolean => /^[0-9]{1,9}$/.test(text)

const makeDialogue = (): Dialogue => {
  const ready = Deferred.makeUnsafe<void>()
  const waiting = new Map<string, Deferred.Deferred<number>>()
  let refused = 0
  return {
    ready: Deferred.await(ready),
    take: (line) => {
      if (line === "ready") return void Deferred.doneUnsafe(ready, Exit.void)
      const [nonce = "", count = "", times = "0"] = line.split(" ")
      const asked = waiting.get(nonce)
      if (asked === undefined || !isCount(count) || !isCount(times)) return
      refused = Number(times)
      Deferred.doneUnsafe(asked, Exit.succeed(Number(count)))
    },
    answer: (nonce) => {
      const asked = Deferred.makeUnsafe<number>()
      waiting.set(nonce, asked)
      return Deferred.await(asked)
    },
    forget: (nonce) => void waiting.delete(nonce),
    refused: () => refused
  }
}

/**
 * The number of characters to which an incomplete line is cut. The keeper's lines are shorter, and other lines are
 * irrelevant.
 */
const maxLineLength = 256

const splitLines = (take: (line: string) => void): ((chunk: Uint8Array) => void) => {
  let rest = ""
  return (chunk) => {
    const lines = (rest + Buffer.from(chunk).toString("latin1")).split("\n")
    rest = lines.pop()!.slice(-maxLineLength)
    for (const line of lines) take(line)
  }
}

const sendRequest = (
  dialogue: Dialogue,
  orders: Queue.Queue<Uint8Array, Cause.Done>,
  ended: Effect.Effect<void>,
  request: string
): Effect.Effect<number, Fault> =>
  Effect.suspend(() => {
    const nonce = random()
    const answer = dialogue.answer(nonce)
    Queue.offerUnsafe(orders, encoder.encode(`${nonce} ${request}\n`))
    return Effect.raceFirst(answer, Effect.andThen(ended, Effect.fail(gone))).pipe(
      Effect.ensuring(Effect.sync(() => dialogue.forget(nonce)))
    )
  })

interface StartOptions {
  /** Runs directly before each start, to check that the validated host paths are unchanged. */
  readonly check?: Effect.Effect<void, Fault> | undefined
  readonly argsOf: (name: string) => ReadonlyArray<string>
  readonly settle: (name: string) => Effect.Effect<void, Fault>
}

const start = Effect.fnUntraced(function* (
  engine: Engine,
  { argsOf, check = Effect.void, settle }: StartOptions
): Effect.fn.Return<Container, Fault, Scope.Scope> {
  yield* check
  const name = `fs-algebra-${random()}`
  let code: number | undefined
  let isRefused = false
  // The engine removes an ended container itself, possibly after the engine's client has ended. Wait for this removal,
  // and remove the container if it has not ended. If the engine refused to start the container, one attempt is enough.
  yield* Effect.addFinalizer(() => remove(engine, name, isRefused ? 0 : 50))
  const client = yield* engine.start(argsOf(name), "held")
  const orders = yield* Queue.unbounded<Uint8Array, Cause.Done>()
  yield* Effect.forkScoped(Effect.ignore(Stream.run(Stream.fromQueue(orders), client.stdin)))
  const dialogue = makeDialogue()
  const take = splitLines(dialogue.take)
  yield* Effect.forkScoped(Effect.ignore(Stream.runForEach(client.stdout, (chunk) => Effect.sync(() => take(chunk)))))
  const errorOutput = makeCollector(2 ** 16)
  const readingErrors = yield* Effect.forkScoped(errorOutput.from(client.stderr))
  const end = Deferred.makeUnsafe<void>()
  yield* Effect.forkScoped(
    Effect.flatMap(codeOf(client), (value) => {
      code = value
      return Deferred.succeed(end, undefined)
    })
  )
  const ended = Deferred.await(end)
  yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(orders), inRealTime(Effect.timeoutOption(ended, endTimeout))))

  const refused = Effect.gen(function* () {
    yield* ended
    isRefused = true
    yield* inRealTime(Effect.timeoutOption(Fiber.await(readingErrors), endTimeout))
    return yield* Effect.fail(
      engineFault(engine.program, "did not start a container", { code, stderr: errorOutput.bytes().toString() })
    )
  })
  yield* Effect.raceFirst(dialogue.ready, refused)
  yield* settle(name)
  return {
    name,
    isEnded: () => Deferred.isDoneUnsafe(end),
    ended,
    kill: (mark, since) => sendRequest(dialogue, orders, ended, `${mark} ${since}`),
    isRunning: (since) => Effect.map(sendRequest(dialogue, orders, ended, `alive ${since}`), (count) => count === 1),
    refused: dialogue.refused,
    end: Effect.andThen(remove(engine, name), inRealTime(Effect.timeoutOption(ended, endTimeout)))
  }
})

/**
 * Creates the manager. The manager removes a container completely before it starts the next one, and when the scope closes.
 */
export const make = (engine: Engine, how: StartOptions): Effect.Effect<ContainerManager, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const startLock = Semaphore.makeUnsafe(1)
    let latest: Container | undefined
    let currentScope: Scope.Closeable | undefined

    const closeCurrent = Effect.suspend(() => {
      const last = currentScope
      currentScope = undefined
      return last === undefined ? Effect.void : Scope.close(last, Exit.void)
    })

    const next = Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        yield* closeCurrent
        const newScope = yield* Scope.fork(scope)
        const container = yield* restore(Scope.provide(start(engine, how), newScope)).pipe(
          Effect.onError((cause) => Scope.close(newScope, Exit.failCause(cause)))
        )
        currentScope = newScope
        latest = container
        return container
      })
    )

    const findAlive = (): Container | undefined => (latest === undefined || latest.isEnded() ? undefined : latest)

    return {
      running: Effect.suspend(() => {
        const now = findAlive()
        if (now !== undefined) return Effect.succeed(now)
        return startLock.withPermit(
          Effect.suspend(() => {
            const startedMeanwhile = findAlive()
            if (startedMeanwhile !== undefined) return Effect.succeed(startedMeanwhile)
            return scope.state._tag === "Closed" ? Effect.fail(filesystemClosed) : next
          })
        )
      }),
      latest: () => latest
    }
  })
