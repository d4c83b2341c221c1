import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem, make as derive } from "../../src/filesystem/Filesystem.ts"
import * as Overlay from "../../src/filesystem/Overlay.ts"
import { exportBytesOf } from "../../src/history/Archive.ts"
import { withExclusiveLock } from "../../src/history/replace.ts"
import * as SnapshotStore from "../../src/history/SnapshotStore.ts"
import * as Slice from "../../src/model/Slice.ts"
import { faulty } from "../../src/testing/Faults.ts"
import * as Session from "../../src/workspace/Session.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { shapeOf } from "../history/archiveTrees.ts"
import { Log, linesOf, memory, names, Notes, pair, sha256, slices } from "./dumping.ts"
import * as Names from "../runtime/names.ts"

/** Returns the kind in the names of the hidden directories of a dump. */
const kindOf = (name: string): string =>
  `dump${createHash("sha256")
    .update(name)
    .digest("hex")
    .slice(0, 16)
    .replace(/[0-9]/g, (digit) => "ghijklmnop"[Number(digit)]!)}`

const hostAt = (root: string) => Effect.map(PosixHost.make({ root }), derive)

const hostIn = Effect.fnUntraced(function* () {
  return yield* hostAt(yield* fastDirectory)
})

const overlaid = Effect.fnUntraced(function* () {
  const lower = yield* memory
  yield* lower.write("below", "not dumped from elsewhere")
  return Overlay.overlay(yield* memory)(lower)
})

const kinds = [
  ["memory", () => memory],
  ["host", hostIn],
  ["overlay", overlaid]
] as const

