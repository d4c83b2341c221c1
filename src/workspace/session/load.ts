/** Loads sessions from files. Everything is read and checked before any session is created, and a filesystem is changed last. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs, resolve } from "../../runtime/node.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { type ArchiveError, bringBackOpenedOf } from "../../history/Archive.ts"
import { insideOf } from "../../history/inside.ts"
import { attempt, open as openFile, type Opened } from "../../history/zip/outside.ts"
import type { Fault, FsError } from "../../model/FsError.ts"
import type { SessionError } from "../../model/sessionError.ts"
import type { AnySlice } from "../../model/Slice.ts"
import type { LoadedTree, Operations } from "../Session.ts"
import { eachLine, hashOfOpened, type Overlong, toError, whole } from "./files.ts"
import { algebraOf, type Given } from "./given.ts"
import { invalid, shown } from "./ids.ts"
import { hiddenArchives, placesOf } from "./places.ts"
import { decode, longestText, type Named, type Place, type Reading, refuse } from "./saved.ts"
import { open, type Session } from "./session.ts"

const toSession = (
  operation: string,
  { createdAt, held, id, tags }: Reading,
  parent?: Session
): Effect.Effect<Session, SessionError> => open(operation, { id, createdAt, tags, held, parent })

const overlong = (place: Place): SessionError =>
  refuse(place)("corrupt", `it has more than ${longestText} bytes, and no session is written so`)

const isOverlong = (problem: { readonly _tag: string }): problem is Overlong => problem._tag === "Overlong"

const isError = (problem: { readonly _tag: string }): problem is SessionError => problem._tag === "SessionError"

export const load = (path: string, slices: ReadonlyArray<AnySlice>): Effect.Effect<Operations, SessionError> =>
  Effect.gen(function* () {
    const place: Place = { operation: "Session.load", where: "" }
    const bytes = yield* Effect.mapError(whole(path, longestText), (problem) =>
      isOverlong(problem) ? overlong(place) : toError(place.operation, path)(problem)
    )
    const reading = yield* decode(place, bytes, slices)
    return (yield* toSession(place.operation, reading)).operations
  })

const operation = "loadSessionTree"

const placeOf = (line: number): Place => ({ operation, where: `line ${line}: ` })

const misplaced = (reading: Reading, before: ReadonlyMap<string, Reading>): string | undefined => {
  if (before.has(reading.id)) return `there is a session ${shown(reading.id)} before it`
  if (before.size === 0) {
    return reading.parentId === undefined ? undefined : "the first session has a parent, so it is not the first"
  }
  if (reading.parentId === undefined) return "it is a second session without a parent"
  return before.has(reading.parentId) ? undefined : `its parent ${shown(reading.parentId)} is not before it`
}

const readingsIn = Effect.fnUntraced(function* (path: string, slices: ReadonlyArray<AnySlice>) {
  const readings = new Map<string, Reading>()
  const lines = eachLine(path, longestText, (bytes, line) =>
    Effect.flatMap(decode(placeOf(line), bytes, slices), (reading) => {
      const why = misplaced(reading, readings)
      if (why !== undefined) return Effect.fail(refuse(placeOf(line))("corrupt", why))
      readings.set(reading.id, reading)
      return Effect.void
    })
  )
  yield* Effect.mapError(lines, (problem) => {
    if (isError(problem)) return problem
    return isOverlong(problem) ? overlong(placeOf(problem.line)) : toError(operation, path)(problem)
  })
  if (readings.size === 0) return yield* Effect.fail(refuse(placeOf(1))("corrupt", "there is nothing in it"))
  return [...readings.values()]
})

/** Tests whether the entry itself is a file. The archive of a dump is never a link. */
const isFile = (path: string): boolean => Fs.lstatSync(path, { throwIfNoEntry: false })?.isFile() === true

/** An open archive. The checked file is restored even if another dump replaces it meanwhile. */
export interface OpenArchive {
  readonly path: string
  readonly opened: Opened
}

