import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type * as Stream from "effect/Stream"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { Caller } from "../../filesystem/operations/call.ts"
import { type Fault, type FsError, IoError, promote } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Links } from "../../port/Backend.ts"
import { type Afferent, type Efferent, type FileStarted, type FileWriteChunk, type Terminal } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../model.ts"
import { kinds } from "../entries/kinds.ts"
import type { JournalError } from "../errors.ts"
import type { Settings } from "./settings.ts"

export const errorOf = (fault: Fault, intent: Efferent, path: string): FsError =>
  promote(fault, kinds[intent._tag].operation, path)

export const ioError = (detail: string, intent: Efferent, path: string): IoError =>
  new IoError({ operation: kinds[intent._tag].operation, path, detail })

const isBusy = (error: unknown): boolean =>
  typeof error === "object" && error !== null && "why" in error && error.why === "busy"

const firstDelayMillis = 50

/**
 * Retries while another program has the file open. Each delay is about twice the previous delay, with a random variation of up
 * to 20 %.
 */
export const retryWhileBusy = <A, E, R>(maxRetries: number, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => {
  const attempt = (retriesLeft: number, delayMillis: number): Effect.Effect<A, E, R> =>
    Effect.catch(effect, (error) =>
      retriesLeft > 0 && isBusy(error)
        ? Effect.flatMap(Random.next, (random) =>
            Effect.delay(attempt(retriesLeft - 1, delayMillis * 2), delayMillis * (0.8 + 0.4 * random))
          )
        : Effect.fail(error)
    )
  return attempt(maxRetries, firstDelayMillis)
}

/** The content of a write, as a stream with constant memory use, or as a whole. */
export interface IncomingContent {
  readonly size: number
  readonly stream: Stream.Stream<Uint8Array, JournalError>
  readonly bytes: Effect.Effect<Uint8Array, JournalError>
  readonly sha256: Effect.Effect<string, JournalError>
}

/** A chunked write. The first chunk has the path and the mode. The content stays in the journal. */
export interface Transfer {
  readonly first: FileWriteChunk
  readonly path: FsPath
  readonly position: number
  nextOffset: number
}

export interface Work {
  readonly intent: Efferent
  readonly givenPath: string
  readonly path: FsPath
  readonly to: FsPath | undefined
  /** The position of the request, or of its last chunk. */
  readonly position: number
  readonly transfer: Transfer | undefined
  /** The names in the directory at `path` that lead to the prefixes of leaves. The prefix of this leaf counts too. */
  readonly mounts: ReadonlyArray<string>
  /** True if this leaf owns the path. Otherwise the path is only a directory that leads to the prefixes of leaves. */
  readonly isOwn: boolean
  readonly ownership: PathOwnership
  /**
   * The work that an earlier leaf may have done on the request. `undefined` if the request changes nothing, or if it arrived
   * after the start of this leaf and no other leaf has served it.
   */
  readonly earlierWork: EarlierWork | undefined
  /** True if the request is answered or dropped, so that no further entry for the request may be appended. */
  isAnswered: boolean
  hasBegun: boolean
}

export interface PathOwnership {
  readonly owns: (path: FsPath) => boolean
  readonly isPrefixDirectory: (path: FsPath) => boolean
}

export interface EarlierWork {
  /**
   * The state that the earlier leaf recorded before the change. `undefined` if the journal has no FileStarted, or if the earlier
   * leaf served other files.
   */
  readonly started: FileStarted | undefined
  /** True if the earlier leaf may have made the change, and this leaf cannot find out. */
  readonly isUncertain: boolean
}

export interface LeafContext {
  readonly fs: Algebra
  readonly caller: Caller
  /** True if `fs` treats a link as an entry of its own. If not, `fs` follows or refuses links. @default false */
  readonly showsLinks?: boolean | undefined
  /** The link operations of the served filesystem, if `showsLinks` is true. */
  readonly links?: Links | undefined
  readonly journal: Scrivener<Entry>
  readonly settings: Settings
  readonly instance: string
  /**
   * Appends entries that precede the last entry of the answer, and extends the deadline of the request. Interrupts the caller if
   * the request is already answered.
   */
  readonly tell: (work: Work, entries: ReadonlyArray<Afferent>) => Effect.Effect<void>
}

export type AnswerEffect = Effect.Effect<Terminal, FsError | JournalError>
