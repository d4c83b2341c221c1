/**
 * Records writes. If the engine publishes within a lock (`commit`), the old content and the answer are recorded within this
 * lock. After the lock is released, another caller may write.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Eager from "../../engine/eager.ts"
import { statAt } from "../../engine/read.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import type { Backend, Commit, WriteHow } from "../../port/Backend.ts"
import { type Content, type CreateMode, FileStarted, FileWrite, FileWriteChunk, FileWritten } from "../FileSystemEntry.ts"
import type { Entry } from "../model.ts"
import { createModes, make as makeEntry } from "../entries/kinds.ts"
import { sizeOf } from "../entries/values.ts"
import type { JournalError } from "../errors.ts"
import { keepBytes, maxInlineBytes } from "../store/entryCopies.ts"
import { hasExactBytes, type Previous, previousContent } from "./previous.ts"
import type { RecentContents } from "./recentContents.ts"
import * as Faults from "./steps.ts"
import { type DoneCheck, orNothingDone, recordAnswer, recordRequest, step, type StepRecorder } from "./steps.ts"

const chunkSize = 65_536

interface Chunks {
  /** Passes the bytes through unchanged. All chunks are recorded before the stream ends. */
  readonly passThrough: <E, R>(source: Stream.Stream<Uint8Array, E, R>) => Stream.Stream<Uint8Array, E | Fault, R>
  /** Records that the incomplete write is cancelled. Does nothing if no chunk was recorded. */
  readonly discard: Effect.Effect<void, Fault>
  /** Records an empty write if no chunk was recorded, so that a fault has a request to answer. */
  readonly ensureBegun: Effect.Effect<unknown, Fault>
  readonly size: () => number
  readonly hasEnded: () => boolean
  readonly hasFailed: () => boolean
}

const make = (recorder: StepRecorder, id: string, path: FsPath, createMode: CreateMode): Chunks => {
  let buffer: Uint8Array | undefined
  let filled = 0
  let offset = 0
  let hasBegun = false
  let hasEnded = false
  let hasFailed = false

  const recordChunk = (data: Uint8Array, isFinal: boolean, discard = false): Effect.Effect<unknown, Fault> =>
    Effect.suspend(() => {
      const at = offset
      offset += data.length
      hasEnded = isFinal
      const chunk = { correlationId: id, offset: at, data, isFinal, discard: discard ? discard : undefined }
      const entry = hasBegun ? chunk : { ...chunk, path, createMode, createParents: false }
      hasBegun = true
      return recordRequest(recorder, makeEntry(FileWriteChunk, entry))
    })

  const flush = (isFinal: boolean): Effect.Effect<unknown, Fault> =>
    Effect.suspend(() => {
      const data = buffer?.subarray(0, filled) ?? new Uint8Array(0)
      filled = 0
      return recordChunk(data, isFinal)
    })

  const take = Effect.fnUntraced(function* (arrays: ReadonlyArray<Uint8Array>): Effect.fn.Return<void, Fault> {
    buffer ??= new Uint8Array(chunkSize)
    for (const bytes of arrays) {
      for (let at = 0; at < bytes.length;) {
        if (filled === chunkSize) yield* flush(false)
        const copiedBytes = Math.min(chunkSize - filled, bytes.length - at)
        buffer.set(bytes.subarray(at, at + copiedBytes), filled)
        filled += copiedBytes
        at += copiedBytes
      }
    }
  })

  return {
    passThrough: (source) =>
      Stream.concat(
        Stream.mapArrayEffect(
          Stream.onError(source, () => Effect.sync(() => void (hasFailed = true))),
          (arrays) => Effect.as(take(arrays), arrays)
        ),
        Stream.drain(Stream.fromEffect(Effect.suspend(() => flush(true))))
      ),
    discard: Effect.suspend(() => (hasBegun ? Effect.asVoid(recordChunk(new Uint8Array(0), true, true)) : Effect.void)),
    ensureBegun: Effect.suspend(() => (hasBegun ? Effect.void : recordChunk(new Uint8Array(0), true))),
    size: () => offset + filled,
    hasEnded: () => hasEnded,
    hasFailed: () => hasFailed
  }
}

type Mode = "create" | "replace" | "append"

