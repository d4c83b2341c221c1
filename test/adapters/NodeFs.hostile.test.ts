/** Tests NodeFs with programs that make concurrent calls, abort calls, throw in listeners or use excessive sizes. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as NodeFs from "../../src/adapters/NodeFs.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, decorate, type Filesystem, make as makeAlgebra } from "../../src/filesystem/Filesystem.ts"

const tree: InMemory.Tree = { "a.txt": "alpha", "big.txt": "x".repeat(3_000_000) }

const over = (layer: Layer.Layer<Filesystem, unknown>): Promise<NodeFs.NodeFs> =>
  Effect.runPromise(Effect.provide(NodeFs.make(), layer) as Effect.Effect<NodeFs.NodeFs>)

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))
const later = Effect.promise(() => pause(1))

/** Makes an InMemory that answers later and counts the files that its port has open. */
const makeSlow = () => {
  const open = { count: 0, calls: 0 }
  const layer = InMemory.layer({ tree }).pipe(
    decorate((fs: Algebra) => {
      const { port } = fs
      return makeAlgebra({
        ...port,
        perform: undefined,
        explore: undefined,
        open: (path) =>
          Effect.andThen(
            Effect.acquireRelease(
              Effect.sync(() => {
                open.calls++
                open.count++
              }),
              () => Effect.sync(() => open.count--)
            ),
            Effect.andThen(
              later,
              Effect.map(port.open(path), (handle) => ({
                ...handle,
                read: (position: number, length: number) => Effect.andThen(later, handle.read(position, length))
              }))
            )
          ),
        write: (path, bytes, mode, how) => Effect.andThen(later, port.write(path, bytes, mode, how))
      })
    })
  )
  return { layer, open }
}

const failure = async (run: () => unknown): Promise<NodeJS.ErrnoException> => {
  try {
    await run()
  } catch (error) {
    return error as NodeJS.ErrnoException
  }
  return assert.fail("the call did not fail")
}

describe("a handle of NodeFs with concurrent calls", () => {
  it("performs writes without a position in the order of the calls", async () => {
    const fs = await over(makeSlow().layer)
    const handle = await fs.promises.open("/n", "w")
    await Promise.all(["one,", "two,", "three"].map((text) => handle.write(text)))
    await handle.close()
    assert.strictEqual(await fs.promises.readFile("/n", "utf8"), "one,two,three")
  })

  it("performs reads without a position in the order of the calls", async () => {
    const fs = await over(makeSlow().layer)
    await using handle = await fs.promises.open("/a.txt")
    const [one, two] = await Promise.all([handle.read(Buffer.alloc(2)), handle.read(Buffer.alloc(2))])
    assert.deepStrictEqual([one.buffer.toString(), two.buffer.toString()], ["al", "ph"])
  })

  it("waits in close for its running calls, and leaves no file open", async () => {
    const { layer, open } = makeSlow()
    const fs = await over(layer)
    const handle = await fs.promises.open("/big.txt")
    const reading = handle.readFile("utf8")
    await Promise.all([handle.close(), handle.close()])
    assert.strictEqual((await reading).length, 3_000_000)
    assert.strictEqual(open.count, 0)
    const out = await fs.promises.open("/n", "w")
    const writing = out.writeFile(["1", "2"])
    await out.close()
    await writing
    assert.strictEqual(await fs.promises.readFile("/n", "utf8"), "12")
    assert.strictEqual((await failure(() => out.write("3"))).code, "EBADF")
  })
})

describe("an aborted call of NodeFs", () => {
  it("leaves no file open", async () => {
    const { layer, open } = makeSlow()
    const fs = await over(layer)
    const abort = new AbortController()
    const writing = fs.promises.writeFile("/a.txt", "zz", { flag: "r+", signal: abort.signal })
    while (open.calls === 0) await Promise.resolve()
    abort.abort()
    assert.strictEqual((await failure(() => writing)).name, "AbortError")
    assert.strictEqual(open.count, 0)
  })

  it("takes no more chunks of an iterable, and keeps the old content", async () => {
    const fs = await over(InMemory.layer({ tree }))
    const abort = new AbortController()
    let taken = 0
    const endless = async function* () {
      for (; taken < 1000; taken++) {
        if (taken === 3) abort.abort()
        yield "x"
      }
    }
    const error = await failure(() => fs.promises.writeFile("/a.txt", endless(), { signal: abort.signal }))
    assert.deepStrictEqual([error.name, taken], ["AbortError", 3])
    assert.strictEqual(fs.readFileSync("/a.txt", "utf8"), "alpha")
  })
})

describe("a size that exceeds the memory", () => {
  it("fails with EFBIG and keeps the content", async () => {
    const fs = await over(InMemory.layer({ tree }))
    const handle = await fs.promises.open("/a.txt", "r+")
    assert.strictEqual((await failure(() => handle.write("a", 1e15))).message, "EFBIG: file too large, write")
    assert.strictEqual((await failure(() => handle.truncate(1e15))).code, "EFBIG")
    await handle.close()
    assert.strictEqual((await failure(() => fs.promises.truncate("/a.txt", 1e15))).code, "EFBIG")
    assert.strictEqual(fs.readFileSync("/a.txt", "utf8"), "alpha")
  })
})

describe("a watcher of NodeFs", () => {
  it("continues after a listener throws, and the error is uncaught as in Node", async () => {
    const fs = await over(InMemory.layer({ tree }))
    const others = process.listeners("uncaughtException")
    process.removeAllListeners("uncaughtException")
    const uncaught: Array<string> = []
    process.on("uncaughtException", ({ message }) => uncaught.push(message))
    try {
      const names: Array<unknown> = []
      const watcher = fs.watch("/", (_, name) => {
        names.push(name)
        throw new Error(`listener of ${String(name)}`)
      })
      await pause(5)
      for (const name of ["n", "m"]) {
        fs.writeFileSync(`/${name}`, "")
        await pause(20)
      }
      watcher.close()
      assert.deepStrictEqual(names, ["n", "m"])
      assert.deepStrictEqual(uncaught, ["listener of n", "listener of m"])
    } finally {
      process.removeAllListeners("uncaughtException")
      for (const listener of others) process.on("uncaughtException", listener)
    }
  })

  it("closes if its signal has already aborted", async () => {
    const fs = await over(InMemory.layer({ tree }))
    const watcher = fs.watch("/", { signal: AbortSignal.abort() })
    const closed = new Promise((resolve) => watcher.on("close", () => resolve("closed")))
    assert.strictEqual(await Promise.race([closed, pause(200)]), "closed")
  })
})

describe("a stream of NodeFs", () => {
  it("with the option flush writes its content", async () => {
    const fs = await over(InMemory.layer({ tree }))
    await new Promise((resolve, reject) =>
      fs
        .createWriteStream("/n", { flush: true })
        .on("error", reject)
        .on("close", () => resolve(undefined))
        .end("text")
    )
    assert.strictEqual(fs.readFileSync("/n", "utf8"), "text")
  })
})
