/**
 * Makes a short text that identifies this process and fits into a file name. Tests whether the process that a text
 * identifies has ended.
 *
 * The system reuses pids. So the identity consists of three parts: the scope of the pid (one boot of one kernel, one
 * pid namespace), the pid, and the process's start time.
 */
import type * as NodeFs from "node:fs"
import type * as NodeOs from "node:os"
import { codeOf } from "../model/realms.ts"

const fs = (): typeof NodeFs => process.getBuiltinModule("node:fs")
const os = (): typeof NodeOs => process.getBuiltinModule("node:os")

const exhaustedCodes: ReadonlySet<unknown> = new Set(["EMFILE", "ENFILE"])

const tryRead = (read: () => string): string | undefined => {
  try {
    return read()
  } catch {
    return undefined
  }
}

/**
 * Returns `undefined` if the read fails. Throws if descriptors are exhausted, because callers would otherwise cache the
 * result of this temporary failure.
 */
const readUnlessExhausted = (read: () => string): string | undefined => {
  try {
    return read()
  } catch (error) {
    if (exhaustedCodes.has(codeOf(error))) throw error
    return undefined
  }
}

interface Status {
  readonly pid: number
  readonly fields: ReadonlyArray<string>
}

const statusOf = (which: number | "self", readWith = tryRead): Status | undefined => {
  const text = readWith(() => fs().readFileSync(`/proc/${which}/stat`, "latin1"))
  return text === undefined
    ? undefined
    : { pid: Number.parseInt(text, 10), fields: text.slice(text.lastIndexOf(")") + 2).split(" ") }
}

const [STATE, THREADS, STARTED] = [0, 17, 19] as const

const toBase36 = (number: string | undefined): string => BigInt(number ?? "0").toString(36)

/** Computes the 64-bit FNV-1a hash, which needs no module. */
const hashText = (text: string): string => {
  let hash = 0xcbf29ce484222325n
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash.toString(36)
}

interface OwnIdentity {
  /** True if `/proc` shows the pid namespace of this process. A container may have the host's `/proc` instead. */
  readonly hasOwnProc: boolean
  readonly pidScope: string
  readonly identity: string
}

const computeOwn = (): OwnIdentity => {
  const status = statusOf("self", readUnlessExhausted)
  const hasOwnProc = status?.pid === process.pid
  const pidScope = hashText(
    JSON.stringify(
      hasOwnProc
        ? [
            readUnlessExhausted(() => fs().readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim()),
            readUnlessExhausted(() => fs().readlinkSync("/proc/self/ns/pid")),
            readUnlessExhausted(() => fs().readlinkSync("/proc/self/ns/time"))
          ]
        : [os().hostname(), process.platform]
    )
  )
  const started = hasOwnProc ? toBase36(status.fields[STARTED]) : "0"
  return { hasOwnProc, pidScope, identity: `${pidScope}-${process.pid.toString(36)}-${started}` }
}

const ownIdentity = (): OwnIdentity => (cachedOwn ??= computeOwn())
let cachedOwn: OwnIdentity | undefined

/**
 * Returns the identity of this process: at most 40 characters of `0-9`, `a-z` and `-`. No other process has the same
 * identity, if the system shows start times.
 */
export const self = (): string => ownIdentity().identity

export const isIdentity = (text: string): boolean => /^[0-9a-z]{1,13}-[0-9a-z]{1,8}-[0-9a-z]{1,14}$/.test(text)

const isPidFree = (pid: number): boolean => {
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
 * Returns `undefined` if the state is unknown, for example because the process belongs to another machine or container. The
 * state is also unknown if the system does not show start times, which tell apart two processes with the same pid.
 */
export const isDead = (identity: string): boolean | undefined => {
  const { hasOwnProc, pidScope } = ownIdentity()
  if (identity === self()) return false
  const [identityScope, number, started] = identity.split("-")
  if (identityScope !== pidScope || number === undefined || !isIdentity(identity)) return undefined
  const pid = Number.parseInt(number, 36)
  if (isPidFree(pid)) return true
  if (!hasOwnProc) return undefined
  const status = statusOf(pid)
  // If there is no status, /proc hides other users' processes, or the process is ending right now.
  return status === undefined ? undefined : toBase36(status.fields[STARTED]) !== started || hasEnded(status.fields)
}

/** A machine and its current boot. A process of an earlier boot has certainly ended. */
export interface Boot {
  readonly machine: string
  readonly boot: string
}

const readBoot = (): Boot | undefined => {
  const boot = tryRead(() => fs().readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim())
  const machine = tryRead(() => fs().readFileSync("/etc/machine-id", "latin1").trim())
  return boot === undefined || machine === undefined || machine === ""
    ? undefined
    : { boot, machine: hashText(JSON.stringify([machine, os().hostname()])) }
}

export const boot = (): Boot | undefined => (cachedBoot ??= { boot: readBoot() }).boot
let cachedBoot: { readonly boot: Boot | undefined } | undefined
