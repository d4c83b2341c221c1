/** The lookups and failures that all calls of `NodeFs` share. Paths are resolved as POSIX does, with "/" as the root. */
import * as Effect from "effect/Effect"
import { make as makeBridge, maskMode } from "../../filesystem/platform/bridge.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { Action } from "../../filesystem/operations/call.ts"
import type { Resolved } from "../../engine/resolve.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type FsError, FsError as FsErrors, tagsOf } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Code, errnoError, type FailedCall, fromFsError } from "../errno.ts"
import { make as makeOpenFiles, type OpenFiles } from "./openFiles.ts"

/** A failure with a system error's code. `call` replaces the call that the error names. */
export interface Refusal {
  readonly _tag: "Errno"
  readonly code: Code
  readonly call?: FailedCall | undefined
}

export type Failure = FsError | Refusal | Error

export const refuse = (code: Code, call?: FailedCall): Effect.Effect<never, Failure> =>
  Effect.fail({ _tag: "Errno", code, call })

const ownTags = tagsOf(FsErrors)

const isFsError = (failure: Failure): failure is FsError =>
  "_tag" in failure && ownTags.has(failure._tag) && "operation" in failure

export const toNodeError = (failure: Failure, call: FailedCall): Error => {
  if (isFsError(failure)) return fromFsError(failure, call)
  return "_tag" in failure && failure._tag === "Errno" && "code" in failure
    ? errnoError(failure.code, failure.call ?? call)
    : (failure as Error)
}

/** Makes the failures of an effect name the given system call, not the call that contains the effect. */
export const naming = <A>(effect: Effect.Effect<A, Failure>, call: FailedCall): Effect.Effect<A, Failure> =>
  Effect.mapError(effect, (failure): Failure =>
    isFsError(failure)
      ? fromFsError(failure, call)
      : "_tag" in failure && failure._tag === "Errno"
        ? { ...failure, call }
        : failure
  )

/** Converts the failures of an effect to Node's errors of the system call. */
export const named = <A>(
  syscall: string,
  effect: Effect.Effect<A, Failure>,
  path?: string,
  dest?: string
): Effect.Effect<A, Error> => Effect.mapError(effect, (failure) => toNodeError(failure, { syscall, path, dest }))

export interface Entry {
  readonly path: FsPath.FsPath
  readonly stat: FileStat
}

export interface Core {
  readonly fs: Algebra
  readonly openFiles: OpenFiles
  readonly hasAttributes: boolean
  readonly isWritable: (path: FsPath.FsPath) => boolean
  /**
   * Finds the entry at a path, which may be missing. Fails if a component is not a directory, or if the path ends with
   * a slash and the entry is not a directory.
   */
  readonly lookUp: (path: string, follow: boolean, actions?: ReadonlyArray<Action>) => Effect.Effect<Resolved, Failure>
  readonly require: (path: string, follow: boolean, actions?: ReadonlyArray<Action>) => Effect.Effect<Entry, Failure>
  /** Finds an entry that the call may create, and fails if its parent is missing. */
  readonly lookUpCreatable: (path: string, follow: boolean, actions?: ReadonlyArray<Action>) => Effect.Effect<Resolved, Failure>
  /**
   * Finds the entry that a call creates, renames or removes, and fails if its parent is missing. Does not follow a
   * symlink at the path, even if the path ends with a slash. The caller checks the slash.
   */
  readonly lookUpName: (path: string, actions: ReadonlyArray<Action>) => Effect.Effect<Resolved, Failure>
  /** Sets the mode of a new entry. Omits bits that the default mode of the backend lacks, as a umask would. */
  readonly applyMode: (path: FsPath.FsPath, mode: number) => Effect.Effect<void, FsError>
}

const writeActions: ReadonlyArray<Action> = ["write"]

const endsAsDirectory = (path: string): boolean => /(?:^|\/)\.{0,2}$/.test(path)

export const make = (fs: Algebra): Core => {
  const bridge = makeBridge(fs)
  const openFiles = makeOpenFiles(fs)

  const find = (path: string, follow: boolean, actions: ReadonlyArray<Action> | undefined) =>
    (follow ? bridge.lookUp : bridge.lookUpLink)("lookUp", path, actions)

  /**
   * Resolves "..". After a symlink, ".." leads to the parent of the directory that the symlink leads to. Fails if the directory
   * before ".." does not exist.
   */
  const withoutUps = Effect.fnUntraced(function* (path: string): Effect.fn.Return<string, Failure> {
    let at = ""
    for (const segment of path.split("/")) {
      if (segment === "" || segment === ".") continue
      if (segment !== "..") {
        at = at === "" ? segment : `${at}/${segment}`
        continue
      }
      const { isBlocked, path: real, stat } = yield* find(at, true, undefined)
      if (stat?.isDirectory !== true) return yield* refuse(stat === undefined && !isBlocked ? "ENOENT" : "ENOTDIR")
      // The root has no parent that a program may see.
      if (real === FsPath.root) return yield* refuse("EACCES")
      at = FsPath.parent(real) === FsPath.root ? "" : FsPath.parent(real)
    }
    return at === "" ? "/" : at
  })

  const lookUp: Core["lookUp"] = (given, follow, actions) => {
    if (given === "") return refuse("ENOENT")
    const asDirectory = endsAsDirectory(given)
    const clean = given.includes("..") && given.split("/").includes("..") ? withoutUps(given) : Effect.succeed(given)
    return Effect.flatMap(clean, (path) => {
      const found = find(path, follow || asDirectory, actions)
      return Effect.flatMap(found, (resolved): Effect.Effect<Resolved, Failure> => {
        if (resolved.isBlocked) return refuse("ENOTDIR")
        if (resolved.isUnreachable === true) return refuse("ENOENT")
        if (asDirectory && resolved.stat !== undefined && !resolved.stat.isDirectory) return refuse("ENOTDIR")
        return openFiles.isQuiet()
          ? Effect.succeed(resolved)
          : Effect.flatMap(openFiles.settle(resolved.path), (changed) => (changed ? found : Effect.succeed(resolved)))
      })
    })
  }

  const lookUpCreatable: Core["lookUpCreatable"] = (path, follow, actions = writeActions) =>
    Effect.tap(lookUp(path, follow, actions), (target) =>
      target.stat !== undefined
        ? Effect.void
        : Effect.flatMap(find(FsPath.parent(target.path), true, actions), (parent) =>
            parent.stat === undefined
              ? refuse(parent.isBlocked ? "ENOTDIR" : "ENOENT")
              : parent.stat.isDirectory
                ? Effect.void
                : refuse("ENOTDIR")
          )
    )

  return {
    fs,
    openFiles,
    hasAttributes: fs.port.attributes !== undefined,
    isWritable: (path) => bridge.isPermitted("write", path),
    lookUp,
    lookUpCreatable,
    lookUpName: (path, actions) => lookUpCreatable(path === "" ? path : path.replace(/(?<=[^/])\/+$/, ""), false, actions),
    require: (path, follow, actions) =>
      Effect.flatMap(lookUp(path, follow, actions), ({ path, stat }) =>
        stat === undefined ? refuse("ENOENT") : Effect.succeed({ path, stat })
      ),
    applyMode: (path, mode) =>
      fs.port.attributes === undefined
        ? Effect.void
        : Effect.flatMap(fs.stat(path), (made) => fs.setAttributes(path, { mode: maskMode(mode & 0o777, made) }))
  }
}