export interface RecordContext extends StepRecorder {
  readonly self: Backend
  readonly reads: boolean
  readonly previous: boolean
  readonly recent: RecentContents
}

const noPrevious: Exit.Exit<null> = Exit.succeed(null)
const unknownPrevious: Exit.Exit<undefined> = Exit.succeed(undefined)

/**
 * Returns the previous content. No other code may change the returned bytes. A create replaces nothing, because it fails if
 * the file exists.
 */
const previousOf = (
  { journal, previous, recent, self }: RecordContext,
  path: FsPath,
  mode: Mode
): Effect.Effect<Previous, JournalError> =>
  mode === "create" ? noPrevious : previous ? previousContent(self, journal.contents, recent, path) : unknownPrevious

const written = (
  correlationId: string,
  path: FsPath,
  bytesWritten: number,
  previous: Previous,
  version: string | undefined,
  stat: FileStat | undefined
): FileWritten => makeEntry(FileWritten, { correlationId, path, bytesWritten, previous, version, stat })

const checkWritten = (self: Backend, path: FsPath, bytes: Uint8Array, mode: Mode, previous: Previous): DoneCheck => {
  if (mode !== "append") {
    return Effect.flatMap(self.stat(path), (stat) =>
      stat?.kind === "file" ? hasExactBytes(self, path, bytes) : Effect.succeed(false)
    )
  }
  if (previous === undefined) return Effect.undefined
  const size = (previous === null ? 0 : sizeOf(previous)) + bytes.length
  return Effect.map(statAt(self, path), (stat) => stat?.kind === "file" && stat.sizeBytes === size)
}

/** Returns the version of the written file. Returns `undefined` for an append and for a content without a computed hash. */
const versionOf = (content: Content, mode: Mode): string | undefined =>
  isBytes(content) || mode === "append" ? undefined : content.sha256

const storeIfLarge = ({ journal }: RecordContext, bytes: Uint8Array): Effect.Effect<Content, JournalError> =>
  bytes.length > maxInlineBytes ? journal.contents.put(bytes) : Exit.succeed(bytes)

/** Returns the request of a write. Copies a small content, because the caller may change the bytes later. */
const writeRequest = ({ recent }: RecordContext, id: string, path: FsPath, given: Content, mode: Mode): FileWrite => {
  const content = isBytes(given) ? keepBytes(given) : given
  if (isBytes(content) && mode !== "append") recent.add(path, content)
  return makeEntry(FileWrite, { correlationId: id, path, content, createMode: createModes[mode], createParents: false })
}

/** Writes all bytes in one step. The caller must hold the lock. */
const writeInOneStep = (writing: RecordContext, path: FsPath, bytes: Uint8Array, mode: Mode): Effect.Effect<FileStat, Fault> =>
  Effect.suspend(() => {
    const { reads, self } = writing
    return Eager.flatMap(orNothingDone(previousOf(writing, path, mode)), (previous) =>
      Eager.flatMap(orNothingDone(storeIfLarge(writing, bytes)), (content) => {
        const id = writing.nextId()
        return step<FileStat, Fault, never>(writing, {
          request: writeRequest(writing, id, path, content, mode),
          run: self.write<never, never>(path, bytes, mode),
          answer: (stat) => written(id, path, bytes.length, previous, versionOf(content, mode), reads ? stat : undefined),
          checkDone: () => checkWritten(self, path, bytes, mode, previous)
        })
      })
    )
  })

interface Progress {
  isCommitted: boolean
  hasBegunPublishing: boolean
  isAnswerRecorded: boolean
}

/**
 * Wraps the engine's commit. The wrapper reads the old content, publishes the new content, and records the answer. The lock of
 * the engine excludes other changes through this filesystem between these steps.
 */
