/**
 * Who this process is, as a short text that can stand in the name of a file, and whether the process that such a text names has ended.
 * A number alone would not do: the system gives it to another process later. So the identity says where it counts (one boot of one
 * kernel, one namespace of process numbers), the number, and the moment at which the process started.
 */
import type * as NodeFs from "node:fs"
import type * as NodeOs from "node:os"

// Looked up when they are needed: a program that works in memory alone loads none of them.
const fs = (): typeof NodeFs => process.getBuiltinModule("node:fs")
const os = (): typeof NodeOs => process.getBuiltinModule("node:os")

const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined)

const exhausted: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE"])

const quietly = (read: () => string): string | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/** For what is remembered: that a descriptor was lacking at that moment is no answer. */
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

/** `/proc/<which>/stat` behind the name of the program, which may hold anything: state first, then one number after another. */
const statusOf = (which: number | "self", tell = quietly): Status | undefined => {
  const text = tell(() => fs().readFileSync(`/proc/${which}/stat`, "latin1"))
  return text === undefined
    ? undefined
    : { pid: Number.parseInt(text, 10), fields: text.slice(text.lastIndexOf(")") + 2).split(" ") }
}

const [STATE, THREADS, STARTED] = [0, 17, 19] as const

const asText = (number: string | undefined): string => BigInt(number ?? "0").toString(36)

/** FNV-1a, of 64 bits: not to be trusted with secrets, and there at once, which the machine's own hashes are not. */
const digest = (text: string): string => {
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash.toString(36)
}

interface Own {
  /** Whether `/proc` counts processes as this process does; in a half-made container it may be another namespace's. */
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

/** Asked once, and not before somebody wants to know. */
const own = (): Own => (known ??= ask())
let known: Own | undefined

/** Of this process: at most 40 of the characters `0-9`, `a-z` and `-`. No other process has had it or will ever have it. */
export const self = (): string => own().identity

/** Whether a text has the form of an identity. */
export const isIdentity = (text: string): boolean => /^[0-9a-z]{1,13}-[0-9a-z]{1,8}-[0-9a-z]{1,14}$/.test(text)

/** Nobody has the number: neither a process that runs nor one that was stopped. */
const isFree = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return false
  } catch (error) {
    return codeOf(error) === "ESRCH"
  }
}

/** Ended, with not one thread left, and only not yet asked after by its parent. */
const hasEnded = (fields: ReadonlyArray<string>): boolean =>
  (fields[STATE] === "Z" || fields[STATE] === "X") && Number(fields[THREADS]) <= 1

/**
 * Whether the process has ended. `undefined` where that cannot be told: the process is another machine's or container's, or somebody
 * has its number and the system does not say since when.
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
  // Without an answer the owner of /proc hides other people's processes, or the process ends at this moment.
  return status === undefined ? undefined : asText(status.fields[STARTED]) !== started || hasEnded(status.fields)
}

/** A machine and the time since it was started, by which a process of an earlier boot is known to have ended. */
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

/** Returns the boot of this machine; `undefined` where the system does not tell one boot from another. */
export const boot = (): Boot | undefined => (knownBoot ??= { boot: askBoot() }).boot
let knownBoot: { readonly boot: Boot | undefined } | undefined
