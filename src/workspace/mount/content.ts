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
import { failed, type SourceFile } from "./survey.ts"

export interface Origin {
  readonly request: Request
  readonly source: Source
  readonly file: SourceFile
  readonly isWhole: boolean
}

/** The size in bytes above which a file is streamed. */
const small = 256 * 1024
const chunk = 64 * 1024

const nameOf = ({ file, isWhole }: Origin): FsPath => (isWhole ? ("." as FsPath) : file.path)

const unreadable = (origin: Origin, fault: Fault): MountError => failed(origin.request, nameOf(origin), fault)

export const changed = ({ file, isWhole, request: { hostPath } }: Origin): MountError => {
  const detail = "was changed while it was copied"
  return isWhole
    ? new MountError({ hostPath, reason: "changed", detail: `it ${detail}` })
    : new MountError({ hostPath, reason: "changed", path: file.path, detail: `${JSON.stringify(file.path)} ${detail}` })
}

export const idOfContent = (origin: Origin): Effect.Effect<string, MountError> => {
  const { file, source } = origin
  return Effect.flatMap(
    Effect.mapError(idOf(source.root.port, file.at), (fault) => unreadable(origin, fault)),
    (found) => (found?.sizeBytes === file.sizeBytes ? Effect.succeed(found.id) : Effect.fail(changed(origin)))
  )
}

/** Returns the current content. The caller compares it with the content that was expected. */
export const contentOf = (origin: Origin): Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, MountError>, MountError> => {
  const { file, source } = origin
  const { port } = source.root
  const opened = Effect.mapError(port.open(file.at), (fault) => unreadable(origin, fault))
  if (file.sizeBytes > small) {
    const bytes = Stream.unwrap(Effect.map(opened, (handle) => Read.chunks(handle, 0, handle.stat.sizeBytes, chunk)))
    return Effect.succeed(Stream.mapError(bytes, (error) => (error instanceof MountError ? error : unreadable(origin, error))))
  }
  return Effect.catch(
    Effect.map(Read.wholeAt(port, file.at, small), ({ bytes }) => bytes),
    (fault) => Effect.fail(fault._tag === "LimitExceeded" ? changed(origin) : unreadable(origin, fault))
  )
}
