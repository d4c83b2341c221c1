/**
 * Keeps a POSIX shell running, which answers requests one after another through its standard input and output.
 *
 * So a request costs a round trip instead of a new process of the engine. The shell starts at the first request, and
 * again at the next request after it has ended.
 *
 * A request is one line that begins with the key of the session. If a transfer is cut short, the shell does not execute
 * the following bytes.
 *
 * An answer ends on both streams with a line of the key and the request's number, so each error belongs to its request.
 * A shell that prints unrequested output is abandoned.
 */
import { ioError, unavailable } from "../../../model/Fault.ts"
import { filesystemClosed } from "../../faults.ts"
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import type { Fault } from "../../../model/FsError.ts"
import { randomBytes } from "../../../runtime/node.ts"
import { lastAnswer } from "./script.ts"

// Splits the output of a shell into answers. Each answer ends with the line that the session has chosen for it.
//
// The content before the end line may contain any bytes, and no length in the content is trusted.

const maxStatusBytes = 8
/** The maximum length of an end line in bytes: two line breaks, the key, the number and the status. */
const maxEndBytes = 64

/** The size in bytes from which memory for an answer is allocated in advance. */
const minFirstBytes = 256 * 1024

interface Answer {
  readonly bytes: Buffer
  readonly status: number
}

interface Answers {
  /** Starts an answer of about `expectedBytes` that ends with this mark. Discards earlier output. */
  readonly begin: (mark: string, expectedBytes?: number) => void
  /** Adds a chunk of output. Returns `unasked` for output without a request or after the end line. */
  readonly take: (chunk: Uint8Array) => Answer | "unasked" | undefined
  readonly size: () => number
  readonly bytesSoFar: () => Buffer
}

/**
 * Creates a splitter that keeps at most `maxBytes` bytes of an answer.
 *
 * With `refusesTrailingOutput`, output after the end line in the same chunk is `unasked`. Otherwise such output is ignored.
 */
export const make = (maxBytes: number, refusesTrailingOutput: boolean): Answers => {
  const noBytes: Buffer = Buffer.alloc(0)
  let end: Buffer | undefined
  /**
   * The beginning of an answer, in memory that was allocated in advance. Empty if the answer is expected to be small.
   */
  let first = noBytes
  /** The chunks after `first`. */
  let kept: Array<Uint8Array> = []
  let size = 0
  /** The last bytes of the output, which may contain the beginning of an end line. */
  let tail = noBytes

  const keep = (chunk: Uint8Array): void => {
    const room = maxBytes - size
    if (size + chunk.length <= first.length) first.set(chunk, size)
    else {
      first = first.subarray(0, Math.min(size, first.length))
      if (room > 0) kept.push(chunk.length > room ? chunk.subarray(0, room) : chunk)
    }
    size += chunk.length
  }

  const all = (): Buffer =>
    kept.length === 0 ? first.subarray(0, size) : Buffer.concat(first.length === 0 ? kept : [first, ...kept])

  const makeAnswer = (length: number, status: number): Answer => {
    const bytes = all().subarray(0, length)
    end = undefined
    first = noBytes
    kept = []
    return { bytes, status }
  }

  return {
    begin: (mark, expectedBytes = 0) => {
      end = Buffer.from(`\n${mark} `)
      // Allocate for each answer, because the caller keeps its bytes.
      first = expectedBytes < minFirstBytes ? noBytes : Buffer.allocUnsafeSlow(expectedBytes + maxEndBytes)
      kept = []
      size = 0
      tail = noBytes
    },
    take: (chunk) => {
      if (end === undefined) return "unasked"
      const before = size - tail.length
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
      keep(chunk)
      if (!bytes.includes(end) && !Buffer.concat([tail, bytes.subarray(0, end.length)]).includes(end)) {
        const last = bytes.length < end.length ? Buffer.concat([tail, bytes]) : bytes
        tail = Buffer.from(last.subarray(Math.max(0, last.length - end.length + 1)))
        return undefined
      }
      const window = Buffer.concat([tail, bytes])
      const at = window.indexOf(end)
      const from = at + end.length
      const newline = window.indexOf(10, from)
      if (newline === -1 && window.length - from <= maxStatusBytes) {
        tail = Buffer.from(window.subarray(at))
        return undefined
      }
      const status = window.toString("latin1", from, newline)
      if (refusesTrailingOutput && newline !== window.length - 1) return "unasked"
      return /^\d{1,3}$/.test(status) ? makeAnswer(before + at, Number(status)) : "unasked"
    },
    size: () => size,
    bytesSoFar: all
  }
}

