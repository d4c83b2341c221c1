/**
 * A store of text by path in eight methods, over any Filesystem: no caps, deleting takes everything below, and what is not there is
 * empty, not an error.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { FileEntry, GlobMatch, GrepMatch, ReadResult } from "../model/Entry.ts"
import {
  type DeleteError,
  type FsError,
  type GlobError,
  type GrepError,
  type ListError,
  type ReadError,
  Unsupported,
  type WriteError
} from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, unlimited } from "../model/Limits.ts"
import { type Algebra, Filesystem } from "./Filesystem.ts"

/**
 * Which lines of a file.
 *
 * @since 0.1.0
 */
export interface PageOptions {
  /** 0-based line of the first one answered. @default 0 */
  readonly offset?: number | undefined
  /** Lines; -1 is all, 0 none. @default all */
  readonly limit?: number | undefined
}

/** @since 0.1.0 */
export interface SearchOptions {
  /** A glob for the files to search. @default every file */
  readonly fileGlob?: string | undefined
}

/**
 * The operations. They ignore the `Limits` in force, except for how long a pattern may work on one file: that one guards the program,
 * not the answer.
 *
 * @since 0.1.0
 */
export interface Operations {
  readonly read: (path: string, options?: PageOptions) => Effect.Effect<ReadResult, ReadError>
  /** Makes the parents, replaces what is there, and answers the number of bytes. */
  readonly write: (path: string, content: string) => Effect.Effect<number, WriteError>
  /** A file, or a directory with all that is in it. Answers how many files went: at least 1 when anything did, 0 when nothing was there. */
  readonly delete: (path: string) => Effect.Effect<number, DeleteError>
  /** By name, with sizes; nothing where there is no such directory. @default the root */
  readonly list: (path?: string) => Effect.Effect<ReadonlyArray<FileEntry>, ListError>
  /** Files, with sizes, in path order. A pattern without a slash matches names at any depth, one with a slash paths from the root. */
  readonly glob: (pattern: string) => Effect.Effect<ReadonlyArray<FileEntry>, GlobError>
  /** The first match of each matching line, in the order of (path, line). */
  readonly grep: (pattern: string, options?: SearchOptions) => Effect.Effect<ReadonlyArray<GrepMatch>, GrepError>
  /** The whole tree as ZIP bytes. Fails with Unsupported `archives`: this version has none. */
  readonly snapshot: Effect.Effect<Uint8Array, FsError>
  /** Makes the tree what the ZIP bytes say. Fails with Unsupported `archives`: this version has none. */
  readonly restore: (data: Uint8Array) => Effect.Effect<void, FsError>
}

/** @since 0.1.0 */
export class FileStore extends Context.Service<FileStore, Operations>()("fs-algebra/FileStore") {}

const boundless = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.flatMap(Limits, ({ patternBudget }) => Effect.provideService(effect, Limits, { ...unlimited, patternBudget }))

const everyLine = -1

const entryOf = ({ isFile, kind, path, sizeBytes }: GlobMatch): FileEntry => ({
  name: FsPath.name(path),
  path,
  kind,
  isFile,
  isDirectory: kind === "directory",
  ...(sizeBytes === undefined ? undefined : { sizeBytes }),
  addressable: true
})

const noArchives = (operation: string) => Effect.fail(new Unsupported({ operation, path: ".", feature: "archives" }))

/**
 * The store that a Filesystem is.
 *
 * @since 0.1.0
 */
export const make = (fs: Algebra): Operations => ({
  read: (path, options) => boundless(fs.read(path, { offset: options?.offset, limit: options?.limit ?? everyLine })),
  write: (path, content) => boundless(Effect.map(fs.write(path, content), ({ bytesWritten }) => bytesWritten)),
  delete: (path) => boundless(Effect.map(fs.delete(path, { recursive: true, missing: "ignore" }), ({ deleted }) => deleted)),
  list: (path) => boundless(Effect.catchTag(fs.list(path), "NotFound", () => Effect.succeed([]))),
  glob: (pattern) => boundless(Effect.map(fs.glob(pattern, { sizes: true }), ({ matches }) => matches.map(entryOf))),
  grep: (pattern, options) => boundless(Stream.runCollect(fs.grepStream(pattern, { glob: options?.fileGlob }))),
  snapshot: noArchives("snapshot"),
  restore: () => noArchives("restore")
})

/**
 * @since 0.1.0
 */
export const layer: Layer.Layer<FileStore, never, Filesystem> = Layer.effect(FileStore, Effect.map(Filesystem, make))
