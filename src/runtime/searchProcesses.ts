/**
 * A pool of processes that walk and search directories of the machine.
 *
 * Each process has two jobs at a time, so that it never waits for the next job. Unlike a thread, a process has its own
 * working directory, which confines the search. Terminating the process stops a regular expression that backtracks
 * without end. The processes start at the first use. The processes end after an idle period, or when this process ends.
 */
import type { ChildProcess, SpawnOptions } from "node:child_process"
import type * as Sea from "node:sea"
import type { Socket } from "node:net"
import type * as Os from "node:os"
import { type Order, progressTicket, type TreePlace, type TreeReport, type TreeSearch } from "../model/treeSearch.ts"
import { frameOf, frameOfBody, makeFrameReader } from "./frames.ts"
import { basename, builtin, isNode, v8 } from "./node.ts"
import { searchProgram, type SearchProgram } from "./searchProgram.ts"

export interface SearchJob {
  readonly place: TreePlace
  readonly directories: ReadonlyArray<string>
  readonly budget: number
  /**
   * Receives the report, or `undefined` if the process ended before its report. Called at most once, and only after `send`
   * has returned.
   */
  readonly done: (report: TreeReport | undefined) => void
}

export interface ProcessSearch {
  /** Returns the number of jobs that can be sent now. Returns 0 while no process is ready, and if not `isUsable`. */
  readonly room: () => number
  readonly send: (job: SearchJob) => void
  /** False after a process has ended during a job of this search. The search then continues without processes. */
  readonly isUsable: () => boolean
  /** Cancels all jobs. Their `done` is then not called. */
  readonly end: () => void
}

export interface SearchProcesses {
  /** Tests whether a process is ready, so that the first job does not wait for a start. */
  readonly areWarm: () => boolean
  /** Begins a search. Starts the processes if necessary. Returns `undefined` if no process can be started. */
  readonly begin: (tree: TreeSearch, refuseHardlinks: boolean) => ProcessSearch | undefined
  /** Ends all processes. */
  readonly end: () => void
}

interface Pending {
  readonly job: SearchJob
  readonly search: RunningSearch
}

interface RunningSearch {
  readonly number: number
  readonly tree: TreeSearch
  readonly refuseHardlinks: boolean
  pending: number
  isEnded: boolean
  /** True after a process ended during a job of the search. The search then continues without processes. */
  isBroken: boolean
}

interface Slot {
  readonly child: ChildProcess
  /** The pending jobs by ticket, oldest first. */
  readonly jobs: Map<number, Pending>
  readonly searches: Set<number>
  isReady: boolean
  isEnded: boolean
  isReferenced: boolean
  quietTicks: number
  timer: ReturnType<typeof setInterval> | undefined
}

const maxJobsPerProcess = 2
const retryDelayMillis = 10_000
/** The time without a search after which the processes end. An agent's next search often comes within some seconds. */
const defaultIdleMillis = 15_000
const tickMillis = 100
const maxQuietTicks = 2
/** The milliseconds without progress after which a process is killed, in addition to the pattern's time budget. */
const graceMillis = 300
/** The milliseconds without progress after which a process is killed if there is no time budget. A disk may be slow. */
const slowDiskMillis = 10_000
/** The milliseconds without progress after which a process is killed if its search has ended. */
const withdrawnMillis = 300

/** Tests whether `execPath` is Node on Linux and whether this program may start processes. */
const canStart = (): boolean => {
  if (!isNode || process.platform !== "linux") return false
  const { bun, deno, electron } = process.versions as Record<string, string | undefined>
  if (bun !== undefined || deno !== undefined || electron !== undefined) return false
  // An executable that contains both Node and an application would start the application again.
  if (!/^node(?:js)?[-.\d]*$/.test(basename(process.execPath))) return false
  const permission = (process as { readonly permission?: { readonly has: (scope: string) => boolean } }).permission
  if (permission !== undefined && !permission.has("child")) return false
  return !((builtin<typeof Sea>("node:sea") as { readonly isSea?: () => boolean }).isSea?.() ?? false)
}

