/**
 * Stores the data that a change removes, so that an undo can restore the data. Small contents are stored in the entry, and
 * large contents in the content store. A content that cannot be read is omitted, and the change is still made.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/realms.ts"
import * as Eager from "../../engine/eager.ts"
import * as Read from "../../engine/read.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Backend, type Handle, keyOf } from "../../port/Backend.ts"
import { declined, performing } from "../../port/Request.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { ContentStore } from "../model.ts"
import { JournalError } from "../errors.ts"
import type { Content, Removed } from "../FileSystemEntry.ts"
import { keepBytes, maxInlineBytes } from "../store/entryCopies.ts"
import type { RecentContents } from "./recentContents.ts"

const chunkSize = 65_536

/** The previous content of a file. `null` if there was no file, and `undefined` if the content is unknown. */
export type Previous = Content | null | undefined

/** Stores the content of an open file. Reads no bytes if the backend knows the hash and the store already has the content. */
const storeContent = (contents: ContentStore, handle: Handle): Effect.Effect<Content, Fault | JournalError> => {
  const put = contents.putStream(Read.chunks(handle, 0, Number.POSITIVE_INFINITY, chunkSize))
  if (handle.version === undefined) return put
  return Effect.flatMap(handle.version, (sha256) => {
    const ref = { sha256, size: handle.stat.sizeBytes }
    return Effect.flatMap(contents.has(ref), (isThere): Effect.Effect<Content, Fault | JournalError> =>
      isThere ? Effect.succeed(ref) : put
    )
  })
}

const put = (port: Backend, contents: ContentStore, path: FsPath.FsPath): Effect.Effect<Content, Fault | JournalError> =>
  Effect.scoped(
    Effect.flatMap(port.open(path), (handle): Effect.Effect<Content, Fault | JournalError> =>
      handle.stat.sizeBytes <= maxInlineBytes
        ? Effect.map(Read.range(handle, 0, handle.stat.sizeBytes), keepBytes)
        : storeContent(contents, handle)
    )
  )

const undefinedForFault = (error: Fault | JournalError): Effect.Effect<undefined, JournalError> =>
  error instanceof JournalError ? Effect.fail(error) : Effect.succeed(undefined)

const contentAt = (
  port: Backend,
  contents: ContentStore,
  path: FsPath.FsPath,
  size: number
): Effect.Effect<Content | undefined, JournalError> => {
  const perform = size <= maxInlineBytes ? performing(port, "Read") : undefined
  const found =
    perform === undefined
      ? put(port, contents, path)
      : Eager.flatMap(perform({ _tag: "Read", path, maxBytes: maxInlineBytes }), (whole) =>
          Option.isNone(whole) ? put(port, contents, path) : Effect.succeed<Content>(keepBytes(whole.value.bytes))
        )
  return Eager.catch(found, undefinedForFault)
}

const noFile = Effect.succeed(null)
const unknownContent = Effect.succeed(undefined)
const nullIfNotFound = ({ _tag }: Fault): typeof noFile | typeof declined => (_tag === "NotFound" ? noFile : declined)

const previousByStat = (port: Backend, contents: ContentStore, path: FsPath.FsPath): Effect.Effect<Previous, JournalError> =>
  Eager.flatMap(
    Eager.catch(Read.statAt(port, path), () => Effect.succeed<"unknown">("unknown")),
    (stat): Effect.Effect<Previous, JournalError> =>
      stat === undefined
        ? noFile
        : stat === "unknown" || stat.kind !== "file"
          ? unknownContent
          : contentAt(port, contents, path, stat.sizeBytes)
  )

/** Returns the content that a write to this path replaces. No other code may change the returned bytes. */
export const previousContent = (
  port: Backend,
  contents: ContentStore,
  recent: RecentContents,
  path: FsPath.FsPath
): Effect.Effect<Previous, JournalError> => {
  const perform = performing(port, "Read")
  if (perform === undefined) return previousByStat(port, contents, path)
  const found = Eager.catch(perform({ _tag: "Read", path, maxBytes: maxInlineBytes }), nullIfNotFound)
  return Eager.flatMap(found, (whole) =>
    whole === null
      ? noFile
      : Option.isNone(whole)
        ? previousByStat(port, contents, path)
        : Effect.succeed(recent.keep(path, whole.value.bytes))
  )
}

const permissions = ({ mode }: FileStat): { readonly mode?: number } => (mode === undefined ? {} : { mode })

const maxInlineRemovedBytes = 256

const storeIfLarge = (contents: ContentStore, content: Content | undefined): Effect.Effect<Content | undefined, JournalError> =>
  isBytes(content) && content.length > maxInlineRemovedBytes ? contents.put(content) : Effect.succeed(content)

/** Returns the record of one removed entry. The record of a directory does not include the directory's entries. */
export const removedEntry = (
  port: Backend,
  contents: ContentStore,
  path: FsPath.FsPath,
  stat: FileStat
): Effect.Effect<Removed, JournalError> => {
  const { kind } = stat
  if (kind === "file") {
    return Effect.map(contentAt(port, contents, path, stat.sizeBytes), (content) => ({
      path,
      kind,
      ...permissions(stat),
      ...(content === undefined ? {} : { content })
    }))
  }
  if (kind === "symlink" && port.links !== undefined) {
    return Effect.match(port.links.read(path), {
      onSuccess: (target) => ({ path, kind, target }),
      onFailure: () => ({ path, kind })
    })
  }
  return Effect.succeed({ path, kind, ...permissions(stat) })
}

/**
 * Returns the records of a whole tree without temporary files. Parents come first, and siblings are sorted by name. Contents
 * of more than 256 bytes are stored in `contents`. Fails if the tree cannot be listed.
 */
export const removedTree = Effect.fnUntraced(function* (
  port: Backend,
  contents: ContentStore,
  top: FsPath.FsPath
): Effect.fn.Return<ReadonlyArray<Removed>, Fault | JournalError> {
  const out: Array<Removed> = []
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const stat = yield* Read.statAt(port, path)
    if (stat === undefined) continue
    const removed = yield* removedEntry(port, contents, path, stat)
    const content = yield* storeIfLarge(contents, removed.content)
    out.push(content === undefined ? removed : { ...removed, content })
    if (stat.kind !== "directory") continue
    const keys = (yield* port.list(path)).filter(({ name }) => !TemporaryNames.isInProgress(name)).map(keyOf)
    for (const key of keys.sort(FsPath.compare).reverse()) pending.push(FsPath.join(path, key))
  }
  return out
})

export const hasExactBytes = (port: Backend, path: FsPath.FsPath, bytes: Uint8Array): Effect.Effect<boolean, Fault> =>
  Effect.scoped(
    Effect.flatMap(port.open(path), (handle) => {
      if (handle.stat.sizeBytes !== bytes.length) return Effect.succeed(false)
      let at = 0
      let isEqual = true
      return Effect.map(
        Stream.runForEach(Read.chunks(handle, 0, bytes.length, chunkSize), (chunk) =>
          Effect.sync(() => {
            for (let i = 0; i < chunk.length && isEqual; i++) isEqual = chunk[i] === bytes[at + i]
            at += chunk.length
          })
        ),
        () => isEqual && at === bytes.length
      )
    })
  )
