/**
 * One walk for everything that looks at trees: depth first, in the order of whole paths, without recursion, descending only where
 * something can still be found. A walk fails on what it cannot read; a search counts it and goes on.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { FileEntry, Kind } from "../model/Entry.ts"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, type Child, keyOf } from "../port/Backend.ts"
import * as Ignore from "./ignore.ts"
import * as Matcher from "./matcher.ts"
import { count, invalid, isFault, list, type PlanContext, type SearchOptions, type WalkOptions } from "./options.ts"
import type { Skip } from "./skips.ts"

/** A directory: what the caller calls it, and where it is. */
export interface Base {
  readonly path: FsPath.FsPath
  readonly at: FsPath.FsPath
}

export interface Plan {
  /** Only what this matches is answered, and nothing is entered where it could not match. */
  readonly include: Matcher.Matcher | undefined
  readonly exclude: Matcher.Matcher | undefined
  readonly gitignore: boolean
  /** What is answered; everything is walked through. */
  readonly kinds: ReadonlySet<Kind>
  readonly maxDepth: number
  readonly sizes: boolean
  /** Nothing that stands before this key is answered. */
  readonly from: string | undefined
  readonly onSkip: SearchOptions["onSkip"]
  /** Whether what cannot be read is skipped, and not a failure. */
  readonly isSearch: boolean
}

const everything: ReadonlySet<Kind> = new Set<Kind>(["file", "directory", "symlink", "other"])

const compileExclude = (options: SearchOptions, context: PlanContext): Matcher.Matcher | undefined | Fault => {
  const patterns = list(options.exclude)
  return patterns.length === 0 ? undefined : Matcher.compile(patterns, { argument: "exclude", rules: true }, context)
}

export const plan = (options: WalkOptions, context: PlanContext): Plan | Fault => {
  const exclude = compileExclude(options, context)
  if (isFault(exclude)) return exclude
  const maxDepth = count("maxDepth", options.maxDepth, Number.POSITIVE_INFINITY)
  if (isFault(maxDepth)) return maxDepth
  return {
    include: undefined,
    exclude,
    gitignore: options.gitignore === true,
    kinds: everything,
    maxDepth,
    sizes: options.sizes === true,
    from: undefined,
    onSkip: options.onSkip,
    isSearch: false
  }
}

const checkKinds = (kinds: ReadonlyArray<Kind>): Fault | undefined =>
  Array.isArray(kinds) && kinds.every((kind) => everything.has(kind))
    ? undefined
    : invalid("kinds", `it must be a list of ${[...everything].join(", ")}`)

export interface SearchFor extends SearchOptions {
  readonly include: Matcher.Matcher | undefined
  readonly kinds: ReadonlyArray<Kind>
  readonly sizes?: boolean | undefined
  readonly from: string | undefined
}

/** For glob and grep. */
export const searchPlan = (options: SearchFor, context: PlanContext): Plan | Fault => {
  const exclude = compileExclude(options, context)
  if (isFault(exclude)) return exclude
  const fault = checkKinds(options.kinds)
  if (fault !== undefined) return fault
  return {
    include: options.include,
    exclude,
    gitignore: options.gitignore === true,
    kinds: new Set(options.kinds),
    maxDepth: Number.POSITIVE_INFINITY,
    sizes: options.sizes === true,
    from: options.from,
    onSkip: undefined,
    isSearch: true
  }
}

/** Where an entry stands in the order of whole paths: a directory as its name and "/", so that it comes just before what is in it. */
export const keyIn = (path: string, kind: Kind): string => (kind === "directory" ? `${path}/` : path)

interface Frame {
  readonly path: FsPath.FsPath
  readonly at: FsPath.FsPath
  readonly depth: number
  /** No name on the way was one that no path can express. */
  readonly addressable: boolean
  readonly children: ReadonlyArray<Child>
  /** Of the children, where they were asked for. */
  readonly sizes: ReadonlyMap<Child, number> | undefined
  readonly include: Matcher.State | undefined
  readonly exclude: Matcher.State | undefined
  readonly ignore: Ignore.Rules | undefined
  next: number
}

