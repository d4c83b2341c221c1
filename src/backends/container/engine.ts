import { unavailable } from "../../model/Fault.ts"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { PlatformError } from "effect/PlatformError"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as ChildProcess from "effect/process/ChildProcess"
import { type ChildProcessHandle, ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type { Fault } from "../../model/FsError.ts"
import { isAbsolute } from "../../runtime/node.ts"
import { configuredPath, findProgram } from "../../runtime/programs.ts"

// Collects the output of a process. Reads the output to its end, so that the process never blocks, but keeps only a
// bounded part of it.

interface Collector {
  /** Collects the output. Ignores failures of the stream, because the exit of the process shows how it ended. */
  readonly from: <E>(stream: Stream.Stream<Uint8Array, E>) => Effect.Effect<void>
  readonly bytes: () => Buffer
  readonly take: (chunk: Uint8Array) => void
}

const forEachChunk = <E>(
  stream: Stream.Stream<Uint8Array, E>,
  use: (chunk: Uint8Array) => Effect.Effect<void>
): Effect.Effect<void> => Effect.ignore(Stream.runForEach(stream, use))

export const makeCollector = (maxBytes: number): Collector => {
  const parts: Array<Uint8Array> = []
  let length = 0
  const take = (chunk: Uint8Array): void => {
    const room = maxBytes - length
    if (room <= 0 || chunk.length === 0) return
    // Copy the part, because a view would keep the whole chunk in memory.
    parts.push(chunk.length > room ? chunk.slice(0, room) : chunk)
    length += Math.min(room, chunk.length)
  }
  return {
    from: (stream) => forEachChunk(stream, (chunk) => Effect.sync(() => take(chunk))),
    bytes: () => Buffer.concat(parts),
    take
  }
}

export interface OutputEnds {
  readonly first: Buffer
  readonly last: Buffer
  readonly isCut: boolean
}

interface EndsCollector {
  readonly ends: () => OutputEnds
  readonly take: (chunk: Uint8Array) => void
}

export const makeEndsCollector = (maxBytes: number): EndsCollector => {
  const first = makeCollector(maxBytes)
  let firstLength = 0
  let last: Buffer = Buffer.alloc(0)
  let parts: Array<Uint8Array> = []
  let pendingBytes = 0
  let isCut = false
  /** Joins the chunks only occasionally, so that many small chunks cost no more than a few large chunks. */
  const join = (): void => {
    const all = Buffer.concat([last, ...parts])
    isCut ||= all.length > maxBytes
    last = Buffer.from(all.subarray(Math.max(0, all.length - maxBytes)))
    parts = []
    pendingBytes = 0
  }
  return {
    ends: () => {
      join()
      return { first: first.bytes(), last, isCut }
    },
    take: (chunk) => {
      const room = Math.min(chunk.length, maxBytes - firstLength)
      firstLength += room
      if (room > 0) first.take(chunk.subarray(0, room))
      if (room === chunk.length) return
      parts.push(chunk.subarray(room))
      pendingBytes += chunk.length - room
      if (pendingBytes > maxBytes) join()
    }
  }
}

export const readForwarding = <E>(
  stream: Stream.Stream<Uint8Array, E>,
  take: (chunk: Uint8Array) => void,
  pass: (chunk: Uint8Array) => Effect.Effect<void>
): Effect.Effect<void> => forEachChunk(stream, (chunk) => Effect.suspend(() => (take(chunk), pass(chunk))))

/**
 * The line with which a script of this library announces its start in a stream. The line begins with the mark. All text
 * before the line comes from the engine.
 */
interface Announcement {
  /** Returns the line, or `undefined` until it has arrived. */
  readonly line: () => string | undefined
  readonly before: () => string
  readonly strip: (chunk: Uint8Array) => Uint8Array
}

const newline = 0x0a
const noBytes = new Uint8Array()

export const makeAnnouncement = (mark: string): Announcement => {
  const before = makeCollector(2 ** 16)
  let line: string | undefined
  return {
    strip: (chunk) => {
      if (line !== undefined) return chunk
      const head = Buffer.concat([before.bytes(), chunk])
      const at = head.indexOf(`${mark} `)
      const end = at === -1 ? -1 : head.indexOf(newline, at)
      if (end === -1) {
        before.take(chunk)
        return noBytes
      }
      line = head.toString("latin1", at + mark.length + 1, end)
      return head.subarray(end + 1)
    },
    line: () => line,
    before: () => before.bytes().toString()
  }
}

interface EngineExit {
  /** The exit code, or `undefined` if a signal ended the process. */
  readonly code: number | undefined
  readonly stdout: string
  readonly stderr: string
}

export interface Engine {
  readonly program: string
  /** Runs the engine until it ends. Fails only if the engine cannot be started. */
  readonly run: (args: ReadonlyArray<string>) => Effect.Effect<EngineExit, Fault>
  /**
   * Starts a process that is killed when the scope closes. With "held", the caller writes the input to the `stdin` of
   * the handle.
   */
  readonly start: (args: ReadonlyArray<string>, input?: Input) => Effect.Effect<ChildProcessHandle, Fault, Scope.Scope>
}

type Input = "held" | Uint8Array | Stream.Stream<Uint8Array> | undefined

const withHint = (fault: Fault, hint: string | undefined): Fault => (hint === undefined ? fault : { ...fault, hint })

const maxMessageLength = 500

const shortened = (said: string): string => {
  const line = said
    .trim()
    .replace(/^Error(?: response from daemon)?: /gm, "")
    // oxlint-disable-next-line no-control-regex
    .replace(/[\u0000-\u001f\u007f]+/g, " ")
  return line.length > maxMessageLength ? `${line.slice(0, maxMessageLength)}…` : line
}

export const isUnreachable = (said: string): boolean =>
  /cannot connect to|unable to connect to|connection refused|error during connect|trying to connect to/i.test(said)

/**
 * Hints for the engine's messages. Hints about images come first, because a registry that refuses a connection must not
 * look like a missing service.
 */
const hints: ReadonlyArray<readonly [said: (words: string) => boolean, hint: (program: string) => string]> = [
  [
    (said) => /exec: "?\/bin\/sh/.test(said),
    () => "Choose an image or a root filesystem that has /bin/sh, because /bin/sh starts every command."
  ],
  [
    (said) =>
      /short-name|no such image|pull access denied|manifest unknown|name unknown|initializing source|unable to find image|repository .* not exist/i.test(
        said
      ),
    (program) =>
      `Check the name of the image and write its registry too, as in docker.io/library/debian; "${program} pull IMAGE" fetches an image, "${program} images" lists the images on this machine.`
  ],
  [
    isUnreachable,
    () =>
      "Start the service of the engine, or choose another engine; DOCKER_HOST or CONTAINER_HOST may point to a wrong address."
  ],
  [(said) => /resource temporarily unavailable|cannot fork|can't fork/i.test(said), () => processLimitHint]
]

const processLimitHint =
  "Run fewer processes at once, or allow more with the container option `pids`, or with --pids on the command line."

export const engineFault = (program: string, what: string, { code, stderr }: Pick<EngineExit, "code" | "stderr">): Fault => {
  const said = shortened(stderr)
  return withHint(
    unavailable(
      `${program} ${what}: ${said === "" ? `the program ${code === undefined ? "was killed by a signal" : `ended with exit code ${code}`}` : said}`
    ),
    hints.find(([isSaid]) => isSaid(stderr))?.[1](program)
  )
}

const missingProgram = (program: string): Fault =>
  isAbsolute(program)
    ? withHint(
        unavailable(
          `cannot run ${JSON.stringify(program)}: it is missing, not executable by this user, or inside the root of an open filesystem`
        ),
        "Give the absolute path of podman, docker or nerdctl, or its name if it is in the PATH."
      )
    : withHint(
        unavailable(
          `${program} is not installed, or not in the PATH (entries inside the root of an open filesystem are ignored)`
        ),
        `Install ${program}, or choose another engine.`
      )

const startFault = (program: string, error: PlatformError): Fault => ({
  ...(error.reason._tag === "NotFound"
    ? missingProgram(program)
    : unavailable(`${program} cannot be run: ${shortened(error.message)}`)),
  cause: error
})

const inputOf = (input: Input): ChildProcess.CommandInput =>
  input === undefined ? "ignore" : input === "held" ? "pipe" : Stream.isStream(input) ? input : Stream.succeed(input)

export const codeOf = (handle: ChildProcessHandle): Effect.Effect<number | undefined> =>
  Effect.match(handle.exitCode, { onFailure: () => undefined, onSuccess: (code): number => code })

const maxOutputBytes = 2 ** 16

/**
 * Returns the engine with this name in the PATH, or with this absolute path. Ignores programs in the absolute
 * directories `avoid`.
 */
export const make = (program: string, avoid: ReadonlyArray<string> = []): Effect.Effect<Engine, never, ChildProcessSpawner> =>
  Effect.map(Effect.all([ChildProcessSpawner, configuredPath]), ([spawner, path]) => {
    // Search the PATH at each start, because filesystems may have been opened since the last start, and their roots must
    // be avoided too.
    const start: Engine["start"] = (args, input) =>
      Effect.suspend(() => {
        const found = findProgram(program, path, avoid)
        if (found === undefined) return Effect.fail(missingProgram(program))
        // The client need not forward a signal, because this library ends the processes in the container itself.
        const options = { stdin: inputOf(input), killSignal: "SIGKILL", env: { PATH: found.path }, extendEnv: true } as const
        return Effect.mapError(spawner.spawn(ChildProcess.make(found.program, args, options)), (error) =>
          startFault(program, error)
        )
      })
    const run: Engine["run"] = (args) =>
      Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* start(args)
          const [stdout, stderr] = [makeCollector(maxOutputBytes), makeCollector(maxOutputBytes)]
          const [code] = yield* Effect.all([codeOf(handle), stdout.from(handle.stdout), stderr.from(handle.stderr)], {
            concurrency: "unbounded"
          })
          return { code, stdout: stdout.bytes().toString(), stderr: stderr.bytes().toString() }
        })
      )
    return { program, run, start }
  })

/** Runs an effect with the real clock, even under a test clock. */
export const inRealTime: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = Effect.provideService(
  Clock.Clock,
  Clock.Clock.defaultValue()
)
