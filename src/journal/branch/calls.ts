import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { hunksOf } from "../../engine/diff.ts"
import * as Edit from "../../engine/edit.ts"
import * as Version from "../../engine/version.ts"
import type { DeleteResult, FileStat, TransferResult } from "../../model/Entry.ts"
import * as Faults from "../../model/Fault.ts"
import { type Fault, InvalidArgument, located, Timeout } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import * as Limits from "../../model/Limits.ts"
import { isBytes } from "../../model/realms.ts"
import type { Backend, Child, Commit, Edited, EditPlan, Whole } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import * as Correlation from "../Correlation.ts"
import {
  type CreateMode,
  FileDelete,
  FileEdit,
  FileFault,
  FileMakeDirectory,
  FileMove,
  FileRead,
  FileStat as Stat,
  FileWrite,
  type FileWritten
} from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../model.ts"
import { defined, type EntryClass, type Fields } from "../entries/kinds.ts"
import { faultOf, sizedStat, statOf } from "../entries/values.ts"
import { JournalError } from "../errors.ts"
import type { Answer, RequestError, Sending, Single } from "./model.ts"
import * as PiecesModule from "./answers.ts"
import { describeLinkItself, type Pieces } from "./answers.ts"
import { firstChunkFields, type RequestClient } from "./requests.ts"

const locatedFaultOf = (fault: FileFault): Fault => located(faultOf(fault), fault.error?.path ?? fault.path)

export const faultOfRequestError = (error: RequestError): Fault =>
  error._tag === "Timeout"
    ? { _tag: "Timeout", detail: error.detail }
    : error._tag === "JournalError"
      ? Faults.unavailable(error.message)
      : Faults.ioError(error.message)

export const unsupported = (feature: string): Fault => ({
  _tag: "Unsupported",
  feature,
  detail: `the thirteen basic entries do not support ${feature}; give the branch and the leaf \`extended: true\``
})

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
   * Writes a content. Sends a stream, or a content above the threshold, in chunks. `commit` wraps the step that makes the
   * content visible.
   */
  readonly write: <E, R>(
    write: WriteRequest,
    content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    commit: Commit | undefined
  ) => Effect.Effect<FileWritten, Fault | E, R>
}

/** The treatment of links by the leaf. A leaf that supports only the thirteen basic entries ignores this treatment. */
type LinkTreatment = { readonly links?: "refuse" | "leave" }

export const refusedLinks: LinkTreatment = { links: "refuse" }
export const unfollowedLinks: LinkTreatment = { links: "leave" }
export const followedLinks: LinkTreatment = {}

interface WriteRequest extends Omit<Sending, "correlationId" | "createMode"> {
  readonly path: FsPath
  readonly createMode: CreateMode
  /** Maps a FileFault of the leaf to a fault of the port. @default the fault of the leaf's backend */
  readonly fault?: ((fault: FileFault) => Fault) | undefined
}

/** The wrapper of an error from the caller's stream, which distinguishes the error from journal errors. */
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

type Handler<T extends Request.Tag> = NonNullable<Request.Handlers[T]>

interface CallContext {
  readonly calls: Calls
  readonly journal: Scrivener<Entry>
  readonly extended: boolean
  readonly list: Backend["list"]
  readonly links: LinkTreatment
}

/** Tests whether the fault means that the path leads through a link. The engine of the branch then follows the link. */
const isLink = (fault: Fault): boolean => fault._tag === "AccessDenied" && fault["why"] === "link"

const undefinedForLink = <A, E, R>(effect: Effect.Effect<A, Fault | E, R>): Effect.Effect<Option.Option<A>, Fault | E, R> =>
  Effect.catchIf(
    Effect.asSome(effect),
    (error): error is Fault => Faults.is(error) && isLink(error),
    () => Effect.succeedNone
  )

const unsupportedPreconditions = Effect.fail(unsupported("preconditions"))

const makeRead =
  ({ calls, journal, links }: CallContext): Handler<"Read"> =>
  ({ maxBytes, path }) =>
    Effect.flatMap(undefinedForLink(calls.read(path, links)), (answer): Effect.Effect<Option.Option<Whole>, Fault> => {
      if (Option.isNone(answer) || answer.value.size > maxBytes) return Request.declined
      const found = answer.value
      const version = PiecesModule.versionOf(found)
      return Effect.mapBoth(PiecesModule.readWhole(journal, found), {
        onFailure: faultOfRequestError,
        onSuccess: (bytes) =>
          Option.some({
            stat: found.stat ?? sizedStat(path, bytes.length),
            bytes,
            ...(version !== undefined && { version: Effect.succeed(version) })
          })
      })
    })

