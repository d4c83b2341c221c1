import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import * as Matcher from "../../engine/matcher.ts"
import { isFault } from "../../engine/options.ts"
import * as Read from "../../engine/read.ts"
import { following } from "../../engine/resolve.ts"
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
import { type Metadata, metadataOf } from "../entries/contents.ts"
import { make } from "../entries/kinds.ts"
import { longestTarget } from "../entries/links.ts"
import type { Serving, Work } from "./model.ts"
import { errorOf } from "./faults.ts"
import { patiently } from "./retrying.ts"

const contentOf = (self: Serving, intent: FileRead, path: FsPath.FsPath, stat: Stat, content: Uint8Array, isPartial: boolean) =>
  make(FileContent, {
    correlationId: intent.correlationId,
    content,
    totalSize: stat.sizeBytes,
    isPartial,
    stat: self.settings.extended ? { ...stat, path } : undefined
  })

/** Answers a read in chunks: appends all chunks but the last, and returns the last as the end of the answer. */
const chunked = (
  self: Serving,
  work: Work,
  intent: FileRead,
  handle: Handle,
  start: number,
  end: number
): Effect.Effect<Terminal, Fault> =>
  Effect.suspend(() => {
    const { chunkSize, extended } = self.settings
    let held: Uint8Array | undefined
    let offset = start
    const chunk = (data: Uint8Array, isFinal: boolean): FileContentChunk => {
      const stat = extended && offset === start ? { ...handle.stat, path: work.path } : undefined
      const entry = make(FileContentChunk, { correlationId: intent.correlationId, offset, data, isFinal, stat })
      offset += data.length
      return entry
    }
    const told = Stream.runForEachArray(Read.chunks(handle, start, end, chunkSize), (chunks) => {
      const ready: Array<FileContentChunk> = []
      for (const data of chunks) {
        if (held !== undefined) ready.push(chunk(held, false))
        held = data
      }
      return self.tell(work, ready)
    })
    return Effect.map(told, () => chunk(held ?? new Uint8Array(0), true))
  })

/** Retries reads, since another program may have locked a part of the open file. */
const patient = ({ settings }: Serving, handle: Handle): Handle => ({
  ...handle,
  read: (offset, length) => patiently(settings.lockedRetries, handle.read(offset, length))
})

const opened = (self: Serving, work: Work, intent: FileRead): Effect.Effect<Terminal, Fault> =>
  Effect.scoped(
    Effect.flatMap(patiently(self.settings.lockedRetries, Read.open(self.fs.port, work.path)), (opened) => {
      const handle = patient(self, opened)
      const size = handle.stat.sizeBytes
      const start = Math.min(intent.offset ?? 0, size)
      const end = intent.length === undefined ? size : Math.min(size, start + intent.length)
      if (end - start > self.settings.streamingThreshold) return chunked(self, work, intent, handle, start, end)
      return Effect.map(Read.range(handle, start, end - start), (bytes) =>
        contentOf(self, intent, work.path, handle.stat, bytes, start > 0 || end < size)
      )
    })
  )

const atOnce = (self: Serving, work: Work, intent: FileRead): Effect.Effect<Terminal, Fault> | undefined => {
  const { fs, settings } = self
  const perform = performing(fs.port, "Read")
  if (perform === undefined || intent.offset !== undefined || intent.length !== undefined) return undefined
  const whole = following(fs.port, work.path, (at) =>
    perform({ _tag: "Read", path: at, maxBytes: settings.streamingThreshold })
  )
  return Effect.flatMap(patiently(settings.lockedRetries, whole), (whole) =>
    Option.isNone(whole)
      ? opened(self, work, intent)
      : Effect.succeed(contentOf(self, intent, work.path, whole.value.stat, whole.value.bytes, false))
  )
}

export const read = (self: Serving, work: Work, intent: FileRead): Effect.Effect<Terminal, ReadBytesError> =>
  self.caller.call("readBytes", work.path, Call.tags.readBytes, Call.reading, () =>
    Effect.suspend(() => atOnce(self, work, intent) ?? opened(self, work, intent))
  )

const isDenied = ({ _tag }: Fault): boolean => _tag === "AccessDenied"

