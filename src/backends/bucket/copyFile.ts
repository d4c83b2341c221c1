/**
 * Copies files within the store, so that their bytes do not pass through this program.
 *
 * A store may ignore the conditions of copies. A test before the first copy shows which conditions it obeys. The store copies a
 * file only if the copy gives the same guarantees as a write of the content. Otherwise the request is declined.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, ioError } from "../../model/Fault.ts"
import { located } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Handlers } from "../../port/Request.ts"
import { sha256 } from "../../runtime/hash.ts"
import { randomUUID } from "../../runtime/node.ts"
import { runCommit } from "../writing.ts"
import type { EntryAttributes } from "./attributes.ts"
import {
  absent,
  type Condition,
  isSameTag,
  maxParts,
  noCondition,
  type ObjectHead,
  type Source,
  type Stored
} from "./objects.ts"
import { otherTag } from "./probe.ts"
import type { Settings } from "./port.ts"

/** The copies that a store supports. */
interface Copies {
  /** True if the store copies whole objects. */
  readonly whole: boolean
  /** True if the store obeys conditions on the target of a copy. */
  readonly isConditional: boolean
  /** True if the store copies ranges of an object, and only of the object with the given tag. */
  readonly ranges: boolean
}

/** The number of ranges that are copied at the same time. */
const concurrentParts = 4

const modeChanged: Fault = ioError("the permission bits of the target changed while it was copied; copy it again", "EAGAIN")
const changed: Fault = ioError("the object changed while it was copied; copy it again", "ESTALE")

/** Tests which copies the store supports, with objects of its own. */
const probe = ({
  objects,
  prefix,
  support
}: Pick<Settings, "objects" | "prefix" | "support">): Effect.Effect<Copies, Fault> => {
  const key = `${prefix}.fs-algebra-probe-${randomUUID()}`
  const copyKey = `${key}-copy`
  const bytes = new TextEncoder().encode("copied")
  const { form } = support
  const refuses = (from: Source, condition: Condition) =>
    Effect.map(objects.copy(from, copyKey, condition, form, {}), ({ _tag }) => _tag === "Refused")
  const orFalse = (self: Effect.Effect<boolean, Fault>) => Effect.catchIf(self, isRefusal, () => Effect.succeed(false))
  const run = Effect.gen(function* () {
    const stored = yield* objects.put(key, bytes, sha256(bytes), noCondition, form)
    const from = { key, etag: stored._tag === "Stored" ? stored.etag : "", sizeBytes: bytes.length }
    const whole = yield* orFalse(Effect.map(refuses(from, noCondition), (isRefused) => !isRefused))
    // The target exists now, and its tag is not `otherTag`.
    const isConditional = whole && (yield* orFalse(refuses(from, absent))) && (yield* orFalse(refuses(from, otherTag)))
    const ranges = yield* orFalse(
      Effect.acquireUseRelease(
        objects.startUpload(copyKey),
        (upload) =>
          Effect.gen(function* () {
            const other = yield* objects.copyPart(upload, 1, { ...from, etag: otherTag.etag })
            return other === undefined && (yield* objects.copyPart(upload, 1, from)) !== undefined
          }),
        (upload) => Effect.ignore(objects.abort(upload))
      )
    )
    return { whole, isConditional, ranges }
  })
  const remove = (key: string) => Effect.ignore(Effect.timeoutOption(objects.remove(key, noCondition, form), "10 seconds"))
  return Effect.ensuring(run, Effect.andThen(remove(key), remove(copyKey)))
}

/** Tests whether the store refused this kind of request, so that a write of the content may still succeed. */
const isRefusal = (fault: Fault): boolean =>
  (fault._tag === "AccessDenied" && fault["why"] === "permission") ||
  (fault._tag === "IoError" && (fault["code"] === "ENOTSUP" || String(fault["code"]).startsWith("HTTP4")))

type Publish = (
  path: FsPath,
  mode: "create" | "replace",
  obeysConditions: boolean,
  store: (key: string, present: ObjectHead | undefined, condition: Condition) => Effect.Effect<FileStat | undefined, Fault>
) => Effect.Effect<FileStat, Fault>

interface Means {
  readonly settings: Settings
  readonly keyOf: (path: FsPath) => Effect.Effect<string | undefined, Fault>
  readonly publish: Publish
  readonly attributesAfter: (present: ObjectHead | undefined) => Effect.Effect<EntryAttributes>
  readonly statStored: (path: FsPath, key: string, etag: string, sizeBytes: number) => Effect.Effect<FileStat, Fault>
  readonly keepVersion: (from: Source, key: string, etag: string) => void
}

