import { is as isFault } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Matcher from "../../engine/matcher.ts"
import * as Read from "../../engine/read.ts"
import { withResolvedPath } from "../../engine/resolve.ts"
import * as Call from "../../filesystem/operations/call.ts"
import type { FileEntry, FileStat as Stat, Kind } from "../../model/Entry.ts"
import { type Fault, type FsError, type ReadBytesError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { follow, type Handle } from "../../port/Backend.ts"
import { performing } from "../../port/Request.ts"
import { relativeTarget } from "../../port/absoluteLinks.ts"
import {
  FileContent,
  FileContentChunk,
  FileListing,
  FileMetadata,
  type FileList,
  type FileRead,
  type FileStat,
  type Terminal
} from "../FileSystemEntry.ts"
import { maxTargetUnits, type Metadata, metadataOf } from "../entries/values.ts"
import { make } from "../entries/kinds.ts"
import { errorOf, type LeafContext, retryWhileBusy, type Work } from "./model.ts"

const contentOf = (
  self: LeafContext,
  intent: FileRead,
  path: FsPath.FsPath,
  stat: Stat,
  content: Uint8Array,
  isPartial: boolean
) =>
  make(FileContent, {
    correlationId: intent.correlationId,
    content,
    totalSize: stat.sizeBytes,
    isPartial,
    stat: self.settings.extended ? { ...stat, path } : undefined
  })

/** Answers a read in chunks. Appends all chunks except the last, and returns the last chunk as the end of the answer. */
const answerInChunks = (
  self: LeafContext,
  work: Work,
  intent: FileRead,
  handle: Handle,
  start: number,
  end: number
): Effect.Effect<Terminal, Fault> =>
  Effect.suspend(() => {
    const { chunkSize, extended } = self.settings
    let pendingChunk: Uint8Array | undefined
    let offset = start
    const chunk = (data: Uint8Array, isFinal: boolean): FileContentChunk => {
      const stat = extended && offset === start ? { ...handle.stat, path: work.path } : undefined
      const entry = make(FileContentChunk, { correlationId: intent.correlationId, offset, data, isFinal, stat })
      offset += data.length
      return entry
    }
    const appendedChunks = Stream.runForEachArray(Read.chunks(handle, start, end, chunkSize), (chunks) => {
      const ready: Array<FileContentChunk> = []
      for (const data of chunks) {
        if (pendingChunk !== undefined) ready.push(chunk(pendingChunk, false))
        pendingChunk = data
      }
      return self.tell(work, ready)
    })
    return Effect.map(appendedChunks, () => chunk(pendingChunk ?? new Uint8Array(0), true))
  })

/** Retries reads, because another program may have locked a part of the open file. */
const withRetries = ({ settings }: LeafContext, handle: Handle): Handle => ({
  ...handle,
  read: (offset, length) => retryWhileBusy(settings.lockedRetries, handle.read(offset, length))
})

const opened = (self: LeafContext, work: Work, intent: FileRead): Effect.Effect<Terminal, Fault> =>
  Effect.scoped(
    Effect.flatMap(retryWhileBusy(self.settings.lockedRetries, Read.open(self.fs.port, work.path)), (opened) => {
      const handle = withRetries(self, opened)
      const size = handle.stat.sizeBytes
      const start = Math.min(intent.offset ?? 0, size)
      const end = intent.length === undefined ? size : Math.min(size, start + intent.length)
      if (end - start > self.settings.streamingThreshold) return answerInChunks(self, work, intent, handle, start, end)
      return Effect.map(Read.range(handle, start, end - start), (bytes) =>
        contentOf(self, intent, work.path, handle.stat, bytes, start > 0 || end < size)
      )
    })
  )

const readInOneCall = (self: LeafContext, work: Work, intent: FileRead): Effect.Effect<Terminal, Fault> | undefined => {
  const { fs, settings } = self
  const perform = performing(fs.port, "Read")
  if (perform === undefined || intent.offset !== undefined || intent.length !== undefined) return undefined
  const whole = withResolvedPath(fs.port, work.path, (at) =>
    perform({ _tag: "Read", path: at, maxBytes: settings.streamingThreshold })
  )
  return Effect.flatMap(retryWhileBusy(settings.lockedRetries, whole), (whole) =>
    Option.isNone(whole)
      ? opened(self, work, intent)
      : Effect.succeed(contentOf(self, intent, work.path, whole.value.stat, whole.value.bytes, false))
  )
}

export const read = (self: LeafContext, work: Work, intent: FileRead): Effect.Effect<Terminal, ReadBytesError> =>
  self.caller.call("readBytes", work.path, Call.errorTags.readBytes, Call.readActions, () =>
    Effect.suspend(() => readInOneCall(self, work, intent) ?? opened(self, work, intent))
  )

const isDenied = ({ _tag }: Fault): boolean => _tag === "AccessDenied"

/**
 * Adds the target text of a link to its metadata, and whether the link may be followed. Omits a target text that may not be
 * read or is too long.
 */
const withTarget = (self: LeafContext, path: FsPath.FsPath, stat: Stat): Effect.Effect<Metadata, Fault> => {
  const { links } = self
  const found = metadataOf(stat)
  if (stat.kind !== "symlink" || links === undefined) return Effect.succeed(found)
  return Effect.gen(function* () {
    const target = yield* Effect.catchIf(links.read(path), isDenied, () => Effect.undefined)
    if (target === undefined || target.length > maxTargetUnits) return found
    const noFollow = yield* Effect.match(follow(links, path), { onFailure: isDenied, onSuccess: () => false })
    const relative = relativeTarget(links, path, target)
    return { ...found, target, ...(relative === target ? {} : { relativeTarget: relative }), ...(noFollow ? { noFollow } : {}) }
  })
}

const mountDirectory: Metadata = { size: 0, isDirectory: true, kind: "directory" }

/**
 * Returns the metadata of the components of the path, up to the first component that is missing or not a directory. A directory
 * that leads to the prefixes of leaves always exists.
 */
const metadataAlongPath = Effect.fnUntraced(function* (
  self: LeafContext,
  { path, ownership: sharing }: Work
): Effect.fn.Return<Array<Metadata>, Fault> {
  const names = FsPath.segments(path)
  const out: Array<Metadata> = []
  let at = FsPath.root
  for (let i = 0; i <= names.length; i++) {
    const stat = sharing.owns(at) ? yield* self.fs.port.stat(at) : undefined
    const isMountDirectory = at === FsPath.root || sharing.isPrefixDirectory(at)
    if (isMountDirectory && stat?.kind !== "directory") out.push(mountDirectory)
    else if (stat === undefined) break
    else {
      out.push(yield* withTarget(self, at, stat))
      if (stat.kind !== "directory") break
    }
    if (i < names.length) at = FsPath.join(at, names[i]!)
  }
  return out
})

export const stat = (self: LeafContext, work: Work, intent: FileStat): Effect.Effect<Terminal, FsError> => {
  const { correlationId, links, way } = intent
  if (links === "leave" && way === true && self.settings.extended) {
    return self.caller.call<FileMetadata, FsError>("stat", work.path, Call.errorTags.stat, Call.readActions, () =>
      Effect.map(metadataAlongPath(self, work), (way) => make(FileMetadata, { correlationId, ...way[way.length - 1]!, way }))
    )
  }
  return Effect.flatMap(self.fs.stat(work.path), (stat) =>
    Effect.mapBoth(withTarget(self, work.path, stat), {
      onFailure: (fault) => errorOf(fault, intent, work.givenPath),
      onSuccess: (found) => make(FileMetadata, { correlationId, ...found })
    })
  )
}

const kinds: ReadonlyArray<Kind> = ["file", "directory", "symlink", "other"]

const found = (self: LeafContext, work: Work, intent: FileList): Effect.Effect<ReadonlyArray<FileEntry>, FsError> => {
  const { fs, settings } = self
  const maxEntries = settings.limits.maxListEntries
  const limitError = (actual: number): FsError =>
    errorOf({ _tag: "LimitExceeded", limit: "maxListEntries", allowed: Math.floor(maxEntries), actual }, intent, work.givenPath)
  const relative = (path: FsPath.FsPath): FsPath.FsPath => FsPath.relative(work.path, path)
  const { pattern, recursive } = intent

  if (pattern === undefined) {
    if (recursive !== true) {
      return Effect.map(fs.list(work.path), (all) => all.map((entry) => ({ ...entry, path: entry.name as FsPath.FsPath })))
    }
    const all = Stream.runCollect(Stream.take(fs.walk(work.path, { sizes: true }), maxEntries + 1))
    return Effect.flatMap(all, (all) =>
      all.length > maxEntries
        ? Effect.fail(limitError(all.length))
        : Effect.succeed(all.map((entry) => ({ ...entry, path: relative(entry.path) })))
    )
  }
  const { caseSensitive } = fs.port.info
  const matcher = Matcher.compile([pattern], { argument: "pattern" }, { limits: settings.limits, caseSensitive })
  if (isFault(matcher)) return Effect.fail(errorOf(matcher, intent, work.givenPath))
  if (recursive !== true) {
    return Effect.map(fs.list(work.path), (all) =>
      all.flatMap((entry) =>
        entry.addressable && Matcher.test(matcher, entry.name, entry.isDirectory)
          ? [{ ...entry, path: entry.name as FsPath.FsPath }]
          : []
      )
    )
  }
  const all = fs.glob(pattern, { path: work.path, kinds, sizes: true, maxMatches: maxEntries })
  return Effect.flatMap(all, ({ matches, truncated }) =>
    truncated
      ? Effect.fail(limitError(matches.length + 1))
      : Effect.succeed(
          matches.map(({ isFile, kind, path, sizeBytes }): FileEntry => ({
            name: FsPath.name(path),
            path: relative(path),
            kind,
            isFile,
            isDirectory: kind === "directory",
            addressable: true,
            ...(sizeBytes === undefined ? {} : { sizeBytes })
          }))
        )
  )
}

export const list = (self: LeafContext, work: Work, intent: FileList): Effect.Effect<Terminal, FsError> =>
  Effect.map(
    Effect.suspend(() => found(self, work, intent)),
    (entries) => make(FileListing, { correlationId: intent.correlationId, entries })
  )
