/**
 * The names of temporary files and directories.
 *
 * A name contains the identity of its process and a code that only this installation can make. So a stranger's file
 * with a name of this form is never mistaken for a temporary file of this library, and is neither hidden nor removed.
 *
 * A name has one of three states. The age of the file never matters.
 *
 * - in progress: this process has not called `forget` for the name, or the other process that made the name still runs
 * - leftover: the work or the process that made the name has ended
 * - foreign: every other name of this form, such as one from another machine or container
 */
import * as Effect from "effect/Effect"
import * as Installation from "./installation.ts"
import { isNode, randomBytes } from "./node.ts"
import * as Identity from "./processIdentity.ts"

const randomHex = (bytes: number): string => randomBytes(bytes).toString("hex")

const getThreadMark = (): string => (threadMark ??= randomHex(3))
let threadMark: string | undefined

const namesInUse = new Set<string>()

const sign = (signed: string): string => `${signed}-${Installation.signName(signed)}.tmp`

let localCount = 0

const makeLocalName = (): string => {
  const name = `.~fsa-${(localCount++).toString(36)}.tmp`
  namesInUse.add(name)
  return name
}

/** Makes a name that is in progress until `forget`. `kind` is a purpose in lower-case letters. */
export const make = (kind?: string): string => {
  if (!isNode) return makeLocalName()
  const random = getThreadMark() + randomHex(6)
  const signed = `.~fsa-${kind === undefined ? "" : `${kind}-`}${Identity.self()}-${random}`
  const name = sign(signed)
  namesInUse.add(name)
  return name
}

export const forget = (name: string): void => void namesInUse.delete(name)

export const withNameSync = <A>(use: (name: string) => A): A => {
  const name = make()
  try {
    return use(name)
  } finally {
    forget(name)
  }
}

export const withName = <A, E, R>(use: (name: string) => Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => make()),
    use,
    (name) => Effect.sync(() => forget(name))
  )

const namePattern =
  /^((\.~fsa-(?:([a-z]+)-)?([0-9a-z]{1,13}-[0-9a-z]{1,8}-[0-9a-z]{1,14})-([0-9a-f]{18}))(-[a-z]+[0-9]*)?)-([0-9a-f]{32})\.tmp$/

/**
 * Returns a name for a part of an entry. The name is in progress as long as the entry's own name. `part` consists of
 * letters and then digits.
 */
export const derivePartName = (name: string, part: string): string => sign(`${namePattern.exec(name)?.[2] ?? name}-${part}`)

export interface VerifiedName {
  readonly owner: string
  readonly kind: string | undefined
  readonly isOwnProcess: boolean
  readonly isPart: boolean
  readonly state: "in progress" | "leftover"
}

const localName: VerifiedName = { owner: "", kind: undefined, isOwnProcess: true, isPart: false, state: "in progress" }

export const verify = (name: string): VerifiedName | undefined => {
  if (!name.startsWith(".~fsa-")) return undefined
  if (!isNode) return namesInUse.has(name) ? localName : undefined
  const [, signed, base, kind, owner, random, part, code] = namePattern.exec(name) ?? []
  if (owner === undefined || !Installation.isSignatureOf(signed!, code!)) return undefined
  const isOwnProcess = owner === Identity.self()
  // A name of another thread counts as in progress, because the end of a thread cannot be detected.
  const isDead = isOwnProcess && random!.startsWith(getThreadMark()) ? !namesInUse.has(sign(base!)) : Identity.isDead(owner)
  return isDead === undefined
    ? undefined
    : { owner, kind, isOwnProcess, isPart: part !== undefined, state: isDead ? "leftover" : "in progress" }
}

/** Tests whether a name has the form of names from `make` and `derivePartName`, from any installation. */
export const hasForm = (name: string): boolean => name.startsWith(".~fsa-") && namePattern.test(name)

/**
 * Tests whether a name has the form of names from `make` without a kind, and is from another installation, machine or
 * container. Whether the work of its process has ended is unknown.
 */
export const isForeign = (name: string): boolean => {
  const [, , , kind, owner, , part] = namePattern.exec(name) ?? []
  return owner !== undefined && kind === undefined && part === undefined && verify(name) === undefined
}

export const isInProgress = (name: string): boolean => verify(name)?.state === "in progress"

/**
 * Tests whether a name is a leftover of this installation. An entry with such a name may be removed.
 *
 * A part of a transaction is not a leftover in this sense, because it can be the only copy of a file. Only the record
 * of the transaction decides whether to remove it.
 */
export const isLeftover = (name: string): boolean => {
  const verified = verify(name)
  return verified?.state === "leftover" && !verified.isPart
}

export const isOwnName = (name: string): boolean => verify(name) !== undefined

const hasSegment = (path: string, test: (name: string) => boolean): boolean =>
  path.includes(".~fsa-") && path.split("/").some(test)

export const hasOwnName = (path: string): boolean => hasSegment(path, isOwnName)

/** Tests whether a path contains a name in progress. Ignores case, for case-insensitive disks. */
export const hasNameInProgress = (path: string): boolean => path.includes(".~") && hasSegment(path.toLowerCase(), isInProgress)
