/**
 * Staged and replaced entries are in one hidden directory at the root, and in one on every other disk in the tree.
 *
 * So renames are enough to put them in place.
 */
import * as FsPath from "../../model/FsPath.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

/** A part of the tree within which renames work. */
export interface Region {
  readonly path: FsPath.FsPath
  /** True if renames work only inside `path` itself; staged entries are then directly in `path`. */
  readonly isFlat: boolean
}

export type Side = "new" | "old"

/** Makes the name of a transaction's staging directories, which is in progress until `TemporaryNames.forget`. */
export const makeToken = (): string => TemporaryNames.make("exchange")

export const stagingIn = (region: Region, token: string): FsPath.FsPath => FsPath.join(region.path, token)

export const sideIn = (region: Region, token: string, side: Side): FsPath.FsPath => FsPath.join(stagingIn(region, token), side)

export const slotIn = (region: Region, token: string, side: Side, slot: number): FsPath.FsPath =>
  region.isFlat
    ? FsPath.join(region.path, TemporaryNames.derive(token, `${side}${slot}`))
    : FsPath.join(sideIn(region, token, side), String(slot))

const slotPart = /-((?:new|old)[0-9]+)-[0-9a-f]{32}\.tmp$/

export const isSlotOf = (token: string, name: string): boolean => {
  const part = slotPart.exec(name)?.[1]
  return part !== undefined && TemporaryNames.derive(token, part) === name
}

export const probeOf = (token: string): string => TemporaryNames.derive(token, "probe")
