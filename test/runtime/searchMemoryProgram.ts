/** Walks or searches a tree, and prints the highest resident memory of this process and of its children together, in MiB. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { readdirSync, readFileSync } from "node:fs"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"

const [kind, root] = process.argv.slice(2)

const statusOf = (pid: number | string): string => {
  try {
    return readFileSync(`/proc/${pid}/status`, "utf8")
  } catch {
    return ""
  }
}
const field = (status: string, name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(status)?.[1] ?? 0)
const peak = (pid: number | string): number => field(statusOf(pid), "VmHWM") / 1024

/** Returns the peak of all children that are alive. */
const children = (): number =>
  readdirSync("/proc")
    .filter((pid) => /^\d+$/.test(pid) && field(statusOf(pid), "PPid") === process.pid)
    .reduce((sum, pid) => sum + peak(pid), 0)

const main = Effect.gen(function* () {
  const fs = make(yield* PosixHost.make({ root: root! }))
  let entries = 0
  const count = (entry: { readonly isFile: boolean; readonly path: string }) => {
    if (entry.isFile) entries++
    return kind === "walk and read" && entry.isFile ? Effect.asVoid(fs.readString(entry.path)) : Effect.void
  }
  if (kind === "grep") yield* Stream.runForEach(fs.grepStream("export.*needle"), () => Effect.sync(() => void entries++))
  else yield* Stream.runForEach(fs.walk(".", kind === "walk with sizes" ? { sizes: true } : {}), count)
  return { entries, mine: Math.round(peak(process.pid)), theirs: Math.round(children()) }
}).pipe(Effect.scoped)

process.stdout.write(JSON.stringify(await Effect.runPromise(Effect.orDie(main))))
process.exit()
