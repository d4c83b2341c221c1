/**
 * Answers the requests of remote filesystems with the workspaces of stores. A header of each request names the workspace, which
 * the first request opens.
 *
 * Each workspace has its own layer, so a workspace that does not answer delays only its own requests. A workspace without
 * requests is closed after a while, and earlier if another one needs its place. An `RcMap` of effect that is full refuses a new
 * workspace instead, even if others are idle.
 */
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as RpcSchema from "effect/rpc/RpcSchema"
import { type Algebra, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { Unavailable } from "../model/FsError.ts"
import { Limits } from "../model/Limits.ts"
import { withBudgets } from "../remote/budget.ts"
import { instanceHeader, lineageHeader, nameOf, workspaceHeader, workspaceParameter } from "../remote/choice.ts"
import { FilesystemRpcs, type Info } from "../remote/protocol.ts"
import { handlers as remoteHandlers, makeShared } from "../remote/server.ts"
import { elapsedMillis } from "../runtime/elapsed.ts"
import { BlobStore } from "./BlobStore.ts"
import type { StoreError } from "./errors.ts"
import * as Objects from "./format/objects.ts"
import { HeadStore } from "./HeadStore.ts"
import { makePort } from "./port.ts"
import { checkName } from "./stores/heads.ts"
import * as Workspace from "./workspace.ts"

export interface Options {
  readonly author: string
  /** Returns the filesystem of a workspace as clients may use it. */
  readonly confine: (fs: Algebra) => Algebra
  /** The largest number of open workspaces. @default 100 */
  readonly maxOpen?: number | undefined
  /** The time without a request after which a workspace is closed. @default 5 minutes */
  readonly idle?: Duration.Input | undefined
  /** The time in which a workspace must open. @default 8 seconds, which is less than clients wait */
  readonly openTimeout?: Duration.Input | undefined
}

/** The largest cache of one workspace, in bytes. */
const cacheBytes = 8 * 1024 * 1024

/** The time, in milliseconds, for which a workspace is used without a new check that it still exists. */
const checkMillis = 1000

/** The longest wait for the check of a workspace. If the store does not answer, the workspace counts as present. */
const checkTimeout = "2 seconds"

type Answers = ReturnType<typeof remoteHandlers>
type Answer = (payload: object, options: object) => Effect.Effect<unknown, unknown> & Stream.Stream<unknown, unknown>

interface Opened {
  readonly answers: Answers
  /** The id of this opening. A later opening has another id, because it does not know the answers to earlier changes. */
  readonly instance: string
  readonly workspace: Workspace.Workspace
}

interface Entry {
  readonly name: string
  readonly scope: Scope.Closeable
  readonly opened: Deferred.Deferred<Opened, Unavailable>
  users: number
  usedAt: number
  checkedAt: number
}

interface Request {
  readonly headers: Readonly<Record<string, string | undefined>>
}

const refuse = (detail: string, hint: string): Unavailable =>
  new Unavailable({ operation: "Remote.layer", path: "", detail, hint })

const listHint = "fs-algebra workspaces list --store URL shows the names."

const infoOf = (answers: Answers): Effect.Effect<Info> => (answers["port.info"] as (payload: object) => Effect.Effect<Info>)({})

const restarted = refuse(
  "the workspace was closed meanwhile, and the server does not know whether it made the change",
  "Read the file to see the result."
)
const noName = refuse(
  "the server serves the workspaces of a store, and the client has named none",
  `Add ${workspaceParameter}NAME to the address of the server. ${listHint}`
)
const tooMany = refuse("the server has as many workspaces in use as it may have", "Try again later.")
const tooSlow = refuse("the store does not answer in time", "Try again later.")

const toUnavailable = (error: StoreError): Unavailable =>
  refuse(
    error.detail,
    error.reason === "missing" || error.reason === "invalid"
      ? listHint
      : error.reason === "corrupt"
        ? "Check the store: fs-algebra workspaces verify NAME --store URL."
        : error.reason === "full"
          ? "Free some space in the store, for example with fs-algebra workspaces gc."
          : "Check that the server can reach the store, then try again."
  )

/** Returns the answers to the requests. The scope closes all workspaces. */
export const make = (options: Options): Effect.Effect<Answers, never, BlobStore | HeadStore | Scope.Scope> =>
  Effect.gen(function* () {
    const blobs = yield* BlobStore
    const heads = yield* HeadStore
    const limits = yield* Limits
    const shared = makeShared()
    const scope = yield* Effect.scope
    const maxOpen = options.maxOpen ?? 100
    const idleMillis = Duration.toMillis(options.idle ?? "5 minutes")
    /** The open workspaces, the least recently used first. */
    const entries = new Map<string, Entry>()

    const close = (entry: Entry): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (entries.get(entry.name) === entry) entries.delete(entry.name)
        // A workspace that does not end delays no other.
        return Effect.asVoid(Effect.forkIn(Scope.close(entry.scope, Exit.void), scope))
      })

    const open = ({ name, scope }: Entry): Effect.Effect<Opened, Unavailable> =>
      Effect.gen(function* () {
        yield* checkName(name)
        const workspace = yield* Workspace.make(Objects.make(blobs, { cacheBytes }), heads, {
          workspace: name,
          author: options.author,
          durability: "batched",
          mustExist: true
        })
        const fs = options.confine(makeAlgebra(makePort(workspace, { name, identity: name })))
        const answers = remoteHandlers(fs, scope, limits, undefined, shared)
        const { instance } = yield* infoOf(answers)
        return { workspace, answers, instance }
      }).pipe(
        Effect.mapError(toUnavailable),
        Effect.timeoutOrElse({ duration: options.openTimeout ?? "8 seconds", orElse: () => Effect.fail(tooSlow) }),
        Scope.provide(scope)
      )

    /** Returns the entry of a name, and an effect to run before its use. Returns `undefined` if all places are in use. */
    const take = (name: string, now: number): readonly [Entry, Effect.Effect<void>] | undefined => {
      const known = entries.get(name)
      const unused =
        known !== undefined || entries.size < maxOpen ? undefined : [...entries.values()].find(({ users }) => users === 0)
      if (known === undefined && entries.size >= maxOpen && unused === undefined) return undefined
      const entry = known ?? {
        name,
        scope: Scope.forkUnsafe(scope),
        opened: Deferred.makeUnsafe(),
        users: 0,
        usedAt: now,
        checkedAt: now
      }
      entry.users++
      if (unused !== undefined) entries.delete(unused.name)
      entries.delete(name)
      entries.set(name, entry)
      // A request that is interrupted does not end the opening for the others.
      const opening = Effect.forkIn(
        Effect.flatMap(Effect.exit(open(entry)), (exit) =>
          Effect.andThen(Exit.isSuccess(exit) ? Effect.void : close(entry), Deferred.done(entry.opened, exit))
        ),
        scope
      )
      const closing = unused === undefined ? Effect.void : close(unused)
      return [entry, known === undefined ? Effect.andThen(closing, Effect.asVoid(opening)) : closing]
    }

    const enter = (name: string): Effect.Effect<Entry, Unavailable, Scope.Scope> =>
      Effect.flatMap(elapsedMillis, (now) =>
        Effect.acquireRelease(
          Effect.suspend(() => {
            const taken = take(name, now)
            return taken === undefined ? Effect.fail(tooMany) : Effect.as(taken[1], taken[0])
          }),
          (entry) =>
            Effect.map(elapsedMillis, (now) => {
              entry.users--
              entry.usedAt = now
            })
        )
      )

    /** Returns the open workspace of a name. If the workspace was deleted or made again, closes it and opens the name anew. */
    const enterOpened = (name: string): Effect.Effect<Opened, Unavailable, Scope.Scope> =>
      Effect.gen(function* () {
        const entry = yield* enter(name)
        const opened = yield* Deferred.await(entry.opened)
        const { workspace } = opened
        const now = yield* elapsedMillis
        if (!workspace.isReplaced()) {
          if (now - entry.checkedAt < checkMillis) return opened
          entry.checkedAt = now
          const state = yield* workspace.state.pipe(
            Effect.timeoutOrElse({ duration: checkTimeout, orElse: () => Effect.succeed("present" as const) }),
            Effect.orElseSucceed(() => "present" as const)
          )
          if (state === "present") return opened
        }
        yield* close(entry)
        return yield* enterOpened(name)
      })

    const find = ({ headers }: Request): Effect.Effect<Opened & { readonly name: string }, Unavailable, Scope.Scope> =>
      Effect.suspend(() => {
        const header = headers[workspaceHeader]
        const name = nameOf(header)
        if (name === undefined) {
          return Effect.fail(
            header === undefined ? noName : refuse("the name of the workspace is not valid percent-encoding", listHint)
          )
        }
        return Effect.flatMap(enterOpened(name), (opened) => {
          const begun = headers[instanceHeader]
          if (begun !== undefined && begun !== opened.instance) return Effect.fail(restarted)
          const expected = headers[lineageHeader]
          return expected === undefined || expected === opened.workspace.lineage()
            ? Effect.succeed({ ...opened, name })
            : Effect.fail(
                refuse(
                  `the workspace ${JSON.stringify(name)} was deleted and made again since the client connected`,
                  "Connect again to use the new one."
                )
              )
        })
      })

    const release = Effect.gen(function* () {
      yield* Effect.sleep(Duration.millis(Math.max(1, idleMillis / 4)))
      const now = yield* elapsedMillis
      for (const entry of entries.values()) {
        if (entry.users === 0 && now - entry.usedAt >= idleMillis) yield* close(entry)
      }
    })
    yield* Effect.forkScoped(Effect.forever(release))

    const out: Record<string, (payload: object, request: Request) => unknown> = {}
    for (const [tag, rpc] of FilesystemRpcs.requests) {
      const answer = (payload: object, request: Request) =>
        Effect.map(find(request), ({ answers }) => (answers[tag as keyof Answers] as unknown as Answer)(payload, request))
      // The workspace is in use until the scope of the request ends, when the answer is sent.
      out[tag] = RpcSchema.isStreamSchema(rpc.successSchema)
        ? (payload, request) => Stream.unwrap(answer(payload, request))
        : (payload, request) => Effect.flatten(answer(payload, request))
    }
    out["port.info"] = (_, request) =>
      Effect.flatMap(find(request), ({ answers, name, workspace }) => {
        const lineage = workspace.lineage()
        return Effect.map(infoOf(answers), (info): Info => ({
          ...info,
          workspace: name,
          ...(lineage !== undefined && { lineage })
        }))
      })
    return withBudgets(out) as unknown as Answers
  })
