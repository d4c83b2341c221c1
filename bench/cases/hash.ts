/** SHA-256, and the versions that are made of it, beside `node:crypto` on the same bytes. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { createHash, hash } from "node:crypto"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { hasher, sha256 } from "../../src/runtime/hash.ts"
import type { Case } from "../harness.ts"
import { awaited, check, effects, times } from "../harness.ts"

const sizes = [
  { name: "1 KiB", size: 1024, count: 20_000, samples: 15 },
  { name: "64 KiB", size: 65_536, count: 1000, samples: 15 },
  { name: "10 MB", size: 10_000_000, count: 5, samples: 15 }
]

type Size = (typeof sizes)[number]

const contentOf = (size: number): Uint8Array => new Uint8Array(size).fill(97)

const cryptoOf = (bytes: Uint8Array): string => hash("sha256", bytes, "hex")

const ratio = (bound: number) => ({ target: `≤ ${bound} of node:crypto`, bound, figure: "ratio" as const })

const plain = ({ count, name, samples, size }: Size): Case => ({
  ...ratio(1.1),
  name: `hash: SHA-256 of ${name}`,
  count,
  samples,
  make: async () => {
    const bytes = contentOf(size)
    check(sha256(bytes) === cryptoOf(bytes))
    return {
      ours: { name: "sha256", run: times(() => sha256(bytes)) },
      baseline: { name: "crypto.hash", run: times(() => cryptoOf(bytes)) }
    }
  }
})

const inPieces = ({ count, name, samples, size }: Size): Case => ({
  ...ratio(1.1),
  name: `hash: SHA-256 of ${name} in pieces of 64 KiB`,
  count,
  samples,
  make: async () => {
    const bytes = contentOf(size)
    const pieces = Array.from({ length: Math.ceil(size / 65_536) }, (_, i) => bytes.subarray(i * 65_536, (i + 1) * 65_536))
    const ours = () => {
      const digest = hasher()
      for (const piece of pieces) digest.update(piece)
      return digest.digest()
    }
    const baseline = () => {
      const digest = createHash("sha256")
      for (const piece of pieces) digest.update(piece)
      return digest.digest("hex")
    }
    check(ours() === baseline())
    return { ours: { name: "hasher", run: times(ours) }, baseline: { name: "createHash", run: times(baseline) } }
  }
})

const written = ({ count, name, samples, size }: Size): Case => ({
  ...ratio(1.3),
  name: `memory: writeBytes of ${name} with its version`,
  count,
  samples,
  make: async () => {
    const fs = await Effect.runPromise(Effect.map(InMemory.make(), make))
    const bytes = contentOf(size)
    const write = fs.writeBytes("file", bytes, { version: true })
    check((await Effect.runPromise(write)).version === cryptoOf(bytes))
    const map = new Map<string, readonly [Uint8Array, string]>()
    return {
      ours: { name: "writeBytes", run: effects(write) },
      baseline: { name: "copy, hash", run: effects(Effect.sync(() => map.set("file", [bytes.slice(), cryptoOf(bytes)]))) }
    }
  }
})

const read = ({ count, name, samples, size }: Size): Case => ({
  ...ratio(1.3),
  name: `host: readBytes of ${name} with its version`,
  count: Math.min(count, 500),
  samples,
  make: async () => {
    const root = mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))
    const file = join(root, "file")
    const bytes = contentOf(size)
    writeFileSync(file, bytes)
    const scope = Scope.makeUnsafe()
    const fs = make(await Effect.runPromise(Scope.provide(PosixHost.make({ root }), scope)))
    const ours = fs.readBytes("file", { version: true })
    check((await Effect.runPromise(ours)).version === cryptoOf(bytes))
    return {
      ours: { name: "readBytes", run: effects(ours) },
      baseline: { name: "readFile, hash", run: awaited(async () => cryptoOf(await readFile(file))) },
      close: async () => {
        await Effect.runPromise(Scope.close(scope, Exit.void))
        rmSync(root, { recursive: true })
      }
    }
  }
})

const [small, middle, large] = sizes as [Size, Size, Size]

export const cases: ReadonlyArray<Case> = [
  ...sizes.map(plain),
  inPieces(large),
  written(middle),
  written(large),
  ...[small, middle, large].map(read)
]
