/**
 * Lists the entries of a filesystem for an archive. The entries are sorted by path, in the order of code points.
 *
 * The list is complete before the first byte is written. So entries that an import would reject are found early. Such an
 * entry is refused, skipped and reported, or kept for the original filesystem. The survey does not read contents.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import { type Fault, located } from "../../model/FsError.ts"
import { type FsPath, join, root } from "../../model/FsPath.ts"
import type { LimitsShape } from "../../model/Limits.ts"
import { type Backend, type Child, type Handle, keyOf } from "../../port/Backend.ts"
import { type Explore, inWalkOrder } from "../../port/explorer.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { ArchiveError } from "../errors.ts"
import { exploreTree, type Step } from "../exploreTree.ts"
import { Budget, checkLink, collisionKey, type NameRules, pathOf, refuse } from "./names.ts"

export type Item = (
  | { readonly kind: "file"; readonly path: FsPath }
  | { readonly kind: "symlink"; readonly path: FsPath; readonly target: string }
  | { readonly kind: "directory"; readonly path: FsPath; readonly mode: number | undefined; readonly isEmpty: boolean }
) & {
  readonly isNonPortable?: true
}

export const filesOf = (items: ReadonlyArray<Item>): ReadonlyArray<FsPath> =>
  items.flatMap(({ isNonPortable, kind, path }) => (kind === "file" && isNonPortable !== true ? [path] : []))

/** An entry that an archive does not contain, and the reason. */
export interface SkippedEntry {
  /** The path as a listing shows it. A name that is not text is escaped. */
  readonly path: string
  readonly reason: ArchiveError["reason"]
  readonly detail: string
}

/**
 * The handling of an entry that an import would reject.
 *
 * `refuse` fails the export. `skip` skips the entry with everything in it. `keep` stores the entry in a form that only the
 * original filesystem restores. FIFOs, sockets and devices cannot be stored, so `keep` skips them.
 */
export type NonPortableHandling = "refuse" | "skip" | "keep"

export interface SurveyOptions {
  readonly limits: LimitsShape
  /** Tests whether to skip a path. For example, an archive that is written into the tree skips itself. */
  readonly excludes?: ((path: FsPath, isDirectory: boolean) => boolean) | undefined
  /** @default "refuse" */
  readonly nonPortable?: NonPortableHandling | undefined
  readonly whyUnencodable?: ((text: string) => string | undefined) | undefined
}

export interface Survey {
  readonly items: ReadonlyArray<Item>
  readonly skipped: ReadonlyArray<SkippedEntry>
}

const entriesPerYield = 512

const isGone = ({ _tag }: Fault): boolean => _tag === "NotFound" || _tag === "NotADirectory" || _tag === "NotAFile"

/** Succeeds with `undefined` if the entry disappeared after it was listed. The archive skips such an entry. */
const undefinedIfGone = <A, E, R>(effect: Effect.Effect<A, E | Fault, R>): Effect.Effect<A | undefined, E | Fault, R> =>
  Effect.catch(effect, (error) =>
    typeof error === "object" && error !== null && "_tag" in error && isGone(error as Fault)
      ? Effect.succeed(undefined)
      : Effect.fail(error)
  )

const archiveErrorOf = (run: () => void): ArchiveError | undefined => {
  try {
    run()
    return undefined
  } catch (error) {
    if (error instanceof ArchiveError) return error
    throw error
  }
}

interface CheckedChild {
  readonly child: Child
  readonly why: ArchiveError | undefined
}

/**
 * Checks the names and kinds in a directory. If some disk cannot distinguish two names, only the first name by code point is
 * accepted.
 */
const checkChildren = (
  path: FsPath,
  children: ReadonlyArray<Child>,
  rules: NameRules,
  whyUnencodable: SurveyOptions["whyUnencodable"]
): ReadonlyArray<CheckedChild> => {
  const names = new Map<string, string>()
  return children.map((child): CheckedChild => {
    const { addressable, kind, name } = child
    const at = join(path, name)
    const why = archiveErrorOf(() => {
      if (!addressable) throw refuse("name", "the name is not valid text", at)
      pathOf(at, at, rules)
      const unfit = whyUnencodable?.(name)
      if (unfit !== undefined) throw refuse("name", unfit, at)
      if (kind === "other")
        throw refuse("unsupported", "the entry is not a file, a directory or a link, so an archive cannot contain it", at)
      const key = collisionKey(name)
      const other = names.get(key)
      if (other !== undefined) {
        throw refuse("duplicate", `the name differs only in case or Unicode form from ${JSON.stringify(other)}`, at)
      }
      names.set(key, name)
    })
    return { child, why }
  })
}

