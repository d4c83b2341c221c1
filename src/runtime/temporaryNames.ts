/**
 * The names of temporary files and directories.
 *
 * A name contains the identity of its process and a code that only this installation can make. So a stranger's file
 * with a name of this form is never mistaken for ours: it is neither hidden nor removed.
 *
 * A name is in progress until its work calls `forget`, or while another process that made it runs. It is a leftover
 * when that work or process has ended. Every other name of this form is foreign, also one of a process on another
 * machine or in another container. The age of a file never matters.
 */
import * as Effect from "effect/Effect"
import * as Installation from "./installation.ts"
import { isNode, randomBytes } from "./node.ts"
import * as Identity from "./processIdentity.ts"

const randomHex = (bytes: number): string => randomBytes(bytes).toString("hex")

const thread = (): string => (threadMark ??= randomHex(3))
let threadMark: string | undefined

const inUse = new Set<string>()

const sign = (signed: string): string => `${signed}-${Installation.codeOf(signed)}.tmp`

let locals = 0

const makeLocal = (): string => {
  const name = `.~fsa-${(locals++).toString(36)}.tmp`
  inUse.add(name)
  return name
}

/** Makes a name that is in progress until `forget`. `kind` is a purpose in lower-case letters. */
export const make = (kind?: string): string => {
  if (!isNode) return makeLocal()
  const random = thread() + randomHex(6)
  const signed = `.~fsa-${kind === undefined ? "" : `${kind}-`}${Identity.self()}-${random}`
  const name = sign(signed)
  inUse.add(name)
  return name
}

export const forget = (name: string): void => void inUse.delete(name)

export const during = <A>(use: (name: string) => A): A => {
  const name = make()
  try {
    return use(name)
  } finally {
    forget(name)
  }
}

export const using = <A, E, R>(use: (name: string) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => make()),
    use,
    (name) => Effect.sync(() => forget(name))
  )

const form =
  /^((\.~fsa-(?:([a-z]+)-)?([0-9a-z]{1,13}-[0-9a-z]{1,8}-[0-9a-z]{1,14})-([0-9a-f]{18}))(-[a-z]+[0-9]*)?)-([0-9a-f]{32})\.tmp$/

/** Returns a name for a part of an entry, in progress as long as the entry's name. `part` is letters, then digits. */
export const derive = (name: string, part: string): string => sign(`${form.exec(name)?.[2] ?? name}-${part}`)

export interface Verified {
  readonly owner: string
  readonly kind: string | undefined
  readonly isOwnProcess: boolean
  readonly isPart: boolean
  readonly state: "in progress" | "leftover"
}

const local: Verified = { owner: "", kind: undefined, isOwnProcess: true, isPart: false, state: "in progress" }

export const verify = (name: string): Verified | undefined => {
  if (!name.startsWith(".~fsa-")) return undefined
  if (!isNode) return inUse.has(name) ? local : undefined
  const [, signed, base, kind, owner, random, part, code] = form.exec(name) ?? []
  if (owner === undefined || !Installation.isCodeOf(signed!, code!)) return undefined
  const isOwnProcess = owner === Identity.self()
  // A name of another thread counts as in progress, because the end of a thread cannot be detected.
  const isDead = isOwnProcess && random!.startsWith(thread()) ? !inUse.has(sign(base!)) : Identity.isDead(owner)
  return isDead === undefined
    ? undefined
    : { owner, kind, isOwnProcess, isPart: part !== undefined, state: isDead ? "leftover" : "in progress" }
}

/** Tests whether a name has the form of names from `make` and `derive`, from any installation. */
export const hasForm = (name: string): boolean => name.startsWith(".~fsa-") && form.test(name)

export const isInProgress = (name: string): boolean => verify(name)?.state === "in progress"

/**
 * Tests whether ended work of this installation left the name behind. Such an entry may be removed.
 *
 * A part of a transaction does not count: it can be the only copy of a file, and only the record of the transaction
 * decides about it.
 */
export const isLeftover = (name: string): boolean => {
  const verified = verify(name)
  return verified?.state === "leftover" && !verified.isPart
}

export const isOurs = (name: string): boolean => verify(name) !== undefined

const some = (path: string, test: (name: string) => boolean): boolean => path.includes(".~fsa-") && path.split("/").some(test)

export const isPathOfOurs = (path: string): boolean => some(path, isOurs)

/** Tests whether a path contains a name in progress, in any case, for disks that ignore case. */
export const isPathInProgress = (path: string): boolean => path.includes(".~") && some(path.toLowerCase(), isInProgress)
