import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, InvalidArgument, Timeout } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Commit } from "../../port/Backend.ts"
import * as Correlation from "../Correlation.ts"
import { defined, type EntryClass, type Fields } from "../entries/kinds.ts"
import { JournalError } from "../errors.ts"
import { type CreateMode, FileFault, FileRead, FileStat as Stat, FileWrite, type FileWritten } from "../FileSystemEntry.ts"
import { faultOf, faultOfRequestError } from "./faults.ts"
import type { Answer, RequestError, Sending, Single } from "./model.ts"
import type { Pieces } from "./pieces.ts"
import type { RequestClient } from "./requests.ts"
import { firstChunkFields } from "./sending.ts"
import { describeLinkItself, statOf } from "./stats.ts"

export interface Calls {
  readonly links: LinkTreatment
  readonly ask: <E extends Single>(
    type: EntryClass<E>,
    fields: Fields<Omit<E, "_tag" | "correlationId">>,
    fault?: (fault: FileFault) => Fault
  ) => Effect.Effect<Exclude<Answer<E>, FileFault>, Fault>
  readonly stat: (path: FsPath) => Effect.Effect<FileStat | undefined, Fault>
  readonly read: (path: FsPath, links: LinkTreatment) => Effect.Effect<Pieces, Fault>
  /**
   * Writes a content. A content above the threshold, or a stream, is sent in chunks. `commit` wraps the step that makes the content
   * visible.
   */
  readonly write: <E, R>(
    write: WriteRequest,
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    commit: Commit | undefined
  ) => Effect.Effect<FileWritten, Fault | E, R>
}

/** The treatment of links by the leaf. A leaf that knows only the thirteen basic entries always follows them. */
export type LinkTreatment = { readonly links?: "refuse" | "leave" }

export const refusedLinks: LinkTreatment = { links: "refuse" }
export const unfollowedLinks: LinkTreatment = { links: "leave" }
export const followedLinks: LinkTreatment = {}

export interface WriteRequest extends Omit<Sending, "correlationId" | "createMode"> {
  readonly path: FsPath
  readonly createMode: CreateMode
  /** Maps a FileFault of the leaf to a fault of the port. @default the fault of the leaf's backend */
  readonly fault?: ((fault: FileFault) => Fault) | undefined
}

/** A wrapper for the stream's own error, to tell it from the errors of the journal. */
class SourceFailure<E> {
  readonly error: E
  constructor(error: E) {
    this.error = error
  }
}

const isRequestError = (error: unknown): error is RequestError =>
  error instanceof JournalError || error instanceof Timeout || error instanceof InvalidArgument

const failOnFault = <A extends { readonly _tag: string }>(
  answer: Effect.Effect<A | FileFault, RequestError>,
  fault: (fault: FileFault) => Fault = faultOf
): Effect.Effect<Exclude<A, FileFault>, Fault> =>
  Effect.matchEffect(answer, {
    onFailure: (error) => Effect.fail(faultOfRequestError(error)),
    onSuccess: (end) => (end instanceof FileFault ? Effect.fail(fault(end)) : Effect.succeed(end as Exclude<A, FileFault>))
  })

export const make = (asking: RequestClient, streamingThreshold: number, links: LinkTreatment): Calls => {
  const ask: Calls["ask"] = (type, fields, fault) =>
    Effect.flatMap(Correlation.generate, (correlationId) =>
      failOnFault(asking.request(new type(defined({ correlationId, ...fields }) as never)), fault)
    )

  const send = <E, R>(
    write: WriteRequest,
    content: Stream.Stream<Uint8Array, E, R>,
    commit: Commit | undefined
  ): Effect.Effect<FileWritten, Fault | E, R> =>
    Effect.flatMap(Correlation.generate, (correlationId) => {
      const markedContent = Stream.mapError(content, (error) => new SourceFailure(error))
      const finish = (publish: Effect.Effect<FileWritten | FileFault, RequestError>): Effect.Effect<FileWritten, Fault> =>
        commit === undefined ? failOnFault(publish, write.fault) : commit(failOnFault(publish, write.fault))
      return Effect.matchEffect(asking.sendChunks({ ...write, correlationId }, markedContent, finish), {
        onFailure: (error): Effect.Effect<never, Fault | E> =>
          Effect.fail(
            error instanceof SourceFailure ? error.error : isRequestError(error) ? faultOfRequestError(error) : error
          ),
        onSuccess: (end) => (end instanceof FileFault ? Effect.fail((write.fault ?? faultOf)(end)) : Effect.succeed(end))
      })
    })

  return {
    ask,
    links,
    stat: (path) =>
      Effect.catch(
        Effect.map(ask(Stat, { path, ...links }), (found): FileStat | undefined =>
          statOf(path, links.links === "leave" ? describeLinkItself(found) : found)
        ),
        (fault) => (fault._tag === "NotFound" ? Effect.succeed(undefined) : Effect.fail(fault))
      ),
    read: (path, links) =>
      Effect.flatMap(Correlation.generate, (correlationId) =>
        Effect.matchEffect(asking.readPieces(new FileRead({ correlationId, path, ...links })), {
          onFailure: (error) => Effect.fail(faultOfRequestError(error)),
          onSuccess: (found) => ("_tag" in found ? Effect.fail(faultOf(found)) : Effect.succeed(found))
        })
      ),
    write: <E, R>(write: WriteRequest, content: Uint8Array | Stream.Stream<Uint8Array, E, R>, commit: Commit | undefined) => {
      if (!isBytes(content)) return send(write, content, commit)
      if (content.length > streamingThreshold) return send(write, Stream.succeed(content), commit)
      const written = ask(FileWrite, { ...firstChunkFields(write), content }, write.fault)
      return commit === undefined ? written : commit(written)
    }
  }
}
