import { assert, describe, it } from "@effect/vitest"
import { Context, DateTime, Effect, FileSystem, Layer, PlatformError, Stream } from "effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import * as Platform from "../../src/filesystem/Platform.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import { nodes, onDisk, overMemory, temporary } from "./platformDisk.ts"

const p = (path: string) => path as FsPath

const over = (fs: FileSystem.FileSystem, options: Platform.FileSystemOptions) =>
  Effect.map(
    Layer.build(Layer.provide(Platform.fromFileSystem(options), Layer.succeed(FileSystem.FileSystem, fs))),
    (context) => Context.get(context, Filesystem)
  )

const onNode = (change: (fs: FileSystem.FileSystem, root: string) => Partial<FileSystem.FileSystem> = () => ({})) =>
  Effect.gen(function* () {
    const root = yield* temporary
    const node = yield* nodes
    return { root, fs: yield* over({ ...node, ...change(node, root) }, { root }) }
  })

const failWith = (tag: PlatformError.SystemErrorTag, code?: string) =>
  Effect.fail(
    PlatformError.systemError({
      _tag: tag,
      module: "FileSystem",
      method: "somewhere",
      pathOrDescriptor: "/secret/path",
      description: "of /secret/path",
      ...(code !== undefined && { cause: Object.assign(new Error("at /secret/path"), { code }) })
    })
  )

describe("the root of Platform.fromFileSystem", () => {
  it.effect("fails if it is missing, is a file or is below a file, and the error names it as given", () =>
    Effect.gen(function* () {
      const root = yield* temporary
      const node = yield* nodes
      Fs.writeFileSync(join(root, "file"), "")
      const failure = (name: string) => Effect.flip(over(node, { root: join(root, name) }))
      assert.deepInclude(yield* failure("none"), { _tag: "NotFound", path: join(root, "none") })
      assert.deepInclude(yield* failure("file"), { _tag: "NotADirectory", path: join(root, "file") })
      assert.deepInclude(yield* failure("file/x"), { _tag: "NotADirectory", path: join(root, "file/x") })
    })
  )

  it.effect("is the target of a link, even after the link changes", () =>
    Effect.gen(function* () {
      const top = yield* temporary
      const node = yield* nodes
      for (const name of ["real", "other"]) Fs.mkdirSync(join(top, name))
      Fs.symlinkSync("real", join(top, "link"))
      const fs = yield* over(node, { root: join(top, "link") })
      Fs.unlinkSync(join(top, "link"))
      Fs.symlinkSync("other", join(top, "link"))
      yield* fs.write("a", "x")
      assert.deepStrictEqual(Fs.readdirSync(join(top, "real")), ["a"])
      assert.deepStrictEqual(Fs.readdirSync(join(top, "other")), [])
    })
  )

  it.effect("can be the root directory of the machine", () =>
    Effect.gen(function* () {
      const fs = yield* over(yield* overMemory({ d: { f: "x" } }), { root: "/" })
      assert.strictEqual(yield* fs.readString("/d/f"), "x")
      yield* fs.write("new", "y")
      assert.deepStrictEqual(
        (yield* fs.list()).map(({ name }) => name),
        ["d", "new"]
      )
    })
  )

  it.effect("can be a directory of another Filesystem, and no link leads out of it", () =>
    Effect.gen(function* () {
      const base = yield* overMemory({ secret: "s", d: { inside: "i", up: { link: "../secret" } } })
      const fs = yield* over(base, { root: "d" })
      assert.deepStrictEqual(
        (yield* fs.list()).map(({ name }) => name),
        ["inside", "up"]
      )
      const error = yield* Effect.flip(fs.readString("up"))
      assert.deepInclude(error, { _tag: "AccessDenied", why: "escape", path: "up" })
      assert.strictEqual((yield* Effect.flip(fs.readString("../secret")))._tag, "InvalidPath")
    })
  )
})