export interface Shell {
  readonly stdin: Sink.Sink<void, Uint8Array, never, unknown>
  readonly stdout: Stream.Stream<Uint8Array, unknown>
  readonly stderr: Stream.Stream<Uint8Array, unknown>
  /** Kills a process that did not end with its input. Absent if the process always ends with its scope. */
  readonly killInside?: Effect.Effect<void> | undefined
}

export interface Request {
  readonly call: string
  readonly arguments: ReadonlyArray<string | Uint8Array>
  /**
   * The input of the request, which the shell function reads with `take`. The input has at most 4 MiB, so that other requests
   * wait only briefly.
   */
  readonly input?: Uint8Array | undefined
  /** The expected size of a large answer in bytes. The answer may have another size. */
  readonly expectedBytes?: number | undefined
  /**
   * True for a request that may run twice, such as a read. Such a request is repeated in a new shell if the shell ends by
   * itself.
   */
  readonly repeats: boolean
}

export interface Reply {
  readonly status: number
  readonly output: Buffer
  /** The output on standard error, at most 64 KiB. */
  readonly errors: string
}

export interface Session {
  /**
   * Sends a request. Requests run one at a time in the order of arrival.
   *
   * Fails only if there is no complete answer: with IoError if the answer is too large, with Timeout if the shell prints nothing
   * for too long, and otherwise with Unavailable.
   *
   * An interruption removes a waiting request. If a request that may change something was already sent, the
   * interruption waits up to `interruptTimeoutMillis` for its answer. After this time, the shell is abandoned.
   */
  readonly request: (request: Request) => Effect.Effect<Reply, Fault>
}

export interface Options {
  /** The maximum size of an answer in bytes. A larger answer ends the shell. @default 256 MiB */
  readonly maxAnswerBytes?: number | undefined
  /**
   * The time, in milliseconds, that an interrupted caller waits for the answer to a request that was already sent.
   * @default 10 seconds
   */
  readonly interruptTimeoutMillis?: number | undefined
  /**
   * The time that a shell may work without output, in milliseconds. After this time, the shell ends and the request
   * fails with Timeout. @default 2 minutes
   */
  readonly silence?: number | undefined
}

const maxTries = 3
const maxErrorBytes = 64 * 1024
const endTimeoutMillis = 2000
const silenceChecks = 8

const tooLarge = (maxAnswerBytes: number): Fault =>
  ioError(`the answer of the shell exceeds the limit of ${maxAnswerBytes} bytes`)

const errorSuffix = (errors: Buffer): string => {
  const said = errors
    .toString()
    .replace(/[\u0000-\u001f\u007f]+/g, " ")
    .trim()
  return said === "" ? "" : `: ${said.length > 300 ? `…${said.slice(-300)}` : said}`
}

const endedAtWork = (errors: Buffer): Fault =>
  unavailable(`the shell ended during a request, and it is unknown whether the request was carried out${errorSuffix(errors)}`)

const endedAtOnce = (errors: Buffer): Fault => unavailable(`the shell ended directly after its start${errorSuffix(errors)}`)

const unrequestedOutput = unavailable("the shell printed output without a request")

const missingTools = ({ errors }: Reply): Fault =>
  unavailable(`the shell lacks a required tool${errorSuffix(Buffer.from(errors))}`)

const silentTooLong: Fault = { _tag: "Timeout", detail: "the shell worked for too long without output" }

const didNotEnd = unavailable("the shell did not complete its request in time")

type Outcome = Effect.Effect<Reply, Fault>

interface Job {
  readonly request: Request
  tries: number
  done: ((outcome: Outcome) => void) | undefined
}

/**
 * Quotes an argument as Latin-1, one character per byte. A newline would end the request, so it is replaced by a
 * variable of the script that contains a newline.
 */
const quoted = (argument: string | Uint8Array): string => {
  const bytes =
    typeof argument === "string" ? Buffer.from(argument) : Buffer.from(argument.buffer, argument.byteOffset, argument.length)
  return `'${bytes.toString("latin1").replaceAll("'", "'\\''").replaceAll("\n", `'"$N"'`)}'`
}

const lineOf = (mark: string, { arguments: args, call, input }: Request): Buffer =>
  Buffer.from(`${mark} ${input?.length ?? 0} ${call} ${args.map(quoted).join(" ")}\n`, "latin1")

const greeting: Request = { call: "greet", arguments: [], repeats: false }

