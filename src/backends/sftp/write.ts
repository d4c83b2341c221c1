/**
 * Writes files on the server.
 *
 * New content goes to a hidden temporary file in the same directory. Then one rename gives the file its name, or one hard link
 * if no file may be replaced. The temporary name is unique. So after a lost connection, the entries at this name and at the
 * target show whether the step was done, or can be repeated.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import type { FileStat } from "../../model/Entry.ts"
import { alreadyExists, ioError, notAFile, unavailable, unsupported } from "../../model/Fault.ts"
import type { Fault } from "../../model/FsError.ts"
import { type FsPath, parent } from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import type { Commit } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { below } from "../posix/place.ts"
import { type Content, runCommit } from "../writing.ts"
import * as Calls from "./calls.ts"
import { unsure } from "./link.ts"
import {
  faultOf,
  kindOf,
  lookAndPlace,
  onRefused,
  pathsAlong,
  permissionsOf,
  type Place,
  placeOf,
  refuse,
  type Site,
  toStat
} from "./place.ts"
import { Lost, Refused, type Session } from "./session.ts"
import { type Attributes, OpenFlag, StatusCode } from "./wire.ts"

interface Staged {
  readonly session: Session
  readonly open: Calls.Open
  readonly at: string | Buffer
  readonly segment: string
  /** The attributes of the file that is replaced, as they were before the content was written. */
  readonly replaced: Attributes | undefined
  /** The attributes of the written file. */
  attributes: Attributes
  isGone: boolean
  /** True while the temporary file has a random modification time. */
  isMarked: boolean
  /** The empty file that reserves the name. `unknown`: the connection was lost before the server confirmed it. */
  reserved: Attributes | "unknown" | undefined
}

export const noAtomicReplacement: Fault = unsupported(
  "atomic replacement of files (the server lacks the extension posix-rename@openssh.com; unsafeReplace: true removes the old file first)"
)

const temporaryLost: Fault = ioError("another program removed the temporary file of this write; try again", "ESTALE")
const streamLost: Fault = unavailable("the connection was lost while a stream was written; the file is unchanged, try again")
const keepsChanging: Fault = ioError("other programs keep changing the file; try again", "EAGAIN")

const checkTarget = (
  site: Site,
  session: Session,
  mode: "create" | "replace",
  { found }: Place
): Effect.Effect<void, Calls.Failure> => {
  if (found === undefined) return Effect.void
  if (mode === "create") return Effect.fail(alreadyExists)
  if (kindOf(found) !== "file") return Effect.fail(notAFile)
  return session.extensions.has(Calls.posixRename) || site.mayReplaceUnsafely ? Effect.void : Effect.fail(noAtomicReplacement)
}

/**
 * Returns the mode of a temporary file, which does not have the group of the replaced file yet. If the permissions of the group
 * and of others differ, only the owner gets permissions.
 */
const stagedMode = (mode: number): number => (((mode >> 3) & 7) === (mode & 7) ? mode : mode & 0o700)

/** Opens a temporary file beside an entry, uses it, and removes it unless it was published. */
const withStaged = <A, E, R>(
  site: Site,
  session: Session,
  path: FsPath,
  replaced: Attributes | undefined,
  use: (staged: Staged) => Effect.Effect<A, E, R>
): Effect.Effect<A, E | Calls.Failure, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.suspend(() => {
      const segment = TemporaryNames.make()
      let isOpened = false
      const at = below(pathsAlong(site, parent(path)).at(-1)!, segment)
      const flags = OpenFlag.read | OpenFlag.write | OpenFlag.create | OpenFlag.exclusive
      const values = replaced === undefined ? {} : { mode: stagedMode(permissionsOf(replaced)) }
      const opened = Calls.openFile(session, at, flags, restore, values)
      return Effect.onExit(
        Effect.flatMap(
          onRefused(opened, (refused) => refuse(session, site, refused)),
          (open) => {
            isOpened = true
            const staged: Staged = {
              session,
              open,
              at,
              segment,
              replaced,
              attributes: {},
              isGone: false,
              isMarked: false,
              reserved: undefined
            }
            return Effect.ensuring(
              restore(use(staged)),
              Effect.sync(() => {
                Calls.closeQuietly(session, open)
                if (!staged.isGone) site.link.discard(at)
              })
            )
          }
        ),
        (exit) =>
          Effect.sync(() => {
            TemporaryNames.forget(segment)
            // The server may have made the file although its answer was lost, or came after an interruption.
            if (Exit.isFailure(exit) && !isOpened) site.link.discard(at)
          })
      )
    })
  )