/** Adds a link's text to its metadata, and whether it may be followed. Omits a text that cannot be read or is too long. */
const withTarget = (self: Serving, path: FsPath.FsPath, stat: Stat): Effect.Effect<Metadata, Fault> => {
  const { links } = self
  const found = metadataOf(stat)
  if (stat.kind !== "symlink" || links === undefined) return Effect.succeed(found)
  return Effect.gen(function* () {
    const target = yield* Effect.catchIf(links.read(path), isDenied, () => Effect.undefined)
    if (target === undefined || target.length > longestTarget) return found
    const noFollow = yield* Effect.match(follow(links, path), { onFailure: isDenied, onSuccess: () => false })
    const relative = relativeTarget(links, path, target)
    return { ...found, target, ...(relative === target ? {} : { relativeTarget: relative }), ...(noFollow ? { noFollow } : {}) }
  })
}

const heldDirectory: Metadata = { size: 0, isDirectory: true, kind: "directory" }

/** Returns the metadata of each component of the path, as a branch over all leaves shows it. */
const wayTo = Effect.fnUntraced(function* (self: Serving, { path, sharing }: Work): Effect.fn.Return<Array<Metadata>, Fault> {
  const names = FsPath.segments(path)
  const out: Array<Metadata> = []
  let at = FsPath.root
  for (let i = 0; i <= names.length; i++) {
    const stat = sharing.owns(at) ? yield* self.fs.port.stat(at) : undefined
    const isHeld = at === FsPath.root || sharing.isPinned(at)
    if (isHeld && stat?.kind !== "directory") out.push(heldDirectory)
    else if (stat === undefined) break
    else {
      out.push(yield* withTarget(self, at, stat))
      if (stat.kind !== "directory") break
    }
    if (i < names.length) at = FsPath.join(at, names[i]!)
  }
  return out
})

export const stat = (self: Serving, work: Work, intent: FileStat): Effect.Effect<Terminal, FsError> => {
  const { correlationId, links, way } = intent
  if (links === "leave" && way === true && self.settings.extended) {
    return self.caller.call<FileMetadata, FsError>("stat", work.path, Call.tags.stat, Call.reading, () =>
      Effect.map(wayTo(self, work), (way) => make(FileMetadata, { correlationId, ...way[way.length - 1]!, way }))
    )
  }
  return Effect.flatMap(self.fs.stat(work.path), (stat) =>
    Effect.mapBoth(withTarget(self, work.path, stat), {
      onFailure: (fault) => errorOf(fault, intent, work.shown),
      onSuccess: (found) => make(FileMetadata, { correlationId, ...found })
    })
  )
}

const kinds: ReadonlyArray<Kind> = ["file", "directory", "symlink", "other"]

const found = (self: Serving, work: Work, intent: FileList): Effect.Effect<ReadonlyArray<FileEntry>, FsError> => {
  const { fs, settings } = self
  const most = settings.limits.maxListEntries
  const exceeded = (actual: number): FsError =>
    errorOf({ _tag: "LimitExceeded", limit: "maxListEntries", allowed: Math.floor(most), actual }, intent, work.shown)
  const relative = (path: FsPath.FsPath): FsPath.FsPath => FsPath.relative(work.path, path)
  const { pattern, recursive } = intent

  if (pattern === undefined) {
    if (recursive !== true) {
      return Effect.map(fs.list(work.path), (all) => all.map((entry) => ({ ...entry, path: entry.name as FsPath.FsPath })))
    }
    const all = Stream.runCollect(Stream.take(fs.walk(work.path, { sizes: true }), most + 1))
    return Effect.flatMap(all, (all) =>
      all.length > most
        ? Effect.fail(exceeded(all.length))
        : Effect.succeed(all.map((entry) => ({ ...entry, path: relative(entry.path) })))
    )
  }
  const { caseSensitive } = fs.port.info
  const matcher = Matcher.compile([pattern], { argument: "pattern" }, { limits: settings.limits, caseSensitive })
  if (isFault(matcher)) return Effect.fail(errorOf(matcher, intent, work.shown))
  if (recursive !== true) {
    return Effect.map(fs.list(work.path), (all) =>
      all.flatMap((entry) =>
        entry.addressable && Matcher.test(matcher, entry.name, entry.isDirectory)
          ? [{ ...entry, path: entry.name as FsPath.FsPath }]
          : []
      )
    )
  }
  const all = fs.glob(pattern, { path: work.path, kinds, sizes: true, maxMatches: most })
  return Effect.flatMap(all, ({ matches, truncated }) =>
    truncated
      ? Effect.fail(exceeded(matches.length + 1))
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

export const list = (self: Serving, work: Work, intent: FileList): Effect.Effect<Terminal, FsError> =>
  Effect.map(
    Effect.suspend(() => found(self, work, intent)),
    (entries) => make(FileListing, { correlationId: intent.correlationId, entries })
  )
