/** Reads files ahead of their reader. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { Fault } from "../model/FsError.ts"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend, Handle, Whole } from "./Backend.ts"
import { extend, performing } from "./Request.ts"

/** The smallest read, in bytes, that starts the read-ahead. */
const minBlockBytes = 64 * 1024

interface Block {
  readonly offset: number
  readonly length: number
  readonly fiber: Fiber.Fiber<Uint8Array, Fault>
}

/**
 * Returns a handle that reads up to `maxBytes` beyond the end of each read, while reads of one size follow each other.
 *
 * Nothing is read ahead of the first read. The number of blocks doubles with each further read. A block is requested only
 * during a call of `read`, so at most `maxBytes` wait for a slow reader. A failed block fails the read that asks for it. The
 * scope interrupts the requests.
 */
export const readAhead = (handle: Handle, maxBytes: number): Effect.Effect<Handle, never, Scope.Scope> => {
  const { sizeBytes } = handle.stat
  const running = new Set<Fiber.Fiber<unknown, unknown>>()
  /** The blocks after the last read, in order and without gaps. */
  let ahead: Array<Block> = []
  let next: number | undefined
  let count = 1

  const interrupt = (fibers: Iterable<Fiber.Fiber<unknown, unknown>>) => Effect.suspend(() => Fiber.interruptAll(fibers))

  /** Forgets all blocks. Returns an effect that interrupts their requests. */
  const drop = (): Effect.Effect<void> => {
    const dropped = ahead
    ahead = []
    next = undefined
    count = 1
    return dropped.length === 0 ? Effect.void : interrupt(dropped.map(({ fiber }) => fiber))
  }

  /**
   * Requests the blocks that are not requested yet, and waits for the first of them. All state changes are synchronous, so
   * several fibers may use one handle.
   */
  const readNext = (
    offset: number,
    length: number,
    reader: Fiber.Fiber<unknown, unknown>
  ): Effect.Effect<Uint8Array, Fault> => {
    const begin = (at: number): void => {
      const size = Math.min(length, sizeBytes - at)
      const fiber = Effect.runForkWith(reader.context)(handle.read(at, size))
      running.add(fiber)
      fiber.addObserver(() => running.delete(fiber))
      ahead.push({ offset: at, length: size, fiber })
    }
    for (let at = offset + ahead.length * length; ahead.length < count && at < sizeBytes; at += length) begin(at)
    const { fiber } = ahead.shift()!
    return Effect.onError(Fiber.join(fiber), () => Effect.andThen(interrupt([fiber]), Effect.suspend(drop)))
  }

  const read: Handle["read"] = (offset, length) =>
    Effect.withFiber((reader) => {
      const [first] = ahead
      const isNext = first === undefined ? offset === next : first.offset === offset && first.length === length
      const dropped = isNext ? Effect.void : drop()
      count = Math.min(2 * count, Math.floor(maxBytes / length))
      if (isNext && count > 1 && (first !== undefined || length >= minBlockBytes) && offset < sizeBytes) {
        next = offset + length
        return readNext(offset, length, reader)
      }
      count = 1
      next = offset + length
      return Effect.andThen(dropped, handle.read(offset, length))
    })

  return Effect.as(
    Effect.addFinalizer(() => interrupt(running)),
    { ...handle, read }
  )
}

// Small files are read ahead. The scan knows the files in reading order, so a backend can read many files in one call.

const maxPrefetchedFiles = 64

/** Wraps a port for a caller that reads `files` in the given order. A file that a batch does not contain is read separately. */
export const withReadAhead = (port: Backend, files: ReadonlyArray<FsPath>): Backend => {
  const perform = performing(port, "ReadMany")
  if (perform === undefined) return port
  const indexByPath = new Map(files.map((path, index) => [path, index]))
  const prefetched = new Map<FsPath, Whole>()
  const take = (path: FsPath): Whole | undefined => {
    const whole = prefetched.get(path)
    prefetched.delete(path)
    return whole
  }
  const fetch = (from: number, maxBytes: number) => {
    const paths = files.slice(from, from + maxPrefetchedFiles)
    return Effect.map(perform({ _tag: "ReadMany", paths, maxBytes }), (found) => {
      prefetched.clear()
      for (const [index, whole] of Option.getOrElse(found, () => []).entries()) {
        if (whole !== undefined) prefetched.set(paths[index]!, whole)
      }
    })
  }
  let firstUncovered = 0
  return {
    ...port,
    perform: extend(perform, {
      Read: (request) =>
        Effect.suspend(() => {
          const { maxBytes, path } = request
          const kept = take(path)
          if (kept !== undefined) return Effect.succeedSome(kept)
          const place = indexByPath.get(path)
          if (place === undefined || place < firstUncovered) return perform(request)
          firstUncovered = place + maxPrefetchedFiles
          return Effect.flatMap(fetch(place, maxBytes), () => {
            const whole = take(path)
            return whole === undefined ? perform(request) : Effect.succeedSome(whole)
          })
        })
    })
  }
}
