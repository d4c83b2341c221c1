/**
 * Shows where the CPU time of a search goes, with Linux's perf and the permission to see the functions of the kernel:
 *
 *     node --perf-basic-prof bench/search/profile.ts DIRECTORY [PATTERN [i]]
 *
 * Without a pattern, it profiles a walk. The last argument `i` ignores case. The option `--perf-basic-prof` leaves a log in the
 * working directory.
 */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { grep, onHost, walk } from "./ours.ts"

const [root, pattern, option] = process.argv.slice(2)
if (root === undefined) throw new Error("name the directory to search")
execFileSync("perf", ["--version"])
const rounds = 20
const samplesPerSecond = 5000

const kinds = ["system", "pipe", "node", "JavaScript", "WebAssembly"] as const
type Kind = (typeof kinds)[number]

/** Classifies a sample by its innermost function, and a sample in the kernel also by its callers. */
const kindOf = ([leaf = "", ...callers]: ReadonlyArray<string>): Kind => {
  if (leaf.includes("[kernel"))
    return /unix_stream|epoll/.test(callers.join()) || /unix_stream|epoll/.test(leaf) ? "pipe" : "system"
  if (leaf.includes("wasm-function")) return "WebAssembly"
  return /JS:|RegExp\.|\[JIT\]|perf-\d+\.map/.test(leaf) ? "JavaScript" : "node"
}

const temporary = mkdtempSync(join(tmpdir(), "profile-"))
const node = join(temporary, "node")
// The search processes must name their functions for perf too.
writeFileSync(node, `#!/bin/sh\ncd '${temporary}' && exec '${process.execPath}' --perf-basic-prof "$@"\n`, { mode: 0o700 })
process.execPath = node

const self = await onHost(root)
const search = (pattern === undefined ? walk(self) : grep(self, { pattern, ignoreCase: option === "i" }))[1]!
for (let i = 0; i < 5; i++) await search.run()
const processes = readdirSync("/proc/self/task").flatMap((task) =>
  readFileSync(`/proc/self/task/${task}/children`, "utf8").trim().split(" ").filter(Boolean)
)
const data = join(temporary, "data")
const pids = [`${process.pid}`, ...processes].join()
const perf = spawn("perf", ["record", "-g", "-e", "cpu-clock", "-F", `${samplesPerSecond}`, "-o", data, "-p", pids], {
  stdio: "ignore"
})
// perf says nothing when it has attached itself to the processes.
await setTimeout(1000)
for (let i = 0; i < rounds; i++) await search.run()
perf.kill("SIGINT")
await once(perf, "exit")
await self.close()

const script = execFileSync("perf", ["script", "-i", data, "-F", "pid,ip,sym,dso"], {
  maxBuffer: 2 ** 30,
  stdio: ["ignore", "pipe", "ignore"]
})
const milliseconds = new Map<string, number>()
for (const sample of script.toString().split("\n\n")) {
  const [pid, ...frames] = sample.split("\n").filter((line) => line.trim() !== "")
  if (pid === undefined) continue
  const key = `${Number(pid) === process.pid} ${kindOf(frames)}`
  milliseconds.set(key, (milliseconds.get(key) ?? 0) + 1000 / samplesPerSecond / rounds)
}
for (const isProgram of [false, true]) {
  const row = kinds.map((kind) => `${kind} ${(milliseconds.get(`${isProgram} ${kind}`) ?? 0).toFixed(1)}`)
  console.log(`${isProgram ? "program" : "search processes"}, CPU ms per search: ${row.join(", ")}`)
}
rmSync(temporary, { recursive: true })
