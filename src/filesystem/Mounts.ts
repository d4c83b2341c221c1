/**
 * Mounts a filesystem in a directory of another. The whole appears as one tree for paths, searches, copies and
 * symlinks.
 *
 * Only a move between the sides has to copy.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { mkdir } from "../engine/directories.ts"
import { resolve } from "../engine/resolve.ts"
import type { AlreadyExists, Fault, NotADirectory, StatError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { withSameCaseRule } from "./caseless.ts"
import { type Algebra, make } from "./Filesystem.ts"
import * as Port from "./mounts/port.ts"
import * as Caller from "./operations/call.ts"

const rootMountFault: Fault = { _tag: "AccessDenied", why: "root" }
const noSpaceFault: Fault = { _tag: "IoError", code: "ENOSPC", detail: "there is no space left for the directory to mount on" }

const mountErrorTags: Caller.ErrorTags = new Set([...Caller.errorTags.stat, "NotADirectory", "AlreadyExists"])

/** Returns the mount point. Follows symlinks, and creates the directory if the path is free. */
const resolveMountPoint = (caller: Caller.Caller, path: FsPath.FsPath): Effect.Effect<FsPath.FsPath, Fault> => {
  const { isPermitted: may, port } = caller
  if (path === FsPath.root) return Effect.fail(rootMountFault)
  return Effect.flatMap(resolve(port, path), ({ path: at, stat }) => {
    if (stat?.kind === "directory") return at === FsPath.root ? Effect.fail(rootMountFault) : Effect.succeed(at)
    if (stat !== undefined) return Effect.fail(Caller.notADirectory)
    if (!may("write", at)) return Effect.fail(Caller.readOnly)
    return Effect.as(
      Effect.mapError(mkdir(port, path, { parents: true, existOk: true }), (fault) =>
        fault._tag === "DiskFull" ? noSpaceFault : fault
      ),
      at
    )
  })
}

/**
 * Mounts `mounted` in the directory `at`, which is created with its parents if it is missing.
 *
 * The old content of the directory is hidden while the result is used. Neither the directory nor one above it can be
 * deleted, moved or replaced: AccessDenied `root`. Mounts can be nested.
 *
 * - each side keeps its own permissions, limits and locks
 * - the path policy is that of the outer filesystem, symlinks get the stricter treatment of the two, and names are
 * case-sensitive only if both sides are
 * - a symlink resolves in the whole tree, so one that climbs out of the mount leads into the outer tree; seen from
 *   the
 * mounted side alone it is an escape
 * - symlinks, attributes and watching are available if one side has them, and Unsupported on the other
 *
 * Fails with NotADirectory if `at` is no directory or lies below a file, and with AlreadyExists if it is a broken
 * symlink.
 *
 * @example
 * ```ts
 * const library = Filesystem.make(yield* InMemory.make({ tree: { "guide.md": "Read it." } }))
 * const both = yield* Mounts.mount("vendor/library", library)(fs)
 * yield* both.readString("vendor/library/guide.md") // => "Read it."
 * ```
 * @category combinators
 * @since 0.1.0
 */
export const mount =
  (at: string, mounted: Algebra) =>
  (self: Algebra): Effect.Effect<Algebra, StatError | NotADirectory | AlreadyExists> => {
    const caller = Caller.make(self.port)
    return caller.call("mount", at, mountErrorTags, Caller.readActions, (path) =>
      Effect.map(resolveMountPoint(caller, path), (at) => {
        const [outer, inner] = withSameCaseRule(self.port, mounted.port)
        return make(Port.make(outer, at, inner))
      })
    )
  }
