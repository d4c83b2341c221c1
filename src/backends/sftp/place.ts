/** Finds the entry of a path on the server, and converts the server's refusals to faults. */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import { type FileStat, type Kind, stat as makeStat } from "../../model/Entry.ts"
import { accessDenied, diskFull, ioError, notADirectory, notFound, pathTooLong, unsupported } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, root } from "../../model/FsPath.ts"
import { invalidName } from "../../runtime/host.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { rootGone } from "../faults.ts"
import { below } from "../posix/place.ts"
import * as Calls from "./calls.ts"
import type { Link } from "./link.ts"
import { Refused, type Session } from "./session.ts"
import { type Attributes, StatusCode } from "./wire.ts"

export interface Site {
  readonly link: Link
  /** The path of the root on the server, without links. */
  readonly root: string | Buffer
  readonly isDurable: boolean
  readonly mayReplaceUnsafely: boolean
  readonly mayRemoveLeftovers: boolean
  readonly maxEntries: number
  /** The modification time, in seconds by the server's clock, of the last file that this layer has written. */
  readonly clock: { seconds: number | undefined }
}

export interface Place {
  readonly at: string | Buffer
  readonly found: Attributes | undefined
}

const kindBits = 0o170000

export const kindOf = ({ mode = 0 }: Attributes): Kind => {
  const bits = mode & kindBits
  return bits === 0o100000 ? "file" : bits === 0o040000 ? "directory" : bits === 0o120000 ? "symlink" : "other"
}

export const permissionsOf = ({ mode = 0 }: Attributes): number => mode & 0o777

export const toStat = (path: FsPath, attributes: Attributes): FileStat => {
  const kind = kindOf(attributes)
  const { mode, modified, size = 0 } = attributes
  return makeStat({
    path,
    kind,
    sizeBytes: kind === "file" || kind === "symlink" ? size : 0,
    ...(modified === undefined ? {} : { modifiedAt: DateTime.makeUnsafe(modified * 1000) }),
    ...(mode === undefined ? {} : { mode: mode & 0o777 }),
    ...(kind === "symlink" ? { isSymlink: true } : {})
  })
}

const hasNul = (path: string | Buffer): boolean => path.includes("\0")

/** Returns the server's paths of the root, of each directory above an entry, and of the entry. */
export const pathsAlong = (site: Site, path: FsPath): ReadonlyArray<string | Buffer> => {
  const all: Array<string | Buffer> = [site.root]
  if (path !== root) for (const segment of path.split("/")) all.push(below(all.at(-1)!, segment))
  return all
}

/** Returns the server's path of an entry. */
export const pathOf = (site: Site, path: FsPath): Effect.Effect<string | Buffer, Fault> => {
  const at = pathsAlong(site, path).at(-1)!
  return hasNul(at) ? Effect.fail(invalidName) : Effect.succeed(at)
}

type Look = Effect.Effect<Attributes | undefined, Calls.Failure>

/**
 * Returns the entries up to the first that is not a directory, because the server follows a link in the middle of a path. Fails if
 * the root is not a directory.
 */
const seenAlong = Effect.fnUntraced(function* (
  looks: ReadonlyArray<Look>
): Effect.fn.Return<ReadonlyArray<Attributes | undefined>, Calls.Failure> {
  const seen: Array<Attributes | undefined> = []
  for (const look of looks) {
    const found = yield* look
    seen.push(found)
    if (found === undefined || kindOf(found) !== "directory") break
  }
  const [top] = seen
  return top === undefined || kindOf(top) !== "directory" ? yield* Effect.fail(rootGone) : seen
})

/**
 * Reads the attributes of the root, of each directory above an entry, and of the entry, in one round trip.
 *
 * The server follows links in the middle of a path. So an answer is valid only if all answers before it are directories.
 */
export const lookAlong = (
  session: Session,
  site: Site,
  path: FsPath
): Effect.Effect<ReadonlyArray<Attributes | undefined>, Calls.Failure> => {
  const paths = pathsAlong(site, path)
  return paths.some(hasNul) ? Effect.fail(invalidName) : Effect.flatMap(Calls.lookAll(session, paths, site.root), seenAlong)
}

/**
 * Reads the attributes of the root, of each directory above many entries, and of the entries, each once. Returns `undefined`
 * for an entry without a directory above it, and for an entry whose path contains NUL.
 */
export const lookAlongAll = (
  session: Session,
  site: Site,
  paths: ReadonlyArray<FsPath>
): Effect.Effect<ReadonlyArray<Place | undefined>, Calls.Failure> =>
  Effect.gen(function* () {
    const places = new Map<FsPath, string | Buffer>()
    const chains = paths.map((path) => {
      const all = pathsAlong(site, path)
      const names = path === root ? [] : path.split("/")
      return all.map((at, depth) => {
        const key = depth === 0 ? root : (names.slice(0, depth).join("/") as FsPath)
        if (!hasNul(at)) places.set(key, at)
        return key
      })
    })
    const answers = yield* Calls.lookAll(session, [...places.values()], site.root)
    const seen = new Map<FsPath, Attributes | undefined>()
    for (const [nth, key] of [...places.keys()].entries()) {
      const found = yield* Effect.catch(answers[nth]!, (failure) =>
        failure instanceof Refused ? Effect.succeed(undefined) : Effect.fail(failure)
      )
      seen.set(key, found)
    }
    return chains.map((chain): Place | undefined => {
      const isReached = chain.every((key, depth) => {
        const found = seen.get(key)
        return depth === chain.length - 1 || (found !== undefined && kindOf(found) === "directory")
      })
      const last = chain.at(-1)!
      const at = places.get(last)
      return isReached && at !== undefined ? { at, found: seen.get(last) } : undefined
    })
  })

