/**
 * A filesystem whose files are somewhere else. Each operation is appended to a journal as a request, and a leaf answers with the result.
 * The journal records every operation in order. The caller does not need to know where the files are.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { type Algebra, Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { InvalidArgument } from "../model/FsError.ts"
import type { PathPolicy } from "../model/FsPath.ts"
import type { JournalError } from "./errors.ts"
import { Journal } from "./Journal.ts"
import type { Requests } from "./branch/model.ts"
import * as Port from "./branch/port.ts"
import * as RequestClients from "./branch/requests.ts"

export type {
  /** @since 0.1.0 */
  Answer,
  /** @since 0.1.0 */
  RequestError,
  /** @since 0.1.0 */
  RequestOptions,
  /** @since 0.1.0 */
  Requests,
  /** @since 0.1.0 */
  Sending,
  /** @since 0.1.0 */
  SendOptions,
  /** @since 0.1.0 */
  Single,
  /** @since 0.1.0 */
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
  /** The longest time a request may go without any response before it fails with Timeout. @default 2 minutes */
  readonly timeout?: Duration.Input | undefined
  /** The size of each chunk in bytes, for a content that is sent in several chunks. A whole number, at least 1. @default 65,536 */
  readonly chunkSize?: number | undefined
  /** True if the leaf understands the `Extended` entries besides the basic thirteen. @default false */
  readonly extended?: boolean | undefined
}

/**
 * The options of a filesystem that is backed by a leaf.
 *
 * @since 0.1.0
 */
export interface Options extends RequestsOptions {
  /**
   * The size in bytes above which a content is sent in chunks. A stream is always sent in chunks. A whole number, at least 0. @default
   * 1,048,576
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
 * Returns requests over the journal. They end with the scope; a request that is still waiting then fails with JournalError `closed`.
 *
 * @since 0.1.0
 */
export const makeRequests = (
  options: RequestsOptions = {}
): Effect.Effect<Requests, JournalError | InvalidArgument, Journal | Scope.Scope> =>
  Effect.map(requestClient(options), ({ request, send, stream, waitFor }) => ({ request, send, stream, waitFor }))

/**
 * Provides `Branch` over the current journal.
 *
 * @since 0.1.0
 */
export const layerRequests = (options: RequestsOptions = {}): Layer.Layer<Branch, JournalError | InvalidArgument, Journal> =>
  Layer.effect(Branch, makeRequests(options))

/**
 * Returns a whole filesystem that works through the journal.
 *
 * With `extended`, each call that changes something is one entry, and the leaf decides its outcome. (A copy takes several entries, and a
 * stream takes one entry per chunk.) So preconditions and atomic edits also hold against callers in other processes.
 *
 * With the thirteen basic entries alone, some calls fail with Unsupported, or with IoError of that code if the call's type has no
 * Unsupported. These calls are preconditions, the version of an append, writing without creating parents, creating directories, moves,
 * copies and attributes. An edit is then a read followed by a write.
 *
 * The caller's limits apply here. The leaf applies its own limits to an edit that is one entry. A temporary file of this branch (from
 * restoring a snapshot, for example) is named `.~branch-….tmp` on the leaf's side and is visible there.
 *
 * An interrupted call stops waiting. The leaf may still carry out its request, either completely or not at all.
 *
 * With `extended`, links are read, created and followed on this side, in the combined tree of all leaves. So `subdirectory` of a branch
 * confines links, and a call on a path through a link takes several entries. With the thirteen alone, the leaf follows links, and links
 * cannot be read or created here.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Algebra, JournalError | InvalidArgument, Journal | Scope.Scope> =>
  Effect.map(requestClient(options), (requestClient) =>
    makeAlgebra(
      Port.make(requestClient, {
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
