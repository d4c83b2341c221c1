/**
 * A table of calls for which effect's Node implementation and ours must give the same answers on the same tree. `at`
 * makes a path: absolute on disk for Node's implementation, relative to the root for ours.
 */
import { ByteSize, Effect, Exit, type FileSystem, Option, type PlatformError, type Scope, Stream } from "effect"
import * as Cause from "effect/Cause"

type Fs = FileSystem.FileSystem
type At = (path: string) => string

export interface Case {
  readonly name: string
  readonly call: (fs: Fs, at: At) => Effect.Effect<unknown, PlatformError.PlatformError, Scope.Scope>
  /** The answer of this library if it differs from Node's, and the reason. With `tree: "ours"` the resulting tree differs too. */
  readonly differs?: { readonly why: string; readonly answer: unknown; readonly tree?: "same" | "ours" }
}

/** The tree before each case. Links are relative; `modes` has the modes. */
export const tree = {
  "a.txt": "hello a",
  "b.txt": "bbb",
  "d-x.txt": "",
  "x.sh": "#!/bin/sh",
  d: { "one.txt": "1", sub: { "two.txt": "2", deep: {} } },
  e: { "one.txt": "E", sub: { "three.txt": "3" } },
  empty: {},
  tools: { run: "run" },
  la: { link: "a.txt" },
  lb: { link: "b.txt" },
  ld: { link: "d" },
  dang: { link: "nowhere" },
  loop: { link: "loop" },
  d2: { up: { link: "../a.txt" } }
} as const
export const modes = { "x.sh": 0o755, "tools/run": 0o700, tools: 0o750, "b.txt": 0o600 } as const

const text = (value: string) => new TextEncoder().encode(value)
const string = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

const info = (info: FileSystem.File.Info) => ({
  type: info.type,
  mode: info.mode.toString(8),
  size: info.type === "Directory" ? "-" : ByteSize.toNumberUnsafe(info.size)
})
const mtime = (info: FileSystem.File.Info) => Option.getOrThrow(info.mtime).getTime()

export const reason = (error: PlatformError.PlatformError) => `${error._tag} ${error.reason._tag}`

/** Returns the value or the error of one of several calls. */
const tried = <A>(effect: Effect.Effect<A, PlatformError.PlatformError, Scope.Scope>) =>
  Effect.match(effect, { onFailure: reason, onSuccess: (value) => ({ value: value as unknown }) })

const table: Array<Case> = []
const add = (name: string, call: Case["call"], differs?: Case["differs"]) =>
  table.push({ name, call, ...(differs && { differs }) })

