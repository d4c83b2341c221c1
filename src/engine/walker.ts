/**
 * A walk goes depth first, in the order of whole paths, without recursion, and descends only where something can still be found. What
 * becomes of a directory's children is decided as soon as it was read, so that where the backend can read several at a time the next
 * ones are being read while the first are answered; what is answered, passed over and complained of comes in order all the same.
 */
import * as Effect from "effect/Effect"
import type { Kind } from "../model/Entry.ts"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, type Child, keyOf } from "../port/Backend.ts"
import { changed, type Explorer, type Visit } from "../port/explorer.ts"
import { inWalkOrder, keyIn } from "../port/order.ts"
import { inSlices } from "../runtime/steps.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import * as Ignore from "./ignore.ts"
import type * as Matcher from "./matcher.ts"
import { type Became, Relistings } from "./missing.ts"
import { isFault } from "./options.ts"
import { Passed } from "./passed.ts"
import { measure } from "./sizes.ts"
import type { Base, Plan } from "./walk.ts"

/** After so many steps of matching, each of a few nanoseconds, others have their turn. */
const slice = 2 ** 18
/** What deciding about a child takes beside matching, and reading about a directory, in the same steps. */
const eachChild = 24
/** Answers given at once. */
const chunk = 4096

/**
 * Directories that were read but are not yet answered: above the first number only those next to the place where the walk stands are
 * read ahead, above the second none. 64 children count for one.
 */
const ahead = 4096
const farAhead = 8192
const nextTo = 256
/** How far to look for directories that can be read. */
const inSight = 512

/** Fewer than so many directories are not asked for while more than so many are being read: each question costs as much as ten. */
const few = 48
const many = 96

/** The number of times a directory is looked for that was listed and is not found. */
const maxLooks = 3
/** The children of larger directories are not kept to be compared with later ones. */
const largest = 65_536

/** How a walk comes to a directory: what is known of it before it is read. */
interface Way {
  readonly path: FsPath.FsPath
  readonly at: FsPath.FsPath
  readonly depth: number
  /** No name on the way was one that no path can express. */
  readonly addressable: boolean
  readonly include: Matcher.State | undefined
  readonly exclude: Matcher.State | undefined
  readonly ignore: Ignore.Rules | undefined
}

/** A directory on the walk. */
export class Directory implements Visit, Way {
  readonly above: Directory | undefined
  readonly segment: string
  readonly path: FsPath.FsPath
  readonly at: FsPath.FsPath
  readonly depth: number
  readonly addressable: boolean
  readonly include: Matcher.State | undefined
  readonly exclude: Matcher.State | undefined
  ignore: Ignore.Rules | undefined
  /** Of the children, where they were asked for. */
  sizes: ReadonlyMap<Child, number> | undefined
  /** What is to be answered in it, in order: answers, what is passed over, and directories. */
  items: Array<unknown> = []
  /** How many items have been answered. */
  answered = 0
  /** Why it could not be read. */
  fault: Fault | undefined
  isAsked = false
  isDecided = false
  /** The number of times it was looked for again. */
  looks = 0
  /** The children as they were listed; left out where they are many. */
  listed: ReadonlyArray<Child> | undefined
  relistings: Relistings | undefined
  /** What in it is still to be read, and files of it that are still to be searched: so long it is kept at hand. */
  uses = 0
  /** Its neighbours among the directories that have not been read, in the order of the walk. */
  previous: Directory | undefined
  next: Directory | undefined

  constructor(above: Directory | undefined, segment: string, way: Way) {
    this.above = above
    this.segment = segment
    this.path = way.path
    this.at = way.at
    this.depth = way.depth
    this.addressable = way.addressable
    this.include = way.include
    this.exclude = way.exclude
    this.ignore = way.ignore
  }
}

const isAbsence = ({ _tag }: Fault): boolean => _tag === "NotFound" || _tag === "NotADirectory"

/** What it costs to have read a directory and not to have answered it. */
const weightOf = ({ items }: Directory): number => 1 + (items.length >> 6)

export class Walker<A> {
  readonly #port: Backend
  readonly #explorer: Explorer<Directory>
  readonly #plan: Plan
  readonly #answer: (directory: Directory, child: Child) => A
  /** Whether the files that are answered are to be searched, for which their directories are kept. */
  readonly #holds: boolean
  readonly #base: Base
  /** Where the walk stands; `undefined` at its end. */
  #current: Directory | undefined
  /** The first directory that has not been read. */
  #unread: Directory | undefined
  /** Directories that were read but are not yet answered. */
  #ahead = 0
  /** One about whose children it is being decided, and how far that has come. */
  #deciding: { readonly directory: Directory; readonly children: ReadonlyArray<Child>; next: number } | undefined
  /** The judgement of the ignore rules on the next child, where it took too many steps to be found without a pause. */
  #verdict: Ignore.Verdict | undefined
  #arrived: Array<readonly [Directory, ReadonlyArray<Child> | Fault]> = []
  /** Steps since others had their turn. */
  #spent = 0
  #isStarted = false
  /** Directories that are being read. */
  #asked = 0

