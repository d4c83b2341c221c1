/**
 * Read-ahead for small files. The caller knows which files it reads and in which order, so a backend can read many in one call.
 */
import * as Effect from "effect/Effect"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend, Whole } from "../port/Backend.ts"

const together = 64

/** Wraps a port for a caller that reads these files in this order. A file that `readMany` declines is read alone. */
export const ahead = (port: Backend, files: ReadonlyArray<FsPath>): Backend => {
  const { read, readMany } = port.accelerations ?? {}
  if (readMany === undefined) return port
  const alone: NonNullable<typeof read> = read ?? (() => Effect.succeed(undefined))
  const places = new Map(files.map((path, index) => [path, index]))
  const wholes = new Map<FsPath, Whole>()
  const take = (path: FsPath): Whole | undefined => {
    const whole = wholes.get(path)
    wholes.delete(path)
    return whole
  }
  const fetch = (from: number, maxBytes: number) => {
    const paths = files.slice(from, from + together)
    return Effect.map(readMany(paths, maxBytes), (found) => {
      wholes.clear()
      for (const [index, whole] of found.entries()) if (whole !== undefined) wholes.set(paths[index]!, whole)
    })
  }
  let next = 0
  return {
    ...port,
    accelerations: {
      ...port.accelerations,
      read: (path, maxBytes) =>
        Effect.suspend(() => {
          const kept = take(path)
          if (kept !== undefined) return Effect.succeed(kept)
          const place = places.get(path)
          if (place === undefined || place < next) return alone(path, maxBytes)
          next = place + together
          return Effect.flatMap(fetch(place, maxBytes), () => {
            const whole = take(path)
            return whole === undefined ? alone(path, maxBytes) : Effect.succeed(whole)
          })
        })
    }
  }
}
