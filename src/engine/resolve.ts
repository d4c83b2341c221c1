/**
 * Symbolic links are resolved here and nowhere else, on the port, component by component. That is why `subdirectory`, `overlay` and
 * `mount` confine links correctly without a line of their own: what they show is all that this walk can see.
 *
 * Almost no path has a link in it, so callers try the path as it is and come here when the port found nothing there.
 */
import * as Effect from "effect/Effect"
import type { FileStat } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, follow, type Links, type Seen } from "../port/Backend.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import * as Eager from "./eager.ts"

export interface Resolved {
  /** Where the path really is, or would be. */
  readonly path: FsPath.FsPath
  /** `undefined`: nothing is there. */
  readonly stat: FileStat | undefined
  /** Nothing is there because the way leads through something that is no directory. */
  readonly blocked: boolean
  /** Nothing is there, nor can be made there: a link goes through what is missing, and up again. */
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
 * Whether a link's text leads out, decided on the text alone: nothing outside is ever looked at, so nothing about it can be learnt.
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

/** Why nothing can be made where a path leads. */
export const noPlace = ({ blocked, lost }: Resolved): Fault | undefined =>
  blocked ? notADirectory : lost === true ? notFound : undefined

const isGone = ({ _tag }: Fault): boolean => _tag === "InvalidArgument" || _tag === "NotFound" || _tag === "NotADirectory"

/** What comes next of the names still to be gone through, the next one last, as far as no ".." leads up again. */
const ahead = (todo: ReadonlyArray<string>): FsPath.FsPath => {
  const names: Array<string> = []
  for (let i = todo.length - 1; i >= 0 && todo[i] !== ".."; i--) {
    const name = todo[i]!
    if (name !== "" && name !== ".") names.push(name)
  }
  return FsPath.fromSegments(names)
}

/** Looks at one component after another: where the port can look at all that lie ahead at once, a look serves until it has been used up. */
class Sight {
  readonly #port: Backend
  #look: NonNullable<Backend["accelerations"]>["look"]
  /** What the looks have told; `undefined` for nothing. */
  readonly #known = new Map<FsPath.FsPath, Seen | undefined>()

  constructor(port: Backend) {
    this.#port = port
    this.#look = port.accelerations?.look
  }

  /** `todo`: where the way leads on from there. */
  stat(path: FsPath.FsPath, todo: ReadonlyArray<string>): Effect.Effect<FileStat | undefined, Fault> {
    const look = this.#look
    if (look === undefined) return this.#port.stat(path)
    if (this.#known.has(path)) return Effect.succeed(this.#known.get(path)?.stat)
    const end = FsPath.below(path, ahead(todo))
    return Effect.flatMap(look(end), (all) => {
      if (all === undefined) {
        this.#look = undefined
        return this.#port.stat(path)
      }
      this.#note(end, all)
      return Effect.succeed(this.#known.get(path)?.stat)
    })
  }

  /** The text of what has just been seen to be a link; `undefined` where somebody has put something else there since. */
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

/** The whole way through links. `keepLast` stops at a link that is the last component. */
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
      const target = yield* sight.text(links, next)
      if (target === undefined) {
        todo.push(segment)
        continue
      }
      followed++
      if (escapes(here, target)) return yield* Effect.fail(escape)
      const unfit = FsPath.unfit(target) ?? (TemporaryNames.isPathInProgress(target) ? inProgress : undefined)
      if (unfit !== undefined) return yield* Effect.fail(unfit)
      const segments = target.split("/")
      for (let i = segments.length - 1; i >= 0; i--) todo.push(segments[i]!)
      // A link to "." leads to where it stands.
      stat = yield* sight.stat(here, todo)
      continue
    }
    here = next
    if (todo.length > 0 && stat?.kind !== "directory") {
      // Only a path that was spelt with ".." by a link could still come back from here, and POSIX does not let it.
      if (todo.includes("..")) return nowhere(next, segment, stat)
      const rest = todo.filter((name) => name !== "" && name !== ".").reverse()
      if (rest.length === 0) break
      return { path: FsPath.below(here, FsPath.fromSegments(rest)), stat: undefined, blocked: stat !== undefined }
    }
  }
  return { path: here, stat, blocked: false }
})

/** Where a name stands below what is no directory, there is nothing, so that whoever looks there finds that. */
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
 * Fails where nothing is at the end of a link and callers may create nothing there, because the name has the form of temporary files. A
 * file that a stranger gave such a name is reached by a link as by its path.
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
  if (port.accelerations?.look !== undefined && port.links !== undefined) return throughLinks(port, path, keepLast)
  return Effect.flatMap(port.stat(path), (stat) => {
    if (stat === undefined) return absent(port, path, keepLast)
    if (stat.kind === "symlink" && !keepLast && port.links !== undefined) return throughLinks(port, path, keepLast)
    return Effect.succeed({ path, stat, blocked: false })
  })
}

/** Where the path leads, links followed. Fails with AccessDenied (`escape`, `link`) and InvalidPath for a loop. */
export const resolve = (port: Backend, path: FsPath.FsPath): Effect.Effect<Resolved, Fault> => resolveWith(port, path, false)

/** The same, but a link that is the last component stands for itself. */
export const resolveLink = (port: Backend, path: FsPath.FsPath): Effect.Effect<Resolved, Fault> => resolveWith(port, path, true)

const mayBeLink = (fault: Fault): boolean =>
  fault._tag === "NotFound" || fault._tag === "NotAFile" || fault._tag === "NotADirectory" || fault._tag === "InvalidArgument"

/** Runs on the path as it is; where that found nothing fitting and links explain it, once more on where they lead. */
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
              // What was not found and is there now has come meanwhile.
              return at === path && fault._tag !== "NotFound" ? Effect.fail(fault) : run(at)
            })
          : Effect.fail(fault)
      )