// ── reading ──
for (const path of [
  "a.txt",
  "d",
  "empty",
  "la",
  "ld",
  "dang",
  "loop",
  "zz",
  "a.txt/x",
  "zz/x",
  "d/one.txt",
  "ld/one.txt",
  "d2/up",
  "."
]) {
  add(`access ${path}`, (fs, at) => fs.access(at(path)))
  add(`exists ${path}`, (fs, at) => fs.exists(at(path)))
  add(`stat ${path}`, (fs, at) => Effect.map(fs.stat(at(path)), info))
  add(`lstat ${path}`, (fs, at) => Effect.map(fs.lstat(at(path)), info))
  add(`realPath ${path}`, (fs, at) => fs.realPath(at(path)))
  add(`readFileString ${path}`, (fs, at) => fs.readFileString(at(path)))
  add(`readDirectory ${path}`, (fs, at) => fs.readDirectory(at(path)))
}
for (const path of ["a.txt", "la", "ld", "dang", "loop", "zz", "a.txt/x", "d"]) {
  add(`readLink ${path}`, (fs, at) => fs.readLink(at(path)))
}
add("access readable file", (fs, at) => fs.access(at("a.txt"), { readable: true }))
add("access readable directory", (fs, at) => fs.access(at("d"), { readable: true }))
add("access readable missing path", (fs, at) => fs.access(at("zz"), { readable: true }))
add("access writable file", (fs, at) => fs.access(at("a.txt"), { writable: true }))
add("access writable directory", (fs, at) => fs.access(at("d"), { readable: true, writable: true }))
add("access writable through a link", (fs, at) => fs.access(at("la"), { writable: true }))
add("stat of an executable", (fs, at) => Effect.map(fs.stat(at("x.sh")), info))
add("stat of a private directory", (fs, at) => Effect.map(fs.stat(at("tools")), info))
add("readFile returns bytes", (fs, at) => Effect.map(fs.readFile(at("a.txt")), (bytes) => Array.from(bytes)))
add("readFileString with an encoding", (fs, at) => fs.readFileString(at("a.txt"), "utf-16le"))
add("readFileString with an unknown encoding", (fs, at) => fs.readFileString(at("a.txt"), "klingon"))
add("readDirectory of a file, recursively", (fs, at) => fs.readDirectory(at("a.txt"), { recursive: true }))
add("readDirectory of a missing path, recursively", (fs, at) => fs.readDirectory(at("zz"), { recursive: true }))
add("readDirectory recursively, in some order", (fs, at) =>
  Effect.map(fs.readDirectory(at("d"), { recursive: true }), (names) => names.sort())
)
add(
  "readDirectory recursively over a linked directory",
  (fs, at) =>
    Effect.map(fs.readDirectory(at("."), { recursive: true }), (names) => names.filter((name) => name.startsWith("l")).sort()),
  { why: "a walk never descends into a linked directory (C-39)", answer: ["la", "lb", "ld", "loop"] }
)
add("readDirectoryEntries", (fs, at) => fs.readDirectoryEntries(at(".")))
add("readDirectoryEntries of a file", (fs, at) => fs.readDirectoryEntries(at("a.txt")))
add("glob by name", (fs, at) => fs.glob("*", { root: at(".") }))
add("glob at any depth", (fs, at) => fs.glob("**/*.txt", { root: at(".") }))
add("glob with an exclusion", (fs, at) => fs.glob("**/*.txt", { root: at("."), exclude: ["d/**"] }))
add("glob with a missing root", (fs, at) => fs.glob("*", { root: at("zz") }))
add("NUL in a path", (fs, at) => fs.readFile(at("a\0b")))
add("NUL in a path to write", (fs, at) => fs.writeFileString(at("a\0b"), ""))
add("NUL in a path to exists", (fs, at) => fs.exists(at("a\0b")))
add("a name of 300 characters", (fs, at) => fs.stat(at("x".repeat(300))))
add("dot segments", (fs, at) => fs.readFileString(at("./d/../a.txt")))
add("dot dot after a missing path", (fs, at) => fs.readFileString(at("zz/../a.txt")), {
  why: "`..` is resolved lexically (C-02)",
  answer: "hello a"
})
add("a slash after a file", (fs, at) => fs.readFileString(at("a.txt/")), {
  why: "a trailing slash is dropped (C-03)",
  answer: "hello a"
})
add("stream of a range", (fs, at) =>
  Effect.map(Stream.runCollect(fs.stream(at("a.txt"), { offset: 2, bytesToRead: 3 })), (chunks) => chunks.map(string))
)
add("stream in chunks", (fs, at) =>
  Effect.map(Stream.runCollect(fs.stream(at("a.txt"), { chunkSize: 3 })), (chunks) => chunks.map(string))
)
add("stream past the end", (fs, at) => Stream.runCollect(fs.stream(at("a.txt"), { offset: 99 })))
add("stream of more bytes than the file has", (fs, at) =>
  Effect.map(Stream.runCollect(fs.stream(at("a.txt"), { bytesToRead: 99 })), (chunks) => chunks.map(string))
)
add("stream of no bytes", (fs, at) => Stream.runCollect(fs.stream(at("a.txt"), { bytesToRead: 0 })))
add("stream with a negative chunk", (fs, at) => Stream.runCollect(fs.stream(at("a.txt"), { chunkSize: -1 })))
add("stream of a missing path", (fs, at) => Stream.runCollect(fs.stream(at("zz"))))
add("stream of a directory", (fs, at) => Stream.runCollect(fs.stream(at("d"))))

