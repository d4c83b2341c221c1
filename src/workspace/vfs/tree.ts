/**
 * A directory that is, or was, the filesystem of a session. A replaced directory is closed and removed when its last call has
 * ended.
 */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import { Fs, platform } from "../../runtime/node.ts"
import * as PosixHost from "../../backends/PosixHost.ts"
import * as WindowsHost from "../../backends/WindowsHost.ts"
import { type Fault, type FsError, toFault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend, Info } from "../../port/Backend.ts"
import * as Temporary from "../temporary.ts"
import type { Files } from "./files.ts"

const makeHost = platform === "win32" ? WindowsHost.make : PosixHost.make

export interface ParentDirectory {
  readonly path: string
  readonly info: Info
  readonly hasAttributes: boolean
}

/** Opens the parent directory to read its properties. Fails if a filesystem cannot be created in it. */
export const readParentDirectory = (directory: string): Effect.Effect<ParentDirectory, FsError> =>
  Effect.scoped(
    Effect.map(makeHost({ root: directory }), ({ attributes, info }) => ({
      path: Fs.realpathSync.native(directory),
      info,
      hasAttributes: attributes !== undefined
    }))
  )

export interface Tree {
  readonly path: string
  readonly port: Backend
  files: Files
  readonly vacatedDirectories: Set<FsPath>
  users: number
  isRetired: boolean
  readonly dispose: Effect.Effect<void>
}

/** Creates a directory, fills it with `fill`, and opens it. Leaves no directory if this fails or `fill` is interrupted. */
export const make = (
  parentScope: Scope.Scope,
  parentDirectory: ParentDirectory,
  files: Files,
  fill: (path: string) => Effect.Effect<void, Fault>
): Effect.Effect<Tree, Fault> =>
  Effect.uninterruptible(
    Effect.flatMap(Temporary.makeFilled(parentScope, parentDirectory.path, "vfs", fill), ({ path, remove: dispose, scope }) =>
      makeHost({ root: path }).pipe(
        Scope.provide(scope),
        Effect.mapBoth({
          onFailure: toFault,
          onSuccess: (port): Tree => ({ path, port, files, vacatedDirectories: new Set(), users: 0, isRetired: false, dispose })
        }),
        Effect.onError(() => dispose)
      )
    )
  )

/** Marks the tree as replaced. Disposes of it now, or when its last call ends. */
export const retire = (tree: Tree): Effect.Effect<void> =>
  Effect.suspend(() => {
    tree.isRetired = true
    return tree.users === 0 ? tree.dispose : Effect.void
  })

export const enter = (tree: Tree): Tree => {
  tree.users++
  return tree
}

export const leave = (tree: Tree): Effect.Effect<void> =>
  Effect.suspend(() => (--tree.users === 0 && tree.isRetired ? tree.dispose : Effect.void))