const targetAt = ({ links }: Backend, path: FsPath): Effect.Effect<string | undefined, ArchiveError | Fault> =>
  links === undefined
    ? Effect.fail(refuse("link", "the entry is a symlink, and this filesystem cannot read symlinks", path))
    : Effect.catch(links.read(path), (fault) =>
        isGone(fault) || fault._tag === "InvalidArgument" ? Effect.succeed(undefined) : Effect.fail(located(fault, path))
      )

interface Entered {
  readonly path: FsPath
  readonly children: ReadonlyArray<CheckedChild>
  readonly isNonPortable: boolean
  next: number
}

interface SurveyStep extends Step {
  readonly path: FsPath
  readonly isNonPortable: boolean
}

export const survey = Effect.fnUntraced(function* (
  port: Backend,
  { excludes, limits, nonPortable = "refuse", whyUnencodable }: SurveyOptions
): Effect.fn.Return<Survey, ArchiveError | Fault> {
  const rules: NameRules = { limits, policy: port.rules?.policy }
  const budget = new Budget(limits)
  const items: Array<Item> = []
  const skipped: Array<SkippedEntry> = []
  const check = (path: FsPath, isNonPortable: boolean, all: ReadonlyArray<Child>): Entered => {
    const wanted = all.filter(
      ({ kind, name }) => !TemporaryNames.isInProgress(name) && excludes?.(join(path, name), kind === "directory") !== true
    )
    const children = inWalkOrder(wanted, true)
    // A directory that an import would reject is stored with all entries below it, so their names need no check.
    const judged = isNonPortable
      ? children.map((child): CheckedChild => ({ child, why: undefined }))
      : checkChildren(path, children, rules, whyUnencodable)
    return { path, children: judged, isNonPortable, next: 0 }
  }
  const readAhead = new Map<FsPath, Entered>()
  /**
   * Reads directories ahead, if the backend does this faster than one `list` after another. A directory that cannot be read is
   * left to `list`, which reports the fault in the order of the paths. Stops when the export is certain to fail, or has too many
   * entries to keep in memory.
   */
  const read = Effect.fnUntraced(function* (explore: Explore) {
    const explorer = yield* explore<SurveyStep>(({ path }) => path, false)
    let entries = 0
    yield* exploreTree(
      explorer,
      { above: undefined, segment: "", path: root, isNonPortable: false, unread: 0 },
      ({ children, visit }, add, stop) =>
        Effect.sync(() => {
          if ("_tag" in children) return
          const found = check(visit.path, visit.isNonPortable, children)
          readAhead.set(visit.path, found)
          entries += found.children.length
          const isRefused = nonPortable === "refuse" && found.children.some(({ why }) => why !== undefined)
          if (isRefused || entries > limits.maxArchiveEntries) return stop()
          for (const { child, why } of found.children) {
            if (child.kind !== "directory" || (why !== undefined && nonPortable !== "keep")) continue
            const isNonPortable = visit.isNonPortable || why !== undefined
            add({ above: visit, segment: keyOf(child), path: join(visit.path, keyOf(child)), isNonPortable, unread: 0 })
          }
        })
    )
  }, Effect.scoped)
  const list = (path: FsPath, isNonPortable: boolean): Effect.Effect<Entered, ArchiveError | Fault> =>
    Effect.suspend(() => {
      const found = readAhead.get(path)
      readAhead.delete(path)
      return found === undefined
        ? Effect.map(port.list(path), (children) => check(path, isNonPortable, children))
        : Effect.succeed(found)
    })
  const shouldInclude = (why: ArchiveError, path: string, isLost: boolean): Effect.Effect<boolean, ArchiveError> => {
    if (nonPortable === "refuse") return Effect.fail(why)
    if (nonPortable === "keep" && !isLost) return Effect.succeed(true)
    skipped.push({ path, reason: why.reason, detail: why.detail })
    return Effect.succeed(false)
  }
  if (port.explore !== undefined) yield* read(port.explore)
  const top = yield* list(root, false)
  const refused = nonPortable === "refuse" ? top.children.find(({ why }) => why !== undefined)?.why : undefined
  if (refused !== undefined) return yield* Effect.fail(refused)
  const stack: Array<Entered> = [top]
  for (let here = stack.at(-1), steps = 1; here !== undefined; here = stack.at(-1), steps++) {
    if (steps % entriesPerYield === 0) yield* Effect.yieldNow
    if (here.next === here.children.length) {
      stack.pop()
      continue
    }
    const { child, why } = here.children[here.next++]!
    const { kind } = child
    const shown = join(here.path, child.name)
    const path = join(here.path, keyOf(child))
    if (kind === "other") {
      const lost =
        why ?? refuse("unsupported", "the entry is not a file, a directory or a link, so an archive cannot contain it", shown)
      yield* shouldInclude(lost, shown, true)
      continue
    }
    if (why !== undefined && !(yield* shouldInclude(why, shown, false))) continue
    let isNonPortable = here.isNonPortable || why !== undefined
    if (kind === "directory") {
      const below = yield* undefinedIfGone(list(path, isNonPortable))
      const stat = yield* port.stat(path)
      if (below === undefined || stat?.kind !== "directory") continue
      const refused = nonPortable === "refuse" ? below.children.find(({ why }) => why !== undefined)?.why : undefined
      if (refused !== undefined) return yield* Effect.fail(refused)
      // Do not count symlinks. A symlink may be stored in another place, and then the archive needs an entry for the directory.
      const isEmpty = !below.children.some(({ child, why }) => why === undefined && child.kind !== "symlink")
      items.push({ kind, path, mode: stat.mode, isEmpty, ...(isNonPortable && { isNonPortable }) })
      stack.push(below)
    } else if (kind === "symlink") {
      const found = yield* Effect.result(targetAt(port, path))
      if (found._tag === "Failure") {
        const error = found.failure
        // With `keep`, the archive is for the filesystem itself. If the archive skipped the symlink, a restore would remove the
        // symlink.
        if (!(error instanceof ArchiveError) || nonPortable === "keep") return yield* Effect.fail(error)
        yield* shouldInclude(error, shown, true)
        continue
      }
      const target = found.success
      if (target === undefined) continue
      const unfit = isNonPortable
        ? undefined
        : archiveErrorOf(() => {
            checkLink(path, target, path)
            const other = whyUnencodable?.(target)
            if (other !== undefined) throw refuse("link", other, path)
          })
      if (unfit !== undefined) {
        if (!(yield* shouldInclude(unfit, shown, false))) continue
        isNonPortable = true
      }
      items.push({ kind, path, target, ...(isNonPortable && { isNonPortable }) })
    } else items.push({ kind: "file", path, ...(isNonPortable && { isNonPortable }) })
    const tooLarge = archiveErrorOf(() => budget.enter())
    if (tooLarge !== undefined) return yield* Effect.fail(tooLarge)
  }
  return { items, skipped }
})

