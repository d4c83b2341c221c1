/** A filesystem whose requests go to the owner of a workspace. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type * as Sharding from "effect/cluster/Sharding"
import { RpcClientDefect, RpcClientError } from "effect/rpc/RpcClientError"
import { type Algebra, Filesystem, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import { type BackendError, type FsError, type Fault, InvalidArgument, promote, Unavailable } from "../../model/FsError.ts"
import * as Connection from "../../remote/connection.ts"
import * as Port from "../../remote/port.ts"
import { version } from "../../remote/protocol.ts"
import * as Searches from "../../remote/searches.ts"
import { isWorkspaceName } from "../stores/heads.ts"
import type { ClientOptions } from "../Workspaces.ts"
import { entity } from "./entity.ts"

const operation = "Workspaces.client"

const lost = (message: string, cause: unknown): RpcClientError =>
  new RpcClientError({ reason: new RpcClientDefect({ message, cause }) })

const messages: Record<string, string> = {
  MailboxFull: "the owner of the workspace has too many requests",
  EntityNotAssignedToRunner: "the workspace has no owner now",
  AlreadyProcessingMessage: "the owner of the workspace answers this request already",
  PersistenceError: "the storage of the cluster does not answer"
}

/** Turns failures of the cluster into the failure of a lost connection, after which a request is sent again. */
const toClientError = (error: { readonly _tag: string }): FsError | RpcClientError =>
  error._tag in messages ? lost(messages[error._tag]!, error) : (error as FsError)

const moved = lost("the workspace moved to another runner", undefined)

/** An owner that ends interrupts its requests. The caller is not interrupted. */
const orMoved = <E>(cause: Cause.Cause<E>): Cause.Cause<E | RpcClientError> =>
  Cause.hasInterruptsOnly(cause) ? Cause.fail(moved) : cause

const toBackendError = (fault: Fault): BackendError => {
  const error = promote(fault, operation, "")
  return error._tag === "IoError" || error._tag === "Timeout" || error._tag === "Unavailable"
    ? error
    : new Unavailable({ operation, path: "", detail: `the runner refused the client: ${error.message}` })
}

export const client = (
  workspace: string,
  options: ClientOptions
): Effect.Effect<Algebra, BackendError | InvalidArgument, Sharding.Sharding> =>
  Effect.gen(function* () {
    if (!isWorkspaceName(workspace)) {
      const detail = "a name of a workspace has 1 to 256 bytes and no control characters"
      return yield* new InvalidArgument({ operation, path: "", argument: "workspace", detail })
    }
    const calls = (yield* entity.client)(workspace) as unknown as Record<
      string,
      (payload: unknown, options: unknown) => Effect.Effect<unknown, never> & Stream.Stream<unknown, never>
    >
    const send = (tag: string, payload: unknown, callOptions: unknown) => {
      const answer = calls[tag]!(payload, callOptions)
      return Stream.isStream(answer)
        ? Stream.catchCause(Stream.mapError(answer, toClientError), (cause) => Stream.failCause(orMoved(cause)))
        : Effect.catchCause(Effect.mapError(answer, toClientError), (cause) => Effect.failCause(orMoved(cause)))
    }
    const connection = yield* Connection.over(send as unknown as Connection.Client, {
      timeout: options.timeout ?? "45 seconds"
    })
    const info = yield* Effect.mapError(connection.hello, toBackendError)
    if (info.version !== version) {
      const detail = `the runner speaks version ${info.version} of the protocol, and this client speaks version ${version}`
      return yield* new Unavailable({ operation, path: "", detail })
    }
    return Searches.make(connection, makeAlgebra(Port.make(connection, info)))
  })

export const layer = (
  workspace: string,
  options: ClientOptions
): Layer.Layer<Filesystem, BackendError | InvalidArgument, Sharding.Sharding> =>
  Layer.effect(Filesystem, client(workspace, options))
