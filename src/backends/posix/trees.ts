/** Sends subtrees of a host directory to the search processes. */
import { type FsPath, root } from "../../model/FsPath.ts"
import { is as isFault } from "../../model/Fault.ts"
import type { TreePlace } from "../../model/treeSearch.ts"
import type { TreeReading, TreeSearcher, Visit } from "../../port/explorer.ts"
import type { ProcessSearch, SearchProcesses } from "../../runtime/searchProcesses.ts"
import { type Confined, hostPath, mayBeLossy, withPlace } from "./place.ts"

/** Returns the device and inode of a directory, or `undefined` if it cannot be opened or the filesystem is closed. */
const identityOf = (confined: Confined, path: FsPath): { readonly device: number; readonly inode: number } | undefined => {
  try {
    const found = withPlace(confined.directory(path), ({ stats }) => ({ device: stats.dev, inode: stats.ino }))
    return isFault(found) ? undefined : found
  } catch {
    return undefined
  }
}

export const makeTreeSearcher = <V extends Visit>(
  confined: Confined,
  processes: SearchProcesses,
  refuseHardlinks: boolean,
  pathOf: (visit: V) => FsPath,
  onReading: () => void
): {
  readonly trees: TreeSearcher<V>
  readonly hasReadings: () => boolean
  readonly isBegun: () => boolean
  readonly end: () => void
} => {
  let search: ProcessSearch | undefined
  let identity: { readonly device: number; readonly inode: number } | undefined
  let basePath: FsPath | undefined
  let readings: Array<TreeReading<V>> = []

  /**
   * Returns the place of the search, or `undefined` if processes cannot reach the root by a path. Determines the path of the root
   * at each call, because the root may have been moved.
   */
  const place = (): TreePlace | undefined => {
    if (identityOf(confined, root) === undefined) return undefined
    const top = confined.rootPath()
    if (typeof top !== "string" || mayBeLossy(top) || identity === undefined) return undefined
    const path = basePath === "." ? top : hostPath(top, basePath!)
    return typeof path === "string" ? { path, ...identity } : undefined
  }
  const addReading = (reading: TreeReading<V>): void => {
    readings.push(reading)
    onReading()
  }

  return {
    trees: {
      isWarm: processes.areWarm,
      begin: (tree, base) => {
        basePath = pathOf(base)
        identity = identityOf(confined, basePath)
        if (place() === undefined) return false
        search = processes.begin(tree, refuseHardlinks)
        return search !== undefined
      },
      room: () => search?.room() ?? 0,
      send: (visits, paths, budget) => {
        const at = place()
        if (search === undefined || at === undefined) return addReading({ visits, report: undefined })
        search.send({ place: at, directories: paths, budget, done: (report) => addReading({ visits, report }) })
      },
      take: () => {
        const taken = readings
        readings = []
        return taken
      }
    },
    isBegun: () => search?.isUsable() === true,
    hasReadings: () => readings.length > 0,
    end: () => search?.end()
  }
}
