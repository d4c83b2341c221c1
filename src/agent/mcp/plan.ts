import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import * as Stream from "effect/Stream"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import { readOnly as readOnlyView } from "../../filesystem/Decorator.ts"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import { Sandbox } from "../../filesystem/Sandbox.ts"
import { Snapshots } from "../../history/snapshots/tag.ts"
import type { WatchEvent } from "../../model/Entry.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Options } from "../McpServer.ts"
import { ToolSettings } from "../ToolSettings.ts"
import { recoverChanges } from "../changes.ts"
import type { AnyDefinition, Requirements } from "../definition.ts"
import { invokeUnknown } from "../dispatch.ts"
import * as Memory from "../memory.ts"
import { inForce, offered } from "../policy/core.ts"
import { chooseTools } from "../selection.ts"
import type { Flow } from "./stdio.ts"
import { guide, instructions, uriOf } from "./guide.ts"
import { register, registerPrompts } from "./resources.ts"
import type { Info } from "./serve.ts"
import * as Tools from "./tools.ts"

/**
 * Lists the URIs of the resources that an event changes. The content of a directory is its list of names, so a new or removed
 * entry changes its parent too.
 */
const changed = ({ _tag, path }: WatchEvent): ReadonlyArray<string> =>
  _tag === "Updated" || path === FsPath.root ? [uriOf(path)] : [uriOf(path), uriOf(FsPath.parent(path))]

const visibleFilesystem = Effect.gen(function* () {
  const base: Algebra = yield* Filesystem
  const memory = Memory.make()
  return (yield* inForce).reduce((self, policy) => policy.filesystem?.(self, memory) ?? self, base)
})

const sendNotices = (server: McpServer.McpServer["Service"]): Effect.Effect<void, never, Filesystem> =>
  Effect.flatMap(visibleFilesystem, (fs) =>
    fs.watch().pipe(
      Stream.map(changed),
      Stream.flattenIterable,
      Stream.runForEach((uri) => server.notifications["notifications/resources/updated"]({ uri })),
      Effect.catchCause((cause) =>
        Effect.logDebug("fs-algebra: files cannot be watched for changes, so clients get no notices", cause)
      )
    )
  )

export const changeNotices = (subscribed: Effect.Effect<void>): Layer.Layer<never, never, McpServer.McpServer | Filesystem> =>
  Layer.effectDiscard(
    Effect.flatMap(McpServer.McpServer, (server) => Effect.forkScoped(Effect.andThen(subscribed, sendNotices(server))))
  )

// Finds the record of the files that the calling client has read. Over standard input there is one client. Over HTTP the
// session identifies the client. A protocol version without sessions has only client names. Clients with the same name share the
// state of the policies, but must not rely on each other's reads. Each of their calls therefore gets a new record.

/**
 * The largest number of records of read files, one per client. Beyond the limit the least recently used record is removed. The
 * files that its client has read then no longer count as read.
 */
const maxMemories = 100

interface Client {
  readonly key: string
  readonly hasSession: boolean
}

const currentClient = Effect.gen(function* (): Effect.fn.Return<Client> {
  const request = yield* Effect.serviceOption(HttpServerRequest.HttpServerRequest)
  if (Option.isNone(request)) return { key: "stdio", hasSession: true }
  const session = request.value.headers["mcp-session-id"]
  if (session !== undefined) return { key: `session ${session}`, hasSession: true }
  const context = yield* Effect.serviceOption(McpSchema.McpRequestContext)
  const name = JSON.stringify(Option.getOrUndefined(context)?.clientInfo ?? "unknown")
  return { key: `client ${name}`, hasSession: false }
})

/** Returns an effect that returns the record of the calling client. */
const makeClientMemory = (): Effect.Effect<Memory.Memory> => {
  const memories = new Map<string, Memory.Memory>()
  return Effect.map(currentClient, ({ hasSession, key }) => {
    const memory = memories.get(key) ?? Memory.make()
    memories.delete(key)
    memories.set(key, memory)
    if (memories.size > maxMemories) memories.delete(memories.keys().next().value!)
    return hasSession ? memory : Memory.make(memory.session, false)
  })
}

export interface Plan<R = Filesystem> {
  readonly info: Info
  readonly registrations: Layer.Layer<never, never, McpServer.McpServer | R>
  readonly changes: (subscribed: Effect.Effect<void>) => Layer.Layer<never, never, McpServer.McpServer | R>
}

/** The largest number of tools that run at the same time, for all clients together. Further calls wait. */
const maxRunningTools = 16

export const makeServing = (
  flow: Flow,
  isStructured: boolean | undefined,
  invoke: Tools.Serving["invoke"]
): Effect.Effect<Tools.Serving> =>
  Effect.map(Semaphore.make(maxRunningTools), (permits) => ({ flow, invoke, permits, isStructured: isStructured === true }))

export const plan = Effect.fnUntraced(function* <T extends AnyDefinition<unknown>>(
  options: Options<T>,
  flow: Flow
): Effect.fn.Return<Plan<Filesystem | Requirements<T>>> {
  const { limits } = yield* ToolSettings
  const hasSnapshots = Option.isSome(yield* Effect.serviceOption(Snapshots))
  const hasSandbox = Option.isSome(yield* Effect.serviceOption(Sandbox))
  const readOnly = options.readOnly ?? false
  const chosen = [
    ...(yield* chooseTools(options.tools ?? "all", { hasSandbox, hasSnapshots, readOnly })),
    ...(options.extra ?? []).filter(({ does }) => !readOnly || does === "reads")
  ]
  const tools = chosen.filter(yield* offered)
  const facts = { names: new Set(tools.map(({ name }) => name)), limits, readOnly, workspace: options.workspace }
  const clientMemory = makeClientMemory()
  const toolServing = yield* makeServing(flow, options.structured, (definition, input) =>
    Effect.flatMap(clientMemory, (memory) => invokeUnknown(definition, input, { memory }))
  )
  const registerAll = Effect.gen(function* () {
    // Finish the interrupted changes of a killed server before any client sees the files.
    yield* Effect.flatMap(Filesystem, recoverChanges)
    for (const tool of tools) yield* Tools.register(tool, toolServing)
    yield* register(toolServing)
    yield* registerPrompts(guide(facts))
  })
  return {
    info: {
      name: options.name ?? "fs-algebra",
      version: options.version ?? "0.1.0",
      instructions: options.instructions ?? instructions(facts)
    },
    registrations: Layer.merge(
      Layer.effectDiscard(readOnly ? Effect.updateService(registerAll, Filesystem, readOnlyView) : registerAll),
      options.registrations ?? Layer.empty
    ),
    changes: changeNotices
  }
})
