/**
 * The rules for names and symlinks in an archive.
 *
 * The reader and the writer share the rules, so a reader with the limits of the writer rejects no entry. A violation throws an
 * ArchiveError, which `tryArchive` converts to a failure of the effect.
 */
import * as Effect from "effect/Effect"
import { leadsOutside } from "../../engine/resolve.ts"
import * as FsPath from "../../model/FsPath.ts"
import { segments } from "../../model/FsPath.ts"
import type { LimitsShape } from "../../model/Limits.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { ArchiveError } from "../errors.ts"
import type { DirectoryNode, FileNode, LinkNode, Node } from "../tree.ts"

export const refuse = (reason: ArchiveError["reason"], detail: string, entry?: string): ArchiveError =>
  new ArchiveError({ reason, detail, ...(entry === undefined ? undefined : { entry }) })

export const tryArchive = <A>(run: () => A): Effect.Effect<A, ArchiveError> =>
  Effect.suspend(() => {
    try {
      return Effect.succeed(run())
    } catch (error) {
      if (error instanceof ArchiveError) return Effect.fail(error)
      throw error
    }
  })

export interface NameRules {
  readonly limits: LimitsShape
  readonly policy: FsPath.PathPolicy | undefined
}

/** The start of a name with a drive letter. On Windows such a name leads out of the directory in which it is extracted. */
const drivePattern = /^[a-z]:/i

const whyInvalidName = (name: string): string | undefined => {
  if (name === "") return "the name is empty"
  if (name.startsWith("/") || drivePattern.test(name)) return "the name is absolute"
  if (name.includes("\\")) return "a backslash is a separator on Windows"
  const path = FsPath.parse(name)
  if (typeof path !== "string") return String(path["detail"])
  if (path === name && path !== FsPath.root) return undefined
  return name.split("/").includes("..") ? 'it contains a ".." segment' : 'it contains an empty or "." segment'
}

/**
 * Checks a name in an archive, with or without a trailing slash. Does not check limits and policy, because not every entry is
 * extracted.
 */
export const checkName = (entry: string): FsPath.FsPath => {
  const name = entry.endsWith("/") ? entry.slice(0, -1) : entry
  const unfit = whyInvalidName(name)
  if (unfit !== undefined) throw refuse("name", `the name is not portable: ${unfit}`, entry)
  return name as FsPath.FsPath
}

/**
 * Returns the path of an entry in the filesystem. `name` has no trailing slash. `entry` is the name as the archive spells it.
 */
export const pathOf = (name: string, entry: string, { limits, policy }: NameRules): FsPath.FsPath => {
  const unfit = whyInvalidName(name)
  if (unfit !== undefined) throw refuse("name", `the name is not portable: ${unfit}`, entry)
  const path = FsPath.parse(name, policy)
  const fault = typeof path === "string" ? FsPath.checkLimits(path, limits) : path
  if (fault !== undefined) throw refuse("name", `the name is not allowed in this filesystem: ${String(fault["detail"])}`, entry)
  return path as FsPath.FsPath
}

const maxTargetBytes = 4095

const whyLinkRefused = (path: FsPath.FsPath, target: string): string | undefined => {
  if (target === "") return "the target is empty"
  if (Buffer.byteLength(target) > maxTargetBytes) return `the target is longer than ${maxTargetBytes} bytes`
  if (drivePattern.test(target) || leadsOutside(FsPath.parent(path), target)) return "the target is outside the tree"
  if (target.includes("\\")) return "a backslash is a separator on Windows"
  const fault = FsPath.unfit(target) ?? FsPath.uncreatable(target)
  return fault === undefined ? undefined : String(fault["detail"])
}

/** Checks a symlink by the text of its target alone. Nothing on the disk is read. */
export const checkLink = (path: FsPath.FsPath, target: string, entry: string): void => {
  const why = whyLinkRefused(path, target)
  if (why !== undefined) throw refuse("link", `the link is not portable: ${why}`, entry)
}

