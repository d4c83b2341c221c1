/** Opens the root of a Windows host, which stays the directory that the path leads to at creation. */
import type { Fault } from "../../../model/FsError.ts"
import { root } from "../../../model/FsPath.ts"
import { isFault } from "../attempt.ts"
import { notADirectory, notFound } from "../confined.ts"
import { codeOf } from "../../../model/systemError.ts"
import type { WindowsHostOptions } from "../options.ts"
import type { WindowsDisk } from "./disk.ts"
import { parseRoot, toNative, type WindowsRoot } from "./paths.ts"
import { finalNameOf, lookAt, make, type Walker } from "./walk.ts"

const verbatim = (top: WindowsRoot): string | Fault => toNative(top, root, { useLongPaths: true })

const makeRoot = (disk: WindowsDisk, top: WindowsRoot): void => {
  const volume = verbatim({ ...top, names: [], path: top.kind === "drive" ? `${top.volume}\\` : top.volume }) as string
  let at = volume
  for (const name of top.names) {
    at = at.endsWith("\\") ? at + name : `${at}\\${name}`
    try {
      disk.mkdirSync(at)
    } catch (error) {
      // For an existing directory, some disks report a lack of permission.
      if (codeOf(error) !== "EEXIST" && lookAt(disk, at) === undefined) throw error
    }
  }
}

/** Opens the root. Returns InvalidPath if it is not an absolute Windows path, NotFound or NotADirectory. */
export const open = (
  disk: WindowsDisk,
  options: Pick<WindowsHostOptions, "root" | "createRoot" | "useLongPaths">
): Walker | Fault => {
  const { createRoot = false, useLongPaths = true } = options
  const given = parseRoot(options.root)
  if (isFault(given)) return given
  const at = verbatim(given)
  if (isFault(at)) return at
  if (createRoot && lookAt(disk, at) === undefined) makeRoot(disk, given)
  if (lookAt(disk, at) === undefined) return notFound
  const finalName = finalNameOf(disk, at)
  const final = finalName === undefined ? undefined : parseRoot(finalName)
  if (isFault(final)) return final
  const top = final ?? given
  const stats = lookAt(disk, verbatim(top) as string)
  if (stats === undefined) return notFound
  return stats.isDirectory() ? make(disk, top, stats, { final, given, useLongPaths }) : notADirectory
}
