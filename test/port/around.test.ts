import { assert, describe, it } from "@effect/vitest"
import { Backend, Filesystem, type FsPath, InMemory, Request } from "../../src/index.ts"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { changesOf, wholly } from "../engine/wholly.ts"

const tree = { "a.txt": "alpha", "b.txt": "bravo charlie", d: { "c.txt": "delta" } }
const bytes = (text: string) => new TextEncoder().encode(text)

/** Counts all bytes with only the public interface. */
const counted = (port: Backend.Backend) => {
  const counts = { read: 0, written: 0 }
  const counting = Backend.around(port, {
    bytes: (direction, _, bytes) => Effect.sync(() => void (counts[direction] += bytes.length))
  })
  return { counts, fs: Filesystem.make(counting) }
}

const ports: ReadonlyArray<readonly [name: string, change: (port: Backend.Backend) => Backend.Backend]> = [
  ["without requests", Backend.portable],
  ["with the requests of InMemory", (port) => port],
  ["with whole changes", (port) => wholly(port)]
]

type Counts = readonly [read: number, written: number]

const cases: ReadonlyArray<
  readonly [name: string, call: (fs: Filesystem.Algebra) => Effect.Effect<unknown, unknown>, counts: Counts]
> = [
  ["readString", (fs) => fs.readString("a.txt"), [5, 0]],
  ["a page of readBytes", (fs) => fs.readBytes("b.txt", { offset: 2, limit: 4 }), [4, 0]],
  ["stream", (fs) => Stream.runDrain(fs.stream("b.txt")), [13, 0]],
  ["lines", (fs) => Stream.runDrain(fs.lines("b.txt")), [13, 0]],
  ["grep", (fs) => fs.grep("delta"), [5 + 13 + 5, 0]],
  ["write", (fs) => fs.write("new.txt", "four"), [0, 4]],
  ["write through a missing parent", (fs) => fs.write("x/y/new.txt", "four"), [0, 4]],
  ["writeBytes that appends", (fs) => fs.writeBytes("a.txt", bytes("!!"), { mode: "append" }), [0, 2]],
  ["sink", (fs) => Stream.run(Stream.make(bytes("one"), bytes("three")), fs.sink("a.txt")), [0, 8]],
  ["edit", (fs) => fs.edit("a.txt", [{ oldText: "alpha", newText: "omega one" }]), [5, 9]],
  ["copy", (fs) => fs.copy("d", "e"), [5, 5]],
  ["stat, list and move", (fs) => Effect.all([fs.stat("a.txt"), fs.list(), fs.move("a.txt", "z.txt")]), [0, 0]]
]

describe.each(ports)("around sees every byte of a backend %s", (_, change) => {
  it.effect.each(cases)("%s", ([, call, [read, written]]) =>
    Effect.gen(function* () {
      const { counts, fs } = counted(change(yield* InMemory.make({ tree })))
      yield* call(fs)
      assert.deepStrictEqual(counts, { read, written })
    })
  )
})

describe("around", () => {
  it.effect("passes the bytes of each file that ReadMany read or MakeMany made, with its path", () =>
    Effect.gen(function* () {
      const seen: Array<readonly [string, string, number]> = []
      const [a, b, c] = ["a.txt", "b.txt", "c"] as ReadonlyArray<string> as [FsPath.FsPath, FsPath.FsPath, FsPath.FsPath]
      const whole = { stat: {} as never, bytes: bytes("alpha") }
      const base = yield* InMemory.make()
      const perform = Request.handlers({
        ReadMany: () => Effect.succeedSome([whole, undefined]),
        MakeMany: () => Effect.succeedSome([true, false, true])
      })
      const port = Backend.around(
        { ...base, perform },
        { bytes: (direction, path, { length }) => Effect.sync(() => void seen.push([direction, path, length])) }
      )
      yield* port.perform!({ _tag: "ReadMany", paths: [a, b], maxBytes: 100 })
      yield* port.perform!({
        _tag: "MakeMany",
        entries: [{ path: c, bytes: bytes("x") }, { path: a, bytes: bytes("yy") }, { path: b }]
      })
      assert.deepStrictEqual(seen, [
        ["read", "a.txt", 5],
        ["written", "c", 1]
      ])
    })
  )

  it.effect("passes the bytes of a write only once if the backend declines the request", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make({ tree })
      const { counts, fs } = counted({
        ...base,
        perform: Request.extend(base.perform, { Read: () => Request.declined, Write: () => Request.declined })
      })
      yield* fs.readString("a.txt")
      yield* fs.write("a.txt", "four")
      yield* Stream.run(Stream.make(bytes("one")), fs.sink("b.txt"))
      assert.deepStrictEqual(counts, { read: 5, written: 7 })
    })
  )

  it.effect("passes each request as data, and the operations of each declined request", () =>
    Effect.gen(function* () {
      const base = wholly(yield* InMemory.make({ tree }))
      const seen: Array<string> = []
      const refused = new Set<string>()
      const fs = Filesystem.make(
        Backend.around(base, {
          request: (request, next) =>
            refused.has(request._tag) ? Request.declined : Effect.tap(next, () => Effect.sync(() => seen.push(request._tag))),
          operation: (operation, next) => {
            if (operation._tag === "Write") seen.push(`the operation ${operation._tag}`)
            return next
          }
        })
      )
      yield* fs.readString("a.txt")
      yield* fs.write("a.txt", "1")
      yield* Stream.run(Stream.make(bytes("2")), fs.sink("a.txt"))
      yield* fs.delete("d", { recursive: true })
      assert.deepStrictEqual(seen, ["Read", "Write", "Write", "Remove"])
      seen.length = 0
      refused.add("Write")
      yield* fs.write("a.txt", "3")
      assert.deepStrictEqual(seen, ["the operation Write"])
    })
  )

  it.effect("sees each operation but no request if it has no function for requests", () =>
    Effect.gen(function* () {
      const base = wholly(yield* InMemory.make({ tree }))
      assert.includeMembers([...base.perform!.tags], Object.keys(changesOf(base)))
      assert.isUndefined(Backend.around(base, (_, next) => next).perform)
      assert.isUndefined(Backend.around(base, { operation: (_, next) => next, bytes: () => Effect.void }).perform)
    })
  )

  it.effect("returns the answer of a request that it passes on", () =>
    Effect.gen(function* () {
      const base = yield* InMemory.make({ tree })
      const port = Backend.around(base, { request: (_, next) => next })
      const path = "a.txt" as FsPath.FsPath
      const answer = yield* port.perform!({ _tag: "Read", path, maxBytes: 100 })
      assert.strictEqual(new TextDecoder().decode(Option.getOrThrow(answer).bytes), "alpha")
    })
  )
})

/** Accepts only an effect that fails with faults and needs no services. */
const plain = <A>(self: Effect.Effect<A, Backend.Fault>): Effect.Effect<A, Backend.Fault> => self

it.effect("a write of bytes to a port has only faults as errors, and needs no services", () =>
  Effect.gen(function* () {
    const port = yield* InMemory.make()
    const written = Effect.gen(function* () {
      return yield* port.write("a.txt" as FsPath.FsPath, bytes("alpha"), "create")
    })
    assert.strictEqual((yield* plain(written)).sizeBytes, 5)
  })
)
