import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { basename, join } from "node:path"
import { ToolInvoked } from "../../src/agent/ToolEvents.ts"
import * as Dump from "../../src/debug/Dump.ts"
import { directory, dump, filesystem } from "./support.ts"
import * as Names from "../runtime/names.ts"

const png = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 1, 2, 255])

const call = (tool: string, at: string, rest: Partial<ToolInvoked> = {}): ToolInvoked =>
  new ToolInvoked({
    tool,
    callId: `call-${tool}`,
    params: {},
    success: true,
    message: "done",
    durationMillis: 2,
    at: DateTime.makeUnsafe(at),
    ...rest
  })

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

/** Lists every entry below the path with its modification time and size, to detect writes. */
const stampsOf = (path: string): ReadonlyArray<string> =>
  Fs.readdirSync(path, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => `${name} ${Fs.statSync(join(path, name)).mtimeMs} ${Fs.statSync(join(path, name)).size}`)

describe("the files of a dump", () => {
  it.effect("are a sorted list with sizes, and mark empty directories and links", () =>
    Effect.gen(function* () {
      const path = yield* dump(directory(), {
        name: "a",
        files: { "b.txt": "hello", src: { "z.ts": "12", "a.ts": "123" }, empty: {}, link: { link: "b.txt" } }
      })
      assert.deepStrictEqual(yield* Dump.tree(path), [
        { path: "b.txt", size_bytes: 5 },
        { path: "empty", size_bytes: 0, kind: "directory" },
        { path: "link", size_bytes: 5, kind: "symlink" },
        { path: "src/a.ts", size_bytes: 3 },
        { path: "src/z.ts", size_bytes: 2 }
      ])
      const manifest = (yield* Dump.manifest(path))!
      assert.deepInclude(manifest, { file_count: 4, total_bytes: 15 })
      assert.strictEqual(manifest.archive_bytes, Fs.statSync(join(path, "..", "a.fs.zip")).size)
    })
  )

  it.effect("are returned as text, or as bytes with their type, and a missing file is undefined", () =>
    Effect.gen(function* () {
      const path = yield* dump(directory(), {
        name: "a",
        files: {
          "a.md": "# é\r\n",
          "logo.png": png,
          "x.svg": "<svg/>",
          "odd.txt": new Uint8Array([0x61, 0xff]),
          "wide.txt": new Uint8Array([0xff, 0xfe, 0x41, 0, 0xe9, 0]),
          none: "",
          link: { link: "a.md" }
        }
      })
      const file = (name: string) => Dump.file(path, name)
      assert.deepInclude(yield* file("a.md"), {
        kind: "text",
        content: "# é\r\n",
        size_bytes: 6,
        media_type: "text/markdown",
        encoding: "utf-8",
        truncated: false,
        version: sha256(Buffer.from("# é\r\n"))
      })
      assert.deepInclude(yield* file("logo.png"), {
        kind: "binary",
        encoding: "base64",
        media_type: "image/png",
        content: Buffer.from(png).toString("base64")
      })
      assert.deepInclude(yield* file("x.svg"), { kind: "text", media_type: "image/svg+xml" })
      assert.deepInclude(yield* file("odd.txt"), { kind: "binary", content: "Yf8=" })
      assert.deepInclude(yield* file("wide.txt"), { kind: "text", content: "\uFEFFAé" })
      assert.deepInclude(yield* file("none"), { kind: "text", content: "", size_bytes: 0 })
      assert.deepInclude(yield* file("link"), { kind: "symlink", content: "a.md" })
      for (const odd of [
        "nope",
        "",
        ".",
        "/a.md",
        "./a.md",
        "a/../a.md",
        "../a.md",
        "a.md\0",
        "a.md/",
        "a\\b",
        "x".repeat(100_000)
      ]) {
        assert.isUndefined(yield* file(odd), odd.slice(0, 20))
      }
    })
  )

  it.effect("are cut between two characters if the text exceeds 8 MiB, and have no content if other bytes exceed 16 MiB", () =>
    Effect.gen(function* () {
      const MiB = 1024 * 1024
      const path = yield* dump(directory(), {
        name: "a",
        // A cut at 8 MiB would split a character of two bytes.
        files: { "long.txt": `a${"é".repeat(5 * MiB)}`, "big.bin": new Uint8Array(16 * MiB + 1) }
      })
      const text = (yield* Dump.file(path, "long.txt"))!
      assert.deepInclude(text, { kind: "text", truncated: true, size_bytes: 10 * MiB + 1 })
      assert.strictEqual(text.content!.length, 4 * MiB)
      assert.strictEqual(text.content!.replaceAll("é", ""), "a")
      const bytes = (yield* Dump.file(path, "big.bin"))!
      assert.deepInclude(bytes, { kind: "binary", content: null, size_bytes: 16 * MiB + 1 })
    })
  )

  it.effect("can be opened as a read-only filesystem", () =>
    Effect.gen(function* () {
      const path = yield* dump(directory(), { name: "a", files: { src: { "a.ts": "needle" } } })
      const fs = yield* Dump.view(path)
      assert.strictEqual((yield* fs.grep("needle")).matches[0]!.path, "src/a.ts")
      assert.strictEqual((yield* Effect.flip(fs.write("b", "no")))._tag, "AccessDenied")
    }).pipe(Effect.scoped)
  )

  it.effect("of a dump without an archive are an empty list, and cannot be opened as a filesystem", () =>
    Effect.gen(function* () {
      const path = yield* dump(directory(), { name: "a" })
      assert.isUndefined(yield* Dump.archive(path))
      assert.isUndefined(yield* Dump.manifest(path))
      assert.deepStrictEqual(yield* Dump.tree(path), [])
      assert.isUndefined(yield* Dump.file(path, "a"))
      assert.strictEqual((yield* Effect.flip(Effect.scoped(Dump.view(path)))).reason, "missing")
    })
  )

  for (const seed of [1, 2, 3, 4, 5, 6]) {
    it.effect(`equal the written files in a random tree (${seed})`, () =>
      Effect.gen(function* () {
        let state = seed * 2_654_435_761
        const random = (below: number): number => {
          state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
          return state % below
        }
        const fs = yield* filesystem({})
        const written = new Map<string, Uint8Array>()
        const names = ["a", "B", "ä", "名", "x y", "-", "<b>", "z.json", "%41", "'", "a-b", "a.b"]
        for (let i = 0; i < 40; i++) {
          const path = Array.from({ length: 1 + random(4) }, () => names[random(names.length)]!).join("/")
          const bytes = Uint8Array.from({ length: random(300) }, () => random(256))
          const done = yield* Effect.exit(fs.writeBytes(path, bytes, { mode: "create" }))
          if (Exit.isSuccess(done)) written.set(path, bytes)
        }
        const path = yield* dump(directory(), { name: "random", files: fs })
        const tree = yield* Dump.tree(path)
        assert.sameDeepMembers(
          [...tree],
          [...written].map(([path, { length }]) => ({ path, size_bytes: length }))
        )
        for (const [name, bytes] of written) {
          const { content, encoding } = (yield* Dump.file(path, name))!
          assert.deepStrictEqual(Buffer.from(content!, encoding === "base64" ? "base64" : "utf8"), Buffer.from(bytes))
        }
      })
    )
  }
})

