import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import type { FileStat } from "../../model/Entry.ts"
import * as FsError from "../../model/FsError.ts"
import { Limits, type LimitsShape } from "../../model/Limits.ts"
import type { Handle } from "../../port/Backend.ts"
import type { Bridge } from "./bridge.ts"
import type { Content } from "./file.ts"
import * as Pages from "./pages.ts"

type OpenError = FsError.FsError

export interface Opened {
  readonly content: Content
  /**
   * Publishes the staged content before another call reads the file. A failure is ignored here; `sync` and closing
   * report it.
   */
  readonly publishBeforeRead?: Effect.Effect<void> | undefined
  readonly close: (exit: Exit.Exit<unknown, unknown>) => Effect.Effect<void>
}

export const toOpenError =
  (path: string) =>
  (fault: FsError.Fault): OpenError =>
    FsError.promote(fault, "open", path)

export const pinnedContent = (path: string, handle: Handle): Content => ({
  stat: Effect.succeed(handle.stat),
  read: (offset, length) => {
    const rest = handle.stat.sizeBytes - offset
    return rest <= 0
      ? Effect.sync(() => new Uint8Array(0))
      : Effect.mapError(handle.read(offset, Math.min(length, rest)), toOpenError(path))
  },
  sync: Effect.void,
  isAppending: false
})

export const directoryContent = (path: string, stat: FileStat): Content => ({
  stat: Effect.succeed(stat),
  read: () => Effect.fail(new FsError.NotAFile({ operation: "open", path })),
  sync: Effect.void,
  isAppending: false
})

/** Returns the content of the current file of that name, which grows with each write. `truncate` shortens the file. */
export const appendingContent = (
  { fs }: Bridge,
  path: string,
  isReadable: boolean,
  truncate: NonNullable<Content["truncate"]>
): Content => ({
  stat: fs.stat(path),
  ...(isReadable && {
    read: (offset: number, limit: number) => Effect.map(fs.readBytes(path, { offset, limit }), ({ content }) => content)
  }),
  write: (_, bytes) => Effect.asVoid(fs.writeBytes(path, bytes, { mode: "appendExisting", createParents: false })),
  truncate,
  sync: Effect.void,
  isAppending: true
})

interface StagingOptions {
  readonly path: string
  readonly isReadable: boolean
  readonly before: FileStat
  /** The initial content. The handle must stay open while the content is used. */
  readonly base: Handle | undefined
  /** The version of `base` when it was opened. Another program may write into the same file later. */
  readonly version: string | undefined
  /** True if the initial content differs from the file. */
  readonly isChanged: boolean
  /** Runs if the scope fails before a `sync`, with the version that was published last. */
  readonly discard: (shownVersion: string | undefined) => Effect.Effect<void>
  readonly limits: LimitsShape
}

const isConflict = (cause: Cause.Cause<OpenError>): boolean =>
  Option.match(Cause.findErrorOption(cause), { onNone: () => false, onSome: ({ _tag }) => _tag === "Conflict" })

/** Returns staged changes over `base`. They replace the file at `sync` and when the scope closes successfully. */
export const stageContent = ({ withPlatformErrors: answer, fs }: Bridge, stagingOptions: StagingOptions): Opened => {
  const { base, before, discard, limits, path, isReadable, version } = stagingOptions
  const pages = Pages.make(base)
  let isChanged = stagingOptions.isChanged
  let isPublished = false

  const checkSize = (actual: number): Effect.Effect<void, OpenError> =>
    actual <= limits.maxFileSize
      ? Effect.void
      : Effect.fail(
          new FsError.LimitExceeded({ operation: "open", path, limit: "maxFileSize", allowed: limits.maxFileSize, actual })
        )
  const change = (size: number, run: Effect.Effect<void, FsError.Fault>): Effect.Effect<void, OpenError> =>
    Effect.andThen(
      checkSize(size),
      Effect.map(Effect.mapError(run, toOpenError(path)), () => void (isChanged = true))
    )
  const content = Stream.mapError(pages.content, toOpenError(path))
  let current = version
  /** Replaces only the version that this handle knows. Fails with Conflict if others have written since. */
  const replace = (ifMatch: string): Effect.Effect<void, OpenError> =>
    Effect.map(Stream.run(content, fs.sink(path, { mode: "replace", ifMatch, version: true })), (written) => {
      current = written.version
    })
  let shownVersion: string | undefined
  const overwrite = Effect.suspend(() =>
    Effect.map(Stream.run(content, fs.sink(path, { mode: "overwrite", createParents: false, version: true })), (written) => {
      shownVersion = written.version
    })
  )
  // One publication runs at a time. The next one includes bytes written meanwhile.
  const publishLock = Semaphore.makeUnsafe(1)
  const publish = publishLock.withPermit(
    Effect.suspend(() => {
      if (!isChanged) return Effect.void
      isChanged = false
      const take = current === undefined ? overwrite : replace(current)
      return Effect.onExit(Effect.provideService(take, Limits, limits), (exit) =>
        Effect.sync(() => {
          // A Conflict is final: publishing again cannot succeed, and the caller of `sync` has received the error.
          if (Exit.isFailure(exit) && !isConflict(exit.cause)) isChanged = true
        })
      )
    })
  )

  return {
    content: {
      stat: Effect.sync(() => ({ ...before, sizeBytes: pages.size() })),
      ...(isReadable && {
        read: (offset: number, length: number) => Effect.mapError(pages.read(offset, length), toOpenError(path))
      }),
      write: (offset, bytes) =>
        Effect.suspend(() => change(Math.max(pages.size(), offset + bytes.length), pages.write(offset, bytes))),
      truncate: (size) => change(size, pages.truncate(size)),
      sync: Effect.map(publish, () => void (isPublished = true)),
      isAppending: false
    },
    publishBeforeRead: current === undefined ? Effect.ignore(publish) : undefined,
    close: (exit) =>
      Exit.isSuccess(exit)
        ? Effect.orDie(answer("close", path, publish))
        : Effect.suspend(() => (isPublished ? Effect.void : discard(shownVersion)))
  }
}
