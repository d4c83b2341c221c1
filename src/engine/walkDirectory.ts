/** Defines the directories of a walk, and adds the reports of search processes to them. */
import type * as Effect from "effect/Effect"
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
import * as Eager from "./eager.ts"
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
  /** True if a search process read the parent directory. This process then does not have the states of the matchers. */
  readonly isForeign?: boolean
}

export class Directory implements Visit, DirectoryState {
  readonly above: Directory | undefined
  /**
   * The directory whose items contain this directory. The container is not the parent if a search process has decided the
   * directories in between.
   */
  readonly container: Directory | undefined
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
  /** True if this thread must read the directory, because a search process cannot. */
  isUnusual = false
  sizes: ReadonlyMap<Child, number> | undefined
  /** The number of directories whose entries are in `items`. */
  directoryCount = 1
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

  constructor(above: Directory | undefined, segment: string, state: DirectoryState, container = above) {
    this.above = above
    this.container = container
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

/** A file that a search process has searched. */
export interface SearchedFile {
  readonly path: FsPath
  found: FileFound
  text?: string | undefined
  /**
   * Sets `found` and `text` of all files of the report. Absent if this has been done. Must run before the file is used, but as
   * late as possible, because packed matches are smaller, and the garbage collector would copy early matches.
   */
  unpack?: (() => Effect.Effect<void>) | undefined
}

/** A search of the contents of the files that a walk finds. */
export interface ContentSearch<A> {
  readonly query: Query
  readonly makeFile: (path: FsPath) => A & SearchedFile
  /** Makes the result for successive files without a match. */
  readonly makeWithoutMatch: (files: number) => A
}

/** Makes the results of a walk. */
export interface Answers<A> {
  /** Makes the result of an entry that this process has listed. */
  readonly ofChild: (directory: Directory, child: Child) => A
  /** Makes the result of an entry that a search process has listed. */
  readonly ofEntry: (path: FsPath, name: string, kind: Kind) => A
}

const kindNames: ReadonlyArray<Kind> = ["file", "directory", "symlink", "other"]

/** A directory that a search process has decided. The entries from `next` to `end` are not added to the walk yet. */
interface DecidedDirectory {
  readonly above: DecidedDirectory | undefined
  readonly segment: string
  readonly path: FsPath
  readonly start: number
  readonly end: number
  next: number
  /** The index of the next searched file. */
  file: number
  /** The directory of the walk. Made only if the walk must read a directory below. */
  directory: Directory | undefined
}

const prefixOf = (path: FsPath): string => (path === FsPathModule.root ? "" : `${path}/`)

const foreignState = (above: Directory, path: FsPath, name: string): DirectoryState => ({
  path,
  at: above.at === above.path ? path : FsPathModule.join(above.at, name),
  depth: above.depth + 1,
  addressable: true,
  include: undefined,
  exclude: undefined,
  ignore: undefined,
  isForeign: true
})

/**
 * Adds the entries of a report to the walk. Calls `onDecided` for each decided directory of the job, and `onLeft` for each
 * other directory of the job.
 *
 * The entries of all directories that the process decided become items of the job's directory, in walk order. Only
 * directories that the walk must still read become a `Directory`, with the directories above them.
 */
export const addReport = <A>(
  { report, visits }: TreeReading<Directory>,
  answer: Answers<A>["ofEntry"],
  content: ContentSearch<A> | undefined,
  onDecided: (directory: Directory) => void,
  onLeft: (directory: Directory) => void
): void => {
  if (report === undefined) {
    for (const visit of visits) {
      visit.isUnusual = true
      onLeft(visit)
    }
    return
  }
  const { codes: all, directories: records } = report
  const names = report.names === "" ? [] : report.names.split("/")
  const searched: Array<SearchedFile | undefined> = []
  let record = 0
  let entry = 0
  let file = 0

  /** Returns the state of the next directory of the report, and skips its files and entries. */
  const nextState = (): number => {
    const state = records[record]!
    entry += records[record + 1]!
    file += records[record + 2]!
    record += 3
    return state
  }
  const directoryOf = (self: DecidedDirectory): Directory => {
    let { directory } = self
    if (directory === undefined) {
      const above = directoryOf(self.above!)
      directory = self.directory = new Directory(above, self.segment, foreignState(above, self.path, self.segment))
      directory.isDecided = true
    }
    if (directory.listed === undefined) {
      const listed: Array<Child> = []
      for (let i = self.start; i < self.end; i++) {
        const kind = kindNames[all[i]! & codes.kind]!
        if (kind === "directory") listed.push({ name: names[i]!, kind, addressable: true })
      }
      directory.listed = listed
    }
    return directory
  }
  const addEntries = (top: Directory, start: number, firstFile: number): void => {
    const { items } = top
    let current: DecidedDirectory | undefined = {
      above: undefined,
      segment: top.segment,
      path: top.path,
      start,
      end: entry,
      next: start,
      file: firstFile,
      directory: top
    }
    let prefix = prefixOf(top.path)
    let withoutMatch = 0
    const add = (item: unknown): void => {
      if (withoutMatch > 0) items.push(content!.makeWithoutMatch(withoutMatch))
      withoutMatch = 0
      items.push(item)
    }
    while (current !== undefined) {
      if (current.next === current.end) {
        current = current.above
        if (current !== undefined) prefix = prefixOf(current.path)
        continue
      }
      const name = names[current.next]!
      const code = all[current.next++]!
      if (code & codes.isCount) {
        withoutMatch += Number(name)
        continue
      }
      const kind = kindNames[code & codes.kind]!
      const path = (prefix + name) as FsPath
      if (code & codes.isIgnored) {
        add(new SkippedEntry(path, "ignored", walkSortKey(path, kind)))
        continue
      }
      if (code & codes.isResult) {
        if (content === undefined || kind !== "file") add(answer(path, name, kind))
        else add((searched[current.file++] = content.makeFile(path)))
      }
      if ((code & codes.isEntered) === 0) continue
      const [start, file_] = [entry, file]
      const state = nextState()
      if (state === states.decided) {
        current = { above: current, segment: name, path, start, end: entry, next: start, file: file_, directory: undefined }
        prefix = `${path}/`
        top.directoryCount++
      } else {
        const above = directoryOf(current)
        const below = new Directory(above, name, foreignState(above, path, name), top)
        below.isUnusual = state === states.unusual
        above.uses++
        add(below)
      }
    }
    if (withoutMatch > 0) items.push(content!.makeWithoutMatch(withoutMatch))
  }

  for (const visit of visits) {
    const [start, firstFile] = [entry, file]
    const state = nextState()
    if (state === states.decided) {
      visit.isDecided = true
      addEntries(visit, start, firstFile)
      onDecided(visit)
    } else {
      visit.isUnusual = state === states.unusual
      onLeft(visit)
    }
  }
  if (report.matches === undefined) return
  const { texts } = report.matches
  const matched = unpacked(report.matches, (file) => searched[file]?.path ?? FsPathModule.root)
  const unpack = (): Effect.Effect<void> =>
    Eager.map(matched(), (all) => {
      let nextText = 0
      for (let index = 0; index < all.length; index++) {
        const found = all[index]!
        const text = typeof found === "string" ? undefined : texts?.[nextText++]
        const file = searched[index]
        if (file?.unpack === undefined) continue
        file.found = found
        file.text = text
        file.unpack = undefined
      }
    })
  for (const file of searched) if (file !== undefined) file.unpack = unpack
}
