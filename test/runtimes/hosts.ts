import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { Bench } from "../../src/testing/Law.ts"
import { check, type Report } from "./kit.ts"

/** The form in which the runtime handles names on disk. */
export type Names = "bytes" | "text"

/** Makes unusual entries with external programs, because the runtime under test may not support such names. */
const bench = (root: string, names: Names): Bench => ({
  makeOther: (path) => Effect.sync(() => void execFileSync("mkfifo", [join(root, path)])),
  makeUnaddressable:
    names === "bytes"
      ? Effect.sync(() => void execFileSync("sh", ["-c", String.raw`printf hit > "$1/$(printf 'a\377')"`, "sh", root]))
      : undefined
})

export const hostConformance = (scratch: string, names: Names): Promise<Report> => {
  const directory = Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(join(scratch, "root-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  )
  const host: Layer.Layer<Filesystem, unknown> = Layer.unwrap(
    Effect.map(directory, (root) => Layer.merge(PosixHost.layer({ root }), Layer.succeed(Bench, bench(root, names))))
  )
  return check({ host }, { programs: 20, hasThreads: true })
}