const faultForPath =
  (path: FsPath) =>
  (fault: FileFault): Fault =>
    fault.error === undefined || fault.error.path === path ? faultOf(fault) : locatedFaultOf(fault)

const isMissingItself = (fault: Fault): boolean => fault._tag === "NotFound" && fault["path"] === undefined

const makeWrite =
  ({ calls, extended, links }: CallContext): Handler<"Write"> =>
  <E, R>({ bytes, how, path, plan: { createParents, ifMatch, mode, version } }: Request.Write<E, R>) => {
    if (!extended) {
      if (ifMatch !== undefined) return unsupportedPreconditions
      if (!createParents) return Effect.fail(unsupported("writing without creating parents"))
      if (version && (mode === "append" || mode === "appendExisting"))
        return Effect.fail(unsupported("the version of an append"))
    }
    const write = { path, createMode: mode, ifMatch, createParents, version: version && extended, ...links }
    const written = calls.write(write, bytes, how?.commit)
    // A stream can be consumed only once, so the engine cannot repeat the write.
    return isBytes(bytes) ? undefinedForLink(written) : Effect.asSome(written)
  }

const tooLarge = (allowed: number, actual: number): Fault => ({
  _tag: "LimitExceeded",
  limit: "maxReadBytes",
  allowed: Math.floor(allowed),
  actual
})

const maxEditRetries = 8

/**
 * Edits a file by a read and a write. Used with the thirteen basic entries, and if the caller's limits are below the
 * standard limits. With `extended`, the write requires the version that was read. If the file has changed and `ifMatch` is
 * not set, the edit is retried.
 */
const editByReading = (
  means: CallContext,
  path: FsPath,
  edits: ReadonlyArray<Edit.Edit>,
  plan: EditPlan
): Effect.Effect<Edited, Fault> => {
  const { calls, extended } = means
  const { ifMatch, limits, version } = plan
  const whole = Effect.flatMap(calls.read(path, means.links), (found): Effect.Effect<Uint8Array, Fault> =>
    found.size > limits.maxReadBytes
      ? Effect.fail(tooLarge(limits.maxReadBytes, found.size))
      : Effect.mapError(PiecesModule.readWhole(means.journal, found), faultOfRequestError)
  )
  const read = Effect.catch(whole, (fault) =>
    Effect.fail<Fault>(
      fault._tag === "NotFound" && typeof ifMatch === "string" ? { _tag: "Conflict", expected: ifMatch, actual: null } : fault
    )
  )
  const attempt = (retriesLeft: number): Effect.Effect<Edited, Fault> =>
    Effect.gen(function* (): Effect.fn.Return<Edited, Fault> {
      const bytes = yield* read
      const before = extended ? Version.ofBytes(bytes) : undefined
      if (ifMatch !== undefined && before !== ifMatch) {
        return yield* Effect.fail<Fault>({ _tag: "Conflict", expected: ifMatch, actual: before })
      }
      const edited = yield* Edit.applyEdits(bytes, edits, path, limits.maxFileSize)
      if ("_tag" in edited) return yield* Effect.fail(edited)
      const answer: Edited = {
        bytesWritten: edited.bytes.length,
        replacements: edited.replacements,
        hunks: hunksOf(edited.diff),
        ...(version && { version: Version.ofBytes(edited.bytes) })
      }
      const write = { path, createMode: "replace", ifMatch: before, ...means.links } as const
      const written = calls.write<never, never>(write, edited.bytes, undefined)
      return yield* Effect.catch(Effect.as(written, answer), (fault) =>
        fault._tag === "Conflict" && ifMatch === undefined && retriesLeft > 0 ? attempt(retriesLeft - 1) : Effect.fail(fault)
      )
    })
  return extended || ifMatch === undefined ? attempt(maxEditRetries) : unsupportedPreconditions
}

/**
 * Tests whether the caller's limits are at least the standard limits. If so, the leaf may apply its own limits to the edit.
 */