/** The number of bytes of a stream that are collected for one write, and the maximum number of writes at the same time. */
const batchBytes = 1024 * 1024
const concurrentBatches = 4

/** Arrays of `batchBytes` bytes for further batches. Without them, most of a long write is spent on garbage collection. */
type Spare = Array<Uint8Array<ArrayBuffer>>

/** Divides a stream into arrays of `batchBytes` bytes, of which the last may be shorter. Copies the bytes into spare arrays. */
const inBatches = <E, R>(
  content: Stream.Stream<Uint8Array, E, R>,
  spare: Spare
): Stream.Stream<Uint8Array<ArrayBuffer>, E, R> =>
  Stream.suspend(() => {
    let batch = new Uint8Array(0)
    let size = 0
    const take = (): Uint8Array<ArrayBuffer> => {
      const taken = batch.subarray(0, size)
      batch = new Uint8Array(0)
      size = 0
      return taken
    }
    // Copy the chunk, because its source may reuse the array.
    const add = function* (chunk: Uint8Array): Generator<Uint8Array<ArrayBuffer>> {
      for (let at = 0; at < chunk.length;) {
        const part = chunk.subarray(at, at + batchBytes - size)
        if (size + part.length > batch.length) {
          const grown = spare.pop() ?? new Uint8Array(Math.min(batchBytes, Math.max(2 * batch.length, size + part.length)))
          grown.set(batch.subarray(0, size))
          batch = grown
        }
        batch.set(part, size)
        at += part.length
        size += part.length
        if (size === batchBytes) yield take()
      }
    }
    return Stream.concat(
      // Emit one batch at a time, so that a large chunk is not copied whole.
      Stream.flatMap(content, (chunk) => Stream.fromIterable(add(chunk), { chunkSize: 1 })),
      Stream.suspend(() => (size === 0 ? Stream.empty : Stream.succeed(take())))
    )
  })

const writeRefused = <A>(site: Site, session: Session, effect: Effect.Effect<A, Calls.Failure>) =>
  onRefused(effect, (refused) => refuse(session, site, refused))

/** Writes the batches of a stream, several at the same time. Returns the number of bytes. The first failure ends the writes. */
const writeBatches = <E, R>(
  site: Site,
  { open, session }: Staged,
  content: Stream.Stream<Uint8Array<ArrayBuffer>, E, R>,
  spare: Spare
): Effect.Effect<number, E | Calls.Failure, R> =>
  Effect.suspend(() => {
    let end = 0
    return Effect.map(
      Stream.runDrain(
        Stream.mapEffect(
          content,
          (batch) =>
            Effect.suspend(() => {
              const offset = end
              end += batch.length
              return Effect.map(writeRefused(site, session, Calls.write(session, open, offset, batch)), () => {
                if (batch.length === batchBytes) spare.push(batch)
              })
            }),
          { concurrency: concurrentBatches }
        )
      ),
      () => end
    )
  })

/** Writes the last bytes, flushes the file to disk if the site is durable, and notes its attributes. */
const settle = (
  site: Site,
  staged: Staged,
  offset: number,
  bytes: Uint8Array = new Uint8Array()
): Effect.Effect<void, Calls.Failure> =>
  Effect.map(
    writeRefused(site, staged.session, Calls.writeLast(staged.session, staged.open, offset, bytes, site)),
    (attributes) => {
      staged.attributes = attributes
      site.clock.seconds = attributes.modified
    }
  )

