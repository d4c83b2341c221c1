/** Facts about WindowsHost that hold on Windows alone, checked from the public calls to the files on the disk. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { Scope } from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Assert from "node:assert/strict"
import * as Fs from "node:fs"
import * as WindowsHost from "../../src/backends/WindowsHost.ts"
import { HostOpener } from "../../src/cli/workspace.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import type { FsError, Unsupported } from "../../src/model/FsError.ts"

export interface Fact {
  readonly name: string
  /** Fails when the fact does not hold in this empty directory. */
  readonly check: (directory: string) => Effect.Effect<unknown, unknown, Scope>
}

const fact = (
  name: string,
  check: (fs: Algebra, directory: string) => Effect.fn.Return<void, unknown, Scope>,
  options: Omit<WindowsHost.WindowsHostOptions, "root"> = {}
): Fact => ({
  name,
  check: (directory) =>
    Effect.flatMap(WindowsHost.make({ root: directory, ...options }), (port) => Effect.gen(() => check(make(port), directory)))
})

const names = (fs: Algebra, path?: string) => Effect.map(fs.list(path), (all) => all.map(({ name }) => name))

const failure = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<string, never, R> =>
  Effect.match(effect, { onSuccess: () => "success", onFailure: ({ _tag }) => _tag })

const why = <A, E extends object, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<unknown, never, R> =>
  Effect.match(effect, { onSuccess: () => "success", onFailure: (error) => ("why" in error ? error.why : error) })

const isWindows = (directory: string): string => {
  Assert.equal(process.platform, "win32")
  return directory
}

const long = ["d", "e", "f", "g"].map((letter) => letter.repeat(99)).join("/")

const reserved: ReadonlyArray<string> = [
  "NUL",
  "nul.txt",
  "d/CON",
  "com1",
  "COM¹.log",
  "LPT9.tar.gz",
  "CONIN$",
  "a:b",
  "f::$DATA",
  "a<b",
  "a|b",
  'a"b',
  "a\\b",
  "dot.",
  "space "
]

const badRoots: ReadonlyArray<readonly [what: string, root: (directory: string) => string, tag: string]> = [
  ["relative", () => "fs-algebra", "InvalidPath"],
  ["relative to a drive", () => "C:fs-algebra", "InvalidPath"],
  ["without a drive", () => "\\fs-algebra", "InvalidPath"],
  ["a device", () => "\\\\.\\C:\\", "InvalidPath"],
  ["a reserved name", (directory) => `${directory}\\aux`, "InvalidPath"],
  ["with a NUL", (directory) => `${directory}\\a\0b`, "InvalidPath"],
  ["missing", (directory) => `${directory}\\missing`, "NotFound"],
  ["a file", (directory) => `${directory}\\file`, "NotADirectory"]
]

