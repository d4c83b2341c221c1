import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { connect } from "node:net"
import { dirname, join } from "node:path"
import * as Tools from "../../src/agent/tools.ts"
import { ToolInvoked } from "../../src/agent/ToolEvents.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Api } from "../../src/debug/Api.ts"
import * as Dump from "../../src/debug/Dump.ts"
import { readOnlyTools } from "../../src/debug/journal.ts"
import * as Model from "../../src/debug/model.ts"
import * as Server from "../../src/debug/Server.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as FileSystemEntry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as HttpApi from "effect/http-api/HttpApi"
import { type Answer, ask, directory, dump, filesystem, listening, served } from "./support.ts"

const hostile = "<img src=x onerror=alert(1)>.txt"
const script = "</script><script>alert(1)</script>\u2028\u202e"

const call = (tool: string, callId: string, second: number, rest: Partial<ToolInvoked> = {}): ToolInvoked =>
  new ToolInvoked({
    tool,
    callId,
    params: {},
    success: true,
    message: script,
    durationMillis: 1,
    at: DateTime.makeUnsafe(Date.UTC(2026, 0, 1, 0, 0, second)),
    ...rest
  })

const calls = [
  call("read_file", "c0", 0, { path: "src/a.ts", params: { path: "src/a.ts" } }),
  call("write_file", "c1", 1, { path: "src/a.ts", params: { path: "src/a.ts" } }),
  call("edit_file", "c2", 2, { path: "x", params: { edits: [{ path: "x" }, { path: "src/a.ts" }] } }),
  call("move", "c3", 3, { path: "src/old.ts", params: { from: "src/old.ts", to: "src/a.ts" } }),
  call("rm", "c4", 4, { path: "src", params: { path: "src", recursive: true }, success: false }),
  call("write_file", "c5", 5, { path: "src/a.tsx", params: { path: "src/a.tsx" } }),
  call("mkdir", "c6", 6, { path: "src", params: { path: "src" } })
]

const files = { [hostile]: script, src: { "a.ts": "const a = 1\n" }, "b.txt": "b" }

/**
 * Makes a directory with three dumps: the newest with files, one without an archive, and an older one with other
 * files.
 */
const runs = Effect.gen(function* () {
  const place = directory()
  const older = yield* dump(place, {
    name: "older",
    files: { src: { "a.ts": "const a = 0\n" }, "moved.txt": "b", gone: "gone" }
  })
  const bare = yield* dump(place, { name: "bare" })
  const main = yield* dump(place, { name: "main", files, calls, children: ["child"], tags: { who: script } })
  for (const [i, path] of [older, bare, main].entries()) Fs.utimesSync(path, 1000 + i, 1000 + i)
  return { place, older, bare, main }
})

const overRuns = Effect.gen(function* () {
  const ground = yield* runs
  return { ...ground, ...(yield* served({ source: { dump: ground.place }, version: "1.2.3" })) }
})

/** Checks that the body is exactly what the schema decodes and encodes. */
const fits =
  (schema: Schema.Codec<any, any>) =>
  ({ body, status, text }: Answer): any => {
    assert.strictEqual(status, 200, text)
    assert.deepStrictEqual(Schema.encodeUnknownSync(schema)(Schema.decodeUnknownSync(schema)(body)), body)
    return body
  }

