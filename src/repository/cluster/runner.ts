/** The owner of a workspace: answers the requests of all its clients with the operations of a repository. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Entity from "effect/cluster/Entity"
import type * as Sharding from "effect/cluster/Sharding"
import * as RpcSchema from "effect/rpc/RpcSchema"
import { make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import { unavailable } from "../../model/Fault.ts"
import { type FsError, InvalidArgument, promote, Unavailable } from "../../model/FsError.ts"
import { Limits } from "../../model/Limits.ts"
import type * as Changes from "../../remote/changes.ts"
import { lineageHeader } from "../../remote/choice.ts"
import { Authentication, FilesystemRpcs, type Info } from "../../remote/protocol.ts"
import { handlers as remoteHandlers } from "../../remote/server.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { sha256 } from "../../runtime/hash.ts"
import { BlobStore } from "../BlobStore.ts"
import * as Objects from "../format/objects.ts"
import { HeadStore } from "../HeadStore.ts"
import { makePort } from "../port.ts"
import { toFault } from "../drafts.ts"
import { isWorkspaceName } from "../stores/heads.ts"
import * as Workspace from "../workspace.ts"
import type { RunnerOptions } from "../Workspaces.ts"
import { entity, isUpload, movedDetail, ownerHeader, sentHeader } from "./entity.ts"

/**
 * The minimum idle time. This time is longer than a client's `quietMillis`, so a client asks for the owner again after a
 * release.
 */
const minIdleTime = Duration.seconds(5)

/** The number of hexadecimal digits of the ids of changes and requests. */
const idDigits = 32

const defaultCacheBytes = 8 * 1024 * 1024

type Answers = ReturnType<typeof remoteHandlers>
interface Opened {
  readonly answers: Answers
  readonly instance: string
  readonly workspace: Workspace.Workspace
}
interface Request {
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly payload: object
}
type Answer = (payload: object) => Effect.Effect<unknown, FsError> & Stream.Stream<unknown, FsError>

const replacedDetail = "the workspace was deleted and made again since the client connected; connect again to use the new one"

/** The call that is being answered. */
const CurrentCall = Context.Reference<{ readonly tag: string; readonly sentAt: number } | undefined>(
  "fs-algebra/repository/CurrentCall",
  { defaultValue: () => undefined }
)

/** The codecs of the answers that a workspace keeps, by the tags of the calls. */
const codecs = new Map(
  [...FilesystemRpcs.requests].flatMap(([tag, { successSchema }]) =>
    RpcSchema.isStreamSchema(successSchema)
      ? []
      : [[tag, Schema.fromJsonString(Schema.toCodecJson(successSchema)) as Schema.Codec<unknown, string>] as const]
  )
)

/** Makes the changes of a call in one commit together with its answer, so that no runner makes them a second time. */
const makeOnce =
  (workspace: Workspace.Workspace): Changes.Around =>
  <A, E>(id: string, request: string, change: Effect.Effect<A, E>) =>
    Effect.flatMap(CurrentCall, (call): Effect.Effect<A, E | FsError> => {
      if (call === undefined || isUpload(call.tag)) return change
      const { sentAt, tag } = call
      const codec = codecs.get(tag) as Schema.Codec<A, string>
      const unreadable = unavailable(
        "the change was made, but another version of fs-algebra has kept its answer; read the file to see the result"
      )
      return workspace.once<A, E, never, FsError>(
        {
          id: sha256(Buffer.from(id)).slice(0, idDigits),
          request: request.slice(0, idDigits),
          sentAt,
          encode: Schema.encodeSync(codec),
          decode: (text) => Effect.mapError(Schema.decodeUnknownEffect(codec)(text), () => unreadable)
        },
        change,
        (fault) => promote(fault, tag, "")
      )
    })

/** Opens a workspace, and returns the answers to its requests. */
const open = (name: string, options: RunnerOptions): Effect.Effect<Opened, FsError, BlobStore | HeadStore | Scope.Scope> =>
  Effect.gen(function* () {
    if (!isWorkspaceName(name)) {
      const detail = `no workspace can have the name ${JSON.stringify(name.slice(0, 80))}`
      return yield* new InvalidArgument({ operation: "Workspaces", path: "", argument: "workspace", detail })
    }
    const objects = Objects.make(yield* BlobStore, { cacheBytes: options.cacheBytes ?? defaultCacheBytes })
    const workspace = yield* Effect.mapError(
      Workspace.make(objects, yield* HeadStore, {
        workspace: name,
        author: options.author ?? "fs-algebra",
        durability: options.durability ?? "batched"
      }),
      (error) => promote(toFault(error), "Workspaces", "")
    )
    // The identity is the name, so that the next owner of the workspace gives its files the same identities.
    const port = makePort(workspace, { name, identity: name })
    const answers = remoteHandlers(makeAlgebra(port), yield* Effect.scope, yield* Limits, makeOnce(workspace))
    const { instance } = yield* (answers["port.info"] as (payload: object) => Effect.Effect<Info>)({})
    return { answers, instance, workspace }
  })

