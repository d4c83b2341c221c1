/**
 * Records writes. If the engine publishes within a lock (`commit`), the old content and the answer are recorded within that lock too.
 * Afterwards another caller may already have written.
 */
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import * as Eager from "../../engine/eager.ts"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend, Commit, WriteHow } from "../../port/Backend.ts"
import { sizeOf } from "../entries/contents.ts"
import { createModes, make } from "../entries/kinds.ts"
import type { JournalError } from "../errors.ts"
import { type Content, FileStarted, FileWrite, FileWritten } from "../FileSystemEntry.ts"
import type { Entry } from "../Journal.ts"
import { largest } from "../journal/holding.ts"
import * as Chunks from "./chunks.ts"
import * as Faults from "./faults.ts"
import { statAt } from "../../engine/read.ts"
import { before, holds, type Previous } from "./previous.ts"
import { ask, type Look, orNotMade, step, type Story, tell } from "./story.ts"

type Mode = "create" | "replace" | "append"

export interface Writing extends Story {
  readonly self: Backend
  readonly reads: boolean
  readonly previous: boolean
}

const nothing: Exit.Exit<null> = Exit.succeed(null)
const untold: Exit.Exit<undefined> = Exit.succeed(undefined)

/** Returns the previous content. A create has none, because it fails if a file exists. */
const previousOf = ({ journal, previous, self }: Writing, path: FsPath, mode: Mode): Effect.Effect<Previous, JournalError> =>
  mode === "create" ? nothing : previous ? before(self, journal.contents, path) : untold

const written = (
  correlationId: string,
  path: FsPath,
  bytesWritten: number,
  previous: Previous,
  version: string | undefined,
  stat: FileStat | undefined
): FileWritten => make(FileWritten, { correlationId, path, bytesWritten, previous, version, stat })

const lookAt = (self: Backend, path: FsPath, bytes: Uint8Array, mode: Mode, previous: Previous): Look => {
  if (mode !== "append") {
    return Effect.flatMap(self.stat(path), (stat) => (stat?.kind === "file" ? holds(self, path, bytes) : Effect.succeed(false)))
  }
  if (previous === undefined) return Effect.undefined
  const size = (previous === null ? 0 : sizeOf(previous)) + bytes.length
  return Effect.map(statAt(self, path), (stat) => stat?.kind === "file" && stat.sizeBytes === size)
}

/** Returns the version of the written file, if the content store has computed its hash. */
const versionOf = (content: Content, mode: Mode): string | undefined =>
  isBytes(content) || mode === "append" ? undefined : content.sha256

const putAway = ({ journal }: Writing, bytes: Uint8Array): Effect.Effect<Content, JournalError> =>
  bytes.length > largest ? journal.contents.put(bytes) : Exit.succeed(bytes)

const askOf = (id: string, path: FsPath, content: Content, mode: Mode): FileWrite =>
  make(FileWrite, { correlationId: id, path, content, createMode: createModes[mode], createParents: false })

/** Writes all bytes in one step, within the lock that the caller holds. */
const atOnce = (writing: Writing, path: FsPath, bytes: Uint8Array, mode: Mode): Effect.Effect<FileStat, Fault> =>
  Effect.suspend(() => {
    const { reads, self } = writing
    const prepared = Eager.flatMap(previousOf(writing, path, mode), (previous) =>
      Eager.map(putAway(writing, bytes), (content) => ({ previous, content }))
    )
    return Eager.flatMap(orNotMade(prepared), ({ content, previous }) => {
      const id = writing.nextId()
      return step<FileStat, Fault, never>(writing, {
        asked: askOf(id, path, content, mode),
        run: self.write<never, never>(path, bytes, mode),
        answer: (stat) => written(id, path, bytes.length, previous, versionOf(content, mode), reads ? stat : undefined),
        look: () => lookAt(self, path, bytes, mode, previous)
      })
    })
  })

interface Progress {
  isCommitted: boolean
  isBegun: boolean
  isTold: boolean
}

/**
 * Returns the engine's commit with recording: reads the old content, publishes, and records the answer. Nothing can come between publishing
 * and the answer.
 */