const isFailure = ({ body, status, text }: Answer, expected: number, error: string): void => {
  assert.strictEqual(status, expected, text)
  fits(Model.Failure)({ body, status: 200, headers: {}, text })
  assert.strictEqual(body.error, error)
  assert.notMatch(body.message, /\n|undefined|\[object/)
}

describe("a served dump", () => {
  it.live("is described with the numbers of its sessions, slices and events", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      const meta = fits(Model.Meta)(yield* get("/api/meta"))
      assert.deepInclude(meta, {
        kind: "dump",
        title: "main",
        path: "main.jsonl",
        session_id: "main",
        generation: 1,
        sessions: 2,
        slices: 3,
        events: calls.length,
        snapshots: 1,
        has_filesystem: true,
        has_journal: false,
        problems: [],
        version: "1.2.3"
      })
      assert.strictEqual(meta.tags.who, script)
    }).pipe(Effect.scoped)
  )

  it.live("returns its sessions, its slices in pages, and its events filtered by session, tool and path", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      const sessions = fits(Schema.Array(Model.SessionInfo))(yield* get("/api/sessions"))
      assert.deepStrictEqual(
        sessions.map(({ parent_id, session_id }: Model.SessionInfo) => [session_id, parent_id]),
        [
          ["main", null],
          ["child", "main"]
        ]
      )
      assert.strictEqual(fits(Schema.Array(Model.SliceInfo))(yield* get("/api/slices")).length, 3)
      const slice = fits(Model.SlicePage)
      assert.deepInclude(slice(yield* get("/api/slices/plan?session=child")), { total: 1, items: [{ step: "of child" }] })
      const page = slice(yield* get("/api/slices/ToolInvoked?offset=2&limit=3"))
      assert.deepInclude(page, { total: calls.length, offset: 2 })
      assert.deepStrictEqual(
        page.items.map(({ callId }: { callId: string }) => callId),
        ["c2", "c3", "c4"]
      )
      const ids = (answer: Answer) => fits(Model.EventPage)(answer).items.map((event: Model.Event) => event.call_id)
      assert.deepStrictEqual(ids(yield* get("/api/events?limit=2&offset=1")), ["c1", "c2"])
      assert.deepStrictEqual(ids(yield* get("/api/events?tool=write_file")), ["c1", "c5"])
      assert.deepStrictEqual(ids(yield* get("/api/events?path=OLD.ts")), ["c3"])
      assert.deepStrictEqual(ids(yield* get("/api/events?session=child")), [])
      for (const name of ["none", "n".repeat(3000), "%00", "%FF", "a%2Fb"]) {
        isFailure(yield* get(`/api/slices/${name}`), 404, "NotFound")
      }
    }).pipe(Effect.scoped)
  )

  it.live("has its tree as a list and as a nested tree, with hostile names as JSON text", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      const answer = yield* get("/api/filesystem/tree")
      assert.match(answer.headers["content-type"]!, /^application\/json/)
      const flat = fits(Schema.Array(Model.TreeFile))(answer)
      assert.deepStrictEqual(flat, [
        { path: hostile, size_bytes: Buffer.byteLength(script) },
        { path: "b.txt", size_bytes: 1 },
        { path: "src/a.ts", size_bytes: 12 }
      ])
      const nested = fits(Schema.Array(Model.TreeNode))(yield* get("/api/filesystem/tree?nested=true"))
      assert.deepStrictEqual(nested[2], {
        name: "src",
        path: "src",
        kind: "directory",
        size_bytes: 12,
        children: [{ name: "a.ts", path: "src/a.ts", kind: "file", size_bytes: 12 }]
      })
      assert.deepInclude(fits(Model.FilesystemMeta)(yield* get("/api/filesystem/meta")), { file_count: 3 })
      const file = fits(Model.FileContent)(yield* get(`/api/filesystem/file?path=${encodeURIComponent(hostile)}`))
      assert.deepInclude(file, { kind: "text", content: script, media_type: "text/plain" })
    }).pipe(Effect.scoped)
  )

  it.live("without an archive answers 404 for files, and has an empty tree", () =>
    Effect.gen(function* () {
      const { bare } = yield* runs
      const { get } = yield* served({ source: { dump: bare } })
      isFailure(yield* get("/api/filesystem/meta"), 404, "NotFound")
      assert.deepStrictEqual((yield* get("/api/filesystem/tree")).body, [])
      assert.deepStrictEqual((yield* get("/api/filesystem/tree?nested=true")).body, [])
      isFailure(yield* get("/api/filesystem/file?path=a"), 404, "NotFound")
      assert.isFalse((yield* get("/api/meta")).body.has_filesystem)
    }).pipe(Effect.scoped)
  )

  it.live("answers 404 for every missing or malformed path", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      const odd = [
        "nope",
        "..",
        "../main.jsonl",
        "/etc/passwd",
        "/b.txt",
        "src",
        "src/../b.txt",
        "b.txt%00",
        "b.txt/",
        ".",
        "%2e%2e/x"
      ]
      for (const path of [...odd, "a%2f..%2f..", "x".repeat(8000), "%00", "b.txt%2Fx", "%FF"]) {
        isFailure(yield* get(`/api/filesystem/file?path=${path}`), 404, "NotFound")
      }
      isFailure(yield* get("/api/filesystem/file"), 404, "NotFound")
      isFailure(yield* get("/api/filesystem/file?path="), 404, "NotFound")
    }).pipe(Effect.scoped)
  )

  it.live("has the added, modified, deleted and renamed files since another dump", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      const snapshots = fits(Schema.Array(Model.SnapshotInfo))(yield* get("/api/snapshots"))
      assert.deepInclude(snapshots[0], { id: "older.jsonl", label: "older" })
      const diff = fits(Model.Diff)(yield* get("/api/filesystem/diff?with=older.jsonl"))
      assert.deepStrictEqual(diff, {
        from: "older.jsonl",
        to: null,
        changes: [
          { change: "added", path: hostile, kind: "file", size_after: Buffer.byteLength(script) },
          { change: "renamed", path: "b.txt", from_path: "moved.txt", kind: "file", size_before: 1, size_after: 1 },
          { change: "deleted", path: "gone", kind: "file", size_before: 4 },
          { change: "modified", path: "src/a.ts", kind: "file", size_before: 12, size_after: 12 }
        ]
      })
      const back = (yield* get("/api/filesystem/diff?at=older.jsonl")).body
      assert.deepInclude(back.changes, { change: "added", path: "gone", kind: "file", size_after: 4 })
      const old = (yield* get("/api/filesystem/file?path=src/a.ts&at=older.jsonl")).body
      assert.strictEqual(old.content, "const a = 0\n")
      for (const query of ["at=bare.jsonl", "at=none.jsonl", "at=x"]) {
        isFailure(yield* get(`/api/filesystem/tree?${query}`), 404, "NotFound")
      }
    }).pipe(Effect.scoped)
  )

  it.live("has the history of a file: all changing calls that name the file in any parameter", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      const history = (path: string) =>
        Effect.map(get(`/api/filesystem/history?path=${path}`), (answer) =>
          fits(Schema.Array(Model.HistoryItem))(answer).map(
            ({ call_id, outcome }: Model.HistoryItem) => `${call_id} ${outcome}`
          )
        )
      assert.deepStrictEqual(yield* history("src/a.ts"), ["c4 failed", "c3 done", "c2 done", "c1 done"])
      assert.deepStrictEqual(yield* history("src/old.ts"), ["c4 failed", "c3 done"])
      assert.deepStrictEqual(yield* history("src"), ["c6 done", "c5 done", "c4 failed", "c3 done", "c2 done", "c1 done"])
      assert.deepStrictEqual(yield* history("nobody"), [])
      const [, move] = (yield* get("/api/filesystem/history?path=src/a.ts")).body
      assert.deepInclude(move, { source: "tool", path: "src/old.ts", to_path: "src/a.ts", tool: "move", event_index: 3 })
    }).pipe(Effect.scoped)
  )

  it.live("can be switched to another dump of its directory, and is read again on request", () =>
    Effect.gen(function* () {
      const { get, place, post } = yield* overRuns
      const list = fits(Schema.Array(Model.DumpFile))(yield* get("/api/files"))
      assert.deepStrictEqual(
        list.map(({ is_shown, path }: Model.DumpFile) => [path, is_shown]),
        [
          ["main.jsonl", true],
          ["bare.jsonl", false],
          ["older.jsonl", false]
        ]
      )
      assert.deepInclude(fits(Model.Meta)(yield* post("/api/switch", { path: "older.jsonl" })), {
        title: "older",
        generation: 2
      })
      assert.strictEqual((yield* get("/api/filesystem/file?path=gone")).body.content, "gone")
      yield* dump(place, { name: "older", files: { new: "new" }, steps: ["1", "2", "3"] })
      assert.strictEqual((yield* get("/api/filesystem/file?path=gone")).status, 200)
      assert.strictEqual(fits(Model.Meta)(yield* post("/api/reload")).generation, 3)
      assert.strictEqual((yield* get("/api/filesystem/file?path=gone")).status, 404)
      assert.strictEqual((yield* get("/api/filesystem/file?path=new")).body.content, "new")
    }).pipe(Effect.scoped)
  )

  it.live("cannot be switched to a dump outside of its directory, by name or by link", () =>
    Effect.gen(function* () {
      const { get, place, port, post } = yield* overRuns
      const elsewhere = directory()
      const secret = yield* dump(elsewhere, { name: "secret", files: { secret: "secret" } })
      Fs.symlinkSync(secret, join(place, "link.jsonl"))
      Fs.symlinkSync(elsewhere, join(place, "sub"))
      Fs.mkdirSync(join(place, "deep"))
      yield* dump(join(place, "deep"), { name: "inner", files: { a: "a" } })
      const paths = [
        secret,
        "link.jsonl",
        "sub/secret.jsonl",
        "sub/secret.fs.zip",
        "..",
        "../x.jsonl",
        "",
        "/",
        "a\0.jsonl",
        "C:\\a.jsonl"
      ]
      for (const path of [...paths, `deep/../../${elsewhere.split("/").at(-1)}/secret.jsonl`]) {
        isFailure(yield* post("/api/switch", { path }), 403, "Forbidden")
        if (path !== "") isFailure(yield* get(`/api/filesystem/tree?at=${encodeURIComponent(path)}`), 403, "Forbidden")
      }
      isFailure(yield* post("/api/switch", { path: "none.jsonl" }), 404, "NotFound")
      isFailure(yield* post("/api/switch", { path: "deep" }), 404, "NotFound")
      isFailure(yield* post("/api/switch", { path: 1 }), 400, "BadRequest")
      isFailure(yield* post("/api/switch", {}), 400, "BadRequest")
      isFailure(yield* post("/api/switch", { path: "x".repeat(1_000_000) }), 413, "BadRequest")
      isFailure(yield* post("/api/switch"), 400, "BadRequest")
      isFailure(yield* ask(port, "/api/switch", { method: "POST", raw: "{", body: {} }), 400, "BadRequest")
      assert.strictEqual((yield* get("/api/meta")).body.title, "main")
      assert.notInclude((yield* get("/api/files")).text, "secret")
      assert.strictEqual((yield* post("/api/switch", { path: "deep/inner.jsonl" })).body.path, "deep/inner.jsonl")
    }).pipe(Effect.scoped)
  )

  it.live("that is damaged is shown as far as possible, with a list of its problems", () =>
    Effect.gen(function* () {
      const { main } = yield* runs
      Fs.appendFileSync(main, "{\n")
      Fs.appendFileSync(main.replace(/jsonl$/, "fs.zip"), "x")
      const { get } = yield* served({ source: { dump: main } })
      const meta = fits(Model.Meta)(yield* get("/api/meta"))
      assert.deepInclude(meta, { sessions: 2, has_filesystem: false })
      assert.match(meta.problems[0], /^Some sessions cannot be shown: line 3: the text is not JSON/)
      assert.match(meta.problems[1], /^The files cannot be shown: .*the archive of the dump is missing or was changed/)
      assert.deepStrictEqual((yield* get("/api/filesystem/tree")).body, [])
    }).pipe(Effect.scoped)
  )

  it.live("can be switched while it is being read", () =>
    Effect.gen(function* () {
      const { get, post } = yield* overRuns
      const asked = Array.from({ length: 20 }, () => get("/api/filesystem/file?path=src/a.ts"))
      const all = yield* Effect.all([...asked, post("/api/switch", { path: "older.jsonl" }), ...asked], {
        concurrency: "unbounded"
      })
      for (const { status, text } of all) assert.strictEqual(status, 200, text)
    }).pipe(Effect.scoped)
  )

  it.live("of 50,000 files returns its whole tree", () =>
    Effect.gen(function* () {
      const many = Object.fromEntries(
        Array.from({ length: 200 }, (_, d) => [
          `d${d}`,
          Object.fromEntries(Array.from({ length: 250 }, (_, f) => [`f${f}`, `${f}`]))
        ])
      )
      const path = yield* dump(directory(), { name: "many", files: many })
      const { get } = yield* served({ source: { dump: path } })
      const tree = (yield* get("/api/filesystem/tree")).body as ReadonlyArray<Model.TreeFile>
      assert.strictEqual(tree.length, 50_000)
      assert.deepStrictEqual(tree[49_999], { path: "d99/f99", size_bytes: 2 })
      assert.strictEqual((yield* get("/api/filesystem/tree?nested=true")).body.length, 200)
      assert.strictEqual((yield* get("/api/filesystem/file?path=d7/f13")).body.content, "13")
    }).pipe(Effect.scoped)
  )
})