describe("the translation of a PlatformError", () => {
  // Error codes of Node and the faults that they stand for.
  const byCode: ReadonlyArray<readonly [code: string, expected: object]> = [
    ["ENOENT", { _tag: "NotFound" }],
    ["EEXIST", { _tag: "AlreadyExists" }],
    ["EACCES", { _tag: "AccessDenied", why: "permission" }],
    ["EPERM", { _tag: "AccessDenied", why: "permission" }],
    ["ETXTBSY", { _tag: "AccessDenied", why: "permission" }],
    ["EROFS", { _tag: "AccessDenied", why: "readOnly" }],
    ["EBUSY", { _tag: "AccessDenied", why: "busy" }],
    ["ENOTDIR", { _tag: "NotADirectory" }],
    ["EISDIR", { _tag: "NotAFile" }],
    ["ENOSPC", { _tag: "DiskFull" }],
    ["EDQUOT", { _tag: "DiskFull" }],
    ["Unknown system error -122", { _tag: "DiskFull" }],
    ["EFBIG", { _tag: "DiskFull" }],
    ["ENAMETOOLONG", { _tag: "PathTooLong" }],
    ["EINVAL", { _tag: "InvalidPath" }],
    ["EILSEQ", { _tag: "InvalidPath" }],
    ["ELOOP", { _tag: "InvalidPath" }],
    ["ETIMEDOUT", { _tag: "Timeout" }],
    ["EMFILE", { _tag: "IoError", code: "EMFILE" }],
    ["EIO", { _tag: "IoError", code: "EIO" }],
    ["EXDEV", { _tag: "IoError", code: "EXDEV" }]
  ]
  const byTag: ReadonlyArray<readonly [tag: PlatformError.SystemErrorTag, expected: object]> = [
    ["NotFound", { _tag: "NotFound" }],
    ["AlreadyExists", { _tag: "AlreadyExists" }],
    ["PermissionDenied", { _tag: "AccessDenied", why: "permission" }],
    ["Busy", { _tag: "AccessDenied", why: "busy" }],
    ["TimedOut", { _tag: "Timeout" }],
    ["BadResource", { _tag: "NotAFile" }],
    ["Unknown", { _tag: "IoError", code: "Unknown" }]
  ]
  const writing = (failure: ReturnType<typeof failWith>) =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode(() => ({ writeFile: () => failure }))
      const error = yield* Effect.flip(fs.write("a", "x"))
      assert.notInclude(`${error.message} ${JSON.stringify(error)} ${error.stack}`, "secret")
      assert.deepStrictEqual(onDisk(root), [])
      return error
    })

  for (const [code, expected] of byCode) {
    // A tag with another meaning shows that the code takes precedence.
    it.effect(`uses the code of its cause: ${code}`, () =>
      Effect.map(writing(failWith("WouldBlock", code)), (error) => assert.deepInclude(error, expected))
    )
  }
  for (const [tag, expected] of byTag) {
    it.effect(`uses its tag if there is no code: ${tag}`, () =>
      Effect.map(writing(failWith(tag)), (error) => assert.deepInclude(error, expected))
    )
  }

  it.effect("returns the original error of a Filesystem that is wrapped in a FileSystem", () =>
    Effect.gen(function* () {
      const fs = yield* over(yield* overMemory({ d: {} }), { root: "/" })
      const error = yield* Effect.flip(fs.port.links!.make(p("d/l"), "../../out"))
      assert.deepInclude(error, { _tag: "AccessDenied", why: "escape" })
    })
  )
})

