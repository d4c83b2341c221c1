/** What the parts of a leaf have in common. */
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { Caller } from "../../filesystem/operations/call.ts"
import type { FsError } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Links } from "../../port/Backend.ts"
import type { JournalError } from "../errors.ts"
import type { Afferent, Efferent, FileStarted, FileWriteChunk, Terminal } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import type { Settings } from "./settings.ts"

/** What a write brings, in constant memory. */
export interface Incoming {
  /** Bytes. */
  readonly size: number
  readonly stream: Stream.Stream<Uint8Array, JournalError>
  /** All at once, for what is small. */
  readonly bytes: Effect.Effect<Uint8Array, JournalError>
  /** Hex. */
  readonly sha256: Effect.Effect<string, JournalError>
}

/** A write in parts: what it is to be is in its first part, the content in the journal. */
export interface Transfer {
  readonly first: FileWriteChunk
  readonly path: FsPath
  /** Of the first part. */
  readonly position: number
  /** Where the next part must begin. */
  next: number
}

/** One intent in hand. */
export interface Work {
  readonly intent: Efferent
  /** As the caller wrote it. */
  readonly shown: string
  readonly path: FsPath
  /** Of a move. */
  readonly to: FsPath | undefined
  /** Of the intent, or of its last part. */
  readonly position: number
  readonly transfer: Transfer | undefined
  /** The names at the path that lead to the prefixes of other leaves. */
  readonly mounts: ReadonlyArray<string>
  /** The path is this leaf's, and not only a directory that holds prefixes. */
  readonly isOwn: boolean
  /** The other leaves that share the tree, for requests about the components of the path. */
  readonly sharing: Sharing
  /** What is true of one that stood in the journal before this leaf did; `undefined` for all others. */
  readonly left: Left | undefined
  /** Nothing more is said of it. */
  isAnswered: boolean
  hasBegun: boolean
}

export interface Sharing {
  /** The path is this leaf's. */
  readonly owns: (path: FsPath) => boolean
  /** The path is the prefix of a leaf, or holds one. */
  readonly isPinned: (path: FsPath) => boolean
}

/** What an earlier leaf may have done. */
export interface Left {
  /** What it met, where it has said that it begins. */
  readonly started: FileStarted | undefined
  /** It may have carried it out without saying so. */
  readonly isUncertain: boolean
}

export interface Serving {
  readonly fs: Algebra
  readonly caller: Caller
  /** Each link stands for itself. @default false: `fs` follows links, or refuses them */
  readonly isLeaving?: boolean | undefined
  /** The links of what is served, where `fs` shows them as themselves. */
  readonly links?: Links | undefined
  readonly journal: Scrivener<Entry>
  readonly settings: Settings
  readonly instance: string
  /** Appends what comes before the end of an answer; interrupts who has nothing more to say. */
  readonly tell: (work: Work, entries: ReadonlyArray<Afferent>) => Effect.Effect<void>
}

export type Answering = Effect.Effect<Terminal, FsError | JournalError>