/** Returns a report that no directory of a job was searched. */
const untouched = ({ directories }: SearchJob): TreeReport => ({
  ticket: progressTicket,
  directories: new Int32Array(3 * directories.length),
  codes: new Uint8Array(0),
  names: "",
  matches: undefined
})

type Spawn = (command: string, args: ReadonlyArray<string>, options: SpawnOptions) => ChildProcess

const spawn: Spawn = (command, args, options) =>
  builtin<{ readonly spawn: Spawn }>("node:child_process").spawn(command, args, options)

const identityOf = (): string => [process.geteuid?.(), process.getegid?.(), ...(process.getgroups?.() ?? [])].join()

export const make = (
  size: number,
  program: SearchProgram,
  start: Spawn = spawn,
  idleMillis = defaultIdleMillis
): SearchProcesses => {
  const { deserialize } = v8()
  const slots: Array<Slot> = []
  let nextSearch = 1
  let nextTicket = progressTicket + 1
  let idleTimer: ReturnType<typeof setTimeout> | undefined
  /** The time until which no process is started, after a failed start. */
  let retryTime = 0

  /**
   * The user and groups of the processes. If this process changes its user, processes of the old user must not serve
   * it.
   */
  let identity = identityOf()

  const delayStarts = (): void => {
    retryTime = performance.now() + retryDelayMillis
  }

  /** Tests whether a slot may get jobs. A process that has been silent for a while may run a pattern that never ends. */
  const isResponsive = ({ isReady, quietTicks }: Slot): boolean => isReady && quietTicks <= maxQuietTicks

  const order = ({ child }: Slot, value: Order): void => void child.stdin!.write(frameOf(value))

  /** Keeps this program running exactly while the process has jobs. */
  const updateRef = (slot: Slot): void => {
    const { child, jobs } = slot
    if (slot.isReferenced === jobs.size > 0) return
    slot.isReferenced = jobs.size > 0
    for (const one of [child, child.stdin as Socket, child.stdout as Socket, child.stdio[3] as Socket]) {
      if (slot.isReferenced) one.ref()
      else one.unref()
    }
  }

  const limitOf = ({ search: { isEnded, tree } }: Pending): number =>
    isEnded
      ? withdrawnMillis
      : tree.query === undefined || tree.query.patternBudgetMillis === Number.POSITIVE_INFINITY
        ? slowDiskMillis
        : tree.query.patternBudgetMillis + graceMillis

  /**
   * Kills the slot's process if it makes no progress. Counts ticks instead of time, because this program may itself be
   * too busy to receive a report.
   */
  const watch = (slot: Slot): void => {
    slot.quietTicks = 0
    if (slot.timer !== undefined) return
    slot.timer = setInterval(() => {
      const [oldest] = slot.jobs.values()
      if (oldest === undefined) {
        clearInterval(slot.timer)
        slot.timer = undefined
      } else if (++slot.quietTicks * tickMillis > limitOf(oldest)) slot.child.kill("SIGKILL")
    }, tickMillis).unref()
  }

  const endSlot = (slot: Slot): void => {
    if (slot.isEnded) return
    slot.isEnded = true
    slots.splice(slots.indexOf(slot), 1)
    clearInterval(slot.timer)
    if (!slot.isReady) delayStarts()
    const jobs = [...slot.jobs.values()]
    slot.jobs.clear()
    for (const { search } of jobs) search.pending--
    // The process worked on the oldest job. Other searches are not to blame, and send the directories of their jobs again.
    if (jobs[0] !== undefined) jobs[0].search.isBroken = true
    for (const { job, search } of jobs) if (!search.isEnded) job.done(search.isBroken ? undefined : untouched(job))
  }

  const receive = (slot: Slot, report: TreeReport): void => {
    slot.isReady = true
    slot.quietTicks = 0
    const pending = slot.jobs.get(report.ticket)
    if (pending === undefined) return
    slot.jobs.delete(report.ticket)
    pending.search.pending--
    updateRef(slot)
    if (!pending.search.isEnded) pending.job.done(report)
    scheduleEnd()
  }

  const open = (): void => {
    let child: ChildProcess
    try {
      child = start(process.execPath, program.args, { cwd: "/", env: {}, stdio: ["pipe", "pipe", "ignore", "pipe"] })
    } catch {
      return delayStarts()
    }
    const slot: Slot = {
      child,
      jobs: new Map(),
      searches: new Set(),
      isReady: false,
      isEnded: false,
      isReferenced: true,
      quietTicks: 0,
      timer: undefined
    }
    slots.push(slot)
    const end = (): void => endSlot(slot)
    child.on("error", end)
    child.on("exit", end)
    // If descriptors or memory are exhausted, the child has no pid and no streams.
    if (child.pid === undefined) return end()
    for (const stream of [child.stdin!, child.stdout!, child.stdio[3]!]) stream.on("error", end)
    const read = makeFrameReader((body) => receive(slot, deserialize(body) as TreeReport))
    child.stdout!.on("data", (bytes: Buffer) => {
      try {
        read(bytes)
      } catch {
        // A different version of Node, installed after this process started, may write a different format.
        end()
        child.kill("SIGKILL")
      }
    })
    if (program.text !== undefined) child.stdin!.write(frameOfBody(Buffer.from(program.text, "base64")))
    updateRef(slot)
  }

  const endAll = (): void => {
    for (const slot of slots.slice()) {
      slots.splice(slots.indexOf(slot), 1)
      slot.isReady = true
      endSlot(slot)
      slot.child.kill("SIGKILL")
    }
  }
  const scheduleEnd = (): void => {
    if (idleTimer !== undefined) return void idleTimer.refresh()
    idleTimer = setTimeout(() => {
      if (slots.every(({ jobs }) => jobs.size === 0)) endAll()
    }, idleMillis).unref()
  }

  const send = (search: RunningSearch, job: SearchJob): void => {
    const [first, ...others] = slots.filter(isResponsive)
    const slot = others.reduce((least, one) => (one.jobs.size < least.jobs.size ? one : least), first!)
    if (!slot.searches.has(search.number)) {
      slot.searches.add(search.number)
      order(slot, { _tag: "Begin", search: search.number, tree: search.tree, refuseHardlinks: search.refuseHardlinks })
    }
    const ticket = nextTicket++
    slot.jobs.set(ticket, { job, search })
    search.pending++
    updateRef(slot)
    if (slot.jobs.size === 1) watch(slot)
    order(slot, {
      _tag: "Visit",
      search: search.number,
      ticket,
      place: job.place,
      directories: job.directories.join("\n"),
      budget: job.budget
    })
  }

  return {
    areWarm: () => slots.some(({ isReady }) => isReady),
    begin: (tree, refuseHardlinks) => {
      if (identity !== (identity = identityOf())) endAll()
      if (performance.now() > retryTime) for (let left = size - slots.length; left > 0; left--) open()
      if (slots.length === 0) return undefined
      scheduleEnd()
      const search: RunningSearch = {
        number: nextSearch++,
        tree,
        refuseHardlinks,
        pending: 0,
        isEnded: false,
        isBroken: false
      }
      return {
        room: () => {
          if (search.isBroken) return 0
          return Math.max(0, maxJobsPerProcess * slots.filter(isResponsive).length - search.pending)
        },
        isUsable: () => !search.isBroken,
        send: (job) => send(search, job),
        end: () => {
          search.isEnded = true
          for (const slot of slots) {
            const [oldest] = slot.jobs.values()
            if (oldest?.search === search) slot.quietTicks = 0
            if (slot.searches.delete(search.number)) order(slot, { _tag: "End", search: search.number })
          }
          scheduleEnd()
        }
      }
    },
    end: endAll
  }
}

let shared: SearchProcesses | undefined

/** Returns the shared search processes of this program, or `undefined` if the platform does not allow them. */
export const searchProcesses = (): SearchProcesses | undefined => {
  if (shared !== undefined) return shared
  const program = canStart() ? searchProgram() : undefined
  if (program === undefined) return undefined
  return (shared = make(Math.min(4, builtin<typeof Os>("node:os").availableParallelism()), program))
}
