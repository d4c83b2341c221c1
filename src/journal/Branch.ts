/**
 * A filesystem that is somewhere else: what is asked of it is appended to a journal, and what a leaf answers there is the result. Every
 * operation is recorded in the order in which it was asked, and who asks need not know where the files are.
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
import * as Asking from "./branch/requests.ts"

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
 * For who asks by entries: appends them, and waits for what is answered.
 *
 * @since 0.1.0
 */
export class Branch extends Context.Service<Branch, Requests>()("fs-algebra/Branch") {}

/**
 * How a branch sends what it asks for, and how long it waits.
 *
 * @since 0.1.0
 */
export interface RequestsOptions {
  /** How long nothing may be heard of a request before it fails with Timeout. @default 2 minutes */
  readonly timeout?: Duration.Input | undefined
  /** Bytes of each chunk of a content that is sent in several. A whole number, at least 1. @default 65,536 */
  readonly chunkSize?: number | undefined
  /** The leaf knows what is beyond the thirteen. @default false */
  readonly extended?: boolean | undefined
}

/**
 * How a filesystem over a leaf sends, and what it knows of the leaf.
 *
 * @since 0.1.0
 */
export interface Options extends RequestsOptions {
  /**
   * Bytes. What is larger is sent in chunks, and so is what comes as a stream. A whole number, at least 0. @default 1,048,576
   */
  readonly streamingThreshold?: number | undefined
  /** Whether the leaf's files tell "a" from "A". @default true */
  readonly caseSensitive?: boolean | undefined
  /** For people. @default "Branch" */
  readonly name?: string | undefined
  /** For people: where the files are. @default "/" */
  readonly root?: string | undefined
  /** How a caller's paths are read. @default "standard" */
  readonly policy?: PathPolicy | undefined
}

const operation = "Branch.make"

const asking = (options: Options): Effect.Effect<Asking.Asking, JournalError | InvalidArgument, Journal | Scope.Scope> =>
  Effect.flatMap(Journal, (journal): Effect.Effect<Asking.Asking, JournalError | InvalidArgument, Scope.Scope> => {
    const { chunkSize = 65_536, extended = false, streamingThreshold = 0, timeout = "2 minutes" } = options
    const size = Asking.wholeOf("chunkSize", chunkSize, 1, operation)
    if (size instanceof InvalidArgument) return Effect.fail(size)
    const threshold = Asking.wholeOf("streamingThreshold", streamingThreshold, 0, operation)
    if (threshold instanceof InvalidArgument) return Effect.fail(threshold)
    const patience = Asking.timeoutOf(timeout, operation)
    if (patience instanceof InvalidArgument) return Effect.fail(patience)
    return Asking.make(journal, { chunkSize: size, extended, timeout: patience })
  })

/**
 * Requests over the journal, until the scope ends; what is waited for then fails with JournalError `closed`.
 *
 * @since 0.1.0
 */
export const makeRequests = (
  options: RequestsOptions = {}
): Effect.Effect<Requests, JournalError | InvalidArgument, Journal | Scope.Scope> =>
  Effect.map(asking(options), ({ request, send, stream, waitFor }) => ({ request, send, stream, waitFor }))

/**
 * A branch that is asked by its caller alone, over the journal in force.
 *
 * @since 0.1.0
 */
export const layerRequests = (options: RequestsOptions = {}): Layer.Layer<Branch, JournalError | InvalidArgument, Journal> =>
  Layer.effect(Branch, makeRequests(options))

/**
 * A whole filesystem through the journal. With `extended` every call that changes something is one entry (a copy several, a stream its
 * chunks), decided where the files are: so a precondition holds, and an edit is whole, also against callers in other processes.
 *
 * With the thirteen alone what they cannot say fails with Unsupported, or IoError of that code where a call's type does not name it:
 * preconditions, the version of an append, writing without making parents, directories made, moves, copies, attributes. An edit is then a
 * read and a write.
 *
 * Limits are those of who calls; what is edited in one entry the leaf edits under its own. What is put aside here (when a snapshot is
 * brought back, say) bears a name `.~branch-….tmp` where the files are, which shows there.
 *
 * A call that is interrupted is no longer waited for; what it asked for may still be done, wholly or not at all.
 *
 * With `extended` links are read, made and followed here, in the tree of all leaves: so `subdirectory` of a branch confines them, and a
 * call on a path through a link is several entries. With the thirteen alone they are followed by the leaf, and cannot be seen or made here.
 *
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<Algebra, JournalError | InvalidArgument, Journal | Scope.Scope> =>
  Effect.map(asking(options), (asking) =>
    makeAlgebra(
      Port.make(asking, {
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
 * The filesystem of `make`.
 *
 * @since 0.1.0
 */
export const layer = (options: Options = {}): Layer.Layer<Filesystem, JournalError | InvalidArgument, Journal> =>
  Layer.effect(Filesystem, make(options))