const fill = <E, R>(site: Site, staged: Staged, content: Content<E, R>): Effect.Effect<void, E | Calls.Failure, R> =>
  isBytes(content)
    ? settle(site, staged, 0, content)
    : Effect.suspend(() => {
        const spare: Spare = []
        return Effect.flatMap(writeBatches(site, staged, inBatches(content, spare), spare), (length) =>
          settle(site, staged, length)
        )
      })

const ignoreRefused = (effect: Effect.Effect<void, Calls.Failure>) => onRefused(effect, () => Effect.void)

/**
 * Copies the owner, the group and the permission bits of the replaced file, and closes the written file. If the server refuses
 * the group, removes the group's permissions. So the new file is never more accessible than the replaced file.
 */
const finish = (session: Session, staged: Staged, old: Attributes | undefined): Effect.Effect<void, Calls.Failure> =>
  Effect.gen(function* () {
    const isSameSession = session === staged.session && !staged.open.isClosed
    const set = (values: Attributes) =>
      isSameSession ? Calls.setFileAttributes(session, staged.open, values) : Calls.setAttributes(session, staged.at, values)
    const { attributes } = staged
    if (old !== undefined) {
      const { gid, uid } = old
      let mode = permissionsOf(old)
      const isOtherGroup = gid !== attributes.gid
      if (isOtherGroup || uid !== attributes.uid) {
        // Only an administrator may change the owner. Other users may give a file to one of their groups.
        const withoutOwner = onRefused(set({ uid: attributes.uid, gid }), () => Effect.sync(() => void (mode &= ~0o070)))
        yield* onRefused(set({ uid, gid }), () => (isOtherGroup ? withoutOwner : Effect.void))
      } else if (mode === permissionsOf(attributes)) {
        return isSameSession ? yield* Calls.close(session, staged.open) : undefined
      }
      // The bits come last, because they depend on whether the server has accepted the group.
      if (isSameSession) {
        staged.attributes = yield* Calls.setAndClose(session, staged.open, { mode })
      } else {
        yield* ignoreRefused(set({ mode }))
        staged.attributes = (yield* Calls.look(session, staged.at)) ?? attributes
      }
    } else if (isSameSession) yield* Calls.close(session, staged.open)
  })

/** Tests whether the written file has the owner, the group and the permission bits that it will have. */
const isFinished = ({ attributes, replaced }: Staged): boolean =>
  replaced === undefined ||
  (replaced.uid === attributes.uid && replaced.gid === attributes.gid && permissionsOf(replaced) === permissionsOf(attributes))

const unmark = (session: Session, staged: Staged): Effect.Effect<void, Calls.Failure> =>
  Effect.suspend(() => {
    const { accessed, modified } = staged.attributes
    return Effect.andThen(
      Calls.setAttributes(session, staged.at, { accessed: accessed ?? modified, modified }),
      Effect.sync(() => void (staged.isMarked = false))
    )
  })

/**
 * Tests whether two names belong to the same file. The server does not report this. So the test changes the modification time
 * of the temporary file, and checks whether the other file then has the same time.
 */
const isSameFile = (session: Session, staged: Staged, at: string | Buffer): Effect.Effect<boolean, Calls.Failure> =>
  Effect.uninterruptible(
    Effect.gen(function* () {
      const before = yield* Calls.look(session, staged.at)
      const other = yield* Calls.look(session, at)
      if (before?.modified === undefined || other?.size !== before.size || other?.modified !== before.modified) return false
      const mark = yield* Random.nextIntBetween(0, 2 ** 31)
      staged.isMarked = true
      yield* Calls.setAttributes(session, staged.at, { accessed: before.accessed ?? before.modified, modified: mark })
      const isSame = (yield* Calls.look(session, at))?.modified === mark
      yield* unmark(session, staged)
      return isSame
    })
  )

