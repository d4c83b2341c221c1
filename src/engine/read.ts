import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FileStat } from "../model/Entry.ts"
import { notAFile, limitExceeded } from "../model/Fault.ts"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend, Handle, Whole } from "../port/Backend.ts"
import { performing } from "../port/Request.ts"
import * as Eager from "./eager.ts"
import { withResolvedPath } from "./resolve.ts"
import * as Version from "./version.ts"

export const open = (port: Backend, path: FsPath): Effect.Effect<Handle, Fault, Scope.Scope> =>
  withResolvedPath(port, path, (at) =>
    Effect.flatMap(port.open(at), (handle) => (handle.stat.kind === "file" ? Effect.succeed(handle) : Effect.fail(notAFile)))
  )

export const range = (handle: Handle, offset: number, length: number): Effect.Effect<Uint8Array, Fault> =>
  length === 0
    ? Effect.sync(() => new Uint8Array(0))
    : Effect.flatMap(handle.read(offset, length), (first) =>
        first.length === length || first.length === 0 ? Effect.succeed(first) : readRest(handle, offset, length, first)
      )

const readRest = Effect.fnUntraced(function* (
  handle: Handle,
  offset: number,
  length: number,
  first: Uint8Array
): Effect.fn.Return<Uint8Array, Fault> {
  const out = new Uint8Array(length)
  out.set(first)
  let bytesRead = first.length
  while (bytesRead < length) {
    const chunk = yield* handle.read(offset + bytesRead, length - bytesRead)
    if (chunk.length === 0) return out.slice(0, bytesRead)
    out.set(chunk, bytesRead)
    bytesRead += chunk.length
  }
  return out
})

const wholeOf = (handle: Handle, maxBytes: number): Effect.Effect<Whole, Fault> =>
  handle.stat.sizeBytes > maxBytes
    ? Effect.fail(limitExceeded("maxReadBytes", maxBytes, handle.stat.sizeBytes))
    : Effect.map(range(handle, 0, handle.stat.sizeBytes), (bytes) => ({
        stat: handle.stat,
        bytes,
        ...(handle.version && bytes.length === handle.stat.sizeBytes ? { version: handle.version } : {})
      }))

const readByHandle = (port: Backend, at: FsPath, maxBytes: number): Effect.Effect<Whole, Fault> =>
  Effect.scoped(Effect.flatMap(port.open(at), (handle) => wholeOf(handle, maxBytes)))

/**
 * Returns the stat of a path in the fastest way that the backend offers. Some backends read synchronously in this call.
 * Returns `undefined` for a missing path.
 */
export const statAt = (port: Backend, path: FsPath): Effect.Effect<FileStat | undefined, Fault> => {
  const perform = performing(port, "Stat")
  return perform === undefined ? port.stat(path) : Eager.answered(perform({ _tag: "Stat", path }), () => port.stat(path))
}

/**
 * Reads a whole file without following a symlink. Fails with LimitExceeded above `maxBytes`.
 *
 * Some backends read synchronously in this call, before the returned effect runs. So call this function only at the
 * moment of the read.
 */
export const wholeAt = (port: Backend, at: FsPath, maxBytes: number): Effect.Effect<Whole, Fault> => {
  const perform = performing(port, "Read")
  return perform === undefined
    ? readByHandle(port, at, maxBytes)
    : Eager.answered(perform({ _tag: "Read", path: at, maxBytes }), () => readByHandle(port, at, maxBytes))
}

export const whole = (port: Backend, path: FsPath, maxBytes: number): Effect.Effect<Whole, Fault> =>
  withResolvedPath(port, path, (at) => wholeAt(port, at, maxBytes))

export const versionOf = (whole: Whole): Effect.Effect<string, Fault> => whole.version ?? Version.computeVersion(whole.bytes)

export interface Window {
  readonly bytes: Uint8Array
  readonly offset: number
  readonly sizeBytes: number
  readonly version?: string
}

export const window = (
  port: Backend,
  path: FsPath,
  offset: number,
  limit: number,
  maxBytes: number,
  version: boolean
): Effect.Effect<Window, Fault> =>
  Effect.scoped(
    Effect.flatMap(open(port, path), (handle) => {
      const size = handle.stat.sizeBytes
      const start = Math.min(offset, size)
      const length = Math.min(limit, size - start)
      if (length > maxBytes) return Effect.fail(limitExceeded("maxReadBytes", maxBytes, length))
      const bytes = range(handle, start, length)
      const found = Effect.map(bytes, (content): Window => ({ bytes: content, offset: start, sizeBytes: size }))
      if (!version) return found
      return length === size
        ? Effect.flatMap(found, (window) =>
            Effect.map(Version.computeVersion(window.bytes), (version): Window => ({ ...window, version }))
          )
        : Effect.flatMap(found, (window) => Effect.map(Version.ofHandle(handle), (version): Window => ({ ...window, version })))
    })
  )

const blockSize = 512 * 1024

/**
 * Streams `chunk` bytes at a time. One read covers several small chunks, because a read costs more than a slice of an array.
 */
export const chunks = (handle: Handle, start: number, end: number, chunk: number): Stream.Stream<Uint8Array, Fault> => {
  const block = chunk >= blockSize ? chunk : Math.floor(blockSize / chunk) * chunk
  return Stream.fromPull(
    Effect.sync(() => {
      let offset = Math.min(start, handle.stat.sizeBytes)
      const stop = Math.min(end, handle.stat.sizeBytes)
      return Effect.suspend(() =>
        offset >= stop
          ? Cause.done()
          : Effect.flatMap(range(handle, offset, Math.min(block, stop - offset)), (bytes) => {
              if (bytes.length === 0) return Cause.done()
              offset += bytes.length
              const out: [Uint8Array, ...Array<Uint8Array>] = [bytes.subarray(0, chunk)]
              for (let at = chunk; at < bytes.length; at += chunk) out.push(bytes.subarray(at, at + chunk))
              return Effect.succeed(out)
            })
      )
    })
  )
}

export const stream = (
  port: Backend,
  path: FsPath,
  offset: number,
  length: number,
  chunk: number
): Stream.Stream<Uint8Array, Fault> =>
  Stream.unwrap(Effect.map(open(port, path), (handle) => chunks(handle, offset, offset + length, chunk)))
