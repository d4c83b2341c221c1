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
  readonly restart: Effect.Effect<void>
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

interface ReadRequest {
  readonly ids: ReadonlyArray<string>
  readonly answers: Array<Answer | undefined>
  readonly settle: (outcome: ReadonlyArray<Answer | undefined> | ProcessEnded) => void
  isCancelled: boolean
}

/**
 * The failure of a question whose process ended. `isFirst` means that the process was answering this question, which
 * may be the cause.
 */
interface ProcessEnded {
  readonly _tag: "Ended"
  readonly end: End
  readonly isFirst: boolean
}

interface CatFileSession {
  readonly ask: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Answer | undefined>, ProcessEnded>
  readonly isOver: () => boolean
  readonly finish: () => Promise<unknown>
}

const maxBodyBytes = 2 ** 30
const lineFeed = 10

const header = /^([0-9a-f]{40}) (?:missing|(blob|tree|commit|tag) (\d{1,15}))$/

const openSession = ({ child, end }: Running, hasBodies: boolean): CatFileSession => {
  const requests: Array<ReadRequest> = []
  let line: Array<Buffer> = []
  let current: Answer | undefined
  /** The number of bytes of the body still to arrive, including the trailing line feed. */
  let remainingBytes = 0
  let pendingInput = ""
  let isOver = false
  let exitResult: End | undefined

  const setReferenced = (isReferenced: boolean): void => {
    for (const handle of [child, child.stdin as Socket, child.stdout as Socket, child.stderr as Socket]) {
      if (isReferenced) handle.ref()
      else handle.unref()
    }
  }
  const send = (text: string): void => {
    if (pendingInput === "") process.nextTick(flush)
    pendingInput += text
  }
  const flush = (): void => {
    child.stdin.write(pendingInput, "latin1")
    pendingInput = ""
  }
  const settleAnswer = (answer: Answer | undefined): void => {
    const request = requests[0]!
    request.answers.push(answer)
    if (request.answers.length < request.ids.length) return
    requests.shift()
    if (requests.length === 0) setReferenced(false)
    if (!request.isCancelled) request.settle(request.answers)
  }
  const beginAnswer = (text: string): boolean => {
    const request = requests[0]
    const [, id, kind, digits] = header.exec(text) ?? []
    if (request === undefined || id !== request.ids[request.answers.length]) return false
    if (kind === undefined) settleAnswer(undefined)
    else {
      const size = Number(digits)
      const isWanted = hasBodies && !request.isCancelled && size <= maxBodyBytes
      current = { kind: kind as Kind, size, body: isWanted ? Buffer.allocUnsafe(size) : undefined }
      remainingBytes = hasBodies ? size + 1 : 0
      if (remainingBytes === 0) finish()
    }
    return true
  }
  const finish = (): void => {
    const answer = current
    current = undefined
    settleAnswer(answer)
  }
  const takeLine = (bytes: Buffer): number => {
    const at = bytes.indexOf(lineFeed)
    line.push(at === -1 ? bytes : bytes.subarray(0, at))
    if (at === -1) return bytes.length
    const text = Buffer.concat(line).toString("latin1")
    line = []
    // The output does not match the question. Kill the process; a new one gets the questions.
    if (!beginAnswer(text)) child.kill("SIGKILL")
    return at + 1
  }
  const takeBody = ({ body, size }: Answer, bytes: Buffer): number => {
    const taken = Math.min(remainingBytes, bytes.length)
    if (body !== undefined) bytes.copy(body, size + 1 - remainingBytes, 0, Math.min(taken, remainingBytes - 1))
    remainingBytes -= taken
    if (remainingBytes === 0) finish()
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
  void end.then((processEnd) => {
    isOver = true
    exitResult = processEnd
    for (const [at, request] of requests.splice(0).entries()) {
      if (!request.isCancelled) request.settle({ _tag: "Ended", end: processEnd, isFirst: at === 0 })
    }
  })
  setReferenced(false)

  return {
    isOver: () => isOver,
    finish: () => {
      isOver = true
      // Keep this process alive until git has ended.
      if (exitResult === undefined) setReferenced(true)
      child.stdin.end()
      return end
    },
    ask: (ids) =>
      Effect.callback((resume) => {
        if (exitResult !== undefined) return resume(Effect.fail({ _tag: "Ended", end: exitResult, isFirst: false }))
        const request: ReadRequest = {
          ids,
          answers: [],
          isCancelled: false,
          settle: (outcome) => resume("_tag" in outcome ? Effect.fail(outcome) : Effect.succeed(outcome))
        }
        requests.push(request)
        setReferenced(true)
        send(`${ids.join("\n")}\n`)
        return Effect.sync(() => {
          request.isCancelled = true
        })
      })
  }
}

/** The most times that a question goes to a new process after something from outside ended the old one. */
const maxRestarts = 3

const makeRequester = (git: Git, args: ReadonlyArray<string>, hasBodies: boolean, scope: Scope.Scope) => {
  const lock = Semaphore.makeUnsafe(1)
  let current: CatFileSession | undefined
  const currentSession: Effect.Effect<CatFileSession, StoreFault> = lock.withPermit(
    Effect.suspend(() => {
      if (current !== undefined && !current.isOver()) return Effect.succeed(current)
      return Effect.map(Scope.provide(git.start(args), scope), (running) => (current = openSession(running, hasBodies)))
    })
  )
  const ask = (ids: ReadonlyArray<string>, tries = maxRestarts): Effect.Effect<ReadonlyArray<Answer | undefined>, StoreFault> =>
    Effect.catch(
      Effect.flatMap(currentSession, (session) => session.ask(ids)),
      (fault): Effect.Effect<ReadonlyArray<Answer | undefined>, StoreFault> => {
        if (fault._tag === "StoreFault") return Effect.fail(fault)
        const { end, isFirst } = fault
        if (end.error === undefined && !isFirst) return ask(ids, tries)
        const isOurs = end.error !== undefined || (end.code !== null && end.code !== 0) || tries === 0
        return isOurs ? Effect.fail(failureOf("cat-file", end)) : ask(ids, tries - 1)
      }
    )
  return { ask, restart: Effect.promise(async () => current?.finish()) }
}

const corrupt = (id: string, why: string): StoreFault => storeFault("corrupt", `the store is damaged: ${id} ${why}`)

const verifyObject = (id: string, answer: Answer | undefined): Effect.Effect<Found, StoreFault> => {
  if (answer === undefined) return Effect.fail(corrupt(id, "is not in it"))
  const { body, kind, size } = answer
  if (body === undefined)
    return Effect.fail(storeFault("budget", `${id} has ${size} bytes, which is too much to be read at once`))
  const actual = createHash("sha1").update(`${kind} ${size}\0`).update(body).digest("hex")
  return actual === id ? Effect.succeed({ kind, body }) : Effect.fail(corrupt(id, `has the content of ${actual}`))
}

/** Waits until the stream is readable or has ended. The stream never buffers more than its high-water mark. */
const waitUntilReadable = (stream: Readable): Effect.Effect<void> =>
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

const streamBlob = ({ child, end }: Running, id: string, size: number) => {
  const { stdout } = child
  const hash = createHash("sha1").update(`blob ${size}\0`)
  const checkEnd: Effect.Effect<never, StoreFault | Cause.Done> = Effect.flatMap(
    Effect.promise(() => end),
    (processEnd): Effect.Effect<never, StoreFault | Cause.Done> => {
      if (processEnd.code !== 0) return Effect.fail(failureOf("cat-file", processEnd))
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
    return stdout.readableEnded || stdout.destroyed ? checkEnd : Effect.flatMap(waitUntilReadable(stdout), () => pull)
  })
  return Stream.fromPull(Effect.succeed(pull))
}

const invalidId = (text: string): StoreFault => storeFault("corrupt", `${JSON.stringify(text.slice(0, 60))} is no object's id`)

const checkIds = (ids: ReadonlyArray<string>): Effect.Effect<void, StoreFault> => {
  const wrong = ids.find((id) => !isId(id))
  return wrong === undefined ? Effect.void : Effect.fail(invalidId(wrong))
}

export const make = (git: Git): Effect.Effect<Reader, never, Scope.Scope> =>
  Effect.map(Effect.scope, (scope) => {
    const bodies = makeRequester(git, ["cat-file", "--batch"], true, scope)
    const heads = makeRequester(git, ["cat-file", "--batch-check"], false, scope)
    const sizes: Reader["sizes"] = (ids) =>
      ids.length === 0 ? Effect.succeed([]) : Effect.andThen(checkIds(ids), heads.ask(ids))
    return {
      object: (id) => Effect.flatMap(Effect.andThen(checkIds([id]), bodies.ask([id])), ([answer]) => verifyObject(id, answer)),
      sizes,
      restart: Effect.andThen(bodies.restart, heads.restart),
      stream: (id) =>
        Stream.unwrap(
          Effect.gen(function* () {
            const [found] = yield* sizes([id])
            if (found === undefined) return yield* Effect.fail(corrupt(id, "is not in it"))
            if (found.kind !== "blob") return yield* Effect.fail(corrupt(id, `is a ${found.kind}, where a blob should be`))
            const running = yield* git.start(["cat-file", "blob", id])
            running.child.stdin.end()
            return streamBlob(running, id, found.size)
          })
        )
    }
  })