/** Tests whether a file has the attributes of the written file. */
const isWritten = ({ attributes }: Staged, found: Attributes | undefined): boolean =>
  found?.modified !== undefined &&
  found.modified === attributes.modified &&
  found.size === attributes.size &&
  found.mode === attributes.mode

/** The permission bits of an empty file that reserves a name. Other programs rarely make files with these bits. */
const reservedMode = 0o200

/** Tests whether a file is the empty file with which this write has reserved the name. */
const isReserved = ({ reserved }: Staged, found: Attributes | undefined): boolean =>
  reserved !== undefined &&
  found !== undefined &&
  kindOf(found) === "file" &&
  found.size === 0 &&
  (reserved === "unknown"
    ? permissionsOf(found) === reservedMode
    : found.modified === reserved.modified && found.mode === reserved.mode)

/** Replaces the empty file that reserves the name. If the server refuses, removes the empty file. */
const replaceReserved = (session: Session, staged: Staged, to: string | Buffer): Effect.Effect<void, Calls.Failure> =>
  Effect.tapError(Calls.renameOver(session, staged.at, to), (failure) =>
    failure instanceof Refused ? Effect.ignore(Calls.removeFile(session, to)) : Effect.void
  )

/** Reserves a name with an empty file, and then replaces this file. Used on disks without hard links. */
const reserveAndReplace = (session: Session, staged: Staged, to: string | Buffer): Effect.Effect<void, Calls.Failure> => {
  const flags = OpenFlag.write | OpenFlag.create | OpenFlag.exclusive
  const reserved = Effect.uninterruptible(
    Effect.suspend(() => {
      staged.reserved = "unknown"
      return Effect.flatMap(
        onRefused(
          Calls.openFile(session, to, flags, (effect) => effect, { mode: reservedMode }),
          (refused) => {
            staged.reserved = undefined
            return Effect.fail(refused)
          }
        ),
        (open) =>
          Effect.ensuring(
            ignoreRefused(Effect.map(Calls.fileAttributes(session, open), (attributes) => void (staged.reserved = attributes))),
            Effect.sync(() => Calls.closeQuietly(session, open))
          )
      )
    })
  )
  // An interruption in between would leave the empty file.
  return Effect.uninterruptible(Effect.andThen(reserved, replaceReserved(session, staged, to)))
}

/** Gives the temporary file a name that must be free. */
const moveNew = (session: Session, staged: Staged, to: string | Buffer): Effect.Effect<void, Calls.Failure> => {
  const has = (extension: string) => session.extensions.has(extension)
  const otherwise = Effect.suspend(() =>
    has(Calls.posixRename) ? reserveAndReplace(session, staged, to) : Calls.renameNew(session, staged.at, to)
  )
  const moved = Effect.andThen(
    otherwise,
    Effect.sync(() => void (staged.isGone = true))
  )
  if (!has(Calls.hardlinking)) return moved
  return onRefused(Calls.hardlink(session, staged.at, to), (refused) =>
    Effect.flatMap(Calls.look(session, to), (found) => (found === undefined ? moved : Effect.fail(refused)))
  )
}

const moveOver = (session: Session, staged: Staged, { at, found }: Place): Effect.Effect<void, Calls.Failure> =>
  Effect.andThen(
    session.extensions.has(Calls.posixRename)
      ? Calls.renameOver(session, staged.at, at)
      : found === undefined
        ? Calls.renameNew(session, staged.at, at)
        : Effect.andThen(Calls.removeFile(session, at), Calls.renameNew(session, staged.at, at)),
    Effect.sync(() => void (staged.isGone = true))
  )

/** The maximum number of reconnections for one publication. */
const maxReconnections = 8

const isUnchanged = (old: Attributes | undefined, now: Attributes | undefined): boolean =>
  old?.size === now?.size && old?.modified === now?.modified && (old === undefined) === (now === undefined)

