/** What the mcp command does, apart from its flags, so that no other command loads it. */
import { basename, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Sink from "effect/Sink"
import * as Stdio from "effect/Stdio"
import * as McpServer from "../agent/McpServer.ts"
import * as ToolSettings from "../agent/ToolSettings.ts"
import { names } from "../agent/mcp/choice.ts"
import { access } from "../agent/policy/access.ts"
import { readBeforeWrite } from "../agent/policy/readBeforeWrite.ts"
import * as Limits from "../model/Limits.ts"
import { Complaint, wrongUsage } from "./exit.ts"
import type { Address } from "./mcpHttp.ts"
import { snapshotsLayer } from "./mcpSnapshots.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"

export interface Input {
  readonly tools: string
  readonly readOnly: boolean
  readonly limits: "agent" | "standard" | "unlimited"
  readonly mountPoint: string | undefined
  readonly allow: ReadonlyArray<string>
  readonly deny: ReadonlyArray<string>
  readonly readBeforeWrite: boolean
  readonly snapshots: boolean
  readonly http: Address | undefined
  readonly version: string
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

/** Standard input and output of this process, as the server takes them. */
const stdio = Effect.map(Screen, ({ input, write }) =>
  Stdio.make({
    args: Effect.succeed([]),
    stdin: input as unknown as Stdio.Stdio["stdin"],
    stdout: () => Sink.forEach(write) as unknown as ReturnType<Stdio.Stdio["stdout"]>,
    stderr: () => Sink.drain
  })
)

const wrongGlob = (error: unknown): Complaint =>
  new Complaint({
    error: { _tag: "UsageError" },
    message: error instanceof Error ? error.message : String(error),
    hint: "Globs are those of the glob command; quote them for the shell.",
    code: wrongUsage
  })

/** Whoever may not read a file may not change it either, so that one list is enough. */
const rules = ({ allow, deny }: Input) =>
  Effect.try({
    try: () =>
      allow.length === 0 && deny.length === 0
        ? Layer.empty
        : access({
            ...(allow.length > 0 && { allow: { read: allow } }),
            ...(deny.length > 0 && { deny: { read: deny } })
          }),
    catch: wrongGlob
  })

const policies = (input: Input) =>
  Effect.map(rules(input), (rules) => (input.readBeforeWrite ? Layer.merge(rules, readBeforeWrite) : rules))

/** Clients know the directory by its path, and their paths begin with it. */
const settings = Effect.fnUntraced(function* ({ limits, mountPoint }: Input) {
  const { root } = yield* Settings
  const { directory } = yield* Screen
  return { ...ToolSettings.defaults, limits: Limits[limits], mountPoint: mountPoint ?? resolve(directory, root) }
})

const running = Effect.fnUntraced(function* (options: McpServer.Options, address: Address | undefined) {
  if (address === undefined) return yield* Effect.provideServiceEffect(McpServer.runStdio(options), Stdio.Stdio, stdio)
  const { serve } = yield* Effect.promise(() => import("./mcpHttp.ts"))
  return yield* serve(address, options)
})

export const serve = Effect.fnUntraced(function* (input: Input) {
  const { root } = yield* Settings
  const { directory } = yield* Screen
  const { readOnly, version } = input
  const options = { version, readOnly, tools: yield* chosen(input.tools), workspace: basename(resolve(directory, root)) }
  const snapshots = input.snapshots ? snapshotsLayer : (Layer.empty as unknown as typeof snapshotsLayer)
  yield* running(options, input.http).pipe(
    Effect.provide(Layer.mergeAll(snapshots, yield* policies(input))),
    Effect.provideService(ToolSettings.ToolSettings, yield* settings(input)),
    Effect.provideService(Logger.LogToStderr, true)
  )
}, Effect.scoped)
