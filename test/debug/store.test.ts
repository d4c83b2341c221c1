/** The debug view of a store of workspaces. */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { Snapshots } from "../../src/history/snapshots/tag.ts"
import { BlobStore } from "../../src/repository/BlobStore.ts"
import { StoreError } from "../../src/repository/errors.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Stores from "../../src/repository/Stores.ts"
import * as Server from "../../src/debug/Server.ts"
import { make as makeSource } from "../../src/debug/store.ts"
import { ask, listening, served } from "./support.ts"

/** A store with the workspace `team`, which has a snapshot and two commits after it, and its fork `trial`. */
const store = Effect.gen(function* () {
  const stores = yield* Layer.build(Stores.layerMemory)
  const team = yield* Effect.provideContext(Layer.build(Repository.layer({ workspace: "team", author: "ann" })), stores)
  const fs = Context.get(team, Filesystem)
  yield* fs.write("a.md", "one\n")
  yield* Context.get(team, Snapshots).snapshot({ tag: "first" })
  yield* fs.write("a.md", "two\n")
  yield* Effect.provideContext(Repository.fork("team", "trial"), stores)
  const trial = yield* Effect.provideContext(Layer.build(Repository.layer({ workspace: "trial" })), stores)
  yield* Context.get(trial, Filesystem).write("b.md", "new\n")
  const [blobs, heads] = [Context.get(stores, BlobStore), Context.get(stores, HeadStore)]
  return { blobs, heads, fs }
})

interface Listed {
  readonly id: string
  readonly label: string
  readonly tag?: string
}

const listed = (port: number) => Effect.map(ask(port, "/api/snapshots"), ({ body }) => body as ReadonlyArray<Listed>)

