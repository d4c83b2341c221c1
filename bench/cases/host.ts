/** Single operations on a directory, compared with the equally safe work in node:fs promises. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Stream from "effect/Stream"
import { createReadStream, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import * as promises from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import type { Case } from "../harness.ts"
import { awaited, check, effects } from "../harness.ts"

const prepared = async () => {
  const root = mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))
  const runtime = ManagedRuntime.make(Layer.fresh(PosixHost.layer({ root })))
  const fs = await runtime.runPromise(Filesystem.Filesystem)
  return {
    root,
    fs,
    close: async () => {
      await runtime.dispose()
      rmSync(root, { recursive: true })
    }
  }
}

/**
 * Opens a file without following links, checks that it is regular, and reads it to its size, as a careful program does.
 */
const readSafely = async (path: string) => {
  const handle = await promises.open(path, 0o400000)
  try {
    const stat = await handle.stat()
    if (!stat.isFile()) throw new Error("not a file")
    const bytes = Buffer.allocUnsafeSlow(stat.size)
    await handle.read(bytes, 0, stat.size, 0)
    return bytes
  } finally {
    await handle.close()
  }
}

let serial = 0
/** Writes a temporary file with the old mode, and renames it over the old one. */
const writeSafely = async (path: string, bytes: Uint8Array) => {
  const mode = (await promises.lstat(path)).mode & 0o777
  const aside = `${path}.${serial++}.tmp`
  const handle = await promises.open(aside, "wx", mode)
  try {
    await handle.writeFile(bytes)
    await handle.chmod(mode)
  } finally {
    await handle.close()
  }
  await promises.rename(aside, path)
}

const gibibyte = 1024 ** 3

export const cases: ReadonlyArray<Case> = [
  {
    name: "host: readBytes of 4 KiB",
    target: "≤ 1.3 of node:fs/promises",
    bound: 1.3,
    figure: "ratio",
    count: 500,
    samples: 21,
    make: async () => {
      const { close, fs, root } = await prepared()
      writeFileSync(join(root, "a.bin"), Buffer.alloc(4096, 97))
      check(
        Buffer.compare((await Effect.runPromise(fs.readBytes("a.bin"))).content, await readSafely(join(root, "a.bin"))) === 0
      )
      return {
        ours: { name: "readBytes", run: effects(fs.readBytes("a.bin")) },
        baseline: { name: "open, stat, read, close", run: awaited(() => readSafely(join(root, "a.bin"))) },
        close
      }
    }
  },
  {
    name: "host: write of 4 KiB over a file",
    target: "≤ 1.5 of node:fs/promises",
    bound: 1.5,
    figure: "ratio",
    count: 200,
    samples: 21,
    make: async () => {
      const { close, fs, root } = await prepared()
      const text = "a".repeat(4096)
      const bytes = Buffer.from(text)
      writeFileSync(join(root, "a.txt"), "")
      writeFileSync(join(root, "b.txt"), "")
      await Effect.runPromise(fs.write("a.txt", text))
      await writeSafely(join(root, "b.txt"), bytes)
      check((await promises.readFile(join(root, "a.txt"), "utf8")) === (await promises.readFile(join(root, "b.txt"), "utf8")))
      return {
        ours: { name: "write", run: effects(fs.write("a.txt", text)) },
        baseline: { name: "lstat, open, write, chmod, rename", run: awaited(() => writeSafely(join(root, "b.txt"), bytes)) },
        close
      }
    }
  },
  {
    name: "host: stream of 1 GiB",
    target: "≥ 0.8 of createReadStream",
    bound: 0.8,
    figure: "baseline ÷ ours",
    count: 1,
    samples: 7,
    make: async () => {
      const { close, fs, root } = await prepared()
      const path = join(root, "big.bin")
      const handle = await promises.open(path, "w")
      const block = Buffer.alloc(1024 * 1024, 98)
      for (let i = 0; i < 1024; i++) await handle.write(block)
      await handle.close()
      const ours = async () => {
        let sum = 0
        await Effect.runPromise(
          Stream.runForEachArray(fs.stream("big.bin"), (chunks) =>
            Effect.sync(() => {
              for (const chunk of chunks) sum += chunk.length
            })
          )
        )
        return sum
      }
      const baseline = () =>
        new Promise<number>((resolve, reject) => {
          let sum = 0
          createReadStream(path)
            .on("data", (chunk) => {
              sum += chunk.length
            })
            .on("end", () => resolve(sum))
            .on("error", reject)
        })
      check((await ours()) === gibibyte && (await baseline()) === gibibyte)
      globalThis.gc?.()
      const before = process.memoryUsage().rss
      await ours()
      const high = process.memoryUsage().rss - before
      if (high > 128 * 1024 * 1024) throw new Error(`the process grew by ${high} bytes during the stream`)
      return { ours: { name: "stream", run: ours }, baseline: { name: "createReadStream", run: baseline }, close }
    }
  }
]
