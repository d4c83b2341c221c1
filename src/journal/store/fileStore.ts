/**
 * A store of entries in a file. Another process may read the file while it is written. A reader learns from the system when
 * the file grows. A timer also checks the file, in case the system sends no event. A reader counts the events before it checks
 * the file, so it misses no growth.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { makeDirectories } from "../../runtime/directories.ts"
import { closeQuietly } from "../../runtime/host.ts"
import { basename, dirname, Fs, join, randomBytes, randomInt, resolve } from "../../runtime/node.ts"
import type { ContentStore, Recorded, Store } from "../model.ts"
import * as Directory from "./directoryContents.ts"
import { JournalError } from "../errors.ts"
import * as Codec from "./entryCopies.ts"
import { headerOf, initialChain, type LocatedLine, type Point, readStart, scan } from "./format.ts"
import * as Pages from "./pages.ts"
import * as Signal from "../../runtime/signal.ts"
import { attempt, sync, syncDirectory } from "./systemCalls.ts"
import * as Writer from "./writer.ts"
import { type Disk, realDisk } from "./writer.ts"
import * as ProcessLock from "../../runtime/processLock.ts"

const operation = "Journal.open"

/** The largest size of one append in UTF-16 units. */
const maxAppendUnits = 256 * 1024 * 1024

interface FileStoreOptions {
  readonly path: string
  readonly contents: string | ContentStore
  readonly fsync: boolean
  readonly chained: boolean
}

/** The flags for opening a file. With O_NONBLOCK, opening a FIFO does not block. Windows has no O_NONBLOCK. */
const { O_NONBLOCK }: { readonly O_NONBLOCK?: number } = Fs.constants

export const openFile = (path: string, flags: number): Effect.Effect<number, JournalError, Scope.Scope> =>
  Effect.tap(
    Effect.acquireRelease(
      attempt(operation, () => Fs.openSync(path, flags | (O_NONBLOCK ?? 0), 0o600)),
      (descriptor) => Effect.sync(() => closeQuietly(descriptor))
    ),
    (descriptor) =>
      Effect.flatMap(
        attempt(operation, () => Fs.fstatSync(descriptor).isFile()),
        (isFile) => (isFile ? Effect.void : Effect.fail(notAFileError))
      )
  )

const notAFileError = new JournalError({
  operation,
  reason: "invalid",
  detail: "the path of the journal is not a regular file"
})

const danglingLinkError = new JournalError({
  operation,
  reason: "invalid",
  detail: "the path of the journal is a link without a target; remove the link or create its target"
})

/**
 * Returns the path with all links resolved, so that all writers of a file lock the same name. The parent directory must exist.
 * Throws for a link without a target, because the creator of the link would choose the path of the journal.
 */
export const realPath = (path: string): string => {
  if (Fs.existsSync(path)) return Fs.realpathSync(path)
  if (Fs.lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true) throw danglingLinkError
  return join(Fs.realpathSync(dirname(path)), basename(path))
}

/** Writes the header of a new file, or of a file whose first line is incomplete. */
const writeHeader = (descriptor: number, { chained, fsync, path }: FileStoreOptions): Effect.Effect<Point, JournalError> =>
  Effect.gen(function* () {
    const header = headerOf(chained)
    yield* attempt(operation, () => {
      Fs.ftruncateSync(descriptor, 0)
      if (Fs.writeSync(descriptor, header) < header.length) throw diskFullError
    })
    if (fsync) {
      yield* sync(operation, descriptor)
      yield* syncDirectory(operation, dirname(path))
    }
    return { position: 0, offset: header.length, chain: initialChain(chained) }
  })

const diskFullError = Object.assign(new Error("the disk is full"), { code: "ENOSPC" })

const recoverEnd = <E>(
  descriptor: number,
  options: FileStoreOptions,
  decode: Pages.Decode<E>
): Effect.Effect<{ readonly point: Point; readonly pages: Pages.Pages<E> }, JournalError> =>
  Effect.gen(function* () {
    const from = (yield* readStart(descriptor)) ?? (yield* writeHeader(descriptor, options))
    if (options.chained && from.chain === undefined) {
      return yield* new JournalError({
        operation,
        reason: "invalid",
        detail: "the existing journal is not chained; open it without the option `chained`"
      })
    }
    const pages = Pages.make(descriptor, from, decode)
    const { point, rest } = yield* scan(descriptor, from, (group) => indexGroup(pages, group))
    if (rest > 0) {
      yield* attempt(operation, () => Fs.ftruncateSync(descriptor, point.offset))
      if (options.fsync) yield* sync(operation, descriptor)
    }
    return { point, pages }
  })

const indexGroup = (pages: Pick<Pages.Pages<never>, "add">, group: ReadonlyArray<LocatedLine>): undefined => {
  for (const { length } of group) pages.add(length)
}

const readOrFail = <A>(run: () => A | JournalError): Effect.Effect<A, JournalError> =>
  Effect.flatMap(attempt("Journal.read", run), (found) =>
    found instanceof JournalError ? Effect.fail(found) : Effect.succeed(found)
  )