  constructor(
    port: Backend,
    explorer: Explorer<Directory>,
    plan: Plan,
    base: Base,
    answer: (directory: Directory, child: Child) => A,
    holds = false
  ) {
    this.#port = port
    this.#explorer = explorer
    this.#plan = plan
    this.#base = base
    this.#answer = answer
    this.#holds = holds
  }

  /** Some answers and what was passed over between them, perhaps none; `undefined` at the end. */
  readonly next: Effect.Effect<ReadonlyArray<A | Passed> | undefined, Fault> = Effect.suspend(() => {
    if (!this.#isStarted) return Effect.andThen(this.#start(), this.next)
    const out: Array<A | Passed> = []
    const fault = this.#emit(out)
    if (fault !== undefined) return Effect.fail(fault)
    this.#ask()
    if (out.length > 0) return Effect.succeed(out)
    if (this.#current === undefined) return Effect.succeed(undefined)
    return Effect.andThen(this.#advance(), this.next)
  })

  /** For each file that was answered, when it has been searched. */
  done(directory: Directory, files: number): void {
    directory.uses -= files
    if (directory.uses === 0) this.#explorer.leave(directory)
  }

  #start(): Effect.Effect<void, Fault> {
    this.#isStarted = true
    const { at, path } = this.#base
    const { exclude, gitignore, include } = this.#plan
    const rules = gitignore ? Ignore.atBase(this.#port, at) : Effect.succeed(undefined)
    return Effect.map(rules, (ignore) => {
      const way = { path, at, depth: 1, addressable: true, include: include?.start, exclude: exclude?.start, ignore }
      this.#current = this.#unread = new Directory(undefined, "", way)
      this.#ask()
    })
  }

  /** All that can be answered before a directory has to be read, or as much as is answered at once. */
  #emit(out: Array<A | Passed>): Fault | undefined {
    for (let directory = this.#current; directory !== undefined && directory.isDecided; directory = this.#current) {
      const { fault, items } = directory
      if (fault !== undefined) {
        const complaint = this.#complaint(directory, fault)
        if (complaint instanceof Passed) out.push(complaint)
        // Emit earlier entries before reporting the failure.
        else return out.length > 0 ? undefined : complaint
      }
      while (directory.answered < items.length && this.#current === directory) {
        const item = items[directory.answered]
        // Nobody needs it any more, and below it the whole tree would stay.
        items[directory.answered++] = undefined
        if (item instanceof Directory) this.#current = item
        else if (out.push(item as A | Passed) === chunk) return undefined
      }
      if (this.#current !== directory) continue
      this.#ahead -= weightOf(directory)
      this.#current = directory.above
    }
    return undefined
  }

  /** Says that a directory cannot be read. A search goes on, unless the whole backend is gone. */
  #complaint({ path }: Directory, fault: Fault): Passed | Fault {
    if (!this.#plan.isSearch || (fault._tag === "Unavailable" && fault !== changed)) return located(fault, path)
    return new Passed(path, "unreadable", keyIn(path, "directory"))
  }

  /** Asks for the directories that come next; for few of them not while many are being read. */
  #ask(): void {
    const room = this.#explorer.room()
    if (room === 0) return
    const wanted: Array<Directory> = []
    let sight = this.#ahead < ahead ? inSight : this.#ahead < farAhead ? nextTo : 1
    for (let next = this.#unread; next !== undefined && wanted.length < room && sight > 0; next = next.next, sight--) {
      if (!next.isAsked) wanted.push(next)
    }
    if (wanted.length === 0 || (wanted.length < few && this.#asked > many)) return
    for (const directory of wanted) directory.isAsked = true
    this.#asked += wanted.length
    this.#explorer.read(wanted)
  }

  /** Decides about what has been read, or waits until something has. */
  #advance(): Effect.Effect<void, Fault> {
    if (this.#deciding === undefined && this.#arrived.length === 0) {
      for (const { children, visit } of this.#explorer.take()) this.#arrived.push([visit, children])
      this.#arrived.reverse()
      if (this.#arrived.length === 0) return this.#explorer.wait
    }
    while (this.#deciding !== undefined || this.#arrived.length > 0) {
      if (this.#deciding === undefined) {
        const [directory, children] = this.#arrived.pop()!
        const entering = isFault(children) ? this.#failed(directory, children) : this.#enter(directory, children)
        if (entering !== undefined) return entering
      }
      if (!this.#decide()) {
        this.#spent = 0
        return Effect.andThen(Effect.yieldNow, this.#judge())
      }
    }
    return Effect.void
  }

  #fail(directory: Directory, fault: Fault): void {
    directory.fault = fault
    this.#finish(directory)
  }

  /** Settles a directory that could not be read; one that was listed and is not found is looked for again. */
  #failed(directory: Directory, fault: Fault): Effect.Effect<void, Fault> | undefined {
    if (isAbsence(fault)) {
      return directory.looks < maxLooks ? this.#lookFor(directory) : this.#settle(directory, fault, "moved")
    }
    this.#fail(directory, fault)
    return undefined
  }

  /**
   * Looks for a directory that was listed and is not found. One that was removed is empty. One that was moved or exchanged is read where
   * its name is there again, and otherwise said to be skipped.
   */
  #lookFor(directory: Directory): Effect.Effect<void, Fault> {
    directory.looks++
    this.#explorer.leave(directory)
    return Effect.matchEffect(this.#again(directory), {
      onSuccess: (children) => this.#enter(directory, inWalkOrder(children, this.#port.info.caseSensitive)) ?? Effect.void,
      onFailure: (fault) =>
        isAbsence(fault)
          ? Effect.flatMap(this.#fate(directory), (became) => this.#settle(directory, fault, became))
          : Effect.sync(() => this.#fail(directory, fault))
    })
  }

  #fate({ above, segment }: Directory): Effect.Effect<Became, Fault> {
    return above === undefined ? Effect.succeed("moved") : this.became(above, segment, "directory")
  }

  /** Looks for a directory again, or gives it up. */
  #settle(directory: Directory, fault: Fault, became: Became): Effect.Effect<void, Fault> {
    if (directory.looks < maxLooks) {
      return Effect.andThen(
        Effect.yieldNow,
        Effect.suspend(() => this.#lookFor(directory))
      )
    }
    if (became === "removed") this.#finish(directory)
    // A base that is missing fails as it does when it was never there.
    else this.#fail(directory, directory.above === undefined && !this.#plan.isSearch ? fault : changed)
    return Effect.void
  }

  /** Lists a directory once more. */
  #again(directory: Directory): Effect.Effect<ReadonlyArray<Child>, Fault> {
    return this.#explorer.again?.(directory) ?? this.#port.list(directory.at)
  }

  /**
   * Tells what became of a child that was listed and is not found, by another listing of its directory. Where new children of its kind
   * have come, it may be one of them, or the directory may be another one.
   */
  became(directory: Directory, segment: string, kind: Kind): Effect.Effect<Became, Fault> {
    const relistings = (directory.relistings ??= new Relistings())
    const known = relistings.begin(segment, kind)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.matchEffect(this.#again(directory), {
      onSuccess: (children) => Effect.sync(() => relistings.take(directory.listed, children, segment, kind)),
      onFailure: (fault): Effect.Effect<Became, Fault> => {
        if (fault._tag === "Unavailable" && fault !== changed) return Effect.fail(fault)
        const { above } = directory
        if (above === undefined || !isAbsence(fault)) return Effect.succeed("moved")
        const fate = Effect.suspend(() => this.became(above, directory.segment, "directory"))
        return Effect.map(fate, (became) => (relistings.fate = became))
      }
    })
  }

  /** What has to be looked at before it can be decided about the children, where that is anything. */
  #enter(directory: Directory, all: ReadonlyArray<Child>): Effect.Effect<void, Fault> | undefined {
    const children = all.some(({ name }) => TemporaryNames.isInProgress(name))
      ? all.filter(({ name }) => !TemporaryNames.isInProgress(name))
      : all
    const { ignore } = directory
    if (children.length <= largest) directory.listed = children
    const rules = ignore === undefined ? undefined : Ignore.enter(ignore, this.#port, directory.at, children)
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
    const looked = Effect.flatMap(sized, (sizes) =>
      Effect.map(rules ?? Effect.succeed(ignore), (ignore) => {
        directory.sizes = sizes
        directory.ignore = ignore
        const left = sizes === undefined ? children : [...sizes.keys()]
        if (left.length <= largest) directory.listed = left
        this.#deciding = { directory, children: left, next: 0 }
      })
    )
    return Effect.catch(looked, (fault) => this.#failed(directory, fault) ?? Effect.void)
  }

  /** Lists a directory once more, as a walk reads it. */
  #relisting(directory: Directory): Effect.Effect<ReadonlyArray<Child>, Fault> {
    return Effect.map(this.#again(directory), (children) =>
      inWalkOrder(
        children.filter(({ name }) => !TemporaryNames.isInProgress(name)),
        this.#port.info.caseSensitive
      )
    )
  }

  /** Asks the ignore rules about the next child, in slices. */
  #judge(): Effect.Effect<void> {
    const { children, directory, next } = this.#deciding!
    const { kind, name } = children[next]!
    const { ignore } = directory
    if (ignore === undefined || Ignore.cost(ignore, name.length) <= slice) return Effect.void
    return Effect.map(
      inSlices(() => Ignore.judging(ignore, name, kind === "directory")),
      (verdict) => {
        this.#verdict = verdict
      }
    )
  }

