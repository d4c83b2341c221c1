/**
 * A POSIX shell that lives on and answers one request after another over its standard input and output, so that what it costs to ask is
 * a round trip, and not a process of the engine. It is started when it is first needed, and again when it has ended.
 *
 * A request is one line, of which the shell takes nothing but what begins with this session's own key: were a transfer ever cut short,
 * the bytes that follow would not be taken for commands. The answer ends with a line of the same key and the request's number, on both
 * streams, so each error belongs to its request. A shell that says anything unasked is given up.
 */
import * as Deferred from "effect/Deferred"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberSet from "effect/FiberSet"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type * as Sink from "effect/Sink"
import * as Stream from "effect/Stream"
import { randomBytes } from "../../../runtime/node.ts"
import type { Fault } from "../../../model/FsError.ts"
import * as Answers from "./answers.ts"
import { lastAnswer } from "./script.ts"

/** A started process, as `ChildProcessSpawner` answers it. It ends when its input does. */
export interface Shell {
  readonly stdin: Sink.Sink<void, Uint8Array, never, unknown>
  readonly stdout: Stream.Stream<Uint8Array, unknown>
  readonly stderr: Stream.Stream<Uint8Array, unknown>
  /** Where it can outlive its scope: for one that has not ended with its input. */
  readonly killInside?: Effect.Effect<void> | undefined
}

export interface Request {
  /** A function of the script. */
  readonly call: string
  /** Any bytes but NUL. */
  readonly arguments: ReadonlyArray<string | Uint8Array>
  /** What the function takes with `take`; at most 1 MiB, so that nobody waits for long. */
  readonly input?: Uint8Array | undefined
  /** It only looks, so it is asked again of another shell when the one that was at it has ended. */
  readonly repeats: boolean
}

export interface Reply {
  /** Of the function. */
  readonly status: number
  readonly output: Buffer
  /** What was said meanwhile on standard error, at most 64 KiB of it. */
  readonly errors: string
}

export interface Session {
  /**
   * In order of arrival, one after another. Fails only where there is no answer: with Unavailable, or IoError for one that is too large.
   * Who is interrupted leaves the queue; what has been sent and may change something is waited for all the same, but not for ever: a
   * shell that somebody has stopped is given up.
   */
  readonly request: (request: Request) => Effect.Effect<Reply, Fault>
}

export interface Options {
  /** Bytes of an answer; more ends the shell. @default 256 MiB */
  readonly most?: number | undefined
  /** Milliseconds for which who is interrupted waits for what has been sent. @default 10 seconds */
  readonly patience?: number | undefined
  /** Milliseconds for which a shell may be at a request without a word; more ends it, with Timeout. @default 2 minutes */
  readonly silence?: number | undefined
}

/** How often a request is sent. */
const maxTries = 3
const mostErrors = 64 * 1024
/** Milliseconds that a shell has to end by itself. */
const grace = 2000
/** How often it is looked whether a shell still says something, in the time that it may be silent. */
const looks = 8

const closed: Fault = { _tag: "Unavailable", detail: "this filesystem has been closed" }

const tooLarge = (most: number): Fault => ({
  _tag: "IoError",
  detail: `the shell's answer is larger than ${most} bytes, which is not held in memory`
})

const words = (errors: Buffer): string => {
  const said = errors
    .toString()
    .replace(/[\u0000-\u001f\u007f]+/g, " ")
    .trim()
  return said === "" ? "" : `: ${said.length > 300 ? `…${said.slice(-300)}` : said}`
}

const atWork = (errors: Buffer): Fault => ({
  _tag: "Unavailable",
  detail: `the shell ended while it was at work, and whether the work was done cannot be told${words(errors)}`
})

const atOnce = (errors: Buffer): Fault => ({ _tag: "Unavailable", detail: `the shell ended at once${words(errors)}` })

const confused: Fault = { _tag: "Unavailable", detail: "the shell said something that nobody had asked for" }

const lacking = ({ errors }: Reply): Fault => ({
  _tag: "Unavailable",
  detail: `the shell there lacks what is needed${words(Buffer.from(errors))}`
})

const silent: Fault = { _tag: "Timeout", detail: "the shell was at work for too long without a word" }

