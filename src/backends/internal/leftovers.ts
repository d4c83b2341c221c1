/**
 * The hidden names that writes use while they work, and what becomes of them when their writer was killed: each says which process
 * made it, so whoever next lists the directory or writes in it takes away those of processes that have ended. Where nobody can tell
 * (another machine, another container on the same directory), age decides.
 */
import { randomBytes } from "node:crypto"
import * as Fs from "node:fs"
import { isTemporaryName } from "../../model/FsPath.ts"
import * as Identity from "../../runtime/processIdentity.ts"
import * as Claims from "./claims.ts"
import { look, type Place } from "./confined.ts"
import { childrenNow, isSmall } from "./hostEntries.ts"

/** Milliseconds. */
export const staleAfter = 60 * 60 * 1000

const named = /^\.~fsa-([0-9a-z-]+)-[0-9a-f]{18}\.tmp$/

/** Hidden from every listing and refused from callers. */
export const temporaryName = (): string => `.~fsa-${Identity.self()}-${randomBytes(9).toString("hex")}.tmp`

/** Those that this process is writing. */
const inUse = new Set<string>()

export const announce = (segment: string): void => void inUse.add(segment)

export const forget = (segment: string): void => void inUse.delete(segment)

/** Whether its writer has ended; `undefined` where that cannot be told. */
export const isOrphan = (segment: string): boolean | undefined => {
  if (inUse.has(segment)) return false
  const writer = named.exec(segment)?.[1]
  // Another thread of this process may have been ended.
  return writer === undefined || writer === Identity.self() ? undefined : Identity.isDead(writer)
}

/** Removes what a killed writer has left by this name; whether it did. `now`, in milliseconds, for what only its age can tell. */
export const sweep = (place: Place, segment: string, now?: number): boolean => {
  if (Claims.isClaims(segment)) return Claims.sweep(place, segment, now ?? 0)
  const orphan = isOrphan(segment)
  if (orphan === false || (orphan === undefined && now === undefined)) return false
  const at = place.at(segment)
  try {
    const found = look(at)
    if (found === undefined) return true
    if (found.isDirectory() || !(orphan === true || now! - found.mtimeMs > staleAfter)) return false
    Fs.unlinkSync(at)
    return true
  } catch {
    // It stays hidden, and whoever lists the directory next tries again.
    return false
  }
}

/** Before a file is replaced in a directory, once in a while; a large one waits until it is listed. */
export const sweepBefore = (place: Place): void => {
  if (place.isSwept) return
  place.isSwept = true
  try {
    if (!isSmall(place)) return
    for (const { name } of childrenNow(place)) if (isTemporaryName(name)) sweep(place, name)
  } catch {
    // One may be allowed to write where one may not list.
  }
}
