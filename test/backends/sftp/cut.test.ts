/** Tests Sftp on a connection that is cut within a packet, and on a slow one. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { PassThrough, Writable } from "node:stream"
import type { Dial } from "../../../src/backends/sftp/link.ts"
import { make } from "../../../src/filesystem/Filesystem.ts"
import { directory } from "../../conformance/filesystems.ts"
import { runs } from "../../runs.ts"
import { passing, through } from "./between.ts"
import { type Case, cases, hidden, newTree, oldTree, plantTree, treeOf } from "./operations.ts"
import { describeSftp, openPiped, pipe, type Piped } from "./servers.ts"

type Direction = "requests" | "answers"

/** Relays the bytes of a connection, and cuts the connection after `arm(n)` and n more bytes in one direction, once. */
const cutting = (direction: Direction) => {
  let left = Number.POSITIVE_INFINITY
  let counted = 0
  let isCut = false
  let child: Piped["child"] | undefined
  const dial: Dial = Effect.map(
    pipe((piped) => void ({ child } = piped)),
    ({ close, input, output }) => {
      const server = child!
      const answers = new PassThrough()
      let isOver = false
      /** Returns the bytes before the cut. */
      const taken = (chunk: Buffer): Buffer => {
        counted += chunk.length
        if (isCut || chunk.length < left) {
          left -= chunk.length
          return chunk
        }
        isCut = true
        isOver = true
        return chunk.subarray(0, left)
      }
      input.on("data", (chunk: Buffer) => {
        if (isOver) return
        answers.write(direction === "answers" ? taken(chunk) : chunk)
        if (!isOver) return
        close()
        answers.end()
      })
      input.on("end", () => answers.end())
      output.on("error", () => undefined)
      return {
        input: answers,
        output: new Writable({
          write: (chunk: Buffer, _, done) => {
            done()
            if (isOver) return
            output.write(direction === "requests" ? taken(chunk) : chunk)
            if (!isOver) return
            // The server carries out all requests that it has received whole. Its answers are lost.
            output.end()
            server.once("close", () => answers.end())
          }
        }),
        close
      }
    }
  )
  return {
    dial,
    arm: (bytes: number) => {
      left = bytes
      counted = 0
    },
    counted: () => counted,
    isCut: () => isCut
  }
}

/** Checks the result of a call on a tree, after the connection is open again. */
const check = ({ isSafe }: Case, before: object, after: object, root: string, result: object, at: string): void => {
  const found = treeOf(root)
  const where = `${at}: ${JSON.stringify(result).slice(0, 300)}`
  assert.deepStrictEqual(hidden(found), [], where)
  const { _tag, failure } = result as { readonly _tag: string; readonly failure?: { readonly _tag: string } }
  if (_tag === "Success") return assert.deepStrictEqual<object>(found, after, where)
  assert.isFalse(isSafe, where)
  assert.strictEqual(failure?._tag, "Unavailable", where)
  if (JSON.stringify(found) !== JSON.stringify(after)) assert.deepStrictEqual<object>(found, before, where)
}

/** Returns some of the numbers from 1 to `max`, with both ends of the range. */
const someOf = (max: number, count: number): ReadonlyArray<number> => [
  ...new Set([1, 4, ...Array.from({ length: count }, () => 1 + Math.floor(Math.random() * max)), max].filter((n) => n <= max))
]

describeSftp("Sftp on a connection that is cut at random bytes", () => {
  for (const one of cases) {
    for (const direction of ["requests", "answers"] as const) {
      it.live(`${one.name} leaves the old or the new tree, if the connection is cut within the ${direction}`, () =>
        Effect.gen(function* () {
          const before = yield* oldTree
          const after = yield* newTree(one)
          /** Runs the call once. Returns the number of its bytes. */
          const cutAt = (bytes: number) =>
            Effect.gen(function* () {
              const root = yield* directory
              plantTree(root)
              const { arm, counted, dial, isCut } = cutting(direction)
              const fs = make(yield* openPiped(root, {}, {}, dial))
              // The answers to the end of the opening have arrived when this call ends.
              yield* fs.exists("b.txt")
              arm(bytes)
              const result = yield* Effect.result(one.run(fs))
              const total = counted()
              // The listings of a later call remove the leftovers.
              yield* fs.walk(".").pipe(Stream.runDrain)
              yield* fs.exists("b.txt")
              assert.strictEqual(isCut(), Number.isFinite(bytes))
              check(one, before, after, root, result, `byte ${bytes}`)
              return total
            }).pipe(Effect.scoped)
          const total = yield* cutAt(Number.POSITIVE_INFINITY)
          assert.isAbove(total, 20)
          yield* Effect.forEach(someOf(total, runs(16)), cutAt, { concurrency: 4, discard: true })
        }).pipe(Effect.scoped)
      )
    }
  }
})

/** Passes requests and answers in small pieces, about 50 of each chunk. */
const trickling: Dial = Effect.map(pipe(), ({ close, input, output }) => {
  const pieces = async function* (source: AsyncIterable<Buffer>) {
    for await (const chunk of source) {
      const size = Math.max(3, Math.floor(chunk.length / 50))
      for (let at = 0; at < chunk.length; at += size) {
        yield chunk.subarray(at, at + size)
        await new Promise((resolve) => setImmediate(resolve))
      }
    }
  }
  const [answers, requests] = [new PassThrough(), new PassThrough()]
  const relay = async (from: AsyncIterable<Buffer>, to: Writable) => {
    for await (const piece of pieces(from)) to.write(piece)
    to.end()
  }
  output.on("error", () => undefined)
  void relay(input, answers).catch(() => answers.end())
  void relay(requests, output).catch(() => undefined)
  return { input: answers, output: requests, close }
})

describeSftp("Sftp on a slow server", () => {
  for (const one of cases) {
    it.live(`${one.name} succeeds if all bytes arrive in small pieces`, () =>
      Effect.gen(function* () {
        const before = yield* oldTree
        const after = yield* newTree(one)
        const root = yield* directory
        plantTree(root)
        const fs = make(yield* openPiped(root, {}, {}, trickling))
        const result = yield* Effect.result(one.run(fs))
        yield* fs.exists("b.txt")
        assert.strictEqual(result._tag, "Success")
        check(one, before, after, root, result, "trickling")
      }).pipe(Effect.scoped)
    )

    it.live(`${one.name} leaves the old or the new tree if an answer does not arrive in time`, () =>
      Effect.gen(function* () {
        const before = yield* oldTree
        const after = yield* newTree(one)
        const answers = { count: 0 }
        const holding = (nth: number) =>
          Effect.gen(function* () {
            const root = yield* directory
            plantTree(root)
            const between = passing()
            const timings = { answerMillis: 400 }
            const fs = make(yield* openPiped(root, {}, { timings }, through(pipe(), between)))
            yield* fs.exists("b.txt")
            let count = 0
            between.onAnswer = () => (++count === nth ? new Promise(() => {}) : "pass")
            const result = yield* Effect.result(one.run(fs))
            answers.count = Math.max(answers.count, count)
            yield* fs.walk(".").pipe(Stream.runDrain)
            yield* fs.exists("b.txt")
            check(one, before, after, root, result, `answer ${nth}`)
          }).pipe(Effect.scoped)
        yield* holding(0)
        assert.isAbove(answers.count, 0)
        yield* Effect.forEach(someOf(answers.count, runs(8)), holding, { concurrency: 8, discard: true })
      }).pipe(Effect.scoped)
    )
  }
})
