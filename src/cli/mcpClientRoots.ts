/**
 * Serves the roots that the client lists. The tools are made once, but each call uses the current roots, because the client may
 * change its roots. A running call keeps the filesystem with which it started.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { recoverChanges } from "../agent/changes.ts"
import { changeNotices, plan } from "../agent/mcp/plan.ts"
import { chooseTools } from "../agent/selection.ts"
import type { ClientRoots } from "../agent/mcp/serve.ts"
import type { Flow } from "../agent/mcp/stdio.ts"
import type { EarlyTools } from "../agent/mcp/guide.ts"
import { unavailableFilesystem } from "../agent/dispatch.ts"
import * as ToolSettings from "../agent/ToolSettings.ts"
import { readOnly } from "../filesystem/Decorator.ts"
import { Filesystem } from "../filesystem/Filesystem.ts"
import * as Limits from "../model/Limits.ts"
import { reported } from "./failure.ts"
import type { McpArguments } from "./mcpArgs.ts"
import { type ChosenRoots, hasSnapshots, refusalOf, rootsOf } from "./mcpMain.ts"
import {
  checkedOptions,
  hideRefusedTools,
  isOffered,
  makeToolServices,
  noSnapshots,
  optionsOf,
  reportRefusal,
  toParsedCommand,
  workspaceServices
} from "./mcpServe.ts"
import { printableName } from "./look.ts"
import { Screen } from "./screen.ts"

const notOpenYet = "the roots of the client are not open yet"

interface ClientRootsOptions {
  readonly quick: McpArguments
  readonly version: string
  readonly flow: Flow
  readonly subscribed: Effect.Effect<void>
  readonly roots: ClientRoots
}

interface ServedRoots {
  readonly directories: ReadonlyArray<string>
  readonly context: Context.Context<never>
  readonly scope: Scope.Closeable
  readonly idle: Deferred.Deferred<void>
  calls: number
  isRetired: boolean
}

/**
 * Returns the names of the offered tools, and a tool that the roots cannot change. Loads the tools, so this function is used only
 * for an unusual command line. Fails if the command line is invalid.
 */
export const offeredTools = Effect.fnUntraced(function* (quick: McpArguments, version: string) {
  const screen = yield* Screen
  const { input } = quick
  const parsedCommand = toParsedCommand(quick, version, ["."], screen.directory)
  const options = yield* checkedOptions(parsedCommand)
  const tools = yield* chooseTools(options.tools ?? "all", {
    hasSandbox: false,
    hasSnapshots: hasSnapshots(quick, screen),
    readOnly: input.readOnly
  })
  const names = [...tools, ...(options.extra ?? [])].filter((tool) => isOffered(input, tool)).map(({ name }) => name)
  return { names: new Set(names), certainTool: names[0] ?? "ls" } satisfies EarlyTools
})

const isSameList = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): boolean =>
  a.length === b.length && a.every((path, i) => path === b[i])

const whyNone = ({ skippedRoots: leftOut }: ChosenRoots): string =>
  leftOut.length === 0
    ? "the client lists no roots; open a folder in it, or give this server a --root"
    : `the client lists no root that can be served (${leftOut.map(({ root, why }) => `${root}: ${why}`).join("; ")}); open another folder in it, or give this server a --root`

const cannotOpen =
  "the new roots of the client cannot be opened (the standard error of this server has the reason); " +
  "open another folder in the client, or give this server a --root"

