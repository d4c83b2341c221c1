/**
 * The two files of a dump, and the hidden directory beside them in which both are made. A dump that was killed between their renames has
 * its archive still there, under a name that is its hash.
 */
import { basename, dirname, Fs, join } from "../../runtime/node.ts"
import * as Hash from "../../runtime/hash.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"

export interface Places {
  readonly directory: string
  /** Without its ending: what both files are called. */
  readonly name: string
  readonly lines: string
  readonly archive: string
}

const [linesEnding, archiveEnding] = [".jsonl", ".fs.zip"] as const

/** Bytes that every disk takes for one name. */
const longestName = 255

/** Bytes that are left for the name of a dump. */
export const longestStem = longestName - archiveEnding.length

export const placesIn = (directory: string, name: string): Places => ({
  directory,
  name,
  lines: join(directory, name + linesEnding),
  archive: join(directory, name + archiveEnding)
})

/** Whatever the file is called: the ending is replaced, if it has one. */
export const placesOf = (lines: string): Places => {
  const name = basename(lines).replace(/\.[^.]+$/, "")
  return { ...placesIn(dirname(lines), name), lines }
}

export const isLines = (path: string): boolean => path.endsWith(linesEnding)

/** Says in the name of a hidden directory which dump it belongs to, whatever characters that has: `dump` and 16 letters. */
const kindOf = (name: string): string =>
  `dump${Hash.sha256(Buffer.from(name))
    .slice(0, 16)
    .replace(/[0-9]/g, (digit) => String.fromCharCode(0x67 + Number(digit)))}`

/** Judges the entry itself, not what it leads to. */
const isKind = (path: string, kind: "isFile" | "isDirectory"): boolean =>
  Fs.lstatSync(path, { throwIfNoEntry: false })?.[kind]() === true

/**
 * Returns the entries that have the form of a hidden directory of the dump. Strangers can make such a name, so nothing follows from it
 * but where to look for an archive of a known hash. A link or a file of such a name is no directory.
 */
const hiddenOf = ({ directory, name }: Places): ReadonlyArray<string> => {
  const start = `.~fsa-${kindOf(name)}-`
  return Fs.readdirSync(directory).filter((entry) => entry.startsWith(start) && isKind(join(directory, entry), "isDirectory"))
}

/** Makes a hidden directory, which is in use until it is left. */
export const enter = ({ directory, name }: Places): string => {
  const made = TemporaryNames.make(kindOf(name))
  const path = join(directory, made)
  try {
    Fs.mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    TemporaryNames.forget(made)
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

/** A name that a dump makes in its hidden directory. */
const isOwn = (name: string): boolean =>
  /^(archive|lines[1-9]?|[0-9a-f]{64}\.fs\.zip)$/.test(name) || TemporaryNames.isLeftover(name)

/** Removes a leftover. Anything in it that no dump has made keeps it, with that in it. */
const removeLeftover = (path: string): void => {
  try {
    for (const name of Fs.readdirSync(path)) if (isOwn(name)) Fs.unlinkSync(join(path, name))
    Fs.rmdirSync(path)
  } catch {
    // The next dump tries again.
  }
}

/** `keeps`: it holds the archive of a dump that counts, which could not be put in its place. */
export const leave = (path: string, keeps: boolean): void => {
  TemporaryNames.forget(basename(path))
  if (!keeps) removeQuietly(path)
}

/** Removes the hidden directories of this installation whose process has ended. */
export const sweep = (places: Places): void => {
  try {
    for (const entry of hiddenOf(places)) if (TemporaryNames.isLeftover(entry)) removeLeftover(join(places.directory, entry))
  } catch {
    // Somebody else sweeps too.
  }
}

/** In a hidden directory. */
export const hiddenArchive = (path: string, sha256: string): string => join(path, `${sha256}${archiveEnding}`)

/** Archives of that name in the hidden directories of a dump. */
export const hiddenArchives = (places: Places, sha256: string): ReadonlyArray<string> =>
  hiddenOf(places)
    .map((entry) => hiddenArchive(join(places.directory, entry), sha256))
    .filter((path) => isKind(path, "isFile"))
