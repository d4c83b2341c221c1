/**
 * Opens handles. The flag determines what a handle reads and writes, as the documentation of `Platform.toFileSystem`
 * describes: `r` reads the file as it was opened, `r+` and `w` stage changes, and `a` appends immediately.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import type { File, FileSystem as FileSystemType, OpenFlag } from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import { resolveLink } from "../../engine/resolve.ts"
import * as Version from "../../engine/version.ts"
import type { FileStat } from "../../model/Entry.ts"
import * as FsError from "../../model/FsError.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits, type LimitsShape } from "../../model/Limits.ts"
import type { Handle } from "../../port/Backend.ts"
import { sha256 } from "../../runtime/hash.ts"
import { writeActions } from "../operations/call.ts"
import { type Bridge, infoOf, maskMode, permissionBits } from "./bridge.ts"
import { badArgument, systemError } from "./errors.ts"

// Makes content that changes in place, on a port that can only replace whole files.
//
// The content consists of pages of 64 KiB. Written pages are in memory; all other pages are read from the opened file. The
// memory used therefore depends only on the written pages, and the cost of a write only on the pages that it touches.

const pageBytes = 64 * 1024

interface Pages {
  readonly size: () => number
  readonly read: (offset: number, length: number) => Effect.Effect<Uint8Array, Fault>
  /** Writes a copy of the bytes. A gap between the end and `offset` is filled with zeros. */
  readonly write: (offset: number, bytes: Uint8Array) => Effect.Effect<void, Fault>
  readonly truncate: (size: number) => Effect.Effect<void>
  readonly content: Stream.Stream<Uint8Array, Fault>
}

/**
 * Creates pages over the content of `base`, which must stay open while the pages are used. If `base` is `undefined`, the
 * content is empty.
 */
export const makePages = (base: Handle | undefined): Pages => {
  const writtenPages = new Map<number, Uint8Array>()
  let size = base?.stat.sizeBytes ?? 0
  /**
   * The number of bytes of `base` that can still be read. Bytes that `truncate` removed are zero if the content grows
   * again.
   */
  let visibleBaseBytes = size

  const readBasePage = (index: number): Effect.Effect<Uint8Array, Fault> => {
    const page = new Uint8Array(pageBytes)
    const start = index * pageBytes
    const length = Math.min(pageBytes, visibleBaseBytes - start)
    return base === undefined || length <= 0
      ? Effect.succeed(page)
      : Effect.map(Read.range(base, start, length), (bytes) => {
          page.set(bytes)
          return page
        })
  }
  const pageAt = (index: number): Effect.Effect<Uint8Array, Fault> => {
    const page = writtenPages.get(index)
    return page === undefined ? readBasePage(index) : Effect.succeed(page)
  }

  const read = Effect.fnUntraced(function* (offset: number, length: number): Effect.fn.Return<Uint8Array, Fault> {
    const end = Math.min(offset + length, size)
    const out = new Uint8Array(Math.max(0, end - offset))
    for (let at = offset; at < end;) {
      const index = Math.floor(at / pageBytes)
      const start = at - index * pageBytes
      const page = yield* pageAt(index)
      const part = page.subarray(start, Math.min(pageBytes, start + end - at))
      out.set(part, at - offset)
      at += part.length
    }
    return out
  })

  const write = Effect.fnUntraced(function* (offset: number, bytes: Uint8Array): Effect.fn.Return<void, Fault> {
    if (bytes.length === 0) return
    const end = offset + bytes.length
    const last = Math.floor((end - 1) / pageBytes)
    const touchedPages: Array<readonly [index: number, page: Uint8Array]> = []
    for (let index = Math.floor(offset / pageBytes); index <= last; index++) {
      const isWhole = offset <= index * pageBytes && end >= (index + 1) * pageBytes
      touchedPages.push([index, isWhole ? (writtenPages.get(index) ?? new Uint8Array(pageBytes)) : yield* pageAt(index)])
    }
    for (const [index, loadedPage] of touchedPages) {
      // Another write may have stored its own copy of the page while this fiber loaded the page.
      const page = writtenPages.get(index) ?? loadedPage
      const start = Math.max(0, index * pageBytes - offset)
      page.set(bytes.subarray(start, (index + 1) * pageBytes - offset), Math.max(0, offset - index * pageBytes))
      writtenPages.set(index, page)
    }
    size = Math.max(size, end)
  })

  const truncate = (length: number): Effect.Effect<void> =>
    Effect.sync(() => {
      if (length < size) {
        for (const index of writtenPages.keys()) if (index * pageBytes >= length) writtenPages.delete(index)
        writtenPages.get(Math.floor(length / pageBytes))?.fill(0, length % pageBytes)
        visibleBaseBytes = Math.min(visibleBaseBytes, length)
      }
      size = length
    })

  return {
    size: () => size,
    read: (offset, length) => Effect.suspend(() => read(offset, length)),
    write: (offset, bytes) => Effect.suspend(() => write(offset, bytes)),
    truncate,
    content: Stream.unfold(0, (at) =>
      at >= size ? Effect.undefined : Effect.map(read(at, pageBytes), (bytes) => [bytes, at + pageBytes] as const)
    )
  }
}