const archiveOf = Effect.fnUntraced(function* (
  path: string,
  named: Named
): Effect.fn.Return<OpenArchive | undefined, SessionError | Fault, Scope.Scope> {
  if (named === null) return undefined
  const places = placesOf(path)
  const adjacent = (yield* attempt(() => isFile(places.archive))) ? [places.archive] : []
  if (named === undefined)
    return adjacent[0] === undefined
      ? undefined
      : { path: adjacent[0], opened: yield* openFile(adjacent[0], { follows: false }) }
  const { sha256 } = named
  for (const candidate of [...adjacent, ...(yield* attempt(() => hiddenArchives(places, sha256)))]) {
    const opened = yield* openFile(candidate, { follows: false })
    if ((yield* hashOfOpened(opened)) === sha256) return { path: candidate, opened }
  }
  const detail = `the archive that it names is not there, or has been changed (SHA-256 ${sha256})`
  return yield* Effect.fail(refuse(placeOf(1))("corrupt", detail))
})

const build = Effect.fnUntraced(function* (readings: ReadonlyArray<Reading>): Effect.fn.Return<Session, SessionError> {
  const sessions = new Map<string, Session>()
  for (const reading of readings) {
    const parent = reading.parentId === undefined ? undefined : sessions.get(reading.parentId)
    sessions.set(reading.id, yield* toSession(operation, reading, parent))
  }
  return sessions.get(readings[0]!.id)!
})

/** Fails if the dump is inside the filesystem to restore, because the restore would remove it. */
const checkApart = (fs: Algebra, path: string): Effect.Effect<void, SessionError> =>
  insideOf(fs.port, path) === undefined
    ? Effect.void
    : Effect.fail(
        invalid(operation, "the dump lies in the filesystem that it is to be restored into; move it out of there first")
      )

const stampOf = (path: string): string => {
  const { ctimeNs, ino, size } = Fs.statSync(path, { bigint: true })
  return `${ino} ${size} ${ctimeNs}`
}

export interface Replaced {
  readonly _tag: "Replaced"
}

const replaced: Replaced = { _tag: "Replaced" }

const pairAt = Effect.fnUntraced(function* <A, E>(
  path: string,
  read: Effect.Effect<A, E>,
  named: (read: A) => Named
): Effect.fn.Return<Pair<A>, E | SessionError | Fault | Replaced, Scope.Scope> {
  const before = yield* attempt(() => stampOf(path))
  const sessions = yield* read
  const archive = yield* Effect.catch(archiveOf(path, named(sessions)), (problem) =>
    Effect.flatMap(
      attempt(() => stampOf(path)),
      (after): Effect.Effect<never, SessionError | Fault | Replaced> => Effect.fail(after === before ? problem : replaced)
    )
  )
  return { sessions, archive }
})

export interface Pair<A> {
  readonly sessions: A
  readonly archive: OpenArchive | undefined
}

/** Reads a consistent pair, and tries again if another dump replaces it meanwhile. */
export const pairOf = <A, E extends SessionError | Fault = never>(
  path: string,
  read: Effect.Effect<A, E>,
  named: (read: A) => Named,
  triesLeft = 5
): Effect.Effect<Pair<A>, E | SessionError | Fault | Replaced, Scope.Scope> =>
  Effect.catchIf(
    pairAt(path, read, named),
    (problem) => problem._tag === "Replaced" && triesLeft > 0,
    () => pairOf(path, read, named, triesLeft - 1)
  )

const toSessionError =
  (path: string) =>
  (problem: SessionError | Fault | Replaced): SessionError => {
    if (isError(problem)) return problem
    return problem._tag === "Replaced"
      ? refuse({ operation, where: "" })("io", "it is replaced by one dump after another")
      : toError(operation, path)(problem)
  }

export const loadTree = <E>(
  jsonlPath: string,
  slices: ReadonlyArray<AnySlice>,
  into: Given<E> | undefined
): Effect.Effect<LoadedTree, SessionError | ArchiveError | FsError | E> =>
  Effect.gen(function* () {
    const found = Effect.flatMap(
      attempt(() => Fs.realpathSync(resolve(jsonlPath))),
      (path) =>
        Effect.map(
          pairOf(path, readingsIn(path, slices), ([first]) => first!.archive),
          (pair) => ({ ...pair, path })
        )
    )
    const { archive, path, sessions: readings } = yield* Effect.mapError(found, toSessionError(jsonlPath))
    const session = yield* build(readings)
    if (archive === undefined) return { session: session.operations }
    const fs = yield* algebraOf(into)
    if (fs !== undefined) {
      yield* checkApart(fs, path)
      yield* bringBackOpenedOf(fs, archive.opened)
    }
    return { session: session.operations, archive: archive.path }
  }).pipe(Effect.scoped)