describe("Platform.fromFileSystem", () => {
  it.effect("creates files without overwriting any, even if the FileSystem supports no hard links", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode(() => ({ link: () => failWith("Unknown", "ENOTSUP") }))
      yield* fs.write("a", "first", { mode: "create" })
      assert.strictEqual((yield* Effect.flip(fs.write("a", "second", { mode: "create" })))._tag, "AlreadyExists")
      assert.deepStrictEqual(onDisk(root), ["a file 644 first"])
    })
  )

  it.effect("leaves no file when a create without hard links fails at its last step", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode(() => ({
        link: () => failWith("Unknown", "ENOTSUP"),
        rename: () => failWith("Unknown", "EIO")
      }))
      assert.strictEqual((yield* Effect.flip(fs.write("a", "x", { mode: "create" })))._tag, "IoError")
      assert.deepStrictEqual(onDisk(root), [])
    })
  )

  it.effect("truncates the file again when an append fails on a full disk", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode((node, root) => ({
        writeFile: (path, bytes, options) =>
          path === join(root, "a") && options?.flag === "a"
            ? Effect.andThen(node.writeFile(path, bytes.subarray(0, 2), options), failWith("Unknown", "ENOSPC"))
            : node.writeFile(path, bytes, options)
      }))
      Fs.writeFileSync(join(root, "a"), "old")
      for (const call of [
        fs.write("a", "more", { mode: "append" }),
        Stream.run(Stream.make(new Uint8Array(4)), fs.sink("a", { mode: "append" }))
      ]) {
        assert.strictEqual((yield* Effect.flip<unknown, { readonly _tag: string }, never>(call))._tag, "DiskFull")
        assert.deepStrictEqual(onDisk(root), ["a file 644 old"])
      }
    })
  )

  it.effect("keeps an entry that is created in a directory while the directory is deleted", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode((node, root) => ({
        rename: (from, to) =>
          Effect.andThen(
            Effect.sync(() => from === join(root, "d") && Fs.writeFileSync(join(from, "late"), "kept")),
            node.rename(from, to)
          )
      }))
      Fs.mkdirSync(join(root, "d"))
      assert.strictEqual((yield* Effect.flip(fs.delete("d")))._tag, "DirectoryNotEmpty")
      assert.deepStrictEqual(onDisk(root), ["d directory 755 ", "d/late file 644 kept"])
    })
  )

  it.effect("does not replace a link that is created during a write", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode((node, root) => ({
        writeFile: (path, bytes, options) =>
          Effect.tap(node.writeFile(path, bytes, options), () =>
            Effect.sync(() => {
              Fs.rmSync(join(root, "a"))
              Fs.symlinkSync("elsewhere", join(root, "a"))
            })
          )
      }))
      Fs.writeFileSync(join(root, "a"), "old")
      assert.strictEqual(
        (yield* Effect.flip(fs.port.write<never, never>(p("a"), new Uint8Array(1), "replace")))._tag,
        "NotAFile"
      )
      assert.deepStrictEqual(onDisk(root), ["a symlink 777 elsewhere"])
    })
  )

  it.effect("reads an open file up to the size that it had when it was opened", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode()
      Fs.writeFileSync(join(root, "a"), "old")
      const handle = yield* fs.port.open(p("a"))
      Fs.appendFileSync(join(root, "a"), " and new")
      assert.strictEqual(new TextDecoder().decode(yield* handle.read(0, 100)), "old")
      assert.strictEqual((yield* handle.read(3, 100)).length, 0)
    })
  )

  it.effect("hides its staged files over a Filesystem too, and their names cannot be used", () =>
    Effect.gen(function* () {
      const base = yield* overMemory()
      const fs = yield* over(base, { root: "/" })
      yield* TemporaryNames.withName((temporary) =>
        Effect.gen(function* () {
          yield* fs.port.write<never, never>(p(temporary), new Uint8Array(1), "create")
          const [name] = yield* base.readDirectory("/")
          assert.match(name!, /^\.~fsa-.*\.tmp.+$/)
          assert.deepStrictEqual(yield* fs.list(), [])
          for (const call of [fs.stat(name!), fs.readBytes(name!), fs.write(name!, "x"), fs.stat(temporary)]) {
            assert.strictEqual((yield* Effect.flip<unknown, { readonly _tag: string }, never>(call))._tag, "InvalidPath")
          }
        })
      )
    })
  )

  it.effect("opens files on a FileSystem that does not support noFollow", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode((node) => ({
        open: (path, options) =>
          options?.noFollow === true
            ? Effect.fail(PlatformError.badArgument({ module: "FileSystem", method: "open", description: "noFollow" }))
            : node.open(path, options)
      }))
      Fs.writeFileSync(join(root, "a"), "text")
      assert.strictEqual(yield* fs.readString("a"), "text")
    })
  )

  it.effect("lists names that are not valid paths, and removes them with their directory", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode()
      Fs.mkdirSync(join(root, "d"))
      Fs.writeFileSync(join(root, "d", "a\u0001\\b"), "x")
      const [entry] = yield* fs.list("d")
      assert.deepInclude(entry, { name: "a\\x01\\\\b", addressable: false, kind: "file" })
      assert.deepStrictEqual(yield* fs.delete("d", { recursive: true }), { deleted: 1, directories: 1 })
    })
  )

  it.effect("lists a name that is not UTF-8 as not addressable", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode()
      Fs.writeFileSync(Buffer.concat([Buffer.from(join(root, "bad-")), Buffer.from([0xff])]), "x")
      Fs.writeFileSync(join(root, "\ufffd"), "x")
      assert.deepStrictEqual(
        (yield* fs.list()).map(({ addressable, name }) => [name, addressable]),
        [
          ["bad-\ufffd", false],
          ["\ufffd", true]
        ]
      )
    })
  )

  it.effect("looks up the type of an entry if the listing does not tell it", () =>
    Effect.gen(function* () {
      const { fs, root } = yield* onNode((node) => ({
        readDirectoryEntries: (path) =>
          Effect.map(node.readDirectoryEntries(path), (entries) => entries.map(({ name }) => ({ name, type: "Unknown" })))
      }))
      Fs.mkdirSync(join(root, "d"))
      Fs.writeFileSync(join(root, "f"), "x")
      Fs.symlinkSync("f", join(root, "l"))
      assert.deepStrictEqual(
        (yield* fs.list()).map(({ kind, name }) => `${name} ${kind}`),
        ["d directory", "f file", "l symlink"]
      )
    })
  )

  it.effect("stores times to the millisecond, also before 1970", () =>
    Effect.gen(function* () {
      const { fs } = yield* onNode()
      yield* fs.write("a", "x")
      for (const millis of [0, 1, 999, 1_700_000_000_001, 1_700_000_000_333, 1_712_345_678_999, -5000]) {
        const modifiedAt = DateTime.makeUnsafe(millis)
        yield* fs.setAttributes("a", { modifiedAt })
        assert.strictEqual((yield* fs.stat("a")).modifiedAt?.epochMilliseconds, millis)
      }
    })
  )

  it.effect("keeps the permission bits of a replaced file, and never widens them", () =>
    Effect.gen(function* () {
      const modes: Array<number> = []
      const { fs, root } = yield* onNode((node, root) => ({
        chmod: (path, mode) =>
          Effect.andThen(
            Effect.sync(() => modes.push(Fs.statSync(path).mode & 0o777)),
            node.chmod(path, mode)
          ),
        rename: (from, to) =>
          Effect.andThen(
            Effect.sync(() => from.startsWith(root) && modes.push(Fs.statSync(from).mode & 0o777)),
            node.rename(from, to)
          )
      }))
      Fs.writeFileSync(join(root, "a"), "old")
      Fs.chmodSync(join(root, "a"), 0o622)
      yield* fs.write("a", "new")
      yield* Stream.run(Stream.make(new Uint8Array(1)), fs.sink("a"))
      assert.deepStrictEqual(onDisk(root), ["a file 622 \0"])
      for (const mode of modes) assert.strictEqual(mode & ~0o622, 0)
    })
  )
})