const telling = (
  writing: Writing,
  id: string,
  path: FsPath,
  mode: Mode,
  how: WriteHow | undefined,
  progress: Progress,
  written: (previous: Previous) => Entry
): Commit => {
  const publishing: Commit = (publish) =>
    Effect.flatMap(orNotMade(previousOf(writing, path, mode)), (previous) =>
      Effect.uninterruptible(
        Effect.suspend(() => {
          progress.isBegun = true
          return Effect.flatMap(publish, (value) => {
            progress.isTold = true
            return tell(writing, written(previous), value)
          })
        })
      )
    )
  const { commit } = how ?? {}
  const told: Commit = commit === undefined ? publishing : (publish) => commit(publishing(publish))
  // A double must know whether the engine called `commit`, because reads may come before it.
  return !writing.reads
    ? told
    : (publish) =>
        Effect.andThen(
          progress.isCommitted ? Effect.void : ask(writing, make(FileStarted, { correlationId: id, instance: "commit" })),
          Effect.suspend(() => {
            progress.isCommitted = true
            return told(publish)
          })
        )
}

const tellFailure = (
  writing: Writing,
  id: string,
  path: FsPath,
  { isBegun }: Progress,
  cause: Cause.Cause<unknown>
): Effect.Effect<void> => {
  const fault = Faults.faultOf(cause)
  const entry =
    fault !== undefined ? Faults.answer(id, "write", path, fault) : isBegun ? undefined : Faults.brokenOff(id, path, cause)
  return entry === undefined ? Effect.void : Effect.ignore(writing.journal.append(entry))
}

/** Removes the mode from the result of a write within a lock. Its entry has no stat, so a double could not return the mode. */
const untoldMode = <E, R>({ reads }: Writing, written: Effect.Effect<FileStat, E, R>): Effect.Effect<FileStat, E, R> =>
  reads ? Effect.map(written, ({ mode: _, ...stat }) => stat) : written

const inTurn = (writing: Writing, path: FsPath, bytes: Uint8Array, mode: Mode, how: WriteHow): Effect.Effect<FileStat, Fault> =>
  Effect.flatMap(orNotMade(putAway(writing, bytes)), (content) =>
    Effect.uninterruptibleMask((restore) => {
      const id = writing.nextId()
      const progress: Progress = { isCommitted: false, isBegun: false, isTold: false }
      const commit = telling(writing, id, path, mode, how, progress, (previous) =>
        written(id, path, bytes.length, previous, versionOf(content, mode), undefined)
      )
      return Effect.flatMap(ask(writing, askOf(id, path, content, mode)), () =>
        Effect.onError(untoldMode(writing, restore(writing.self.write<never, never>(path, bytes, mode, { commit }))), (cause) =>
          progress.isTold ? Effect.void : tellFailure(writing, id, path, progress, cause)
        )
      )
    })
  )

const streamed = <E, R>(
  writing: Writing,
  path: FsPath,
  source: Stream.Stream<Uint8Array, E, R>,
  mode: Mode,
  how: WriteHow | undefined
): Effect.Effect<FileStat, Fault | E, R> =>
  Effect.suspend(() => {
    const id = writing.nextId()
    const chunks = Chunks.make(writing, id, path, createModes[mode])
    const progress: Progress = { isCommitted: false, isBegun: false, isTold: false }
    const commit = telling(writing, id, path, mode, how, progress, (previous) =>
      written(id, path, chunks.size(), previous, undefined, undefined)
    )
    return Effect.onError(untoldMode(writing, writing.self.write(path, chunks.through(source), mode, { commit })), (cause) => {
      if (progress.isTold) return Effect.void
      const isGivenUp = chunks.hasFailed() || Faults.faultOf(cause) === undefined
      return isGivenUp && !chunks.hasEnded()
        ? Effect.ignore(chunks.discard)
        : Effect.andThen(Effect.ignore(chunks.begin), tellFailure(writing, id, path, progress, cause))
    })
  })

export const write =
  (writing: Writing): Backend["write"] =>
  <E, R>(
    path: FsPath,
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: Mode,
    how?: WriteHow
  ): Effect.Effect<FileStat, Fault | E, R> =>
    !isBytes(content)
      ? streamed(writing, path, content, mode, how)
      : how?.commit === undefined
        ? atOnce(writing, path, content, mode)
        : inTurn(writing, path, content, mode, how)
