/**
 * A filesystem whose files may be in another process or on another machine. The branch appends each operation to a journal as
 * a request. A leaf carries out the request, and appends the answer. The journal records every operation in order.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { type Algebra, Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import type { FileStat } from "../model/Entry.ts"
import { alreadyExists, notFound } from "../model/Fault.ts"
import { type Fault, InvalidArgument } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { PathPolicy } from "../model/FsPath.ts"
import {
  type Attributes,
  type Backend,
  type Handle,
  type Links as PortLinks,
  mapPath,
  type Seen,
  type WriteHow
} from "../port/Backend.ts"
import { extend, type Handlers } from "../port/Request.ts"
import * as Locks from "../runtime/locks.ts"
import {
  FileDelete,
  type FileFault,
  FileList,
  FileMakeDirectory,
  FileMakeLink,
  FileMove,
  FileSetAttributes,
  FileStat as Stat
} from "./FileSystemEntry.ts"
import { Journal } from "./model.ts"
import * as BranchAccelerations from "./branch/calls.ts"
import { type Calls, faultOfRequestError, unsupported } from "./branch/calls.ts"
import type { Requests } from "./branch/model.ts"
import * as Answers from "./branch/answers.ts"
import * as RequestClients from "./branch/requests.ts"
import type { RequestClient } from "./branch/requests.ts"
import { childOf, describeLinkItself, resolutionTargetOf, targetOf } from "./branch/answers.ts"
import { createModes } from "./entries/kinds.ts"
import { faultOf, type Metadata, sizedStat, statOf } from "./entries/values.ts"
import type { JournalError } from "./errors.ts"

// Follows symbolic links in the branch, in the combined tree of all leaves. A leaf that serves only a part of the tree could
// follow a link to files that the branch does not show. The text of a link comes from the leaf and is not trusted.

const linkRefusal: Fault = { _tag: "AccessDenied", why: "link" }

const succeedOrFail = (text: string | Fault): Effect.Effect<string, Fault> =>
  typeof text === "string" ? Effect.succeed(text) : Effect.fail(text)

const makeLinks = ({ ask, links }: Calls): PortLinks => {
  const metadata = (path: FsPath.FsPath) => ask(Stat, { path, ...links })
  return {
    read: (path) => Effect.flatMap(metadata(path), (found) => succeedOrFail(targetOf(found))),
    follow: (path) =>
      Effect.flatMap(metadata(path), (found) =>
        found.noFollow === true ? Effect.fail(linkRefusal) : succeedOrFail(resolutionTargetOf(found))
      ),
    make: (path, target) => Effect.asVoid(ask(FileMakeLink, { path, target, ...links }))
  }
}

const lookupOf = (path: FsPath.FsPath, found: Metadata): Seen => {
  const stat: FileStat = statOf(path, describeLinkItself(found))
  const target = stat.kind === "symlink" && found.noFollow !== true ? resolutionTargetOf(found) : undefined
  return typeof target === "string" ? { stat, target } : { stat }
}

/**
 * Tests whether the fault means that no leaf has answered. After any other fault, the engine looks up each component of the
 * path.
 */
const isUnanswered = ({ _tag }: Fault): boolean => _tag === "Timeout" || _tag === "Unavailable"

/**
 * Requests the metadata of all components of a path with one entry. Returns `None` if the answer lists no components, as from
 * a leaf of an older version. Also returns `None` after a fault other than Timeout and Unavailable.
 */
const lookUpComponents =
  ({ ask, links }: Calls): NonNullable<Handlers["Look"]> =>
  ({ path }) =>
    Effect.matchEffect(ask(Stat, { path: Answers.toLeafPath(path), ...links, way: true }), {
      onFailure: (fault) => (isUnanswered(fault) ? Effect.fail(fault) : Effect.succeedNone),
      onSuccess: ({ way }) => {
        const names = FsPath.segments(path)
        if (way === undefined || way.length === 0 || way.length > names.length + 1) return Effect.succeedNone
        return Effect.succeedSome(way.map((found, i) => lookupOf(FsPath.fromSegments(names.slice(0, i)), found)))
      }
    })

// A backend whose operations are requests to a leaf. Large contents are read from the content store, so a later change does not
// affect the result of a read.

interface PortOptions {
  readonly extended: boolean
  readonly caseSensitive: boolean
  readonly name: string
  readonly root: string
  readonly policy: PathPolicy | undefined
  readonly streamingThreshold: number
}

type Mode = "create" | "replace" | "append"

/**
 * Returns the fault of a failed create. If the path is a directory, a leaf answers NotAFile, but a port must report
 * AlreadyExists.
 */
