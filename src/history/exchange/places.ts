/**
 * Where an exchange keeps what is not yet, or no longer, in its place: one hidden directory at the root, so that a rename is all that
 * is left to do, and one more in every other disk that lies in the tree. The name says which process made it.
 */
import { randomBytes } from "node:crypto"
import * as FsPath from "../../model/FsPath.ts"
import * as Identity from "../../runtime/processIdentity.ts"

/** A part of the tree within which a rename is enough. */
export interface Region {
  /** The directory that holds the hidden one. */
  readonly path: FsPath.FsPath
  /** Where not even a directory of the same directory can be renamed from: what is hidden stands in `path` itself. */
  readonly isFlat: boolean
}

/** Of what is to come, and of what has gone. */
export type Side = "new" | "old"

export const makeToken = (): string => `.~fsa-exchange-${Identity.self()}-${randomBytes(9).toString("hex")}.tmp`

const named = /^\.~fsa-[0-9a-z-]+\.tmp$/

/** Whether a record may call its staging directories by this name. */
export const isToken = (name: string): boolean => named.test(name)

const stem = (token: string): string => token.slice(0, -".tmp".length)

export const stagingIn = (region: Region, token: string): FsPath.FsPath => FsPath.join(region.path, token)

export const sideIn = (region: Region, token: string, side: Side): FsPath.FsPath => FsPath.join(stagingIn(region, token), side)

export const slotIn = (region: Region, token: string, side: Side, slot: number): FsPath.FsPath =>
  region.isFlat
    ? FsPath.join(region.path, `${stem(token)}-${side}-${slot}.tmp`)
    : FsPath.join(sideIn(region, token, side), String(slot))

/** Of the slots that a flat region has. */
export const isSlotOf = (token: string, name: string): boolean =>
  name !== token && name.startsWith(`${stem(token)}-`) && FsPath.isTemporaryName(name)

/** A name by which two directories are tried for being on one disk. */
export const probeOf = (token: string): string => `${stem(token)}-probe.tmp`