/** Finds the place of an entry. Fails with NotFound or NotADirectory if there is no directory above it. */
export const placeOf = (session: Session, site: Site, path: FsPath): Effect.Effect<Place, Calls.Failure> =>
  Effect.flatMap(lookAlong(session, site, path), (seen) => placeIn(pathsAlong(site, path), seen))

const placeIn = (
  paths: ReadonlyArray<string | Buffer>,
  seen: ReadonlyArray<Attributes | undefined>
): Effect.Effect<Place, Calls.Failure> =>
  seen.length === paths.length
    ? Effect.succeed({ at: paths.at(-1)!, found: seen.at(-1) })
    : Effect.fail(seen.at(-1) === undefined ? notFound : notADirectory)

/** Looks at a path on the server, and finds the place of an entry, in one round trip. */
export const lookAndPlace = (
  session: Session,
  site: Site,
  at: string | Buffer,
  path: FsPath
): Effect.Effect<
  { readonly found: Attributes | undefined; readonly place: Effect.Effect<Place, Calls.Failure> },
  Calls.Failure
> => {
  const paths = pathsAlong(site, path)
  return Effect.flatMap(Calls.lookAll(session, [at, ...paths], site.root), ([look, ...looks]) =>
    Effect.map(look!, (found) => ({
      found,
      place: Effect.flatMap(seenAlong(looks), (seen) => placeIn(paths, seen))
    }))
  )
}

/** Returns the server's own message in a form that is safe to show. */
const said = ({ code, message }: Refused): string => {
  const words = message
    .replace(/[^\x20-\x7e]+/g, " ")
    .slice(0, 120)
    .trim()
  return words === "" ? `status ${code}` : `"${words}"`
}

/** Returns the fault for a refused request. */
export const faultOf = (failure: Fault | Refused): Fault => {
  if (!(failure instanceof Refused)) return failure
  switch (failure.code) {
    case StatusCode.noSuchFile:
      return notFound
    case StatusCode.permissionDenied:
      return accessDenied("permission")
    case StatusCode.badMessage:
      return pathTooLong("the server refuses the name; it is longer than the disk permits, or invalid there")
    case StatusCode.unsupported:
      return unsupported("support for this operation, which the server refuses")
    default:
      return ioError(`the server answered ${said(failure)} and gave no reason`, "EIO")
  }
}

/** Fails with the fault for a refused change. If the server gave no reason, tests whether its disk is full. */
export const refuse = (session: Session, site: Site, refused: Refused): Effect.Effect<never, Calls.Failure> =>
  refused.code !== StatusCode.failure
    ? Effect.fail(faultOf(refused))
    : Effect.flatMap(
        Effect.catch(Calls.isDiskFull(session, site.root), (failure) =>
          failure instanceof Refused ? Effect.succeed(false) : Effect.fail(failure)
        ),
        (isFull) => Effect.fail(isFull ? diskFull : faultOf(refused))
      )

/** Runs `handle` if the server refuses the request. */
export const onRefused = <A, B>(
  self: Effect.Effect<A, Calls.Failure>,
  handle: (refused: Refused) => Effect.Effect<B, Calls.Failure>
): Effect.Effect<A | B, Calls.Failure> =>
  Effect.catch(self, (failure): Effect.Effect<B, Calls.Failure> =>
    failure instanceof Refused ? handle(failure) : Effect.fail(failure)
  )

/** The age in seconds at which a temporary file of another machine is a leftover. */
const leaseSeconds = 24 * 60 * 60

/**
 * Tests whether a file is a leftover: a temporary file of an ended process of this machine, or a file of another machine that
 * is older than a day. Measures the day by the server's clock, because the clock of this machine may be wrong. A layer learns
 * the server's time from its first write, so until then it finds no leftovers of other machines.
 */
export const isLeftover = ({ clock: { seconds } }: Site, name: string, attributes: Attributes): boolean =>
  kindOf(attributes) === "file" &&
  (TemporaryNames.isLeftover(name) ||
    (attributes.modified !== undefined &&
      seconds !== undefined &&
      attributes.modified + leaseSeconds < seconds &&
      TemporaryNames.isForeign(name)))

/** Removes all entries of a directory if they are leftovers, and returns true. Otherwise removes nothing, and returns false. */
export const clearLeftovers = (session: Session, site: Site, at: string | Buffer): Effect.Effect<boolean, Calls.Failure> =>
  Effect.gen(function* () {
    const all = yield* Calls.list(session, at, site.maxEntries)
    const isCleared =
      site.mayRemoveLeftovers && all.every(({ attributes, name }) => isLeftover(site, name.toString(), attributes))
    if (isCleared) {
      yield* Effect.forEach(all, ({ name }) => Calls.removeFile(session, below(at, name.toString())), { discard: true })
    }
    return isCleared
  })
