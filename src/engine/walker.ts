/**
 * Walks a tree depth first and in path order, without recursion. Enters only directories that can contain results.
 *
 * The children of a directory are classified as soon as it is read, so that a backend can read ahead. Results, skipped
 * entries and failures are still emitted in order.
 */
import { is as isFault } from "../model/Fault.ts"
import * as Effect from "effect/Effect"
import type { Kind } from "../model/Entry.ts"
import { type Fault, located } from "../model/FsError.ts"
import type { TreeSearch } from "../model/treeSearch.ts"
import * as FsPathModule from "../model/FsPath.ts"
import { type Backend, type Child, keyOf } from "../port/Backend.ts"
import { changed, type Explorer, inWalkOrder, type TreeReading, type TreeSearcher, walkSortKey } from "../port/explorer.ts"
import { runInSlices } from "../runtime/steps.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import * as Ignore from "./ignore.ts"
import { enterDirectory, ignoreFilesOf, rulesAtBase } from "./ignoreFiles.ts"
import { measure } from "./list.ts"
import { type EntryFate, maxAttempts, Relistings } from "./missing.ts"
import { SkippedEntry } from "./skips.ts"
import type { Base, Plan } from "./walk.ts"
import { addReport, type Answers, type ContentSearch, Directory, type DirectoryState } from "./walkDirectory.ts"

const stepsPerSlice = 2 ** 18
/** The number of steps that each child costs, in addition to the steps of the matchers. */
const stepsPerChild = 24
const maxEmitted = 4096

/**
 * The limits on directories that are read but whose results are not emitted yet.
 *
 * Above `nearAheadLimit`, the walk reads ahead only near the current directory. Above `farAheadLimit`, the walk does not
 * read ahead. 64 children count as one directory.
 */
const nearAheadLimit = 16384
const farAheadLimit = 65536
const nearWindow = 256
const fullWindow = 512

/**
 * While more than `busyThreshold` directories are being read, the walk waits until it can request `minRequested`
 * directories together. A request costs as much as ten directories.
 */
const minRequested = 48
const busyThreshold = 96
/**
 * The maximum number of entries in a kept listing. The walk keeps a listing to compare it with a later listing of the
 * directory.
 */
const maxKeptListing = 65_536

/**
 * The number of directories that this thread reads before search processes take over. The number is smaller if the processes
 * are already running.
 */
const directoriesBeforeWarmProcesses = 1
const directoriesBeforeColdProcesses = 128
const maxDirectoriesPerJob = 64
/**
 * While more than `treeAheadLimit` directories wait to be emitted, a job gets about as many directories as an earlier job has
 * finished. All processes then work near the current directory. Otherwise each process would finish a distant subtree of its
 * own, and the walk would keep the results.
 */
const treeAheadLimit = 4096
/**
 * The maximum work of a job. One directory, one searched file and eight entries each count as 1. The first jobs end
 * early, so that all processes get directories.
 */
const jobBudget = 400
const firstJobBudget = 16

const ignoreFileNames: ReadonlyArray<Child> = [".gitignore", ".ignore"].map((name) => ({
  name,
  kind: "file",
  addressable: true
}))

const isNotFound = ({ _tag }: Fault): boolean => _tag === "NotFound" || _tag === "NotADirectory"

const weightOf = ({ directoryCount, items }: Directory): number => directoryCount + (items.length >> 6)

