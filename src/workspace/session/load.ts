/**
 * Loads sessions from files. All data is read and checked before any session is created. If a filesystem is restored too, this
 * is the last step.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs, resolve } from "../../runtime/node.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { type ArchiveError, bringBackOpenedOf } from "../../history/Archive.ts"
import { toInnerPath } from "../../history/inside.ts"
import { attempt, open as openFile, type Opened } from "../../history/zip/hostFile.ts"
import type { Fault, FsError } from "../../model/FsError.ts"
import type { SessionError } from "../../model/sessionError.ts"
import type { AnySlice } from "../../model/Slice.ts"
import type { LoadedTree, Operations } from "../Session.ts"
import { algebraOf, type FilesystemSource, forEachLine, hashOfOpened, type Overlong, readWhole, toError } from "./files.ts"
import { invalid, quoteId } from "./ids.ts"
import { dumpPathsOf, hiddenArchives, isEntryOfKind } from "./places.ts"
import { decode, maxTextBytes, type ArchiveName, type ErrorContext, type LoadedSession, makeError } from "./saved.ts"
import { openSession, type Session } from "./session.ts"

const toSession = (
  operation: string,
  { createdAt, held, id, tags }: LoadedSession,
  parent?: Session
): Effect.Effect<Session, SessionError> => openSession(operation, { id, createdAt, tags, held, parent })

const overlongError = (errorContext: ErrorContext): SessionError =>
  makeError(errorContext)("corrupt", `the saved session has more than ${maxTextBytes} bytes`)

const isOverlong = (problem: { readonly _tag: string }): problem is Overlong => problem._tag === "Overlong"

const isError = (problem: { readonly _tag: string }): problem is SessionError => problem._tag === "SessionError"

export const load = (path: string, slices: ReadonlyArray<AnySlice>): Effect.Effect<Operations, SessionError> =>
  Effect.gen(function* () {
    const errorContext: ErrorContext = { operation: "Session.load", prefix: "" }
    const bytes = yield* Effect.mapError(readWhole(path, maxTextBytes), (problem) =>
      isOverlong(problem) ? overlongError(errorContext) : toError(errorContext.operation, path)(problem)
    )
    const loadedSession = yield* decode(errorContext, bytes, slices)
    return (yield* toSession(errorContext.operation, loadedSession)).operations
  })

const operation = "loadSessionTree"

const lineContext = (line: number): ErrorContext => ({ operation, prefix: `line ${line}: ` })

const orderFault = (loadedSession: LoadedSession, before: ReadonlyMap<string, LoadedSession>): string | undefined => {
  if (before.has(loadedSession.id)) return `an earlier line contains a session with the same id ${quoteId(loadedSession.id)}`
  if (before.size === 0) {
    return loadedSession.parentId === undefined ? undefined : "the first session has a parent"
  }
  if (loadedSession.parentId === undefined) return "only the first session may be without a parent"
  return before.has(loadedSession.parentId)
    ? undefined
    : `no earlier line contains the parent ${quoteId(loadedSession.parentId)}`
}

const readSessions = Effect.fnUntraced(function* (path: string, slices: ReadonlyArray<AnySlice>) {
  const loadedSessions = new Map<string, LoadedSession>()
  const lines = forEachLine(path, maxTextBytes, (bytes, line) =>
    Effect.flatMap(decode(lineContext(line), bytes, slices), (loadedSession) => {
      const why = orderFault(loadedSession, loadedSessions)
      if (why !== undefined) return Effect.fail(makeError(lineContext(line))("corrupt", why))
      loadedSessions.set(loadedSession.id, loadedSession)
      return Effect.void
    })
  )
  yield* Effect.mapError(lines, (problem) => {
    if (isError(problem)) return problem
    return isOverlong(problem) ? overlongError(lineContext(problem.line)) : toError(operation, path)(problem)
  })
  if (loadedSessions.size === 0) return yield* Effect.fail(makeError(lineContext(1))("corrupt", "the file is empty"))
  return [...loadedSessions.values()]
})

/** An open archive. The opened file is restored, even if another dump replaces the archive after the check. */
export interface OpenArchive {
  readonly path: string
  readonly opened: Opened
}

