/**
 * Entries that an import refuses. Plain archives omit and report them; archives of snapshots, sessions and dumps keep
 * them unchanged.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem, make as derive } from "../../src/filesystem/Filesystem.ts"
import * as Overlay from "../../src/filesystem/Overlay.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as SnapshotStore from "../../src/history/SnapshotStore.ts"
import { scan } from "../../src/history/scan.ts"
import type { DirectoryNode } from "../../src/history/tree.ts"
import { link, plant } from "../../src/testing/Files.ts"
import * as Checkpoint from "../../src/workspace/Checkpoint.ts"
import * as Session from "../../src/workspace/Session.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { memory as dumped, Notes, slices } from "../workspace/dumping.ts"
import { build } from "./zipBuilder.ts"

const memory: Effect.Effect<Algebra> = Effect.map(InMemory.make(), derive)

/** Returns a generator of numbers in [0, 1) that are the same for the same seed. */
const randomOf = (seed: number) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
  return seed / 2_147_483_648
}

const oddNames = ["Readme", "c:", "back\\slash", "e\u0301", "\ufb01le"] as const
const oddTargets = ["/bin/busybox", "../../../outside", "back\\slash", "c:/x"] as const

/** The paths of the created entries: the paths that an import accepts, and the highest paths that it refuses. */
interface Grown {
  readonly sound: Set<string>
  readonly odd: Set<string>
}

/** Creates a random tree of entries that an import accepts and entries that it refuses. */
const grow = Effect.fnUntraced(function* (fs: Algebra, seed: number, top = ""): Effect.fn.Return<Grown, unknown> {
  const random = randomOf(seed)
  const pick = <A>(all: ReadonlyArray<A>): A => all[Math.floor(random() * all.length)]!
  const [sound, odd] = [new Set<string>(), new Set<string>()]
  const directories: Array<readonly [path: string, isOdd: boolean]> = [[top, false]]
  for (let i = 0; i < 24; i++) {
    const [at, isBelowOdd] = pick(directories)
    const isOdd = random() < 0.4
    const hasOddName = isOdd && random() < 0.5
    const oddName = at === "" ? pick(oddNames) : pick(oddNames.filter((name) => name !== "c:"))
    const name = hasOddName ? oddName : `n${i}`
    const path = at === "" ? name : `${at}/${name}`
    if (sound.has(path) || odd.has(path)) continue
    const twin: Readonly<Record<string, string>> = { Readme: "README", "e\u0301": "\u00e9", "\ufb01le": "\ufb01LE" }
    const first = twin[name]
    if (hasOddName && first !== undefined) {
      const other = at === "" ? first : `${at}/${first}`
      if (!sound.has(other)) yield* fs.write(other, "the first of two")
      if (!isBelowOdd) sound.add(other)
      // If an archive cannot distinguish two names, the first name by code point is valid.
      if (other > path) continue
    }
    const makesLink = isOdd && !hasOddName
    if (makesLink) yield* plant(fs.port, { [path]: link(pick(oddTargets)) })
    else if (random() < 0.4) {
      yield* fs.mkdir(path)
      directories.push([path, isBelowOdd || isOdd])
    } else yield* fs.write(path, `content ${i} ${"x".repeat(Math.floor(random() * 3000))}`)
    if (!isBelowOdd) (isOdd ? odd : sound).add(path)
  }
  return { sound, odd }
})

/** Returns the whole tree as a capture sees it, with the keys of names that are not UTF-8. */
const pictureOf = (fs: Algebra): Effect.Effect<unknown, unknown> =>
  Effect.map(scan(fs.port), ({ tree }) => {
    const out: Record<string, unknown> = {}
    const visit = (at: string, { entries }: DirectoryNode): void => {
      for (const [name, node] of [...entries].sort(([a], [b]) => (a < b ? -1 : 1))) {
        const path = `${at}/${name}`
        if (node.kind === "directory") {
          out[path] = ["directory", node.mode]
          visit(path, node)
        } else out[path] = node.kind === "file" ? ["file", node.mode, node.id] : ["link", node.target]
      }
    }
    visit("", tree)
    return out
  })

const seeds = Array.from({ length: 12 }, (_, i) => i + 1)