describe("a dump whose name begins like the name of a temporary file", () => {
  it.effect("is listed like any other dump", () =>
    Effect.gen(function* () {
      const place = directory()
      yield* dump(place, { name: ".~fsa-a" })
      assert.deepStrictEqual(
        (yield* Dump.list(place)).map(({ path }) => path),
        [".~fsa-a.jsonl"]
      )
    })
  )
})

describe("the archive of a dump", () => {
  it.effect("is found by the hash in the sessions file, even in the hidden directory of a killed dump", () =>
    Effect.gen(function* () {
      const place = directory()
      const path = yield* dump(place, { name: "a", files: { "a.txt": "mine" } })
      const beside = join(place, "a.fs.zip")
      assert.strictEqual(yield* Dump.archive(path), Fs.realpathSync(beside))
      // A kill between the two renames leaves the archive in this hidden directory.
      const key = sha256(Buffer.from("a"))
        .slice(0, 16)
        .replace(/[0-9]/g, (digit) => "ghijklmnop"[Number(digit)]!)
      const hidden = join(place, Names.signed(Names.elsewhere, `dump${key}`))
      Fs.mkdirSync(hidden)
      const left = join(hidden, `${sha256(Fs.readFileSync(beside))}.fs.zip`)
      Fs.renameSync(beside, left)
      yield* dump(directory(), { name: "a", files: { "a.txt": "another" } }).pipe(
        Effect.map((other) => Fs.copyFileSync(join(other, "..", "a.fs.zip"), beside))
      )
      assert.strictEqual(yield* Dump.archive(path), Fs.realpathSync(left))
      assert.strictEqual((yield* Dump.file(path, "a.txt"))!.content, "mine")
      Fs.rmSync(hidden, { recursive: true })
      const failed = yield* Effect.flip(Dump.tree(path))
      assert.strictEqual(failed.reason, "unreadable")
      assert.match(failed.message, /the archive of the dump is missing or was changed/)
    })
  )

  it.effect("can be shown without sessions, and is shown with the sessions of the same name if they exist", () =>
    Effect.gen(function* () {
      const place = directory()
      const path = yield* dump(place, { name: "a", files: { "a.txt": "x" } })
      const archive = join(place, "a.fs.zip")
      assert.strictEqual((yield* Dump.sessions(archive)).length, 1)
      Fs.unlinkSync(path)
      assert.deepStrictEqual(yield* Dump.tree(archive), [{ path: "a.txt", size_bytes: 1 }])
      assert.deepStrictEqual(yield* Dump.sessions(archive), [])
    })
  )

  it.effect("may be damaged without hiding the sessions, and damaged sessions do not hide the archive", () =>
    Effect.gen(function* () {
      const place = directory()
      const path = yield* dump(place, { name: "a", files: { "a.txt": "x" }, children: ["b"] })
      const [first, second] = Fs.readFileSync(path, "utf8").trim().split("\n")
      Fs.writeFileSync(path, `${first!}\n{"sessionId":\n`)
      assert.deepStrictEqual(yield* Dump.tree(path), [{ path: "a.txt", size_bytes: 1 }])
      assert.match((yield* Effect.flip(Dump.sessions(path))).message, /^line 2: the text is not JSON/)
      Fs.writeFileSync(path, `${first!}\n${second!}\n`)
      Fs.appendFileSync(join(place, "a.fs.zip"), "x")
      assert.strictEqual((yield* Effect.flip(Dump.tree(path))).reason, "unreadable")
      assert.deepStrictEqual(
        (yield* Dump.sessions(path)).map(({ session_id }) => session_id),
        ["a", "b"]
      )
    })
  )

  it.effect("that is open stays readable after it is deleted", () =>
    Effect.gen(function* () {
      const place = directory()
      const path = yield* dump(place, { name: "a", files: { "a.txt": "kept" } })
      const scope = yield* Scope.make()
      const fs = yield* Scope.provide(Dump.view(path), scope)
      Fs.rmSync(place, { recursive: true })
      assert.strictEqual(yield* fs.readString("a.txt"), "kept")
      yield* Scope.close(scope, Exit.void)
    })
  )
})

