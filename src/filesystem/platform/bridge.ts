import * as ByteSize from "effect/ByteSize"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { File } from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import { withResolvedPath, type Resolved, resolve, resolveLink } from "../../engine/resolve.ts"
import type { FileStat, Kind } from "../../model/Entry.ts"
import type { Fault, FsError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend, Child } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Algebra } from "../Filesystem.ts"
import { type Action, type Caller, make as makeCaller, readActions, errorTags } from "../operations/call.ts"
import { badArgument, toPlatform } from "./errors.ts"

export interface Bridge {
  readonly fs: Algebra
  readonly port: Backend
  readonly isPermitted: Caller["isPermitted"]
  /** Runs a step on the port as an operation of the service, with its checks, limits and errors. */
  readonly runStep: <A>(
    method: string,
    path: string,
    run: (path: FsPath.FsPath) => Effect.Effect<A, Fault>,
    actions?: ReadonlyArray<Action>
  ) => Effect.Effect<A, FsError>
  readonly lookUp: (method: string, path: string, actions?: ReadonlyArray<Action>) => Effect.Effect<Resolved, FsError>
  /** Looks up a path. A symlink in the last name is not followed. */
  readonly lookUpLink: (method: string, path: string, actions?: ReadonlyArray<Action>) => Effect.Effect<Resolved, FsError>
  readonly children: (method: string, path: string) => Effect.Effect<ReadonlyArray<Child>, FsError>
  readonly failPlatform: (method: string, path: string, error: FsError) => Effect.Effect<never, PlatformError>
  readonly withPlatformErrors: <A, R>(
    method: string,
    path: string,
    effect: Effect.Effect<A, FsError, R>
  ) => Effect.Effect<A, PlatformError, R>
}

export const make = (fs: Algebra): Bridge => {
  const { port } = fs
  const caller: Caller = makeCaller(port)

  const runStep: Bridge["runStep"] = (method, path, run, actions = readActions) =>
    caller.call(method, path, errorTags.write, actions, run)

  /**
   * Tests whether a NotFound of ours is ENOTDIR in Node's terms. This costs a lookup, so it runs only after a failure.
   */
  const isBlocked = (path: FsPath.FsPath): Effect.Effect<boolean> =>
    Effect.match(resolve(port, path), { onFailure: () => false, onSuccess: ({ isBlocked: blocked }) => blocked })

  const failPlatform: Bridge["failPlatform"] = (method, path, error) => {
    if (error._tag !== "NotFound" && error._tag !== "InvalidPath") return Effect.fail(toPlatform(error, method, path))
    const parsed = FsPath.parse(error.path, port.rules?.policy)
    if (typeof parsed !== "string" || (error._tag === "InvalidPath" && FsPath.uncreatable(parsed) !== undefined)) {
      return Effect.fail(toPlatform(error, method, path, "BadArgument"))
    }
    return error._tag === "InvalidPath"
      ? Effect.fail(toPlatform(error, method, path))
      : Effect.flatMap(isBlocked(parsed), (blocked) =>
          Effect.fail(toPlatform(error, method, path, blocked ? "BadResource" : undefined))
        )
  }

  return {
    fs,
    port,
    isPermitted: caller.isPermitted,
    runStep,
    lookUp: (method, path, actions) => runStep(method, path, (path) => resolve(port, path), actions),
    lookUpLink: (method, path, actions) => runStep(method, path, (path) => resolveLink(port, path), actions),
    children: (method, path) =>
      runStep(method, path, (path) =>
        Effect.map(
          withResolvedPath(port, path, (at) => port.list(at)),
          (children) =>
            children.filter((child) => !TemporaryNames.isInProgress(child.name)).sort((a, b) => FsPath.compare(a.name, b.name))
        )
      ),
    failPlatform,
    withPlatformErrors: (method, path, effect) => Effect.catch(effect, (error) => failPlatform(method, path, error))
  }
}

/** Checks a `mode` argument and returns its permission bits. File type bits are ignored, as the system does. */
export const permissionBits = (method: string, mode: number): Effect.Effect<number, PlatformError> =>
  !Number.isInteger(mode) || mode < 0 || mode > 0xffff_ffff
    ? Effect.fail(badArgument(method, "the mode must be a whole number from 0 to 2^32 - 1"))
    : (mode & 0o7000) === 0
      ? Effect.succeed(mode & 0o777)
      : Effect.fail(badArgument(method, "set-user-ID, set-group-ID and sticky bits are not given here"))

/**
 * Masks the requested mode of a new entry as the backend masked its default mode.
 *
 * A file is created without execute bits, so these are masked like its read bits.
 */
export const maskMode = (mode: number, made: FileStat): number =>
  made.mode === undefined ? mode : mode & (made.isDirectory ? made.mode : made.mode | ((made.mode >> 2) & 0o111))

export const typeOf: { readonly [K in Kind]: File.Type } = {
  file: "File",
  directory: "Directory",
  symlink: "SymbolicLink",
  // The port does not distinguish FIFOs, sockets and devices.
  other: "Unknown"
}

const typeBits: { readonly [K in Kind]: number } = { file: 0o100000, directory: 0o040000, symlink: 0o120000, other: 0 }

const defaultMode: { readonly [K in Kind]: number } = { file: 0o644, directory: 0o755, symlink: 0o777, other: 0o644 }

const dateOf = (time: DateTime.Utc | undefined): Option.Option<Date> =>
  Option.map(Option.fromNullishOr(time), DateTime.toDateUtc)

/** Converts a stat. Owner, device, number of hard links and access time are unknown. */
export const infoOf = (stat: FileStat): File.Info => ({
  type: typeOf[stat.kind],
  mtime: dateOf(stat.modifiedAt),
  atime: Option.none(),
  birthtime: dateOf(stat.createdAt),
  dev: 0n,
  ino: Option.none(),
  mode: typeBits[stat.kind] | (stat.mode ?? defaultMode[stat.kind]),
  nlink: Option.none(),
  uid: Option.none(),
  gid: Option.none(),
  rdev: Option.none(),
  size: ByteSize.bytes(stat.sizeBytes),
  blksize: Option.none(),
  blocks: Option.none()
})