export const facts: ReadonlyArray<Fact> = [
  fact("a path of 400 units can be written, read, listed, moved and deleted", function* (fs, directory) {
    const path = `${long}/file.txt`
    Assert.ok(isWindows(directory).length + path.length > 400)
    yield* fs.write(path, "far below")
    Assert.equal(yield* fs.readString(path), "far below")
    Assert.deepEqual(yield* names(fs, long), ["file.txt"])
    Assert.equal(Fs.readFileSync(`\\\\?\\${directory}\\${path.replaceAll("/", "\\")}`, "utf8"), "far below")
    yield* fs.move(path, `${long}/other.txt`)
    Assert.deepEqual(yield* fs.delete("d".repeat(99), { recursive: true }), { deleted: 1, directories: 4 })
    Assert.deepEqual(Fs.readdirSync(directory), [])
  }),
  fact(
    "a path of 400 units without long paths is PathTooLong, and nothing is created",
    function* (fs, directory) {
      Assert.equal(yield* failure(fs.write(`${long}/file.txt`, "x")), "PathTooLong")
      Assert.equal(yield* failure(fs.readString(`${long}/file.txt`)), "PathTooLong")
      Assert.deepEqual(Fs.readdirSync(isWindows(directory)), [])
    },
    { useLongPaths: false }
  ),
  fact("a name in another case is the same file, which keeps its case", function* (fs, directory) {
    yield* fs.write("Straße/Read Me.TXT", "x")
    Assert.equal(yield* fs.readString("STRAßE/read me.txt"), "x")
    Assert.equal(yield* failure(fs.write("straße/READ ME.txt", "y", { mode: "create" })), "AlreadyExists")
    yield* fs.write("straße/READ ME.txt", "y")
    Assert.deepEqual(Fs.readdirSync(`${isWindows(directory)}\\Straße`), ["Read Me.TXT"])
    Assert.equal(Fs.readFileSync(`${directory}\\Straße\\Read Me.TXT`, "utf8"), "y")
  }),
  fact("a rename can change only the case of a name", function* (fs, directory) {
    yield* fs.write("a", "x")
    yield* fs.move("a", "A")
    Assert.deepEqual(Fs.readdirSync(isWindows(directory)), ["A"])
    Assert.deepEqual(yield* names(fs), ["A"])
    Assert.equal(yield* fs.readString("A"), "x")
  }),
  fact("line endings are kept in both directions", function* (fs, directory) {
    yield* fs.write("ours", "a\r\nb\nc\r\n")
    Assert.equal(Fs.readFileSync(`${isWindows(directory)}\\ours`, "latin1"), "a\r\nb\nc\r\n")
    Fs.writeFileSync(`${directory}\\theirs`, "x\r\ny\n")
    Assert.equal(yield* fs.readString("theirs"), "x\r\ny\n")
    yield* fs.edit("theirs", { oldText: "x\ny", newText: "z\nz" })
    Assert.equal(Fs.readFileSync(`${directory}\\theirs`, "latin1"), "z\r\nz\n")
  }),
  fact("names with another meaning on Windows are InvalidPath, and nothing is created", function* (fs, directory) {
    Fs.mkdirSync(`${isWindows(directory)}\\d`)
    Fs.writeFileSync(`${directory}\\f`, "x")
    for (const name of reserved) {
      Assert.equal(yield* failure(fs.write(name, "x")), "InvalidPath", name)
      Assert.equal(yield* failure(fs.readString(name)), "InvalidPath", name)
      Assert.equal(yield* failure(fs.mkdir(name)), "InvalidPath", name)
      Assert.equal(yield* failure(fs.move("f", name)), "InvalidPath", name)
      Assert.equal(yield* failure(fs.delete(name)), "InvalidPath", name)
      Assert.equal(yield* fs.exists(name), false, name)
    }
    Assert.deepEqual(Fs.readdirSync(directory).sort(), ["d", "f"])
    Assert.deepEqual(Fs.readdirSync(`${directory}\\d`), [])
    Assert.equal(Fs.readFileSync(`${directory}\\f`, "utf8"), "x")
  }),
  fact("a file can be replaced during a read, and the reader sees the old content", function* (fs, directory) {
    const old = "old ".repeat(100_000)
    yield* fs.write("f", old)
    const parts: Array<Uint8Array> = []
    yield* Stream.runForEach(fs.stream("f"), (bytes) => {
      parts.push(bytes)
      return parts.length === 1 ? fs.write("f", "new") : Effect.void
    })
    Assert.equal(Buffer.concat(parts).toString(), old)
    Assert.equal(yield* fs.readString("f"), "new")
    Assert.deepEqual(Fs.readdirSync(isWindows(directory)), ["f"])
  }),
  fact("a file can be deleted during a read, and its name can be used again", function* (fs, directory) {
    const old = "old ".repeat(100_000)
    yield* fs.write("f", old)
    const parts: Array<Uint8Array> = []
    yield* Stream.runForEach(fs.stream("f"), (bytes) => {
      parts.push(bytes)
      if (parts.length > 1) return Effect.void
      return Effect.andThen(fs.delete("f"), fs.write("f", "new", { mode: "create" }))
    })
    Assert.equal(Buffer.concat(parts).toString(), old)
    Assert.equal(yield* fs.readString("f"), "new")
    Assert.deepEqual(Fs.readdirSync(isWindows(directory)), ["f"])
  }),
  fact("a read-only file cannot be replaced, and stays read-only", function* (fs, directory) {
    Fs.writeFileSync(`${isWindows(directory)}\\f`, "kept")
    Fs.chmodSync(`${directory}\\f`, 0o444)
    Assert.equal(yield* why(fs.write("f", "new")), "permission")
    Assert.equal(Fs.readFileSync(`${directory}\\f`, "utf8"), "kept")
    Assert.equal(Fs.statSync(`${directory}\\f`).mode & 0o200, 0)
    Assert.deepEqual(Fs.readdirSync(directory), ["f"])
  }),
  fact("no error contains the path of the root", function* (fs, directory) {
    const calls: ReadonlyArray<Effect.Effect<unknown, FsError | Unsupported>> = [
      fs.readString("missing"),
      fs.list("missing/below"),
      fs.readBytes("."),
      fs.write("d", "x"),
      fs.setAttributes("missing", { modifiedAt: DateTime.makeUnsafe(0) })
    ]
    yield* fs.mkdir("d")
    for (const call of calls) {
      const said = yield* Effect.match(call, {
        onSuccess: () => "success",
        onFailure: (error) => `${error._tag} ${error.message} ${JSON.stringify(error)}`
      })
      Assert.notEqual(said, "success")
      Assert.ok(!said.includes(isWindows(directory).slice(3)), said)
    }
  }),
  ...badRoots.map(([what, root, tag]): Fact => ({
    name: `a root that is ${what} is ${tag}`,
    check: (directory) =>
      Effect.map(
        Effect.andThen(
          Effect.sync(() => Fs.writeFileSync(`${isWindows(directory)}\\file`, "")),
          failure(Effect.scoped(WindowsHost.make({ root: root(directory) })))
        ),
        (found) => {
          Assert.equal(found, tag)
          Assert.deepEqual(Fs.readdirSync(directory), ["file"])
        }
      )
  })),
  {
    name: "a root can be the root of a drive, in every spelling",
    check: (directory) =>
      Effect.forEach(["C:\\", "c:/", "\\\\?\\C:\\"], (root) =>
        Effect.flatMap(WindowsHost.make({ root }), (port) => {
          const path = `${isWindows(directory).slice("C:\\".length).replaceAll("\\", "/")}/f`
          return Effect.map(make(port).write(path, root), () => Assert.equal(Fs.readFileSync(`${directory}\\f`, "utf8"), root))
        })
      )
  },
  {
    name: "a root can have a path of 400 units",
    check: (directory) =>
      Effect.flatMap(
        WindowsHost.make({ root: `${isWindows(directory)}\\${long.replaceAll("/", "\\")}`, createRoot: true }),
        (port) =>
          Effect.andThen(
            make(port).write("f", "x"),
            Effect.map(make(port).readString("F"), (text) => Assert.equal(text, "x"))
          )
      )
  },
  {
    name: "the command line works on a directory of Windows",
    check: (directory) =>
      Effect.flatMap(HostOpener, (open) =>
        Effect.provide(
          Effect.flatMap(Filesystem, (fs) => fs.write("f", "x")),
          open(directory)
        )
      ).pipe(Effect.map(() => Assert.equal(Fs.readFileSync(`${isWindows(directory)}\\f`, "utf8"), "x")))
  },
  {
    name: "a root can be created, and written with forward slashes",
    check: (directory) =>
      Effect.flatMap(
        WindowsHost.make({ root: `${isWindows(directory).replaceAll("\\", "/")}/new/root`, createRoot: true }),
        (port) =>
          Effect.map(make(port).write("f", "x"), () => Assert.equal(Fs.readFileSync(`${directory}\\new\\root\\f`, "utf8"), "x"))
      )
  }
]