export class Walker<A> {
  readonly #port: Backend
  readonly #explorer: Explorer<Directory>
  readonly #plan: Plan
  readonly #answers: Answers<A>
  /** True if the emitted files will be searched. If so, their directories stay open. */
  readonly #holds: boolean
  readonly #contentSearch: ContentSearch<A> | undefined
  #trees: TreeSearcher<Directory> | undefined
  #hasBegunTrees = false
  #treeJobs = 0
  /** The number of directories that a job can probably finish, from the reports of earlier jobs. */
  #directoriesPerJob = maxDirectoriesPerJob
  #directoriesRead = 0
  readonly #base: Base
  #top: Directory | undefined
  #baseRules: Ignore.Rules | undefined
  #current: Directory | undefined
  #unread: Directory | undefined
  #ahead = 0
  #deciding: { readonly directory: Directory; readonly children: ReadonlyArray<Child>; next: number } | undefined
  /**
   * The verdict of the ignore rules on the next child. Set only if the rules were so expensive that they ran in slices,
   * with yields to the event loop.
   */
  #verdict: Ignore.Verdict | undefined
  #pendingReadings: Array<readonly [Directory, ReadonlyArray<Child> | Fault]> = []
  #reports: Array<TreeReading<Directory>> = []
  #spent = 0
  #isStarted = false
  #requestedCount = 0

  constructor(
    port: Backend,
    explorer: Explorer<Directory>,
    plan: Plan,
    base: Base,
    answers: Answers<A>,
    keepsOpen = false,
    contentSearch?: ContentSearch<A>
  ) {
    this.#port = port
    this.#explorer = explorer
    this.#plan = plan
    this.#base = base
    this.#answers = answers
    this.#holds = keepsOpen
    this.#contentSearch = contentSearch
  }

  /** Returns the next results and skipped entries, at least one, or `undefined` at the end of the walk. */
  readonly next: Effect.Effect<ReadonlyArray<A | SkippedEntry> | undefined, Fault> = Effect.suspend(() => {
    if (!this.#isStarted) return Effect.andThen(this.#start(), this.next)
    const out: Array<A | SkippedEntry> = []
    const fault = this.#emit(out)
    if (fault !== undefined) return Effect.fail(fault)
    this.#requestReads()
    if (out.length > 0) return Effect.succeed(out)
    if (this.#current === undefined) return Effect.succeed(undefined)
    return Effect.andThen(this.#advance(), this.next)
  })

  releaseFiles(directory: Directory, files: number): void {
    directory.uses -= files
    if (directory.uses === 0) this.#explorer.release(directory)
  }

  #start(): Effect.Effect<void, Fault> {
    this.#isStarted = true
    const { at, path } = this.#base
    const { exclude, gitignore, include } = this.#plan
    const rules = gitignore ? rulesAtBase(this.#port, at) : Effect.succeed(undefined)
    return Effect.map(rules, (ignore) => {
      const state = { path, at, depth: 1, addressable: true, include: include?.start, exclude: exclude?.start, ignore }
      this.#baseRules = ignore
      this.#top = this.#current = this.#unread = new Directory(undefined, "", state)
      this.#requestReads()
    })
  }

  #emit(out: Array<A | SkippedEntry>): Fault | undefined {
    for (let directory = this.#current; directory !== undefined && directory.isClassified; directory = this.#current) {
      const { fault, items } = directory
      if (fault !== undefined) {
        const unreadableReport = this.#reportUnreadable(directory, fault)
        if (unreadableReport instanceof SkippedEntry) out.push(unreadableReport)
        // Emit earlier entries before reporting the failure.
        else return out.length > 0 ? undefined : unreadableReport
      }
      while (directory.emittedItems < items.length && this.#current === directory) {
        const item = items[directory.emittedItems]
        // Release the item. Otherwise the whole tree below it would stay in memory.
        items[directory.emittedItems++] = undefined
        if (item instanceof Directory) this.#current = item
        else if (out.push(item as A | SkippedEntry) === maxEmitted) return undefined
      }
      if (this.#current !== directory) continue
      this.#ahead -= weightOf(directory)
      this.#current = directory.container
    }
    return undefined
  }

  /** Reports an unreadable directory. A search skips the directory, unless the whole backend is unavailable. */
  #reportUnreadable({ path }: Directory, fault: Fault): SkippedEntry | Fault {
    if (!this.#plan.isSearch || (fault._tag === "Unavailable" && fault !== changed)) return located(fault, path)
    return new SkippedEntry(path, "unreadable", walkSortKey(path, "directory"))
  }

  /**
   * Marks the first unread directories that satisfy the condition as requested, and returns them. Returns none if fewer
   * than `least` directories satisfy the condition.
   */
  #takeUnread(count: number, least: number, isWanted: (directory: Directory) => boolean): ReadonlyArray<Directory> {
    const wanted: Array<Directory> = []
    let window = this.#ahead < nearAheadLimit ? fullWindow : this.#ahead < farAheadLimit ? nearWindow : 1
    for (let next = this.#unread; next !== undefined && wanted.length < count && window > 0; next = next.next, window--) {
      if (!next.isRequested && isWanted(next)) wanted.push(next)
    }
    if (wanted.length < least) return []
    for (const directory of wanted) directory.isRequested = true
    this.#requestedCount += wanted.length
    return wanted
  }

  #requestReads(): void {
    const usesProcesses = this.#requestFromProcesses()
    const room = this.#explorer.availableReads()
    if (room === 0) return
    const least = usesProcesses || this.#requestedCount <= busyThreshold ? 1 : minRequested
    const wanted = this.#takeUnread(room, least, ({ isUnusual }) => !usesProcesses || isUnusual)
    if (wanted.length > 0) this.#explorer.read(wanted)
  }

  /**
   * Sends directories to the search processes. Returns true if this thread reads only the directories that processes
   * cannot read.
   */
  #requestFromProcesses(): boolean {
    const trees = this.#trees ?? this.#beginTrees()
    if (trees === undefined) return false
    const room = trees.room()
    if (room > 0) {
      const perJob = this.#ahead < treeAheadLimit ? maxDirectoriesPerJob : this.#directoriesPerJob
      const wanted = this.#takeUnread(room * perJob, 1, ({ isUnusual }) => !isUnusual)
      const size = Math.ceil(wanted.length / room)
      const first = this.#base.path === FsPathModule.root ? 0 : this.#base.path.length + 1
      const budget = this.#directoriesRead < maxDirectoriesPerJob ? firstJobBudget : jobBudget
      for (let at = 0; at < wanted.length; at += size) {
        const visits = wanted.slice(at, at + size)
        const paths = visits.map((visit) => (visit.above === undefined ? "" : visit.path.slice(first)))
        this.#treeJobs++
        trees.send(visits, paths, budget)
      }
    }
    return room > 0 || this.#treeJobs > 0
  }

