/** The directories of a walk, and the function that adds the report of a search process to them. */
import * as Effect from "effect/Effect"
import type { Kind } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPathModule from "../model/FsPath.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Query } from "../model/search.ts"
import { codes, states } from "../model/treeSearch.ts"
import type { Child } from "../port/Backend.ts"
import { type TreeReading, type Visit, walkSortKey } from "../port/explorer.ts"
import { unpacked } from "../runtime/matching.ts"
import type { FileFound } from "../runtime/packed.ts"
import type * as Ignore from "./ignore.ts"
import type * as Matcher from "./matcher.ts"
import type { Relistings } from "./missing.ts"
import { SkippedEntry } from "./skips.ts"

export interface DirectoryState {
  readonly path: FsPathModule.FsPath
  readonly at: FsPathModule.FsPath
  readonly depth: number
  readonly addressable: boolean
  readonly include: Matcher.State | undefined
  readonly exclude: Matcher.State | undefined
  readonly ignore: Ignore.Rules | undefined
  /** True if a search process read the parent directory. This program then does not have the states of the matchers. */
  readonly isForeign?: boolean
}

export class Directory implements Visit, DirectoryState {
  readonly above: Directory | undefined
  readonly segment: string
  readonly path: FsPathModule.FsPath
  readonly at: FsPathModule.FsPath
  readonly depth: number
  readonly addressable: boolean
  include: Matcher.State | undefined
  exclude: Matcher.State | undefined
  ignore: Ignore.Rules | undefined
  isForeign: boolean
  /** True if a search process has read the directory and decided which entries are results. */
  isDecided = false
  /** True if this thread must read the directory, because a search process found it unusual. */
  isUnusual = false
  sizes: ReadonlyMap<Child, number> | undefined
  items: Array<unknown> = []
  emittedItems = 0
  fault: Fault | undefined
  isRequested = false
  isClassified = false
  attempts = 0
  listed: ReadonlyArray<Child> | undefined
  relistings: Relistings | undefined
  /**
   * The number of subdirectories to read plus the number of files to search. The backend keeps the directory open until
   * this number is 0.
   */
  uses = 0
  previous: Directory | undefined
  next: Directory | undefined

  constructor(above: Directory | undefined, segment: string, state: DirectoryState) {
    this.above = above
    this.segment = segment
    this.path = state.path
    this.at = state.at
    this.depth = state.depth
    this.addressable = state.addressable
    this.include = state.include
    this.exclude = state.exclude
    this.ignore = state.ignore
    this.isForeign = state.isForeign === true
  }
}

/** A file that a search process has searched. `found` and `text` are set after the report has been added to the walk. */
export interface SearchedFile {
  readonly path: FsPath
  found: FileFound
  text?: string | undefined
}

/** A search of the contents of the files that a walk finds. */
export interface ContentSearch<A> {
  readonly query: Query
  readonly makeFile: (directory: Directory, name: string) => A & SearchedFile
  readonly makeUnreadable: (path: FsPath) => A
}

const kindNames: ReadonlyArray<Kind> = ["file", "directory", "symlink", "other"]

interface Entries {
  readonly names: ReadonlyArray<string>
  readonly codes: Uint8Array
}

/** Adds the entries from `start` to `end`. Returns the subdirectories to enter. */
const addEntries = <A>(
  directory: Directory,
  { codes: all, names }: Entries,
  [start, end]: readonly [start: number, end: number],
  answer: (directory: Directory, child: Child) => A,
  content: ContentSearch<A> | undefined,
  searched: Array<SearchedFile | undefined>
): ReadonlyArray<Directory> => {
  const { items } = directory
  const below: Array<Directory> = []
  const directories: Array<Child> = []
  for (let i = start; i < end; i++) {
    const name = names[i]!
    const code = all[i]!
    const kind = kindNames[code & codes.kind]!
    if (kind === "directory") directories.push({ name, kind, addressable: true })
    if (code & codes.isIgnored) {
      const path = FsPathModule.join(directory.path, name)
      items.push(new SkippedEntry(path, "ignored", walkSortKey(path, kind)))
      continue
    }
    if (code & codes.isResult) {
      if (content === undefined) items.push(answer(directory, { name, kind, addressable: true }))
      else if (kind !== "file") items.push(content.makeUnreadable(FsPathModule.join(directory.path, name)))
      else {
        const file = content.makeFile(directory, name)
        items.push(file)
        searched.push(file)
      }
    }
    if (code & codes.isEntered) {
      const path = FsPathModule.join(directory.path, name)
      const at = directory.at === directory.path ? path : FsPathModule.join(directory.at, name)
      below.push(
        new Directory(directory, name, {
          path,
          at,
          depth: directory.depth + 1,
          addressable: true,
          include: undefined,
          exclude: undefined,
          ignore: undefined,
          isForeign: true
        })
      )
      items.push(below[below.length - 1])
      directory.uses++
    }
  }
  directory.listed = directories
  return below
}

/**
 * Adds the entries of a report to their directories. Calls `onDecided` for each visited directory, before its
 * subdirectories. Calls `onLeft` for each directory that was not visited. The returned effect adds the matches to the files.
 */
export const addReport = <A>(
  { report, visits }: TreeReading<Directory>,
  answer: (directory: Directory, child: Child) => A,
  content: ContentSearch<A> | undefined,
  onDecided: (directory: Directory, below: ReadonlyArray<Directory>) => void,
  onLeft: (directory: Directory) => void
): Effect.Effect<void> | undefined => {
  const pending = visits.toReversed()
  const searched: Array<SearchedFile | undefined> = []
  const names = report === undefined || report.names === "" ? [] : report.names.split("/")
  let entry = 0
  for (let record = 0; pending.length > 0; record += 3) {
    const directory = pending.pop()!
    const state = report?.directories[record] ?? states.unusual
    if (report === undefined || state !== states.decided) {
      directory.isUnusual = state === states.unusual
      for (let left = report?.directories[record + 2] ?? 0; left > 0; left--) searched.push(undefined)
      onLeft(directory)
      continue
    }
    directory.isDecided = true
    const end = entry + report.directories[record + 1]!
    const below = addEntries(directory, { names, codes: report.codes }, [entry, end], answer, content, searched)
    entry = end
    onDecided(directory, below)
    for (let i = below.length - 1; i >= 0; i--) pending.push(below[i]!)
  }
  if (report?.matches === undefined) return undefined
  return Effect.map(
    unpacked(report.matches, (file) => searched[file]?.path ?? FsPathModule.root),
    (all) => {
      for (const [index, { found, text }] of all.entries()) {
        const file = searched[index]
        if (file === undefined) continue
        file.found = found
        file.text = text
      }
    }
  )
}
