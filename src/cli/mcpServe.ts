/** What the mcp command does, apart from its flags, so that no other command loads it. */
import { realpathSync } from "node:fs"
import { basename, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as McpServer from "../agent/McpServer.ts"
import * as Changes from "../agent/mcp/changes.ts"
import { names } from "../agent/mcp/choice.ts"
import * as Flow from "../agent/mcp/flow.ts"
import { plan } from "../agent/mcp/plan.ts"
import * as Server from "../agent/mcp/serve.ts"
import { access } from "../agent/policy/access.ts"
import { readBeforeWrite } from "../agent/policy/readBeforeWrite.ts"
import { type AccessOptions, make as makeRules } from "../agent/policy/rules.ts"
import { type MountPoint, withoutMount } from "../agent/toolPath.ts"
import * as ToolSettings from "../agent/ToolSettings.ts"
import type { FsPath } from "../model/FsPath.ts"
import * as Limits from "../model/Limits.ts"
import { Recovery } from "../port/hostRoots.ts"
import { Complaint, wrongUsage } from "./exit.ts"
import { reported } from "./failure.ts"
import { limits } from "./limits.ts"
import type { Quick } from "./mcpArgs.ts"
import type { Address } from "./mcpHttp.ts"
import { snapshotsLayer } from "./mcpSnapshots.ts"
import { telling } from "./recovery.ts"
import { Screen } from "./screen.ts"
import { noContainer, Settings } from "./settings.ts"
import { workspaceLayer } from "./workspace.ts"

export interface Input {
  readonly tools: string
  readonly readOnly: boolean
  readonly limits: "agent" | "standard" | "unlimited"
  readonly mountPoint: string | undefined
  readonly allow: ReadonlyArray<string>
  readonly deny: ReadonlyArray<string>
  readonly readBeforeWrite: boolean
  readonly structured: boolean
  readonly snapshots: boolean
  readonly http: Address | undefined
}

const kits: ReadonlySet<string> = new Set(["all", "seven", "vfs"])

const chosen = Effect.fnUntraced(function* (text: string) {
  if (kits.has(text)) return text as "all" | "seven" | "vfs"
  const list = text.split(",").map((name) => name.trim())
  const unknown = list.find((name) => !names().includes(name))
  if (unknown === undefined) return list
  return yield* new Complaint({
    error: { _tag: "UsageError" },
    message: `there is no tool ${JSON.stringify(unknown)}`,
    hint: `--tools takes all, seven, vfs, or names with commas: ${names().join(", ")}.`,
    code: wrongUsage
  })
})

const wrongGlob = (error: unknown): Complaint =>
  new Complaint({
    error: { _tag: "UsageError" },
    message: error instanceof Error ? error.message : String(error),
    hint: "Each --allow and --deny takes one glob, as the glob command does; quote it for the shell.",
    code: wrongUsage
  })

/** Reads a glob that begins with the directory's own path, as a shell completes it, as one of what is below. */
const belowRoot = (glob: string, mountPoint: MountPoint): string => {
  const below = withoutMount(glob, mountPoint)
  return below !== glob && /^\/*$/.test(below) ? "**" : below
}

/** Whoever may not read a file may not change it either, so that one list is enough. */
const accessOf = ({ allow, deny }: Input, mountPoint: MountPoint): AccessOptions => {
  const globs = (all: ReadonlyArray<string>) => all.map((glob) => belowRoot(glob, mountPoint))
  return {
    ...(allow.length > 0 && { allow: { read: globs(allow) } }),
    ...(deny.length > 0 && { deny: { read: globs(deny) } })
  }
}

const rules = (input: Input, mountPoint: MountPoint) =>
  Effect.try({
    try: () => (input.allow.length === 0 && input.deny.length === 0 ? Layer.empty : access(accessOf(input, mountPoint))),
    catch: wrongGlob
  })

/** Recovery may change what the tools may; globs that are none, of which the command complains later, permit nothing. */
const permitsOf = (input: Input, mountPoint: MountPoint): ((path: FsPath) => boolean) => {
  if (input.readOnly) return () => false
  try {
    const options = accessOf(input, mountPoint)
    const both = [makeRules(options, true), makeRules(options, false)]
    return (path) => both.every((rules) => rules.asFile("write", path) && rules.asFile("delete", path))
  } catch {
    return () => false
  }
}

export const recovery = Effect.fnUntraced(function* (input: Input) {
  const { root } = yield* Settings
  const { directory } = yield* Screen
  return yield* telling(permitsOf(input, settings(input, resolve(directory, root)).mountPoint))
})

const policies = (input: Input, { mountPoint }: ToolSettings.ToolSettingsShape) =>
  Effect.map(rules(input, mountPoint), (rules) => (input.readBeforeWrite ? Layer.merge(rules, readBeforeWrite) : rules))

const real = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/** Clients know the directory by its path, and their paths begin with it; or with where that leads, when it is a link. */
const settings = ({ limits, mountPoint }: Input, root: string): ToolSettings.ToolSettingsShape => ({
  ...ToolSettings.defaults,
  limits: Limits[limits],
  mountPoint: mountPoint ?? [root, real(root)]
})

/** What the tools stand on, besides the files. */
const ground = Effect.fnUntraced(function* (input: Input) {
  const { root } = yield* Settings
  const { directory } = yield* Screen
  const chosen = settings(input, resolve(directory, root))
  return Layer.mergeAll(
    input.snapshots ? snapshotsLayer : (Layer.empty as unknown as typeof snapshotsLayer),
    yield* policies(input, chosen),
    Layer.succeed(ToolSettings.ToolSettings, chosen)
  )
})

const optionsOf = Effect.fnUntraced(function* ({ readOnly, structured, tools }: Input, version: string) {
  const { root } = yield* Settings
  const { directory } = yield* Screen
  const options: McpServer.Options = {
    version,
    readOnly,
    structured,
    tools: yield* chosen(tools),
    workspace: basename(resolve(directory, root))
  }
  return options
})

const overPipe = Effect.fnUntraced(function* (options: McpServer.Options) {
  const { input, write } = yield* Screen
  const flow = Flow.make()
  const { info, registrations } = yield* plan(options, flow)
  const register = (subscribed: Effect.Effect<void>) => Layer.merge(registrations, Changes.layer(subscribed))
  yield* Server.serve({ info, flow, ends: { input, write }, register })
})

const running = Effect.fnUntraced(function* (options: McpServer.Options, address: Address | undefined) {
  if (address === undefined) return yield* overPipe(options)
  const { serve } = yield* Effect.promise(() => import("./mcpHttp.ts"))
  return yield* serve(address, options)
})

/** Until the client hangs up. */
export const serve = Effect.fnUntraced(function* (input: Input, version: string) {
  const options = yield* optionsOf(input, version)
  yield* running(options, input.http).pipe(
    Effect.provide(yield* ground(input)),
    Effect.provideService(Logger.LogToStderr, true)
  )
})

interface Told extends Quick {
  readonly version: string
}

const settled = ({ backend, hardlinks, input, journal, root }: Quick) =>
  Layer.merge(
    workspaceLayer.pipe(
      Layer.provide(Layer.effect(Recovery, recovery(input))),
      Layer.provideMerge(
        Layer.succeed(Settings, {
          command: "mcp",
          root,
          backend,
          hardlinks,
          container: noContainer,
          mounts: [],
          journal,
          json: false
        })
      )
    ),
    Layer.succeed(Limits.Limits, limits)
  )

/** The same for a command line that was read by mcpArgs.ts. */
export const run = (told: Told) => Effect.provide(reported(serve(told.input, told.version)), settled(told))

/** What is served, for a server that runs already. */
export const layer = (told: Told, flow: Flow.Flow, subscribed: Effect.Effect<void>) => {
  const { input, version } = told
  const made = Effect.gen(function* () {
    const planned = Effect.map(plan(yield* optionsOf(input, version), flow), ({ registrations }) => registrations)
    return Layer.provide(Layer.merge(Layer.unwrap(planned), Changes.layer(subscribed)), yield* ground(input))
  })
  return Layer.provide(Layer.unwrap(reported(made)), settled(told))
}
