/**
 * Changes the attributes of an entry. S3 changes metadata only together with the content, so the object is stored again.
 *
 * The tag of an object depends only on its content. So a condition cannot detect that another program has changed the metadata,
 * and the object is read again after the change.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { type Fault, notFound } from "../../model/Fault.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { shortPause } from "../../port/optimisticClaims.ts"
import { sha256 } from "../../runtime/hash.ts"
import { isRoot, linkMode } from "../faults.ts"
import { defaultDirectoryMode, defaultFileMode, type EntryAttributes } from "./attributes.ts"
import { directoryKey } from "./keys.ts"
import {
  absent,
  type Condition,
  maxParts,
  noCondition,
  type ObjectHead,
  overtaken,
  type Part,
  tooManyParts
} from "./objects.ts"
import type { Settings } from "./port.ts"

interface Means {
  readonly settings: Settings
  readonly keyOf: (path: FsPath) => Effect.Effect<string | undefined, Fault>
  readonly headOf: (path: FsPath) => Effect.Effect<ObjectHead | undefined, Fault>
  readonly isDirectory: (path: FsPath) => Effect.Effect<boolean, Fault>
  readonly linkOf: (head: ObjectHead) => string | undefined
  readonly readWhole: (key: string, head: ObjectHead) => Effect.Effect<Uint8Array | undefined, Fault>
  readonly hashOf: (
    key: string,
    head: ObjectHead,
    bytes: Uint8Array
  ) => { readonly hash: string; readonly keep: (etag: string) => void }
}

/** The maximum number of repetitions of a change, because other programs have changed the entry. */
const maxRepeats = 8

const noBytes = new Uint8Array()
const emptyHash = sha256(noBytes)

export const makeSetAttributes = ({ hashOf, headOf, isDirectory, keyOf, linkOf, readWhole, settings }: Means) => {
  const { objects, prefix, sizes, support } = settings

  const matching = (head: ObjectHead | undefined): Condition =>
    !support.put ? noCondition : head === undefined ? absent : { _tag: "Match", etag: head.etag }

  /** Stores an object again in parts. Returns false if another program replaced it meanwhile. */
  const rewriteInParts = (key: string, head: ObjectHead, attributes: EntryAttributes): Effect.Effect<boolean, Fault> =>
    Effect.acquireUseRelease(
      objects.startUpload(key, { attributes, foreign: head.foreign }),
      (upload) =>
        Effect.gen(function* () {
          const parts: Array<Part> = []
          for (let at = 0; at < head.sizeBytes; at += sizes.part) {
            const length = Math.min(sizes.part, head.sizeBytes - at)
            const found = yield* objects.get(key, at, length, head.etag)
            if (found === undefined || found === "changed" || found.bytes.length !== length) return false
            parts.push(yield* objects.putPart(upload, parts.length + 1, found.bytes))
          }
          const condition = support.complete ? matching(head) : noCondition
          return (yield* objects.complete(upload, parts, condition, support.form))._tag === "Stored"
        }),
      (upload, exit) => (Exit.isSuccess(exit) && exit.value ? Effect.void : objects.abandon(upload))
    )

  return (path: FsPath, changes: EntryAttributes): Effect.Effect<void, Fault> => {
    const merge = ({ attributes }: Pick<ObjectHead, "attributes">): EntryAttributes => ({
      ...attributes,
      mode: changes.mode ?? attributes.mode,
      modifiedMillis: changes.modifiedMillis ?? attributes.modifiedMillis
    })
    const isAlready = ({ attributes }: ObjectHead, defaultMode: number): boolean =>
      (changes.mode === undefined || changes.mode === (attributes.mode ?? defaultMode)) &&
      (changes.modifiedMillis === undefined || changes.modifiedMillis === attributes.modifiedMillis)

    const changeFile = (key: string, file: ObjectHead): Effect.Effect<boolean, Fault> => {
      if (file.sizeBytes > maxParts * sizes.part) return Effect.fail(tooManyParts(sizes.part))
      if (file.sizeBytes > sizes.append) return rewriteInParts(key, file, merge(file))
      return Effect.flatMap(readWhole(key, file), (bytes) => {
        if (bytes === undefined) return Effect.succeed(false)
        const { hash, keep } = hashOf(key, file, bytes)
        const labels = { attributes: merge(file), foreign: file.foreign }
        return Effect.map(objects.put(key, bytes, hash, matching(file), support.form, labels), (stored) => {
          if (stored._tag === "Stored") keep(stored.etag)
          return stored._tag === "Stored"
        })
      })
    }

    const changeDirectory = (marker: ObjectHead | undefined): Effect.Effect<boolean, Fault> => {
      const directory = directoryKey(prefix, path)
      if (directory === "") return Effect.fail(isRoot)
      const labels = { attributes: merge(marker ?? { attributes: {} }), foreign: marker?.foreign ?? {} }
      return Effect.map(
        objects.put(directory, noBytes, emptyHash, matching(marker), support.form, labels),
        (stored) => stored._tag === "Stored"
      )
    }

    /** Changes the entry once. Returns "kept" if the entry already has the attributes. */
    const change = Effect.gen(function* () {
      const key = yield* keyOf(path)
      const file = yield* headOf(path)
      if (key !== undefined && file !== undefined) {
        if (linkOf(file) !== undefined && changes.mode !== undefined) return yield* Effect.fail(linkMode)
        if (isAlready(file, defaultFileMode)) return "kept"
        return (yield* changeFile(key, file)) ? "stored" : "overtaken"
      }
      if (!(yield* isDirectory(path))) return yield* Effect.fail(notFound)
      const directory = directoryKey(prefix, path)
      const marker = directory === "" ? undefined : yield* objects.head(directory)
      if (marker !== undefined && isAlready(marker, defaultDirectoryMode)) return "kept"
      return (yield* changeDirectory(marker)) ? "stored" : "overtaken"
    })

    const attempt = (left: number, wasStored: boolean): Effect.Effect<void, Fault> =>
      Effect.flatMap(change, (outcome) => {
        if (outcome === "kept") return Effect.void
        const isStored = wasStored || outcome === "stored"
        // If another program sets different values again and again, accept its values.
        if (left === 0) return isStored ? Effect.void : Effect.fail(overtaken)
        const next = attempt(left - 1, isStored)
        return outcome === "stored" ? next : Effect.andThen(shortPause, next)
      })
    return attempt(maxRepeats, false)
  }
}