export const make = <E, I>(
  schema: Schema.Codec<E, I>,
  storeOptions: FileStoreOptions,
  disk: Disk = realDisk
): Effect.Effect<Store<E>, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const { decode, encode } = Codec.make(schema)
    const path = yield* attempt(operation, () => {
      makeDirectories(dirname(resolve(storeOptions.path)))
      return realPath(resolve(storeOptions.path))
    })
    const { fsync } = storeOptions
    const options = { ...storeOptions, path }
    yield* claimFile(path)
    const contents =
      typeof storeOptions.contents === "string"
        ? yield* Directory.open(storeOptions.contents, { fsync })
        : storeOptions.contents
    const { O_APPEND, O_CREAT, O_RDWR } = Fs.constants
    const descriptor = yield* openFile(path, O_RDWR | O_APPEND | O_CREAT)
    const { pages, point } = yield* recoverEnd(descriptor, options, decode)
    const signal = Signal.make()
    const writer = Writer.make({ descriptor, from: point, fsync, disk })
    let isClosed = false
    yield* Effect.addFinalizer(() =>
      Effect.andThen(writer.close, () => {
        isClosed = true
        signal.wake()
        return Effect.void
      })
    )
    const whileOpen = <A>(effect: Effect.Effect<A, JournalError>): Effect.Effect<A, JournalError> =>
      Effect.suspend(() =>
        isClosed ? Effect.fail(new JournalError({ operation, reason: "closed", detail: "the journal was closed" })) : effect
      )

    const append: Store<E>["append"] = (entries, at) =>
      Effect.suspend(() => {
        if (entries.length === 0) return whileOpen(Effect.sync(pages.last))
        const texts: Array<string> = []
        let size = 0
        for (const entry of entries) {
          const text = encode(entry)
          if (text instanceof JournalError) return Effect.fail(text)
          texts.push(text)
          size += text.length
        }
        if (size > maxAppendUnits) return Effect.fail(tooLargeError)
        return writer.append({
          entries: texts,
          at,
          size,
          written: (first, lengths) => {
            for (const [index, entry] of entries.entries()) {
              const recorded: Recorded<E> = Object.freeze({ position: first + index, at, entry })
              pages.add(lengths[index]!, recorded)
            }
            signal.wake()
          }
        })
      })

    const changed: Store<E>["changed"] = (after) =>
      whileOpen(
        Effect.andThen(
          signal.wait(() => isClosed || pages.last() > after),
          whileOpen(Effect.void)
        )
      )

    return {
      append,
      read: (after, limit) => whileOpen(readOrFail(() => pages.read(after, limit))),
      readBackward: (before, limit) => whileOpen(readOrFail(() => pages.readBackward(before, limit))),
      last: whileOpen(Effect.sync(pages.last)),
      changed,
      contents
    }
  })

const tooLargeError = new JournalError({
  operation: "Journal.append",
  reason: "tooLarge",
  detail: `one append may have at most ${maxAppendUnits} characters of JSON`
})

const operationFollowing = "Journal.follow"

const pollIntervalMillis = 200

const readOnlyError = (operation: string): JournalError =>
  new JournalError({ operation, reason: "readOnly", detail: "the journal was opened for reading only" })

const rejectPuts = (contents: ContentStore): ContentStore => ({
  ...contents,
  put: () => Effect.fail(readOnlyError("ContentStore.put")),
  putStream: () => Effect.fail(readOnlyError("ContentStore.put"))
})

interface ChangeNotifications {
  readonly count: () => number
  readonly waitForMore: (after: number) => Effect.Effect<void>
  readonly isClosed: () => boolean
}

const watchFile = (path: string): Effect.Effect<ChangeNotifications, never, Scope.Scope> =>
  Effect.gen(function* () {
    const signal = Signal.make()
    let count = 0
    let isClosed = false
    const notify = (): void => {
      count++
      signal.wake()
    }
    const watch = (): Fs.FSWatcher | undefined => {
      try {
        return Fs.watch(path, { persistent: false }, notify).on("error", () => undefined)
      } catch {
        return undefined
      }
    }
    yield* Effect.acquireRelease(Effect.sync(watch), (watcher) =>
      Effect.sync(() => {
        watcher?.close()
        isClosed = true
        notify()
      })
    )
    let waiterCount = 0
    let timer: ReturnType<typeof setInterval> | undefined
    const startPolling = Effect.sync(() => {
      if (waiterCount++ === 0) timer = setInterval(notify, pollIntervalMillis)
    })
    const stopPolling = Effect.sync(() => {
      if (--waiterCount === 0) clearInterval(timer)
    })
    return {
      count: () => count,
      waitForMore: (after) =>
        Effect.acquireUseRelease(
          startPolling,
          () => signal.wait(() => count > after),
          () => stopPolling
        ),
      isClosed: () => isClosed
    }
  })