describe("a dump", () => {
  it.effect("has one saved session per line, parents first, and an archive that is named in the first line", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      yield* TestClock.adjust("1 hour")
      const root = yield* Session.make({ id: "root", slices, tags: { session_id: "abc", who: "me" } })
      const [first, second] = [yield* root.child({ id: "first" }), yield* root.child({ id: "second", slices: [Notes] })]
      const third = yield* first.child({ id: "third" })
      yield* third.dispatch(Log, 3)
      yield* second.dispatch(Notes, "a\nb")
      const filesystem = yield* memory
      yield* filesystem.write("src/main.py", "print()\n")
      const path = yield* Session.dumpSessionTree(root, top, { filesystem })
      assert.strictEqual(path, join(Fs.realpathSync(top), "abc.jsonl"))
      assert.deepStrictEqual(names(top), ["abc.fs.zip", "abc.jsonl"])
      const line = { schemaVersion: 1, createdAt: "1970-01-01T01:00:00.000Z", tags: {}, slices: [] }
      assert.deepStrictEqual(linesOf(path!), [
        {
          ...line,
          sessionId: "root",
          tags: { session_id: "abc", who: "me" },
          archive: { sha256: sha256(join(top, "abc.fs.zip")) }
        },
        { ...line, sessionId: "first", parentId: "root" },
        { ...line, sessionId: "third", parentId: "first", slices: [{ name: "Log", policy: "log", items: [3] }] },
        { ...line, sessionId: "second", parentId: "root", slices: [{ name: "Notes", policy: "state", items: ["a\nb"] }] }
      ])
      const listed = execFileSync("python3", ["-m", "zipfile", "-l", join(top, "abc.fs.zip")], { encoding: "utf8" })
      assert.include(listed, "files/src/main.py")
    })
  )

  it.effect("without a filesystem contains only sessions, and removes the archive of an earlier dump", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { filesystem, session } = yield* pair("one")
      for (const nothing of [{}, { filesystem: undefined }, { filesystem: {} }]) {
        const path = yield* Session.dumpSessionTree(session, top, nothing)
        assert.deepStrictEqual(names(top), ["abc.jsonl"])
        assert.isNull(linesOf(path!)[0]!["archive"])
        yield* Session.dumpSessionTree(session, top, { filesystem })
        assert.deepStrictEqual(names(top), ["abc.fs.zip", "abc.jsonl"])
      }
    })
  )

  it.effect("of empty sessions writes nothing and opens no filesystem", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const Emptied = Slice.make("Emptied", Schema.Int, { initial: [1] })
      const session = yield* Session.make({ slices: [...slices, Emptied] })
      yield* session.set(Emptied)
      const child = yield* session.child({ slices })
      const filesystem = Effect.die(new Error("nobody needs it"))
      assert.isUndefined(yield* Session.dumpSessionTree(session, join(top, "new/place"), { filesystem: { filesystem } }))
      assert.deepStrictEqual(names(top), [])
      yield* child.dispatch(Log, 1)
      assert.isDefined(yield* Session.dumpSessionTree(session, join(top, "new/place")))
    })
  )

  it.effect("is written to the given directory, or to the directory of the given file, and creates the directory", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { session } = yield* pair("one")
      Fs.writeFileSync(join(top, "file"), "stays")
      Fs.mkdirSync(join(top, "is.jsonl"))
      const cases = [
        ["", ""],
        ["file", ""],
        ["new/deep", "new/deep"],
        ["other/name.jsonl", "other"],
        ["is.jsonl", "is.jsonl"]
      ] as const
      for (const [target, directory] of cases) {
        const path = yield* Session.dumpSessionTree(session, join(top, target))
        assert.strictEqual(path, join(Fs.realpathSync(join(top, directory)), "abc.jsonl"))
        Fs.unlinkSync(path!)
      }
      assert.strictEqual(Fs.readFileSync(join(top, "file"), "utf8"), "stays")
    })
  )

  it.effect("is named after the session_id tag, which must be valid, or else after a new id", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const untagged = yield* Session.make({ slices })
      yield* untagged.set(Notes, "x")
      const [one, other] = [yield* Session.dumpSessionTree(untagged, top), yield* Session.dumpSessionTree(untagged, top)]
      for (const path of [one!, other!]) assert.match(path, /\/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.jsonl$/)
      assert.notStrictEqual(one, other)
      assert.notInclude(one!, untagged.id)
      for (const session_id of ["", "..", "../x", "a/b", "a\0b", "x".repeat(201), "🦊".repeat(63)]) {
        const session = yield* Session.make({ tags: { session_id } })
        yield* session.set(Notes, "x")
        const error = yield* Effect.flip(Session.dumpSessionTree(session, join(top, "new")))
        assert.isTrue(error._tag === "SessionError" && error.reason === "invalid", session_id)
      }
      assert.strictEqual(names(top).length, 2)
      const longest = yield* Session.make({ tags: { session_id: "🦊".repeat(62) } })
      yield* longest.set(Notes, "x")
      const { filesystem } = yield* pair("one")
      const path = yield* Session.dumpSessionTree(longest, top, { filesystem })
      assert.isDefined((yield* Session.loadSessionTree(path!, { slices })).archive)
    })
  )

  it.effect("of a child session begins with the child", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const root = yield* Session.make({ id: "root" })
      yield* root.set(Notes, "above")
      const child = yield* root.child({ id: "child", slices })
      yield* child.set(Notes, "here")
      const path = yield* Session.dumpSessionTree(child, top)
      const { session } = yield* Session.loadSessionTree(path!, { slices })
      assert.deepStrictEqual([session.id, session.parent, yield* session.children], ["child", undefined, []])
    })
  )

  it.effect("accepts any object with a `filesystem` effect, and fails with the error of the effect", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { filesystem, session } = yield* pair("one")
      const section = { key: "vfs", filesystem: Effect.succeed(filesystem) }
      const path = yield* Session.dumpSessionTree(session, top, { filesystem: section })
      const before = sha256(path!)
      const failing = { filesystem: Effect.fail("no container today" as const) }
      assert.strictEqual(
        yield* Effect.flip(Session.dumpSessionTree(session, top, { filesystem: failing })),
        "no container today"
      )
      assert.strictEqual(sha256(path!), before)
      assert.strictEqual(yield* Effect.flip(Session.loadSessionTree(path!, { slices, into: failing })), "no container today")
      const into = yield* memory
      yield* Session.loadSessionTree(path!, { slices, into: { filesystem: Effect.succeed(into) } })
      assert.strictEqual(yield* into.readString("note"), "one")
    })
  )

  for (const holding of ["the filesystem and then the session", "the session", "the filesystem"]) {
    it.effect(`is consistent while another fiber makes changes under the lock of ${holding}`, () =>
      Effect.gen(function* () {
        const top = yield* fastDirectory
        const { filesystem, session } = yield* pair("0")
        const child = yield* session.child({ slices })
        yield* child.set(Log, 0)
        yield* filesystem.write("other", "0")
        let n = 0
        const sessions = Effect.gen(function* () {
          yield* session.set(Notes, String(n))
          yield* Effect.yieldNow
          yield* child.set(Log, n)
          yield* Effect.yieldNow
        })
        const files = Effect.gen(function* () {
          yield* filesystem.write("note", String(n))
          yield* Effect.yieldNow
          yield* filesystem.write("other", String(n))
          yield* Effect.yieldNow
        })
        const next = Effect.sync(() => void n++)
        const work =
          holding === "the session"
            ? session.exclusively(Effect.andThen(next, sessions))
            : withExclusiveLock(
                filesystem.port,
                Effect.andThen(
                  next,
                  holding === "the filesystem" ? files : session.exclusively(Effect.andThen(sessions, files))
                )
              )
        yield* Effect.forkScoped(Effect.forever(work))
        for (let i = 0; i < 20; i++) {
          yield* Effect.yieldNow
          const path = yield* Session.dumpSessionTree(session, top, { filesystem })
          const into = yield* memory
          const loaded = yield* Session.loadSessionTree(path!, { slices, into })
          const [other] = yield* loaded.session.children
          const inSessions = [(yield* loaded.session.all(Notes))[0], String((yield* other!.all(Log))[0])]
          const inFiles = [yield* into.readString("note"), yield* into.readString("other")]
          assert.strictEqual(inSessions[0], inSessions[1])
          assert.strictEqual(inFiles[0], inFiles[1])
          if (holding.includes("then")) assert.deepStrictEqual(inFiles, inSessions)
        }
        assert.isAbove(n, 10)
      })
    )
  }

  it.effect("that is written into its own filesystem is not part of its archive, and cannot be restored over itself", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const host = yield* hostAt(top)
      const { session } = yield* pair("one")
      yield* host.write("kept", "x")
      const path = yield* Session.dumpSessionTree(session, join(top, "dumps"), { filesystem: host })
      yield* Session.dumpSessionTree(session, join(top, "dumps"), { filesystem: host })
      const error = yield* Effect.flip(Session.loadSessionTree(path!, { slices, into: host }))
      assert.isTrue(error._tag === "SessionError" && error.reason === "invalid")
      assert.deepStrictEqual(names(join(top, "dumps")), ["abc.fs.zip", "abc.jsonl"])
      const into = yield* memory
      yield* Session.loadSessionTree(path!, { slices, into })
      assert.deepStrictEqual(Object.keys(yield* shapeOf(into)), ["dumps", "kept"])
    })
  )

  it.effect("that fails leaves only the old dump, complete", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { filesystem, session } = yield* pair("one")
      yield* Session.dumpSessionTree(session, top, { filesystem })
      const before = [sha256(join(top, "abc.jsonl")), sha256(join(top, "abc.fs.zip"))]
      yield* filesystem.write("note", "later")
      yield* filesystem.write("large", "x".repeat(200_000))
      const sound = faulty([])(filesystem)
      yield* Session.dumpSessionTree(session, join(top, "elsewhere"), { filesystem: sound })
      Fs.rmSync(join(top, "elsewhere"), { recursive: true })
      const operations = new Set(sound.happened.map(({ operation }) => operation))
      assert.isAbove(operations.size, 1)
      for (const operation of operations) {
        const broken = faulty([{ operation, fault: { _tag: "IoError", detail: "planned" } }])(filesystem)
        const exit = yield* Effect.exit(Session.dumpSessionTree(session, top, { filesystem: broken }))
        assert.isTrue(Exit.isFailure(exit) && !Exit.hasDies(exit), operation)
        assert.deepStrictEqual([sha256(join(top, "abc.jsonl")), sha256(join(top, "abc.fs.zip"))], before)
        assert.strictEqual(names(top).length, 2)
      }
      const Odd = Slice.make("Odd", Schema.Int)
      yield* session.set(Odd, 0.5)
      const unfit = yield* Effect.flip(Session.dumpSessionTree(session, top))
      assert.isTrue(unfit._tag === "SessionError" && unfit.reason === "corrupt")
      const elsewhere = yield* Effect.flip(Session.dumpSessionTree(session, join(top, "new/deep"), { filesystem }))
      assert.strictEqual(elsewhere._tag, "SessionError")
      assert.deepStrictEqual([sha256(join(top, "abc.jsonl")), sha256(join(top, "abc.fs.zip"))], before)
      assert.deepStrictEqual(names(top), ["abc.fs.zip", "abc.jsonl"])
    })
  )

  it.effect("that fails behind a symlink removes only the directories that it has created", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { session } = yield* pair("one")
      const Odd = Slice.make("Odd", Schema.Int)
      yield* session.set(Odd, 0.5)
      for (const [real, link] of [
        ["empty/directories/of/others", "l"],
        ["e", "a longer link"]
      ] as const) {
        Fs.mkdirSync(join(top, real), { recursive: true })
        Fs.symlinkSync(real, join(top, link))
        const error = yield* Effect.flip(Session.dumpSessionTree(session, join(top, link, "new/deep")))
        assert.isTrue(error._tag === "SessionError" && error.reason === "corrupt")
        assert.deepStrictEqual(names(join(top, real)), [])
      }
    })
  )

  it.effect("fails if its files cannot be written or its session is a copy, and creates nothing", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { filesystem, session } = yield* pair("one")
      Fs.writeFileSync(join(top, "file"), "")
      for (const target of [join(top, "file/below"), "a\0b", join(top, "x".repeat(300))]) {
        const error = yield* Effect.flip(Session.dumpSessionTree(session, target, { filesystem }))
        assert.isTrue(error._tag === "SessionError" && error.reason === "io", target)
      }
      for (const taken of ["abc.jsonl", "abc.fs.zip"]) {
        Fs.mkdirSync(join(top, taken, "with something in it"), { recursive: true })
        const error = yield* Effect.flip(Session.dumpSessionTree(session, top, { filesystem }))
        assert.isTrue(error._tag === "SessionError" && error.reason === "io", taken)
        assert.deepStrictEqual(names(top), [taken, "file"])
        Fs.rmSync(join(top, taken), { recursive: true })
      }
      const stranger = { ...session } as Session.Operations
      const error = yield* Effect.flip(Session.dumpSessionTree(stranger, top))
      assert.isTrue(error._tag === "SessionError" && error.reason === "invalid")
    })
  )
})

