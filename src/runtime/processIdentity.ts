/**
 * A short text that identifies this process and fits into a file name, and a test whether the process of such a text
 * has ended.
 *
 * The system reuses pids. So the identity consists of the scope of the pid (one boot of one kernel, one pid namespace),
 * the pid, and the start time of the process.
 */
import type * as NodeFs from "node:fs"
import type * as NodeOs from "node:os"
import { codeOf } from "../model/systemError.ts"

const fs = (): typeof NodeFs => process.getBuiltinModule("node:fs")
const os = (): typeof NodeOs => process.getBuiltinModule("node:os")

const exhausted: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE"])

const quietly = (read: () => string): string | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** Reads a value that will be cached. Throws if descriptors are exhausted. */
const surely = (read: () => string): string | undefined => {
  try {
    return read()
  } catch (error) {
    if (exhausted.has(codeOf(error))) throw error
    return undefined
  }
}

interface Status {
  readonly pid: number
  readonly fields: ReadonlyArray<string>
}

const statusOf = (which: number | "self", tell = quietly): Status | undefined => {
  const text = tell(() => fs().readFileSync(`/proc/${which}/stat`, "latin1"))
  return text === undefined
    ? undefined
    : { pid: Number.parseInt(text, 10), fields: text.slice(text.lastIndexOf(")") + 2).split(" ") }
}

const [STATE, THREADS, STARTED] = [0, 17, 19] as const

const asText = (number: string | undefined): string => BigInt(number ?? "0").toString(36)

/** Computes the 64-bit FNV-1a hash, which is available without loading a module. */
const digest = (text: string): string => {
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash.toString(36)
}

interface Own {
  /** True if `/proc` uses the pid namespace of this process. In an incomplete container it may be another one. */
  readonly isTold: boolean
  readonly place: string
  readonly identity: string
}

const ask = (): Own => {
  const status = statusOf("self", surely)
  const isTold = status?.pid === process.pid
  const place = digest(
    JSON.stringify(
      isTold
        ? [
            surely(() => fs().readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()),
            surely(() => fs().readlinkSync("/proc/self/ns/pid")),
            surely(() => fs().readlinkSync("/proc/self/ns/time"))
          ]
        : [os().hostname(), process.platform]
    )
  )
  const started = isTold ? asText(status.fields[STARTED]) : "0"
  return { isTold, place, identity: `${place}-${process.pid.toString(36)}-${started}` }
}

const own = (): Own => (known ??= ask())
let known: Own | undefined

/**
 * Returns the identity of this process: at most 40 characters of `0-9`, `a-z` and `-`, never used by another process.
 */
export const self = (): string => own().identity

export const isIdentity = (text: string): boolean => /^[0-9a-z]{1,13}-[0-9a-z]{1,8}-[0-9a-z]{1,14}$/.test(text)

const isFree = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return codeOf(error) === "ESRCH"
  }
}

const hasEnded = (fields: ReadonlyArray<string>): boolean =>
  (fields[STATE] === "Z" || fields[STATE] === "X") && Number(fields[THREADS]) <= 1

/**
 * Tests whether the process has ended.
 *
 * Returns `undefined` if that is unknown: the process belongs to another machine or container, or another process may
 * have its pid and the system gives no start time.
 */
export const isDead = (identity: string): boolean | undefined => {
  const { isTold, place } = own()
  if (identity === self()) return false
  const [where, number, started] = identity.split("-")
  if (where !== place || number === undefined || !isIdentity(identity)) return undefined
  const pid = Number.parseInt(number, 36)
  if (isFree(pid)) return true
  if (!isTold) return undefined
  const status = statusOf(pid)
  // Without a status, /proc hides other users' processes, or the process is ending right now.
  return status === undefined ? undefined : asText(status.fields[STARTED]) !== started || hasEnded(status.fields)
}

/** A machine and its current boot. A process of an earlier boot has certainly ended. */
export interface Boot {
  readonly machine: string
  readonly boot: string
}

const askBoot = (): Boot | undefined => {
  const boot = quietly(() => fs().readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim())
  const machine = quietly(() => fs().readFileSync("/etc/machine-id", "latin1").trim())
  return boot === undefined || machine === undefined || machine === ""
    ? undefined
    : { boot, machine: digest(JSON.stringify([machine, os().hostname()])) }
}

export const boot = (): Boot | undefined => (knownBoot ??= { boot: askBoot() }).boot
let knownBoot: { readonly boot: Boot | undefined } | undefined