describe("the debug view of a store", () => {
  it.live("lists the heads and snapshots of all workspaces, and shows and compares their trees", () =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* store
      const { port } = yield* served({ source: { blobs, heads, title: "dir:store", workspace: "team" } })
      const all = yield* listed(port)
      assert.deepStrictEqual(
        all.map(({ label, tag }) => [label, tag]),
        [
          ["trial", "write b.md, by fs-algebra"],
          ["trial: first", "first"],
          ["team", "write a.md, by ann"],
          ["team: first", "first"]
        ]
      )
      assert.strictEqual(new Set(all.map(({ id }) => id)).size, 4)
      const idOf = (label: string): string => encodeURIComponent(all.find((one) => one.label === label)!.id)
      assert.deepInclude((yield* ask(port, "/api/meta")).body, {
        kind: "workspace",
        title: "dir:store",
        snapshots: 2,
        problems: []
      })
      const pathsOf = (at: string) =>
        Effect.map(ask(port, `/api/filesystem/tree${at}`), ({ body }) => body.map(({ path }: { path: string }) => path))
      assert.deepStrictEqual(yield* pathsOf(""), ["a.md"])
      assert.deepStrictEqual(yield* pathsOf(`?at=${idOf("trial")}`), ["a.md", "b.md"])
      const text = yield* ask(port, `/api/filesystem/file?path=a.md&at=${idOf("trial: first")}`)
      assert.strictEqual(text.body.content, "one\n")
      const changesOf = (query: string) =>
        Effect.map(ask(port, `/api/filesystem/diff${query}`), ({ body }) =>
          body.changes.map(({ change, path }: { change: string; path: string }) => `${change} ${path}`)
        )
      assert.deepStrictEqual(yield* changesOf(`?at=${idOf("trial")}`), ["added b.md"])
      assert.deepStrictEqual(yield* changesOf(`?with=${idOf("trial")}`), ["deleted b.md"])
      assert.deepStrictEqual(yield* changesOf(`?with=${idOf("team: first")}&at=${idOf("trial")}`), [
        "modified a.md",
        "added b.md"
      ])
    }).pipe(Effect.scoped)
  )

  it.live("keeps the earlier heads that it has seen, and reports new ones to the page", () =>
    Effect.gen(function* () {
      const { blobs, fs, heads } = yield* store
      const { port } = yield* served({ source: { blobs, heads, workspace: "team" } })
      const before = (yield* listed(port)).find(({ label }) => label === "team")!
      const next = yield* listening(port)
      assert.deepStrictEqual(yield* Effect.promise(next), { type: "beat" })
      // A change before the first look at the heads is not reported, so the file is written repeatedly.
      let n = 0
      yield* Effect.forkScoped(
        Effect.forever(
          Effect.andThen(
            Effect.suspend(() => fs.write("c.md", `${n++}`)),
            Effect.sleep("200 millis")
          )
        )
      )
      assert.deepStrictEqual(yield* Effect.promise(next), { type: "files", paths: null })
      const all = yield* listed(port)
      const earlier = all.find(({ id }) => id === before.id)!
      assert.match(earlier.label, /^team, commit \d+$/)
      const { body } = yield* ask(port, `/api/filesystem/diff?with=${encodeURIComponent(earlier.id)}`)
      assert.deepStrictEqual(
        body.changes.map(({ path }: { path: string }) => path),
        ["c.md"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("answers a wrong id with 404, and shows the intact part of a damaged store", () =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* store
      const { port } = yield* served({ source: { blobs, heads, workspace: "team" } })
      const all = yield* listed(port)
      const team = all.find(({ label }) => label === "team")!
      for (const id of [
        "x",
        "..",
        `${"0".repeat(64)}:team`,
        `${team.id.slice(0, 64)}/0-0:team`,
        "\0",
        `${team.id.slice(0, 63)}:`
      ]) {
        const { body, status } = yield* ask(port, `/api/filesystem/tree?at=${encodeURIComponent(id)}`)
        assert.deepStrictEqual([status, body.error], [404, "NotFound"], id)
      }
      // Another server, because the first one has the node in its cache.
      yield* blobs.delete([(yield* heads.get("trial"))!.root])
      const second = yield* served({ source: { blobs, heads, workspace: "team" } })
      const rest = yield* listed(second.port)
      assert.deepStrictEqual(
        rest.map(({ label }) => label),
        ["trial", "team", "team: first"]
      )
      const { status } = yield* ask(second.port, `/api/filesystem/tree?at=${encodeURIComponent(rest[0]!.id)}`)
      assert.strictEqual(status, 404)
      assert.strictEqual((yield* ask(second.port, "/api/filesystem/tree")).status, 200)
      yield* heads.delete("team", (yield* heads.get("team"))!)
      const gone = yield* ask(second.port, "/api/filesystem/meta")
      assert.strictEqual(gone.status, 404)
      assert.include(gone.body.message, '"team"')
    }).pipe(Effect.scoped)
  )

  it.effect("reads the heads at most once a second, and shows the workspaces with the newest commits", () =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* store
      const trial = (yield* heads.get("trial"))!
      const newer = DateTime.add(trial.committedAt, { days: 1 })
      for (let n = 0; n < 1001; n++) {
        const next = { ...trial, sequence: 1, committedAt: n === 0 ? trial.committedAt : newer }
        assert.isTrue(yield* heads.compareAndSet(`copy${n}`, undefined, next))
      }
      let readings = 0
      const list = Stream.suspend(() => {
        readings++
        return heads.list
      })
      const source = yield* makeSource({ blobs, heads: { ...heads, list }, workspace: "team", title: "t", journal: undefined })
      const [{ problems }, count, infos] = yield* Effect.all([source.about, source.snapshotCount, source.snapshots])
      assert.strictEqual(readings, 1)
      assert.strictEqual(count, 1000)
      const labels = new Set(infos.map(({ label }) => label))
      assert.isTrue(labels.has("copy1000"))
      assert.isFalse(labels.has("copy0"))
      assert.lengthOf(problems, 1)
      assert.include(problems[0], "1,003 workspaces")
      yield* TestClock.adjust("2 seconds")
      yield* source.about
      assert.strictEqual(readings, 2)
      yield* source.reload
      yield* source.about
      assert.strictEqual(readings, 3)
    }).pipe(Effect.scoped)
  )

  it.effect("reads the shown workspaces every three seconds, and all workspaces every minute", () =>
    Effect.gen(function* () {
      const { blobs, fs, heads } = yield* store
      const trial = (yield* heads.get("trial"))!
      for (let n = 0; n < 100; n++) {
        assert.isTrue(yield* heads.compareAndSet(`copy${n}`, undefined, { ...trial, sequence: 1 }))
      }
      let readings = 0
      const get: typeof heads.get = (workspace) =>
        Effect.suspend(() => {
          readings++
          return heads.get(workspace)
        })
      const source = yield* makeSource({ blobs, heads: { ...heads, get }, workspace: "team", title: "t", journal: undefined })
      let events = 0
      const settled = Effect.repeat(Effect.yieldNow, { times: 500 })
      const after = (time: Duration.Input) => Effect.andThen(TestClock.adjust(time), settled)
      yield* Effect.forkScoped(Stream.runForEach(source.live, () => Effect.sync(() => void events++)))
      yield* settled
      assert.isAtLeast(readings, 102)
      readings = 0
      yield* after("45 seconds")
      assert.isAtLeast(readings, 15)
      assert.isAtMost(readings, 30)
      assert.strictEqual(events, 0)

      yield* fs.write("c.md", "changed\n")
      yield* after("3 seconds")
      assert.strictEqual(events, 1)
      // Another workspace is found within a minute, and within three seconds when the page has shown it.
      const change = (sequence: number) =>
        Effect.gen(function* () {
          const before = (yield* heads.get("copy5"))!
          const root = sequence % 2 === 0 ? (yield* heads.get("team"))!.root : trial.root
          assert.isTrue(yield* heads.compareAndSet("copy5", before, { ...before, sequence, root }))
        })
      yield* change(2)
      yield* after("60 seconds")
      assert.strictEqual(events, 2)
      const { id } = (yield* source.snapshots).find(({ label }) => label === "copy5")!
      yield* source.look(id)
      yield* change(3)
      yield* after("3 seconds")
      assert.strictEqual(events, 3)
    }).pipe(Effect.scoped)
  )

  it.effect(
    "reports within three seconds that a shown head is damaged, and the changes of other shown workspaces after that",
    () =>
      Effect.gen(function* () {
        const { blobs, heads } = yield* store
        let isDamaged = false
        const get: typeof heads.get = (workspace) =>
          isDamaged && workspace === "team"
            ? Effect.fail(new StoreError({ reason: "corrupt", detail: "the head is damaged" }))
            : heads.get(workspace)
        const source = yield* makeSource({ blobs, heads: { ...heads, get }, workspace: "team", title: "t", journal: undefined })
        let events = 0
        const settled = Effect.repeat(Effect.yieldNow, { times: 500 })
        yield* Effect.forkScoped(Stream.runForEach(source.live, () => Effect.sync(() => void events++)))
        yield* settled
        const { id } = (yield* source.snapshots).find(({ label }) => label === "trial")!
        yield* source.look(id)
        isDamaged = true
        yield* Effect.andThen(TestClock.adjust("3 seconds"), settled)
        assert.strictEqual(events, 1)
        const before = (yield* heads.get("trial"))!
        const { root } = (yield* heads.get("team"))!
        assert.isTrue(yield* heads.compareAndSet("trial", before, { ...before, root, sequence: before.sequence + 1 }))
        yield* Effect.andThen(TestClock.adjust("3 seconds"), settled)
        assert.strictEqual(events, 2)
      }).pipe(Effect.scoped)
  )

  it.effect("reports no change of a shown workspace that is too old for the list of workspaces", () =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* store
      const team = (yield* heads.get("team"))!
      const committedAt = DateTime.addDuration(team.committedAt, "1 day")
      yield* Effect.forEach(Array.from({ length: 1000 }), (_, n) =>
        heads.compareAndSet(`newer${n}`, undefined, { ...team, sequence: 1, committedAt })
      )
      const source = yield* makeSource({ blobs, heads, workspace: "team", title: "t", journal: undefined })
      let events = 0
      const settled = Effect.repeat(Effect.yieldNow, { times: 4_000 })
      yield* Effect.forkScoped(Stream.runForEach(source.live, () => Effect.sync(() => void events++)))
      yield* settled
      for (let look = 0; look < 21; look++) yield* Effect.andThen(TestClock.adjust("3 seconds"), settled)
      assert.strictEqual(events, 0)
    }).pipe(Effect.scoped)
  )

  it.live("does not start without workspaces, or without the given one", () =>
    Effect.gen(function* () {
      const { blobs, heads } = yield* store
      const wrong = yield* Effect.flip(Server.serve({ source: { blobs, heads, workspace: "nope" } }))
      assert.deepInclude(wrong, { _tag: "DebugError", reason: "missing" })
      const empty = yield* Layer.build(Stores.layerMemory)
      const source = { blobs: Context.get(empty, BlobStore), heads: Context.get(empty, HeadStore) }
      assert.deepInclude(yield* Effect.flip(Server.serve({ source })), { _tag: "DebugError", reason: "missing" })
    }).pipe(Effect.scoped)
  )
})
