/** Tests NodeFs beyond single synchronous calls: promises, callbacks, handles, streams, watch, and bad input. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import { buffer, text } from "node:stream/consumers"
import { promisify } from "node:util"
import * as NodeFs from "../../src/adapters/NodeFs.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, decorate, type Filesystem, make as makeAlgebra } from "../../src/filesystem/Filesystem.ts"
import * as Decorator from "../../src/filesystem/Decorator.ts"

const tree: InMemory.Tree = { "a.txt": "alpha", d: { "b.txt": "beta", e: {} }, l: { link: "a.txt" } }

const over = <A>(layer: Layer.Layer<Filesystem, unknown>, make: Effect.Effect<A, never, Filesystem>): Promise<A> =>
  Effect.runPromise(Effect.provide(make, layer) as Effect.Effect<A>)
const makeFs = (options?: NodeFs.NodeFsOptions) => over(InMemory.layer({ tree }), NodeFs.make(options))

const later = Effect.promise(() => Promise.resolve())

/** An InMemory that answers later, as a host does. */
const asynchronous = InMemory.layer({ tree }).pipe(
  decorate((fs: Algebra) => {
    const { port } = fs
    return makeAlgebra({
      ...port,
      perform: undefined,
      explore: undefined,
      list: (path) => Effect.andThen(later, port.list(path)),
      stat: (path) => Effect.andThen(later, port.stat(path)),
      write: (path, bytes, mode, how) => Effect.andThen(later, port.write(path, bytes, mode, how))
    })
  })
)