describe("the sessions of a dump", () => {
  it.effect("are shown with their slices, without knowledge of the schemas", () =>
    Effect.gen(function* () {
      const path = yield* dump(directory(), { name: "a", steps: ["one", "two"], children: ["b"], tags: { who: "me" } })
      const [root, child] = yield* Dump.sessions(path)
      assert.deepInclude(root, { session_id: "a", parent_id: null, slices: 1, items: 2, tags: { who: "me", session_id: "a" } })
      assert.deepInclude(child, { session_id: "b", parent_id: "a" })
      assert.deepStrictEqual(yield* Dump.slices(path), [
        { session_id: "a", name: "plan", policy: "state", items: 2 },
        { session_id: "b", name: "plan", policy: "state", items: 1 }
      ])
      assert.deepStrictEqual(yield* Dump.items(path, "plan"), [{ step: "one" }, { step: "two" }])
      assert.deepStrictEqual(yield* Dump.items(path, "plan", { session: "b" }), [{ step: "of b" }])
      assert.deepStrictEqual(yield* Dump.items(path, "nobody's"), [])
    })
  )

  it.effect("have events in the order of time across all sessions, with undated events last", () =>
    Effect.gen(function* () {
      const place = directory()
      const line = (sessionId: string, parent: string | undefined, slices: ReadonlyArray<object>): string =>
        JSON.stringify({
          schemaVersion: 1,
          sessionId,
          ...(parent !== undefined && { parentId: parent }),
          createdAt: "2026-01-01T00:00:00.000Z",
          tags: {},
          slices
        })
      const path = join(place, "a.jsonl")
      const late = {
        _tag: "ToolInvoked",
        tool: "late",
        callId: "1",
        params: {},
        success: true,
        message: "",
        at: "2026-01-03T00:00:00Z"
      }
      const never = { tool: "never", callId: 7, success: "yes", at: "no time", sizeBytes: -1, durationMillis: "long" }
      const notes = [{ type: "note", timestamp: "2026-01-02T00:00:00+01:00" }, { text: "no time" }, "text", null]
      Fs.writeFileSync(
        path,
        `${line("a", undefined, [{ name: "ToolInvoked", policy: "log", items: [late, never] }])}\n${line("b", "a", [
          { name: "notes", policy: "log", items: notes },
          { name: "state", policy: "state", items: [{ at: "2026-01-01T00:00:00Z" }] }
        ])}\n`
      )
      const events = yield* Dump.events(path)
      assert.deepStrictEqual(
        events.map(({ at, index, name, session_id }) => [index, name, session_id, at]),
        [
          [0, "note", "b", "2026-01-01T23:00:00.000Z"],
          [1, "late", "a", "2026-01-03T00:00:00.000Z"],
          [2, "never", "a", null]
        ]
      )
      // Invalid fields are left out, and the item holds them all.
      assert.deepStrictEqual(events[2], {
        index: 2,
        session_id: "a",
        slice: "ToolInvoked",
        at: null,
        name: "never",
        item: never
      })
    })
  )

  it.effect("have events with the parameters and results of tool calls", () =>
    Effect.gen(function* () {
      const calls = [
        call("write_file", "2026-01-02T03:04:05Z", { path: "a", sizeBytes: 3, mode: "create", params: { path: "a" } })
      ]
      const path = yield* dump(directory(), { name: "a", calls })
      const [event] = yield* Dump.events(path)
      assert.deepInclude(event, {
        name: "write_file",
        call_id: "call-write_file",
        success: true,
        message: "done",
        path: "a",
        mode: "create",
        size_bytes: 3,
        duration_millis: 2,
        at: "2026-01-02T03:04:05.000Z"
      })
    })
  )
})