  /** Whether it has come to its end, or others have to have their turn. */
  #decide(): boolean {
    const deciding = this.#deciding
    if (deciding === undefined) return true
    const { children, directory } = deciding
    while (deciding.next < children.length) {
      if (this.#spent > slice) return false
      const child = children[deciding.next]!
      const ignoring = directory.ignore === undefined ? 0 : Ignore.cost(directory.ignore, child.name.length)
      if (ignoring > slice && this.#verdict === undefined) return false
      deciding.next++
      this.#spent += eachChild + this.#cost(directory, child) + (this.#verdict === undefined ? ignoring : 0)
      this.#look(directory, child)
      this.#verdict = undefined
    }
    this.#deciding = undefined
    this.#finish(directory)
    return true
  }

  /** What becomes of a child. */
  #look(directory: Directory, child: Child): void {
    const { items } = directory
    if (this.#isLeftOut(directory, child)) {
      const path = FsPath.join(directory.path, child.name)
      items.push(new Passed(path, "ignored", keyIn(path, child.kind)))
    } else if (this.#plan.isSearch && !child.addressable) {
      const path = FsPath.join(directory.path, child.name)
      items.push(new Passed(path, "unreadable", keyIn(path, child.kind)))
    } else {
      if (this.#isAnswer(directory, child)) {
        items.push(this.#answer(directory, child))
        if (this.#holds) directory.uses++
      }
      if (child.kind !== "directory") return
      const way = this.#way(directory, child)
      if (way === undefined) return
      items.push(new Directory(directory, keyOf(child), way))
      directory.uses++
    }
  }

  /** A directory that has been read makes way for those in it. */
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
    directory.isDecided = true
    this.#asked--
    this.#ahead += weightOf(directory)
    if (directory.uses > 0) this.#explorer.hold(directory)
    else this.#explorer.leave(directory)
    if (above !== undefined) this.done(above, 1)
  }

  #link(previous: Directory | undefined, next: Directory): void {
    next.previous = previous
    if (previous === undefined) this.#unread = next
    else previous.next = next
  }