export const maxWholeFileBytes = 256 * 1024

export type Content =
  | { readonly _tag: "Whole"; readonly bytes: Uint8Array; readonly isLent: boolean; readonly mode: number | undefined }
  | { readonly _tag: "Large"; readonly handle: Handle }

export const changedWhileRead = (path: FsPath): Fault => ({
  _tag: "IoError",
  path,
  detail: "the file changed while it was read"
})

/** The largest number of times that a small file is read again because its size changed. */
const maxRereads = 8

const readWhole = (port: Backend, path: FsPath, left: number): Effect.Effect<Content, Fault> =>
  Effect.flatMap(Read.wholeAt(port, path, maxWholeFileBytes), ({ bytes, isLent, stat }) => {
    if (bytes.length === stat.sizeBytes) {
      return Effect.succeed<Content>({ _tag: "Whole", bytes, isLent: isLent === true, mode: stat.mode })
    }
    return left === 0 ? Effect.fail(changedWhileRead(path)) : readWhole(port, path, left - 1)
  })

export const readContent = (port: Backend, path: FsPath) =>
  undefinedIfGone(
    Effect.catch(
      Effect.mapError(readWhole(port, path, maxRereads), (fault) => located(fault, path)),
      (fault) =>
        fault._tag === "LimitExceeded"
          ? Effect.map(
              Effect.mapError(port.open(path), (fault) => located(fault, path)),
              (handle): Content => ({ _tag: "Large", handle })
            )
          : Effect.fail(fault)
    )
  )

const blockBytes = 64 * 1024

/** Streams as many bytes as the stat of the handle says. Fails if the file has become shorter. */
export const streamExactSize = (path: FsPath, handle: Handle): Stream.Stream<Uint8Array, Fault> =>
  Stream.suspend(() => {
    const size = handle.stat.sizeBytes
    let seen = 0
    const counted = Stream.map(Read.chunks(handle, 0, size, blockBytes), (bytes) => {
      seen += bytes.length
      return bytes
    })
    const end = Stream.suspend(() => (seen === size ? Stream.empty : Stream.fail(changedWhileRead(path))))
    return Stream.mapError(Stream.concat(counted, end), (fault) => located(fault, path))
  })