/**
 * Gives the temporary file its final name. If the connection is lost, checks on a new connection whether this was done. With
 * `expected`, returns `undefined` if another program has changed the file since.
 */
const publish = (
  site: Site,
  staged: Staged,
  path: FsPath,
  mode: "create" | "replace",
  expected?: { readonly found: Attributes | undefined }
): Effect.Effect<FileStat | undefined, Fault> => {
  const done = Effect.sync(() => toStat(path, staged.attributes))
  const once = (session: Session, isRepeated: boolean): Effect.Effect<FileStat | undefined, Calls.Failure> =>
    Effect.gen(function* () {
      const looked = lookAndPlace(session, site, staged.at, path)
      const isClosable = session === staged.session && !staged.open.isClosed && isFinished(staged)
      const [look] = isClosable
        ? yield* Effect.all([looked, Calls.close(session, staged.open)], { concurrency: 2 })
        : [yield* looked]
      if (look.found === undefined) {
        if (!isRepeated) return yield* Effect.fail(temporaryLost)
        staged.isGone = true
        // The rename of this write has removed the temporary file, or another program or a restart of the server has.
        const { found } = yield* look.place
        return isWritten(staged, found) ? yield* done : yield* Effect.fail(unsure)
      }
      if (staged.isMarked) yield* unmark(session, staged)
      const place = yield* look.place
      if (isReserved(staged, place.found)) {
        yield* finish(session, staged, undefined)
        yield* onRefused(replaceReserved(session, staged, place.at), (refused) => refuse(session, site, refused))
        staged.isGone = true
        return yield* done
      }
      if (isRepeated && mode === "create" && place.found !== undefined) {
        if (yield* isSameFile(session, staged, place.at)) return yield* done
      }
      yield* checkTarget(site, session, mode, place)
      if (expected !== undefined && !isUnchanged(expected.found, place.found)) return undefined
      yield* finish(session, staged, place.found ?? staged.replaced)
      if (mode === "replace") {
        yield* onRefused(moveOver(session, staged, place), (refused) => refuse(session, site, refused))
        return yield* done
      }
      yield* onRefused(moveNew(session, staged, place.at), (refused) =>
        Effect.gen(function* () {
          if ((yield* Calls.look(session, place.at)) === undefined) return yield* refuse(session, site, refused)
          if (!isRepeated || !(yield* isSameFile(session, staged, place.at))) return yield* Effect.fail(alreadyExists)
        })
      )
      return yield* done
    })
  const attempt = (session: Session, isRepeated: boolean, left: number): Effect.Effect<FileStat | undefined, Fault | Refused> =>
    Effect.catch(once(session, isRepeated), (failure): Effect.Effect<FileStat | undefined, Fault | Refused> => {
      if (!(failure instanceof Lost)) return Effect.fail(failure)
      const isUnsure = isRepeated || failure.isUnsure
      if (left === 0) return Effect.fail(isUnsure ? unsure : failure.fault)
      return Effect.flatMap(
        Effect.mapError(site.link.session, (fault) => (isUnsure ? unsure : fault)),
        (session) => attempt(session, isUnsure, left - 1)
      )
    })
  return Effect.mapError(attempt(staged.session, false, maxReconnections), faultOf)
}

/** Converts a lost connection to a fault that is not repeated, because a stream cannot be read again. */
const onceOnly = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, Exclude<E, Lost> | Fault, R> =>
  Effect.mapError(effect, (failure) => (failure instanceof Lost ? streamLost : failure) as Exclude<E, Lost> | Fault)

const published = (stat: FileStat | undefined): Effect.Effect<FileStat, Fault> =>
  stat === undefined ? Effect.fail(keepsChanging) : Effect.succeed(stat)

