/**
 * Resolves symlinks, component by component, on the port. No other module of the engine resolves symlinks.
 *
 * The resolution sees only the tree that a port shows. So the ports of `subdirectory`, `overlay` and `mount` need no
 * code to confine symlinks.
 *
 * Almost no path contains a symlink. So callers first try the path without resolution, and resolve it only if this
 * attempt finds nothing.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { FileStat } from "../model/Entry.ts"
import { notADirectory, notFound, accessDenied, invalidPath } from "../model/Fault.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, follow, type Links, type Seen } from "../port/Backend.ts"
import { relativeTarget } from "../port/absoluteLinks.ts"
import { type Perform, performing } from "../port/Request.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import * as Eager from "./eager.ts"

export interface Resolved {
  readonly path: FsPath.FsPath
  readonly stat: FileStat | undefined
  /** True if the entry does not exist because a component of the path is not a directory. */
  readonly isBlocked: boolean
  /**
   * True if the entry cannot exist or be created, because the target of a symlink has ".." after a missing directory.
   */
  readonly isUnreachable?: true
}

const maxLinks = 40
const maxSteps = 1024

const escape: Fault = accessDenied("escape")
const linkRefused: Fault = accessDenied("link")
const inProgress: Fault = invalidPath("a symlink in the path leads to the temporary file of an unfinished write")
const loop: Fault = invalidPath("its symbolic links form a loop, or there are too many of them")

/**
 * Tests whether a symlink's target leads out of the root. Examines only the text of the target, so the result reveals
 * nothing about files outside.
 *
 * An absolute target counts as outside. So `relativeTarget` must first convert absolute targets below the root.
 */
export const leadsOutside = (directory: FsPath.FsPath, target: string): boolean => {
  if (target.startsWith("/")) return true
  let depth = FsPath.segments(directory).length
  for (const segment of target.split("/")) {
    if (segment === "" || segment === ".") continue
    depth += segment === ".." ? -1 : 1
    if (depth < 0) return true
  }
  return false
}

export const placeFault = ({ isBlocked, isUnreachable }: Resolved): Fault | undefined =>
  isBlocked ? notADirectory : isUnreachable === true ? notFound : undefined

const isGone = ({ _tag }: Fault): boolean => _tag === "InvalidArgument" || _tag === "NotFound" || _tag === "NotADirectory"

const remainingNames = (todo: ReadonlyArray<string>): FsPath.FsPath => {
  const names: Array<string> = []
  for (let i = todo.length - 1; i >= 0 && todo[i] !== ".."; i--) {
    const name = todo[i]!
    if (name !== "" && name !== ".") names.push(name)
  }
  return FsPath.fromSegments(names)
}

/** The stats of the components of a path. Reads several components in one request if the port supports the request `Look`. */
class ComponentStats {
  readonly #port: Backend
  #perform: Perform | undefined
  readonly #known = new Map<FsPath.FsPath, Seen | undefined>()

  constructor(port: Backend) {
    this.#port = port
    this.#perform = performing(port, "Look")
  }