  #beginTrees(): TreeSearcher<Directory> | undefined {
    const { trees } = this.#explorer
    if (trees === undefined || this.#hasBegunTrees || !this.#plan.isPortable) return undefined
    const least = trees.isWarm() ? directoriesBeforeWarmProcesses : directoriesBeforeColdProcesses
    if (this.#directoriesRead < least) return undefined
    this.#hasBegunTrees = true
    const { exclude, from, include, kinds, maxDepth } = this.#plan
    const tree: TreeSearch = {
      include: include && { patterns: include.patterns, dialect: include.dialect },
      exclude: exclude?.patterns,
      ignore: this.#baseRules && ignoreFilesOf(this.#baseRules, this.#base.at),
      kinds: [...kinds],
      maxDepth,
      from,
      basePath: this.#base.path,
      query: this.#contentSearch?.query
    }
    if (trees.begin(tree, this.#top!)) this.#trees = trees
    return this.#trees
  }

  #addReport(reading: TreeReading<Directory>): void {
    this.#treeJobs--
    let left = 0
    addReport(
      reading,
      this.#answers.ofEntry,
      this.#contentSearch,
      (directory) => this.#finish(directory),
      (directory) => {
        directory.isRequested = false
        this.#requestedCount--
        left++
      }
    )
    const done = reading.visits.length - left
    this.#directoriesPerJob = left > 0 ? Math.max(1, done) : Math.min(maxDirectoriesPerJob, 2 * Math.max(done, 1))
  }

  /** Computes the matcher states of a directory whose parent a search process has read. */
  #restoreState(directory: Directory): Effect.Effect<void, Fault> {
    const { above, segment } = directory
    if (!directory.isForeign || above === undefined) return Effect.void
    const { exclude, include } = this.#plan
    return Effect.flatMap(this.#restoreState(above), () => {
      const { ignore } = above
      // A process has applied the ignore files of the parent. Load these files here too, for the unusual subdirectories.
      const loading =
        above.isDecided && ignore !== undefined ? enterDirectory(ignore, this.#port, above.at, ignoreFileNames) : undefined
      return Effect.map(loading ?? Effect.succeed(ignore), (rules) => {
        directory.include = include && include.below(above.include!, segment)
        directory.exclude = above.exclude && exclude!.below(above.exclude, segment)
        directory.ignore = rules && Ignore.below(rules, segment)
        directory.isForeign = false
      })
    })
  }

  #advance(): Effect.Effect<void, Fault> {
    if (this.#deciding === undefined && this.#pendingReadings.length === 0) {
      for (const { children, visit } of this.#explorer.take()) this.#pendingReadings.push([visit, children])
      this.#pendingReadings.reverse()
      this.#reports.push(...(this.#trees?.take() ?? []))
      if (this.#pendingReadings.length === 0 && this.#reports.length === 0) return this.#explorer.waitForReading
    }
    for (const reading of this.#reports) this.#addReport(reading)
    this.#reports = []
    while (this.#deciding !== undefined || this.#pendingReadings.length > 0) {
      if (this.#deciding === undefined) {
        const [directory, children] = this.#pendingReadings.pop()!
        const entering = isFault(children) ? this.#failed(directory, children) : this.#enter(directory, children)
        if (entering !== undefined) return entering
      }
      if (!this.#decide()) {
        this.#spent = 0
        return Effect.andThen(Effect.yieldNow, this.#judgeInSlices())
      }
    }
    return Effect.void
  }

  #fail(directory: Directory, fault: Fault): void {
    directory.fault = fault
    this.#finish(directory)
  }

  /** Handles a directory that could not be read. Looks again for a directory that is missing although it was listed. */
  #failed(directory: Directory, fault: Fault): Effect.Effect<void, Fault> | undefined {
    if (isNotFound(fault)) {
      return directory.attempts < maxAttempts ? this.#lookFor(directory) : this.#settle(directory, fault, "moved")
    }
    this.#fail(directory, fault)
    return undefined
  }

  /**
   * Looks for a listed directory that is missing.
   *
   * A removed directory counts as empty. A moved or replaced directory is read if its name exists again. Otherwise a search
   * skips the directory, and a walk fails.
   */
  #lookFor(directory: Directory): Effect.Effect<void, Fault> {
    directory.attempts++
    this.#explorer.release(directory)
    return Effect.matchEffect(this.#again(directory), {
      onSuccess: (children) => this.#enter(directory, inWalkOrder(children, this.#port.info.caseSensitive)) ?? Effect.void,
      onFailure: (fault) =>
        isNotFound(fault)
          ? Effect.flatMap(this.#fate(directory), (became) => this.#settle(directory, fault, became))
          : Effect.sync(() => this.#fail(directory, fault))
    })
  }

  #fate({ above, segment }: Directory): Effect.Effect<EntryFate, Fault> {
    return above === undefined ? Effect.succeed("moved") : this.became(above, segment, "directory")
  }

  #settle(directory: Directory, fault: Fault, became: EntryFate): Effect.Effect<void, Fault> {
    if (directory.attempts < maxAttempts) {
      return Effect.andThen(
        Effect.yieldNow,
        Effect.suspend(() => this.#lookFor(directory))
      )
    }
    if (became === "removed") this.#finish(directory)
    // If the base is missing, the walk fails as if the base had never existed.
    else this.#fail(directory, directory.above === undefined && !this.#plan.isSearch ? fault : changed)
    return Effect.void
  }

  #again(directory: Directory): Effect.Effect<ReadonlyArray<Child>, Fault> {
    return this.#explorer.relist?.(directory) ?? this.#port.list(directory.at)
  }

