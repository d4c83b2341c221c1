/**
 * Reads objects through one `git cat-file --batch` process, started at the first question and used for many.
 *
 * Starting a process takes longer than reading a hundred objects. Every object is checked against its id, because a
 * store can be damaged or prepared by an attacker.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { createHash } from "../../runtime/node.ts"
import type { Socket } from "node:net"
import type { Readable } from "node:stream"
import { type StoreFault, storeFault } from "../errors.ts"
import { isId, type ObjectKind } from "./objects.ts"
import { type End, failureOf, type Git, type Running } from "./process.ts"

export type Kind = ObjectKind | "tag"

export interface Found {
  readonly kind: Kind
  readonly body: Buffer
}

export interface Size {
  readonly kind: Kind
  readonly size: number
}

export interface Reader {
  /**
   * Reads a whole object into memory. Fails with "corrupt" if the object is missing or different, and with "budget"
   * beyond 1 GiB.
   */
  readonly object: (id: string) => Effect.Effect<Found, StoreFault>
  /** Returns kind and size of each id, in order; `undefined` for a missing object. */
  readonly sizes: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Size | undefined>, StoreFault>
  /** Ends the current processes, which keep removed packs open. The next question starts new ones. */
  readonly renew: Effect.Effect<void>
  /**
   * Streams a blob of any size, with backpressure. A mismatch between content and id fails at the end of the stream.
   */
  readonly stream: (id: string) => Stream.Stream<Uint8Array, StoreFault>
}

/** The answer about one id. The body is absent if it is not wanted or larger than 1 GiB. */
interface Answer {
  readonly kind: Kind
  readonly size: number
  readonly body: Buffer | undefined
}

interface Question {
  readonly ids: ReadonlyArray<string>
  readonly answers: Array<Answer | undefined>
  readonly settle: (outcome: ReadonlyArray<Answer | undefined> | Ended) => void
  isWithdrawn: boolean
}

/**
 * The failure of a question whose process ended. `isFirst` means that the process was answering this question, which
 * may be the cause.
 */
interface Ended {
  readonly _tag: "Ended"
  readonly end: End
  readonly isFirst: boolean
}

interface Conversation {
  readonly ask: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Answer | undefined>, Ended>
  readonly isOver: () => boolean
  readonly finish: () => Promise<unknown>
}

const largest = 2 ** 30
const lineFeed = 10

const header = /^([0-9a-f]{40}) (?:missing|(blob|tree|commit|tag) (\d{1,15}))$/

const converse = ({ child, end }: Running, hasBodies: boolean): Conversation => {
  const questions: Array<Question> = []
  let line: Array<Buffer> = []
  let current: Answer | undefined
  /** The number of bytes of the body still to arrive, including the trailing line feed. */
  let missing = 0
  let unsent = ""
  let isOver = false
  let over: End | undefined

  const hold = (isHeld: boolean): void => {
    for (const handle of [child, child.stdin as Socket, child.stdout as Socket, child.stderr as Socket]) {
      if (isHeld) handle.ref()
      else handle.unref()
    }
  }
  const send = (text: string): void => {
    if (unsent === "") process.nextTick(flush)
    unsent += text
  }
  const flush = (): void => {
    child.stdin.write(unsent, "latin1")
    unsent = ""
  }
  const answered = (answer: Answer | undefined): void => {
    const question = questions[0]!
    question.answers.push(answer)
    if (question.answers.length < question.ids.length) return
    questions.shift()
    if (questions.length === 0) hold(false)
    if (!question.isWithdrawn) question.settle(question.answers)
  }
  const begin = (text: string): boolean => {
    const question = questions[0]
    const [, id, kind, digits] = header.exec(text) ?? []
    if (question === undefined || id !== question.ids[question.answers.length]) return false
    if (kind === undefined) answered(undefined)
    else {
      const size = Number(digits)
      const isWanted = hasBodies && !question.isWithdrawn && size <= largest
      current = { kind: kind as Kind, size, body: isWanted ? Buffer.allocUnsafe(size) : undefined }
      missing = hasBodies ? size + 1 : 0
      if (missing === 0) finish()
    }
    return true
  }
  const finish = (): void => {
    const answer = current
    current = undefined
    answered(answer)
  }
  const takeLine = (bytes: Buffer): number => {
    const at = bytes.indexOf(lineFeed)
    line.push(at === -1 ? bytes : bytes.subarray(0, at))
    if (at === -1) return bytes.length
    const text = Buffer.concat(line).toString("latin1")
    line = []
    // The output does not match the question. Kill the process; a new one gets the questions.
    if (!begin(text)) child.kill("SIGKILL")
    return at + 1
  }
  const takeBody = ({ body, size }: Answer, bytes: Buffer): number => {
    const taken = Math.min(missing, bytes.length)
    if (body !== undefined) bytes.copy(body, size + 1 - missing, 0, Math.min(taken, missing - 1))
    missing -= taken
    if (missing === 0) finish()
    return taken
  }
  child.stdout.on("data", (bytes: Buffer) => {
    for (let rest = bytes; rest.length > 0 && !child.killed;) {
      rest = rest.subarray(current === undefined ? takeLine(rest) : takeBody(current, rest))
    }
  })
  child.once("exit", () => {
    isOver = true
  })
  void end.then((how) => {
    isOver = true
    over = how
    for (const [at, question] of questions.splice(0).entries()) {
      if (!question.isWithdrawn) question.settle({ _tag: "Ended", end: how, isFirst: at === 0 })
    }
  })
  hold(false)

  return {
    isOver: () => isOver,
    finish: () => {
      isOver = true
      // Keep this process alive until git has ended.
      if (over === undefined) hold(true)
      child.stdin.end()
      return end
    },
    ask: (ids) =>
      Effect.callback((resume) => {
        if (over !== undefined) return resume(Effect.fail({ _tag: "Ended", end: over, isFirst: false }))
        const question: Question = {
          ids,
          answers: [],
          isWithdrawn: false,
          settle: (outcome) => resume("_tag" in outcome ? Effect.fail(outcome) : Effect.succeed(outcome))
        }
        questions.push(question)
        hold(true)
        send(`${ids.join("\n")}\n`)
        return Effect.sync(() => {
          question.isWithdrawn = true
        })
      })
  }
}

