/**
 * Each file is read twice, once to compute its id and once to copy it, so that a write in between is detected. Large files are
 * streamed.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import { idOf } from "../../history/scan.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { MountError } from "./model.ts"
import type { Request } from "./request.ts"
import type { Source } from "./source.ts"
import { mountErrorOf, type SourceFile } from "./survey.ts"

export interface FileOrigin {
  readonly request: Request
  readonly source: Source
  readonly file: SourceFile
  readonly isWholeSource: boolean
}

/** The size in bytes above which a file is streamed. */
const maxBufferedBytes = 256 * 1024
const chunkBytes = 64 * 1024

const nameOf = ({ file, isWholeSource }: FileOrigin): FsPath => (isWholeSource ? ("." as FsPath) : file.path)

const unreadableError = (origin: FileOrigin, fault: Fault): MountError => mountErrorOf(origin.request, nameOf(origin), fault)

export const changed = ({ file, isWholeSource, request: { hostPath } }: FileOrigin): MountError => {
  const detail = "was changed while it was copied"
  return isWholeSource
    ? new MountError({ hostPath, reason: "changed", detail: `it ${detail}` })
    : new MountError({ hostPath, reason: "changed", path: file.path, detail: `${JSON.stringify(file.path)} ${detail}` })
}

export const idOfContent = (origin: FileOrigin): Effect.Effect<string, MountError> => {
  const { file, source } = origin
  return Effect.flatMap(
    Effect.mapError(idOf(source.root.port, file.at), (fault) => unreadableError(origin, fault)),
    (found) => (found?.sizeBytes === file.sizeBytes ? Effect.succeed(found.id) : Effect.fail(changed(origin)))
  )
}

/** Returns the current content. The caller compares it with the content that was expected. */
export const contentOf = (
  origin: FileOrigin
): Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, MountError>, MountError> => {
  const { file, source } = origin
  const { port } = source.root
  const opened = Effect.mapError(port.open(file.at), (fault) => unreadableError(origin, fault))
  if (file.sizeBytes > maxBufferedBytes) {
    const bytes = Stream.unwrap(Effect.map(opened, (handle) => Read.chunks(handle, 0, handle.stat.sizeBytes, chunkBytes)))
    return Effect.succeed(
      Stream.mapError(bytes, (error) => (error instanceof MountError ? error : unreadableError(origin, error)))
    )
  }
  return Effect.catch(
    Effect.map(Read.wholeAt(port, file.at, maxBufferedBytes), ({ bytes }) => bytes),
    (fault) => Effect.fail(fault._tag === "LimitExceeded" ? changed(origin) : unreadableError(origin, fault))
  )
}