export const makeCopyFile = ({
  attributesAfter,
  keepVersion,
  keyOf,
  publish,
  settings,
  statStored
}: Means): NonNullable<Handlers["CopyFile"]> => {
  const { objects, sizes, support } = settings
  let known: Copies | undefined
  const copies = Effect.suspend(() =>
    known === undefined ? Effect.tap(probe(settings), (found) => Effect.sync(() => (known = found))) : Effect.succeed(known)
  )

  /**
   * Returns how the store can copy an object of this size with the same guarantees as a write. Returns `undefined` if this
   * program must copy the bytes.
   */
  const wayOf = (sizeBytes: number, { isConditional, ranges, whole }: Copies): "whole" | "ranges" | undefined => {
    const isStream = sizeBytes > sizes.part
    const mayCopyWhole = whole && sizeBytes <= sizes.copy && (isConditional || !support.put || (isStream && !support.complete))
    if (!mayCopyWhole) return ranges && isStream ? "ranges" : undefined
    // An interrupted copy in ranges ends at once. The store may still finish the copy of a whole object.
    const isWeaker = isConditional && !support.complete
    return sizeBytes > sizes.quickCopy && ranges && isStream && !isWeaker ? "ranges" : "whole"
  }

  type Copied = NonNullable<Parameters<NonNullable<Handlers["CopyFile"]>>[0]>

  const finish = (from: Source, to: FsPath, key: string, path: FsPath, stored: Stored) =>
    Effect.gen(function* () {
      if (stored._tag === "Refused") {
        const now = yield* objects.head(from.key)
        // If the source is unchanged, the condition on the target failed.
        return now !== undefined && isSameTag(now.etag, from.etag) ? undefined : yield* Effect.fail(located(changed, path))
      }
      // Some stores ignore the condition on the source, and may have copied an object that replaced it.
      if (isSameTag(stored.etag, from.etag)) keepVersion(from, key, stored.etag)
      return yield* statStored(to, key, stored.etag, from.sizeBytes)
    })

  const labelsOf = ({ keepsMode }: Copied, from: ObjectHead, present: ObjectHead | undefined) =>
    Effect.map(attributesAfter(present), (attributes) => ({
      attributes: keepsMode && settings.metadata ? { ...attributes, mode: from.attributes.mode } : attributes,
      foreign: from.foreign
    }))

  const copyWhole = (request: Copied, from: ObjectHead & Source, isConditional: boolean): Effect.Effect<FileStat, Fault> => {
    const { mode, path, to } = request
    return runCommit(
      request.how?.commit,
      publish(to, mode, support.put && isConditional, (key, present, condition) =>
        Effect.gen(function* () {
          const labels = yield* labelsOf(request, from, present)
          return yield* finish(from, to, key, path, yield* objects.copy(from, key, condition, support.form, labels))
        })
      )
    )
  }

  /** Copies ranges as the parts of an upload. The upload replaces the target when it is completed. */
  const copyRanges = (request: Copied, from: ObjectHead & Source, toKey: string): Effect.Effect<FileStat, Fault> => {
    const { mode, path, to } = request
    return Effect.gen(function* () {
      const before = settings.metadata && mode === "replace" ? yield* objects.head(toKey) : undefined
      const labels = yield* labelsOf(request, from, before)
      const length = Math.max(Math.min(sizes.copy, sizes.quickCopy), Math.ceil(from.sizeBytes / maxParts))
      const offsets = Array.from({ length: Math.ceil(from.sizeBytes / length) }, (_, nth) => nth * length)
      return yield* Effect.acquireUseRelease(
        objects.startUpload(toKey, labels),
        (upload) =>
          Effect.gen(function* () {
            const parts = yield* Effect.forEach(
              offsets,
              (offset, nth) =>
                Effect.flatMap(
                  objects.copyPart(upload, nth + 1, from, { offset, length: Math.min(length, from.sizeBytes - offset) }),
                  (part) => (part === undefined ? Effect.fail(located(changed, path)) : Effect.succeed(part))
                ),
              { concurrency: concurrentParts }
            )
            const completed = publish(to, mode, support.complete, (key, present, condition) =>
              // The metadata of an object is fixed when its upload starts.
              settings.metadata && present?.attributes.mode !== before?.attributes.mode
                ? Effect.fail(modeChanged)
                : Effect.flatMap(objects.complete(upload, parts, condition, support.form), (stored) =>
                    finish(from, to, key, path, stored)
                  )
            )
            return yield* runCommit(request.how?.commit, completed)
          }),
        (upload, exit) => (Exit.isSuccess(exit) ? Effect.void : objects.abandon(upload))
      )
    })
  }

  /** Tests whether the metadata of other programs is ASCII, so that it can be sent back unchanged. */
  const isPlain = ({ foreign }: ObjectHead): boolean => Object.values(foreign).every((value) => /^[\x20-\x7e]*$/.test(value))

  return (request) =>
    Effect.gen(function* () {
      const { path, to } = request
      const source = Effect.flatMap(keyOf(path), (key) =>
        key === undefined ? Effect.succeed(undefined) : Effect.map(objects.head(key), (head) => head && { ...head, key })
      )
      const from = yield* Effect.mapError(source, (fault) => located(fault, path))
      // A small file is copied faster through this program, and the engine reports missing files.
      if (from === undefined || from.sizeBytes <= sizes.firstRead || !isPlain(from)) return Option.none()
      const toKey = yield* keyOf(to)
      const found = yield* copies
      const way = wayOf(from.sizeBytes, found)
      if (way === undefined || toKey === undefined) return Option.none()
      return Option.some(
        yield* way === "whole" ? copyWhole(request, from, found.isConditional) : copyRanges(request, from, toKey)
      )
    }).pipe(Effect.catchIf(isRefusal, () => Effect.succeed(Option.none())))
}