const stuck: Fault = { _tag: "Unavailable", detail: "the shell did not come to an end with its work" }

type Outcome = Effect.Effect<Reply, Fault>

interface Job {
  readonly request: Request
  tries: number
  /** Left out when nobody waits any more. */
  done: ((outcome: Outcome) => void) | undefined
}

/** One byte a character. A newline would end the request, so the script has one in a variable. */
const quoted = (argument: string | Uint8Array): string => {
  const bytes =
    typeof argument === "string" ? Buffer.from(argument) : Buffer.from(argument.buffer, argument.byteOffset, argument.length)
  return `'${bytes.toString("latin1").replaceAll("'", "'\\''").replaceAll("\n", `'"$N"'`)}'`
}

const lineOf = (mark: string, { arguments: args, call, input }: Request): Buffer =>
  Buffer.from(`${mark} ${input?.length ?? 0} ${call} ${args.map(quoted).join(" ")}\n`, "latin1")

/** Before anything else: it is alive, and has what the script needs. */
const greeting: Request = { call: "greet", arguments: [], repeats: false }

/** One shell, from its start to its end. */
interface Running {
  readonly key: string
  readonly input: Queue.Queue<Uint8Array, Cause.Done>
  readonly output: Answers.Answers
  readonly errors: Answers.Answers
  /** It has been given up. */
  readonly ended: Deferred.Deferred<void>
  /** Its process is gone. */
  readonly over: Deferred.Deferred<void>
  requests: number
  /** How often it has been heard. */
  words: number
  isReady: boolean
  job: Job | undefined
  /** The halves of the answer that have come. */
  said: Answers.Answer | undefined
  complained: Answers.Answer | undefined
}

const running = (input: Running["input"], most: number): Running => ({
  key: randomBytes(8).toString("hex"),
  input,
  output: Answers.make(most, true),
  errors: Answers.make(mostErrors, false),
  ended: Deferred.makeUnsafe(),
  over: Deferred.makeUnsafe(),
  requests: 0,
  words: 0,
  isReady: false,
  job: undefined,
  said: undefined,
  complained: undefined
})

const send = (self: Running, job: Job): void => {
  const mark = `${self.key} ${++self.requests}`
  self.job = job
  job.tries++
  self.said = self.complained = undefined
  self.output.begin(mark)
  self.errors.begin(mark)
  Queue.offerUnsafe(self.input, lineOf(mark, job.request))
  const { input } = job.request
  if (input !== undefined && input.length > 0) Queue.offerUnsafe(self.input, input)
}

const settle = (job: Job, outcome: Outcome): void => {
  const { done } = job
  job.done = undefined
  done?.(outcome)
}

/** The queue of requests, and the shell that is at them. `begin` starts another shell. */
const conversation = (most: number, patience: number, begin: () => void) => {
  const waiting: Array<Job> = []
  const shells = new Set<Running>()
  let current: Running | undefined
  let isStarting = false
  let isClosed = false

  const failAll = (fault: Fault): void => {
    for (const job of waiting.splice(0)) settle(job, Effect.fail(fault))
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

  /** Gives the shell up. `fault`: what that means for the request that it is at; `undefined` when it has ended by itself. */
  const end = (self: Running, fault?: Fault): void => {
    if (current !== self) return
    current = undefined
    const { isReady, job } = self
    Queue.endUnsafe(self.input)
    Deferred.doneUnsafe(self.ended, Effect.void)
    if (!isReady) failAll(fault ?? atOnce(self.errors.soFar()))
    else if (job !== undefined) {
      const isAskedAgain = fault === undefined && job.request.repeats && job.tries < maxTries && job.done !== undefined
      if (isAskedAgain) waiting.unshift(job)
      else settle(job, Effect.fail(fault ?? atWork(self.errors.soFar())))
    }
    next()
  }

  const answered = (self: Running): void => {
    const { complained, job, said } = self
    if (job === undefined || said === undefined || complained === undefined) return
    self.job = undefined
    const isLast = said.status >= lastAnswer
    const reply: Reply = {
      status: isLast ? said.status - lastAnswer : said.status,
      output: said.bytes,
      errors: complained.bytes.toString()
    }
    if (!self.isReady && reply.status !== 0) return end(self, lacking(reply))
    self.isReady = true
    // Before anybody can ask for more.
    if (isLast) end(self)
    settle(job, Effect.succeed(reply))
    next()
  }

  return {
    started: (self: Running): void => {
      isStarting = false
      shells.add(self)
      current = self
      Queue.offerUnsafe(self.input, Buffer.from(`${self.key}\n`))
      send(self, { request: greeting, tries: 0, done: undefined })
      if (isClosed) end(self, closed)
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
      self.words++
      const answer = self.output.take(chunk)
      if (answer === "unasked") return end(self, confused)
      if (self.output.size() > most) return end(self, tooLarge(most))
      if (answer === undefined) return
      self.said = answer
      answered(self)
    },
    onErrors: (self: Running, chunk: Uint8Array): void => {
      if (current !== self) return
      self.words++
      const answer = self.errors.take(chunk)
      // Nobody relies on what is said there, so what is unasked for does no harm.
      if (answer === undefined || answer === "unasked") return
      self.complained = answer
      answered(self)
    },
    ask: (job: Job): void => {
      if (isClosed) return settle(job, Effect.fail(closed))
      waiting.push(job)
      next()
    },
    /** Who has asked is interrupted. */
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
          duration: patience,
          orElse: () =>
            Effect.sync(() => {
              if (current?.job === job) end(current, stuck)
            })
        })
      }),
    close: Effect.suspend(() => {
      isClosed = true
      failAll(closed)
      if (current !== undefined) end(current, closed)
      return Effect.forEach(shells, ({ over }) => Deferred.await(over), { discard: true })
    })
  }
}

