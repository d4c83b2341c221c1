/**
 * Read-ahead for small files. The caller knows which files it reads and in which order, so a backend can read many in one call.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { FsPath } from "../model/FsPath.ts"
import type { Backend, Whole } from "../port/Backend.ts"
import { extend, performing } from "../port/Request.ts"

const maxPrefetchedFiles = 64

/** Wraps a port for a caller that reads these files in this order. A file that `readMany` declines is read alone. */
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
