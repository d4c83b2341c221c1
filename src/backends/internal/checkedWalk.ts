/**
 * Confines paths on systems that do not expose descriptors as files.
 *
 * The root is pinned by its real path and inode. Every call checks each component of the directory, top down, before it
 * appends a name. An opened file is checked again afterwards.
 *
 * Another process that may write inside the root can still replace a directory by a symlink between check and use. So
 * the level is `best-effort`.
 */
import { Fs } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, root } from "../../model/FsPath.ts"
import { isFault } from "./attempt.ts"
import { closed, type Confined, isSameFile, lstatEntry, notADirectory, notFound, type HostDirectory } from "./confined.ts"
import { below, type HostPath } from "./hostNames.ts"

const rootGone: Fault = { _tag: "Unavailable", detail: "the root directory has been moved, replaced or removed" }

const { O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = Fs.constants

const isOpenFile = (at: HostPath, descriptor: number): boolean => {
  try {
    const found = lstatEntry(at)
    return found !== undefined && isSameFile(found, Fs.fstatSync(descriptor))
  } catch {
    return false
  }
}

/** Takes ownership of the root's descriptor, which is held so that no other directory can reuse the inode. */
export const make = (top: HostPath, descriptor: number, caseSensitive: boolean): Confined => {
  const rootIdentity = Fs.fstatSync(descriptor)
  let isClosed = false

  const rootStats = (): Fs.Stats | Fault => {
    if (isClosed) return closed
    const stats = lstatEntry(top)
    return stats !== undefined && isSameFile(stats, rootIdentity) ? stats : rootGone
  }

  const openDirectoryAt = (path: FsPath): HostDirectory | Fault => {
    let stats: Fs.Stats | Fault | undefined = rootStats()
    if (isFault(stats) || path === root) return isFault(stats) ? stats : place(path, top, stats)
    let at = top
    for (const segment of path.split("/")) {
      at = below(at, segment)
      stats = lstatEntry(at)
      if (stats === undefined) return notFound
      if (!stats.isDirectory()) return notADirectory
    }
    return place(path, at, stats as Fs.Stats)
  }

  const place = (path: FsPath, at: HostPath, stats: Fs.Stats): HostDirectory => {
    const isSame = (): boolean => {
      const now = openDirectoryAt(path)
      return !isFault(now) && isSameFile(now.stats, stats)
    }
    return {
      directory: at,
      stats,
      at: (segment) => below(at, segment),
      openChild: (segment) => {
        const child = below(at, segment)
        const stats = lstatEntry(child)
        return stats === undefined
          ? notFound
          : stats.isDirectory()
            ? place((path === root ? segment : `${path}/${segment}`) as FsPath, child, stats)
            : notADirectory
      },
      isReadReliable: isSame,
      isSame,
      open: () => Fs.openSync(at, O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
      release: () => {},
      // Places are not cached, so a sweep would otherwise run at every write.
      isCleared: true
    }
  }

  return {
    level: "best-effort",
    rootPath: () => top,
    caseSensitive,
    directory: openDirectoryAt,
    holds: (descriptor, place, segment) => isOpenFile(place.at(segment), descriptor) && place.isSame(),
    withdraw: (descriptor, place, segment) => {
      const at = place.at(segment)
      if (isOpenFile(at, descriptor)) Fs.unlinkSync(at)
    },
    close: () => {
      if (isClosed) return
      isClosed = true
      Fs.closeSync(descriptor)
    }
  }
}
