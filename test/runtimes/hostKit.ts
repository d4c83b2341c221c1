/** The program that Bun and Deno run: the laws in memory and on a directory of the machine, archives, snapshots and tools. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { Bench } from "../../src/testing/Law.ts"
import { check, conformance, features } from "./kit.ts"

const [scratch, names] = process.argv.slice(2) as [scratch: string, names: "bytes" | "text"]

const directory = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(scratch, "root-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** Neither call takes the name as an argument of the runtime under test, which might not know it. */
const bench = (root: string): Bench => ({
  makeOther: (path) => Effect.sync(() => void execFileSync("mkfifo", [join(root, path)])),
  makeUnaddressable:
    names === "bytes"
      ? Effect.sync(() => void execFileSync("sh", ["-c", String.raw`printf hit > "$1/$(printf 'a\377')"`, "sh", root]))
      : undefined
})

const host: Layer.Layer<Filesystem, unknown> = Layer.unwrap(
  Effect.map(directory, (root) => Layer.merge(PosixHost.layer({ root }), Layer.succeed(Bench, bench(root))))
)

console.log(
  JSON.stringify({
    memory: await conformance({ programs: 20, hasThreads: false }),
    host: await check({ host }, { programs: 20, hasThreads: true }),
    features: await features()
  })
)
process.exit(0)
