/**
 * Resolves symlinks, component by component, on the port. No other module resolves links.
 *
 * So `subdirectory`, `overlay` and `mount` confine symlinks without code of their own: the resolution sees only what
 * they show.
 *
 * Almost no path contains a symlink, so callers first try the path as it is and resolve it only if nothing was found.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { FileStat } from "../model/Entry.ts"
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
  readonly blocked: boolean
  /** Set if the entry cannot exist or be created, because a symlink goes through a missing directory and up again. */
  readonly lost?: true
}

const maxLinks = 40
const maxSteps = 1024

const notFound: Fault = { _tag: "NotFound" }
const notADirectory: Fault = { _tag: "NotADirectory" }
const escape: Fault = { _tag: "AccessDenied", why: "escape" }
const refused: Fault = { _tag: "AccessDenied", why: "link" }
const inProgress: Fault = { _tag: "InvalidPath", detail: "its link leads to a write in progress" }
const loop: Fault = { _tag: "InvalidPath", detail: "its links lead in a circle, or through too many others" }

/**
 * Tests whether a symlink's target leads outside. Examines only the text, so nothing about the outside can be learnt.
 *
 * An absolute target counts as outside; `relativeTarget` must first convert those that lead below the root.
 */
export const escapes = (directory: FsPath.FsPath, target: string): boolean => {
  if (target.startsWith("/")) return true
  let depth = FsPath.segments(directory).length
  for (const segment of target.split("/")) {
    if (segment === "" || segment === ".") continue
    depth += segment === ".." ? -1 : 1
    if (depth < 0) return true
  }
  return false
}

export const noPlace = ({ blocked, lost }: Resolved): Fault | undefined =>
  blocked ? notADirectory : lost === true ? notFound : undefined

const isGone = ({ _tag }: Fault): boolean => _tag === "InvalidArgument" || _tag === "NotFound" || _tag === "NotADirectory"

const ahead = (todo: ReadonlyArray<string>): FsPath.FsPath => {
  const names: Array<string> = []
  for (let i = todo.length - 1; i >= 0 && todo[i] !== ".."; i--) {
    const name = todo[i]!
    if (name !== "" && name !== ".") names.push(name)
  }
  return FsPath.fromSegments(names)
}

/** Looks at the components of a path, several at once if the port supports that. */
class Sight {
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
    const end = FsPath.below(path, ahead(todo))
    return Effect.flatMap(perform({ _tag: "Look", path: end }), (all) => {
      if (Option.isNone(all)) {
        this.#perform = undefined
        return this.#port.stat(path)
      }
      this.#note(end, all.value)
      return Effect.succeed(this.#known.get(path)?.stat)
    })
  }