  /**
   * Determines the fate of a missing child by listing its directory again.
   *
   * If the listing has new children of the same kind, the child may have been renamed, or its directory replaced.
   */
  became(directory: Directory, segment: string, kind: Kind): Effect.Effect<EntryFate, Fault> {
    const relistings = (directory.relistings ??= new Relistings())
    const known = relistings.begin(segment, kind)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.matchEffect(this.#again(directory), {
      onSuccess: (children) => Effect.sync(() => relistings.take(directory.listed, children, segment, kind)),
      onFailure: (fault): Effect.Effect<EntryFate, Fault> => {
        if (fault._tag === "Unavailable" && fault !== changed) return Effect.fail(fault)
        const { above } = directory
        if (above === undefined || !isNotFound(fault)) return Effect.succeed("moved")
        const fate = Effect.suspend(() => this.became(above, directory.segment, "directory"))
        return Effect.map(fate, (became) => (relistings.fate = became))
      }
    })
  }

  #enter(directory: Directory, all: ReadonlyArray<Child>): Effect.Effect<void, Fault> | undefined {
    if (directory.isForeign)
      return Effect.flatMap(this.#restoreState(directory), () => this.#enter(directory, all) ?? Effect.void)
    const children = all.some(({ name }) => TemporaryNames.isInProgress(name))
      ? all.filter(({ name }) => !TemporaryNames.isInProgress(name))
      : all
    const { ignore } = directory
    if (children.length <= maxKeptListing) directory.listed = children
    const rules = ignore === undefined ? undefined : enterDirectory(ignore, this.#port, directory.at, children)
    if (rules === undefined && !this.#plan.sizes) {
      this.#deciding = { directory, children, next: 0 }
      return undefined
    }
    const sized = this.#plan.sizes
      ? measure(
          this.#port,
          directory.at,
          children,
          Effect.suspend(() => this.#relisting(directory))
        )
      : Effect.succeed(undefined)
    const prepareChildren = Effect.flatMap(sized, (sizes) =>
      Effect.map(rules ?? Effect.succeed(ignore), (ignore) => {
        directory.sizes = sizes
        directory.ignore = ignore
        const left = sizes === undefined ? children : [...sizes.keys()]
        if (left.length <= maxKeptListing) directory.listed = left
        this.#deciding = { directory, children: left, next: 0 }
      })
    )
    return Effect.catch(prepareChildren, (fault) => this.#failed(directory, fault) ?? Effect.void)
  }

  #relisting(directory: Directory): Effect.Effect<ReadonlyArray<Child>, Fault> {
    return Effect.map(this.#again(directory), (children) =>
      inWalkOrder(
        children.filter(({ name }) => !TemporaryNames.isInProgress(name)),
        this.#port.info.caseSensitive
      )
    )
  }

  #judgeInSlices(): Effect.Effect<void> {
    const { children, directory, next } = this.#deciding!
    const { kind, name } = children[next]!
    const { ignore } = directory
    if (ignore === undefined || Ignore.maxSteps(ignore, name.length) <= stepsPerSlice) return Effect.void
    return Effect.map(
      runInSlices(() => Ignore.judgeSteps(ignore, name, kind === "directory")),
      (verdict) => {
        this.#verdict = verdict
      }
    )
  }

  #decide(): boolean {
    const deciding = this.#deciding
    if (deciding === undefined) return true
    const { children, directory } = deciding
    while (deciding.next < children.length) {
      if (this.#spent > stepsPerSlice) return false
      const child = children[deciding.next]!
      const ignoring = directory.ignore === undefined ? 0 : Ignore.maxSteps(directory.ignore, child.name.length)
      if (ignoring > stepsPerSlice && this.#verdict === undefined) return false
      deciding.next++
      this.#spent += stepsPerChild + this.#cost(directory, child) + (this.#verdict === undefined ? ignoring : 0)
      this.#classify(directory, child)
      this.#verdict = undefined
    }
    this.#deciding = undefined
    this.#finish(directory)
    return true
  }

  #classify(directory: Directory, child: Child): void {
    const { items } = directory
    if (this.#isIgnored(directory, child)) {
      const path = FsPathModule.join(directory.path, child.name)
      items.push(new SkippedEntry(path, "ignored", walkSortKey(path, child.kind)))
    } else if (this.#plan.isSearch && !child.addressable) {
      const path = FsPathModule.join(directory.path, child.name)
      items.push(new SkippedEntry(path, "unreadable", walkSortKey(path, child.kind)))
    } else {
      if (this.#isAnswer(directory, child)) {
        items.push(this.#answers.ofChild(directory, child))
        if (this.#holds) directory.uses++
      }
      if (child.kind !== "directory") return
      const state = this.#stateBelow(directory, child)
      if (state === undefined) return
      const below = new Directory(directory, keyOf(child), state)
      below.isUnusual = !state.addressable
      items.push(below)
      directory.uses++
    }
  }

  #finish(directory: Directory): void {
    const { above, next, previous } = directory
    let last = previous
    for (const item of directory.items) {
      if (!(item instanceof Directory)) continue
      this.#link(last, item)
      last = item
    }
    if (next !== undefined) next.previous = last
    if (last === undefined) this.#unread = next
    else last.next = next
    directory.previous = directory.next = undefined
    directory.isClassified = true
    this.#requestedCount--
    this.#directoriesRead += directory.directoryCount
    this.#ahead += weightOf(directory)
    if (directory.uses > 0 && !directory.isDecided) this.#explorer.keepOpen(directory)
    else if (directory.uses === 0) this.#explorer.release(directory)
    if (above !== undefined) this.releaseFiles(above, 1)
  }

  #link(previous: Directory | undefined, next: Directory): void {
    next.previous = previous
    if (previous === undefined) this.#unread = next
    else previous.next = next
  }

  #cost(directory: Directory, { name: { length } }: Child): number {
    const { exclude, include } = this.#plan
    return (
      (directory.include === undefined ? 0 : include!.cost(directory.include, length)) +
      (directory.exclude === undefined ? 0 : exclude!.cost(directory.exclude, length))
    )
  }

  #isAnswer(directory: Directory, child: Child): boolean {
    const { include, kinds } = this.#plan
    return (
      kinds.has(child.kind) &&
      (include === undefined || include.matches(directory.include!, child.name, child.kind === "directory"))
    )
  }

  #isIgnored(directory: Directory, child: Child): boolean {
    const { exclude } = this.#plan
    const isDirectory = child.kind === "directory"
    return (
      (directory.exclude !== undefined && exclude!.matches(directory.exclude, child.name, isDirectory)) ||
      (this.#verdict?.ignored ?? (directory.ignore !== undefined && Ignore.ignores(directory.ignore, child.name, isDirectory)))
    )
  }

  #stateBelow(directory: Directory, child: Child): DirectoryState | undefined {
    const { exclude, include, maxDepth } = this.#plan
    if (directory.depth >= maxDepth) return undefined
    const included = include?.below(directory.include!, child.name)
    if (include !== undefined && included === undefined) return undefined
    const path = FsPathModule.join(directory.path, child.name)
    if (this.#isBefore(path)) return undefined
    return {
      path,
      at: directory.at === directory.path && keyOf(child) === child.name ? path : FsPathModule.join(directory.at, keyOf(child)),
      depth: directory.depth + 1,
      addressable: directory.addressable && child.addressable,
      include: included,
      exclude: directory.exclude && exclude!.below(directory.exclude, child.name),
      ignore: this.#verdict?.below ?? (directory.ignore && Ignore.below(directory.ignore, child.name))
    }
  }

  #isBefore(path: FsPathModule.FsPath): boolean {
    const { from } = this.#plan
    if (from === undefined) return false
    const [key, first] = this.#port.info.caseSensitive
      ? [`${path}/`, from]
      : [FsPathModule.fold(`${path}/`), FsPathModule.fold(from)]
    return FsPathModule.compare(key, first) < 0 && !first.startsWith(key)
  }
}