  stat(path: FsPath.FsPath, todo: ReadonlyArray<string>): Effect.Effect<FileStat | undefined, Fault> {
    const perform = this.#perform
    if (perform === undefined) return this.#port.stat(path)
    if (this.#known.has(path)) return Effect.succeed(this.#known.get(path)?.stat)
    const end = FsPath.below(path, remainingNames(todo))
    return Effect.flatMap(perform({ _tag: "Look", path: end }), (all) => {
      if (Option.isNone(all)) {
        this.#perform = undefined
        return this.#port.stat(path)
      }
      this.#note(end, all.value)
      return Effect.succeed(this.#known.get(path)?.stat)
    })
  }

  /**
   * Returns the target of a symlink, or `undefined` if the symlink was removed or replaced since it was inspected.
   */
  text(links: Links, path: FsPath.FsPath): Effect.Effect<string | undefined, Fault> {
    const target = this.#known.get(path)?.target
    if (target !== undefined) return Effect.succeed(target)
    this.#known.clear()
    return Effect.catch(follow(links, path), (fault) => (isGone(fault) ? Effect.succeed(undefined) : Effect.fail(fault)))
  }

  #note(end: FsPath.FsPath, all: ReadonlyArray<Seen>): void {
    const names = FsPath.segments(end)
    let at = FsPath.root
    for (let i = 0; i <= all.length && i <= names.length; i++) {
      if (i > 0) at = FsPath.join(at, names[i - 1]!)
      this.#known.set(at, all[i])
    }
  }
}

const resolveThroughLinks = Effect.fnUntraced(function* (
  port: Backend,
  path: FsPath.FsPath,
  keepsLastLink: boolean
): Effect.fn.Return<Resolved, Fault> {
  const links = port.links
  const componentStats = new ComponentStats(port)
  const todo: Array<string> = [...FsPath.segments(path)].reverse()
  let current = FsPath.root
  let stat: FileStat | undefined = yield* componentStats.stat(current, todo)
  let followed = 0
  let steps = 0
  while (todo.length > 0) {
    if (++steps > maxSteps) return yield* Effect.fail(loop)
    const segment = todo.pop()!
    if (segment === "" || segment === ".") continue
    if (segment === "..") {
      if (current === FsPath.root) return yield* Effect.fail(escape)
      current = FsPath.parent(current)
      stat = yield* componentStats.stat(current, todo)
      continue
    }
    const next = FsPath.join(current, segment)
    stat = yield* componentStats.stat(next, todo)
    if (stat?.kind === "symlink" && links !== undefined) {
      if (todo.length === 0 && keepsLastLink) return { path: next, stat, isBlocked: false }
      if (port.rules?.symlinks === "refuse") return yield* Effect.fail(linkRefused)
      if (followed === maxLinks) return yield* Effect.fail(loop)
      const text = yield* componentStats.text(links, next)
      if (text === undefined) {
        todo.push(segment)
        continue
      }
      const target = relativeTarget(links, next, text)
      followed++
      if (leadsOutside(current, target)) return yield* Effect.fail(escape)
      const unfit = FsPath.unfit(target) ?? (TemporaryNames.hasNameInProgress(target) ? inProgress : undefined)
      if (unfit !== undefined) return yield* Effect.fail(unfit)
      const segments = target.split("/")
      for (let i = segments.length - 1; i >= 0; i--) todo.push(segments[i]!)
      stat = yield* componentStats.stat(current, todo)
      continue
    }
    current = next
    if (todo.length > 0 && stat?.kind !== "directory") {
      // The target of a symlink has ".." after an entry that is not a directory. POSIX does not resolve such a path.
      if (todo.includes("..")) return makeUnreachable(next, segment, stat)
      const rest = todo.filter((name) => name !== "" && name !== ".").reverse()
      if (rest.length === 0) break
      return { path: FsPath.below(current, FsPath.fromSegments(rest)), stat: undefined, isBlocked: stat !== undefined }
    }
  }
  return { path: current, stat, isBlocked: false }
})

const makeUnreachable = (at: FsPath.FsPath, name: string, stat: FileStat | undefined): Resolved => {
  const found = { path: FsPath.join(at, name), stat: undefined }
  return stat === undefined ? { ...found, isBlocked: false, isUnreachable: true } : { ...found, isBlocked: true }
}

const resolveMissing = Effect.fnUntraced(function* (
  port: Backend,
  path: FsPath.FsPath,
  keepsLastLink: boolean
): Effect.fn.Return<Resolved, Fault> {
  for (let above = path; above !== FsPath.root;) {
    above = FsPath.parent(above)
    const stat = yield* port.stat(above)
    if (stat === undefined) continue
    if (stat.kind === "symlink") return yield* resolveThroughLinks(port, path, keepsLastLink)
    return { path, stat: undefined, isBlocked: stat.kind !== "directory" }
  }
  return { path, stat: undefined, isBlocked: false }
})

/**
 * Fails if a symlink leads to a missing entry with a temporary file's name, because callers must not create such a file.
 *
 * An existing file with such a name can be reached through a symlink, and also directly by its path.
 */
const checkCreatable =
  (given: FsPath.FsPath) =>
  (resolved: Resolved): Effect.Effect<Resolved, Fault> => {
    const { path, stat } = resolved
    const fault = stat === undefined && path !== given ? FsPath.uncreatable(path) : undefined
    return fault === undefined || FsPath.uncreatable(given) !== undefined ? Effect.succeed(resolved) : Effect.fail(fault)
  }

const resolveWith = (port: Backend, path: FsPath.FsPath, keepsLastLink: boolean): Effect.Effect<Resolved, Fault> =>
  Effect.flatMap(resolveUnchecked(port, path, keepsLastLink), checkCreatable(path))

const resolveUnchecked = (port: Backend, path: FsPath.FsPath, keepsLastLink: boolean): Effect.Effect<Resolved, Fault> => {
  if (performing(port, "Look") !== undefined && port.links !== undefined) return resolveThroughLinks(port, path, keepsLastLink)
  return Effect.flatMap(port.stat(path), (stat) => {
    if (stat === undefined) return resolveMissing(port, path, keepsLastLink)
    if (stat.kind === "symlink" && !keepsLastLink && port.links !== undefined)
      return resolveThroughLinks(port, path, keepsLastLink)
    return Effect.succeed({ path, stat, isBlocked: false })
  })
}

/** Resolves all symlinks. Fails with AccessDenied (`escape`, `link`), and with InvalidPath for a loop or an invalid target. */
export const resolve = (port: Backend, path: FsPath.FsPath): Effect.Effect<Resolved, Fault> => resolveWith(port, path, false)

export const resolveLink = (port: Backend, path: FsPath.FsPath): Effect.Effect<Resolved, Fault> => resolveWith(port, path, true)

const mayBeDueToLink = (fault: Fault): boolean =>
  fault._tag === "NotFound" || fault._tag === "NotAFile" || fault._tag === "NotADirectory" || fault._tag === "InvalidArgument"

/** Runs an effect on the path as it is, and again on the resolved path if the failure may be due to a symlink. */
export const withResolvedPath = <A, R>(
  port: Backend,
  path: FsPath.FsPath,
  run: (path: FsPath.FsPath) => Effect.Effect<A, Fault, R>
): Effect.Effect<A, Fault, R> =>
  port.links === undefined
    ? run(path)
    : Eager.catch(run(path), (fault) =>
        mayBeDueToLink(fault)
          ? Effect.flatMap(resolve(port, path), ({ path: at, stat }) => {
              if (stat === undefined) return Effect.fail(notFound)
              // If the entry was missing before and exists now, another writer has created it.
              return at === path && fault._tag !== "NotFound" ? Effect.fail(fault) : run(at)
            })
          : Effect.fail(fault)
      )

/** Returns the path of an existing entry as its directories spell the names. Keeps a name that no directory lists. */
export const storedSpelling = Effect.fnUntraced(function* (
  port: Backend,
  path: FsPath.FsPath
): Effect.fn.Return<FsPath.FsPath, Fault> {
  if (port.info.caseSensitive) return path
  let stored = FsPath.root
  for (const segment of FsPath.segments(path)) {
    const names = (yield* port.list(stored)).map(({ name }) => name)
    const name = names.includes(segment) ? segment : names.find((name) => FsPath.fold(name) === FsPath.fold(segment))
    stored = FsPath.join(stored, name ?? segment)
  }
  return stored
})