const recordingCommit = (
  writing: RecordContext,
  id: string,
  path: FsPath,
  mode: Mode,
  how: WriteHow | undefined,
  progress: Progress,
  written: (previous: Previous) => Entry
): Commit => {
  const publishAndRecord: Commit = (publish) =>
    Effect.flatMap(orNothingDone(previousOf(writing, path, mode)), (previous) =>
      Effect.uninterruptible(
        Effect.suspend(() => {
          progress.hasBegunPublishing = true
          return Effect.flatMap(publish, (value) => {
            progress.isAnswerRecorded = true
            return recordAnswer(writing, written(previous), value)
          })
        })
      )
    )
  const { commit } = how ?? {}
  const recordedCommit: Commit = commit === undefined ? publishAndRecord : (publish) => commit(publishAndRecord(publish))
  // Record that `commit` was called, because `Replay.double` must call `commit` in the same writes.
  return !writing.reads
    ? recordedCommit
    : (publish) =>
        Effect.andThen(
          progress.isCommitted
            ? Effect.void
            : recordRequest(writing, makeEntry(FileStarted, { correlationId: id, instance: "commit" })),
          Effect.suspend(() => {
            progress.isCommitted = true
            return recordedCommit(publish)
          })
        )
}

const recordFailure = (
  writing: RecordContext,
  id: string,
  path: FsPath,
  { hasBegunPublishing }: Progress,
  cause: Cause.Cause<unknown>
): Effect.Effect<void> => {
  const fault = Faults.faultOf(cause)
  const entry =
    fault !== undefined
      ? Faults.faultAnswer(id, "write", path, fault)
      : hasBegunPublishing
        ? undefined
        : Faults.interruptedAnswer(id, path, cause)
  return entry === undefined ? Effect.void : Effect.ignore(writing.journal.append(entry))
}

/**
 * Removes the mode from the result of a write within a lock. The recorded entry has no stat, so `Replay.double` could not
 * return the mode.
 */
const withoutMode = <E, R>({ reads }: RecordContext, written: Effect.Effect<FileStat, E, R>): Effect.Effect<FileStat, E, R> =>
  reads ? Effect.map(written, ({ mode: _, ...stat }) => stat) : written

const writeWithinLock = (
  writing: RecordContext,
  path: FsPath,
  bytes: Uint8Array,
  mode: Mode,
  how: WriteHow
): Effect.Effect<FileStat, Fault> =>
  Effect.flatMap(orNothingDone(storeIfLarge(writing, bytes)), (content) =>
    Effect.uninterruptibleMask((restore) => {
      const id = writing.nextId()
      const progress: Progress = { isCommitted: false, hasBegunPublishing: false, isAnswerRecorded: false }
      const commit = recordingCommit(writing, id, path, mode, how, progress, (previous) =>
        written(id, path, bytes.length, previous, versionOf(content, mode), undefined)
      )
      return Effect.flatMap(recordRequest(writing, writeRequest(writing, id, path, content, mode)), () =>
        Effect.onError(
          withoutMode(writing, restore(writing.self.write<never, never>(path, bytes, mode, { commit }))),
          (cause) => (progress.isAnswerRecorded ? Effect.void : recordFailure(writing, id, path, progress, cause))
        )
      )
    })
  )

const writeStream = <E, R>(
  writing: RecordContext,
  path: FsPath,
  source: Stream.Stream<Uint8Array, E, R>,
  mode: Mode,
  how: WriteHow | undefined
): Effect.Effect<FileStat, Fault | E, R> =>
  Effect.suspend(() => {
    const id = writing.nextId()
    const chunks = make(writing, id, path, createModes[mode])
    const progress: Progress = { isCommitted: false, hasBegunPublishing: false, isAnswerRecorded: false }
    const commit = recordingCommit(writing, id, path, mode, how, progress, (previous) =>
      written(id, path, chunks.size(), previous, undefined, undefined)
    )
    return Effect.onError(
      withoutMode(writing, writing.self.write(path, chunks.passThrough(source), mode, { commit })),
      (cause) => {
        if (progress.isAnswerRecorded) return Effect.void
        const isGivenUp = chunks.hasFailed() || Faults.faultOf(cause) === undefined
        return isGivenUp && !chunks.hasEnded()
          ? Effect.ignore(chunks.discard)
          : Effect.andThen(Effect.ignore(chunks.ensureBegun), recordFailure(writing, id, path, progress, cause))
      }
    )
  })

export const write =
  (writing: RecordContext): Backend["write"] =>
  <E, R>(
    path: FsPath,
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: Mode,
    how?: WriteHow
  ): Effect.Effect<FileStat, Fault | E, R> =>
    !isBytes(content)
      ? writeStream(writing, path, content, mode, how)
      : how?.commit === undefined
        ? writeInOneStep(writing, path, content, mode)
        : writeWithinLock(writing, path, content, mode, how)