const hasStandardLimits = ({ maxFileSize, maxReadBytes }: Limits.LimitsShape): boolean =>
  maxFileSize >= Limits.standard.maxFileSize && maxReadBytes >= Limits.standard.maxReadBytes

const makeEdit =
  (means: CallContext): Handler<"Edit"> =>
  ({ edits, path, plan }) => {
    if (!means.extended || !hasStandardLimits(plan.limits)) return undefinedForLink(editByReading(means, path, edits, plan))
    const { ifMatch, version } = plan
    const edited = Effect.map(
      means.calls.ask(FileEdit, {
        path,
        ...means.links,
        edits: edits.map(({ match, newText, oldText }) => ({ oldText, newText, ...(match !== undefined && { match }) })),
        ifMatch,
        version: version ? true : undefined
      }),
      ({ bytesWritten, diff, replacements, version }): Edited => ({
        bytesWritten,
        replacements,
        hunks: hunksOf(diff),
        ...(version !== undefined && { version })
      })
    )
    return undefinedForLink(edited)
  }

/**
 * Tests whether the fault means that the two paths belong to different leaves. The engine of the branch then copies the source
 * and deletes it.
 */
const isAcrossLeaves = (fault: Fault): boolean => fault._tag === "IoError" && fault["code"] === "EXDEV"

const nothingDeleted: DeleteResult = { deleted: 0, directories: 0 }

/** The placeholder for the entries of a directory that cannot be listed, so that the directory does not count as empty. */
const unlistedChildren: ReadonlyArray<Child> = [{ name: "?", kind: "file", addressable: true }]

const makeRemove =
  ({ calls, extended, links, list }: CallContext): Handler<"Remove"> =>
  ({ path, plan: { ifMatch, missing, recursive } }) => {
    if (!extended && ifMatch !== undefined) return unsupportedPreconditions
    const removed = Effect.map(
      calls.ask(FileDelete, { path, ...links, recursive: recursive ? true : undefined, ifMatch }, faultForPath(path)),
      ({ deletedCount, directories = 0 }) => ({ deleted: deletedCount, directories })
    )
    return Effect.catch(Effect.asSome(removed), (fault): Effect.Effect<Option.Option<DeleteResult>, Fault> => {
      if (missing === "ignore" && isMissingItself(fault)) return Effect.succeedSome(nothingDeleted)
      if (isLink(fault)) return Request.declined
      if (fault._tag !== "DirectoryNotEmpty" || recursive) return Effect.fail(fault)
      // For the branch, a directory that contains only temporary files is empty. The engine of the branch removes these files
      // and then the directory.
      return Effect.flatMap(
        Effect.orElseSucceed(list(path), () => unlistedChildren),
        (children) => (children.every(({ name }) => TemporaryNames.isOwnName(name)) ? Request.declined : Effect.fail(fault))
      )
    })
  }

export const makeWhole = (means: CallContext): Request.Perform => {
  const { calls, extended, links } = means
  return Request.handlers({
    Read: makeRead(means),
    Write: makeWrite(means),
    Edit: makeEdit(means),
    Remove: makeRemove(means),
    RemoveTree: ({ path }) =>
      Effect.map(
        calls.ask(FileDelete, { path, ...links, recursive: true }, faultForPath(path)),
        ({ deletedCount, directories = 0 }) => Option.some({ deleted: deletedCount, directories })
      ),
    MakeDirectory: ({ path, plan: { existOk, parents } }) =>
      extended
        ? undefinedForLink(
            Effect.asVoid(
              calls.ask(FileMakeDirectory, {
                path,
                ...links,
                parents: parents ? undefined : false,
                existOk: existOk ? undefined : false
              })
            )
          )
        : Effect.fail(unsupported("creating directories")),
    Move: ({ path, plan: { createParents, overwrite }, to }) =>
      extended
        ? Effect.catch(
            Effect.map(
              calls.ask(
                FileMove,
                {
                  path,
                  to,
                  ...links,
                  overwrite: overwrite ? true : undefined,
                  createParents: createParents ? undefined : false
                },
                locatedFaultOf
              ),
              ({ bytes, directories, files }) => Option.some<TransferResult>({ files, directories, bytes })
            ),
            (fault) => (isAcrossLeaves(fault) || isLink(fault) ? Request.declined : Effect.fail(fault))
          )
        : Effect.fail(unsupported("moving"))
  })
}