type OpenError = FsError.FsError

interface Opened {
  readonly content: Content
  /**
   * Publishes the staged content before another call reads the file. Ignores a failure, because `sync` and closing the
   * handle report it.
   */
  readonly publishBeforeRead?: Effect.Effect<void> | undefined
  readonly close: (exit: Exit.Exit<unknown, unknown>) => Effect.Effect<void>
}

const toOpenError =
  (path: string) =>
  (fault: FsError.Fault): OpenError =>
    FsError.promote(fault, "open", path)

const pinnedContent = (path: string, handle: Handle): Content => ({
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

const directoryContent = (path: string, stat: FileStat): Content => ({
  stat: Effect.succeed(stat),
  read: () => Effect.fail(new FsError.NotAFile({ operation: "open", path })),
  sync: Effect.void,
  isAppending: false
})

/**
 * Returns content that reads the current file at the path and appends each write to it. `truncate` sets the file's length.
 */
const appendingContent = (
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
  /** The initial content, or `undefined` if the content is empty. The handle must stay open while the content is used. */
  readonly base: Handle | undefined
  /** The version of `base` when the handle was opened. Another program may write to the same file later. */
  readonly version: string | undefined
  /** True if the initial content differs from the file. */
  readonly isChanged: boolean
  /** Runs if the scope fails before a `sync`, with the version that was published last. */
  readonly discard: (shownVersion: string | undefined) => Effect.Effect<void>
  readonly limits: LimitsShape
}

const isConflict = (cause: Cause.Cause<OpenError>): boolean =>
  Option.match(Cause.findErrorOption(cause), { onNone: () => false, onSome: ({ _tag }) => _tag === "Conflict" })

/**
 * Returns content that stages changes over `base`. The result replaces the file at `sync` and when the scope closes
 * successfully.
 */
const stageContent = ({ withPlatformErrors, fs }: Bridge, stagingOptions: StagingOptions): Opened => {
  const { base, before, discard, limits, path, isReadable, version } = stagingOptions
  const pages = makePages(base)
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
  /**
   * Replaces the file if it still has the version that this handle knows. Fails with Conflict if another writer has
   * changed the file.
   */
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
  // One publication runs at a time. Bytes that are written meanwhile are part of the next publication.
  const publishLock = Semaphore.makeUnsafe(1)
  const publish = publishLock.withPermit(
    Effect.suspend(() => {
      if (!isChanged) return Effect.void
      isChanged = false
      const take = current === undefined ? overwrite : replace(current)
      return Effect.onExit(Effect.provideService(take, Limits, limits), (exit) =>
        Effect.sync(() => {
          // After a Conflict, publishing again cannot succeed, and the caller of `sync` has already received the error.
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
        ? Effect.orDie(withPlatformErrors("close", path, publish))
        : Effect.suspend(() => (isPublished ? Effect.void : discard(shownVersion)))
  }
}

// A file handle: a cursor over some content, with the behaviour of effect's `File`. Every call on a closed handle
// fails.

interface Content {
  readonly stat: Effect.Effect<FileStat, FsError.FsError>
  /** Reads bytes. Returns an empty array at or beyond the end. Absent if the file is not open for reading. */
  readonly read?: (offset: number, length: number) => Effect.Effect<Uint8Array, FsError.FsError>
  readonly write?: (offset: number, bytes: Uint8Array) => Effect.Effect<void, FsError.FsError>
  readonly truncate?: (size: number) => Effect.Effect<void, FsError.FsError | PlatformError>
  readonly sync: Effect.Effect<void, FsError.FsError>
  /** True if writes go to the end, regardless of the cursor. */
  readonly isAppending: boolean
}

const makeFile = (bridge: Bridge, path: string, content: Content, isClosed: () => boolean): FileSystem.File => {
  let cursor = 0n

  const failSystemError = (method: string, why: string) => Effect.fail(systemError(method, path, "Unknown", why))
  const call = <A>(
    method: string,
    run: () => Effect.Effect<A, FsError.FsError | PlatformError>
  ): Effect.Effect<A, PlatformError> =>
    Effect.suspend(() =>
      isClosed()
        ? failSystemError(method, "the file has been closed")
        : Effect.catch(run(), (error) =>
            error._tag === "PlatformError" ? Effect.fail(error) : bridge.failPlatform(method, path, error)
          )
    )

  const readAt = (
    method: string,
    length: number,
    options: FileSystem.File.ReadOptions | undefined
  ): Effect.Effect<Uint8Array, FsError.FsError | PlatformError> => {
    const explicitPosition = options?.position
    if (explicitPosition !== undefined && explicitPosition < 0n) {
      return Effect.fail(badArgument(method, "Cannot read before the start of the file"))
    }
    if (content.read === undefined) return failSystemError(method, "the file was not opened for reading")
    const position = explicitPosition ?? cursor
    return Effect.map(length === 0 ? readNothing : content.read(Number(position), length), (bytes) => {
      if (explicitPosition === undefined) cursor = position + BigInt(bytes.length)
      return bytes
    })
  }

  const writeAtCursor = (method: string, bytes: Uint8Array): Effect.Effect<number, FsError.FsError | PlatformError> => {
    if (content.write === undefined) return failSystemError(method, "the file was not opened for writing")
    const position = cursor
    if (!content.isAppending && position > Number.MAX_SAFE_INTEGER) {
      return Effect.fail(badArgument(method, `position exceeds the safe integer range: ${position}`))
    }
    return Effect.map(content.write(Number(position), bytes), () => {
      if (!content.isAppending) cursor = position + BigInt(bytes.length)
      return bytes.length
    })
  }

  return {
    [FileSystem.FileTypeId]: FileSystem.FileTypeId,
    stat: call("stat", () => Effect.map(content.stat, infoOf)),
    sync: call("sync", () => content.sync),
    // Effect's type lacks "end", but every file supports it.
    seek: (offset, from: FileSystem.SeekMode | "end") =>
      call("seek", () => {
        const base =
          from === "start"
            ? Effect.succeed(0n)
            : from === "current"
              ? Effect.succeed(cursor)
              : Effect.map(content.stat, (stat) => BigInt(stat.sizeBytes))
        return Effect.flatMap(base, (base) => {
          const position = base + offset
          if (position < 0n) return Effect.fail(badArgument("seek", "Cannot seek before the start of the file"))
          cursor = position
          return Effect.succeed(position)
        })
      }),
    read: (buffer, options) =>
      call("read", () =>
        Effect.map(readAt("read", buffer.length, options), (bytes) => {
          buffer.set(bytes)
          return bytes.length
        })
      ),
    readAlloc: (size, options) =>
      call("readAlloc", () =>
        Number.isInteger(size) && size >= 0
          ? Effect.map(readAt("readAlloc", size, options), (bytes) => (bytes.length === 0 ? Option.none() : Option.some(bytes)))
          : Effect.fail(badArgument("readAlloc", "size must be a non-negative integer"))
      ),
    truncate: (length = 0) =>
      call("truncate", () => {
        if (!Number.isSafeInteger(length)) return Effect.fail(badArgument("truncate", "the length must be an integer"))
        if (content.truncate === undefined) return failSystemError("truncate", "the file was not opened for writing")
        const size = Math.max(0, length)
        return Effect.map(content.truncate(size), () => {
          if (!content.isAppending && cursor > size) cursor = BigInt(size)
        })
      }),
    write: (buffer) => call("write", () => writeAtCursor("write", buffer)),
    writeAll: (buffer) =>
      call("writeAll", () => (buffer.length === 0 ? Effect.void : Effect.asVoid(writeAtCursor("writeAll", buffer))))
  }
}

const readNothing = Effect.sync(() => new Uint8Array(0))

interface Plan {
  readonly isReadable: boolean
  readonly writes: "never" | "staged" | "append"
  readonly creates: "never" | "missing" | "always"
  readonly truncates: boolean
}

const plan = (isReadable: boolean, writes: Plan["writes"], creates: Plan["creates"], truncates = false): Plan => ({
  isReadable,
  writes,
  creates,
  truncates
})

const planByFlag: { readonly [Flag in OpenFlag]: Plan } = {
  r: plan(true, "never", "never"),
  "r+": plan(true, "staged", "never"),
  w: plan(false, "staged", "missing", true),
  wx: plan(false, "staged", "always"),
  "w+": plan(true, "staged", "missing", true),
  "wx+": plan(true, "staged", "always"),
  a: plan(false, "append", "missing"),
  ax: plan(false, "append", "always"),
  "a+": plan(true, "append", "missing"),
  "ax+": plan(true, "append", "always")
}

type Options = Parameters<FileSystemType["open"]>[1]

const noBytes = new Uint8Array(0)

interface Handles {
  readonly open: FileSystemType["open"]
  readonly publishPending: (path: string, extent: PathExtent) => Effect.Effect<void>
}

/**
 * The entries at a path that a call uses: `entry` is the entry itself, `file` is the file behind its symlinks, and
 * `tree` is this file or directory with all entries below it.
 */
export type PathExtent = "entry" | "file" | "tree"

export const make = (bridge: Bridge): Handles => {
  /** The functions that publish the staged content of open `w` handles, each with the path of its file. */
  const publications = new Map<Effect.Effect<void>, FsPath.FsPath>()
  const { withPlatformErrors, fs, lookUp, lookUpLink, port, runStep } = bridge
  const { caseSensitive } = port.info

  const publishPending: Handles["publishPending"] = (path, extent) =>
    Effect.suspend(() =>
      publications.size === 0
        ? Effect.void
        : Effect.flatMap(Effect.option((extent === "entry" ? lookUpLink : lookUp)("open", path)), (found) => {
            if (Option.isNone(found)) return Effect.void
            const used = caseSensitive ? found.value.path : FsPath.fold(found.value.path)
            const isUsed = (at: FsPath.FsPath) => (extent === "tree" ? FsPath.isWithin(used, at) : at === used)
            return Effect.forEach(
              [...publications].flatMap(([publish, at]) => (isUsed(caseSensitive ? at : FsPath.fold(at)) ? [publish] : [])),
              (publish) => publish,
              { discard: true }
            )
          })
    )

  const openPinned = (path: string, scope: Scope.Scope, noFollow: boolean): Effect.Effect<Handle, FsError.FsError> =>
    runStep("open", path, (path) =>
      Scope.provide(
        noFollow ? Effect.flatMap(resolveLink(port, path), ({ path: at }) => port.open(at)) : Read.open(port, path),
        scope
      )
    )

  const openForReading = (path: string, scope: Scope.Scope, noFollow: boolean): Effect.Effect<Content, FsError.FsError> =>
    Effect.catchTag(
      Effect.map(openPinned(path, scope, noFollow), (handle) => pinnedContent(path, handle)),
      "NotAFile",
      (error) =>
        Effect.flatMap((noFollow ? lookUpLink : lookUp)("open", path), ({ stat }) =>
          stat?.kind === "directory" ? Effect.succeed(directoryContent(path, stat)) : Effect.fail(error)
        )
    )

  /** Creates an empty file if the path does not exist. Returns true if this call created the file. */
  const create = (path: string, exclusive: boolean): Effect.Effect<boolean, FsError.FsError> =>
    exclusive
      ? Effect.as(fs.writeBytes(path, noBytes, { mode: "create", createParents: false }), true)
      : Effect.catchTag(
          Effect.as(fs.writeBytes(path, noBytes, { ifMatch: null, createParents: false }), true),
          "Conflict",
          () => Effect.succeed(false)
        )

  const setMode = (path: string, mode: number): Effect.Effect<void, FsError.FsError> =>
    Effect.flatMap(fs.stat(path), (made) => fs.setAttributes(path, { mode: maskMode(mode, made) }))

  const truncate =
    (path: string) =>
    (size: number): Effect.Effect<void, PlatformError> =>
      Effect.scoped(Effect.flatMap(open(path, { flag: "r+" }), (file) => Effect.andThen(file.truncate(size), file.sync)))

  const checkPlan = (path: string, plan: Plan, found: FileStat | undefined): FsError.FsError | undefined => {
    const operation = "open"
    if (found === undefined) return plan.creates === "never" ? new FsError.NotFound({ operation, path }) : undefined
    if (plan.creates === "always") return new FsError.AlreadyExists({ operation, path })
    return found.kind === "file" ? undefined : new FsError.NotAFile({ operation, path })
  }

  const openForWriting = Effect.fnUntraced(function* (
    path: string,
    plan: Plan,
    scope: Scope.Scope,
    noFollow: boolean,
    mode: number | undefined
  ): Effect.fn.Return<Opened, FsError.FsError> {
    const exclusive = plan.creates === "always"
    const found = yield* (noFollow || exclusive ? lookUpLink : lookUp)("open", path, writeActions)
    const error = checkPlan(path, plan, found.stat)
    if (error !== undefined) return yield* Effect.fail(error)
    const setsMode = mode !== undefined && found.stat === undefined
    if (setsMode && port.attributes === undefined) {
      return yield* Effect.fail(new FsError.Unsupported({ operation: "open", path, feature: "attributes" }))
    }
    const made = found.stat === undefined && (yield* create(path, exclusive))
    const discard = (shown = sha256(noBytes)): Effect.Effect<void> =>
      made ? Effect.ignore(fs.delete(found.path, { ifMatch: shown })) : Effect.void
    const openContent = Effect.gen(function* () {
      if (made && setsMode) yield* setMode(path, mode)
      if (plan.writes === "append") {
        const content = appendingContent(bridge, path, plan.isReadable, truncate(path))
        return { content, close: (exit: Exit.Exit<unknown, unknown>) => (Exit.isFailure(exit) ? discard() : Effect.void) }
      }
      const base = plan.truncates || made ? undefined : yield* openPinned(path, scope, noFollow)
      const opened = stageContent(bridge, {
        path,
        isReadable: plan.isReadable,
        before: base?.stat ?? (yield* fs.stat(path)),
        base,
        version: base === undefined ? undefined : yield* Effect.mapError(Version.ofHandle(base), toOpenError(path)),
        isChanged: plan.truncates && !made,
        discard,
        limits: yield* Limits
      })
      const { publishBeforeRead } = opened
      if (publishBeforeRead === undefined) return opened
      publications.set(publishBeforeRead, found.path)
      return {
        ...opened,
        close: (exit: Exit.Exit<unknown, unknown>) =>
          Effect.ensuring(
            opened.close(exit),
            Effect.sync(() => publications.delete(publishBeforeRead))
          )
      }
    })
    return yield* Effect.onError(openContent, () => discard())
  })

  const open = (path: string, options?: Options): Effect.Effect<File, PlatformError, Scope.Scope> => {
    const flag = options?.flag ?? "r"
    const plan = Object.hasOwn(planByFlag, flag) ? planByFlag[flag] : undefined
    if (plan === undefined) return Effect.fail(badArgument("open", `unknown flag ${String(options?.flag)}`))
    const noFollow = options?.noFollow === true
    let isClosed = false
    const markClosed = Effect.sync(() => void (isClosed = true))
    const file = (content: Content): File => makeFile(bridge, path, content, () => isClosed)
    return Effect.flatMap(Effect.scope, (scope) => {
      if (plan.writes === "never") {
        return Effect.flatMap(withPlatformErrors("open", path, openForReading(path, scope, noFollow)), (content) =>
          Effect.as(Scope.addFinalizer(scope, markClosed), file(content))
        )
      }
      const mode = options?.mode === undefined ? Effect.undefined : permissionBits("open", options.mode)
      return Effect.map(
        Effect.acquireRelease(
          Effect.flatMap(mode, (mode) => withPlatformErrors("open", path, openForWriting(path, plan, scope, noFollow, mode))),
          ({ close }, exit) => Effect.andThen(markClosed, close(exit))
        ),
        ({ content }) => file(content)
      )
    })
  }
  return { open: (path, options) => Effect.andThen(publishPending(path, "file"), open(path, options)), publishPending }
}