  /** Reads a symlink. Returns `undefined` if another entry has replaced the symlink since it was seen. */
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

const throughLinks = Effect.fnUntraced(function* (
  port: Backend,
  path: FsPath.FsPath,
  keepLast: boolean
): Effect.fn.Return<Resolved, Fault> {
  const links = port.links
  const sight = new Sight(port)
  const todo: Array<string> = [...FsPath.segments(path)].reverse()
  let here = FsPath.root
  let stat: FileStat | undefined = yield* sight.stat(here, todo)
  let followed = 0
  let steps = 0
  while (todo.length > 0) {
    if (++steps > maxSteps) return yield* Effect.fail(loop)
    const segment = todo.pop()!
    if (segment === "" || segment === ".") continue
    if (segment === "..") {
      if (here === FsPath.root) return yield* Effect.fail(escape)
      here = FsPath.parent(here)
      stat = yield* sight.stat(here, todo)
      continue
    }
    const next = FsPath.join(here, segment)
    stat = yield* sight.stat(next, todo)
    if (stat?.kind === "symlink" && links !== undefined) {
      if (todo.length === 0 && keepLast) return { path: next, stat, blocked: false }
      if (port.rules?.symlinks === "refuse") return yield* Effect.fail(refused)
      if (followed === maxLinks) return yield* Effect.fail(loop)
      const text = yield* sight.text(links, next)
      if (text === undefined) {
        todo.push(segment)
        continue
      }
      const target = relativeTarget(links, next, text)
      followed++
      if (escapes(here, target)) return yield* Effect.fail(escape)
      const unfit = FsPath.unfit(target) ?? (TemporaryNames.isPathInProgress(target) ? inProgress : undefined)
      if (unfit !== undefined) return yield* Effect.fail(unfit)
      const segments = target.split("/")
      for (let i = segments.length - 1; i >= 0; i--) todo.push(segments[i]!)
      stat = yield* sight.stat(here, todo)
      continue
    }
    here = next
    if (todo.length > 0 && stat?.kind !== "directory") {
      // Only a ".." from a symlink could lead back from here, and POSIX does not allow that.
      if (todo.includes("..")) return nowhere(next, segment, stat)
      const rest = todo.filter((name) => name !== "" && name !== ".").reverse()
      if (rest.length === 0) break
      return { path: FsPath.below(here, FsPath.fromSegments(rest)), stat: undefined, blocked: stat !== undefined }
    }
  }
  return { path: here, stat, blocked: false }
})

const nowhere = (at: FsPath.FsPath, name: string, stat: FileStat | undefined): Resolved => {
  const found = { path: FsPath.join(at, name), stat: undefined }
  return stat === undefined ? { ...found, blocked: false, lost: true } : { ...found, blocked: true }
}

const absent = Effect.fnUntraced(function* (
  port: Backend,
  path: FsPath.FsPath,
  keepLast: boolean
): Effect.fn.Return<Resolved, Fault> {
  for (let above = path; above !== FsPath.root;) {
    above = FsPath.parent(above)
    const stat = yield* port.stat(above)
    if (stat === undefined) continue
    if (stat.kind === "symlink") return yield* throughLinks(port, path, keepLast)
    return { path, stat: undefined, blocked: stat.kind !== "directory" }
  }
  return { path, stat: undefined, blocked: false }
})

/**
 * Fails if a symlink leads to a missing entry whose name has the form of a temporary file, which callers must not
 * create.
 *
 * An existing file with such a name is reachable through a symlink, as through its path.
 */
const creatable =
  (given: FsPath.FsPath) =>
  (resolved: Resolved): Effect.Effect<Resolved, Fault> => {
    const { path, stat } = resolved
    const fault = stat === undefined && path !== given ? FsPath.uncreatable(path) : undefined
    return fault === undefined || FsPath.uncreatable(given) !== undefined ? Effect.succeed(resolved) : Effect.fail(fault)
  }

const resolveWith = (port: Backend, path: FsPath.FsPath, keepLast: boolean): Effect.Effect<Resolved, Fault> =>
  Effect.flatMap(resolving(port, path, keepLast), creatable(path))

const resolving = (port: Backend, path: FsPath.FsPath, keepLast: boolean): Effect.Effect<Resolved, Fault> => {
  if (performing(port, "Look") !== undefined && port.links !== undefined) return throughLinks(port, path, keepLast)
  return Effect.flatMap(port.stat(path), (stat) => {
    if (stat === undefined) return absent(port, path, keepLast)
    if (stat.kind === "symlink" && !keepLast && port.links !== undefined) return throughLinks(port, path, keepLast)
    return Effect.succeed({ path, stat, blocked: false })
  })
}

/** Resolves all symlinks. Fails with AccessDenied (`escape`, `link`) and with InvalidPath for a loop. */
export const resolve = (port: Backend, path: FsPath.FsPath): Effect.Effect<Resolved, Fault> => resolveWith(port, path, false)

export const resolveLink = (port: Backend, path: FsPath.FsPath): Effect.Effect<Resolved, Fault> => resolveWith(port, path, true)

const mayBeLink = (fault: Fault): boolean =>
  fault._tag === "NotFound" || fault._tag === "NotAFile" || fault._tag === "NotADirectory" || fault._tag === "InvalidArgument"

/** Runs an effect on the path as it is, and again on the resolved path if the failure may be due to a symlink. */
export const following = <A, R>(
  port: Backend,
  path: FsPath.FsPath,
  run: (path: FsPath.FsPath) => Effect.Effect<A, Fault, R>
): Effect.Effect<A, Fault, R> =>
  port.links === undefined
    ? run(path)
    : Eager.catch(run(path), (fault) =>
        mayBeLink(fault)
          ? Effect.flatMap(resolve(port, path), ({ path: at, stat }) => {
              if (stat === undefined) return Effect.fail(notFound)
              // An entry that was missing before and exists now was created in between.
              return at === path && fault._tag !== "NotFound" ? Effect.fail(fault) : run(at)
            })
          : Effect.fail(fault)
      )