describe("a dump next to other files", () => {
  const snapshotIn = (directory: string) =>
    Effect.gen(function* () {
      const filesystem = yield* memory
      yield* filesystem.write("kept", "by a store")
      const store = yield* Effect.provideService(SnapshotStore.make({ directory }), Filesystem, filesystem)
      yield* store.snapshot("abc")
    }).pipe(Effect.scoped)

  it.effect("without a filesystem keeps an archive of the same name that is not from a dump", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      Fs.chmodSync(top, 0o700)
      yield* snapshotIn(top)
      const before = sha256(join(top, "abc.fs.zip"))
      const { session } = yield* pair("one")
      for (let round = 0; round < 2; round++) {
        const path = yield* Session.dumpSessionTree(session, top)
        assert.strictEqual(sha256(join(top, "abc.fs.zip")), before)
        assert.isUndefined((yield* Session.loadSessionTree(path!, { slices })).archive)
      }
    })
  )

  it.effect("with a filesystem refuses to replace an archive that is not from a dump", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      Fs.chmodSync(top, 0o700)
      const { filesystem, session } = yield* pair("one")
      const refused = Effect.gen(function* () {
        const before = names(top).map((name) => [name, Fs.lstatSync(join(top, name), { bigint: true }).ino])
        const error = yield* Effect.flip(Session.dumpSessionTree(session, top, { filesystem }))
        assert.isTrue(error._tag === "SessionError" && error.reason === "invalid")
        assert.include(error.message, "move it away")
        assert.deepStrictEqual(
          names(top).map((name) => [name, Fs.lstatSync(join(top, name), { bigint: true }).ino]),
          before
        )
      })
      yield* snapshotIn(top)
      yield* refused
      yield* Session.dumpSessionTree(session, top)
      yield* refused
      Fs.unlinkSync(join(top, "abc.fs.zip"))
      yield* Session.dumpSessionTree(session, top, { filesystem })
      Fs.unlinkSync(join(top, "abc.fs.zip"))
      yield* snapshotIn(top)
      yield* refused
      Fs.unlinkSync(join(top, "abc.fs.zip"))
      Fs.symlinkSync("nowhere", join(top, "abc.fs.zip"))
      yield* refused
    })
  )

  it.effect("refuses to replace a .jsonl file that is not a dump", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { filesystem, session } = yield* pair("one")
      for (const text of ["", '{"event":"mine"}\n', '["schemaVersion"]\n']) {
        Fs.writeFileSync(join(top, "abc.jsonl"), text)
        for (const options of [{}, { filesystem }]) {
          const error = yield* Effect.flip(Session.dumpSessionTree(session, top, options))
          assert.isTrue(error._tag === "SessionError" && error.reason === "invalid")
        }
        assert.strictEqual(Fs.readFileSync(join(top, "abc.jsonl"), "utf8"), text)
      }
    })
  )

  it.effect("keeps foreign files in the leftover of a dump, and does not follow a link with the name of a leftover", () =>
    Effect.gen(function* () {
      const [top, elsewhere] = [yield* fastDirectory, yield* fastDirectory]
      const { filesystem, session } = yield* pair("one")
      const dead = Names.dead()
      const [full, led] = [Names.signed(dead, kindOf("abc")), Names.signed(dead, kindOf("abc"))]
      Fs.mkdirSync(join(top, full, "d"), { recursive: true })
      for (const name of ["notes.txt", "archive"]) Fs.writeFileSync(join(top, full, name), "mine")
      Fs.writeFileSync(join(elsewhere, "archive"), "mine")
      Fs.symlinkSync(elsewhere, join(top, led))
      yield* Session.dumpSessionTree(session, top, { filesystem })
      assert.deepStrictEqual(names(join(top, full)), ["d", "notes.txt"])
      assert.strictEqual(Fs.readFileSync(join(elsewhere, "archive"), "utf8"), "mine")
    })
  )
})