const content = (text: string): Uint8Array => Buffer.from(text)

/** Builds a journal with requests and answers; one request has the id of a tool call. */
const journalled = Effect.gen(function* () {
  const journal = yield* Journal.makeMemory<Journal.Entry>()
  yield* journal.append(
    new FileSystemEntry.FileWrite({ correlationId: "c1", path: "src/a.ts", createMode: "overwrite", content: content("1\n") })
  )
  yield* journal.append(new FileSystemEntry.FileWritten({ correlationId: "c1", path: "src/a.ts", bytesWritten: 2 }))
  yield* journal.append(
    new FileSystemEntry.FileWrite({
      correlationId: "other",
      path: "b.txt",
      createMode: "overwrite",
      content: content("x".repeat(10_000))
    })
  )
  yield* journal.append(
    new FileSystemEntry.FileFault({ correlationId: "other", path: "b.txt", faultKind: "AccessDenied", message: script })
  )
  yield* journal.append(new FileSystemEntry.FileMove({ correlationId: "m", path: "src/a.ts", to: "src/z.ts" }))
  return journal
})

describe("a served journal", () => {
  it.live("is returned in pages from either end, by path and by request, and its entries with their contents", () =>
    Effect.gen(function* () {
      const { main } = yield* runs
      const { get } = yield* served({ source: { dump: main }, journal: yield* journalled })
      assert.isTrue((yield* get("/api/meta")).body.has_journal)
      const page = (query: string) => Effect.map(get(`/api/journal${query}`), fits(Model.JournalPage))
      const positions = ({ items }: Model.JournalPage) => items.map(({ position }) => position)
      const first = yield* page("?limit=2")
      assert.deepStrictEqual([positions(first), first.next, first.last], [[5, 4], 4, 5])
      const second = yield* page("?limit=2&before=4")
      assert.deepStrictEqual([positions(second), second.next], [[3, 2], 2])
      const last = yield* page("?limit=2&before=2")
      assert.deepStrictEqual([positions(last), last.next], [[1], null])
      const forward = yield* page("?after=1&limit=2")
      assert.deepStrictEqual([positions(forward), forward.next], [[2, 3], 3])
      assert.deepStrictEqual(positions(yield* page("?path=b.txt")), [4, 3])
      assert.deepStrictEqual(positions(yield* page("?correlation=c1")), [2, 1])
      assert.deepStrictEqual(positions(yield* page("?after=5")), [])
      const [move, fault, large] = first.items.concat(second.items)
      assert.deepInclude(move, { kind: "FileMove", direction: "request", path: "src/a.ts", to_path: "src/z.ts" })
      assert.deepInclude(fault, { direction: "answer", fault: "AccessDenied", correlation_id: "other" })
      assert.deepInclude(large, { kind: "FileWrite", size_bytes: 10_000 })
      const entry = fits(Model.JournalEntry)(yield* get("/api/journal/3"))
      assert.strictEqual(entry.content.content, "x".repeat(10_000))
      assert.strictEqual(entry.entry.content.size, 10_000)
      const small = fits(Model.JournalEntry)(yield* get("/api/journal/1"))
      assert.strictEqual(small.content.content, "1\n")
      assert.strictEqual(small.entry.content.size, 2)
      for (const path of ["../x", "%00", "/", "", "x".repeat(5000)]) {
        fits(Model.JournalPage)(yield* get(`/api/journal?path=${path}`))
        fits(Schema.Array(Model.HistoryItem))(yield* get(`/api/filesystem/history?path=${path}`))
      }
      for (const position of [0, 6, 999]) isFailure(yield* get(`/api/journal/${position}`), 404, "NotFound")
      for (const position of ["x", "-1", "1.5", "1e400"]) isFailure(yield* get(`/api/journal/${position}`), 400, "BadRequest")
    }).pipe(Effect.scoped)
  )

  it.live("has the history of a file, and names a tool only if the call ids match", () =>
    Effect.gen(function* () {
      const { main } = yield* runs
      const { get } = yield* served({ source: { dump: main }, journal: yield* journalled })
      const history = (path: string) =>
        Effect.map(get(`/api/filesystem/history?path=${path}`), (answer) =>
          (fits(Schema.Array(Model.HistoryItem))(answer) as ReadonlyArray<Model.HistoryItem>).filter(
            ({ source }) => source === "journal"
          )
        )
      const [move, write] = yield* history("src/a.ts")
      assert.deepInclude(move, { what: "move", outcome: "unanswered", to_path: "src/z.ts", position: 5 })
      assert.notProperty(move, "tool")
      assert.deepInclude(write, {
        what: "write",
        outcome: "done",
        size_bytes: 2,
        tool: "write_file",
        call_id: "c1",
        event_index: 1
      })
      const [failed] = yield* history("b.txt")
      assert.deepInclude(failed, { outcome: "failed", message: script })
      assert.notProperty(failed, "tool")
    }).pipe(Effect.scoped)
  )
})