  /** At most so many steps the patterns take to see what becomes of a child. */
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

  #isLeftOut(directory: Directory, child: Child): boolean {
    const { exclude } = this.#plan
    const isDirectory = child.kind === "directory"
    return (
      (directory.exclude !== undefined && exclude!.matches(directory.exclude, child.name, isDirectory)) ||
      (this.#verdict?.ignored ?? (directory.ignore !== undefined && Ignore.ignores(directory.ignore, child.name, isDirectory)))
    )
  }

  /** The way into a child; `undefined` where nothing in it can be an answer. */
  #way(directory: Directory, child: Child): Way | undefined {
    const { exclude, include, maxDepth } = this.#plan
    if (directory.depth >= maxDepth) return undefined
    const included = include?.below(directory.include!, child.name)
    if (include !== undefined && included === undefined) return undefined
    const path = FsPath.join(directory.path, child.name)
    if (this.#isBefore(path)) return undefined
    return {
      path,
      at: directory.at === directory.path && keyOf(child) === child.name ? path : FsPath.join(directory.at, keyOf(child)),
      depth: directory.depth + 1,
      addressable: directory.addressable && child.addressable,
      include: included,
      exclude: directory.exclude && exclude!.below(directory.exclude, child.name),
      ignore: this.#verdict?.below ?? (directory.ignore && Ignore.below(directory.ignore, child.name))
    }
  }

  /** Whether everything in the directory stands before what is wanted. */
  #isBefore(path: FsPath.FsPath): boolean {
    const { from } = this.#plan
    if (from === undefined) return false
    const [key, first] = this.#port.info.caseSensitive ? [`${path}/`, from] : [FsPath.fold(`${path}/`), FsPath.fold(from)]
    return FsPath.compare(key, first) < 0 && !first.startsWith(key)
  }
}
