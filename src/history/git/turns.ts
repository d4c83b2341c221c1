/** Locks of a store. A process that uses a store creates a file in the directory `turns` of the store. */
import { join } from "../../runtime/node.ts"
import * as ProcessLock from "../../runtime/processLock.ts"

/**
 * The role of a lock.
 *
 * A `holder` relies on every object that it has seen in the store. A `collector` repacks objects; only one process at a time
 * is a collector. The collector is also a `remover` during the few milliseconds in which it deletes objects.
 */
export type Role = "holder" | "collector" | "remover"

export type StoreLock = ProcessLock.Held

const lock = ProcessLock.make({
  ...ProcessLock.rolesOf("holder", "collector", "remover"),
  leaseMillis: 120_000,
  refreshMillis: 20_000
})

export const directoryOf = (store: string): string => join(store, "turns")

/** Creates a lock and refreshes it until `release`. Does not wait for other locks; see `findOther`. Throws system errors. */
export const acquire = (store: string, role: Role): StoreLock => lock.add(directoryOf(store), role)

export const release = lock.remove

/** Returns the file name of a lock in this role other than `self`, or `undefined` if there is none. */
export const findOther = (store: string, role: Role, self: StoreLock): string | undefined =>
  lock.others(directoryOf(store), self, role).at(-1)?.name

export const isHeldByOther = (store: string, role: Role, self: StoreLock): boolean => findOther(store, role, self) !== undefined
