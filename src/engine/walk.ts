import { is as isFault, invalidArgument } from "../model/Fault.ts"
import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FileEntry, Kind } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import { type DirectoryReading, type Explorer, inWalkOrder } from "../port/explorer.ts"
import * as Matcher from "./matcher.ts"
import { checkCount, list, type PlanContext, type SearchOptions, type WalkOptions } from "./options.ts"
import { type Skip, SkippedEntry } from "./skips.ts"
import type { Answers, Directory } from "./walkDirectory.ts"
import { Walker } from "./walker.ts"

const pathOf = ({ at }: Directory) => at

const makeSequential = (port: Backend): Explorer<Directory> => {
  const { caseSensitive } = port.info
  let requestedVisit: Directory | undefined
  let pendingReadings: Array<DirectoryReading<Directory>> = []
  return {
    availableReads: () => (requestedVisit === undefined && pendingReadings.length === 0 ? 1 : 0),
    read: ([visit]) => {
      requestedVisit = visit
    },
    take: () => {
      const taken = pendingReadings
      pendingReadings = []
      return taken
    },
    waitForReading: Effect.suspend(() => {
      const visit = requestedVisit!
      requestedVisit = undefined
      return Effect.match(port.list(visit.at), {
        onSuccess: (children) => void pendingReadings.push({ visit, children: inWalkOrder(children, caseSensitive) }),
        onFailure: (children) => void pendingReadings.push({ visit, children })
      })
    }),
    keepOpen: () => {},
    release: () => {}
  }
}

/**
 * Creates the explorer of a backend, or an explorer that lists directories on demand. `searches` is true if the files
 * will be searched.
 */
export const make = (port: Backend, searches = false): Effect.Effect<Explorer<Directory>, never, Scope.Scope> =>
  port.explore?.(pathOf, searches) ?? Effect.sync(() => makeSequential(port))

export interface Base {
  readonly path: FsPath.FsPath
  readonly at: FsPath.FsPath
}

export interface Plan {
  /** The globs of results. The walk does not enter a directory that cannot contain a match. */
  readonly include: Matcher.Matcher | undefined
  readonly exclude: Matcher.Matcher | undefined
  readonly gitignore: boolean
  readonly kinds: ReadonlySet<Kind>
  readonly maxDepth: number
  readonly sizes: boolean
  readonly from: string | undefined
  readonly onSkip: SearchOptions["onSkip"]
  /** True if unreadable entries are skipped instead of failing the walk. */
  readonly isSearch: boolean
  /** True if search processes can run the walk. */
  readonly isPortable: boolean
}

const allKinds: ReadonlySet<Kind> = new Set<Kind>(["file", "directory", "symlink", "other"])

const compileExclude = (options: SearchOptions, context: PlanContext): Matcher.Matcher | undefined | Fault => {
  const patterns = list(options.exclude)
  return patterns.length === 0 ? undefined : Matcher.compile(patterns, { argument: "exclude", rules: true }, context)
}

export const plan = (options: WalkOptions, context: PlanContext): Plan | Fault => {
  const exclude = compileExclude(options, context)
  if (isFault(exclude)) return exclude
  const maxDepth = checkCount("maxDepth", options.maxDepth, Number.POSITIVE_INFINITY)
  if (isFault(maxDepth)) return maxDepth
  return {
    include: undefined,
    exclude,
    gitignore: options.gitignore === true,
    kinds: allKinds,
    maxDepth,
    sizes: options.sizes === true,
    from: undefined,
    onSkip: options.onSkip,
    isSearch: false,
    isPortable: options.sizes !== true && context.caseSensitive
  }
}

const checkKinds = (kinds: ReadonlyArray<Kind>): Fault | undefined =>
  Array.isArray(kinds) && kinds.every((kind) => allKinds.has(kind))
    ? undefined
    : invalidArgument("kinds", `it must be a list of ${[...allKinds].join(", ")}`)

export interface SearchWalkOptions extends SearchOptions {
  readonly include: Matcher.Matcher | undefined
  readonly kinds: ReadonlyArray<Kind>
  readonly sizes?: boolean | undefined
  readonly from: string | undefined
}

export const searchPlan = (options: SearchWalkOptions, context: PlanContext): Plan | Fault => {
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
    isSearch: true,
    isPortable: options.sizes !== true && context.caseSensitive
  }
}

export const streamBatches = <A, E>(next: Effect.Effect<ReadonlyArray<A> | undefined, E>): Stream.Stream<A, E> => {
  const pull: Effect.Effect<readonly [A, ...Array<A>], E | Cause.Done> = Effect.flatMap(
    next,
    (all): Effect.Effect<readonly [A, ...Array<A>], E | Cause.Done> => {
      if (all === undefined) return Cause.done()
      return Arr.isReadonlyArrayNonEmpty(all) ? Effect.succeed(all) : pull
    }
  )
  return Stream.fromPull(Effect.succeed(pull))
}

const entryOf = (path: FsPath.FsPath, name: string, kind: Kind, addressable: boolean): FileEntry => ({
  name,
  path,
  kind,
  isFile: kind === "file",
  isDirectory: kind === "directory",
  addressable
})

const entries: Answers<FileEntry> = {
  ofChild: (directory, child) => {
    const { addressable, kind, name } = child
    const entry = entryOf(FsPath.join(directory.path, name), name, kind, addressable && directory.addressable)
    return directory.sizes === undefined ? entry : { ...entry, sizeBytes: directory.sizes.get(child) ?? 0 }
  },
  ofEntry: (path, name, kind) => entryOf(path, name, kind, true)
}

/** Streams the result for each entry found, and the skipped entries in between. */
export const search = <A>(port: Backend, base: Base, self: Plan, answers: Answers<A>): Stream.Stream<A | SkippedEntry, Fault> =>
  Stream.unwrap(Effect.map(make(port), (explorer) => streamBatches(new Walker(port, explorer, self, base, answers).next)))

/** Streams at most `limit` entries, and calls `skip` for each skipped entry until this limit is reached. */
export const streamEntries = <A, E>(
  all: Stream.Stream<A | SkippedEntry, E>,
  skip: Skip,
  limit: number = Number.POSITIVE_INFINITY
): Stream.Stream<A, E> => {
  let left = limit
  const wanted = Stream.filter(all, (item): item is A => {
    if (left === 0) return false
    if (!(item instanceof SkippedEntry)) return left-- > 0
    skip(item.path, item.why, item.key)
    return false
  })
  return limit === Number.POSITIVE_INFINITY ? wanted : Stream.take(wanted, limit)
}

export const walk = (port: Backend, base: Base, self: Plan): Stream.Stream<FileEntry, Fault> =>
  Stream.suspend(() =>
    streamEntries(search(port, base, self.maxDepth === 0 ? { ...self, kinds: new Set() } : self, entries), (path, why) =>
      self.onSkip?.(path, why)
    )
  )

export const foldOf = (port: Backend): ((key: string) => string) =>
  port.info.caseSensitive ? (key) => key : (key) => FsPath.fold(key)
