/** A filesystem whose requests go to the owner of a workspace. */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type * as Sharding from "effect/cluster/Sharding"
import { RpcClientDefect, RpcClientError } from "effect/rpc/RpcClientError"
import { type Algebra, Filesystem, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import { type BackendError, type FsError, InvalidArgument } from "../../model/FsError.ts"
import * as Connection from "../../remote/connection.ts"
import * as Port from "../../remote/port.ts"
import type { Info } from "../../remote/protocol.ts"
import * as Searches from "../../remote/searches.ts"
import { elapsedMillis } from "../../runtime/elapsed.ts"
import { isWorkspaceName } from "../stores/heads.ts"
import type { ClientOptions } from "../Workspaces.ts"
import { entity, isUpload, movedDetail, ownerHeader, sentHeader } from "./entity.ts"

const operation = "Workspaces.client"

/** The maximum age of the last answer, in milliseconds, at which the owner of the workspace counts as known. */
const quietMillis = 1000

const maxFirsts = 10_000

/** The maximum age of a reading of the owner's clock, in milliseconds. The owner's clock may be set meanwhile. */
const maxReadingMillis = 60_000

/** The maximum difference between the advances of two clocks, in milliseconds, at which both count as undisturbed. */
const maxDriftMillis = 1000

/** The time of the owner, and the times of this machine when it arrived, in milliseconds. */
interface Reading {
  readonly theirs: number
  readonly wall: number
  readonly elapsed: number
}

const lost = (message: string, cause: unknown): RpcClientError =>
  new RpcClientError({ reason: new RpcClientDefect({ message, cause }) })

const messages: Record<string, string> = {
  MailboxFull: "the owner of the workspace has too many requests; try again later",
  EntityNotAssignedToRunner: "the workspace has no owner now",
  AlreadyProcessingMessage: "the owner of the workspace is already answering this request",
  PersistenceError: "the storage of the cluster does not answer"
}

/** Converts an error of the cluster to the error of a lost connection, so that the request is sent again. */
const toClientError = (error: { readonly _tag: string }): FsError | RpcClientError =>
  error._tag in messages ? lost(messages[error._tag]!, error) : (error as FsError)

const moved = lost("the workspace moved to another runner", undefined)

/** Converts an interruption to the error `moved`: the owner has ended, and the caller itself was not interrupted. */
const orMoved = <E>(cause: Cause.Cause<E>): Cause.Cause<E | RpcClientError> =>
  Cause.hasInterruptsOnly(cause) ? Cause.fail(moved) : cause

/** Copies the bytes of a request. A runner in this process would keep the bytes, and their owner may change them later. */
const withOwnBytes = (payload: object): object =>
  "bytes" in payload ? { ...payload, bytes: new Uint8Array(payload.bytes as Uint8Array) } : payload

export const client = (
  workspace: string,
  options: ClientOptions
): Effect.Effect<Algebra, BackendError | InvalidArgument, Sharding.Sharding> =>
  Effect.gen(function* () {
    if (!isWorkspaceName(workspace)) {
      const detail = "the name of a workspace must have 1 to 256 bytes and no control characters"
      return yield* new InvalidArgument({ operation, path: "", argument: "workspace", detail })
    }
    const calls = (yield* entity.client)(workspace) as unknown as Record<
      string,
      (payload: unknown, options: unknown) => Effect.Effect<unknown, never> & Stream.Stream<unknown, never>
    >
    const call = (tag: string, payload: object, callOptions: unknown) => {
      const answer = calls[tag]!(withOwnBytes(payload), callOptions)
      return Stream.isStream(answer)
        ? Stream.catchCause(Stream.mapError(answer, toClientError), (cause) => Stream.failCause(orMoved(cause)))
        : Effect.catchCause(Effect.mapError(answer, toClientError), (cause) => Effect.failCause(orMoved(cause)))
    }

    let owner: string | undefined
    let heardAt = 0
    let reading: Reading | undefined
    const heard = Effect.map(elapsedMillis, (now) => void (heardAt = now))
    const ask = (payload: object, callOptions: object | undefined) =>
      Effect.tap(
        call("port.info", payload, callOptions) as Effect.Effect<Info, FsError | RpcClientError>,
        ({ instance, time }) =>
          Effect.map(Effect.all([Clock.currentTimeMillis, elapsedMillis]), ([wall, elapsed]) => {
            owner = instance
            heardAt = elapsed
            reading = { theirs: time ?? wall, wall, elapsed }
          })
      )
    /**
     * Returns the owner that received an upload. Without recent answers, asks the owner first, because the workspace may have
     * moved.
     */
    const currentOwner = Effect.flatMap(elapsedMillis, (now) =>
      owner !== undefined && now - heardAt < quietMillis
        ? Effect.succeed(owner)
        : Effect.map(ask({}, undefined), ({ instance }) => instance)
    )
    /**
     * Returns the time of the owner's clock, or an earlier time. The owner compares this time with the times of its answers.
     * The clock of this machine may differ from the owner's by hours, be set, or stop while the machine is suspended.
     */
    const ownersTime: Effect.Effect<number, FsError | RpcClientError> = Effect.flatMap(
      Effect.all([Clock.currentTimeMillis, elapsedMillis]),
      ([wall, elapsed]) => {
        if (reading !== undefined) {
          const age = elapsed - reading.elapsed
          const isDisturbed = Math.abs(wall - reading.wall - age) > maxDriftMillis
          if (!isDisturbed && age < maxReadingMillis) return Effect.succeed(reading.theirs + age)
        }
        return Effect.map(ask({}, undefined), ({ time }) => time ?? wall)
      }
    )
    /**
     * The headers of each change by its id, the oldest change first: the time of the first sending and, for an upload, the
     * owner.
     */
    const firsts = new Map<string, Record<string, string>>()
    const sendChange = (
      tag: string,
      payload: { readonly id: string },
      callOptions: { readonly headers?: Record<string, string> } | undefined
    ) =>
      Effect.gen(function* () {
        const headers = firsts.get(payload.id) ?? {
          [sentHeader]: String(yield* ownersTime),
          ...(isUpload(tag) && { [ownerHeader]: yield* currentOwner })
        }
        firsts.set(payload.id, headers)
        if (firsts.size > maxFirsts) for (const id of firsts.keys()) if (firsts.delete(id)) break
        const answer = call(tag, payload, { ...callOptions, headers: { ...callOptions?.headers, ...headers } })
        return yield* Effect.tapError(Effect.tap(answer as Effect.Effect<unknown, FsError | RpcClientError>, heard), (error) =>
          Effect.sync(() => {
            if (error._tag === "Unavailable" && error.detail === movedDetail) owner = undefined
          })
        )
      })
    const send = (tag: string, payload: object, callOptions: object | undefined) =>
      "id" in payload && tag !== "port.cancel"
        ? sendChange(tag, payload as { readonly id: string }, callOptions)
        : tag === "port.info"
          ? ask(payload, callOptions)
          : call(tag, payload, callOptions)
    const connection = yield* Connection.over(send as unknown as Connection.Client, {
      timeout: options.timeout ?? "45 seconds",
      isShared: true
    })
    const info = yield* Connection.greet(connection, operation, "runner")
    return Searches.make(connection, makeAlgebra(Port.make(connection, info)))
  })

export const layer = (
  workspace: string,
  options: ClientOptions
): Layer.Layer<Filesystem, BackendError | InvalidArgument, Sharding.Sharding> =>
  Layer.effect(Filesystem, client(workspace, options))