interface Running {
  readonly key: string
  readonly input: Queue.Queue<Uint8Array, Cause.Done>
  readonly output: Answers
  readonly errors: Answers
  readonly ended: Deferred.Deferred<void>
  readonly over: Deferred.Deferred<void>
  requests: number
  outputChunks: number
  isReady: boolean
  job: Job | undefined
  said: Answer | undefined
  errorAnswer: Answer | undefined
}

const makeRunning = (input: Running["input"], maxAnswerBytes: number): Running => ({
  key: randomBytes(8).toString("hex"),
  input,
  output: make(maxAnswerBytes, true),
  errors: make(maxErrorBytes, false),
  ended: Deferred.makeUnsafe(),
  over: Deferred.makeUnsafe(),
  requests: 0,
  outputChunks: 0,
  isReady: false,
  job: undefined,
  said: undefined,
  errorAnswer: undefined
})

const send = (self: Running, job: Job): void => {
  const mark = `${self.key} ${++self.requests}`
  self.job = job
  job.tries++
  self.said = self.errorAnswer = undefined
  self.output.begin(mark, job.request.expectedBytes)
  self.errors.begin(mark)
  Queue.offerUnsafe(self.input, lineOf(mark, job.request))
  const { input } = job.request
  if (input !== undefined && input.length > 0) Queue.offerUnsafe(self.input, input)
}

const completeJob = (job: Job, outcome: Outcome): void => {
  const { done } = job
  job.done = undefined
  done?.(outcome)
}

const makeRequestQueue = (maxAnswerBytes: number, interruptTimeoutMillis: number, begin: () => void) => {
  const waiting: Array<Job> = []
  const shells = new Set<Running>()
  let current: Running | undefined
  let isStarting = false
  let isClosed = false

  const failAll = (fault: Fault): void => {
    for (const job of waiting.splice(0)) completeJob(job, Effect.fail(fault))
  }

  const next = (): void => {
    if (waiting.length === 0) return
    if (current !== undefined) {
      if (current.isReady && current.job === undefined) send(current, waiting.shift()!)
    } else if (!isStarting) {
      isStarting = true
      begin()
    }
  }

  /**
   * Abandons a shell. Its current request fails with `fault`, which is absent if the shell has ended by itself. If the shell
   * never became ready, all waiting requests fail.
   */
  const end = (self: Running, fault?: Fault): void => {
    if (current !== self) return
    current = undefined
    const { isReady, job } = self
    Queue.endUnsafe(self.input)
    Deferred.doneUnsafe(self.ended, Effect.void)
    if (!isReady) failAll(fault ?? endedAtOnce(self.errors.bytesSoFar()))
    else if (job !== undefined) {
      const isRepeated = fault === undefined && job.request.repeats && job.tries < maxTries && job.done !== undefined
      if (isRepeated) waiting.unshift(job)
      else completeJob(job, Effect.fail(fault ?? endedAtWork(self.errors.bytesSoFar())))
    }
    next()
  }

  const answered = (self: Running): void => {
    const { errorAnswer, job, said } = self
    if (job === undefined || said === undefined || errorAnswer === undefined) return
    self.job = undefined
    const isLast = said.status >= lastAnswer
    const reply: Reply = {
      status: isLast ? said.status - lastAnswer : said.status,
      output: said.bytes,
      errors: errorAnswer.bytes.toString()
    }
    if (!self.isReady && reply.status !== 0) return end(self, missingTools(reply))
    self.isReady = true
    if (isLast) end(self)
    completeJob(job, Effect.succeed(reply))
    next()
  }

  return {
    started: (self: Running): void => {
      isStarting = false
      shells.add(self)
      current = self
      Queue.offerUnsafe(self.input, Buffer.from(`${self.key}\n`))
      send(self, { request: greeting, tries: 0, done: undefined })
      if (isClosed) end(self, filesystemClosed)
    },
    notStarted: (fault: Fault): void => {
      isStarting = false
      failAll(fault)
    },
    end,
    over: (self: Running): void => {
      shells.delete(self)
      Deferred.doneUnsafe(self.over, Effect.void)
    },
    onOutput: (self: Running, chunk: Uint8Array): void => {
      if (current !== self) return
      self.outputChunks++
      const answer = self.output.take(chunk)
      if (answer === "unasked") return end(self, unrequestedOutput)
      if (self.output.size() > maxAnswerBytes) return end(self, tooLarge(maxAnswerBytes))
      if (answer === undefined) return
      self.said = answer
      answered(self)
    },
    onErrors: (self: Running, chunk: Uint8Array): void => {
      if (current !== self) return
      self.outputChunks++
      const answer = self.errors.take(chunk)
      // Unrequested output on standard error is ignored, because nothing depends on it.
      if (answer === undefined || answer === "unasked") return
      self.errorAnswer = answer
      answered(self)
    },
    ask: (job: Job): void => {
      if (isClosed) return completeJob(job, Effect.fail(filesystemClosed))
      waiting.push(job)
      next()
    },
    withdraw: (job: Job): Effect.Effect<void> =>
      Effect.suspend(() => {
        const place = waiting.indexOf(job)
        if (place !== -1) waiting.splice(place, 1)
        const isSent = place === -1 && job.done !== undefined
        job.done = undefined
        if (!isSent || job.request.repeats) return Effect.void
        const settled = Effect.callback<void>((resume) => {
          job.done = () => resume(Effect.void)
        })
        return Effect.timeoutOrElse(settled, {
          duration: interruptTimeoutMillis,
          orElse: () =>
            Effect.sync(() => {
              if (current?.job === job) end(current, didNotEnd)
            })
        })
      }),
    close: Effect.suspend(() => {
      isClosed = true
      failAll(filesystemClosed)
      if (current !== undefined) end(current, filesystemClosed)
      return Effect.forEach(shells, ({ over }) => Deferred.await(over), { discard: true })
    })
  }
}

