/** The files that an archive writes to staging directories in threads. */
import type * as Effect from "effect/Effect"
import type { FsPath } from "../model/FsPath.ts"
import type { DirectoryHistory } from "../port/history.ts"
import type { FileNode } from "./tree.ts"

/** A file of the new tree that is not staged yet. */
export interface UnstagedFile {
  readonly path: FsPath
  /** The path at which the file is staged. */
  readonly at: FsPath
  readonly file: FileNode
  readonly mode: number | undefined
  /** The SHA-256 of the content after the file was staged. Empty if the transaction has no record. */
  hash: string | undefined
  /** True if a thread that gave no report may have created the file. */
  mayExist: boolean
}

export interface UnpackOptions {
  readonly lend: NonNullable<DirectoryHistory["lend"]>
  /** True to compute the SHA-256 of each content. */
  readonly isHashed: boolean
  /** Runs after some files were staged. */
  readonly onStaged: (count: number) => Effect.Effect<void>
}

/** Stages files and sets their hashes. A file that no thread could check and stage stays without a hash. */
export type Unpack = (files: ReadonlyArray<UnstagedFile>, options: UnpackOptions) => Effect.Effect<void>