describe("the journal routes", () => {
  it.live("answer with 404 if no journal is served", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      isFailure(yield* get("/api/journal"), 404, "NotFound")
      isFailure(yield* get("/api/journal/1"), 404, "NotFound")
    }).pipe(Effect.scoped)
  )
})

/** A directory with two snapshots and a later change. */
const workspace = Effect.gen(function* () {
  const root = directory()
  Fs.mkdirSync(join(root, "src"))
  Fs.writeFileSync(join(root, "src/a.ts"), "one\n")
  Fs.writeFileSync(join(root, "keep"), "kept")
  Fs.mkdirSync(join(root, "empty"))
  Fs.symlinkSync("keep", join(root, "link"))
  const scope = yield* Effect.scope
  const context = yield* Layer.buildWithScope(
    Layer.provideMerge(Snapshots.layerWith({}), PosixHost.layer({ root })),
    scope
  ).pipe(Effect.orDie)
  const fs = Context.get(context, Filesystem)
  const snapshots = Context.get(context, Snapshots.Snapshots)
  const first = yield* Effect.orDie(snapshots.snapshot({ tag: "first", tool: "edit_file", callId: "c9" }))
  Fs.writeFileSync(join(root, "src/a.ts"), "two!\n")
  const second = yield* Effect.orDie(snapshots.snapshot())
  Fs.renameSync(join(root, "src/a.ts"), join(root, "src/b.ts"))
  return { root, fs, snapshots, first: first.snapshotId, second: second.snapshotId }
})

