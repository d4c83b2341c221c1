/**
 * Where a transaction keeps what is not yet, or no longer, in its place: one hidden directory at the root, so that a rename is all that
 * is left to do, and one more in every other disk that lies in the tree.
 */
import * as FsPath from "../../model/FsPath.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

/** A part of the tree within which a rename is enough. */
export interface Region {
  /** The directory that holds the hidden one. */
  readonly path: FsPath.FsPath
  /** Where not even a directory of the same directory can be renamed from: what is hidden stands in `path` itself. */
  readonly isFlat: boolean
}

/** Of what is to come, and of what has gone. */
export type Side = "new" | "old"

/** Makes the name of the staging directories of a transaction, which is in progress until `TemporaryNames.forget`. */
export const makeToken = (): string => TemporaryNames.make("exchange")

export const stagingIn = (region: Region, token: string): FsPath.FsPath => FsPath.join(region.path, token)

export const sideIn = (region: Region, token: string, side: Side): FsPath.FsPath => FsPath.join(stagingIn(region, token), side)

export const slotIn = (region: Region, token: string, side: Side, slot: number): FsPath.FsPath =>
  region.isFlat
    ? FsPath.join(region.path, TemporaryNames.derive(token, `${side}${slot}`))
    : FsPath.join(sideIn(region, token, side), String(slot))

const slotPart = /-((?:new|old)[0-9]+)-[0-9a-f]{32}\.tmp$/

/** Of the slots that a flat region has. */
export const isSlotOf = (token: string, name: string): boolean => {
  const part = slotPart.exec(name)?.[1]
  return part !== undefined && TemporaryNames.derive(token, part) === name
}

/** A name by which two directories are tried for being on one disk. */
export const probeOf = (token: string): string => TemporaryNames.derive(token, "probe")