const createFault = (fault: FileFault): Fault => {
  const found = faultOf(fault)
  return found._tag === "NotAFile" ? alreadyExists : found
}

const makePort = (asking: RequestClient, options: PortOptions): Backend => {
  const { caseSensitive, extended, name, policy, root, streamingThreshold } = options
  const { journal } = asking
  const links = extended ? BranchAccelerations.unfollowedLinks : BranchAccelerations.followedLinks
  const calls = BranchAccelerations.make(asking, streamingThreshold, links)
  const { ask, stat } = calls

  const handleOf = (path: FsPath.FsPath, pieces: Answers.Pieces): Handle => {
    const read = Answers.makeReader(journal, pieces)
    const version = Answers.versionOf(pieces)
    return {
      stat: pieces.stat ?? sizedStat(path, pieces.size),
      read: (offset, length) => Effect.mapError(read(offset, length), faultOfRequestError),
      ...(version !== undefined && { version: Effect.succeed(version) })
    }
  }

  const write = <E, R>(
    path: FsPath.FsPath,
    bytes: Uint8Array | Stream.Stream<Uint8Array, E, R>,
    mode: Mode,
    how?: WriteHow
  ): Effect.Effect<FileStat, Fault | E, R> => {
    if (!extended) return Effect.fail(unsupported("writing without creating parents"))
    return Effect.flatMap(
      calls.write(
        {
          path,
          createMode: createModes[mode],
          createParents: false,
          ...links,
          fault: mode === "create" ? createFault : undefined
        },
        bytes,
        how?.commit
      ),
      (written) =>
        written.stat === undefined
          ? Effect.flatMap(stat(path), (found) => (found === undefined ? Effect.fail(notFound) : Effect.succeed(found)))
          : Effect.succeed(written.stat)
    )
  }

  const attributes: Attributes = {
    set: (path, { isCopy, mode, modifiedAt }) =>
      Effect.asVoid(
        ask(FileSetAttributes, { path, ...links, mode, modified: modifiedAt, isCopy: isCopy === true ? isCopy : undefined })
      )
  }

  const list: Backend["list"] = (path) => Effect.map(ask(FileList, { path, ...links }), ({ entries }) => entries.map(childOf))

  const backend: Backend = {
    info: { name, root: root, caseSensitive, readOnly: false, confinement: "virtual" },
    stat,
    list,
    open: (path) => Effect.map(calls.read(path, links), (pieces) => handleOf(path, pieces)),
    write,
    makeDirectory: (path) =>
      extended
        ? Effect.asVoid(ask(FileMakeDirectory, { path, ...links, parents: false, existOk: false }))
        : Effect.fail(unsupported("creating directories")),
    remove: (path) => Effect.asVoid(ask(FileDelete, { path, ...links })),
    rename: (path, to, { replace }) =>
      extended
        ? Effect.asVoid(ask(FileMove, { path, to, ...links, createParents: false, overwrite: replace ? true : undefined }))
        : Effect.fail(unsupported("moving")),
    ...(extended && { attributes, links: makeLinks(calls) }),
    // Each leaf decides by its own `preservePermissions` whether a copy keeps the mode.
    rules: { policy, decidesModeOfCopies: extended },
    locks: Locks.make({ caseSensitive }),
    perform: BranchAccelerations.makeWhole({
      calls,
      journal,
      extended,
      list,
      links: extended ? BranchAccelerations.refusedLinks : BranchAccelerations.followedLinks
    })
  }
  const mapped = mapPath(backend, Answers.toLeafPath, Answers.fromLeafPath)
  return extended ? { ...mapped, perform: extend(mapped.perform, { Look: lookUpComponents(calls) }) } : mapped
}

export type {
  Answer,
  RequestError,
  RequestOptions,
  Requests,
  Sending,
  SendOptions,
  Single,
  WaitOptions
} from "./branch/model.ts"

/**
 * The service that sends requests as journal entries and waits for their answers.
 *
 * @category services
 * @since 0.1.0
 */
export class Branch extends Context.Service<Branch, Requests>()("fs-algebra/Branch") {}

/**
 * The options for sending requests and waiting for answers.
 *
 * @since 0.1.0
 */
export interface RequestsOptions {
  /** The longest time without any response to a request. The request then fails with Timeout. @default 2 minutes */
  readonly timeout?: Duration.Input | undefined
  /** The size of a chunk of a large content, in bytes: a whole number of at least 1. @default 65,536 */
  readonly chunkSize?: number | undefined
  /** True if the leaf supports the `Extended` entries in addition to the thirteen basic entries. @default false */
  readonly extended?: boolean | undefined
}

/**
 * The options of a branch.
 *
 * @since 0.1.0
 */