const each = (stream: Stream.Stream<Uint8Array, unknown>, use: (chunk: Uint8Array) => void): Effect.Effect<void> =>
  Effect.ignore(Stream.runForEachArray(stream, (chunks) => Effect.sync(() => chunks.forEach(use))))

/**
 * A session for as long as the scope lives; after that every request fails with Unavailable. `start` starts a shell that runs the
 * program of `script.ts`, for the scope that it is given.
 */
export const make = (
  start: Effect.Effect<Shell, Fault, Scope.Scope>,
  { most = 256 * 1024 * 1024, patience = 10_000, silence = 120_000 }: Options = {}
): Effect.Effect<Session, never, Scope.Scope> =>
  Effect.gen(function* () {
    const fork = yield* FiberSet.makeRuntime<never, void>()
    const self = conversation(most, patience, () => void fork(serve))

    /** Ends a shell that is at a request and says nothing, such as one that has been stopped, or waits for a FIFO. */
    const watch = Effect.fnUntraced(function* (to: Running) {
      let heard = ""
      for (let quiet = 0; quiet < looks;) {
        yield* Effect.sleep(silence / looks)
        const now = `${to.requests} ${to.words}`
        quiet = to.job === undefined || now !== heard ? 0 : quiet + 1
        heard = now
      }
      self.end(to, silent)
    })

    const talk = (shell: Shell, to: Running): Effect.Effect<void, never, Scope.Scope> =>
      Effect.gen(function* () {
        const errors = yield* Effect.forkScoped(each(shell.stderr, (chunk) => self.onErrors(to, chunk)))
        const output = yield* Effect.forkScoped(each(shell.stdout, (chunk) => self.onOutput(to, chunk)))
        yield* Effect.forkScoped(Effect.ignore(Stream.run(Stream.fromQueue(to.input), shell.stdin)))
        yield* Effect.forkScoped(watch(to))
        // Its last words may come on the other stream.
        const silence = Effect.andThen(Fiber.await(output), Effect.timeoutOption(Fiber.await(errors), grace))
        yield* Effect.raceFirst(Effect.asVoid(silence), Deferred.await(to.ended))
        self.end(to)
        // It ends with its input, and takes leave of what it has started.
        yield* Effect.timeoutOrElse(Fiber.await(output), { duration: grace, orElse: () => shell.killInside ?? Effect.void })
      })

    const serve = Effect.flatMap(Queue.unbounded<Uint8Array, Cause.Done>(), (input) => {
      const to = running(input, most)
      return Effect.scoped(
        Effect.flatMap(start, (shell) => {
          self.started(to)
          return Effect.ensuring(
            talk(shell, to),
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