const archiveOf = Effect.fnUntraced(function* (
  path: string,
  named: ArchiveName
): Effect.fn.Return<OpenArchive | undefined, SessionError | Fault, Scope.Scope> {
  if (named === null) return undefined
  const places = dumpPathsOf(path)
  // The archive of a dump is never a link.
  const adjacent = (yield* attempt(() => isEntryOfKind(places.archive, "isFile"))) ? [places.archive] : []
  if (named === undefined)
    return adjacent[0] === undefined
      ? undefined
      : { path: adjacent[0], opened: yield* openFile(adjacent[0], { followsLinks: false }) }
  const { sha256 } = named
  for (const candidate of [...adjacent, ...(yield* attempt(() => hiddenArchives(places, sha256)))]) {
    const opened = yield* openFile(candidate, { followsLinks: false })
    if ((yield* hashOfOpened(opened)) === sha256) return { path: candidate, opened }
  }
  const detail = `the archive of the dump is missing or was changed (SHA-256 ${sha256})`
  return yield* Effect.fail(makeError(lineContext(1))("corrupt", detail))
})

const buildTree = Effect.fnUntraced(function* (
  loadedSessions: ReadonlyArray<LoadedSession>
): Effect.fn.Return<Session, SessionError> {
  const sessions = new Map<string, Session>()
  for (const loadedSession of loadedSessions) {
    const parent = loadedSession.parentId === undefined ? undefined : sessions.get(loadedSession.parentId)
    sessions.set(loadedSession.id, yield* toSession(operation, loadedSession, parent))
  }
  return sessions.get(loadedSessions[0]!.id)!
})

/** Fails if the dump is inside the filesystem to restore, because the restore would remove the dump. */
const checkOutsideFilesystem = (fs: Algebra, path: string): Effect.Effect<void, SessionError> =>
  toInnerPath(fs.port, path) === undefined
    ? Effect.void
    : Effect.fail(invalid(operation, "the dump is inside the filesystem to restore; move the dump out of it first"))

const stampOf = (path: string): string => {
  const { ctimeNs, ino, size } = Fs.statSync(path, { bigint: true })
  return `${ino} ${size} ${ctimeNs}`
}

export interface Replaced {
  readonly _tag: "Replaced"
}

const replaced: Replaced = { _tag: "Replaced" }

const readPair = Effect.fnUntraced(function* <A, E>(
  path: string,
  read: Effect.Effect<A, E>,
  named: (read: A) => ArchiveName
): Effect.fn.Return<DumpPair<A>, E | SessionError | Fault | Replaced, Scope.Scope> {
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

interface DumpPair<A> {
  readonly sessions: A
  readonly archive: OpenArchive | undefined
}

export const readConsistentPair = <A, E extends SessionError | Fault = never>(
  path: string,
  read: Effect.Effect<A, E>,
  named: (read: A) => ArchiveName,
  triesLeft = 5
): Effect.Effect<DumpPair<A>, E | SessionError | Fault | Replaced, Scope.Scope> =>
  Effect.catchIf(
    readPair(path, read, named),
    (problem) => problem._tag === "Replaced" && triesLeft > 0,
    () => readConsistentPair(path, read, named, triesLeft - 1)
  )

const toSessionError =
  (path: string) =>
  (problem: SessionError | Fault | Replaced): SessionError => {
    if (isError(problem)) return problem
    return problem._tag === "Replaced"
      ? makeError({ operation, prefix: "" })("io", "this or another process replaced the dump during every attempt; try again")
      : toError(operation, path)(problem)
  }

export const loadTree = <E>(
  jsonlPath: string,
  slices: ReadonlyArray<AnySlice>,
  into: FilesystemSource<E> | undefined
): Effect.Effect<LoadedTree, SessionError | ArchiveError | FsError | E> =>
  Effect.gen(function* () {
    const found = Effect.flatMap(
      attempt(() => Fs.realpathSync(resolve(jsonlPath))),
      (path) =>
        Effect.map(
          readConsistentPair(path, readSessions(path, slices), ([first]) => first!.archive),
          (pair) => ({ ...pair, path })
        )
    )
    const { archive, path, sessions: loadedSessions } = yield* Effect.mapError(found, toSessionError(jsonlPath))
    const session = yield* buildTree(loadedSessions)
    if (archive === undefined) return { session: session.operations }
    const fs = yield* algebraOf(into)
    if (fs !== undefined) {
      yield* checkOutsideFilesystem(fs, path)
      yield* bringBackOpenedOf(fs, archive.opened)
    }
    return { session: session.operations, archive: archive.path }
  }).pipe(Effect.scoped)
