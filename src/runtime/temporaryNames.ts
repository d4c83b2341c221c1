/**
 * The names of temporary files and directories. A name says which process made it and carries a code that only this installation can
 * make, so that a file of a stranger with a name of this form is never taken for one of ours: it is neither hidden nor removed.
 *
 * A name is in progress while the work that made it has not called `forget`, or while the other process that made it runs. It is a
 * leftover when that work or process has ended. Every other name of this form is a stranger's, also one of a process that cannot be
 * looked up here because it runs on another machine or in another container. The age of a file decides nothing.
 */
import * as Effect from "effect/Effect"
import * as Installation from "./installation.ts"
import { isNode, randomBytes } from "./node.ts"
import * as Identity from "./processIdentity.ts"

const randomHex = (bytes: number): string => randomBytes(bytes).toString("hex")

/** Marks the names of this copy of the module, of which there is one in each thread. */
const thread = (): string => (threadMark ??= randomHex(3))
let threadMark: string | undefined

const inUse = new Set<string>()

const sign = (signed: string): string => `${signed}-${Installation.codeOf(signed)}.tmp`

let locals = 0

/** Elsewhere than in Node all files are in memory, where no other process sees a name. */
const makeLocal = (): string => {
  const name = `.~fsa-${(locals++).toString(36)}.tmp`
  inUse.add(name)
  return name
}

/** Makes a name that is in progress until `forget`. `kind`: lower-case letters that say what the name is for. */
export const make = (kind?: string): string => {
  if (!isNode) return makeLocal()
  const random = thread() + randomHex(6)
  const signed = `.~fsa-${kind === undefined ? "" : `${kind}-`}${Identity.self()}-${random}`
  const name = sign(signed)
  inUse.add(name)
  return name
}

/** Ends the progress of a name. A file that still has it is a leftover. */
export const forget = (name: string): void => void inUse.delete(name)

/** Runs a synchronous step with a name that is in progress meanwhile. */
export const during = <A>(use: (name: string) => A): A => {
  const name = make()
  try {
    return use(name)
  } finally {
    forget(name)
  }
}

/** Runs an effect with a name that is in progress meanwhile. */
export const using = <A, E, R>(use: (name: string) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => make()),
    use,
    (name) => Effect.sync(() => forget(name))
  )

const form =
  /^((\.~fsa-(?:([a-z]+)-)?([0-9a-z]{1,13}-[0-9a-z]{1,8}-[0-9a-z]{1,14})-([0-9a-f]{18}))(-[a-z]+[0-9]*)?)-([0-9a-f]{32})\.tmp$/

/** Returns the name of a part of what has a name of ours, which is in progress as long as that is. `part`: letters, then digits. */
export const derive = (name: string, part: string): string => sign(`${form.exec(name)?.[2] ?? name}-${part}`)

/** A name that this installation made. */
export interface Verified {
  /** The process that made it, for `processIdentity`. */
  readonly owner: string
  readonly kind: string | undefined
  readonly isOwnProcess: boolean
  /** Whether `derive` made it. */
  readonly isPart: boolean
  readonly state: "in progress" | "leftover"
}

const local: Verified = { owner: "", kind: undefined, isOwnProcess: true, isPart: false, state: "in progress" }

/** Returns what a name of ours says; `undefined` for a stranger's. */
export const verify = (name: string): Verified | undefined => {
  if (!name.startsWith(".~fsa-")) return undefined
  if (!isNode) return inUse.has(name) ? local : undefined
  const [, signed, base, kind, owner, random, part, code] = form.exec(name) ?? []
  if (owner === undefined || !Installation.isCodeOf(signed!, code!)) return undefined
  const isOwnProcess = owner === Identity.self()
  // A name of another thread counts as in progress, since a thread's end cannot be told.
  const isDead = isOwnProcess && random!.startsWith(thread()) ? !inUse.has(sign(base!)) : Identity.isDead(owner)
  return isDead === undefined
    ? undefined
    : { owner, kind, isOwnProcess, isPart: part !== undefined, state: isDead ? "leftover" : "in progress" }
}

/** Returns whether a name has the form of those that `make` and `derive` give, whoever made it. */
export const hasForm = (name: string): boolean => name.startsWith(".~fsa-") && form.test(name)

/** Returns whether work of this installation that still runs has the name. Such an entry is hidden from every listing. */
export const isInProgress = (name: string): boolean => verify(name)?.state === "in progress"

/**
 * Returns whether work of this installation that has ended left the name behind. Such an entry may be removed. A part of a transaction
 * may not: it can be the only copy of a file, and only the record of the transaction says what becomes of it.
 */
export const isLeftover = (name: string): boolean => {
  const verified = verify(name)
  return verified?.state === "leftover" && !verified.isPart
}

/** Returns whether this installation made the name, in work that runs or has ended. */
export const isOurs = (name: string): boolean => verify(name) !== undefined

const some = (path: string, test: (name: string) => boolean): boolean => path.includes(".~fsa-") && path.split("/").some(test)

/** Returns whether a path has, or leads through, a name that this installation made. */
export const isPathOfOurs = (path: string): boolean => some(path, isOurs)

/** Returns whether a path has, or leads through, a name that is in progress, in any spelling that a disk without case takes for it. */
export const isPathInProgress = (path: string): boolean => path.includes(".~") && some(path.toLowerCase(), isInProgress)