describe("a dump is loaded", () => {
  for (const [from, source] of kinds) {
    for (const [to, target] of kinds) {
      it.effect(`from ${from} into ${to}`, () =>
        Effect.gen(function* () {
          const top = yield* fastDirectory
          const { session } = yield* pair("one")
          const child = yield* session.child({ slices })
          yield* child.dispatch(Log, 1)
          const filesystem: Algebra = yield* source()
          yield* filesystem.write("a/b/c.txt", "x".repeat(100_000))
          yield* filesystem.write("é", "")
          yield* filesystem.mkdir("empty")
          const path = yield* Session.dumpSessionTree(session, top, { filesystem })
          const into = yield* target()
          yield* into.write("in the way", "x")
          const loaded = yield* Session.loadSessionTree(path!, { slices, into })
          assert.strictEqual(loaded.archive, join(Fs.realpathSync(top), "abc.fs.zip"))
          assert.deepStrictEqual(yield* shapeOf(into), yield* shapeOf(filesystem))
          assert.deepStrictEqual(yield* loaded.session.all(Notes), ["one"])
          const [grown] = yield* loaded.session.children
          assert.deepStrictEqual([grown!.id, grown!.parent, yield* grown!.all(Log)], [child.id, loaded.session, [1]])
          yield* loaded.session.set(Notes, "two")
          const again = yield* Session.dumpSessionTree(loaded.session, top, { filesystem: into })
          assert.strictEqual(again, path)
          const back = yield* Session.loadSessionTree(path!, { slices })
          assert.deepStrictEqual(yield* back.session.all(Notes), ["two"])
          assert.strictEqual((yield* Effect.flip(back.session.child({ id: child.id }))).reason, "invalid")
        })
      )
    }
  }

  it.effect("with the slice that contains the filesystem of its session", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { session } = yield* pair("one")
      const filesystem = derive(yield* InMemory.makeSession(session))
      yield* filesystem.write("a/b", "kept in a slice")
      const path = yield* Session.dumpSessionTree(session, top, { filesystem })
      const { archive, session: loaded } = yield* Session.loadSessionTree(path!, { slices: [...slices, InMemory.State] })
      assert.isDefined(archive)
      const resumed = derive(yield* InMemory.makeSession(loaded))
      assert.deepStrictEqual(yield* shapeOf(resumed), yield* shapeOf(filesystem))
    })
  )

  it.effect("if another program wrote it, with the archive next to it", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { filesystem } = yield* pair("one")
      const line = { schemaVersion: 1, sessionId: "s", createdAt: "2026-01-01T00:00:00Z", tags: {}, slices: [] }
      const path = join(top, "named.by.somebody.jsonl")
      Fs.writeFileSync(path, JSON.stringify(line))
      const into = yield* memory
      assert.isUndefined((yield* Session.loadSessionTree(path, { slices, into })).archive)
      Fs.writeFileSync(join(top, "named.by.somebody.fs.zip"), yield* exportBytesOf(filesystem))
      assert.strictEqual(
        (yield* Session.loadSessionTree(path, { slices, into })).archive,
        join(Fs.realpathSync(top), "named.by.somebody.fs.zip")
      )
      assert.strictEqual(yield* into.readString("note"), "one")
      Fs.writeFileSync(path, JSON.stringify({ ...line, archive: null }))
      assert.isUndefined((yield* Session.loadSessionTree(path, { slices, into })).archive)
      Fs.symlinkSync("named.by.somebody.jsonl", join(top, "link.jsonl"))
      yield* Session.loadSessionTree(join(top, "link.jsonl"), { slices })
    })
  )
})