// ── writing ──
const flags = ["r", "r+", "w", "wx", "w+", "wx+", "a", "ax", "a+", "ax+"] as const
for (const flag of flags) {
  for (const path of ["a.txt", "new.txt", "d", "la", "dang", "zz/new.txt", "a.txt/new.txt"]) {
    add(`writeFile ${flag} ${path}`, (fs, at) => fs.writeFileString(at(path), "XY", { flag }))
  }
  for (const path of ["a.txt", "new.txt", "d"]) {
    add(`sink ${flag} ${path}`, (fs, at) => Stream.run(Stream.make(text("XY"), text("Z")), fs.sink(at(path), { flag })))
  }
  for (const path of ["a.txt", "new.txt", "d", "la"]) {
    add(`open ${flag} ${path}, and every call on the handle`, (fs, at) =>
      Effect.gen(function* () {
        const file = yield* fs.open(at(path), { flag })
        const buffer = new Uint8Array(3)
        return [
          yield* tried(Effect.map(file.stat, info)),
          yield* tried(Effect.map(file.readAlloc(2), Option.map(string))),
          yield* tried(file.write(text("XY"))),
          yield* tried(file.writeAll(text("Z"))),
          yield* tried(file.writeAll(new Uint8Array(0))),
          yield* tried(file.write(new Uint8Array(0))),
          yield* tried(Effect.map(file.stat, info)),
          yield* tried(file.seek(1n, "start")),
          yield* tried(Effect.map(file.read(buffer), (length) => [length, string(buffer.subarray(0, length))])),
          yield* tried(file.seek(0n, "current")),
          yield* tried(file.truncate(4)),
          yield* tried(file.seek(0n, "current")),
          yield* tried(file.writeAll(text("!"))),
          yield* tried(file.sync),
          yield* tried(Effect.map(file.readAlloc(99, { position: 0n }), Option.map(string)))
        ]
      })
    )
  }
}
add("writeFile with a mode, new", (fs, at) =>
  Effect.andThen(fs.writeFileString(at("n"), "X", { mode: 0o777 }), Effect.map(fs.stat(at("n")), info))
)
add("writeFile with a private mode, new", (fs, at) =>
  Effect.andThen(fs.writeFileString(at("n"), "X", { mode: 0o600 }), Effect.map(fs.stat(at("n")), info))
)
add("writeFile with a mode, existing", (fs, at) =>
  Effect.andThen(fs.writeFileString(at("b.txt"), "X", { mode: 0o777 }), Effect.map(fs.stat(at("b.txt")), info))
)
add("writeFile with an invalid mode", (fs, at) => fs.writeFileString(at("n"), "X", { mode: -1 }))
add("writeFile with an invalid flag", (fs, at) => fs.writeFileString(at("n"), "X", { flag: "zz" as "w" }))
add("writeFile keeps the mode of the file that it replaces", (fs, at) =>
  Effect.andThen(fs.writeFileString(at("x.sh"), "X"), Effect.map(fs.stat(at("x.sh")), info))
)
add("sink with a mode", (fs, at) =>
  Effect.andThen(Stream.run(Stream.make(text("XY")), fs.sink(at("n"), { mode: 0o640 })), Effect.map(fs.stat(at("n")), info))
)
add("sink of an empty stream", (fs, at) => Stream.run(Stream.empty, fs.sink(at("a.txt"))))
add("truncate to nothing", (fs, at) => fs.truncate(at("a.txt")))
add("truncate shorter", (fs, at) => fs.truncate(at("a.txt"), 3))
add("truncate longer", (fs, at) => fs.truncate(at("a.txt"), 10))
add("truncate through a link", (fs, at) => fs.truncate(at("la"), 2))
add("truncate to a negative length", (fs, at) => fs.truncate(at("a.txt"), -1))
add("truncate to a fraction", (fs, at) => fs.truncate(at("a.txt"), 1.5))
add("truncate to NaN", (fs, at) => fs.truncate(at("zz"), Number.NaN))
add("truncate of a directory", (fs, at) => fs.truncate(at("d")))
add("truncate of a missing path", (fs, at) => fs.truncate(at("zz")))

