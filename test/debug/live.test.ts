import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Server from "../../src/debug/Server.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as FileSystemEntry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { runTransaction } from "../../src/history/transaction.ts"
import { file, goalOf, plant, tree } from "../history/transactionTrees.ts"
import { type Kept, recordsOf, write } from "../history/records.ts"
import { directory, dump, filesystem, listening, served } from "./support.ts"

const hears = (next: () => Promise<any>) => Effect.promise(next)

/** Waits for the first event of a type that satisfies the predicate. */
const heard = (next: () => Promise<any>, type: string, is: (event: any) => boolean = () => true) =>
  Effect.promise(async () => {
    for (;;) {
      const event = await next()
      if (event.type === type && is(event)) return event
    }
  })

describe("the live events", () => {
  it.live("begin with a heartbeat, and then report changes of files, journal and snapshots to every listener", () =>
    Effect.gen(function* () {
      const root = directory()
      const file = join(directory(), "work.journal")
      const scope = yield* Effect.scope
      const writer = yield* Journal.makeFile(Journal.Entry, { path: file })
      const journal = yield* Journal.makeFile(Journal.Entry, { path: file, readOnly: true })
      const context = yield* Layer.buildWithScope(Layer.provideMerge(Snapshots.layerWith({}), PosixHost.layer({ root })), scope)
      const [fs, snapshots] = [Context.get(context, Filesystem), Context.get(context, Snapshots.Snapshots)]
      const { port } = yield* served({ source: { filesystem: fs, snapshots }, journal })
      const [one, two] = [yield* listening(port), yield* listening(port)]
      for (const next of [one, two]) assert.deepStrictEqual(yield* hears(next), { type: "beat" })
      // The current position is sent first, so that a new listener misses nothing.
      for (const next of [one, two]) assert.deepStrictEqual(yield* heard(next, "journal"), { type: "journal", last: 0 })
      yield* writer.append(new FileSystemEntry.FileRead({ correlationId: "r", path: "a" }))
      for (const next of [one, two]) yield* heard(next, "journal", ({ last }) => last === 1)
      // Changes before the watch begins are not reported, so the file is written repeatedly.
      const write = (i: number): void => Fs.writeFileSync(join(root, "a.txt"), `${i}`)
      let i = 0
      const writing = setInterval(() => write(i++), 20)
      for (const next of [one, two]) assert.include((yield* heard(next, "files")).paths, "a.txt")
      clearInterval(writing)
      yield* snapshots.snapshot()
      for (const next of [one, two]) yield* heard(next, "snapshots", ({ count }) => count === 1)
    }).pipe(Effect.scoped)
  )

  it.live("report a new dump", () =>
    Effect.gen(function* () {
      const place = directory()
      const { port } = yield* served({ source: { dump: yield* dump(place, { name: "a" }) } })
      const next = yield* listening(port)
      yield* hears(next)
      const looked = yield* Deferred.make<void>()
      yield* Effect.forkScoped(
        Effect.gen(function* () {
          for (let i = 0; ; i++) {
            yield* dump(place, { name: `b${i}` })
            if (yield* Deferred.isDone(looked)) return
            yield* Effect.yieldNow
          }
        })
      )
      assert.deepStrictEqual(yield* heard(next, "dumps"), { type: "dumps" })
      yield* Deferred.succeed(looked, undefined)
    }).pipe(Effect.scoped)
  )

  it.live("stop watching the files when the last listener disconnects", () =>
    Effect.gen(function* () {
      const inner = yield* filesystem({ a: "a" })
      const begun = yield* Deferred.make<void>()
      const ended = yield* Deferred.make<void>()
      const fs = make({
        ...inner.port,
        watch: () =>
          Stream.callback<never>(() =>
            Effect.acquireRelease(Deferred.succeed(begun, undefined), () => Deferred.succeed(ended, undefined))
          )
      })
      const { get, port } = yield* served({ source: { filesystem: fs } })
      yield* Effect.scoped(Effect.andThen(listening(port), Deferred.await(begun)))
      yield* Deferred.await(ended)
      assert.strictEqual((yield* get("/api/meta")).status, 200)
    }).pipe(Effect.scoped)
  )

  it.live("report the journal again after it was unreadable for a while", () =>
    Effect.gen(function* () {
      const fs = yield* filesystem({ a: "a" })
      const inner = yield* Journal.makeMemory<Journal.Entry>()
      const failure = new Journal.JournalError({ operation: "tail", reason: "io", detail: "not now" })
      let failing = 2
      const journal: typeof inner = {
        ...inner,
        tail: (after) => Stream.suspend(() => (failing-- > 0 ? Stream.fail(failure) : inner.tail(after)))
      }
      const { port } = yield* served({ source: { filesystem: fs }, journal })
      const next = yield* listening(port)
      assert.deepStrictEqual(yield* heard(next, "journal"), { type: "journal", last: 0 })
      yield* inner.append(new FileSystemEntry.FileRead({ correlationId: "r", path: "a" }))
      yield* heard(next, "journal", ({ last }) => last === 1)
      // Later listeners get events too.
      const later = yield* listening(port)
      yield* inner.append(new FileSystemEntry.FileRead({ correlationId: "s", path: "a" }))
      yield* heard(later, "journal", ({ last }) => last === 2)
      assert.strictEqual(failing, -1)
    }).pipe(Effect.scoped)
  )

  it.live("end when the server closes", () =>
    Effect.gen(function* () {
      const fs = yield* filesystem({ a: "a" })
      const next = yield* Effect.scoped(
        Effect.gen(function* () {
          const { port } = yield* Server.serve({ source: { filesystem: fs } })
          const next = yield* Effect.promise(async () => {
            const answer = await fetch(`http://127.0.0.1:${port}/api/live`)
            return answer.body!.getReader()
          })
          yield* Effect.promise(() => next.read())
          return next
        })
      )
      yield* Effect.promise(async () => {
        for (;;) {
          const { done } = await next.read().catch(() => ({ done: true }))
          if (done) return
        }
      })
    })
  )
})