describe("the reader of dumps for the debug view", () => {
  it.effect("opens the newest dump of a directory, and lists all dumps, newest first", () =>
    Effect.gen(function* () {
      const place = directory()
      const old = yield* dump(place, { name: "old", files: { "a.txt": "x" } })
      const young = yield* dump(place, { name: "young" })
      Fs.writeFileSync(join(place, "lone.fs.zip"), "no archive")
      Fs.writeFileSync(join(place, "else.txt"), "x")
      Fs.mkdirSync(join(place, "directory.jsonl"))
      const outside = join(directory(), "out.jsonl")
      Fs.writeFileSync(outside, "")
      Fs.symlinkSync(outside, join(place, "out.jsonl"))
      for (const [i, file] of [old, join(place, "lone.fs.zip"), young].entries()) Fs.utimesSync(file, 1000 + i, 1000 + i)
      const list = yield* Dump.list(place)
      assert.deepStrictEqual(
        list.map(({ has_archive, path }) => [path, has_archive]),
        [
          ["young.jsonl", false],
          ["lone.fs.zip", true],
          ["old.jsonl", true]
        ]
      )
      assert.strictEqual(list[0]!.modified_at, "1970-01-01T00:16:42.000Z")
      assert.strictEqual((yield* Dump.sessions(place))[0]!.session_id, "young")
    })
  )

  it.effect("fails with a reason for a path that is not a dump", () =>
    Effect.gen(function* () {
      const place = directory()
      const cases: ReadonlyArray<readonly [string, string, RegExp]> = [
        [join(place, "none.jsonl"), "missing", /none\.jsonl/],
        [place, "missing", /there is no dump in .*: neither a \.jsonl nor a \.fs\.zip/],
        ["/dev/null", "invalid", /is neither a file nor a directory/],
        [join(place, "a.txt"), "invalid", /a\.txt" is not a dump: its name ends in neither \.jsonl nor \.fs\.zip/]
      ]
      Fs.writeFileSync(join(place, "a.txt"), "a\n")
      for (const [path, reason, message] of cases) {
        const error = yield* Effect.flip(Dump.sessions(path))
        assert.strictEqual(error.reason, reason, path)
        assert.match(error.message, message)
      }
      Fs.writeFileSync(join(place, "empty.jsonl"), "")
      Fs.symlinkSync("a.txt", join(place, "named.jsonl"))
      assert.match((yield* Effect.flip(Dump.sessions(join(place, "named.jsonl")))).message, /not JSON/)
      assert.match((yield* Effect.flip(Dump.sessions(join(place, "empty.jsonl")))).message, /the file is empty/)
    })
  )

  it.effect("writes no file", () =>
    Effect.gen(function* () {
      const place = directory()
      const path = yield* dump(place, { name: "a", files: { "a.txt": "x" } })
      const before = stampsOf(place)
      yield* Dump.list(place)
      yield* Dump.sessions(path)
      yield* Dump.tree(path)
      yield* Dump.file(path, "a.txt")
      assert.deepStrictEqual(stampsOf(place), before)
      assert.strictEqual(basename(path), "a.jsonl")
    })
  )
})
