/** The three contents that a handle can have: a file as it was opened, one that grows, and one that is put together to take its place. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import type { FileStat } from "../../model/Entry.ts"
import * as FsError from "../../model/FsError.ts"
import { Limits, type LimitsShape } from "../../model/Limits.ts"
import type { Handle } from "../../port/Backend.ts"
import type { Bridge } from "./bridge.ts"
import type { Content } from "./file.ts"
import * as Pages from "./pages.ts"

type Failed = FsError.FsError

/** A content, and what is still to be done when its scope closes. */
export interface Opened {
  readonly content: Content
  readonly close: (exit: Exit.Exit<unknown, unknown>) => Effect.Effect<void>
}

export const promoted =
  (path: string) =>
  (fault: FsError.Fault): Failed =>
    FsError.promote(fault, "open", path)

/** The file as it was opened. */
export const pinned = (path: string, handle: Handle): Content => ({
  stat: Effect.succeed(handle.stat),
  read: (offset, length) => {
    const rest = handle.stat.sizeBytes - offset
    return rest <= 0
      ? Effect.sync(() => new Uint8Array(0))
      : Effect.mapError(handle.read(offset, Math.min(length, rest)), promoted(path))
  },
  sync: Effect.void,
  appends: false
})

/** That a directory can be opened, and then not read, is how programs look at one through a handle. */
export const directory = (path: string, stat: FileStat): Content => ({
  stat: Effect.succeed(stat),
  read: () => Effect.fail(new FsError.NotAFile({ operation: "open", path })),
  sync: Effect.void,
  appends: false
})

/** The file that has the name, which grows with each write. `truncate` cuts it. */
export const appending = (
  { fs }: Bridge,
  path: string,
  reads: boolean,
  truncate: NonNullable<Content["truncate"]>
): Content => ({
  stat: fs.stat(path),
  ...(reads && {
    read: (offset: number, limit: number) => Effect.map(fs.readBytes(path, { offset, limit }), ({ content }) => content)
  }),
  write: (_, bytes) => Effect.asVoid(fs.writeBytes(path, bytes, { mode: "appendExisting", createParents: false })),
  truncate,
  sync: Effect.void,
  appends: true
})

interface Staging {
  readonly path: string
  readonly reads: boolean
  readonly before: FileStat
  /** What it begins with; it must stay open as long as the content is used. */
  readonly base: Handle | undefined
  /** The version of `base` when it was opened. Another program may write into the same file later. */
  readonly version: string | undefined
  /** Whether there is something to publish from the start. */
  readonly isChanged: boolean
  /** When the scope fails and nothing was published. */
  readonly discard: Effect.Effect<void>
  readonly limits: LimitsShape
}

/** What `base` holds and what is written over it, which takes the name's place at `sync` and when the scope closes well. */
export const staged = ({ answer, fs }: Bridge, staging: Staging): Opened => {
  const { base, before, discard, limits, path, reads, version } = staging
  const pages = Pages.make(base)
  let isChanged = staging.isChanged
  let isPublished = false

  const fits = (actual: number): Effect.Effect<void, Failed> =>
    actual <= limits.maxFileSize
      ? Effect.void
      : Effect.fail(
          new FsError.LimitExceeded({ operation: "open", path, limit: "maxFileSize", allowed: limits.maxFileSize, actual })
        )
  const change = (size: number, run: Effect.Effect<void, FsError.Fault>): Effect.Effect<void, Failed> =>
    Effect.andThen(
      fits(size),
      Effect.map(Effect.mapError(run, promoted(path)), () => void (isChanged = true))
    )
  const content = Stream.mapError(pages.content, promoted(path))
  /** The version that this handle was opened with, or has published last. */
  let current = version
  /** Replaces the version that the handle was opened to change, and nothing that others have written since. */
  const replace = (ifMatch: string): Effect.Effect<void, Failed> =>
    Effect.map(Stream.run(content, fs.sink(path, { mode: "replace", ifMatch, version: true })), (written) => {
      current = written.version
    })
  const take = Effect.suspend((): Effect.Effect<unknown, Failed> =>
    current === undefined ? Stream.run(content, fs.sink(path, { mode: "overwrite", createParents: false })) : replace(current)
  )
  const settled = Effect.sync(() => void (isChanged = false))
  // A Conflict is final: publishing again could not succeed, and whoever called `sync` has been told.
  const publish = Effect.tapError(Effect.andThen(Effect.provideService(take, Limits, limits), settled), (error) =>
    error._tag === "Conflict" ? settled : Effect.void
  )

  return {
    content: {
      stat: Effect.sync(() => ({ ...before, sizeBytes: pages.size() })),
      ...(reads && {
        read: (offset: number, length: number) => Effect.mapError(pages.read(offset, length), promoted(path))
      }),
      write: (offset, bytes) =>
        Effect.suspend(() => change(Math.max(pages.size(), offset + bytes.length), pages.write(offset, bytes))),
      truncate: (size) => change(size, pages.truncate(size)),
      sync: Effect.map(
        Effect.suspend(() => (isChanged ? publish : Effect.void)),
        () => void (isPublished = true)
      ),
      appends: false
    },
    close: (exit) =>
      Exit.isSuccess(exit)
        ? isChanged
          ? Effect.orDie(answer("close", path, publish))
          : Effect.void
        : isPublished
          ? Effect.void
          : discard
  }
}