const failure = async (run: () => unknown): Promise<NodeJS.ErrnoException> => {
  try {
    await run()
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
  return assert.fail("the call did not fail")
}

describe("a call of NodeFs", () => {
  it("has the same result as a promise, with a callback and synchronously", async () => {
    const fs = await makeFs()
    const asCallback = await promisify(fs.readFile)("/a.txt", "utf8")
    assert.deepStrictEqual(
      [asCallback, await fs.promises.readFile("/a.txt", "utf8"), fs.readFileSync("/a.txt", "utf8")],
      ["alpha", "alpha", "alpha"]
    )
    const errors = [
      await failure(() => promisify(fs.stat)("/zz")),
      await failure(() => fs.promises.stat("/zz")),
      await failure(() => fs.statSync("/zz"))
    ]
    for (const { code, errno, message, path, syscall } of errors) {
      assert.deepStrictEqual([code, errno, syscall, path], ["ENOENT", -2, "stat", "/zz"])
      assert.strictEqual(message, "ENOENT: no such file or directory, stat '/zz'")
    }
  })

  it("accepts Buffers, URLs, options and encodings as Node does", async () => {
    const fs = await makeFs()
    assert.strictEqual(fs.readFileSync(Buffer.from("/a.txt"), { encoding: "hex" }), "616c706861")
    assert.strictEqual(await fs.promises.readFile(new URL("file:///d/b.txt"), "utf8"), "beta")
    assert.deepStrictEqual(fs.readdirSync("/d", "buffer"), [Buffer.from("b.txt"), Buffer.from("e")])
    fs.writeFileSync("/n", new Uint16Array([0x4142]), { mode: "600" })
    assert.strictEqual(fs.statSync("/n").mode & 0o777, 0o600)
    assert.strictEqual(fs.mkdtempSync("/d/tmp-").length, "/d/tmp-".length + 6)
    assert.strictEqual(fs.realpathSync("/d/../l"), "/a.txt")
  })

  it("refuses invalid arguments with Node's errors, and changes nothing", async () => {
    const fs = await makeFs()
    const calls: ReadonlyArray<(target: typeof Fs) => unknown> = [
      (fs) => fs.statSync(undefined as never),
      (fs) => fs.statSync("a\0b"),
      (fs) => fs.writeFileSync("/n", 1 as never),
      (fs) => fs.writeFileSync("/n", "x", { flag: "zz" }),
      (fs) => fs.readFileSync("/n", "bogus" as never),
      (fs) => fs.readFileSync("/n", 3 as never),
      (fs) => fs.closeSync("x" as never),
      (fs) => fs.closeSync(-1),
      (fs) => fs.chmodSync("/n", "zz"),
      (fs) => fs.utimesSync("/n", "x", 1),
      (fs) => fs.stat("/n", undefined as never),
      (fs) => fs.readSync(9999, Buffer.alloc(1)),
      (fs) => fs.closeSync(9999),
      (fs) => fs.statSync(new URL("http://x/y"))
    ]
    for (const call of calls) {
      const [actual, expected] = [await failure(() => call(fs as never)), await failure(() => call(Fs))]
      assert.deepStrictEqual([actual.code, actual.message, actual.name], [expected.code, expected.message, expected.name])
    }
    assert.deepStrictEqual(fs.readdirSync("/"), ["a.txt", "d", "l"])
  })

  it("fails with a code of Node for paths, link targets and calls that this library refuses", async () => {
    const fs = await makeFs()
    const codes = async (...calls: ReadonlyArray<() => unknown>) =>
      Promise.all(calls.map(async (call) => (await failure(call)).code))
    assert.deepStrictEqual(
      await codes(
        () => fs.promises.readFile("../secret"),
        () => fs.writeFileSync("/d/../../up", "x"),
        () => fs.promises.symlink("../../etc", "/d/x"),
        () => fs.promises.symlink("/etc/passwd", "/x"),
        () => fs.promises.writeFile("/a\u0001b", "x"),
        () => fs.promises.writeFile("/.~fsa-1.tmp", "x"),
        () => fs.promises.writeFile(`/${"x".repeat(300)}`, "x"),
        () => fs.promises.chmod("/a.txt", 0o4755),
        () => fs.promises.chown("/a.txt", 5, 5),
        () => fs.promises.link("/a.txt", "/b"),
        () => fs.promises.statfs("/"),
        () => fs.promises.rmdir("/"),
        () => fs.promises.rm("/", { recursive: true })
      ),
      [
        "EACCES",
        "EACCES",
        "EACCES",
        "EACCES",
        "EINVAL",
        "EINVAL",
        "ENAMETOOLONG",
        "EPERM",
        "EPERM",
        "EPERM",
        "ENOSYS",
        "EBUSY",
        "EBUSY"
      ]
    )
    assert.deepStrictEqual(fs.readdirSync("/"), ["a.txt", "d", "l"])
  })

  it("reports a read-only filesystem as EROFS", async () => {
    const fs = await over(InMemory.layer({ tree }).pipe(decorate(Decorator.readOnly)), NodeFs.make())
    for (const call of [
      () => fs.promises.writeFile("/n", "x"),
      () => fs.promises.access("/a.txt", fs.constants.W_OK),
      () => fs.promises.open("/a.txt", "r+"),
      () => fs.promises.unlink("/a.txt"),
      () => fs.promises.rename("/a.txt", "/b")
    ]) {
      assert.strictEqual((await failure(call)).code, "EROFS")
    }
  })

  it("is rejected with an AbortError if its signal has aborted, and writes nothing", async () => {
    const fs = await makeFs()
    const error = await failure(() => fs.promises.writeFile("/a.txt", "new", { signal: AbortSignal.abort() }))
    assert.deepStrictEqual([error.name, error.code], ["AbortError", "ABORT_ERR"])
    assert.strictEqual(fs.readFileSync("/a.txt", "utf8"), "alpha")
  })

  it("follows absolute link targets from the root with the option absoluteLinks", async () => {
    const fs = await makeFs({ absoluteLinks: "root" })
    await fs.promises.symlink("/d", "/d/e/up")
    assert.strictEqual(await fs.promises.readFile("/d/e/up/b.txt", "utf8"), "beta")
    assert.strictEqual(await fs.promises.readlink("/d/e/up"), "/d")
    assert.strictEqual(await fs.promises.realpath("/d/e/up/b.txt"), "/d/b.txt")
  })
})

describe("Stats and Dirent of NodeFs", () => {
  it("are instances of Node's classes, and statSync returns the same ino for a file and for a symlink to it", async () => {
    const fs = await makeFs()
    const [direct, linked] = [fs.statSync("/a.txt"), fs.statSync("/l")]
    assert.isTrue(direct instanceof Fs.Stats && direct instanceof fs.Stats)
    assert.isTrue(direct.isFile() && !direct.isDirectory())
    assert.strictEqual(direct.mtime.getTime(), direct.mtimeMs)
    assert.notStrictEqual(direct.ino, fs.statSync("/d").ino)
    assert.strictEqual(fs.statSync("/a.txt").ino, direct.ino)
    assert.strictEqual(linked.ino, direct.ino)
    assert.notStrictEqual(fs.lstatSync("/l").ino, direct.ino)
    fs.renameSync("/d/b.txt", "/d/c.txt")
    assert.isTrue(Number.isSafeInteger(fs.statSync("/d/c.txt").ino))
    fs.renameSync("/d/c.txt", "/d/b.txt")
    const big = fs.statSync("/a.txt", { bigint: true })
    assert.deepStrictEqual([big.size, big.ino, big.mtimeNs / 1_000_000n], [5n, BigInt(direct.ino), big.mtimeMs])
    const [entry] = fs.readdirSync("/d", { withFileTypes: true })
    assert.instanceOf(entry, Fs.Dirent)
    assert.deepStrictEqual([entry!.name, entry!.parentPath, entry!.isFile()], ["b.txt", "/d", true])
    assert.isUndefined(fs.statSync("/zz", { throwIfNoEntry: false }))
  })
})

describe("opendir of NodeFs", () => {
  it("lists a directory through read and through iteration", async () => {
    const fs = await makeFs()
    const names = []
    for await (const entry of await fs.promises.opendir("/d")) names.push(entry.name)
    assert.deepStrictEqual(names, ["b.txt", "e"])
    const directory = fs.opendirSync("/d")
    assert.strictEqual(directory.readSync()!.name, "b.txt")
    directory.closeSync()
    assert.strictEqual((await failure(() => directory.readSync())).code, "ERR_DIR_CLOSED")
  })
})

describe("a FileHandle of NodeFs", () => {
  it("reads and writes at positions, and other calls see the writes before the handle is closed", async () => {
    const fs = await makeFs()
    const handle = await fs.promises.open("/a.txt", "r+")
    await handle.write("AL", 0)
    assert.strictEqual(await fs.promises.readFile("/a.txt", "utf8"), "ALpha")
    await handle.truncate(3)
    assert.strictEqual((await handle.stat()).size, 3)
    assert.deepStrictEqual((await handle.read(Buffer.alloc(9), 0, 9, 1)).bytesRead, 2)
    await handle.writev([Buffer.from("12"), Buffer.from("34")], 5)
    await handle.close()
    assert.strictEqual(fs.readFileSync("/a.txt", "latin1"), "ALp\0\x001234")
    assert.strictEqual((await failure(() => handle.read(Buffer.alloc(1)))).code, "EBADF")
    await handle.close()
  })

  it("keeps its file when the file is renamed, and its content when the file is removed", async () => {
    const fs = await makeFs()
    const handle = await fs.promises.open("/a.txt", "a+")
    await fs.promises.rename("/a.txt", "/d/moved.txt")
    await handle.appendFile(" beta")
    assert.strictEqual(await fs.promises.readFile("/d/moved.txt", "utf8"), "alpha beta")
    await fs.promises.unlink("/d/moved.txt")
    await handle.write("!")
    assert.strictEqual(await handle.readFile("utf8"), "")
    assert.strictEqual((await handle.read(Buffer.alloc(20), 0, 20, 0)).bytesRead, 11)
    await handle.close()
    assert.isFalse(fs.existsSync("/d/moved.txt") || fs.existsSync("/a.txt"))
  })

  it("shares the content with other handles of the same file, through links too", async () => {
    const fs = await makeFs()
    const [one, other] = [await fs.promises.open("/a.txt", "r+"), await fs.promises.open("/l", "r+")]
    await one.write("1", 0)
    await other.write("2", 1)
    assert.strictEqual(await one.readFile("utf8"), "12pha")
    await fs.promises.writeFile("/a.txt", "whole")
    assert.strictEqual((await other.read(Buffer.alloc(9), 0, 9, 0)).buffer.toString("utf8", 0, 5), "whole")
    await Promise.all([one.close(), other.close()])
    assert.strictEqual(fs.readFileSync("/a.txt", "utf8"), "whole")
  })

  it("has readLines, createWriteStream and `await using`", async () => {
    const fs = await makeFs()
    await fs.promises.writeFile("/lines", ["one\n", "two\n"])
    const lines = []
    {
      await using handle = await fs.promises.open("/lines")
      for await (const line of handle.readLines()) lines.push(line)
    }
    assert.deepStrictEqual(lines, ["one", "two"])
    const handle = await fs.promises.open("/copy", "w")
    await new Promise((resolve) => handle.createWriteStream().end("streamed", () => resolve(undefined)))
    assert.strictEqual(await fs.promises.readFile("/copy", "utf8"), "streamed")
  })
})

describe("the streams and iterables of NodeFs", () => {
  it("read ranges, write, append, and report errors as events", async () => {
    const fs = await makeFs()
    assert.strictEqual(await text(fs.createReadStream("/a.txt", { start: 1, end: 3 })), "lph")
    const bytes = Buffer.alloc(300_000, "x")
    const out = fs.createWriteStream("/big")
    out.write(bytes)
    await new Promise((resolve) => out.end(bytes, () => resolve(undefined)))
    assert.isTrue((await buffer(fs.createReadStream("/big"))).equals(Buffer.concat([bytes, bytes])))
    await new Promise((resolve) => fs.createWriteStream("/big", { flags: "a" }).end("y", () => resolve(undefined)))
    assert.strictEqual(fs.statSync("/big").size, 600_001)
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => fs.createReadStream("/zz").on("error", resolve))
    assert.strictEqual(error.message, "ENOENT: no such file or directory, open '/zz'")
  })

  it("keep the old content if an iterable fails", async () => {
    const fs = await makeFs()
    const chunks = async function* () {
      yield "half"
      throw new Error("stop")
    }
    assert.strictEqual((await failure(() => fs.promises.writeFile("/a.txt", chunks()))).message, "stop")
    assert.strictEqual((await failure(() => fs.promises.writeFile("/a.txt", [1] as never))).code, "ERR_INVALID_ARG_TYPE")
    assert.strictEqual(fs.readFileSync("/a.txt", "utf8"), "alpha")
  })
})

