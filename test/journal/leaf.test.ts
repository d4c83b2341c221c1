import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { createHash } from "node:crypto"
import { join } from "node:path"
import type * as Filesystem from "../../src/filesystem/Filesystem.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import type * as Journal from "../../src/journal/Journal.ts"
import type * as Leaf from "../../src/journal/Leaf.ts"
import * as Limits from "../../src/model/Limits.ts"
import { around } from "../../src/port/Backend.ts"
import { faulty } from "../../src/testing/Faults.ts"
import {
  type Asking,
  asked,
  bytes,
  chunk,
  freshDirectory,
  host,
  id,
  journaled,
  list,
  many,
  memory,
  plain,
  read,
  remove,
  started,
  stat,
  write
} from "./leafBench.ts"

type Made = Effect.Effect<Filesystem.Algebra, never, Scope.Scope>

const sha256 = (content: Uint8Array | string): string => createHash("sha256").update(content).digest("hex")

const serving = <A, E>(
  fs: Made,
  options: Leaf.LeafOptions,
  body: (asking: Asking, fs: Filesystem.Algebra) => Effect.Effect<A, E, Scope.Scope | Journal.Journal>
) =>
  journaled(
    Effect.gen(function* () {
      const self = yield* fs
      yield* started(self, options)
      return yield* body(yield* asked, self)
    })
  )

const kindOf = (answer: Entry.Afferent): string => (answer._tag === "FileFault" ? answer.faultKind : answer._tag)

const backends: ReadonlyArray<readonly [string, Made]> = [
  ["memory", memory()],
  ["a host directory", Effect.suspend(() => host())]
]