describe("a served workspace", () => {
  it.live("shows the current files, and the files of each snapshot", () =>
    Effect.gen(function* () {
      const { first, fs, root, second, snapshots } = yield* workspace
      const { get } = yield* served({ source: { filesystem: fs, snapshots } })
      const meta = fits(Model.Meta)(yield* get("/api/meta"))
      assert.deepInclude(meta, { kind: "workspace", title: root.split("/").at(-1), snapshots: 2, has_filesystem: true })
      const infos = fits(Schema.Array(Model.SnapshotInfo))(yield* get("/api/snapshots"))
      assert.deepInclude(infos[0], { id: second, label: second.slice(0, 8) })
      assert.deepInclude(infos[1], { id: first, label: "first", tag: "first", tool: "edit_file", call_id: "c9" })
      const tree = fits(Schema.Array(Model.TreeFile))
      assert.deepStrictEqual(tree(yield* get("/api/filesystem/tree")), [
        { path: "empty", size_bytes: 0, kind: "directory" },
        { path: "keep", size_bytes: 4 },
        { path: "link", size_bytes: 4, kind: "symlink" },
        { path: "src/b.ts", size_bytes: 5 }
      ])
      assert.deepInclude(tree(yield* get(`/api/filesystem/tree?at=${first}`)), { path: "src/a.ts", size_bytes: 4 })
      assert.strictEqual((yield* get(`/api/filesystem/file?path=src/a.ts&at=${first}`)).body.content, "one\n")
      assert.deepInclude(fits(Model.FilesystemMeta)(yield* get(`/api/filesystem/meta?at=${first}`)), {
        at: first,
        file_count: 3
      })
      const file = fits(Model.FileContent)(yield* get("/api/filesystem/file?path=keep"))
      const stat = Fs.statSync(join(root, "keep"))
      assert.strictEqual(file.mode, (stat.mode & 0o777).toString(8).padStart(4, "0"))
      assert.strictEqual(Date.parse(file.modified_at), Math.floor(stat.mtimeMs))
      assert.deepInclude((yield* get("/api/filesystem/file?path=link")).body, { kind: "symlink", content: "keep" })
      Fs.writeFileSync(join(root, "later"), "x")
      assert.deepInclude((yield* get("/api/filesystem/tree")).body, { path: "later", size_bytes: 1 })
      isFailure(yield* get("/api/filesystem/tree?at=nope"), 404, "NotFound")
      isFailure(yield* get("/api/filesystem/diff?with=nope"), 404, "NotFound")
      assert.deepStrictEqual((yield* get("/api/files")).body, [])
    }).pipe(Effect.scoped)
  )

  it.live("compares any two snapshots, or a snapshot with the current files, in both directions", () =>
    Effect.gen(function* () {
      const { first, fs, second, snapshots } = yield* workspace
      const { get } = yield* served({ source: { filesystem: fs, snapshots } })
      const changes = (query: string) =>
        Effect.map(get(`/api/filesystem/diff?${query}`), (answer) => fits(Model.Diff)(answer).changes)
      const renamed = { change: "renamed", kind: "file", size_before: 5, size_after: 5 }
      assert.deepStrictEqual(yield* changes(`with=${second}`), [{ ...renamed, path: "src/b.ts", from_path: "src/a.ts" }])
      assert.deepStrictEqual(yield* changes(`at=${second}`), [{ ...renamed, path: "src/a.ts", from_path: "src/b.ts" }])
      assert.deepStrictEqual(yield* changes(`with=${first}&at=${second}`), [
        { change: "modified", path: "src/a.ts", kind: "file", size_before: 4, size_after: 5 }
      ])
      assert.deepStrictEqual(yield* changes(`with=${second}&at=${first}`), [
        { change: "modified", path: "src/a.ts", kind: "file", size_before: 5, size_after: 4 }
      ])
      assert.deepStrictEqual(yield* changes(""), [])
    }).pipe(Effect.scoped)
  )

  it.live("shows the same tree with and without native listing, even with unaddressable names and FIFOs", () =>
    Effect.gen(function* () {
      const root = directory()
      Fs.mkdirSync(join(root, "a/b/c"), { recursive: true })
      Fs.writeFileSync(join(root, "a/b/c/deep"), "deep")
      Fs.writeFileSync(join(root, "a-b"), "12")
      Fs.writeFileSync(join(root, "odd\nname"), "1")
      Fs.mkdirSync(join(root, "a/none"))
      Fs.symlinkSync("a", join(root, "link"))
      execFileSync("mkfifo", [join(root, "pipe")])
      const scope = yield* Effect.scope
      const fs = Context.get(yield* Layer.buildWithScope(PosixHost.layer({ root }), scope), Filesystem)
      const { history: _, ...port } = fs.port
      const trees = []
      for (const filesystem of [fs, make(port)]) {
        const { get } = yield* served({ source: { filesystem } })
        trees.push(fits(Schema.Array(Model.TreeFile))(yield* get("/api/filesystem/tree")))
        isFailure(yield* get("/api/filesystem/file?path=pipe"), 404, "NotFound")
      }
      assert.deepStrictEqual(trees[1], trees[0])
      assert.deepStrictEqual(
        trees[0].filter(({ path }: Model.TreeFile) => !path.startsWith("odd")),
        [
          { path: "a-b", size_bytes: 2 },
          { path: "a/b/c/deep", size_bytes: 4 },
          { path: "a/none", size_bytes: 0, kind: "directory" },
          { path: "link", size_bytes: 1, kind: "symlink" },
          { path: "pipe", size_bytes: 0, kind: "other" }
        ]
      )
      assert.strictEqual(trees[0].length, 6)
    }).pipe(Effect.scoped)
  )

  it.live("cannot be switched to a dump", () =>
    Effect.gen(function* () {
      const { get, post } = yield* served({ source: { filesystem: yield* filesystem({ a: "a" }), title: "mine" } })
      isFailure(yield* post("/api/switch", { path: "a.jsonl" }), 404, "NotFound")
      assert.strictEqual((yield* post("/api/reload")).body.generation, 2)
      assert.deepInclude((yield* get("/api/meta")).body, { title: "mine", snapshots: 0 })
    }).pipe(Effect.scoped)
  )
})

