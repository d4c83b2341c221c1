/**
 * The values in entries: contents, metadata, faults and link targets. The values are not trusted, because any writer of a
 * journal may have forged them.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/realms.ts"
import type { FileStat } from "../../model/Entry.ts"
import * as Fault from "../../model/Fault.ts"
import { type FsError, toFault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { hasher } from "../../runtime/hash.ts"
import type { JournalError } from "../errors.ts"
import { type Content, type ContentRef, FaultKind, FileFault, type FileMetadata } from "../FileSystemEntry.ts"
import type { ContentStore } from "../model.ts"
import { make } from "./kinds.ts"

export const isRef = (content: Content): content is ContentRef => !isBytes(content)

export const sizeOf = (content: Content): number => (isBytes(content) ? content.length : content.size)

export const streamOf = (contents: ContentStore, content: Content): Stream.Stream<Uint8Array, JournalError> =>
  isBytes(content) ? Stream.succeed(content) : contents.stream(content)

export const streamOfParts = (contents: ContentStore, parts: ReadonlyArray<Content>): Stream.Stream<Uint8Array, JournalError> =>
  Stream.flatMap(Stream.fromIterable(parts), (part) => streamOf(contents, part))

export const digestOf = <E, R>(bytes: Stream.Stream<Uint8Array, E, R>): Effect.Effect<ContentRef, E, R> =>
  Effect.suspend(() => {
    const hash = hasher()
    let size = 0
    const take = (chunk: Uint8Array): void => {
      hash.update(chunk)
      size += chunk.length
    }
    return Effect.map(
      Stream.runForEachArray(bytes, (chunks) => Effect.sync(() => chunks.forEach(take))),
      () => ({ sha256: hash.digest(), size })
    )
  })

export type Metadata = NonNullable<FileMetadata["way"]>[number]

export const metadataOf = ({ createdAt, isDirectory, isSymlink, kind, mode, modifiedAt, sizeBytes }: FileStat): Metadata => ({
  size: sizeBytes,
  isDirectory,
  kind,
  ...(modifiedAt !== undefined && { modified: modifiedAt }),
  ...(createdAt !== undefined && { created: createdAt }),
  ...(mode !== undefined && { permissions: mode }),
  ...(isSymlink === true && { isSymlink })
})

export const statOf = (path: FsPath, metadata: Metadata): FileStat => {
  const { created, isDirectory, isSymlink, kind = isDirectory ? "directory" : "file", modified, permissions, size } = metadata
  return {
    path,
    kind,
    isFile: kind === "file",
    isDirectory: kind === "directory",
    sizeBytes: size,
    ...(created !== undefined && { createdAt: created }),
    ...(modified !== undefined && { modifiedAt: modified }),
    ...(permissions !== undefined && { mode: permissions }),
    ...(isSymlink !== undefined && { isSymlink })
  }
}

export const sizedStat = (path: FsPath, sizeBytes: number): FileStat => ({
  path,
  kind: "file",
  isFile: true,
  isDirectory: false,
  sizeBytes
})

const faultsByKind: Record<FaultKind, (detail: string) => Fault.Fault> = {
  NotFound: () => Fault.notFound,
  AlreadyExists: () => Fault.alreadyExists,
  AccessDenied: () => Fault.accessDenied("permission"),
  InvalidPath: Fault.invalidPath,
  DirectoryNotEmpty: () => Fault.directoryNotEmpty,
  NotADirectory: () => Fault.notADirectory,
  NotAFile: () => Fault.notAFile,
  DiskFull: () => Fault.diskFull,
  IoError: (detail) => Fault.ioError(detail),
  PathTooLong: Fault.pathTooLong,
  Timeout: (detail) => ({ _tag: "Timeout", detail })
}

/** Removes the operation and the path from the message, because the caller's error adds them again. */
const detailOf = ({ message, path }: FileFault): string => {
  const prefix = `${JSON.stringify(path)}: `
  const at = message.indexOf(prefix)
  return at < 0 ? message : message.slice(at + prefix.length)
}

export const faultOf = (fault: FileFault): Fault.Fault =>
  fault.error === undefined ? faultsByKind[fault.faultKind](detailOf(fault)) : toFault(fault.error)

const faultKinds: ReadonlySet<string> = new Set(FaultKind.literals)

export const faultKindOf = (tag: string): FaultKind => (faultKinds.has(tag) ? (tag as FaultKind) : "IoError")

/** Returns the answer to a failed request. Includes the complete error only if the leaf is extended. */
export const faultAnswer = (error: FsError, correlationId: string, path: string, extended: boolean): FileFault =>
  make(FileFault, {
    correlationId,
    faultKind: faultKindOf(error._tag),
    path,
    message: error.message,
    error: extended ? error : undefined
  })

/** The longest path that any system allows, in UTF-16 units. */
export const maxTargetUnits = 32_767

export const invalidTargetReason = (target: unknown): string | undefined =>
  typeof target !== "string"
    ? "the target is not text"
    : target === ""
      ? "the target is empty"
      : target.length > maxTargetUnits
        ? `the target is longer than ${maxTargetUnits} characters`
        : target.includes("\0")
          ? "the target contains NUL"
          : undefined