// ── handles ──
const handle =
  (
    flag: FileSystem.OpenFlag,
    use: (file: FileSystem.File) => Effect.Effect<unknown, PlatformError.PlatformError, Scope.Scope>
  ) =>
  (fs: Fs, at: At) =>
    Effect.flatMap(fs.open(at("a.txt"), { flag }), use)
const steps = (...effects: ReadonlyArray<Effect.Effect<unknown, PlatformError.PlatformError, Scope.Scope>>) =>
  Effect.forEach(effects, tried)
const all = (file: FileSystem.File) => Effect.map(file.readAlloc(99), Option.map(string))

add(
  "seek from the start, the cursor, and before the start",
  handle("r", (file) =>
    steps(
      file.seek(4n, "start"),
      file.seek(-2n, "current"),
      all(file),
      file.seek(-8n, "current"),
      file.seek(0n, "current"),
      file.seek(-1n, "start"),
      file.seek(99n, "start"),
      all(file)
    )
  )
)
add(
  "positional reads leave the cursor",
  handle("r", (file) =>
    steps(
      Effect.map(file.readAlloc(2, { position: 4n }), Option.map(string)),
      file.read(new Uint8Array(2), { position: 99n }),
      file.readAlloc(2, { position: -1n }),
      file.read(new Uint8Array(2), { position: -1n }),
      file.read(new Uint8Array(2), { position: 1n << 62n }),
      all(file)
    )
  )
)
add(
  "invalid and empty sizes",
  handle("r", (file) =>
    steps(file.readAlloc(-1), file.readAlloc(1.5), file.readAlloc(0), file.read(new Uint8Array(0)), all(file))
  )
)
add(
  "a write past the end fills with zeros",
  handle("r+", (file) => steps(file.seek(9n, "start"), file.write(text("!")), file.seek(0n, "start"), all(file), file.sync))
)
add(
  "a write at an invalid position",
  handle("r+", (file) => steps(file.seek(1n << 62n, "start"), file.write(text("!")), file.writeAll(text("!"))))
)
add(
  "truncating moves a cursor that is past the end",
  handle("r+", (file) =>
    steps(
      file.seek(6n, "start"),
      file.truncate(3),
      file.seek(0n, "current"),
      file.truncate(5),
      file.seek(0n, "start"),
      all(file)
    )
  )
)
add(
  "truncating an appending handle leaves the cursor",
  handle("a+", (file) =>
    steps(
      file.seek(6n, "start"),
      file.truncate(3),
      file.seek(0n, "current"),
      file.writeAll(text("!")),
      file.seek(0n, "start"),
      all(file)
    )
  )
)
add(
  "truncating to a fraction, and without a length",
  handle("r+", (file) => steps(file.truncate(1.5), file.truncate(), Effect.map(file.stat, info)))
)
add(
  "many writes at different positions",
  handle("w+", (file) =>
    steps(
      ...Array.from({ length: 20 }, (_, i) =>
        Effect.andThen(file.seek(BigInt((i * 7919) % 150_000), "start"), file.writeAll(text(`<${i}>`.repeat(1000))))
      ),
      file.truncate(140_000),
      file.seek(0n, "start"),
      Effect.map(
        file.readAlloc(200_000),
        Option.map((bytes) => [bytes.length, string(bytes)])
      )
    )
  )
)
add("open without following a link", (fs, at) => fs.open(at("la"), { noFollow: true }))
add("open without following a link, to write", (fs, at) => fs.open(at("la"), { noFollow: true, flag: "w" }))
add("open without following a link, to create", (fs, at) => fs.open(at("la"), { noFollow: true, flag: "wx" }))
add("open without following, a file", (fs, at) =>
  Effect.flatMap(fs.open(at("a.txt"), { noFollow: true, flag: "r+" }), (file) =>
    Effect.andThen(file.writeAll(text("H")), file.sync)
  )
)
add("open with a mode", (fs, at) =>
  Effect.flatMap(fs.open(at("n"), { flag: "w", mode: 0o600 }), (file) => Effect.map(file.stat, info))
)

