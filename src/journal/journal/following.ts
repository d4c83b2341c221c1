/**
 * Reads a journal's file beside the process that writes it. The system reports when the file grows; a timer covers systems that do not. A
 * reader checks the file once more after it has begun to wait, so it misses no growth.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { Fs, resolve } from "../../runtime/node.ts"
import * as Directory from "../content/directory.ts"
import type { ContentStore } from "../ContentStore.ts"
import { JournalError } from "../errors.ts"
import type { Store } from "../Journal.ts"
import * as Codec from "./codec.ts"
import { indexGroup, openFile, readOrFail } from "./fileStore.ts"
import * as Pages from "./pages.ts"
import { type Point, scan, readStart } from "./scan.ts"
import * as Signal from "./signal.ts"
import { attempt } from "./system.ts"

const operation = "Journal.follow"

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

export const make = <E, I>(
  schema: Schema.Codec<E, I>,
  options: { readonly path: string; readonly contents: string }
): Effect.Effect<Store<E>, JournalError, Scope.Scope> =>
  Effect.gen(function* () {
    const path = resolve(options.path)
    const { decode } = Codec.make(schema)
    const contents = rejectPuts(yield* Directory.make(options.contents, { fsync: false, removesLeftovers: false }))
    const descriptor = yield* openFile(path, Fs.constants.O_RDONLY)
    const notifications = yield* watchFile(path)
    /** The state of the file; `undefined` until the first line is complete. */
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
        attempt(operation, () => Fs.fstatSync(descriptor))
      ),
      ({ nlink, size }) => {
        if (nlink === 0) return Effect.fail(failure("io", "its file was removed"))
        if (state === undefined) return scanLock.withPermit(Effect.andThen(openPages, scanNew))
        // A partial line may have been replaced by another one, so only the end of complete groups is compared.
        if (size === state.point.offset) return Effect.void
        if (size < state.point.offset) return Effect.fail(failure("corrupt", "entries that were there are gone from its file"))
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
  new JournalError({ operation, reason, detail })