it.live("the debug view completes the transaction of a killed process before it shows files", () =>
  Effect.gen(function* () {
    const [before, after] = [tree({ a: file("old"), b: file("old") }), tree({ a: file("new"), b: file("new") })]
    const root = join(directory(), "root")
    const left = `${root}-left`
    plant(root, before)
    const port = yield* PosixHost.make({ root })
    let renames = 0
    let kept: ReadonlyArray<Kept> = []
    const leaving = Effect.sync(() => {
      if (++renames !== 2) return
      execFileSync("cp", ["-a", root, left])
      kept = recordsOf(root)
    })
    yield* runTransaction(
      { ...port, rename: (from, to, how) => Effect.andThen(leaving, port.rename(from, to, how)) },
      goalOf(before, after)
    )
    const { get } = yield* served({ source: { filesystem: make(yield* PosixHost.make({ root: left })) } })
    assert.include((yield* get("/api/filesystem/tree?path=.")).text, ".~fsa-exchange-")
    for (const each of kept) write(left, each)
    assert.notInclude((yield* get("/api/filesystem/tree?path=.")).text, ".~fsa-exchange-")
    for (const path of ["a", "b"]) {
      assert.strictEqual((yield* get(`/api/filesystem/file?path=${path}`)).body.content, "new")
    }
  }).pipe(Effect.scoped)
)

describe("/api/meta", () => {
  it.live("lists a problem as long as the files cannot be watched", () =>
    Effect.gen(function* () {
      const inner = yield* filesystem({ a: "a" })
      const problems = (fs: typeof inner) =>
        Effect.gen(function* () {
          const { get, port } = yield* served({ source: { filesystem: fs } })
          const told = Effect.map(get("/api/meta"), ({ body }): ReadonlyArray<string> => body.problems)
          return { port, told }
        })
      const deaf = yield* problems(make({ ...inner.port, watch: undefined }))
      assert.match(
        (yield* deaf.told).join(),
        /^File changes are not shown as they happen, so reload the page to see them: .* cannot be watched\.$/
      )
      let fails = true
      const detail = "no more watches"
      const watch = () => (fails ? Stream.fail({ _tag: "IoError" as const, code: "ENOSPC", detail }) : Stream.never)
      const { port, told } = yield* problems(make({ ...inner.port, watch } as never))
      assert.deepStrictEqual(yield* told, [])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const next = yield* listening(port)
          assert.deepStrictEqual(yield* heard(next, "files"), { type: "files", paths: null })
          assert.match((yield* told).join(), /no more watches/)
        })
      )
      fails = false
      yield* listening(port)
      while ((yield* told).length > 0) yield* Effect.yieldNow
    }).pipe(Effect.scoped)
  )
})
