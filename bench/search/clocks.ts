/** Measures how much of the processors and of the memory we used, and how much other processes used meanwhile. */
import { readdirSync, readFileSync } from "node:fs"

/** The milliseconds of one unit in /proc/stat. */
const tick = 10

const numbers = (text: string): ReadonlyArray<number> => text.trim().split(/\s+/).map(Number)

const listed = (path: string): ReadonlyArray<string> => {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

const read = (path: string): string | undefined => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return undefined
  }
}

/** Returns the fields of a process in /proc, from its state on. */
const statOf = (pid: string): ReadonlyArray<string> => {
  const stat = read(`/proc/${pid}/stat`) ?? ""
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")
}

/** Returns the identifiers of the child processes that run, such as the search processes of this library. */
const runningChildren = (): ReadonlyArray<string> =>
  listed("/proc/self/task").flatMap((thread) =>
    (read(`/proc/self/task/${thread}/children`) ?? "").split(" ").filter((pid) => pid !== "")
  )

/** Returns the time of the child processes that run. */
const running = (): number => {
  let ticks = 0
  for (const pid of runningChildren()) {
    const fields = statOf(pid)
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
  }
  return ticks * tick
}

/** Returns the sum of the largest resident sizes of the child processes that run, in MiB. */
export const childrenPeakMiB = (): number => {
  let kib = 0
  for (const pid of runningChildren()) kib += Number(/^VmHWM:\s*(\d+)/m.exec(read(`/proc/${pid}/status`) ?? "")?.[1] ?? 0)
  return kib / 1024
}

/** Returns the time of the child processes, also of those that have ended. */
const children = (): number => {
  const fields = statOf("self")
  return running() + Number(fields[13] ?? 0) * tick + Number(fields[14] ?? 0) * tick
}

/** Returns the time of the whole machine, without idling and waiting for disks. */
const machine = (): number | undefined => {
  const line = read("/proc/stat")?.split("\n", 1)[0]
  if (line === undefined) return undefined
  const [user, nice, system, , , irq, softirq, steal] = numbers(line.slice(4)) as [number, number, number, ...Array<number>]
  return (user + nice + system + irq! + softirq! + steal!) * tick
}

/** Returns the KiB that were read from disks. */
const disk = (): number => Number(/^pgpgin (\d+)/m.exec(read("/proc/vmstat") ?? "")?.[1] ?? 0)

/** In KiB. A sample during which more was read from disks does not measure a warm cache. */
const cold = 4096

export interface Clocks {
  readonly wall: number
  readonly cpu: number
  readonly machine: number | undefined
  readonly disk: number
}

export const now = (): Clocks => {
  const { system, user } = process.cpuUsage()
  return { wall: performance.now(), cpu: (system + user) / 1000 + children(), machine: machine(), disk: disk() }
}

export interface Spent {
  readonly ms: number
  /** Milliseconds of all threads and of child processes. */
  readonly cpuMs: number
  /** True if a disk was read, or others used more than 6 % of this time (and more than the error of the clocks). */
  readonly disturbed: boolean
}

export const since = (before: Clocks): Spent => {
  const after = now()
  const ms = after.wall - before.wall
  const cpuMs = after.cpu - before.cpu
  const all = after.machine === undefined || before.machine === undefined ? cpuMs : after.machine - before.machine
  const disturbed = all - cpuMs > Math.max(3 * tick, 0.06 * ms) || after.disk - before.disk > cold
  return { ms, cpuMs, disturbed }
}
