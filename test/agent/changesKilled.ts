/** A process that changes several files at once and kills itself before its nth changing call. */
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import { flushCompileCache } from "node:module"
import { applyChanges, type FileChange } from "../../src/agent/changes.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { around } from "../../src/port/Backend.ts"
import { isMutation } from "../../src/port/Operation.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { writeOut } from "../writeOut.ts"

// The helpers of other tests take longer to load than this process runs.
const p = (path: string): FsPath => path as FsPath
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const versionOf = (text: string): string => createHash("sha256").update(text).digest("hex")

export const before: Readonly<Record<string, string>> = { "a.txt": "a\n", "d/b.txt": "b\n", gone: "gone", old: "old" }
export const after: Readonly<Record<string, string>> = { "a.txt": "A\n", "d/b.txt": "B\n", "new/n": "n", moved: "moved" }

const changes: ReadonlyArray<FileChange> = [
  { path: p("a.txt"), before: versionOf("a\n"), after: bytesOf("A\n") },
  { path: p("d/b.txt"), before: versionOf("b\n"), after: bytesOf("B\n") },
  { path: p("new/n"), before: null, after: bytesOf("n") },
  { path: p("gone"), before: versionOf("gone"), after: null },
  { path: p("moved"), before: null, after: bytesOf("moved"), from: { path: p("old"), version: versionOf("old") } }
]

/** Applies the changes and returns the number of changing calls. */
export const change = Effect.fnUntraced(function* (root: string, killedAt: number) {
  let calls = 0
  const backend = yield* PosixHost.make({ root })
  const port = around(backend, (operation, next) =>
    Effect.suspend(() => {
      if (isMutation(operation) && ++calls === killedAt) process.kill(process.pid, "SIGKILL")
      return next
    })
  )
  yield* applyChanges(make(port), changes)
  return calls
})

const [, script, root, killedAt] = process.argv
if (script?.endsWith("changesKilled.ts") === true) {
  // Saves the compile cache for the next process, because a killed process does not save it.
  flushCompileCache()
  await Effect.runPromise(Effect.scoped(change(root!, Number(killedAt))))
  writeOut("done")
}