// ── paths ──
add("makeDirectory", (fs, at) => fs.makeDirectory(at("n")))
add("makeDirectory with a slash after it", (fs, at) => fs.makeDirectory(at("n/")))
for (const recursive of [false, true]) {
  for (const path of ["a.txt", "d", "a.txt/x", "a.txt/x/y", "zz/x", "dang", "ld", "la", "ld/n", "."]) {
    add(`makeDirectory ${path}${recursive ? ", recursively" : ""}`, (fs, at) =>
      Effect.asVoid(fs.makeDirectory(at(path), { recursive }))
    )
  }
}
add("makeDirectory with a mode", (fs, at) => Effect.asVoid(fs.makeDirectory(at("n/m/o"), { recursive: true, mode: 0o777 })))
add("makeDirectory with a private mode", (fs, at) => fs.makeDirectory(at("n"), { mode: 0o700 }))
add("makeDirectory with a mode, existing", (fs, at) => fs.makeDirectory(at("d"), { recursive: true, mode: 0o700 }))
add("makeDirectory with an invalid mode", (fs, at) => fs.makeDirectory(at("n"), { mode: -1 }))
for (const path of ["a.txt", "d", "empty", "la", "ld", "dang", "zz", "a.txt/x"]) {
  add(`remove ${path}`, (fs, at) => fs.remove(at(path)))
  add(`remove ${path}, recursively`, (fs, at) => fs.remove(at(path), { recursive: true }))
  add(`remove ${path}, by force`, (fs, at) => fs.remove(at(path), { force: true }))
  add(`remove ${path}, recursively by force`, (fs, at) => fs.remove(at(path), { recursive: true, force: true }))
}
const pairs: ReadonlyArray<readonly [string, string]> = [
  ["a.txt", "n"],
  ["a.txt", "b.txt"],
  ["a.txt", "a.txt"],
  ["zz", "zz"],
  ["zz", "n"],
  ["zz", "yy/n"],
  ["a.txt", "zz/n"],
  ["a.txt", "b.txt/n"],
  ["a.txt", "a.txt/n"],
  ["a.txt/x", "n"],
  ["a.txt", "d"],
  ["a.txt", "empty"],
  ["a.txt", "lb"],
  ["a.txt", "dang"],
  ["d", "n"],
  ["d", "e"],
  ["d", "empty"],
  ["d", "a.txt"],
  ["d", "d"],
  ["d", "d/n"],
  ["d", "ld"],
  ["empty", "d"],
  ["empty", "ld"],
  ["d/sub", "d"],
  ["d/one.txt", "d"],
  ["la", "n"],
  ["la", "b.txt"],
  ["la", "lb"],
  ["la", "empty"],
  ["ld", "n"],
  ["dang", "n"],
  ["x.sh", "n"],
  ["x.sh", "b.txt"],
  ["tools", "n"],
  ["ld/one.txt", "e/n"]
]
const destructive = { why: "a call that fails changes nothing (C-55); Node removes the target" }
const absoluteLink = {
  why: "Node's cp makes a copied link absolute; ours keeps its text, since nothing absolute is in the root (C-39)"
}
for (const [from, to] of pairs) {
  add(`rename ${from} to ${to}`, (fs, at) => fs.rename(at(from), at(to)))
  add(
    `copyFile ${from} to ${to}`,
    (fs, at) => fs.copyFile(at(from), at(to)),
    from === "d" && to === "a.txt" ? { ...destructive, answer: "PlatformError BadResource", tree: "ours" } : undefined
  )
  for (const overwrite of [false, true]) {
    add(
      `copy ${from} to ${to}${overwrite ? ", overwriting" : ""}`,
      (fs, at) => fs.copy(at(from), at(to), { overwrite }),
      /^(la|ld|dang)$/.test(from) && /^(n|lb)$/.test(to) ? { ...absoluteLink, answer: undefined, tree: "ours" } : undefined
    )
  }
}
add("copy makes the parents", (fs, at) => fs.copy(at("d"), at("n/m/o")))
add("copy merges directories", (fs, at) => fs.copy(at("e"), at("d")))
add("copy merges directories, overwriting", (fs, at) => fs.copy(at("e"), at("d"), { overwrite: true }))
add("copy of times", (fs, at) =>
  Effect.gen(function* () {
    yield* fs.utimes(at("a.txt"), 5, 5)
    yield* fs.copy(at("a.txt"), at("n"), { preserveTimestamps: true })
    return mtime(yield* fs.stat(at("n")))
  })
)
add("symlink", (fs, at) => fs.symlink("a.txt", at("n")))
add("symlink into the parent", (fs, at) => fs.symlink("../a.txt", at("d/n")))
add("symlink to nothing", (fs, at) => fs.symlink("nothing", at("n")))
for (const path of ["a.txt", "d", "la", "dang", "zz/n", "a.txt/n"])
  add(`symlink at ${path}`, (fs, at) => fs.symlink("b.txt", at(path)))
