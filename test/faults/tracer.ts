/**
 * Attaches strace to a running process, to list the system calls of an operation on its tree and to make one of them fail. The
 * kernel returns the error, so the process cannot tell it from a real one.
 */
import * as Effect from "effect/Effect"
import { type ChildProcess, spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { marker } from "./program.ts"

/** A system call of one thread: the `nth` of this name since the trace began. */
export interface Site {
  readonly thread: number
  readonly call: string
  readonly nth: number
  readonly text: string
}

const attached = (strace: ChildProcess): Promise<void> =>
  new Promise((resolve, reject) => {
    let said = ""
    strace.stderr!.on("data", (bytes: Buffer) => {
      said += bytes.toString()
      if (said.includes("attached")) resolve()
    })
    strace.once("exit", () => reject(new Error(`strace has ended: ${said}`)))
  })

const ended = (strace: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (strace.exitCode !== null || strace.signalCode !== null) return resolve()
    strace.once("exit", () => resolve())
    strace.kill("SIGINT")
  })

/** Runs `use` under strace. Returns its result and the lines of strace. */
const traced = <A, E>(
  log: string,
  args: ReadonlyArray<string>,
  use: Effect.Effect<A, E>
): Effect.Effect<readonly [A, ReadonlyArray<string>], E> =>
  Effect.acquireUseRelease(
    Effect.promise(async () => {
      const strace = spawn("strace", ["-y", "-s", "4096", "-o", log, ...args], { stdio: ["ignore", "ignore", "pipe"] })
      await attached(strace)
      return strace
    }),
    (strace) =>
      Effect.flatMap(use, (answer) =>
        Effect.promise(async () => {
          await ended(strace)
          return [answer, Fs.readFileSync(log, "utf8").split("\n")] as const
        })
      ),
    (strace) => Effect.promise(() => ended(strace))
  )

/** Tests whether a call is on the tree: by a path, or by a path through a descriptor. */
export const isOurs = (text: string, root: string): boolean => text.includes(root) || /"\/proc\/(?:self|\d+)\/fd\//.test(text)

const sitesOf = (lines: ReadonlyArray<string>, root: string): ReadonlyArray<Site> => {
  const counts = new Map<string, number>()
  const sites: Array<Site> = []
  let isWatched = false
  for (const line of lines) {
    const [, thread, call, text] = /^(\d+) +(\w+)(\(.*)$/.exec(line) ?? []
    if (thread === undefined || call === undefined || text === undefined) continue
    const nth = (counts.get(`${thread} ${call}`) ?? 0) + 1
    counts.set(`${thread} ${call}`, nth)
    if (text.includes(marker)) isWatched = !isWatched
    else if (isWatched && isOurs(text, root)) {
      sites.push({ thread: Number(thread), call, nth, text })
    }
  }
  return sites
}

export interface Tracer {
  readonly sites: <A, E>(pid: number, root: string, use: Effect.Effect<A, E>) => Effect.Effect<ReadonlyArray<Site>, E>
  /** Makes one call fail while `use` runs. `met` is the line of the failed call, or `undefined` if none failed. */
  readonly failing: <A, E>(
    site: Site,
    error: string,
    use: Effect.Effect<A, E>
  ) => Effect.Effect<{ readonly answer: A; readonly met: string | undefined }, E>
}

export const tracer = (directory: string): Tracer => {
  const log = join(directory, "strace.log")
  return {
    sites: (pid, root, use) => Effect.map(traced(log, ["-f", "-p", `${pid}`], use), ([, lines]) => sitesOf(lines, root)),
    failing: (site, error, use) => {
      const inject = `inject=${site.call}:error=${error}:when=${site.nth}`
      const args = ["-p", `${site.thread}`, "-e", `trace=${site.call}`, "-e", inject]
      return Effect.map(traced(log, args, use), ([answer, lines]) => ({
        answer,
        met: lines.find((line) => line.includes("(INJECTED)"))
      }))
    }
  }
}
