/**
 * One filesystem in a directory of another. To whoever holds the whole there is one tree: paths, searches, copies and links go through
 * it as if it were one, and only a move between the sides has to copy.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import { mkdir } from "../engine/directories.ts"
import { resolve } from "../engine/resolve.ts"
import type { AlreadyExists, Fault, NotADirectory, StatError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { alike } from "./caseless.ts"
import { type Algebra, make } from "./Filesystem.ts"
import * as Port from "./mounts/port.ts"
import * as Caller from "./operations/call.ts"

const root: Fault = { _tag: "AccessDenied", why: "root" }
const noSpace: Fault = { _tag: "IoError", code: "ENOSPC", detail: "there is no space left for the directory to mount on" }

const tags: Caller.Tags = new Set([...Caller.tags.stat, "NotADirectory", "AlreadyExists"])

/** The directory to mount on, links followed; made where nothing is. */
const place = (caller: Caller.Caller, path: FsPath.FsPath): Effect.Effect<FsPath.FsPath, Fault> => {
  const { may, port } = caller
  if (path === FsPath.root) return Effect.fail(root)
  return Effect.flatMap(resolve(port, path), ({ path: at, stat }) => {
    if (stat?.kind === "directory") return at === FsPath.root ? Effect.fail(root) : Effect.succeed(at)
    if (stat !== undefined) return Effect.fail(Caller.notADirectory)
    if (!may("write", at)) return Effect.fail(Caller.readOnly)
    return Effect.as(
      Effect.mapError(mkdir(port, path, { parents: true, existOk: true }), (fault) =>
        fault._tag === "DiskFull" ? noSpace : fault
      ),
      at
    )
  })
}

/**
 * `mounted` in the directory `at` of the filesystem, which is made if it is missing, with its parents. What was below it is hidden as
 * long as this filesystem is used, and neither it nor a directory that holds it can be deleted, moved or replaced: AccessDenied
 * `root`. Mounts may be on and in mounts.
 *
 * - each side keeps its own permissions, limits and locks; `policy` is that of the filesystem mounted on, links are treated as the
 *   stricter of the two does, and names are distinguished by case only where both sides distinguish them
 * - links resolve in the whole tree, as their text says: one that climbs out of the mount leads into the rest, as on any system
 *   with mounts, and is an escape again where the mounted side is looked at alone
 * - links, attributes and watching are there where one side has them, and Unsupported on the other
 *
 * Fails with NotADirectory where `at` is something else or lies below it, AlreadyExists where it is a link that leads nowhere.
 *
 * @since 0.1.0
 */
export const mount =
  (at: string, mounted: Algebra) =>
  (self: Algebra): Effect.Effect<Algebra, StatError | NotADirectory | AlreadyExists> => {
    const caller = Caller.make(self.port)
    return caller.call("mount", at, tags, Caller.reading, (path) =>
      Effect.map(place(caller, path), (at) => {
        const [outer, inner] = alike(self.port, mounted.port)
        return make(Port.make(outer, at, inner))
      })
    )
  }