describe("an export of a tree with entries that an import refuses", () => {
  it.effect("omits and reports exactly these entries, and the other entries can be imported", () =>
    Effect.gen(function* () {
      let odd = 0
      for (const seed of seeds) {
        const fs = yield* memory
        const grown = yield* grow(fs, seed)
        odd += grown.odd.size
        for (const [exporting, importing] of [
          [(options: Archive.ExportOptions) => Archive.exportZipOf(fs, options), Archive.importZipOf],
          [(options: Archive.ExportOptions) => Archive.exportZipOf(fs, { ...options, layout: "plain" }), Archive.importZipOf],
          [(options: Archive.ExportOptions) => Archive.exportTarOf(fs, options), Archive.importTarOf]
        ] as const) {
          const skipped: Array<string> = []
          const parts = yield* Stream.runCollect(exporting({ onSkipped: ({ path }) => void skipped.push(path) }))
          assert.deepStrictEqual(skipped.sort(), [...grown.odd].sort(), `seed ${seed}`)
          const other = yield* memory
          yield* importing(other, Stream.fromIterable(parts))
          const entries = yield* Stream.runCollect(other.walk("."))
          assert.deepStrictEqual(entries.map(({ path }) => String(path)).sort(), [...grown.sound].sort(), `seed ${seed}`)
          if (grown.odd.size === 0) continue
          const error = yield* Effect.flip(Stream.runDrain(exporting({ strict: true })))
          assert.strictEqual(error._tag, "ArchiveError")
        }
      }
      assert.isAbove(odd, 40)
    })
  )

  it.live("of a host omits FIFOs, names that are not UTF-8 and links out of the root, and gives a reason for each", () =>
    Effect.gen(function* () {
      const root = yield* fastDirectory
      execFileSync("mkfifo", [join(root, "fifo")])
      Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0xff])]), "x")
      Fs.symlinkSync("/usr/bin/python3", join(root, "python"))
      Fs.writeFileSync(join(root, "kept"), "x")
      const fs = derive(yield* PosixHost.make({ root }))
      const skipped: Array<Archive.SkippedEntry> = []
      const bytes = yield* Archive.exportBytesOf(fs, { onSkipped: (entry) => void skipped.push(entry) })
      assert.deepStrictEqual(
        skipped.map(({ path, reason }) => [path, reason]),
        [
          ["\\xff", "name"],
          ["fifo", "unsupported"],
          ["python", "link"]
        ]
      )
      for (const { detail } of skipped) assert.isAbove(detail.length, 10)
      assert.strictEqual(yield* Archive.importBytesOf(yield* memory, bytes), 1)
    }).pipe(Effect.scoped)
  )
})

/** Changes most of a tree, including entries that an import refuses. */
const spoil = Effect.fnUntraced(function* (fs: Algebra) {
  const { entries } = yield* fs.list(".").pipe(Effect.map((entries) => ({ entries })))
  for (const [i, { name }] of entries.entries()) if (i % 2 === 0) yield* fs.delete(name, { recursive: true })
  yield* fs.write("added/later", "x")
  yield* plant(fs.port, { "added/link": link("/etc/hosts") })
})

const overlaid = Effect.fnUntraced(function* (seed: number) {
  const lower = yield* memory
  yield* grow(lower, seed + 1000, "low")
  return Overlay.overlay(yield* memory)(lower)
})

const kinds = [
  ["memory", () => memory],
  ["a host", () => Effect.flatMap(fastDirectory, (root) => Effect.map(PosixHost.make({ root }), derive))],
  ["an overlay", overlaid]
] as const