export interface Options extends RequestsOptions {
  /**
   * The size in bytes above which a content is sent in chunks: a whole number of at least 0. A stream is always sent in chunks.
   * @default 1,048,576
   */
  readonly streamingThreshold?: number | undefined
  /** True if the leaf's filesystem distinguishes "a" from "A". @default true */
  readonly caseSensitive?: boolean | undefined
  /** The backend's name in messages. @default "Branch" */
  readonly name?: string | undefined
  /** The location of the files, for messages only. @default "/" */
  readonly root?: string | undefined
  /** The rules by which paths from the caller are parsed. @default "standard" */
  readonly policy?: PathPolicy | undefined
}

const operation = "Branch.make"

const requestClient = (
  options: Options
): Effect.Effect<RequestClients.RequestClient, JournalError | InvalidArgument, Journal | Scope.Scope> =>
  Effect.flatMap(
    Journal,
    (journal): Effect.Effect<RequestClients.RequestClient, JournalError | InvalidArgument, Scope.Scope> => {
      const { chunkSize = 65_536, extended = false, streamingThreshold = 0, timeout = "2 minutes" } = options
      const size = RequestClients.parseWholeNumber("chunkSize", chunkSize, 1, operation)
      if (size instanceof InvalidArgument) return Effect.fail(size)
      const threshold = RequestClients.parseWholeNumber("streamingThreshold", streamingThreshold, 0, operation)
      if (threshold instanceof InvalidArgument) return Effect.fail(threshold)
      const requestTimeout = RequestClients.parseTimeout(timeout, operation)
      if (requestTimeout instanceof InvalidArgument) return Effect.fail(requestTimeout)
      return RequestClients.make(journal, { chunkSize: size, extended, timeout: requestTimeout })
    }
  )

/**
 * Returns a service that sends requests over the journal. When the scope closes, waiting requests fail with JournalError
 * `closed`.
 *
 * @since 0.1.0
 */
export const makeRequests = (
  options: RequestsOptions = {}
): Effect.Effect<Requests, JournalError | InvalidArgument, Journal | Scope.Scope> =>
  Effect.map(requestClient(options), ({ request, send, stream, waitFor }) => ({ request, send, stream, waitFor }))

/**
 * Provides the service `Branch` over the journal of the context.
 *
 * @since 0.1.0
 */
export const layerRequests = (options: RequestsOptions = {}): Layer.Layer<Branch, JournalError | InvalidArgument, Journal> =>
  Layer.effect(Branch, makeRequests(options))

/**
 * Returns a filesystem that sends its operations to a leaf through the journal.
 *
 * With `extended`, most changes are one entry, and the leaf decides the outcome. So preconditions and atomic edits also hold
 * against callers in other processes. A copy takes several entries, and a stream takes one entry per chunk.
 *
 * With the thirteen basic entries alone, an edit is a read followed by a write. Preconditions, the version of an
 * append, writing without creating parents, creating directories, moves, copies and attributes fail with Unsupported.
 * If the error type of the call does not include Unsupported, the call fails with an IoError whose `code` is
 * `Unsupported`.
 *
 * The caller's limits apply in the branch. The leaf applies its own limits to an edit that is one entry. The branch may
 * create temporary files, for example to restore a snapshot. In the leaf's filesystem, such a temporary file has a name
 * like `.~branch-….tmp`, and is visible.
 *
 * An interrupted call stops waiting for the answer. The leaf may still carry out the request, either completely or not at
 * all.
 *
 * With `extended`, the branch reads, creates and follows links, in the combined tree of all leaves. So `subdirectory` of a
 * branch confines links, and a call on a path through a link takes several entries. With the thirteen entries alone, the
 * leaf follows links, and the branch cannot read or create them.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Algebra, JournalError | InvalidArgument, Journal | Scope.Scope> =>
  Effect.map(requestClient(options), (requestClient) =>
    makeAlgebra(
      makePort(requestClient, {
        caseSensitive: options.caseSensitive !== false,
        extended: options.extended === true,
        name: options.name ?? "Branch",
        policy: options.policy,
        root: options.root ?? "/",
        streamingThreshold: options.streamingThreshold ?? 1_048_576
      })
    )
  )

/**
 * Provides the filesystem that `make` returns.
 *
 * @example
 * ```ts
 * const read = Filesystem.Filesystem.use((fs) => fs.readString("notes/todo.md"))
 * yield* read.pipe(
 *   Effect.provide(Branch.layer({ extended: true })),
 *   Effect.provide(Leaf.layer({ extended: true })),
 *   Effect.provide(Journal.layerMemory)
 * ) // => "- [ ] tea\n- [ ] bread\n"
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<Filesystem, JournalError | InvalidArgument, Journal> =>
  Layer.effect(Filesystem, make(options))
