/** A file handle: a cursor over a content, with the rules of effect's `File`. After closing, every call fails. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import type { FileStat } from "../../model/Entry.ts"
import type { FsError } from "../../model/FsError.ts"
import { type Bridge, infoOf } from "./bridge.ts"
import { badArgument, systemError } from "./errors.ts"

export interface Content {
  readonly stat: Effect.Effect<FileStat, FsError>
  /** Reads bytes; returns no bytes at the end and beyond. Absent if the file is not open for reading. */
  readonly read?: (offset: number, length: number) => Effect.Effect<Uint8Array, FsError>
  readonly write?: (offset: number, bytes: Uint8Array) => Effect.Effect<void, FsError>
  readonly truncate?: (size: number) => Effect.Effect<void, FsError | PlatformError>
  readonly sync: Effect.Effect<void, FsError>
  /** True if writes go to the end, regardless of the cursor. */
  readonly isAppending: boolean
}

export const make = (bridge: Bridge, path: string, content: Content, isClosed: () => boolean): FileSystem.File => {
  let cursor = 0n

  const failSystemError = (method: string, why: string) => Effect.fail(systemError(method, path, "Unknown", why))
  const call = <A>(method: string, run: () => Effect.Effect<A, FsError | PlatformError>): Effect.Effect<A, PlatformError> =>
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
  ): Effect.Effect<Uint8Array, FsError | PlatformError> => {
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

  const writeAtCursor = (method: string, bytes: Uint8Array): Effect.Effect<number, FsError | PlatformError> => {
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
