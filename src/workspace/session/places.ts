/**
 * The paths of the two files of a dump, and of the hidden directory in which both are staged. If the process is killed between
 * the two renames, the archive remains in the hidden directory, and its name is its hash.
 */
import { basename, dirname, Fs, join } from "../../runtime/node.ts"
import * as Hash from "../../runtime/hash.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

export interface DumpPaths {
  readonly directory: string
  readonly name: string
  readonly lines: string
  readonly archive: string
}

const [linesEnding, archiveEnding] = [".jsonl", ".fs.zip"] as const

/** The longest file name, in bytes, on most disks. */
const maxFileNameBytes = 255

export const maxDumpNameBytes = maxFileNameBytes - archiveEnding.length

export const dumpPathsIn = (directory: string, name: string): DumpPaths => ({
  directory,
  name,
  lines: join(directory, name + linesEnding),
  archive: join(directory, name + archiveEnding)
})

/** Returns the paths for a `.jsonl` file of any name. The path of the archive has the same name with another extension. */
export const dumpPathsOf = (lines: string): DumpPaths => {
  const name = basename(lines).replace(/\.[^.]+$/, "")
  return { ...dumpPathsIn(dirname(lines), name), lines }
}

export const isLinesFile = (path: string): boolean => path.endsWith(linesEnding)

/**
 * Returns the prefix for names of hidden directories: `dump` and 16 letters. The letters identify the dump even if its name has
 * unusual characters.
 */
const hiddenKind = (name: string): string =>
  `dump${Hash.sha256(Buffer.from(name))
    .slice(0, 16)
    .replace(/[0-9]/g, (digit) => String.fromCharCode(0x67 + Number(digit)))}`

/** Tests the kind of the entry itself. A link is not followed. */
export const isEntryOfKind = (path: string, kind: "isFile" | "isDirectory"): boolean =>
  Fs.lstatSync(path, { throwIfNoEntry: false })?.[kind]() === true

/**
 * Returns the names of directories that may be hidden directories of the dump. Other programs can create such names too, so
 * callers only search these directories for an archive with a known hash. Links and files are skipped.
 */
const hiddenDirectories = ({ directory, name }: DumpPaths): ReadonlyArray<string> => {
  const start = `.~fsa-${hiddenKind(name)}-`
  return Fs.readdirSync(directory).filter(
    (entry) => entry.startsWith(start) && isEntryOfKind(join(directory, entry), "isDirectory")
  )
}

/**
 * Creates a hidden directory. No process removes the directory as a leftover before `releaseHiddenDirectory`, because its name
 * counts as in use.
 */
export const createHiddenDirectory = ({ directory, name }: DumpPaths): string => {
  const directoryName = TemporaryNames.make(hiddenKind(name))
  const path = join(directory, directoryName)
  try {
    Fs.mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    TemporaryNames.forget(directoryName)
    throw error
  }
  return path
}

const removeQuietly = (path: string): void => {
  try {
    Fs.rmSync(path, { recursive: true, force: true })
  } catch {
    // The next dump tries to remove the path again.
  }
}

const isDumpFile = (name: string): boolean =>
  /^(archive|lines[1-9]?|[0-9a-f]{64}\.fs\.zip)$/.test(name) || TemporaryNames.isLeftover(name)

/** Removes a leftover directory. If the directory contains files of other programs, these files and the directory stay. */
const removeLeftover = (path: string): void => {
  try {
    for (const name of Fs.readdirSync(path)) if (isDumpFile(name)) Fs.unlinkSync(join(path, name))
    Fs.rmdirSync(path)
  } catch {
    // The next dump tries to remove the directory again.
  }
}

/**
 * Marks a hidden directory as no longer in use, and removes it unless `isKept` is set. A kept directory contains the only archive
 * of the dump.
 */
export const releaseHiddenDirectory = (path: string, isKept: boolean): void => {
  TemporaryNames.forget(basename(path))
  if (!isKept) removeQuietly(path)
}

export const removeLeftovers = (places: DumpPaths): void => {
  try {
    for (const entry of hiddenDirectories(places))
      if (TemporaryNames.isLeftover(entry)) removeLeftover(join(places.directory, entry))
  } catch {
    // Another process is removing the same leftovers, or the next dump tries again.
  }
}

export const hiddenArchive = (path: string, sha256: string): string => join(path, `${sha256}${archiveEnding}`)

export const hiddenArchives = (places: DumpPaths, sha256: string): ReadonlyArray<string> =>
  hiddenDirectories(places)
    .map((entry) => hiddenArchive(join(places.directory, entry), sha256))
    .filter((path) => isEntryOfKind(path, "isFile"))