describe("an archive that the same filesystem restores contains every entry, even an entry that an import refuses,", () => {
  for (const [kind, make] of kinds) {
    it.live(`if Snapshots.layerArchive made it, over ${kind}`, () =>
      Effect.gen(function* () {
        for (const seed of seeds.slice(0, 6)) {
          const fs = yield* make(seed)
          yield* grow(fs, seed)
          yield* Effect.gen(function* () {
            const snapshots = yield* Snapshots.Snapshots
            const before = yield* pictureOf(fs)
            const snapshot = yield* snapshots.snapshot()
            assert.deepStrictEqual(yield* snapshots.diff(snapshot), [], `seed ${seed}`)
            yield* spoil(fs)
            yield* snapshots.restore(snapshot, { verify: true })
            assert.deepStrictEqual(yield* pictureOf(fs), before, `seed ${seed}`)
            const failed = yield* Effect.flip(snapshots.transaction(Effect.andThen(spoil(fs), Effect.fail("planned"))))
            assert.strictEqual(failed, "planned")
            assert.deepStrictEqual(yield* pictureOf(fs), before, `seed ${seed}`)
          }).pipe(Effect.provide(Snapshots.layerArchive), Effect.provideService(Filesystem, fs))
        }
      }).pipe(Effect.scoped)
    )

    it.live(`if a SnapshotStore made it, over ${kind}`, () =>
      Effect.gen(function* () {
        const directory = yield* fastDirectory
        Fs.chmodSync(directory, 0o700)
        const fs = yield* make(3)
        const grown = yield* grow(fs, 3)
        assert.isAbove(grown.odd.size, 0)
        const store = yield* Effect.provideService(SnapshotStore.make({ directory }), Filesystem, fs)
        const before = yield* pictureOf(fs)
        const { archivePath, fileCount } = yield* store.snapshot("s")
        yield* spoil(fs)
        assert.strictEqual(yield* store.rollback("s"), fileCount)
        assert.deepStrictEqual(yield* pictureOf(fs), before)
        // An import treats the file as an archive of another program and applies the strict rules.
        const other = yield* memory
        yield* Archive.importArchiveOf(other, archivePath)
        for (const path of grown.odd) assert.isFalse(yield* other.exists(path), path)
      }).pipe(Effect.scoped)
    )

    it.live(`if Checkpoint.captureExternal made it, over ${kind}`, () =>
      Effect.gen(function* () {
        const fs = yield* make(5)
        yield* grow(fs, 5)
        const session = yield* Session.make({ slices: [Checkpoint.ExternalFsSnapshot] })
        const before = yield* pictureOf(fs)
        yield* Checkpoint.captureExternal(session, fs)
        yield* spoil(fs)
        assert.isTrue(yield* Checkpoint.restoreExternal(session, fs))
        assert.deepStrictEqual(yield* pictureOf(fs), before)
      }).pipe(Effect.scoped)
    )
  }

  it.live("with names that are not UTF-8, on a host", () =>
    Effect.gen(function* () {
      const root = yield* fastDirectory
      const raw = Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x64, 0xff])])
      Fs.mkdirSync(raw)
      Fs.writeFileSync(Buffer.concat([raw, Buffer.from("/in\nside")]), "kept", { mode: 0o640 })
      execFileSync("mkfifo", [join(root, "fifo")])
      const fs = derive(yield* PosixHost.make({ root }))
      yield* Effect.gen(function* () {
        const snapshots = yield* Snapshots.Snapshots
        const before = yield* pictureOf(fs)
        const snapshot = yield* snapshots.snapshot()
        Fs.rmSync(raw, { recursive: true })
        yield* snapshots.restore(snapshot, { verify: true })
        assert.deepStrictEqual(yield* pictureOf(fs), before)
        assert.isTrue(Fs.lstatSync(join(root, "fifo")).isFIFO())
        assert.strictEqual((yield* snapshots.details(snapshot)).skipped, 1)
      }).pipe(Effect.provide(Snapshots.layerArchive), Effect.provideService(Filesystem, fs))
    }).pipe(Effect.scoped)
  )

  it.effect("if a dump of a session made it", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const fs = yield* dumped
      yield* grow(fs, 7)
      const session = yield* Session.make({ slices, tags: { session_id: "abc" } })
      yield* session.set(Notes, "x")
      const path = (yield* Session.dumpSessionTree(session, top, { filesystem: fs }))!
      const into = yield* dumped
      yield* Session.loadSessionTree(path, { slices, into })
      assert.deepStrictEqual(yield* pictureOf(into), yield* pictureOf(fs))
    }).pipe(Effect.scoped)
  )
})