describe("a dump is refused as input", () => {
  const line = (sessionId: string, parentId?: string): string =>
    JSON.stringify({
      schemaVersion: 1,
      sessionId,
      ...(parentId === undefined ? undefined : { parentId }),
      createdAt: "2026-01-01T00:00:00Z",
      tags: {},
      slices: [{ name: "Notes", policy: "state", items: [sessionId] }]
    })
  const good = [line("a"), line("b", "a"), line("c", "b"), line("d", "a")]
  const damaged: ReadonlyArray<readonly [what: string, text: string | Uint8Array, at: number]> = [
    ["is empty", "", 1],
    ["is only a newline", "\n", 1],
    ["is truncated within a line", good.join("\n").slice(0, -9), 4],
    ["is truncated within its first line", good[0]!.slice(0, 20), 1],
    ["has an empty line", [good[0], "", good[1]].join("\n"), 2],
    ["has a session twice", [...good, line("b", "c")].join("\n"), 5],
    ["has its first session twice", [line("a"), line("a", "a")].join("\n"), 2],
    ["has a child before its parent", [line("a"), line("c", "b"), line("b", "a")].join("\n"), 2],
    ["has a session that is its own child", [line("a"), line("b", "b")].join("\n"), 2],
    ["has an unknown parent", [...good, line("e", "z")].join("\n"), 5],
    ["begins with a child", good.slice(1).join("\n"), 1],
    ["has two roots", [...good, line("e")].join("\n"), 5],
    ["has NUL bytes at its end", `${good.join("\n")}\n${"\0".repeat(4096)}`, 5],
    ["has NUL bytes in it", good.join("\n").replace('"c"', '"\0"'), 3],
    ["has an item that violates its schema", good.join("\n").replace('["c"]', "[3]"), 3],
    ["has bytes that are not UTF-8", Buffer.concat([Buffer.from(`${good[0]}\n`), Buffer.from([0x22, 0xc3, 0x28, 0x22])]), 2]
  ]
  for (const [what, text, at] of damaged) {
    it.effect(`that ${what}, as corrupt, with the line number`, () =>
      Effect.gen(function* () {
        const path = join(yield* fastDirectory, "x.jsonl")
        Fs.writeFileSync(path, text)
        const error = yield* Effect.flip(Session.loadSessionTree(path, { slices }))
        assert.isTrue(error._tag === "SessionError" && error.reason === "corrupt")
        assert.include(error.message, `line ${at}:`)
      })
    )
  }

  it.effect("with unknown slices or a newer version, in any line", () =>
    Effect.gen(function* () {
      const path = join(yield* fastDirectory, "x.jsonl")
      const reasons = Effect.map(Effect.flip(Session.loadSessionTree(path, { slices })), (error) =>
        error._tag === "SessionError" ? [error.reason, /line \d/.exec(error.message)?.[0]] : []
      )
      Fs.writeFileSync(
        path,
        good.join("\n").replace('"Notes","policy":"state","items":["c"]', '"Strange","policy":"state","items":[]')
      )
      assert.deepStrictEqual(yield* reasons, ["unknownSlice", "line 3"])
      Fs.writeFileSync(path, `${good[0]}\n${good[1]!.replace('"schemaVersion":1', '"schemaVersion":2')}`)
      assert.deepStrictEqual(yield* reasons, ["version", "line 2"])
      Fs.unlinkSync(path)
      assert.deepStrictEqual(yield* reasons, ["io", undefined])
    })
  )

  it.effect("when its archive is missing, has another checksum or is damaged, and nothing changes", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { filesystem, session } = yield* pair("one")
      const path = (yield* Session.dumpSessionTree(session, top, { filesystem }))!
      const zip = join(top, "abc.fs.zip")
      const bytes = Fs.readFileSync(zip)
      const into = yield* memory
      yield* into.write("mine", "stays")
      const refused = Effect.gen(function* () {
        const error = yield* Effect.flip(Session.loadSessionTree(path, { slices, into }))
        assert.deepStrictEqual(Object.keys(yield* shapeOf(into)), ["mine"])
        return error._tag === "SessionError" ? error.reason : error._tag
      })
      Fs.unlinkSync(zip)
      assert.strictEqual(yield* refused, "corrupt")
      Fs.writeFileSync(zip, bytes.subarray(1))
      assert.strictEqual(yield* refused, "corrupt")
      Fs.writeFileSync(path, Fs.readFileSync(path, "utf8").replace(/[0-9a-f]{64}/, sha256(zip)))
      assert.strictEqual(yield* refused, "ArchiveError")
      Fs.writeFileSync(zip, "")
      Fs.writeFileSync(path, Fs.readFileSync(path, "utf8").replace(/[0-9a-f]{64}/, "../../../../../etc/passwd"))
      assert.strictEqual(yield* refused, "corrupt")
    })
  )

  it.effect("when its archive is behind a link, in a linked directory, or named by a path", () =>
    Effect.gen(function* () {
      const [top, elsewhere] = [yield* fastDirectory, yield* fastDirectory]
      const { filesystem, session } = yield* pair("one")
      const path = (yield* Session.dumpSessionTree(session, top, { filesystem }))!
      const zip = join(top, "abc.fs.zip")
      const hash = sha256(zip)
      const into = yield* memory
      yield* into.write("mine", "stays")
      const refused = Effect.fnUntraced(function* (what: string) {
        const error = yield* Effect.flip(Session.loadSessionTree(path, { slices, into }))
        assert.isTrue(error._tag === "SessionError" && error.reason === "corrupt", what)
        assert.deepStrictEqual(Object.keys(yield* shapeOf(into)), ["mine"])
      })
      Fs.renameSync(zip, join(elsewhere, "abc.fs.zip"))
      Fs.symlinkSync(join(elsewhere, "abc.fs.zip"), zip)
      yield* refused("a link")
      Fs.unlinkSync(zip)
      Fs.renameSync(join(elsewhere, "abc.fs.zip"), join(elsewhere, `${hash}.fs.zip`))
      const hidden = join(top, Names.signed(Names.elsewhere, kindOf("abc")))
      Fs.symlinkSync(elsewhere, hidden)
      yield* refused("a hidden link")
      Fs.unlinkSync(hidden)
      execFileSync("mkfifo", [zip])
      yield* refused("a FIFO")
      Fs.unlinkSync(zip)
      Fs.symlinkSync("/dev/zero", zip)
      yield* refused("a device")
      const text = Fs.readFileSync(path, "utf8")
      for (const named of [`../${hash}`, join(elsewhere, hash), `${hash}/..`]) {
        Fs.writeFileSync(path, text.replace(hash, named))
        yield* refused(named)
      }
    })
  )
})

describe("a load of a dump", () => {
  it.effect("fails with the error of the target filesystem, and changes nothing, if the restore fails", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const { filesystem, session } = yield* pair("one")
      const path = (yield* Session.dumpSessionTree(session, top, { filesystem }))!
      const into = yield* memory
      yield* into.write("mine", "stays")
      const broken = faulty([{ operation: "Write", nth: 1, fault: { _tag: "DiskFull" } }])(into)
      const error = yield* Effect.flip(Session.loadSessionTree(path, { slices, into: broken }))
      assert.strictEqual(error._tag, "DiskFull")
      assert.deepStrictEqual(Object.keys(yield* shapeOf(into)), ["mine"])
    })
  )
})
