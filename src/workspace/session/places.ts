/**
 * The two files of a dump, and the hidden directory beside them in which both are staged. After a kill between the two
 * renames, the archive is still in the hidden directory, named by its hash.
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

/** The largest file name that every disk accepts, in bytes. */
const maxFileNameBytes = 255

export const maxDumpNameBytes = maxFileNameBytes - archiveEnding.length

export const dumpPathsIn = (directory: string, name: string): DumpPaths => ({
  directory,
  name,
  lines: join(directory, name + linesEnding),
  archive: join(directory, name + archiveEnding)
})

/** Returns the places for a `.jsonl` of any name. Its extension, if any, is replaced for the archive. */
export const dumpPathsOf = (lines: string): DumpPaths => {
  const name = basename(lines).replace(/\.[^.]+$/, "")
  return { ...dumpPathsIn(dirname(lines), name), lines }
}

export const isLinesFile = (path: string): boolean => path.endsWith(linesEnding)

/**
 * Returns the kind in the name of a hidden directory, `dump` and 16 letters, which identifies the dump whatever
 * characters its name has.
 */
const hiddenKind = (name: string): string =>
  `dump${Hash.sha256(Buffer.from(name))
    .slice(0, 16)
    .replace(/[0-9]/g, (digit) => String.fromCharCode(0x67 + Number(digit)))}`

/** Tests the entry itself, not the target of a link. */
const isEntryOfKind = (path: string, kind: "isFile" | "isDirectory"): boolean =>
  Fs.lstatSync(path, { throwIfNoEntry: false })?.[kind]() === true

/**
 * Returns the directories whose name has the form of the dump's hidden directories. Any program can create such a name,
 * so callers only look there for an archive of a known hash. Links and files of such a name are skipped.
 */
const hiddenDirectories = ({ directory, name }: DumpPaths): ReadonlyArray<string> => {
  const start = `.~fsa-${hiddenKind(name)}-`
  return Fs.readdirSync(directory).filter(
    (entry) => entry.startsWith(start) && isEntryOfKind(join(directory, entry), "isDirectory")
  )
}

/** Creates a hidden directory. No cleanup removes it before `releaseHiddenDirectory`, because its name counts as in use. */
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
    // The next dump tries again.
  }
}

const isDumpFile = (name: string): boolean =>
  /^(archive|lines[1-9]?|[0-9a-f]{64}\.fs\.zip)$/.test(name) || TemporaryNames.isLeftover(name)

/** Removes a leftover directory. If the directory contains foreign files, they and the directory stay. */
const removeLeftover = (path: string): void => {
  try {
    for (const name of Fs.readdirSync(path)) if (isDumpFile(name)) Fs.unlinkSync(join(path, name))
    Fs.rmdirSync(path)
  } catch {
    // The next dump tries again.
  }
}

/** Ends the use of a hidden directory, and removes it unless it has the only archive of a committed dump. */
export const releaseHiddenDirectory = (path: string, isKept: boolean): void => {
  TemporaryNames.forget(basename(path))
  if (!isKept) removeQuietly(path)
}

export const removeLeftovers = (places: DumpPaths): void => {
  try {
    for (const entry of hiddenDirectories(places))
      if (TemporaryNames.isLeftover(entry)) removeLeftover(join(places.directory, entry))
  } catch {
    // Another process sweeps at the same time.
  }
}

export const hiddenArchive = (path: string, sha256: string): string => join(path, `${sha256}${archiveEnding}`)

export const hiddenArchives = (places: DumpPaths, sha256: string): ReadonlyArray<string> =>
  hiddenDirectories(places)
    .map((entry) => hiddenArchive(join(places.directory, entry), sha256))
    .filter((path) => isEntryOfKind(path, "isFile"))