add("symlink out of the root", (fs, at) => fs.symlink("../../etc/passwd", at("n")), {
  why: "no link may leave the root (C-39)",
  answer: "PlatformError PermissionDenied",
  tree: "ours"
})
add("symlink to an absolute target", (fs, at) => fs.symlink("/etc/passwd", at("n")), {
  why: "no link may leave the root (C-39)",
  answer: "PlatformError PermissionDenied",
  tree: "ours"
})
add("link of a missing path", (fs, at) => fs.link(at("zz"), at("n")))
add("link", (fs, at) => fs.link(at("a.txt"), at("n")), {
  why: "the port has no hard links",
  answer: "PlatformError BadArgument",
  tree: "ours"
})

// ── attributes ──
for (const path of ["a.txt", "d", "la", "zz", "a.txt/x", "dang"]) {
  add(`chmod ${path}`, (fs, at) => fs.chmod(at(path), 0o640))
  add(`utimes ${path}`, (fs, at) =>
    Effect.andThen(fs.utimes(at(path), 1_700_000_000, 1_600_000_000), Effect.map(fs.stat(at(path)), mtime))
  )
}
add("chmod with the bits of the type", (fs, at) => fs.chmod(at("a.txt"), 0o100600))
add("chmod with an invalid mode", (fs, at) => fs.chmod(at("a.txt"), -1))
add("chmod with a fraction", (fs, at) => fs.chmod(at("a.txt"), 1.5))
add("chmod set-user-ID", (fs, at) => fs.chmod(at("a.txt"), 0o4755), {
  why: "set-user-ID bits are not supported (security.md)",
  answer: "PlatformError BadArgument",
  tree: "ours"
})
add("chown of a missing path", (fs, at) => fs.chown(at("zz"), 0, 0))
add("chown", (fs, at) => fs.chown(at("a.txt"), 0, 0), { why: "the port knows no owners", answer: "PlatformError BadArgument" })
add("utimes with dates", (fs, at) =>
  Effect.andThen(fs.utimes(at("a.txt"), new Date(1), new Date(-5000)), Effect.map(fs.stat(at("a.txt")), mtime))
)
add("utimes in fractions of a second", (fs, at) =>
  Effect.andThen(fs.utimes(at("a.txt"), 1.5, 1.25), Effect.map(fs.stat(at("a.txt")), mtime))
)
add("utimes with an invalid number", (fs, at) => fs.utimes(at("a.txt"), Number.NaN, Number.NaN))
add("utimes with an invalid date", (fs, at) => fs.utimes(at("a.txt"), new Date(Number.NaN), new Date(Number.NaN)), {
  why: "Node accepts an invalid date and sets some time",
  answer: "PlatformError BadArgument"
})