export const replaceFile = <E, R>(
  site: Site,
  path: FsPath,
  content: Content<E, R>,
  mode: "create" | "replace",
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | Refused | E, R> =>
  site.link.run((session) => {
    const written = Effect.flatMap(placeOf(session, site, path), (place) =>
      Effect.andThen(
        checkTarget(site, session, mode, place),
        withStaged(site, session, path, place.found, (staged) =>
          Effect.gen(function* () {
            yield* fill(site, staged, content)
            return yield* runCommit(commit, Effect.flatMap(publish(site, staged, path, mode), published))
          })
        )
      )
    )
    return isBytes(content) ? written : onceOnly(written)
  })

/** Removes the bytes of an append that the server has written only in part, unless other bytes follow them. */
const undoAppend = (session: Session, open: Calls.Open, size: number, bytes: Uint8Array): Effect.Effect<void, Calls.Failure> =>
  Effect.gen(function* () {
    const { size: now = size } = yield* Calls.fileAttributes(session, open)
    const added = now - size
    if (added <= 0 || added >= bytes.length) return
    const tail = yield* Calls.read(session, open, size, added)
    if (Buffer.compare(tail, bytes.subarray(0, added)) !== 0) return
    yield* Calls.setFileAttributes(session, open, { size })
  })

/** Marks a lost connection as one after a change, so that the change is not repeated. */
const afterChange = <A>(effect: Effect.Effect<A, Calls.Failure>): Effect.Effect<A, Calls.Failure> =>
  Effect.mapError(effect, (failure) => (failure instanceof Lost ? new Lost(failure.fault, true) : failure))

/** Appends in place with one request, which the server carries out with one system call. */
const appendOnce = (site: Site, path: FsPath, at: string | Buffer, bytes: Uint8Array) => (session: Session) =>
  Calls.withFile(session, at, OpenFlag.read | OpenFlag.write | OpenFlag.append, (open) =>
    Effect.gen(function* () {
      const before = yield* Calls.fileAttributes(session, open)
      if (kindOf(before) !== "file") return yield* Effect.fail(notAFile)
      const { size = 0 } = before
      const written = Calls.writeLast(session, open, size, bytes, { isChange: true, isDurable: site.isDurable })
      const after = yield* onRefused(written, (refused) =>
        afterChange(Effect.andThen(ignoreRefused(undoAppend(session, open, size, bytes)), refuse(session, site, refused)))
      )
      return toStat(path, after)
    })
  )

/** The maximum number of times that an append starts again because another program has created, changed or removed the file. */
const maxRestarts = 4

const copyInto = (
  site: Site,
  session: Session,
  from: Calls.Open,
  size: number,
  staged: Staged,
  offset: number
): Effect.Effect<void, Calls.Failure> => {
  const next = (at: number): Effect.Effect<void, Calls.Failure> =>
    at === size
      ? Effect.void
      : Effect.flatMap(Calls.read(session, from, at, size - at), (bytes) =>
          bytes.length === 0
            ? Effect.fail(keepsChanging)
            : Effect.andThen(
                writeRefused(site, session, Calls.write(session, staged.open, offset + at, bytes)),
                next(at + bytes.length)
              )
        )
  return session.extensions.has(Calls.copyData) && offset === 0 && size > 0
    ? onRefused(Calls.copyOnServer(session, from, size, staged.open), () => next(0))
    : next(0)
}

/**
 * Appends more bytes than one request can contain. Copies the file to a temporary file, appends there, and replaces the file if
 * no other program has changed it since.
 */
const appendByCopy = (
  site: Site,
  path: FsPath,
  append: (session: Session, staged: Staged, offset: number) => Effect.Effect<number, Calls.Failure>
): Effect.Effect<FileStat, Fault | Refused> => {
  const attempt = (left: number): Effect.Effect<FileStat, Fault | Refused> =>
    Effect.flatMap(
      site.link.run((session) =>
        Effect.gen(function* () {
          const place = yield* placeOf(session, site, path)
          yield* checkTarget(site, session, "replace", place)
          const { at, found } = place
          return yield* withStaged(site, session, path, found, (staged) =>
            Effect.gen(function* () {
              const size = found?.size ?? 0
              if (size > 0) {
                yield* Calls.withFile(session, at, OpenFlag.read, (old) => copyInto(site, session, old, size, staged, 0))
              }
              const end = yield* append(session, staged, size)
              yield* settle(site, staged, end)
              return yield* publish(site, staged, path, "replace", { found })
            })
          )
        })
      ),
      (stat) => (stat !== undefined ? Effect.succeed(stat) : left === 0 ? Effect.fail(keepsChanging) : attempt(left - 1))
    )
  return attempt(maxRestarts)
}

const appendBytes = (site: Site, path: FsPath, bytes: Uint8Array): Effect.Effect<FileStat, Fault> => {
  const attempt = (left: number): Effect.Effect<FileStat, Fault | Refused> =>
    Effect.gen(function* () {
      const [place, maxWrite] = yield* site.link.run((session) =>
        Effect.map(placeOf(session, site, path), (place) => [place, session.maxWrite] as const)
      )
      if (place.found === undefined) {
        return yield* Effect.catch(replaceFile<never, never>(site, path, bytes, "create", undefined), (failure) =>
          failure._tag === "AlreadyExists" && left > 0 ? attempt(left - 1) : Effect.fail(failure)
        )
      }
      if (kindOf(place.found) !== "file") return yield* Effect.fail(notAFile)
      if (bytes.length > maxWrite) {
        return yield* appendByCopy(site, path, (session, staged, offset) =>
          Effect.as(writeRefused(site, session, Calls.write(session, staged.open, offset, bytes)), offset + bytes.length)
        )
      }
      return yield* Effect.catch(
        site.link.run(appendOnce(site, path, place.at, bytes)),
        (failure): Effect.Effect<FileStat, Fault | Refused> =>
          failure instanceof Refused && failure.code === StatusCode.noSuchFile && left > 0
            ? attempt(left - 1)
            : Effect.fail(failure)
      )
    })
  return Effect.mapError(attempt(maxRestarts), faultOf)
}

/** Appends a stream. A stream of less than `batchBytes` bytes is kept in memory. Any other stream is staged first. */
const appendStream = <E, R>(
  site: Site,
  path: FsPath,
  content: Stream.Stream<Uint8Array, E, R>,
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | Refused | E, R> =>
  site.link.run((session) =>
    onceOnly(
      Effect.gen(function* () {
        // Refuse a wrong target before the stream is read.
        const place = yield* placeOf(session, site, path)
        if (place.found !== undefined && kindOf(place.found) !== "file") return yield* Effect.fail(notAFile)
        return yield* withStaged(site, session, path, { mode: 0o600 }, (staged) =>
          Effect.gen(function* () {
            let small: Uint8Array | undefined
            const spare: Spare = []
            const batches = Stream.filter(inBatches(content, spare), (batch) => {
              const isOnly = small === undefined && batch.length < batchBytes
              small ??= isOnly ? batch : new Uint8Array()
              return !isOnly
            })
            const length = yield* writeBatches(site, staged, batches, spare)
            return yield* runCommit(
              commit,
              length === 0
                ? appendBytes(site, path, small ?? new Uint8Array())
                : appendByCopy(site, path, (now, target, offset) =>
                    Effect.as(
                      Calls.withFile(now, staged.at, OpenFlag.read, (from) =>
                        copyInto(site, now, from, length, target, offset)
                      ),
                      offset + length
                    )
                  )
            )
          })
        )
      })
    )
  )

export const append = <E, R>(
  site: Site,
  path: FsPath,
  content: Content<E, R>,
  commit: Commit | undefined
): Effect.Effect<FileStat, Fault | Refused | E, R> =>
  isBytes(content) ? runCommit(commit, appendBytes(site, path, content)) : appendStream(site, path, content, commit)