/** The most times that a question goes to a new process after something from outside ended the old one. */
const patience = 3

const makeAsk = (git: Git, args: ReadonlyArray<string>, hasBodies: boolean, scope: Scope.Scope) => {
  const one = Semaphore.makeUnsafe(1)
  let current: Conversation | undefined
  const conversation: Effect.Effect<Conversation, StoreFault> = one.withPermit(
    Effect.suspend(() => {
      if (current !== undefined && !current.isOver()) return Effect.succeed(current)
      return Effect.map(Scope.provide(git.start(args), scope), (running) => (current = converse(running, hasBodies)))
    })
  )
  const ask = (ids: ReadonlyArray<string>, tries = patience): Effect.Effect<ReadonlyArray<Answer | undefined>, StoreFault> =>
    Effect.catch(
      Effect.flatMap(conversation, (talk) => talk.ask(ids)),
      (fault): Effect.Effect<ReadonlyArray<Answer | undefined>, StoreFault> => {
        if (fault._tag === "StoreFault") return Effect.fail(fault)
        const { end, isFirst } = fault
        if (end.error === undefined && !isFirst) return ask(ids, tries)
        const isOurs = end.error !== undefined || (end.code !== null && end.code !== 0) || tries === 0
        return isOurs ? Effect.fail(failureOf("cat-file", end)) : ask(ids, tries - 1)
      }
    )
  return { ask, renew: Effect.promise(async () => current?.finish()) }
}

const corrupt = (id: string, why: string): StoreFault => storeFault("corrupt", `the store is damaged: ${id} ${why}`)

const checked = (id: string, answer: Answer | undefined): Effect.Effect<Found, StoreFault> => {
  if (answer === undefined) return Effect.fail(corrupt(id, "is not in it"))
  const { body, kind, size } = answer
  if (body === undefined)
    return Effect.fail(storeFault("budget", `${id} has ${size} bytes, which is too much to be read at once`))
  const actual = createHash("sha1").update(`${kind} ${size}\0`).update(body).digest("hex")
  return actual === id ? Effect.succeed({ kind, body }) : Effect.fail(corrupt(id, `has the content of ${actual}`))
}

/** Waits until the stream is readable or has ended. The stream never buffers more than its high-water mark. */
const readable = (stream: Readable): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (stream.readableEnded || stream.destroyed) return resume(Effect.void)
    const events = ["readable", "end", "close", "error"]
    const off = (): void => {
      for (const event of events) stream.off(event, done)
    }
    const done = (): void => {
      off()
      resume(Effect.void)
    }
    for (const event of events) stream.on(event, done)
    return Effect.sync(off)
  })

const bytesOf = ({ child, end }: Running, id: string, size: number) => {
  const { stdout } = child
  const hash = createHash("sha1").update(`blob ${size}\0`)
  const last: Effect.Effect<never, StoreFault | Cause.Done> = Effect.flatMap(
    Effect.promise(() => end),
    (how): Effect.Effect<never, StoreFault | Cause.Done> => {
      if (how.code !== 0) return Effect.fail(failureOf("cat-file", how))
      const actual = hash.digest("hex")
      return actual === id ? Cause.done() : Effect.fail(corrupt(id, `has the content of ${actual}`))
    }
  )
  const pull: Effect.Effect<readonly [Uint8Array], StoreFault | Cause.Done> = Effect.suspend(() => {
    const bytes: Buffer | null = stdout.read()
    if (bytes !== null) {
      hash.update(bytes)
      return Effect.succeed([bytes] as const)
    }
    return stdout.readableEnded || stdout.destroyed ? last : Effect.flatMap(readable(stdout), () => pull)
  })
  return Stream.fromPull(Effect.succeed(pull))
}

const noId = (text: string): StoreFault => storeFault("corrupt", `${JSON.stringify(text.slice(0, 60))} is no object's id`)

const check = (ids: ReadonlyArray<string>): Effect.Effect<void, StoreFault> => {
  const wrong = ids.find((id) => !isId(id))
  return wrong === undefined ? Effect.void : Effect.fail(noId(wrong))
}

export const make = (git: Git): Effect.Effect<Reader, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const bodies = makeAsk(git, ["cat-file", "--batch"], true, scope)
    const heads = makeAsk(git, ["cat-file", "--batch-check"], false, scope)
    const sizes: Reader["sizes"] = (ids) => (ids.length === 0 ? Effect.succeed([]) : Effect.andThen(check(ids), heads.ask(ids)))
    return {
      object: (id) => Effect.flatMap(Effect.andThen(check([id]), bodies.ask([id])), ([answer]) => checked(id, answer)),
      sizes,
      renew: Effect.andThen(bodies.renew, heads.renew),
      stream: (id) =>
        Stream.unwrap(
          Effect.gen(function* () {
            const [found] = yield* sizes([id])
            if (found === undefined) return yield* Effect.fail(corrupt(id, "is not in it"))
            if (found.kind !== "blob") return yield* Effect.fail(corrupt(id, `is a ${found.kind}, where a blob should be`))
            const running = yield* git.start(["cat-file", "blob", id])
            running.child.stdin.end()
            return bytesOf(running, id, found.size)
          })
        )
    }
  })