describe("an archive with forged entries below verbatim/", () => {
  const hex = (path: string) => Buffer.from(path).toString("hex")
  const good = { name: "files/good", content: "good" }
  const said = (entries: number, files = entries, backend = "InMemory") => ({
    name: "manifest.json",
    content: JSON.stringify({
      version: "1",
      created_at: "2026-01-01T00:00:00Z",
      file_count: 1,
      total_bytes: 4,
      verbatim: { version: 1, backend, entries, file_count: files, total_bytes: 0 }
    })
  })

  it.effect("is imported without the forged entries", () =>
    Effect.gen(function* () {
      const fs = yield* memory
      const bytes = build([good, { name: `verbatim/l/${hex("evil")}`, content: "/etc/passwd" }, said(1)])
      assert.strictEqual(yield* Archive.importBytesOf(fs, bytes), 1)
      assert.deepStrictEqual(
        (yield* fs.list(".")).map(({ name }) => name),
        ["good"]
      )
    })
  )

  const hostile: ReadonlyArray<readonly [what: string, parts: ReadonlyArray<{ name: string; content?: string }>]> = [
    ["a path above the root", [{ name: `verbatim/f/${hex("../x")}` }]],
    ["a path that climbs above the root by inner segments", [{ name: `verbatim/f/${hex("good/../../x")}` }]],
    ["an absolute path", [{ name: `verbatim/f/${hex("/etc/x")}` }]],
    ["an empty path", [{ name: "verbatim/f/" + hex("") }]],
    ["a dot as path", [{ name: `verbatim/f/${hex(".")}` }]],
    ["an empty segment", [{ name: `verbatim/f/${hex("a//b")}` }]],
    ["a NUL", [{ name: `verbatim/f/${hex("a\0b")}` }]],
    ["a key for the parent directory", [{ name: `verbatim/f/${hex(`\0${hex("..")}`)}` }]],
    ["a key with a slash", [{ name: `verbatim/f/${hex(`\0${hex("a/\xff")}`)}` }]],
    ["a path that is not UTF-8", [{ name: "verbatim/f/ff" }]],
    ["a path in upper-case hexadecimal", [{ name: "verbatim/f/6A" }]],
    ["an unknown kind", [{ name: `verbatim/x/${hex("a")}` }]],
    ["a parent that is a file", [{ name: `verbatim/f/${hex("good/below")}` }]],
    ["a missing parent", [{ name: `verbatim/f/${hex("no/below")}` }]],
    [
      "a parent that is a link",
      [
        { name: `verbatim/l/${hex("out")}`, content: "/etc" },
        { name: `verbatim/f/${hex("out/passwd")}`, content: "x" }
      ]
    ],
    ["a path that exists already", [{ name: `verbatim/f/${hex("good")}`, content: "x" }]],
    ["a link with an empty target", [{ name: `verbatim/l/${hex("l")}`, content: "" }]],
    ["a link with a NUL", [{ name: `verbatim/l/${hex("l")}`, content: "a\0b" }]],
    ["a link that is too long", [{ name: `verbatim/l/${hex("l")}`, content: "x".repeat(5000) }]],
    ["a directory with content", [{ name: `verbatim/d/${hex("d")}`, content: "x" }]],
    ["a path of very many segments", [{ name: `verbatim/f/${hex(`${"a/".repeat(5000)}a`)}` }]]
  ]
  for (const [what, parts] of hostile) {
    it.effect(`is refused by a restore, which changes nothing: ${what}`, () =>
      Effect.gen(function* () {
        const fs = yield* memory
        yield* fs.write("before", "stays")
        const bytes = build([good, ...parts, said(parts.length)])
        const error = yield* Effect.flip(Archive.bringBackBytesOf(fs, bytes))
        assert.strictEqual(error._tag, "ArchiveError")
        assert.deepStrictEqual(
          (yield* fs.list(".")).map(({ name }) => name),
          ["before"]
        )
      })
    )
  }

  it.effect("is refused for a wrong count or version, and its entries are ignored if another kind of filesystem made it", () =>
    Effect.gen(function* () {
      const fs = yield* memory
      const part = { name: `verbatim/l/${hex("evil")}`, content: "/etc/passwd" }
      const wrong = yield* Effect.flip(Archive.bringBackBytesOf(fs, build([good, part, said(2)])))
      assert.strictEqual(wrong._tag, "ArchiveError")
      const newer = { ...said(1), content: said(1).content.replace('"verbatim":{"version":1', '"verbatim":{"version":2') }
      const error = yield* Effect.flip(Archive.bringBackBytesOf(fs, build([good, part, newer])))
      assert.isTrue(error._tag === "ArchiveError" && error.reason === "version")
      assert.strictEqual(yield* Archive.bringBackBytesOf(fs, build([good, part, said(1, 1, "PosixHost")])), 1)
      assert.isFalse(yield* fs.exists("evil"))
    })
  )
})
