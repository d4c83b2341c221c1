/**
 * Deletes a directory with everything in it, up to 1,000 objects in one request.
 *
 * The objects are listed without a delimiter, in one pass. Each page is deleted while the next pages are listed.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { DeleteResult } from "../../model/Entry.ts"
import { directoryNotEmpty, type Fault, notADirectory, notFound } from "../../model/Fault.ts"
import { located } from "../../model/FsError.ts"
import { type FsPath, parse } from "../../model/FsPath.ts"
import { isOwnName } from "../../runtime/temporaryNames.ts"
import { directoryKey, isUnreachable } from "./keys.ts"
import { type Failed, isBatchable, malformed, noCondition, type ObjectHead } from "./objects.ts"
import type { Settings } from "./port.ts"

/** The number of batches that are deleted at the same time. */
const concurrentBatches = 4

/** The number of objects that are deleted at the same time, each by a request of its own. */
const concurrentObjects = 16

interface Means {
  readonly settings: Settings
  readonly headOf: (path: FsPath) => Effect.Effect<ObjectHead | undefined, Fault>
  readonly keepParent: (path: FsPath) => Effect.Effect<void, Fault>
  readonly unreachable: Fault
}

/** Counts a directory and the entries below, by the keys of their objects in the order of a listing. */
const makeCounter = (directory: string) => {
  let previous: ReadonlyArray<string> = []
  const result = { deleted: 0, directories: 1 }
  return {
    result: (): DeleteResult => ({ ...result }),
    add: (key: string): void => {
      const segments = key.slice(directory.length).split("/")
      const name = segments.pop()!
      const shared = segments.findIndex((segment, index) => segment !== previous[index])
      const hidden = segments.findIndex(isOwnName)
      const visible = hidden === -1 ? segments.length : hidden
      if (shared !== -1) result.directories += Math.max(0, visible - shared)
      if (name !== "" && hidden === -1 && !isOwnName(name)) result.deleted++
      previous = segments
    }
  }
}

export const makeRemoveTree = ({ headOf, keepParent, settings, unreachable }: Means) => {
  const { objects, prefix, sizes, support } = settings

  /** Adds the path of an object to a fault, if its key is the key of a path. */
  const at = (key: string, fault: Fault): Fault => {
    const path = key.slice(prefix.length).replace(/\/$/, "")
    return key.startsWith(prefix) && parse(path) === path ? located(fault, path) : fault
  }

  const removeOne = (key: string): Effect.Effect<void, Fault> =>
    isUnreachable(key)
      ? Effect.fail(unreachable)
      : Effect.mapError(Effect.asVoid(objects.remove(key, noCondition, support.form)), (fault) => at(key, fault))

  const removeEach = (keys: ReadonlyArray<string>): Effect.Effect<void, Fault> =>
    Effect.forEach(keys, removeOne, { concurrency: concurrentObjects, discard: true })

  return (path: FsPath): Effect.Effect<DeleteResult, Fault> =>
    Effect.gen(function* () {
      const directory = directoryKey(prefix, path)
      /** False after the store has refused a batch. */
      let takesBatches = true

      /** Deletes the objects in one request. Repeats the request for objects that the store has temporarily refused. */
      const removeBatch = (keys: ReadonlyArray<string>, done = 0): Effect.Effect<void, Fault> => {
        if (!takesBatches || (keys.length === 1 && !isUnreachable(keys[0]!))) return removeEach(keys)
        return Effect.flatMap(objects.removeMany(keys), (failed): Effect.Effect<void, Fault> => {
          if (failed === undefined) {
            takesBatches = false
            return removeEach(keys)
          }
          const isLast = done + 1 >= objects.timings.attempts
          const final = failed.find(({ isTransient }) => isLast || !isTransient)
          if (final !== undefined) return Effect.fail(at(final.key ?? directory, final.fault))
          if (failed.length === 0) return Effect.void
          return Effect.andThen(objects.timings.pause(done + 1), removeBatch(remaining(keys, failed), done + 1))
        })
      }

      const removePage = (keys: ReadonlyArray<string>): Effect.Effect<void, Fault> => {
        const batch = keys.filter(isBatchable)
        // A store may list more objects than the limit.
        const batches = Array.from({ length: Math.ceil(batch.length / sizes.batch) }, (_, nth) =>
          removeBatch(batch.slice(nth * sizes.batch, (nth + 1) * sizes.batch))
        )
        return Effect.all([...batches, removeEach(keys.filter((key) => !isBatchable(key)))], { discard: true })
      }

      /** Lists the keys below the directory, page by page. */
      const pages = Stream.paginate(undefined as string | undefined, (after) =>
        Effect.flatMap(objects.list({ prefix: directory, limit: sizes.batch, after }), ({ next, objects }) => {
          const keys = objects.map(({ key }) => key)
          // Never delete objects of another directory, which a faulty store may list.
          return keys.every((key) => key.startsWith(directory))
            ? Effect.succeed([[keys], Option.fromUndefinedOr(next)] as const)
            : Effect.fail(malformed)
        })
      )

      const counter = makeCounter(directory)
      let isPresent = false
      const removeAll = (keys: typeof pages, remove: (keys: ReadonlyArray<string>) => Effect.Effect<void, Fault>) =>
        Stream.runDrain(Stream.mapEffect(keys, remove, { concurrency: concurrentBatches, unordered: true }))

      if ((yield* headOf(path)) !== undefined) return yield* Effect.fail(notADirectory)
      const counted = Stream.tap(pages, (keys) =>
        Effect.suspend(() => {
          const isFirst = !isPresent && keys.length > 0
          isPresent ||= isFirst
          for (const key of keys) counter.add(key)
          return isFirst ? keepParent(path) : Effect.void
        })
      )
      yield* removeAll(counted, removePage)
      if (!isPresent) return yield* Effect.fail(notFound)
      const isLeft = Effect.map(objects.list({ prefix: directory, limit: 1 }), (page) => page.objects.length > 0)
      // A store may have read a key of a batch as a different key.
      if (yield* isLeft) yield* removeAll(pages, removeEach)
      if (yield* isLeft) return yield* Effect.fail(directoryNotEmpty)
      return counter.result()
    })
}

/** Returns the objects that a batch has not deleted, or all objects if the store has not named each of them. */
const remaining = (keys: ReadonlyArray<string>, failed: ReadonlyArray<Failed>): ReadonlyArray<string> => {
  const named = new Set(failed.map(({ key }) => key))
  const left = keys.filter((key) => named.has(key))
  return left.length === named.size ? left : keys
}