const printableAsciiPattern = /^[ -~]*$/

/**
 * Returns a key that is equal for names that some disk cannot distinguish. The key uses a normal form and Unicode case
 * folding.
 *
 * The conversion through upper case unifies names that differ in lower case, such as `ß` and `ss` or the two small sigmas.
 */
export const collisionKey = (name: string): string =>
  printableAsciiPattern.test(name)
    ? name.toLowerCase()
    : name.normalize("NFC").toLowerCase().toUpperCase().toLowerCase().normalize("NFC")

export class Budget {
  readonly #limits: LimitsShape
  #entries = 0
  #bytes = 0

  constructor(limits: LimitsShape) {
    this.#limits = limits
  }

  enter(entries = 1): void {
    this.#entries += entries
    const { maxArchiveEntries } = this.#limits
    if (this.#entries > maxArchiveEntries) {
      throw refuse("tooLarge", `the archive has more than ${maxArchiveEntries} entries; raise maxArchiveEntries to accept it`)
    }
  }

  spend(bytes: number, entry: string): void {
    this.#bytes += bytes
    const { maxArchiveBytes } = this.#limits
    if (this.#bytes > maxArchiveBytes) {
      throw refuse(
        "tooLarge",
        `the contents up to this entry exceed ${maxArchiveBytes} bytes; raise maxArchiveBytes to accept the archive`,
        entry
      )
    }
  }
}

/** Returns an upper bound, in bytes, for an archive within the limits. Each entry has its name twice and some headers. */
export const maxArchiveFileBytes = ({ maxArchiveBytes, maxArchiveEntries }: LimitsShape): number =>
  maxArchiveBytes * 1.01 + maxArchiveEntries * 32 * 1024 + 1024 * 1024

// A draft is the tree of an archive while its names are read.
//
// Each name is stored with its own spelling and its collision key. The second of two names that some disk cannot distinguish is
// refused. An entry below a file or a symlink is refused too.

interface MutableDirectory extends DirectoryNode {
  mode?: number | undefined
  readonly entries: Map<string, Node>
}

interface DraftDirectory {
  readonly node: MutableDirectory
  readonly places: Map<string, DraftDirectory>
  readonly names: Map<string, string>
  isNamed: boolean
}

const makeDraftDirectory = (): DraftDirectory => ({
  node: { kind: "directory", entries: new Map() },
  places: new Map(),
  names: new Map(),
  isNamed: false
})

const enterName = ({ names }: DraftDirectory, segment: string, entry: string): void => {
  const key = collisionKey(segment)
  const other = names.get(key)
  if (other === segment)
    throw refuse("duplicate", "the entry occurs twice in the archive, or its parent is not a directory", entry)
  if (other !== undefined) {
    throw refuse("duplicate", `the name differs only in case or Unicode form from ${JSON.stringify(other)}`, entry)
  }
  names.set(key, segment)
}

export class Draft {
  readonly #top = makeDraftDirectory()

  get tree(): DirectoryNode {
    return this.#top.node
  }

  add(path: FsPath.FsPath, node: FileNode | LinkNode, entry: string): void {
    const names = segments(path)
    const holder = this.#directory(names.slice(0, -1), entry)
    const last = names.at(-1)!
    enterName(holder, last, entry)
    holder.node.entries.set(last, node)
  }

  addDirectory(path: FsPath.FsPath, mode: number | undefined, entry: string): void {
    const made = this.#directory(segments(path), entry)
    if (made.isNamed) throw refuse("duplicate", "the directory occurs twice in the archive", entry)
    made.isNamed = true
    if (mode !== undefined) made.node.mode = mode
  }

  #directory(names: ReadonlyArray<string>, entry: string): DraftDirectory {
    let here = this.#top
    for (const name of names) {
      let next = here.places.get(name)
      if (next === undefined) {
        enterName(here, name, entry)
        next = makeDraftDirectory()
        here.places.set(name, next)
        here.node.entries.set(name, next.node)
      }
      here = next
    }
    return here
  }
}
