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
import { noteAll, openFile, reading } from "./fileStore.ts"
import * as Pages from "./pages.ts"
import { type Point, scan, start } from "./scan.ts"
import * as Signal from "./signal.ts"
import { attempt } from "./system.ts"

const operation = "Journal.follow"

const interval = 200

const readOnly = (operation: string): JournalError =>
  new JournalError({ operation, reason: "readOnly", detail: "the journal was opened for reading only" })

const withoutPut = (contents: ContentStore): ContentStore => ({
  ...contents,
  put: () => Effect.fail(readOnly("ContentStore.put")),
  putStream: () => Effect.fail(readOnly("ContentStore.put"))
})

interface Nudges {
  readonly count: () => number
  readonly next: (after: number) => Effect.Effect<void>
  readonly isClosed: () => boolean
}

const listen = (path: string): Effect.Effect<Nudges, never, Scope.Scope> =>
  Effect.gen(function* () {
    const signal = Signal.make()
    let count = 0
    let isClosed = false
    const nudge = (): void => {
      count++
      signal.wake()
    }
    const watch = (): Fs.FSWatcher | undefined => {
      try {
        return Fs.watch(path, { persistent: false }, nudge).on("error", () => undefined)
      } catch {
        return undefined
      }
    }
    yield* Effect.acquireRelease(Effect.sync(watch), (watcher) =>
      Effect.sync(() => {
        watcher?.close()
        isClosed = true
        nudge()
      })
    )
    let waiting = 0
    let timer: ReturnType<typeof setInterval> | undefined
    const enter = Effect.sync(() => {
      if (waiting++ === 0) timer = setInterval(nudge, interval)
    })
    const leave = Effect.sync(() => {
      if (--waiting === 0) clearInterval(timer)
    })
    return {
      count: () => count,
      next: (after) =>
        Effect.acquireUseRelease(
          enter,
          () => signal.wait(() => count > after),
          () => leave
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
    const contents = withoutPut(yield* Directory.make(options.contents, { fsync: false, sweeps: false }))
    const descriptor = yield* openFile(path, Fs.constants.O_RDONLY)
    const nudges = yield* listen(path)
    /** The state of the file; `undefined` until the first line is complete. */
    let known: { readonly point: Point; readonly pages: Pages.Pages<E> } | undefined

    const begin = Effect.map(start(descriptor), (point) => {
      if (point !== undefined) known = { point, pages: Pages.make(descriptor, point, decode) }
    })
    const readOn = Effect.suspend(() => {
      if (known === undefined) return Effect.void
      const { pages, point } = known
      return Effect.map(
        scan(descriptor, point, (group) => noteAll(pages, group)),
        ({ point }) => {
          known = { pages, point }
        }
      )
    })
    const one = Semaphore.makeUnsafe(1)
    const open = Effect.suspend(() =>
      nudges.isClosed() ? Effect.fail(failure("closed", "the journal was closed")) : Effect.void
    )
    const grow: Effect.Effect<void, JournalError> = Effect.flatMap(
      Effect.andThen(
        open,
        attempt(operation, () => Fs.fstatSync(descriptor))
      ),
      ({ nlink, size }) => {
        if (nlink === 0) return Effect.fail(failure("io", "its file was removed"))
        if (known === undefined) return one.withPermit(Effect.andThen(begin, readOn))
        // A partial line may have been replaced by another one, so only the end of complete groups is compared.
        if (size === known.point.offset) return Effect.void
        if (size < known.point.offset) return Effect.fail(failure("corrupt", "entries that were there are gone from its file"))
        return one.withPermit(readOn)
      }
    )
    const last = (): number => known?.pages.last() ?? 0
    const changed: Store<E>["changed"] = (after) =>
      Effect.suspend(() => {
        const seen = nudges.count()
        return Effect.flatMap(grow, () => (last() > after ? Effect.void : Effect.andThen(nudges.next(seen), changed(after))))
      })

    yield* grow
    return {
      append: () => Effect.fail(readOnly("Journal.append")),
      read: (after, limit) =>
        Effect.andThen(
          Effect.suspend(() => (after < last() ? open : grow)),
          reading(() => known?.pages.read(after, limit) ?? [])
        ),
      readBackward: (before, limit) =>
        Effect.andThen(
          grow,
          reading(() => known?.pages.readBackward(before, limit) ?? [])
        ),
      last: Effect.map(grow, last),
      changed,
      contents
    }
  })

const failure = (reason: JournalError["reason"], detail: string): JournalError =>
  new JournalError({ operation, reason, detail })