describe("the server of the debug view accepts", () => {
  it.live("only requests to its own address and from its own pages", () =>
    Effect.gen(function* () {
      const { get, port } = yield* overRuns
      for (const path of ["/api/meta", "/", "/app.js", "/openapi.json", "/nope"]) {
        for (const headers of [
          { host: "example.com" },
          { host: `example.com:${port}` },
          { host: "127.0.0.1:1" },
          { origin: "http://example.com" },
          { origin: "null" },
          { origin: `http://127.0.0.1:${port}1` },
          { origin: `https://127.0.0.1:${port}` }
        ]) {
          isFailure(yield* get(path, { headers: headers as never }), 403, "Forbidden")
        }
      }
      for (const headers of [{ host: `localhost:${port}` }, { origin: `http://127.0.0.1:${port}` }]) {
        assert.strictEqual((yield* get("/api/meta", { headers: headers as never })).status, 200)
      }
      const foreign = yield* ask(port, "/api/switch", {
        method: "POST",
        body: { path: "older.jsonl" },
        headers: { origin: "http://a" }
      })
      isFailure(foreign, 403, "Forbidden")
      assert.strictEqual((yield* get("/api/meta")).body.title, "main")
    }).pipe(Effect.scoped)
  )

  it.live("only the methods of each route", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      const wrong = [
        ["/api/meta", "POST", "GET, HEAD"],
        ["/api/meta", "DELETE", "GET, HEAD"],
        ["/api/reload", "GET", "POST"],
        ["/api/switch", "PUT", "POST"],
        ["/api/journal/1", "PATCH", "GET, HEAD"],
        ["/openapi.json", "POST", "GET, HEAD"],
        ["/", "POST", "GET, HEAD"]
      ] as const
      for (const [path, method, allow] of wrong) {
        const answer = yield* get(path, { method })
        isFailure(answer, 405, "MethodNotAllowed")
        assert.strictEqual(answer.headers["allow"], allow)
      }
      for (const path of ["/api", "/api/", "/api/nope", "/api/meta/x", "/api/../etc/passwd"]) {
        isFailure(yield* get(path), 404, "NotFound")
      }
      const head = yield* get("/api/meta", { method: "HEAD" })
      assert.deepStrictEqual([head.status, head.text], [200, ""])
      for (const query of ["limit=1001", "limit=x", "limit=-1", "offset=0.5"]) {
        isFailure(yield* get(`/api/events?${query}`), 400, "BadRequest")
      }
    }).pipe(Effect.scoped)
  )
})

