/**
 * The open files of one `NodeFs`. All descriptors of one file share its content, as in an operating system.
 *
 * A backend replaces whole files, but Node's programs write pieces. So the pieces are collected in memory, and written
 * when a descriptor is closed or synced, or when another call of this `NodeFs` uses the file. Files that are only read
 * or appended to are not kept in memory.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import { make as makeCaller, errorTags, readActions } from "../../filesystem/operations/call.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { FsError } from "../../model/FsError.ts"
import { below, fold, type FsPath, isWithin, relative } from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Handle } from "../../port/Backend.ts"

/** An open file: its path, its last known stat, and its content if the content is kept in memory. */
export interface OpenFile {
  path: FsPath
  stat: FileStat
  /** False after the file was removed or replaced. Its content exists only in memory, for its descriptors. */
  isAttached: boolean
  users: number
  /** A buffer whose first `size` bytes are the content. */
  bytes: Uint8Array | undefined
  size: number
  isDirty: boolean
  pinned: { readonly handle: Handle; readonly scope: Scope.Closeable } | undefined
  readonly lock: Semaphore.Semaphore
}

export interface OpenFiles {
  /** Tests whether no file is open, so that no content is pending. */
  readonly isQuiet: () => boolean
  readonly at: (path: FsPath) => OpenFile | undefined
  readonly open: (path: FsPath, stat: FileStat, options: { readonly reads: boolean }) => Effect.Effect<OpenFile, FsError>
  readonly close: (file: OpenFile) => Effect.Effect<void, FsError>
  readonly read: (file: OpenFile, at: Place, length: number) => Effect.Effect<Uint8Array, FsError>
  readonly write: (file: OpenFile, at: Place, bytes: Uint8Array) => Effect.Effect<void, FsError>
  /** Writes at the end. If `at` is a cursor, moves it to the new end. */
  readonly append: (file: OpenFile, bytes: Uint8Array, at: Place) => Effect.Effect<void, FsError>
  readonly truncate: (file: OpenFile, size: number) => Effect.Effect<void, FsError>
  readonly sizeOf: (file: OpenFile) => number
  readonly publish: (file: OpenFile) => Effect.Effect<void, FsError>
  /** Writes the pending content of all files at or below a path. Returns true if anything was written. */
  readonly settle: (path: FsPath) => Effect.Effect<boolean, FsError>
  /** Writes bytes to a file of the backend. The size limit is the limit of streams, not of whole writes. */
  readonly replace: (path: FsPath, bytes: Uint8Array, mode: "create" | "overwrite" | "append") => Effect.Effect<void, FsError>
  readonly moved: (from: FsPath, to: FsPath) => void
  readonly removed: (path: FsPath) => void
}

/**
 * A position in a file, or the cursor of a descriptor. A call reads and moves a cursor while it holds the lock of the file,
 * so that concurrent calls never use the same position.
 */
export type Place = number | { position: number }

const positionOf = (at: Place): number => (typeof at === "number" ? at : at.position)

const moveTo = (at: Place, position: number): void => {
  if (typeof at !== "number") at.position = position
}

const none = new Uint8Array(0)
const largestFile = 2 ** 36