const each = (stream: Stream.Stream<Uint8Array, unknown>, use: (chunk: Uint8Array) => void): Effect.Effect<void> =>
  Effect.ignore(Stream.runForEachArray(stream, (chunks) => Effect.sync(() => chunks.forEach(use))))

/**
 * Creates a session, which ends when the scope closes. After the scope has closed, every request fails with Unavailable.
 */
export const makeSession = (
  start: Effect.Effect<Shell, Fault, Scope.Scope>,
  { maxAnswerBytes = 256 * 1024 * 1024, interruptTimeoutMillis = 10_000, silence = 120_000 }: Options = {}
): Effect.Effect<Session, never, Scope.Scope> =>
  Effect.gen(function* () {
    const fork = yield* FiberSet.makeRuntime<never, void>()
    const self = makeRequestQueue(maxAnswerBytes, interruptTimeoutMillis, () => void fork(serve))

    /** Ends a shell whose request produces no output, for example because it was stopped or waits for a FIFO. */
    const watch = Effect.fnUntraced(function* (to: Running) {
      let lastProgress = ""
      for (let silentChecks = 0; silentChecks < silenceChecks;) {
        yield* Effect.sleep(silence / silenceChecks)
        const now = `${to.requests} ${to.outputChunks}`
        silentChecks = to.job === undefined || now !== lastProgress ? 0 : silentChecks + 1
        lastProgress = now
      }
      self.end(to, silentTooLong)
    })

    const runShell = (shell: Shell, to: Running): Effect.Effect<void, never, Scope.Scope> =>
      Effect.gen(function* () {
        const errors = yield* Effect.forkScoped(each(shell.stderr, (chunk) => self.onErrors(to, chunk)))
        const output = yield* Effect.forkScoped(each(shell.stdout, (chunk) => self.onOutput(to, chunk)))
        yield* Effect.forkScoped(Effect.ignore(Stream.run(Stream.fromQueue(to.input), shell.stdin)))
        yield* Effect.forkScoped(watch(to))
        // Wait for standard error too, where the last output may arrive.
        const outputEnd = Effect.andThen(Fiber.await(output), Effect.timeoutOption(Fiber.await(errors), endTimeoutMillis))
        yield* Effect.raceFirst(Effect.asVoid(outputEnd), Deferred.await(to.ended))
        self.end(to)
        // The shell ends with its input and then stops the processes that it has started.
        yield* Effect.timeoutOrElse(Fiber.await(output), {
          duration: endTimeoutMillis,
          orElse: () => shell.killInside ?? Effect.void
        })
      })

    const serve = Effect.flatMap(Queue.unbounded<Uint8Array, Cause.Done>(), (input) => {
      const to = makeRunning(input, maxAnswerBytes)
      return Effect.scoped(
        Effect.flatMap(start, (shell) => {
          self.started(to)
          return Effect.ensuring(
            runShell(shell, to),
            Effect.sync(() => self.end(to))
          )
        })
      ).pipe(
        Effect.catch((fault) => Effect.sync(() => self.notStarted(fault))),
        Effect.ensuring(Effect.sync(() => self.over(to)))
      )
    })

    yield* Effect.addFinalizer(() => self.close)
    return {
      request: (request) =>
        Effect.callback<Reply, Fault>((resume) => {
          const job: Job = { request, tries: 0, done: resume }
          self.ask(job)
          return self.withdraw(job)
        })
    }
  })