// ── temporary ──
const shape = (path: string) =>
  path
    .slice(path.indexOf("empty"))
    .replace(/[0-9A-Za-z]{6}(?=\/|$)/, "<6>")
    .replace(/\/[0-9a-z]{10,12}(?=\.|$)/, "/<name>")
add("makeTempDirectory in a directory", (fs, at) =>
  Effect.gen(function* () {
    const path = yield* fs.makeTempDirectory({ directory: at("empty"), prefix: "p-" })
    const found = info(yield* fs.stat(path))
    yield* fs.remove(path, { recursive: true })
    return [shape(path), found]
  })
)
add("makeTempDirectory without a prefix, after a slash", (fs, at) =>
  Effect.gen(function* () {
    const path = yield* fs.makeTempDirectory({ directory: `${at("empty")}/` })
    yield* fs.remove(path, { recursive: true })
    return shape(path)
  })
)
add("makeTempDirectory in a missing directory", (fs, at) => fs.makeTempDirectory({ directory: at("zz") }))
add("makeTempDirectory in a file", (fs, at) => fs.makeTempDirectory({ directory: at("a.txt") }))
add("makeTempDirectoryScoped is removed with its scope", (fs, at) =>
  Effect.gen(function* () {
    const path = yield* Effect.scoped(
      Effect.tap(fs.makeTempDirectoryScoped({ directory: at("empty") }), (path) => fs.writeFileString(`${path}/f`, "x"))
    )
    return [shape(path), yield* fs.exists(path)]
  })
)
add("makeTempFile", (fs, at) =>
  Effect.gen(function* () {
    const path = yield* fs.makeTempFile({ directory: at("empty"), prefix: "p-", suffix: ".txt" })
    const found = info(yield* fs.stat(path))
    yield* fs.remove(path.slice(0, path.lastIndexOf("/")), { recursive: true })
    return [shape(path), found]
  })
)
add("makeTempFileScoped removes its directory too", (fs, at) =>
  Effect.gen(function* () {
    const path = yield* Effect.scoped(fs.makeTempFileScoped({ directory: at("empty") }))
    return [shape(path), yield* fs.readDirectory(at("empty"))]
  })
)
add("makeTempFile in a missing directory", (fs, at) => fs.makeTempFile({ directory: at("zz") }))

export const cases: ReadonlyArray<Case> = table

const plain = (value: unknown, root: string): unknown =>
  typeof value === "string"
    ? root === "/"
      ? value === "/"
        ? "."
        : value.replace(/^\//, "")
      : value === root
        ? "."
        : value.replaceAll(`${root}/`, "")
    : typeof value === "bigint"
      ? `${value}n`
      : Option.isOption(value)
        ? Option.isSome(value)
          ? { some: plain(value.value, root) }
          : "none"
        : Array.isArray(value)
          ? value.map((item) => plain(item, root))
          : typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype
            ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item, root)]))
            : value

/** Returns the answer or the error of a call, with paths relative to the root. Closes handles. */
export const outcome = (self: Case, fs: Fs, root: string): Effect.Effect<unknown> =>
  Effect.map(
    Effect.exit(Effect.scoped(self.call(fs, (path) => (root === "/" ? path : path === "." ? root : `${root}/${path}`)))),
    (exit) =>
      Exit.isSuccess(exit)
        ? isHandle(exit.value)
          ? "a handle"
          : plain(exit.value, root)
        : Option.match(Cause.findErrorOption(exit.cause), {
            onNone: () => `defect ${Cause.pretty(exit.cause)}`,
            onSome: reason
          })
  )

const isHandle = (value: unknown): boolean => typeof value === "object" && value !== null && "readAlloc" in value