export const make = (fs: Algebra): OpenFiles => {
  const files = new Map<FsPath, OpenFile>()
  const caller = makeCaller(fs.port)
  const keyOf = (path: FsPath): FsPath => (fs.port.info.caseSensitive ? path : fold(path))
  const within = (path: FsPath): Array<OpenFile> =>
    [...files.values()].filter((file) => isWithin(keyOf(path), keyOf(file.path)))

  const pin = (file: OpenFile): Effect.Effect<Handle, FsError> =>
    file.pinned !== undefined
      ? Effect.succeed(file.pinned.handle)
      : Effect.uninterruptible(
          Effect.suspend(() => {
            const scope = Scope.makeUnsafe()
            const opened = caller.call<Handle, FsError>("open", file.path, errorTags.write, readActions, (path) =>
              Scope.provide(fs.port.open(path), scope)
            )
            return Effect.onExit(opened, (exit) => {
              if (!Exit.isSuccess(exit)) return Scope.close(scope, exit)
              file.pinned = { handle: exit.value, scope }
              return Effect.void
            })
          })
        )

  const unpin = (file: OpenFile): Effect.Effect<void> => {
    const { pinned } = file
    file.pinned = undefined
    return pinned === undefined ? Effect.void : Scope.close(pinned.scope, Exit.void)
  }

  const readPinned = (file: OpenFile, position: number, length: number): Effect.Effect<Uint8Array, FsError> =>
    Effect.flatMap(pin(file), (handle) =>
      caller.call<Uint8Array, FsError>("read", file.path, errorTags.write, readActions, () =>
        handle.read(position, Math.max(0, Math.min(length, handle.stat.sizeBytes - position)))
      )
    )

  const sizeOf = (file: OpenFile): number =>
    file.bytes === undefined ? (file.pinned?.handle.stat.sizeBytes ?? file.stat.sizeBytes) : file.size

  /** Reads the whole content into memory, so that it can be changed. */
  const load = (file: OpenFile): Effect.Effect<void, FsError> =>
    file.bytes !== undefined
      ? Effect.void
      : Effect.flatMap(pin(file), (handle) =>
          Effect.gen(function* () {
            const bytes = new Uint8Array(handle.stat.sizeBytes)
            let size = 0
            while (size < bytes.length) {
              const chunk = yield* readPinned(file, size, bytes.length - size)
              if (chunk.length === 0) break
              bytes.set(chunk, size)
              size += chunk.length
            }
            file.bytes = bytes
            file.size = size
            yield* unpin(file)
          })
        )

  const resize = (file: OpenFile, size: number): void => {
    // Check first: an allocation that cannot succeed would run the garbage collector several times.
    if (size > largestFile) throw new RangeError("the file is too large")
    const bytes = file.bytes!
    if (size > bytes.length) {
      const larger = new Uint8Array(Math.max(size, Math.min(2 * bytes.length, bytes.length + 0x400_0000), 4096))
      larger.set(bytes.subarray(0, file.size))
      file.bytes = larger
    } else if (size < file.size) {
      bytes.fill(0, size, file.size)
    }
    file.size = size
    file.isDirty = true
  }

  const replace: OpenFiles["replace"] = (path, bytes, mode) =>
    Effect.flatMap(Limits, ({ maxFileSize }) => {
      const options = { mode, createParents: false } as const
      return bytes.length <= maxFileSize
        ? Effect.asVoid(fs.writeBytes(path, bytes, options))
        : Effect.asVoid(Stream.run(Stream.make(bytes), fs.sink(path, options)))
    })

  const publishNow = (file: OpenFile): Effect.Effect<void, FsError> =>
    Effect.suspend(() => {
      if (!file.isDirty || !file.isAttached) return Effect.void
      file.isDirty = false
      return Effect.asVoid(
        Effect.onExit(replace(file.path, file.bytes!.slice(0, file.size), "overwrite"), (exit) =>
          Effect.sync(() => {
            if (Exit.isFailure(exit)) file.isDirty = true
          })
        )
      )
    })

  const publish: OpenFiles["publish"] = (file) => file.lock.withPermit(publishNow(file))

  const locked =
    <Args extends ReadonlyArray<unknown>, A>(run: (file: OpenFile, ...args: Args) => Effect.Effect<A, FsError>) =>
    (file: OpenFile, ...args: Args): Effect.Effect<A, FsError> =>
      file.lock.withPermit(Effect.suspend(() => run(file, ...args)))

  const appendInMemory = (file: OpenFile, bytes: Uint8Array): void => {
    const end = file.size
    resize(file, end + bytes.length)
    file.bytes!.set(bytes, end)
  }

  const append = (file: OpenFile, bytes: Uint8Array): Effect.Effect<void, FsError> => {
    if (file.bytes !== undefined) return Effect.sync(() => appendInMemory(file, bytes))
    if (!file.isAttached) return Effect.map(load(file), () => appendInMemory(file, bytes))
    const added = replace(file.path, bytes, "append")
    return Effect.andThen(
      Effect.map(added, () => {
        file.stat = { ...file.stat, sizeBytes: sizeOf(file) + bytes.length }
      }),
      unpin(file)
    )
  }

  const detach = (file: OpenFile): void => {
    file.isAttached = false
    files.delete(keyOf(file.path))
  }

  return {
    isQuiet: () => files.size === 0,
    at: (path) => files.get(keyOf(path)),
    open: (path, stat, { reads }) =>
      Effect.suspend(() => {
        const key = keyOf(path)
        const known = files.get(key)
        const file: OpenFile = known ?? {
          path,
          stat,
          isAttached: true,
          users: 0,
          bytes: undefined,
          size: 0,
          isDirty: false,
          pinned: undefined,
          lock: Semaphore.makeUnsafe(1)
        }
        file.users++
        if (known === undefined) files.set(key, file)
        const ready = reads && file.bytes === undefined ? Effect.asVoid(file.lock.withPermit(pin(file))) : Effect.void
        return Effect.as(
          Effect.onError(ready, () =>
            Effect.sync(() => {
              if (--file.users === 0 && files.get(keyOf(file.path)) === file) files.delete(keyOf(file.path))
            })
          ),
          file
        )
      }),
    close: (file) =>
      Effect.suspend(() => {
        if (--file.users > 0) return publish(file)
        return Effect.ensuring(
          publish(file),
          Effect.suspend(() => {
            // Another call may have opened the file during the publication.
            if (file.users > 0) return Effect.void
            if (files.get(keyOf(file.path)) === file) files.delete(keyOf(file.path))
            return unpin(file)
          })
        )
      }),
    read: locked((file, at: Place, length: number) => {
      const position = positionOf(at)
      const read =
        file.bytes === undefined
          ? readPinned(file, position, length)
          : Effect.succeed(file.bytes.slice(Math.min(position, file.size), Math.min(position + length, file.size)))
      return Effect.map(read, (bytes) => {
        moveTo(at, position + bytes.length)
        return bytes
      })
    }),
    write: locked((file, at: Place, bytes: Uint8Array) =>
      Effect.map(load(file), () => {
        const position = positionOf(at)
        resize(file, Math.max(file.size, position + bytes.length))
        file.bytes!.set(bytes, position)
        moveTo(at, position + bytes.length)
      })
    ),
    append: locked((file, bytes: Uint8Array, at: Place) => Effect.map(append(file, bytes), () => moveTo(at, sizeOf(file)))),
    truncate: locked((file, size: number) => {
      // Truncation to size 0 does not need the old content.
      if (size === 0 && file.bytes === undefined) {
        file.bytes = none
        file.size = 0
        file.isDirty = true
        return unpin(file)
      }
      return Effect.map(load(file), () => resize(file, size))
    }),
    sizeOf,
    publish,
    replace,
    settle: (path) =>
      Effect.suspend(() => {
        const used = within(path)
        if (used.length === 0) return Effect.succeed(false)
        const changed = used.some((file) => file.isDirty)
        // A file that is about to be removed must still be readable through its descriptors.
        const settleFile = locked((file: OpenFile) =>
          Effect.andThen(
            file.bytes === undefined ? Effect.asVoid(pin(file)) : publishNow(file),
            Effect.ignore(Effect.map(fs.stat(file.path), (stat) => void (file.stat = stat)))
          )
        )
        return Effect.as(Effect.forEach(used, settleFile, { discard: true }), changed)
      }),
    moved: (from, to) => {
      const moving = within(from)
      for (const file of within(to)) detach(file)
      for (const file of moving) {
        if (!file.isAttached) continue
        files.delete(keyOf(file.path))
        file.path = below(to, relative(from, file.path))
        files.set(keyOf(file.path), file)
      }
    },
    removed: (path) => {
      for (const file of within(path)) detach(file)
    }
  }
}