for (const [name, fs] of backends) {
  describe(`a leaf over ${name}`, () => {
    it.effect("reads a whole file, or the part of a range that the file has", () =>
      serving(fs, {}, ({ ask, content }, self) =>
        Effect.gen(function* () {
          yield* self.write("f", "0123456789")
          for (const [range, expected, isPartial] of [
            [{}, "0123456789", false],
            [{ offset: 0 }, "0123456789", false],
            [{ offset: 3 }, "3456789", true],
            [{ length: 4 }, "0123", true],
            [{ offset: 2, length: 3 }, "234", true],
            [{ offset: 8, length: 100 }, "89", true],
            [{ offset: 10 }, "", true],
            [{ offset: 99, length: 1 }, "", true],
            [{ length: 0 }, "", true],
            [{ length: 10 }, "0123456789", false]
          ] as const) {
            const answer = yield* ask(read("/f", range))
            assert.isTrue(answer._tag === "FileContent")
            if (answer._tag !== "FileContent") return
            assert.deepStrictEqual(yield* content(answer.content), bytes(expected), JSON.stringify(range))
            assert.deepStrictEqual([answer.totalSize, answer.isPartial], [10, isPartial], JSON.stringify(range))
          }
        })
      )
    )

    it.effect("writes in all five modes, on existing and missing files", () =>
      serving(fs, {}, ({ ask }, self) =>
        Effect.gen(function* () {
          const { AppendExisting, CreateNew, CreateOrAppend, CreateOrReplace, ReplaceExisting } = Entry.CreateMode
          for (const [mode, there, missing] of [
            [CreateNew, "AlreadyExists", "new"],
            [CreateOrReplace, "new", "new"],
            [CreateOrAppend, "oldnew", "new"],
            [ReplaceExisting, "new", "NotFound"],
            [AppendExisting, "oldnew", "NotFound"]
          ] as const) {
            for (const [path, before, expected] of [
              [`${mode}/there`, "old", there],
              [`${mode}/missing`, undefined, missing]
            ] as const) {
              if (before !== undefined) yield* self.write(path, before)
              const answer = yield* ask(write(path, "new", mode))
              const isFault = expected === "AlreadyExists" || expected === "NotFound"
              if (isFault) assert.strictEqual(kindOf(answer), expected, path)
              else assert.deepStrictEqual(plain(answer), { _tag: "FileWritten", path, bytesWritten: 3 })
              const left = isFault ? before : expected
              assert.strictEqual((yield* self.exists(path)) ? yield* self.readString(path) : undefined, left, path)
            }
          }
        })
      )
    )

    it.effect("checks the precondition of a write and of a delete", () =>
      serving(fs, {}, ({ ask }, self) =>
        Effect.gen(function* () {
          yield* self.write("f", "one")
          const [one, other] = [sha256("one"), sha256("other")]
          assert.strictEqual(kindOf(yield* ask(write("f", "two", "overwrite", { ifMatch: other }))), "IoError")
          assert.strictEqual(kindOf(yield* ask(write("f", "two", "overwrite", { ifMatch: null }))), "IoError")
          assert.strictEqual(kindOf(yield* ask(remove("f", { ifMatch: other }))), "IoError")
          assert.strictEqual(yield* self.readString("f"), "one")
          const written = yield* ask(write("f", "two", "overwrite", { ifMatch: one, version: true }))
          assert.deepStrictEqual(plain(written), {
            _tag: "FileWritten",
            path: "f",
            bytesWritten: 3,
            version: sha256("two")
          })
          assert.strictEqual(kindOf(yield* ask(remove("f", { ifMatch: sha256("two") }))), "FileDeleted")
          const alone = yield* ask(write("no/parent", "x", "overwrite", { createParents: false }))
          assert.strictEqual(kindOf(alone), "NotFound")
        })
      )
    )

    it.effect("lists the names in a directory, or all relative paths below it, in order and by pattern", () =>
      serving(fs, {}, ({ ask }, self) =>
        Effect.gen(function* () {
          for (const path of ["d/b.ts", "d/a.md", "d/sub/c.ts", "d/sub.ts/x", "e"]) yield* self.write(path, path)
          const found = (intent: Entry.FileList) =>
            Effect.map(ask(intent), (answer) =>
              answer._tag === "FileListing"
                ? answer.entries.map(({ isDirectory, path, sizeBytes }) => `${path}${isDirectory ? "/" : ` ${sizeBytes}`}`)
                : kindOf(answer)
            )
          const direct = ["a.md 6", "b.ts 6", "sub/", "sub.ts/"]
          // Whole paths are compared, a directory as its name and "/", so "sub.ts/" precedes "sub/".
          const deep = ["a.md 6", "b.ts 6", "sub.ts/", "sub.ts/x 10", "sub/", "sub/c.ts 10"]
          assert.deepStrictEqual(yield* found(list("d")), direct)
          assert.deepStrictEqual(yield* found(list("/d", { recursive: false })), direct)
          assert.deepStrictEqual(yield* found(list("d", { recursive: true })), deep)
          assert.deepStrictEqual(yield* found(list("d", { pattern: "*.ts" })), ["b.ts 6", "sub.ts/"])
          assert.deepStrictEqual(yield* found(list("d", { pattern: "*.ts", recursive: true })), [
            "b.ts 6",
            "sub.ts/",
            "sub/c.ts 10"
          ])
          assert.deepStrictEqual(yield* found(list("d", { pattern: "sub/*", recursive: true })), ["sub/c.ts 10"])
          assert.deepStrictEqual(yield* found(list("d", { pattern: "sub/*" })), [])
          assert.deepStrictEqual(yield* found(list("/")), ["d/", "e 1"])
          for (const more of [{}, { recursive: true }, { pattern: "*" }, { pattern: "*", recursive: true }]) {
            assert.strictEqual(yield* found(list("missing", more)), "NotFound", JSON.stringify(more))
            assert.strictEqual(yield* found(list("e", more)), "NotADirectory", JSON.stringify(more))
          }
          assert.strictEqual(yield* found(list("d", { pattern: " " })), "IoError")
          assert.strictEqual(yield* found(list("d", { pattern: "../*", recursive: true })), "IoError")
        })
      )
    )

    it.effect("deletes files and returns their number, and refuses the root and full directories without `recursive`", () =>
      serving(fs, {}, ({ ask }, self) =>
        Effect.gen(function* () {
          for (const path of ["d/a", "d/s/b", "f"]) yield* self.write(path, "")
          yield* self.mkdir("empty")
          const counted = (intent: Entry.FileDelete) =>
            Effect.map(ask(intent), (answer) => (answer._tag === "FileDeleted" ? answer.deletedCount : kindOf(answer)))
          assert.strictEqual(yield* counted(remove("f")), 1)
          assert.strictEqual(yield* counted(remove("f")), "NotFound")
          assert.strictEqual(yield* counted(remove("d")), "DirectoryNotEmpty")
          // The count is at least one if anything is removed.
          assert.strictEqual(yield* counted(remove("empty")), 1)
          assert.strictEqual(yield* counted(remove("d", { recursive: true })), 2)
          assert.strictEqual(yield* counted(remove("/", { recursive: true })), "AccessDenied")
        })
      )
    )

    it.effect("returns the metadata of files and directories", () =>
      serving(fs, {}, ({ ask }, self) =>
        Effect.gen(function* () {
          yield* self.write("d/f", "four")
          yield* self.setAttributes("d/f", { mode: 0o640 })
          const times = ["modified", "created", "permissions"]
          const file = yield* ask(stat("d/f"))
          assert.deepStrictEqual(plain(file, times), { _tag: "FileMetadata", size: 4, isDirectory: false, kind: "file" })
          assert.strictEqual(file._tag === "FileMetadata" ? file.permissions : undefined, 0o640)
          assert.deepStrictEqual(plain(yield* ask(stat("d")), times), {
            _tag: "FileMetadata",
            size: 0,
            isDirectory: true,
            kind: "directory"
          })
          assert.strictEqual(kindOf(yield* ask(stat("d/none"))), "NotFound")
        })
      )
    )

    it.effect("answers with the appropriate kind of fault and the path of the request", () =>
      serving(fs, { limits: { ...Limits.standard, maxSegmentLength: 20 } }, ({ ask }, self) =>
        Effect.gen(function* () {
          yield* self.write("f", "x")
          yield* self.mkdir("d")
          for (const [intent, kind] of [
            [read("/none"), "NotFound"],
            [read("d"), "NotAFile"],
            [read("f/below"), "NotFound"],
            [write("d", "x"), "NotAFile"],
            [write("f/below", "x"), "NotADirectory"],
            [write("f", "x", "create"), "AlreadyExists"],
            [list("f"), "NotADirectory"],
            [read("a/../f"), "InvalidPath"],
            [read("a//f"), "InvalidPath"],
            [read("../f"), "InvalidPath"],
            [stat("a\u0000b"), "InvalidPath"],
            [remove("a\u0007"), "InvalidPath"],
            [list("x\ud800"), "InvalidPath"],
            [write(".~fsa-x.tmp", "x"), "InvalidPath"],
            [write("a".repeat(21), "x"), "PathTooLong"]
          ] as const) {
            const answer = yield* ask(intent)
            assert.isTrue(answer._tag === "FileFault", intent.path)
            if (answer._tag !== "FileFault") return
            assert.deepStrictEqual([answer.faultKind, answer.path], [kind, intent.path])
            assert.notProperty(answer, "error")
            assert.include(answer.message, JSON.stringify(intent.path.replace(/^\//, "")))
          }
        })
      )
    )

    it.effect("answers in one entry up to the threshold and in chunks above it, by the size of the range", () =>
      serving(fs, { streamingThreshold: 100, chunkSize: 40 }, ({ askAll, content }, self) =>
        Effect.gen(function* () {
          const told = (size: number, range: { offset?: number; length?: number } = {}) =>
            Effect.gen(function* () {
              const all = many(size)
              yield* self.writeBytes("f", all)
              const answers = yield* askAll(read("f", range))
              const parts: Array<Uint8Array> = []
              const shape: Array<string> = []
              for (const answer of answers) {
                if (answer._tag === "FileContent") {
                  parts.push(yield* content(answer.content))
                  shape.push("whole")
                } else if (answer._tag === "FileContentChunk") {
                  const data = yield* content(answer.data)
                  parts.push(data)
                  shape.push(`${answer.offset}+${data.length}${answer.isFinal ? "." : ""}`)
                } else shape.push(kindOf(answer))
              }
              const start = Math.min(range.offset ?? 0, size)
              const expected = all.slice(start, range.length === undefined ? size : start + range.length)
              assert.deepStrictEqual(Buffer.concat(parts).toString("hex"), Buffer.from(expected).toString("hex"))
              return shape
            })
          assert.deepStrictEqual(yield* told(0), ["whole"])
          assert.deepStrictEqual(yield* told(100), ["whole"])
          assert.deepStrictEqual(yield* told(101), ["0+40", "40+40", "80+21."])
          assert.deepStrictEqual(yield* told(120), ["0+40", "40+40", "80+40."])
          assert.deepStrictEqual(yield* told(1000, { offset: 500, length: 100 }), ["whole"])
          assert.deepStrictEqual(yield* told(1000, { offset: 500, length: 101 }), ["500+40", "540+40", "580+21."])
          assert.deepStrictEqual(yield* told(1000, { offset: 900 }), ["whole"])
          assert.deepStrictEqual(yield* told(1000, { offset: 899 }), ["899+40", "939+40", "979+21."])
        })
      )
    )

    it.effect("writes content below and above the streaming threshold", () =>
      serving(fs, { streamingThreshold: 5_000 }, ({ ask }, self) =>
        Effect.gen(function* () {
          for (const size of [4_096, 4_097, 5_000, 5_001, 200_000]) {
            const answer = yield* ask(write("f", many(size, size)))
            assert.deepStrictEqual(plain(answer), { _tag: "FileWritten", path: "f", bytesWritten: size })
            assert.strictEqual(yield* self.version("f"), sha256(many(size, size)))
          }
          assert.strictEqual(kindOf(yield* ask(write("f", many(6_000), "create"))), "AlreadyExists")
          assert.strictEqual(kindOf(yield* ask(write("f", many(6_000), "append"))), "FileWritten")
          assert.strictEqual((yield* self.stat("f")).sizeBytes, 206_000)
        })
      )
    )

    it.effect("that is not extended refuses additional kinds of entry with advice", () =>
      serving(fs, {}, ({ ask }) =>
        Effect.gen(function* () {
          for (const intent of [
            new Entry.FileMakeDirectory({ correlationId: id(), path: "d" }),
            new Entry.FileMove({ correlationId: id(), path: "d", to: "e" }),
            new Entry.FileEdit({ correlationId: id(), path: "d", edits: [] }),
            new Entry.FileMakeLink({ correlationId: id(), path: "d", target: "e" }),
            new Entry.FileSetAttributes({ correlationId: id(), path: "d", mode: 0o600 })
          ]) {
            const answer = yield* ask(intent)
            assert.strictEqual(kindOf(answer), "IoError")
            assert.include(
              answer._tag === "FileFault" ? answer.message : "",
              `${intent._tag}; start it with \`extended: true\``
            )
          }
        })
      )
    )

    it.effect("that is extended creates directories and links, moves, edits and sets attributes, or answers with a fault", () =>
      serving(fs, { extended: true }, ({ ask }, self) =>
        Effect.gen(function* () {
          const { FileEdit, FileMakeDirectory, FileMakeLink, FileMove, FileSetAttributes } = Entry
          const tell = (intent: Entry.Efferent) => Effect.map(ask(intent), (answer) => plain(answer))
          const make = (path: string, more = {}) => new FileMakeDirectory({ correlationId: id(), path, ...more })
          assert.deepStrictEqual(yield* tell(make("d/e")), { _tag: "FileDirectoryMade", path: "d/e" })
          assert.strictEqual(kindOf(yield* ask(make("d/e"))), "FileDirectoryMade")
          assert.strictEqual(kindOf(yield* ask(make("d/e", { existOk: false }))), "AlreadyExists")
          assert.strictEqual(kindOf(yield* ask(make("x/y", { parents: false }))), "NotFound")
          yield* self.write("d/f", "one two\n")
          const edit = new FileEdit({
            correlationId: id(),
            path: "d/f",
            edits: [{ oldText: "two", newText: "three" }],
            version: true
          })
          const edited = yield* ask(edit)
          assert.isTrue(edited._tag === "FileEdited")
          assert.deepStrictEqual(plain(edited, ["diff"]), {
            _tag: "FileEdited",
            path: "d/f",
            bytesWritten: 10,
            replacements: 1,
            version: sha256("one three\n")
          })
          assert.include(edited._tag === "FileEdited" ? edited.diff : "", "+one three")
          const move = (path: string, to: string, more = {}) => new FileMove({ correlationId: id(), path, to, ...more })
          assert.deepStrictEqual(yield* tell(move("d", "/moved")), {
            _tag: "FileMoved",
            path: "d",
            to: "/moved",
            files: 1,
            directories: 2,
            bytes: 10
          })
          assert.strictEqual(kindOf(yield* ask(move("moved/f", "no/such/f", { createParents: false }))), "NotFound")
          assert.strictEqual(kindOf(yield* ask(move("moved/f", "moved/../f"))), "InvalidPath")
          assert.strictEqual(kindOf(yield* ask(move("moved/f", "moved/e"))), "AlreadyExists")
          const link = new FileMakeLink({ correlationId: id(), path: "l", target: "moved/f" })
          assert.deepStrictEqual(yield* tell(link), { _tag: "FileLinkMade", path: "l" })
          assert.strictEqual(yield* self.readLink("l"), "moved/f")
          const set = new FileSetAttributes({ correlationId: id(), path: "moved/f", mode: 0o600 })
          assert.deepStrictEqual(yield* tell(set), { _tag: "FileAttributesSet", path: "moved/f" })
          assert.strictEqual((yield* self.stat("moved/f")).mode, 0o600)
        })
      )
    )

    it.effect("that is extended answers with complete errors and metadata, and records the state before each change", () =>
      serving(fs, { extended: true }, ({ all, ask }, self) =>
        Effect.gen(function* () {
          const conflict = yield* ask(write("f", "x", "overwrite", { ifMatch: sha256("y") }))
          assert.isTrue(conflict._tag === "FileFault")
          if (conflict._tag !== "FileFault") return
          assert.strictEqual(conflict.faultKind, "IoError")
          assert.strictEqual(conflict.error?._tag, "Conflict")
          const first = write("d/f", "four")
          const written = yield* ask(first)
          assert.strictEqual(written._tag === "FileWritten" ? written.stat?.sizeBytes : undefined, 4)
          const second = write("d/f", "more", "append")
          yield* ask(second)
          const content = yield* ask(read("d/f"))
          assert.strictEqual(content._tag === "FileContent" ? content.stat?.path : undefined, "d/f")
          const third = remove("d", { recursive: true })
          assert.deepStrictEqual(plain(yield* ask(third)), {
            _tag: "FileDeleted",
            path: "d",
            deletedCount: 1,
            directories: 1
          })
          const met = (yield* all).flatMap((entry) =>
            entry._tag === "FileStarted" ? [[entry.correlationId, entry.size, entry.removes]] : []
          )
          assert.deepStrictEqual(met.slice(1), [
            [first.correlationId, null, undefined],
            [second.correlationId, 4, undefined],
            [third.correlationId, 0, { deleted: 1, directories: 1 }]
          ])
          assert.isFalse(yield* self.exists("d"))
        })
      )
    )

    for (const extended of [false, true]) {
      it.effect(`refuses forbidden requests before it reads anything (extended: ${extended})`, () =>
        Effect.gen(function* () {
          const writes = (path: string) => [
            write(path, "x"),
            chunk(id(), 0, "x", { path }),
            ...(extended
              ? [
                  new Entry.FileMakeDirectory({ correlationId: id(), path }),
                  new Entry.FileEdit({ correlationId: id(), path, edits: [{ oldText: "a", newText: "b" }] }),
                  new Entry.FileMakeLink({ correlationId: id(), path, target: "f" }),
                  new Entry.FileSetAttributes({ correlationId: id(), path, mode: 0o600 })
                ]
              : [])
          ]
          const moves = (path: string) => (extended ? [new Entry.FileMove({ correlationId: id(), path, to: "x" })] : [])
          for (const [options, denied, permitted] of [
            [{ allowWrite: false }, [...writes("f"), ...writes("none/x"), ...writes("a//b"), ...moves("f")], [remove("f")]],
            [{ allowDelete: false }, [remove("f"), remove("none"), remove("a//b"), ...moves("none")], [write("f", "y")]]
          ] as const) {
            yield* serving(
              Effect.gen(function* () {
                const self = yield* fs
                yield* Effect.orDie(self.write("f", "x"))
                // A denied request must not reach the filesystem.
                return make(
                  around(self.port, (operation, next) =>
                    "path" in operation && looks.isForbidden ? Effect.die(new Error(`it looked at ${operation.path}`)) : next
                  )
                )
              }),
              { ...options, extended },
              ({ ask }) =>
                Effect.gen(function* () {
                  looks.isForbidden = true
                  for (const intent of denied) assert.strictEqual(kindOf(yield* ask(intent)), "AccessDenied", intent._tag)
                  looks.isForbidden = false
                  for (const intent of permitted) assert.notStrictEqual(kindOf(yield* ask(intent)), "AccessDenied")
                })
            )
          }
        })
      )
    }

    it.effect("answers with a fault if an operation dies, and continues", () =>
      serving(
        Effect.flatMap(fs, (self) =>
          Effect.as(Effect.orDie(self.write("f", "x")), faulty([{ operation: "Open", path: "f", fault: "die" }])(self))
        ),
        {},
        ({ ask }) =>
          Effect.gen(function* () {
            const answer = yield* ask(read("f"))
            assert.strictEqual(kindOf(answer), "IoError")
            assert.include(answer._tag === "FileFault" ? answer.message : "", "planned")
            assert.strictEqual(kindOf(yield* ask(stat("f"))), "FileMetadata")
          })
      )
    )
  })
}

const looks = { isForbidden: false }

describe("links through a leaf", () => {
  const root = () => {
    const directory = freshDirectory()
    Fs.writeFileSync(join(directory, "f"), "inside")
    Fs.symlinkSync("f", join(directory, "in"))
    Fs.symlinkSync("/etc/hostname", join(directory, "out"))
    Fs.symlinkSync("../../x", join(directory, "up"))
    return directory
  }

  it.effect("inside the root are reported as their target or as links, as the setting says, and reads always follow them", () =>
    Effect.gen(function* () {
      for (const followSymlinks of [true, false]) {
        yield* serving(host(root()), { followSymlinks }, ({ ask, content }) =>
          Effect.gen(function* () {
            const answer = yield* ask(read("in"))
            assert.deepStrictEqual(answer._tag === "FileContent" ? yield* content(answer.content) : answer, bytes("inside"))
            const told = yield* ask(stat("in"))
            assert.isTrue(told._tag === "FileMetadata")
            if (told._tag !== "FileMetadata") return
            assert.deepStrictEqual(
              [told.kind, told.isSymlink, told.size],
              followSymlinks ? ["file", true, 6] : ["symlink", true, told.size]
            )
          })
        )
      }
    })
  )

  it.effect("out of the root fail with AccessDenied", () =>
    serving(host(root()), {}, ({ ask }) =>
      Effect.gen(function* () {
        for (const intent of [read("out"), read("up"), stat("out"), write("up", "x"), list("up"), read("out/x")]) {
          assert.strictEqual(kindOf(yield* ask(intent)), "AccessDenied", intent.path)
        }
      })
    )
  )

  it.effect("that the filesystem refuses are refused by the leaf", () =>
    serving(host(root(), { symlinks: "refuse" }), { followSymlinks: false }, ({ ask }) =>
      Effect.map(ask(read("in")), (answer) => assert.strictEqual(kindOf(answer), "AccessDenied"))
    )
  )
})

describe("names on a leaf with the rules of Windows", () => {
  it.effect("are refused for every request if they are invalid on Windows", () =>
    serving(memory({ caseInsensitive: true }), { names: "windows", extended: true }, ({ ask }) =>
      Effect.gen(function* () {
        const devices = ["CON", "prn", "AUX", "nul", "COM1", "com9", "LPT1", "lpt9", "nul.txt", "Con.tar.gz", "aux .x"]
        const others = ["CON ", "nul.", "a:b", "a<b", "a>b", 'a"b', "a|b", "a?b", "a*b", "a\\b", "a.", "a "]
        for (const name of [...devices, ...others]) {
          for (const path of [name, `d/${name}`, `${name}/f`]) {
            for (const intent of [
              read(path),
              write(path, "x"),
              list(path),
              remove(path),
              stat(path),
              chunk(id(), 0, "x", { path }),
              new Entry.FileMove({ correlationId: id(), path: "f", to: path })
            ]) {
              assert.strictEqual(kindOf(yield* ask(intent)), "InvalidPath", `${intent._tag} ${path}`)
            }
          }
        }
        for (const name of ["CONSOLE", "com10", "lpt", "nully.txt", "a.b", "COM0x"]) {
          assert.strictEqual(kindOf(yield* ask(write(name, "x"))), "FileWritten", name)
        }
        assert.strictEqual(kindOf(yield* ask(write("n".repeat(256), "x"))), "PathTooLong")
      })
    )
  )
})

describe("names on a leaf without the rules of Windows", () => {
  it.effect("may be names that Windows does not allow", () =>
    serving(memory(), {}, ({ ask }) =>
      Effect.gen(function* () {
        for (const name of ["CON", "nul.txt", "a:b", "a.", "a\\b"]) {
          assert.strictEqual(kindOf(yield* ask(write(name, "x"))), "FileWritten", name)
        }
      })
    )
  )

  it.effect("that differ only in case are equal only on a case-insensitive disk", () =>
    Effect.gen(function* () {
      for (const caseInsensitive of [true, false]) {
        yield* serving(memory({ caseInsensitive }), {}, ({ ask }) =>
          Effect.gen(function* () {
            yield* ask(write("A", "x"))
            const answer = yield* ask(write("a", "y", "create"))
            assert.strictEqual(kindOf(answer), caseInsensitive ? "AlreadyExists" : "FileWritten")
          })
        )
      }
    })
  )
})

describe("a leaf", () => {
  it.effect("writes no file over the size limit, and lists no directory over the limit of entries", () =>
    serving(memory(), { limits: { ...Limits.standard, maxFileSize: 10, maxListEntries: 2 } }, ({ ask }, self) =>
      Effect.gen(function* () {
        const answer = yield* ask(write("f", many(11)))
        assert.strictEqual(kindOf(answer), "IoError")
        assert.isFalse(yield* self.exists("f"))
        for (const name of ["a", "b", "c"]) yield* ask(write(name, name))
        for (const more of [{}, { recursive: true }, { recursive: true, pattern: "*" }]) {
          const answer = yield* ask(list("/", more))
          assert.include(answer._tag === "FileFault" ? answer.message : kindOf(answer), "maxListEntries", JSON.stringify(more))
        }
      })
    )
  )

  it.effect("ignores answers in the journal to unknown requests", () =>
    serving(memory(), { name: "me" }, ({ all, append, ask }) =>
      Effect.gen(function* () {
        yield* append(new Entry.FileDeleted({ correlationId: "stray", path: "x", deletedCount: 1 }))
        yield* append(new Entry.FileStarted({ correlationId: "stray", instance: "x" }))
        yield* ask(write("f", "x"))
        assert.deepStrictEqual(
          (yield* all).map(({ _tag }) => _tag),
          ["DaemonChanged", "FileDeleted", "FileStarted", "FileWrite", "FileWritten"]
        )
      })
    )
  )
})