/** By name, a directory as its name and "/". */
export const inWalkOrder = (children: ReadonlyArray<Child>, caseSensitive: boolean): Array<Child> => {
  const key = caseSensitive
    ? (child: Child) => keyIn(child.name, child.kind)
    : (child: Child) => FsPath.fold(keyIn(child.name, child.kind))
  return children
    .map((child) => ({ child, key: key(child) }))
    .sort((a, b) => FsPath.compare(a.key, b.key))
    .map(({ child }) => child)
}

const entryOf = (frame: Frame, child: Child): FileEntry => {
  const { addressable, kind, name } = child
  const entry = {
    name,
    path: FsPath.join(frame.path, name),
    kind,
    isFile: kind === "file",
    isDirectory: kind === "directory",
    addressable: addressable && frame.addressable
  }
  return frame.sizes === undefined ? entry : { ...entry, sizeBytes: frame.sizes.get(child) ?? 0 }
}

/** After so many steps of matching, each of a few nanoseconds, others have their turn. */
const slice = 2 ** 18

class Walker {
  readonly port: Backend
  readonly plan: Plan
  readonly skip: Skip
  readonly stack: Array<Frame> = []
  /** Steps since others had their turn. */
  spent = 0

  constructor(port: Backend, plan: Plan, skip: Skip) {
    this.port = port
    this.plan = plan
    this.skip = skip
  }

  /** Reads a directory and makes it the one that goes on. */
  enter(place: Omit<Frame, "children" | "sizes" | "next">): Effect.Effect<void, Fault> {
    const { port } = this
    const opened = Effect.flatMap(port.list(place.at), (all) => {
      const children = inWalkOrder(
        all.filter((child) => !FsPath.isTemporaryName(child.name)),
        port.info.caseSensitive
      )
      const sized = this.plan.sizes ? measure(port, place.at, children) : Effect.succeed(undefined)
      const ignored =
        place.ignore === undefined ? Effect.succeed(undefined) : Ignore.enter(place.ignore, port, place.at, children)
      return Effect.flatMap(sized, (sizes) =>
        Effect.map(ignored, (ignore) => {
          const left = sizes === undefined ? children : children.filter((child) => sizes.has(child))
          this.stack.push({ ...place, children: left, sizes, ignore, next: 0 })
        })
      )
    })
    return Effect.catch(opened, (fault) => this.unread(place.path, fault))
  }

  /** A directory that has gone is empty; one that cannot be read is said. */
  unread(path: FsPath.FsPath, fault: Fault): Effect.Effect<void, Fault> {
    if (fault._tag === "NotFound" || fault._tag === "NotADirectory") return Effect.void
    if (!this.plan.isSearch || fault._tag === "Unavailable") return Effect.fail(located(fault, path))
    return Effect.sync(() => this.skip(path, "unreadable", keyIn(path, "directory")))
  }

  /** Whether everything in the directory stands before what is wanted. */
  isBefore(path: FsPath.FsPath): boolean {
    const { from } = this.plan
    if (from === undefined) return false
    const [key, first] = this.port.info.caseSensitive ? [`${path}/`, from] : [FsPath.fold(`${path}/`), FsPath.fold(from)]
    return FsPath.compare(key, first) < 0 && !first.startsWith(key)
  }

  /** At most so many steps it takes to see what becomes of a child. */
  cost(frame: Frame, { name: { length } }: Child): number {
    const { exclude, include } = this.plan
    return (
      (frame.include === undefined ? 0 : include!.cost(frame.include, length)) +
      (frame.exclude === undefined ? 0 : exclude!.cost(frame.exclude, length)) +
      (frame.ignore === undefined ? 0 : Ignore.cost(frame.ignore, length))
    )
  }

  isAnswer(frame: Frame, child: Child): boolean {
    const { include, kinds } = this.plan
    return (
      kinds.has(child.kind) &&
      (include === undefined || include.matches(frame.include!, child.name, child.kind === "directory"))
    )
  }

  isLeftOut(frame: Frame, child: Child): boolean {
    const { exclude } = this.plan
    const directory = child.kind === "directory"
    return (
      (frame.exclude !== undefined && exclude!.matches(frame.exclude, child.name, directory)) ||
      (frame.ignore !== undefined && (child.name === ".git" || Ignore.ignores(frame.ignore, child.name, directory)))
    )
  }

