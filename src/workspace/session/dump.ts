/**
 * Dumps a tree of sessions to one file. The file contains the hash of the archive next to it. The rename of the file therefore
 * also publishes the archive, even if the archive gets its final name later.
 */
import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { type ArchiveError, keepArchiveOf } from "../../history/Archive.ts"
import { toInnerPath } from "../../history/inside.ts"
import { withExclusiveLock } from "../../history/replace.ts"
import { attempt } from "../../history/zip/hostFile.ts"
import { notAFile } from "../../model/Fault.ts"
import type { Fault, FsError } from "../../model/FsError.ts"
import { SessionError } from "../../model/sessionError.ts"
import { makeDirectories } from "../../runtime/directories.ts"
import { basename, dirname, Fs, join, randomUUID, resolve } from "../../runtime/node.ts"
import type { Operations } from "../Session.ts"
import { algebraOf, type FilesystemSource, flushDirectory, hashOf, readFirstLine, toError, writeNew } from "./files.ts"
import { checkId, invalid, quoteId } from "./ids.ts"
import {
  createHiddenDirectory,
  type DumpPaths,
  dumpPathsIn,
  hiddenArchive,
  isEntryOfKind,
  isLinesFile,
  maxDumpNameBytes,
  releaseHiddenDirectory,
  removeLeftovers
} from "./places.ts"
import { type ArchiveName, encode, maxTextBytes, namedHashesIn, type SessionRecord } from "./saved.ts"
import { type Session, sessionOf, type SliceItems } from "./session.ts"

// Decides which existing files a new dump may replace, because another program may have its own `{id}.fs.zip` in the directory.
// An archive is replaced only if the `.jsonl` file contains its hash, either as the current archive or as the archive that an
// unfinished dump was replacing.

interface EarlierDump {
  /** The SHA-256 of the archive, if it belongs to the earlier dump. */
  readonly archive: string | undefined
  /** A stamp that identifies the entry at the path of the archive. Empty if the path is free. */
  readonly stamp: string
}

type Kind = "absent" | "file" | "directory" | "other"

const statOf = (path: string): Fs.BigIntStats | undefined => Fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })

/** Returns the kind of the entry itself. The kind of a link is "other". */
const kindAt = (path: string): Kind => {
  const stat = statOf(path)
  if (stat === undefined) return "absent"
  return stat.isFile() ? "file" : stat.isDirectory() ? "directory" : "other"
}

const stampOf = (path: string): string => {
  const stat = statOf(path)
  return stat === undefined ? "" : `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`
}

/** The first bytes of a dump of any version. */
const dumpStart = /^\{\s*"schemaVersion"\s*:\s*\d/

const maxDumpStartBytes = 256

const beginsAsDump = (path: string): boolean => {
  const descriptor = Fs.openSync(path, "r")
  try {
    const bytes = Buffer.alloc(maxDumpStartBytes)
    return dumpStart.test(bytes.toString("latin1", 0, Fs.readSync(descriptor, bytes, 0, bytes.length, 0)))
  } finally {
    Fs.closeSync(descriptor)
  }
}

const notReplaceable = (operation: string, path: string, why: string): SessionError =>
  invalid(
    operation,
    `${JSON.stringify(basename(path))} cannot be replaced: ${why}; move it away, or dump into another directory`
  )

const namedHashes = ({ lines }: DumpPaths): Effect.Effect<ReadonlySet<string>, Fault> =>
  Effect.catch(Effect.map(readFirstLine(lines, maxTextBytes), namedHashesIn), (problem) =>
    problem._tag === "Overlong" ? Effect.succeed(new Set<string>()) : Effect.fail(problem)
  )

const ownArchiveHash = (places: DumpPaths): Effect.Effect<string | undefined, Fault> =>
  Effect.gen(function* () {
    const named = yield* namedHashes(places)
    if (named.size === 0) return undefined
    const sha256 = yield* hashOf(places.archive)
    return named.has(sha256) ? sha256 : undefined
  })

/**
 * Inspects the files that a dump would replace. Fails with SessionError `invalid` if the `.jsonl` file is not a dump. With
 * `hasArchive`, also fails if the archive path has a file that the `.jsonl` file does not name.
 */
const readEarlierDump = (operation: string, places: DumpPaths, hasArchive: boolean): Effect.Effect<EarlierDump, SessionError> =>
  Effect.gen(function* () {
    const { archive, lines } = places
    const kinds = yield* attempt(() => ({ archive: kindAt(archive), lines: kindAt(lines) }))
    const stamp = yield* attempt(() => stampOf(archive))
    const isDump = kinds.lines === "file" && (yield* attempt(() => beginsAsDump(lines)))
    if (!isDump && (kinds.lines === "file" || kinds.lines === "other")) {
      return yield* Effect.fail(notReplaceable(operation, lines, "the file is not a dump of a session"))
    }
    const ownHash = isDump && kinds.archive === "file" ? yield* ownArchiveHash(places) : undefined
    const isForeign = ownHash === undefined && (kinds.archive === "file" || kinds.archive === "other")
    if (hasArchive && isForeign) {
      const why = isDump
        ? `${JSON.stringify(basename(lines))} does not name this file as its archive`
        : "the file is not an archive of a dump"
      return yield* Effect.fail(notReplaceable(operation, archive, why))
    }
    return { archive: ownHash, stamp }
  }).pipe(
    Effect.mapError((problem) => (problem._tag === "SessionError" ? problem : toError(operation, places.directory)(problem)))
  )

const operation = "dumpSessionTree"

/**
 * Returns the session and all sessions below it. Parents come before their children, and children are in order. The function
 * does not recurse, because a tree from a file may be deep.
 */
const sessionsOf = (root: Session): ReadonlyArray<Session> => {
  const all: Array<Session> = []
  const pending = [root]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    all.push(next)
    for (const child of next.children.toReversed()) pending.push(child)
  }
  return all
}