const policy = (nonce: string): string =>
  `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data: blob:; connect-src 'self'; ` +
  `base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

describe("the server of the page", () => {
  it.live("serves the page with a new nonce, its script and its styles, but no other file", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      const [one, two] = [yield* get("/"), yield* get("/index.html")]
      const nonceOf = ({ headers, text }: Answer): string => {
        const nonce = /content="([^"]+)"/.exec(/<meta name="csp-nonce"[^>]*>/.exec(text)![0])![1]!
        assert.strictEqual(headers["content-security-policy"], policy(nonce))
        return nonce
      }
      assert.notStrictEqual(nonceOf(one), nonceOf(two))
      assert.match(one.headers["content-type"]!, /^text\/html/)
      assert.notInclude(one.text, "{{")
      const app = yield* get("/app.js")
      assert.match(app.headers["content-type"]!, /^text\/javascript/)
      assert.isAbove(app.text.length, 1000)
      assert.match((yield* get("/style.css")).headers["content-type"]!, /^text\/css/)
      for (const path of [
        "/build.ts",
        "/main.tsx",
        "/tsconfig.json",
        "/../model.ts",
        "/%2e%2e/model.ts",
        "/..%2fmodel.ts",
        "/.git"
      ]) {
        assert.strictEqual((yield* get(path)).status, 404, path)
      }
    }).pipe(Effect.scoped)
  )

  it.live("sends headers against caching, sniffing, referrers and foreign content", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      const answers = [
        yield* get("/"),
        yield* get("/api/meta"),
        yield* get("/api/nope"),
        yield* get("/api/filesystem/file"),
        yield* get("/api/reload"),
        yield* get("/api/events?limit=x"),
        yield* get("/nope"),
        yield* get("/openapi.json"),
        yield* get("/", { headers: { host: "example.com" } })
      ]
      for (const { headers } of answers) {
        assert.strictEqual(headers["x-content-type-options"], "nosniff")
        assert.strictEqual(headers["referrer-policy"], "no-referrer")
        assert.strictEqual(headers["cache-control"], "no-store")
        assert.match(headers["content-security-policy"]!, /^default-src 'none'; script-src 'self'; /)
        assert.notProperty(headers, "access-control-allow-origin")
      }
    }).pipe(Effect.scoped)
  )

  it.live("describes every route in the OpenAPI document", () =>
    Effect.gen(function* () {
      const { get } = yield* overRuns
      const { body } = yield* get("/openapi.json")
      assert.match(body.openapi, /^3\.1/)
      const described: Array<string> = []
      for (const [path, methods] of Object.entries(body.paths)) {
        for (const [method, { description, summary }] of Object.entries(methods as Record<string, any>)) {
          described.push(`${method.toUpperCase()} ${path}`)
          assert.isString(summary)
          assert.isAbove(description.length, 10)
        }
      }
      const routes: Array<string> = []
      HttpApi.reflect(Api, {
        onGroup: () => undefined,
        onEndpoint: ({ endpoint }) => void routes.push(`${endpoint.method} ${endpoint.path.replace(/:(\w+)/g, "{$1}")}`)
      })
      assert.sameMembers(described, routes)
      // The page uses these routes.
      assert.includeMembers(described, [
        "GET /api/meta",
        "GET /api/sessions",
        "GET /api/slices",
        "GET /api/slices/{name}",
        "GET /api/events",
        "GET /api/files",
        "POST /api/reload",
        "POST /api/switch",
        "GET /api/filesystem/meta",
        "GET /api/filesystem/tree",
        "GET /api/filesystem/file",
        "GET /api/filesystem/diff"
      ])
    }).pipe(Effect.scoped)
  )
})

describe("a server", () => {
  it.live("releases its port and its dump when its scope closes", () =>
    Effect.gen(function* () {
      const { main } = yield* runs
      const scope = yield* Scope.make()
      const { port } = yield* Scope.provide(Effect.orDie(Server.serve({ source: { dump: main } })), scope)
      const open = (): ReadonlyArray<string> =>
        Fs.readdirSync("/proc/self/fd").flatMap((fd) => {
          try {
            return [Fs.readlinkSync(`/proc/self/fd/${fd}`)]
          } catch {
            return []
          }
        })
      assert.isTrue(open().some((path) => path.endsWith("main.fs.zip")))
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(open().some((path) => path.includes(main.replace(/main\.jsonl$/, ""))))
      const again = yield* served({ source: { dump: main }, port })
      assert.strictEqual(again.port, port)
    }).pipe(Effect.scoped)
  )

  it.live("fails if its port is in use, and if its dump is missing", () =>
    Effect.gen(function* () {
      const { main, port } = yield* overRuns
      const taken = yield* Effect.flip(Server.serve({ source: { dump: main }, port }))
      assert.deepInclude({ ...taken }, { _tag: "ListenError", code: "EADDRINUSE", port })
      const none = yield* Effect.flip(Server.serve({ source: { dump: join(main, "..", "none.jsonl") } }))
      assert.deepInclude({ ...none }, { _tag: "DebugError", reason: "missing" })
    }).pipe(Effect.scoped)
  )
})

describe("the list of tools that only read", () => {
  const all = [...Tools.seven, ...Tools.four, ...Tools.extras, ...Tools.snapshotTools, ...Tools.sandboxTools]
  it("contains exactly the tools that read, and the snapshot tool", () => {
    for (const { does, name } of all) assert.strictEqual(readOnlyTools.has(name), does === "reads" || name === "snapshot", name)
    for (const name of readOnlyTools)
      assert.isTrue(
        all.some((tool) => tool.name === name),
        name
      )
  })
})

describe("a directory with dumps", () => {
  it.live("is listed without circular and dangling links", () =>
    Effect.gen(function* () {
      const place = directory()
      yield* dump(place, { name: "good" })
      Fs.symlinkSync("circle.jsonl", join(place, "circle.jsonl"))
      Fs.symlinkSync("nothing", join(place, "nothing.jsonl"))
      Fs.symlinkSync("round.fs.zip", join(place, "round.fs.zip"))
      Fs.symlinkSync("good.fs.zip", join(place, "good.fs.zip"))
      assert.deepStrictEqual(
        (yield* Dump.list(place)).map(({ has_archive, path }) => [path, has_archive]),
        [["good.jsonl", false]]
      )
      const { get } = yield* served({ source: { dump: place } })
      assert.strictEqual((yield* get("/api/meta")).body.title, "good")
    }).pipe(Effect.scoped)
  )
})

describe("an unreadable archive", () => {
  it.live("is reported as unreadable, not as empty and not as unchanged", () =>
    Effect.gen(function* () {
      const place = directory()
      yield* dump(place, { name: "other", files: { a: "a" } })
      const bad = yield* dump(place, { name: "bad", files: { a: "a" } })
      Fs.writeFileSync(join(dirname(bad), "bad.fs.zip"), "no archive")
      const { get } = yield* served({ source: { dump: bad } })
      for (const path of ["meta", "file?path=a", "diff?with=other.jsonl"]) {
        const { body, status } = yield* get(`/api/filesystem/${path}`)
        assert.deepStrictEqual([status, body.error], [422, "Unreadable"], path)
      }
    }).pipe(Effect.scoped)
  )
})

describe("the type of a text", () => {
  it.live("is named after its extension, and is unknown if the extension is a member of Object.prototype", () =>
    Effect.gen(function* () {
      const names = {
        "a.TSX": "TypeScript with JSX",
        "b.py": "Python",
        "c.md": "Markdown",
        "d.constructor": "text",
        ".py/e": "text",
        notes: "text"
      }
      const tree = Object.fromEntries(
        Object.keys(names).map((name) => [name.split("/")[0]!, name === ".py/e" ? { e: "x" } : "x"])
      )
      const { get } = yield* served({ source: { filesystem: yield* filesystem(tree) } })
      for (const [path, name] of Object.entries(names)) {
        assert.strictEqual((yield* get(`/api/filesystem/file?path=${path}`)).body.media_name, name, path)
      }
    }).pipe(Effect.scoped)
  )
})

describe("a request", () => {
  it.live("from another site is refused, unless it opens the page", () =>
    Effect.gen(function* () {
      const { get } = yield* served({ source: { filesystem: yield* filesystem({ a: "a" }) } })
      const status = (path: string, site: string, mode: string, method = "GET") =>
        Effect.map(get(path, { method, headers: { "sec-fetch-site": site, "sec-fetch-mode": mode } }), ({ status }) => status)
      for (const site of ["cross-site", "same-site"]) {
        assert.strictEqual(yield* status("/api/filesystem/tree", site, "no-cors"), 403)
        assert.strictEqual(yield* status("/api/filesystem/tree", site, "navigate"), 403)
        assert.strictEqual(yield* status("/api/reload", site, "cors", "POST"), 403)
        assert.strictEqual(yield* status("/app.js", site, "no-cors"), 403)
        assert.strictEqual(yield* status("/", site, "navigate"), 200)
      }
      for (const site of ["same-origin", "none"]) assert.strictEqual(yield* status("/api/meta", site, "cors"), 200)
    }).pipe(Effect.scoped)
  )

  it.live("with a body of the wrong type is answered with an error in JSON", () =>
    Effect.gen(function* () {
      const { get } = yield* served({ source: { filesystem: yield* filesystem({ a: "a" }) } })
      const { body, status } = yield* get("/api/switch", {
        method: "POST",
        raw: "path=a",
        headers: { "content-type": "application/x-www-form-urlencoded" }
      })
      assert.deepStrictEqual([status, body?.error], [415, "BadRequest"])
    }).pipe(Effect.scoped)
  )
})

describe("several listeners", () => {
  it.live("share one watcher of the files", () =>
    Effect.gen(function* () {
      const { port: plain } = yield* filesystem({ a: "a" })
      const begun = yield* Deferred.make<void>()
      let watchers = 0
      const watch = () =>
        Stream.concat(
          Stream.drain(
            Stream.fromEffect(
              Effect.andThen(
                Effect.sync(() => watchers++),
                Deferred.succeed(begun, undefined)
              )
            )
          ),
          Stream.never
        )
      const { port } = yield* served({ source: { filesystem: make({ ...plain, watch } as never) } })
      for (let i = 0; i < 8; i++) {
        const next = yield* listening(port)
        yield* Effect.promise(next)
      }
      yield* Deferred.await(begun)
      // A second watch would have begun with its listener, and all listeners have been answered.
      yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/api/meta`))
      assert.strictEqual(watchers, 1)
    }).pipe(Effect.scoped)
  )
})

describe("a server that closes", () => {
  it.live("ends the live streams, and does not wait for incomplete requests", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const source = { filesystem: yield* filesystem({ a: "a" }) }
      const { port } = yield* Scope.provide(Effect.orDie(Server.serve({ source })), scope)
      const answer = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/api/live`))
      const slow = connect(port, "127.0.0.1")
      slow.on("error", () => undefined)
      yield* Effect.promise(() => new Promise((done) => slow.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`, done)))
      yield* Scope.close(scope, Exit.void)
      // The stream ends normally and is not torn.
      assert.include(yield* Effect.promise(() => answer.text()), "event: beat")
      slow.destroy()
    })
  )
})
