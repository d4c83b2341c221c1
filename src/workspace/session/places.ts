/**
 * The two files of a dump, and the hidden directory beside them in which both are made. A dump that was killed between their renames has
 * its archive still there, under a name that is its hash.
 */
import { randomBytes } from "node:crypto"
import * as Fs from "node:fs"
import { basename, dirname, join } from "node:path"
import * as Hash from "../../runtime/hash.ts"
import * as Identity from "../../runtime/processIdentity.ts"

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

const hidden = /^\.~fsa-dump-([0-9a-f]{16})-([0-9a-z-]+)-[0-9a-f]{18}\.tmp$/

/** Of a hidden directory: which dump it belongs to, whatever characters that has. */
const keyOf = (name: string): string => Hash.sha256(Buffer.from(name)).slice(0, 16)

/** Those of this process that are at work. */
const inUse = new Set<string>()

/** Milliseconds after which what a writer of unknown fate has left is taken away. */
const staleAfter = 24 * 60 * 60 * 1000

/** Judges the entry itself, not what it leads to. */
const isKind = (path: string, kind: "isFile" | "isDirectory"): boolean =>
  Fs.lstatSync(path, { throwIfNoEntry: false })?.[kind]() === true

const isLeft = (path: string, owner: string, now: number): boolean =>
  owner === Identity.self() ? !inUse.has(path) : (Identity.isDead(owner) ?? now - Fs.lstatSync(path).mtimeMs > staleAfter)

/** Hidden directories of a dump, each with the process that made it. A link of such a name, or a file, is none. */
const hiddenOf = ({ directory, name }: Places): ReadonlyArray<readonly [path: string, owner: string]> => {
  const key = keyOf(name)
  return Fs.readdirSync(directory).flatMap((entry): ReadonlyArray<readonly [string, string]> => {
    const found = hidden.exec(entry)
    const path = join(directory, entry)
    return found?.[1] === key && isKind(path, "isDirectory") ? [[path, found[2]!]] : []
  })
}

/** Makes a hidden directory, which is in use until it is left. */
export const enter = ({ directory, name }: Places): string => {
  const path = join(directory, `.~fsa-dump-${keyOf(name)}-${Identity.self()}-${randomBytes(9).toString("hex")}.tmp`)
  Fs.mkdirSync(path, { mode: 0o700 })
  inUse.add(path)
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
  /^(archive|lines[1-9]?|[0-9a-f]{64}\.fs\.zip|\.~fsa-archive-[0-9a-z-]+\.tmp)$/.test(name)

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
  inUse.delete(path)
  if (!keeps) removeQuietly(path)
}

/** Takes away what others have left. `now` in milliseconds. */
export const sweep = (places: Places, now: number): void => {
  try {
    for (const [path, owner] of hiddenOf(places)) if (isLeft(path, owner, now)) removeLeftover(path)
  } catch {
    // Somebody else sweeps too.
  }
}

/** In a hidden directory. */
export const hiddenArchive = (path: string, sha256: string): string => join(path, `${sha256}${archiveEnding}`)

/** Archives of that name in the hidden directories of a dump. */
export const hiddenArchives = (places: Places, sha256: string): ReadonlyArray<string> =>
  hiddenOf(places)
    .map(([path]) => hiddenArchive(path, sha256))
    .filter((path) => isKind(path, "isFile"))