describe("watch of NodeFs", () => {
  it("reports changes with Node's event names, also as an iterable", async () => {
    const fs = await makeFs()
    const events: Array<[string, unknown]> = []
    const seen = Promise.withResolvers<void>()
    const watcher = fs.watch("/d", (type, name) => {
      events.push([type, name])
      if (events.length === 3) seen.resolve()
    })
    fs.writeFileSync("/d/n", "1")
    fs.writeFileSync("/d/n", "2")
    fs.writeFileSync("/d/e/deep", "")
    fs.unlinkSync("/d/n")
    await seen.promise
    watcher.close()
    assert.deepStrictEqual(events, [
      ["rename", "n"],
      ["change", "n"],
      ["rename", "n"]
    ])
    const abort = new AbortController()
    const iterator = fs.promises.watch("/d", { recursive: true, signal: abort.signal })[Symbol.asyncIterator]()
    const next = iterator.next()
    await new Promise((resolve) => setImmediate(resolve))
    fs.writeFileSync("/d/e/deep", "x")
    assert.deepStrictEqual((await next).value, { eventType: "change", filename: "e/deep" })
    const pending = iterator.next()
    abort.abort()
    assert.strictEqual((await failure(() => pending)).name, "AbortError")
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => fs.watch("/zz").on("error", resolve))
    assert.strictEqual(error.message, "ENOENT: no such file or directory, watch '/zz'")
  })
})