const make = Effect.fnUntraced(function* ({ flow, quick, roots, subscribed, version }: ClientRootsOptions) {
  const screen = yield* Screen
  const outerScope = yield* Effect.scope
  const { input } = quick

  const unavailableLayer = (why: string) =>
    Layer.merge(
      Layer.succeed(Filesystem, unavailableFilesystem(why)),
      input.snapshots === false ? Layer.empty : noSnapshots(why)
    )

  const buildLayer = (directories: ReadonlyArray<string>) => {
    const parsedCommand = toParsedCommand(quick, version, directories, screen.directory)
    return Layer.provideMerge(Layer.unwrap(reported(makeToolServices(input))), workspaceServices(parsedCommand))
  }

  const opened = Effect.fnUntraced(function* <E, R>(directories: ReadonlyArray<string>, layer: Layer.Layer<Filesystem, E, R>) {
    const scope = yield* Scope.fork(outerScope)
    const built = yield* Effect.gen(function* () {
      const all = yield* Layer.buildWithScope(layer, scope)
      const fs = Context.get(all, Filesystem)
      yield* recoverChanges(fs)
      const context = input.readOnly ? Context.add(all, Filesystem, readOnly(fs)) : all
      yield* Layer.buildWithScope(Layer.provide(changeNotices(subscribed), Layer.succeedContext(context)), scope)
      return context
    }).pipe(Effect.onExit((exit) => (Exit.isFailure(exit) ? Scope.close(scope, exit) : Effect.void)))
    const idle = yield* Deferred.make<void>()
    const servedRoots: ServedRoots = {
      directories,
      context: built as Context.Context<never>,
      scope,
      idle,
      calls: 0,
      isRetired: false
    }
    return servedRoots
  })

  const reportSkippedRoots = ({ skippedRoots: leftOut }: ChosenRoots) =>
    Effect.forEach(
      leftOut,
      ({ root, why }) => screen.warn(`note:  this root of the client is not served: ${printableName(root)}: ${why}`),
      { discard: true }
    )

  const openFirstRoots = Effect.gen(function* () {
    const listed = yield* roots.list
    if (listed === undefined) {
      const refusal = input.anyRoot ? undefined : refusalOf(screen.directory, undefined, screen)
      if (refusal !== undefined) return yield* reportRefusal(quick, refusal)
      return yield* opened([screen.directory], buildLayer(["."]))
    }
    if (listed === "late") {
      return yield* opened(
        [],
        unavailableLayer("the client has not listed its roots yet; allow the client to list them, or give this server a --root")
      )
    }
    const found = rootsOf(listed, input.anyRoot, screen)
    yield* reportSkippedRoots(found)
    const { directories } = found
    return yield* directories.length === 0
      ? opened([], unavailableLayer(whyNone(found)))
      : opened(directories, buildLayer(directories))
  })

  let currentRoots = yield* openFirstRoots

  const retire = Effect.fnUntraced(function* (served: ServedRoots) {
    served.isRetired = true
    if (served.calls > 0) yield* Deferred.await(served.idle)
    yield* Scope.close(served.scope, Exit.void)
  })

  const followRootsChange = Effect.gen(function* () {
    yield* roots.changed
    const listed = yield* roots.list
    if (listed === undefined || listed === "late")
      return yield* screen.warn("note:  the client reports changed roots, but does not list them")
    const found = rootsOf(listed, input.anyRoot, screen)
    if (found.directories.length > 0 && isSameList(found.directories, currentRoots.directories)) return
    yield* reportSkippedRoots(found)
    const { directories } = found
    const none = (why: string) => opened([], unavailableLayer(why))
    const opening = directories.length === 0 ? none(whyNone(found)) : opened(directories, buildLayer(directories))
    const previousRoots = currentRoots
    currentRoots = yield* Effect.catch(opening, () => none(cannotOpen))
    yield* Effect.forkIn(retire(previousRoots), outerScope)
  })
  yield* Effect.forkScoped(Effect.forever(followRootsChange))

  const withCurrentRoots = <A, E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const served = currentRoots
      served.calls++
      return Effect.ensuring(
        Effect.provideContext(self, served.context),
        Effect.sync(() => {
          if (--served.calls === 0 && served.isRetired) Deferred.doneUnsafe(served.idle, Effect.void)
        })
      ) as Effect.Effect<A, E, R>
    })

  // Errors in the options were reported before `initialize` was answered.
  const options = yield* Effect.orDie(optionsOf(input, quick.backend, version, undefined))
  const { registrations } = yield* plan(options, { ...flow, whileCalling: (self) => flow.whileCalling(withCurrentRoots(self)) })
  return registrations
})

/** Makes the server over a placeholder filesystem, because the list of tools does not depend on the files. */
export const layer = (clientRootsOptions: ClientRootsOptions) => {
  const { quick } = clientRootsOptions
  const { input } = quick
  const settings = { ...ToolSettings.defaults, limits: Limits[input.limits] }
  const snapshots = Effect.map(Screen, (screen) => (hasSnapshots(quick, screen) ? noSnapshots(notOpenYet) : Layer.empty))
  return Layer.unwrap(make(clientRootsOptions)).pipe(
    Layer.provide([
      Layer.succeed(ToolSettings.ToolSettings, settings),
      Layer.succeed(Filesystem, unavailableFilesystem(notOpenYet)),
      Layer.unwrap(snapshots),
      hideRefusedTools(input)
    ])
  )
}