export const makeFollowing = <E, I>(
  schema: Schema.Codec<E, I>,
  options: Pick<FileStoreOptions, "path" | "contents">
): Effect.Effect<Store<E>, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const path = resolve(options.path)
    const { decode } = Codec.make(schema)
    const contents = rejectPuts(
      typeof options.contents === "string" ? yield* Directory.open(options.contents, { isReader: true }) : options.contents
    )
    const descriptor = yield* openFile(path, Fs.constants.O_RDONLY)
    const notifications = yield* watchFile(path)
    /** The state of the file. `undefined` until the first line is complete. */
    let state: { readonly point: Point; readonly pages: Pages.Pages<E> } | undefined

    const openPages = Effect.map(readStart(descriptor), (point) => {
      if (point !== undefined) state = { point, pages: Pages.make(descriptor, point, decode) }
    })
    const scanNew = Effect.suspend(() => {
      if (state === undefined) return Effect.void
      const { pages, point } = state
      return Effect.map(
        scan(descriptor, point, (group) => indexGroup(pages, group)),
        ({ point }) => {
          state = { pages, point }
        }
      )
    })
    const scanLock = Semaphore.makeUnsafe(1)
    const failIfClosed = Effect.suspend(() =>
      notifications.isClosed() ? Effect.fail(failure("closed", "the journal was closed")) : Effect.void
    )
    const readGrowth: Effect.Effect<void, JournalError> = Effect.flatMap(
      Effect.andThen(
        failIfClosed,
        attempt(operationFollowing, () => Fs.fstatSync(descriptor))
      ),
      ({ nlink, size }) => {
        if (nlink === 0) return Effect.fail(failure("io", "the journal file was removed"))
        if (state === undefined) return scanLock.withPermit(Effect.andThen(openPages, scanNew))
        // Compare the size with the end of the last complete append, because a new append may have replaced an incomplete
        // line.
        if (size === state.point.offset) return Effect.void
        if (size < state.point.offset) return Effect.fail(failure("corrupt", "entries were removed from the journal file"))
        return scanLock.withPermit(scanNew)
      }
    )
    const last = (): number => state?.pages.last() ?? 0
    const changed: Store<E>["changed"] = (after) =>
      Effect.suspend(() => {
        const countBefore = notifications.count()
        return Effect.flatMap(readGrowth, () =>
          last() > after ? Effect.void : Effect.andThen(notifications.waitForMore(countBefore), changed(after))
        )
      })

    yield* readGrowth
    return {
      append: () => Effect.fail(readOnlyError("Journal.append")),
      read: (after, limit) =>
        Effect.andThen(
          Effect.suspend(() => (after < last() ? failIfClosed : readGrowth)),
          readOrFail(() => state?.pages.read(after, limit) ?? [])
        ),
      readBackward: (before, limit) =>
        Effect.andThen(
          readGrowth,
          readOrFail(() => state?.pages.readBackward(before, limit) ?? [])
        ),
      last: Effect.map(readGrowth, last),
      changed,
      contents
    }
  })

const failure = (reason: JournalError["reason"], detail: string): JournalError =>
  new JournalError({ operation: operationFollowing, reason, detail })

/** The number of attempts to lock a journal, and the longest pause between two attempts in milliseconds. */
const [maxAttempts, maxPauseMillis] = [5, 50] as const

/** The lock for writing a journal. Each writer needs the lock, even within one process. */
const lock = ProcessLock.make({
  leaseMillis: 60_000,
  refreshMillis: 15_000,
  nameOf: (owner) => `${owner}${randomBytes(6).toString("hex")}`,
  pattern: /^(([0-9a-z-]+)\.[0-9a-f]{12})[0-9a-f]{12}$/,
  directoryMode: 0o777
})

const linkedDirectoryError = new JournalError({
  operation,
  reason: "invalid",
  detail: "the lock directory of the journal (the journal's path followed by .lock) is a symlink; remove the symlink"
})

const claimOnce = (directory: string): ProcessLock.Held | undefined => {
  if (Fs.lstatSync(directory, { throwIfNoEntry: false })?.isSymbolicLink() === true) throw linkedDirectoryError
  const ownEntries = lock.add(directory, "")
  let isMine = false
  try {
    isMine = lock.others(directory, ownEntries).length === 0
  } finally {
    if (!isMine) lock.remove(ownEntries)
  }
  return isMine ? ownEntries : undefined
}

const busyError = new JournalError({
  operation,
  reason: "busy",
  detail: "another writer has opened the journal, in this process or in another process"
})

const claimWithRetries = (directory: string, attemptsLeft: number): Effect.Effect<ProcessLock.Held, JournalError> =>
  Effect.flatMap(
    attempt(operation, () => claimOnce(directory)),
    (ownEntries) => {
      if (ownEntries !== undefined) return Effect.succeed(ownEntries)
      if (attemptsLeft === 1) return Effect.fail(busyError)
      return Effect.andThen(ProcessLock.pause(1 + randomInt(maxPauseMillis)), claimWithRetries(directory, attemptsLeft - 1))
    }
  )

/** Locks the file for this writer until the scope closes. Fails with `busy` if another writer has the lock. */
export const claimFile = (path: string): Effect.Effect<void, JournalError, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(claimWithRetries(`${path}.lock`, maxAttempts), (ownEntries) =>
      Effect.sync(() => lock.remove(ownEntries))
    )
  )