/**
 * Answers requests with the workspace of the current entity. The first request opens the workspace. If the stores do not answer,
 * the request fails, and the next request tries again.
 */
const owner = (options: RunnerOptions) =>
  Effect.gen(function* () {
    const { entityId } = yield* Entity.CurrentAddress
    const context = yield* Effect.context<BlobStore | HeadStore | Scope.Scope>()
    const scope = yield* Effect.scope
    const lock = Semaphore.makeUnsafe(1)
    let opened: (Opened & { readonly inner: Scope.Closeable }) | undefined
    const attempt = Effect.gen(function* () {
      if (opened !== undefined) yield* Scope.close(opened.inner, Exit.void)
      opened = undefined
      const inner = yield* Scope.fork(scope)
      const answers = yield* Effect.onError(
        Effect.provideContext(Scope.provide(open(entityId, options), inner), context),
        (cause) => Scope.close(inner, Exit.failCause(cause))
      )
      return (opened = { ...answers, inner })
    })
    /** Tests whether the workspace is open. A workspace that was deleted and made again is opened anew. */
    const isUsable = (): boolean => opened?.workspace.isReplaced() === false
    const openOnce = Effect.suspend(() =>
      isUsable()
        ? Effect.succeed(opened!)
        : lock.withPermits(1)(Effect.suspend(() => (isUsable() ? Effect.succeed(opened!) : attempt)))
    )
    const out: Record<string, (request: Request) => unknown> = {}
    for (const [tag, rpc] of FilesystemRpcs.requests) {
      const answer = ({ headers, payload }: Request): Effect.Effect<ReturnType<Answer>, FsError> =>
        Effect.flatMap(openOnce, ({ answers, instance, workspace }) => {
          const owner = headers[ownerHeader]
          const lineage = workspace.lineage()
          if (headers[lineageHeader] !== undefined && headers[lineageHeader] !== lineage) {
            return Effect.fail(new Unavailable({ operation: tag, path: "", detail: replacedDetail }))
          }
          // The cluster sends a request again if its owner disappears. The old owner may have published the upload.
          if (isUpload(tag) && owner !== undefined && owner !== instance) {
            return Effect.fail(new Unavailable({ operation: tag, path: "", detail: movedDetail }))
          }
          const run = (answers[tag as keyof Answers] as unknown as Answer)(payload)
          if (tag === "port.info") {
            const withTime = Effect.zipWith(run, Clock.currentTimeMillis, (info, time): Info => ({
              ...(info as Info),
              ...(lineage !== undefined && { lineage }),
              time
            }))
            return Effect.succeed(withTime as unknown as typeof run)
          }
          if (!("id" in payload) || Stream.isStream(run)) return Effect.succeed(run)
          return Effect.map(Clock.currentTimeMillis, (now) => {
            const sentAt = Number(headers[sentHeader] ?? now)
            return Effect.provideService(run, CurrentCall, { tag, sentAt: Number.isFinite(sentAt) ? sentAt : 0 }) as typeof run
          })
        })
      out[tag] = RpcSchema.isStreamSchema(rpc.successSchema)
        ? (request) => Stream.unwrap(answer(request))
        : (request) => Effect.flatten(answer(request))
    }
    return out as never
  })

/** A runner trusts the cluster. Whoever can reach its port can use all workspaces. */
const layerTrust = Layer.succeed(Authentication, (effect) => effect)

export const layerRunner = (options: RunnerOptions): Layer.Layer<never, never, Sharding.Sharding | BlobStore | HeadStore> =>
  Layer.provide(
    entity.toLayer(owner(options), {
      concurrency: "unbounded",
      maxIdleTime: Duration.max(Duration.fromInputUnsafe(options.maxIdleTime ?? "5 minutes"), minIdleTime),
      mailboxCapacity: options.maxRequests ?? 4096,
      disableFatalDefects: true
    }),
    layerTrust
  )