  /** The way into a child directory; `undefined` where nothing in it can be an answer. */
  way(frame: Frame, child: Child, path: FsPath.FsPath): Omit<Frame, "children" | "sizes" | "next"> | undefined {
    const { exclude, include, maxDepth } = this.plan
    if (frame.depth >= maxDepth || this.isBefore(path)) return undefined
    const included = include?.below(frame.include!, child.name)
    if (include !== undefined && included === undefined) return undefined
    return {
      path,
      at: FsPath.join(frame.at, keyOf(child)),
      depth: frame.depth + 1,
      addressable: frame.addressable && child.addressable,
      include: included,
      exclude: frame.exclude && exclude!.below(frame.exclude, child.name),
      ignore: frame.ignore && Ignore.below(frame.ignore, child.name)
    }
  }

  /** The next entries, up to a directory that has to be read or until others have their turn; `undefined` at the end. */
  pull(): Effect.Effect<ReadonlyArray<FileEntry> | undefined, Fault> {
    const out: Array<FileEntry> = []
    while (this.stack.length > 0) {
      const frame = this.stack[this.stack.length - 1]!
      if (frame.next === frame.children.length) {
        this.stack.pop()
        continue
      }
      if (this.spent > slice) {
        this.spent = 0
        return Effect.as(Effect.yieldNow, out)
      }
      const child = frame.children[frame.next++]!
      this.spent += this.cost(frame, child)
      const path = FsPath.join(frame.path, child.name)
      if (this.isLeftOut(frame, child)) {
        this.skip(path, "ignored", keyIn(path, child.kind))
        continue
      }
      const isAnswer = this.isAnswer(frame, child)
      if (this.plan.isSearch && !child.addressable) {
        this.skip(path, "unreadable", keyIn(path, child.kind))
        continue
      }
      if (isAnswer) out.push(entryOf(frame, child))
      if (child.kind !== "directory") continue
      const way = this.way(frame, child, path)
      if (way !== undefined) return Effect.as(this.enter(way), out)
    }
    return Effect.succeed(out.length === 0 ? undefined : out)
  }
}

const measure = Effect.fnUntraced(function* (
  port: Backend,
  at: FsPath.FsPath,
  children: ReadonlyArray<Child>
): Effect.fn.Return<ReadonlyMap<Child, number>, Fault> {
  const sizes = new Map<Child, number>()
  for (const child of children) {
    if (child.kind === "directory") sizes.set(child, 0)
    else if (child.sizeBytes !== undefined) sizes.set(child, child.sizeBytes)
    else {
      const stat = yield* port.stat(FsPath.join(at, keyOf(child)))
      if (stat !== undefined) sizes.set(child, stat.sizeBytes)
    }
  }
  return sizes
})

const walkWith = (port: Backend, base: Base, self: Plan, skip: Skip): Stream.Stream<FileEntry, Fault> =>
  Stream.fromPull(
    Effect.sync(() => {
      const walker = new Walker(port, self, skip)
      const start = Effect.flatMap(self.gitignore ? Ignore.atBase(port, base.at) : Effect.succeed(undefined), (ignore) =>
        walker.enter({
          ...base,
          depth: 1,
          addressable: true,
          include: self.include?.start,
          exclude: self.exclude?.start,
          ignore
        })
      )
      let isStarted = false
      const next: Effect.Effect<[FileEntry, ...Array<FileEntry>], Fault | Cause.Done> = Effect.suspend(() => {
        const step = isStarted
          ? walker.pull()
          : Effect.andThen(
              start,
              Effect.suspend(() => walker.pull())
            )
        isStarted = true
        return Effect.flatMap(step, (entries) => {
          if (entries === undefined) return Cause.done()
          return entries.length === 0 ? next : Effect.succeed(entries as [FileEntry, ...Array<FileEntry>])
        })
      })
      return next
    })
  )

export const walk = (port: Backend, base: Base, self: Plan): Stream.Stream<FileEntry, Fault> =>
  walkWith(port, base, self.maxDepth === 0 ? { ...self, kinds: new Set() } : self, (path, why) => self.onSkip?.(path, why))

export const search = (port: Backend, base: Base, self: Plan, skip: Skip): Stream.Stream<FileEntry, Fault> =>
  walkWith(port, base, self, skip)

/** How keys are compared: as they are, or folded where case does not distinguish. */
export const foldOf = (port: Backend): ((key: string) => string) =>
  port.info.caseSensitive ? (key) => key : (key) => FsPath.fold(key)