describe("NodeFs over an asynchronous backend", () => {
  it("fails with ENOSYS for synchronous calls, which change nothing later", async () => {
    const fs = await over(asynchronous, NodeFs.make())
    for (const call of [
      () => fs.writeFileSync("/a.txt", "new"),
      () => fs.readdirSync("/"),
      () => fs.mkdirSync("/n"),
      () => fs.openSync("/n", "w"),
      () => fs.existsSync("/a.txt")
    ]) {
      assert.strictEqual((await failure(call)).code, "ENOSYS")
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
    assert.deepStrictEqual(await fs.promises.readdir("/"), ["a.txt", "d", "l"])
    assert.strictEqual(await fs.promises.readFile("/a.txt", "utf8"), "alpha")
  })

  it("interleaved writes of one handle all arrive", async () => {
    const fs = await over(asynchronous, NodeFs.make())
    const handle = await fs.promises.open("/n", "w")
    await Promise.all(Array.from({ length: 50 }, (_, at) => handle.write(String(at % 10), at)))
    await Promise.all([handle.sync(), fs.promises.stat("/n"), handle.close()])
    assert.strictEqual(await fs.promises.readFile("/n", "utf8"), "0123456789".repeat(5))
  })

  it("cp merges a tree into an existing one, and keeps existing files if force is false", async () => {
    const fs = await over(asynchronous, NodeFs.make())
    await fs.promises.mkdir("/to/e", { recursive: true })
    await fs.promises.writeFile("/to/b.txt", "old")
    await fs.promises.writeFile("/to/e/own", "own")
    await fs.promises.cp("/d", "/to", { recursive: true, force: false })
    assert.strictEqual(await fs.promises.readFile("/to/b.txt", "utf8"), "old")
    await fs.promises.cp("/d", "/to", { recursive: true, filter: (from) => !from.endsWith("/e") })
    assert.strictEqual(await fs.promises.readFile("/to/b.txt", "utf8"), "beta")
    assert.strictEqual(await fs.promises.readFile("/to/e/own", "utf8"), "own")
    assert.strictEqual((await failure(() => fs.promises.cp("/d", "/x"))).code, "ERR_FS_EISDIR")
    assert.strictEqual((await failure(() => fs.promises.cp("/d", "/d/e/f", { recursive: true }))).code, "ERR_FS_CP_EINVAL")
  })
})
