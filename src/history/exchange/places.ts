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

export type SlotSide = "new" | "old"

/** Makes the name of a transaction's staging directories, which is in progress until `TemporaryNames.forget`. */
export const makeToken = (): string => TemporaryNames.make("exchange")

export const stagingDirectory = (region: Region, token: string): FsPath.FsPath => FsPath.join(region.path, token)

export const sideDirectory = (region: Region, token: string, side: SlotSide): FsPath.FsPath =>
  FsPath.join(stagingDirectory(region, token), side)

export const slotPath = (region: Region, token: string, side: SlotSide, slot: number): FsPath.FsPath =>
  region.isFlat
    ? FsPath.join(region.path, TemporaryNames.derivePartName(token, `${side}${slot}`))
    : FsPath.join(sideDirectory(region, token, side), String(slot))

const slotNamePattern = /-((?:new|old)[0-9]+)-[0-9a-f]{32}\.tmp$/

export const isSlotName = (token: string, name: string): boolean => {
  const part = slotNamePattern.exec(name)?.[1]
  return part !== undefined && TemporaryNames.derivePartName(token, part) === name
}

export const probeName = (token: string): string => TemporaryNames.derivePartName(token, "probe")