/** Runs the effect while all sessions of the tree are locked, parents before their children. */
const holdTree = <A, E, R>(session: Session, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  session.operations.exclusively(
    Effect.suspend(() => session.children.reduceRight((inner, child) => holdTree(child, inner), effect))
  )

const hasItems = (held: ReadonlyArray<SliceItems>): boolean => held.some(([, items]) => items.length > 0)

const nameOf = ({ tags }: Operations): Effect.Effect<string, SessionError> =>
  Effect.suspend(() => {
    const name = Object.hasOwn(tags, "session_id") ? tags["session_id"]! : randomUUID()
    const isShort = Buffer.byteLength(name) <= maxDumpNameBytes
    return Effect.as(
      Effect.andThen(
        checkId(operation, "session", name),
        isShort ? Effect.void : Effect.fail(invalid(operation, `the name ${quoteId(name)} is too long for a file name`))
      ),
      name
    )
  })

/**
 * Returns the directory for the files of a dump. If the target is a file, or has the name of a dump, returns its parent
 * directory.
 */
const directoryOf = (target: string): string => {
  const path = resolve(target)
  const stat = Fs.statSync(path, { throwIfNoEntry: false })
  return stat === undefined ? (isLinesFile(path) ? dirname(path) : path) : stat.isDirectory() ? path : dirname(path)
}

interface CreatedDirectories {
  /** The outermost directory that was created, which contains the other created directories. */
  readonly outermost: string
  /** The innermost directory. Its path begins with `outermost`, so that the two paths can be compared. */
  readonly innermost: string
}

interface StagedDump {
  readonly places: DumpPaths
  readonly at: string
  readonly created: CreatedDirectories | undefined
  isCommitted: boolean
  isArchivePlaced: boolean
}

const stage = (target: string, name: string): StagedDump => {
  const innermost = directoryOf(target)
  const outermost = makeDirectories(innermost)
  const created = outermost === undefined ? undefined : { outermost, innermost }
  try {
    const places = dumpPathsIn(Fs.realpathSync(innermost), name)
    return { places, at: createHiddenDirectory(places), created, isCommitted: false, isArchivePlaced: false }
  } catch (error) {
    removeCreated(created)
    throw error
  }
}

const removeCreated = (created: CreatedDirectories | undefined): void => {
  if (created === undefined) return
  const { innermost, outermost } = created
  try {
    for (let at = innermost; at.length >= outermost.length; at = dirname(at)) Fs.rmdirSync(at)
  } catch {
    // The directory is not empty, because another program uses it.
  }
}

const discardStaged = ({ at, isCommitted, isArchivePlaced, created }: StagedDump): void => {
  releaseHiddenDirectory(at, isCommitted && !isArchivePlaced)
  if (!isCommitted) removeCreated(created)
}

const withDiskErrors = <A>(staged: StagedDump, effect: Effect.Effect<A, Fault>): Effect.Effect<A, SessionError> =>
  Effect.mapError(effect, toError(operation, staged.places.directory))

/**
 * Writes the archive to the hidden directory and returns its hash. The archive omits an earlier dump of this name and the
 * hidden directory.
 */
const archive = Effect.fnUntraced(function* (staged: StagedDump, fs: Algebra) {
  const { at, places } = staged
  const earlier = new Set([places.lines, places.archive, at].map((path) => toInnerPath(fs.port, path)))
  const draft = join(at, "archive")
  yield* keepArchiveOf(fs, draft, { excludes: (path) => earlier.has(path) })
  const sha256 = yield* withDiskErrors(staged, hashOf(draft))
  yield* withDiskErrors(
    staged,
    attempt(() => Fs.renameSync(draft, hiddenArchive(at, sha256)))
  )
  return { sha256 }
})

interface Taken {
  readonly tree: ReadonlyArray<{ readonly session: Session; readonly held: ReadonlyArray<SliceItems> }>
  readonly named: { readonly sha256: string } | null
}

const take = (
  root: Session,
  staged: StagedDump,
  fs: Algebra | undefined
): Effect.Effect<Taken, SessionError | ArchiveError | FsError> => {
  const all = Effect.sync(() => sessionsOf(root).map((session) => ({ session, held: session.held() })))
  const captureBoth = Effect.flatMap(all, (tree): Effect.Effect<Taken, SessionError | ArchiveError | FsError> =>
    fs === undefined || !tree.some(({ held }) => hasItems(held))
      ? Effect.succeed({ tree, named: null })
      : Effect.map(archive(staged, fs), (named) => ({ tree, named }))
  )
  const held = holdTree(root, captureBoth)
  // Lock the filesystem before the sessions. All callers use this order, so no deadlock can occur.
  return fs === undefined ? held : withExclusiveLock(fs.port, held)
}

/** Returns the records to write, one for each session. The first session has no parent in the dump, even if it has one in memory. */
const recordsOf = ({ named, tree }: Taken, earlier: EarlierDump): ReadonlyArray<SessionRecord> =>
  tree.map(({ held, session }, index) => ({
    operations: session.operations,
    held,
    parentId: index === 0 ? undefined : session.parent?.operations.id,
    archive: index === 0 ? named : undefined,
    replaces: index === 0 && earlier.archive !== named?.sha256 ? earlier.archive : undefined
  }))

/**
 * Publishes both files in one synchronous step. If the process is killed between the two renames, the archive is found by its
 * hash. Returns false and does nothing if the entry at the path of the archive has changed since `earlier` was read.
 */
const commit = (staged: StagedDump, lines: string, named: ArchiveName, earlier: EarlierDump): Effect.Effect<boolean, Fault> =>
  attempt(() => {
    const { at, places } = staged
    if (isEntryOfKind(places.lines, "isDirectory") || (named !== null && isEntryOfKind(places.archive, "isDirectory")))
      return notAFile
    if (stampOf(places.archive) !== earlier.stamp) return false
    flushDirectory(at)
    flushDirectory(places.directory)
    Fs.renameSync(lines, places.lines)
    staged.isCommitted = true
    if (named) Fs.renameSync(hiddenArchive(at, named.sha256), places.archive)
    else if (earlier.archive !== undefined) Fs.rmSync(places.archive, { force: true })
    staged.isArchivePlaced = true
    flushDirectory(places.directory)
    return true
  })

const writeLines = Effect.fnUntraced(function* (staged: StagedDump, lines: string, taken: Taken, earlier: EarlierDump) {
  const written = writeNew(lines, (append) =>
    Effect.forEach(
      recordsOf(taken, earlier),
      (record) => Effect.flatMap(encode(operation, record), (bytes) => withDiskErrors(staged, append(bytes))),
      { discard: true }
    )
  )
  yield* Effect.mapError(written, (problem) =>
    problem._tag === "SessionError" ? problem : toError(operation, staged.places.directory)(problem)
  )
})

const tooManyReplacements = new SessionError({
  operation,
  reason: "io",
  detail: "this or another process replaced the dump during every attempt; try again"
})

/** Publishes the dump. Tries again if another dump with the same name was published during the attempt. */
const publish = Effect.fnUntraced(function* (staged: StagedDump, taken: Taken) {
  for (let attemptsLeft = maxPublishAttempts; attemptsLeft > 0; attemptsLeft--) {
    const earlier = yield* readEarlierDump(operation, staged.places, taken.named !== null)
    const lines = join(staged.at, `lines${attemptsLeft}`)
    yield* writeLines(staged, lines, taken, earlier)
    if (yield* withDiskErrors(staged, commit(staged, lines, taken.named, earlier))) return
  }
  return yield* Effect.fail(tooManyReplacements)
})

const maxPublishAttempts = 9

const write = Effect.fnUntraced(function* (root: Session, staged: StagedDump, fs: Algebra | undefined) {
  // Fail early if a file cannot be replaced, before all files are read.
  yield* readEarlierDump(operation, staged.places, fs !== undefined)
  const taken = yield* take(root, staged, fs)
  if (!taken.tree.some(({ held }) => hasItems(held))) return undefined
  yield* publish(staged, taken)
  removeLeftovers(staged.places)
  return staged.places.lines
})

export const dump = <E>(
  operations: Operations,
  target: string,
  filesystemSource: FilesystemSource<E> | undefined
): Effect.Effect<string | undefined, SessionError | ArchiveError | FsError | E> =>
  Effect.gen(function* () {
    const root = yield* sessionOf(operation, operations)
    if (!sessionsOf(root).some(({ held }) => hasItems(held()))) return undefined
    const name = yield* nameOf(operations)
    const fs = yield* algebraOf(filesystemSource)
    return yield* Effect.acquireUseRelease(
      Effect.mapError(
        attempt(() => stage(target, name)),
        toError(operation, target)
      ),
      (staged) => write(root, staged, fs),
      (staged) => Effect.sync(() => discardStaged(staged))
    )
  })
