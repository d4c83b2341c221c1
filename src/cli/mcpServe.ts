import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { resolve } from "node:path"
import type * as McpServer from "../agent/McpServer.ts"
import * as ToolSettings from "../agent/ToolSettings.ts"
import type { AnyDefinition } from "../agent/definition.ts"
import { type Flow, makeFlow } from "../agent/mcp/stdio.ts"
import { changeNotices, plan } from "../agent/mcp/plan.ts"
import { isSandboxTool, isSnapshotTool, selectableNames, toolNamed } from "../agent/selection.ts"
import * as Server from "../agent/mcp/serve.ts"
import { access, type AccessOptions, make as makeRules } from "../agent/policy/access.ts"
import { automatic } from "../agent/policy/automatic.ts"
import { layer as policy } from "../agent/policy/core.ts"
import { readBeforeWrite } from "../agent/policy/readBeforeWrite.ts"
import { type MountPoint, withoutMount } from "../agent/toolPath.ts"
import { snapshotTools } from "../agent/tools.ts"
import type { FilesystemSnapshot, Operations } from "../history/Snapshots.ts"
import { SnapshotError, SnapshotRestoreError } from "../history/errors.ts"
import { Snapshots } from "../history/snapshots/tag.ts"
import type { FsPath } from "../model/FsPath.ts"
import * as Limits from "../model/Limits.ts"
import { Recovery } from "../port/hostRoots.ts"
import { Complaint, usage, usageErrorCode } from "./exit.ts"
import { type Failure, reported } from "./failure.ts"
import { commandLine } from "./look.ts"
import type { Address, McpArguments, McpServeInput } from "./mcpArgs.ts"
import { nameDirectories, refuseOutsideDirectories } from "./mounts.ts"
import { resolveLinks } from "./paths.ts"
import { reportingRecovery } from "./recovery.ts"
import { isDirectoryRoot, rootName } from "./root.ts"
import { Screen } from "./screen.ts"
import { type Directory, limits, noContainer, Settings } from "./settings.ts"
import { makeParent, openStoreOnce, storeDirectory } from "./snapshotStore.ts"
import { WorkspaceSnapshots } from "./workspaceRoot.ts"
import { workspaceLayer } from "./workspace.ts"

// Provides snapshots to a server, in the same store that the other commands use for this root. The store is opened at first
// use, so that the search for git and the creation of a store do not delay the start.

const loadSnapshots = Effect.promise(() => import("../history/Snapshots.ts"))

const toRestoreError =
  ({ snapshotId }: FilesystemSnapshot) =>
  ({ detail }: SnapshotError) =>
    new SnapshotRestoreError({ snapshotId, reason: "unavailable", detail })

const hideStorePath =
  (gitDir: string) =>
  ({ detail, operation, reason }: SnapshotError): SnapshotError =>
    new SnapshotError({ operation, reason, detail: detail.replaceAll(gitDir, "the store") })

const deferOpening = (open: Effect.Effect<Operations, SnapshotError>): Operations => ({
  snapshot: (options) => Effect.flatMap(open, (self) => self.snapshot(options)),
  restore: (snapshot, options) =>
    Effect.flatMap(Effect.mapError(open, toRestoreError(snapshot)), (self) => self.restore(snapshot, options)),
  diff: (from, to) => Effect.flatMap(open, (self) => self.diff(from, to)),
  view: (snapshot) => Effect.flatMap(open, (self) => self.view(snapshot)),
  list: Effect.flatMap(open, (self) => self.list),
  forget: (snapshot) => Effect.flatMap(open, (self) => self.forget(snapshot)),
  transaction: (effect) => Effect.flatMap(open, (self) => self.transaction(effect)),
  fork: (snapshot) => Effect.flatMap(open, (self) => self.fork(snapshot)),
  merge: (fork, options) => Effect.flatMap(open, (self) => self.merge(fork, options)),
  details: (snapshot) => Effect.flatMap(open, (self) => self.details(snapshot)),
  stats: Effect.flatMap(open, (self) => self.stats),
  collect: Effect.flatMap(open, (self) => self.collect)
})

const snapshotsIn = (gitDir: string, anyRoot: boolean) =>
  Layer.effect(
    Snapshots,
    Effect.gen(function* () {
      const opened = yield* openStoreOnce(gitDir, anyRoot, makeParent(gitDir))
      return deferOpening(Effect.mapError(opened, hideStorePath(gitDir)))
    })
  )

const noSnapshotsLayer = Layer.empty as unknown as ReturnType<typeof snapshotsIn>

/**
 * Provides the snapshots. If snapshots are impossible, prints a note and provides none, or fails if a flag has requested
 * snapshots.
 */
const snapshotsLayer = ({ anyRoot, snapshots }: Pick<McpServeInput, "anyRoot" | "snapshots">) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { backend } = yield* Settings
      if (snapshots === false) return noSnapshotsLayer
      if (backend === "memory") return (yield* loadSnapshots).layer
      const own = yield* Effect.serviceOption(WorkspaceSnapshots)
      if (Option.isSome(own)) return Layer.succeed(Snapshots, own.value)
      if (snapshots === true) return openedAtOnce(snapshotsIn(yield* storeDirectory, anyRoot))
      const { warn } = yield* Screen
      return yield* Effect.matchEffect(storeDirectory, {
        onSuccess: (directory) => Effect.succeed(snapshotsIn(directory, anyRoot)),
        onFailure: ({ message }) => Effect.as(warn(`note: no snapshots, ${message}`), noSnapshotsLayer)
      })
    })
  )

/** Opens the store immediately, so that an error appears at the start. */
const openedAtOnce = (layer: ReturnType<typeof snapshotsIn>) =>
  Layer.tap(layer, (context) => Effect.asVoid(Context.get(context, Snapshots).list))

/** Provides a snapshot service whose operations all fail, so that the snapshot tools stay listed while no root is served. */
export const noSnapshots = (detail: string) =>
  Layer.succeed(Snapshots, deferOpening(Effect.fail(new SnapshotError({ operation: "store", reason: "unavailable", detail }))))

const kitNames: ReadonlySet<string> = new Set(["all", "seven", "vfs"])

/** Tests whether each call of a tool removes or moves files. A program that a tool runs can do both, so such a tool counts too. */
const canRemove = (tool: AnyDefinition | { readonly name: string }): boolean =>
  ["rm", "delete_file", "move", "shell", "eval"].includes(tool.name)

const whyUnavailable = (tool: AnyDefinition, input: McpServeInput, backend: string): string | undefined => {
  if (input.readOnly && tool.does !== "reads") return "it changes files, which --read-only forbids"
  if (!input.deletes && canRemove(tool)) return "it may remove files, which --no-delete forbids"
  if (isSnapshotTool(tool) && input.snapshots === false) return "it needs snapshots, which --no-snapshots forbids"
  return isSandboxTool(tool) && backend !== "container" ? "it runs in a container, which needs --backend container" : undefined
}

const wrongTool = (name: string, message: string, hint: string) =>
  new Complaint({ error: { _tag: "UsageError", tool: name }, message, hint, code: usageErrorCode })

const chooseTools = Effect.fnUntraced(function* (input: McpServeInput, backend: string) {
  const { tools: text } = input
  if (kitNames.has(text)) return text as "all" | "seven" | "vfs"
  const list = text.split(",").map((name) => name.trim())
  for (const name of list) {
    const tool = toolNamed(name)
    if (tool === undefined) {
      const hint = `--tools takes all, seven, vfs, or tool names separated by commas: ${selectableNames().join(", ")}.`
      return yield* wrongTool(name, `there is no tool ${JSON.stringify(name)}`, hint)
    }
    const why = whyUnavailable(tool, input, backend)
    if (why !== undefined) {
      return yield* wrongTool(
        name,
        `cannot offer the tool ${JSON.stringify(name)}: ${why}`,
        `Omit ${name} from --tools, or change that flag.`
      )
    }
  }
  return list
})

const wrongGlob = (error: unknown): Complaint =>
  usage(
    error instanceof Error ? error.message : String(error),
    "Each --allow and --deny takes one glob, as the glob command does; quote it for the shell."
  )

/**
 * Makes a glob relative to the root if it begins with the absolute path of the directory. Shells complete globs to absolute
 * paths.
 */
const toGlobBelowRoot = (glob: string, mountPoint: MountPoint): string => {
  const below = withoutMount(glob, mountPoint)
  if (below === glob) return glob
  return /^\/*$/.test(below) ? "**" : below
}

const escaped = (name: string): string => name.replace(/[\\*?[\]{}()!@+|,]/g, String.raw`\$&`)

/**
 * Returns the globs for several directories. A glob with a slash applies below each directory, and below the root that contains
 * the directories.
 */
const globsForDirectories = (glob: string, directories: ReadonlyArray<Directory>): ReadonlyArray<string> =>
  glob.includes("/") ? [glob, ...directories.map(({ name }) => `${escaped(name)}/${glob.replace(/^\/+/, "")}`)] : [glob]

/**
 * Returns the access rules. The globs become rules for reading only, because a file that must not be read cannot be changed
 * either.
 */
const accessOf = (
  { allow, deletes, deny }: McpServeInput,
  mountPoint: MountPoint,
  directories: ReadonlyArray<Directory>
): AccessOptions => {
  const globs = (all: ReadonlyArray<string>) =>
    all.flatMap((glob) => globsForDirectories(toGlobBelowRoot(glob, mountPoint), directories))
  return {
    ...(allow.length > 0 && { allow: { read: globs(allow) } }),
    ...((deny.length > 0 || !deletes) && {
      deny: { ...(deny.length > 0 && { read: globs(deny) }), ...(!deletes && { delete: ["**"] }) }
    })
  }
}

const rules = (options: AccessOptions) =>
  Effect.try({
    try: () => (options.allow === undefined && options.deny === undefined ? Layer.empty : access(options)),
    catch: wrongGlob
  })

/**
 * Returns a predicate that is true for the paths that the tools may change. The recovery may change only the same paths. If a
 * glob is invalid, the predicate is always false; the command reports the glob later.
 */
const permitsOf = (input: McpServeInput, options: AccessOptions): ((path: FsPath) => boolean) => {
  if (input.readOnly) return () => false
  try {
    const both = [makeRules(options, true), makeRules(options, false)]
    return (path) => both.every((rules) => rules.asFile("write", path) && rules.asFile("delete", path))
  } catch {
    return () => false
  }
}

/**
 * Returns the directories that may begin an absolute path from a client: the given mount point, or else each root as given and
 * with links resolved.
 */
const mountPointOf = Effect.fnUntraced(function* (given: string | undefined) {
  const { directories, root } = yield* Settings
  const { directory } = yield* Screen
  if (given !== undefined) return given
  if (directories === undefined && !isDirectoryRoot(root, directory)) return []
  if (directories === undefined) return [resolve(directory, root), resolveLinks(resolve(directory, root))]
  return Object.fromEntries(directories.flatMap(({ name, path }) => [path, resolveLinks(path)].map((place) => [place, name])))
})

const accessOptionsOf = Effect.fnUntraced(function* (input: McpServeInput) {
  const { directories = [] } = yield* Settings
  return accessOf(input, yield* mountPointOf(input.mountPoint), directories)
})

const makeRecovery = Effect.fnUntraced(function* (input: McpServeInput) {
  return yield* reportingRecovery(permitsOf(input, yield* accessOptionsOf(input)))
})

/** Tests whether a tool is offered. Without permission to delete, a tool is hidden if all its calls would be refused. */
export const isOffered = ({ deletes }: McpServeInput, tool: AnyDefinition | { readonly name: string }): boolean =>
  deletes || !canRemove(tool)

export const hideRefusedTools = (input: McpServeInput) =>
  input.deletes ? Layer.empty : policy({ name: "noDelete", offers: (tool) => isOffered(input, tool) })

const hasRestore = (tools: McpServer.Options["tools"], { readOnly, snapshots }: McpServeInput): boolean =>
  !readOnly && (tools === "all" || snapshots === true || (Array.isArray(tools) && tools.includes("restore")))

/**
 * Makes the policy of automatic checkpoints. Returns an empty layer if neither the model nor the user could restore a
 * checkpoint. The user cannot restore a checkpoint of an in-memory copy, or of several directories.
 */
const makeCheckpoints = Effect.fnUntraced(function* (input: McpServeInput) {
  const { backend, directories, root } = yield* Settings
  const { program } = yield* Screen
  const line = commandLine(program, root)
  if (hasRestore(yield* chooseTools(input, backend), input))
    return automatic((short) => `restore with ${JSON.stringify({ snapshot_id: short })} brings them back`)
  return backend === "memory" || directories !== undefined
    ? Layer.empty
    : automatic((short) => `"${line("restore", short)}" brings them back`)
})

export const makeToolServices = Effect.fnUntraced(function* (input: McpServeInput) {
  const { directories } = yield* Settings
  const settings: ToolSettings.ToolSettingsShape = {
    ...ToolSettings.defaults,
    limits: Limits[input.limits],
    mountPoint: yield* mountPointOf(input.mountPoint)
  }
  const policies = Layer.mergeAll(
    yield* rules(yield* accessOptionsOf(input)),
    input.readBeforeWrite ? readBeforeWrite : Layer.empty,
    directories === undefined ? Layer.empty : refuseOutsideDirectories(directories),
    hideRefusedTools(input)
  )
  return Layer.mergeAll(
    policies,
    input.readOnly ? Layer.empty : yield* makeCheckpoints(input),
    Layer.succeed(ToolSettings.ToolSettings, settings)
  ).pipe(Layer.provideMerge(snapshotsLayer(input)))
})

const workspaceOf = Effect.fnUntraced(function* () {
  const { directories, root } = yield* Settings
  const { directory } = yield* Screen
  return directories === undefined ? rootName(root, directory) : directories.map(({ name }) => name).join(", ")
})

/** Makes the options of the server. `workspace` is `undefined` while the roots are unknown. */
export const optionsOf = Effect.fnUntraced(function* (
  input: McpServeInput,
  backend: string,
  version: string,
  workspace: string | undefined
) {
  const tools = yield* chooseTools(input, backend)
  const isMissing = ({ name }: AnyDefinition): boolean =>
    tools !== "all" && (typeof tools === "string" || !tools.includes(name))
  const options: McpServer.Options = {
    version,
    readOnly: input.readOnly,
    structured: input.structured,
    tools,
    workspace,
    extra: input.snapshots === true ? snapshotTools.filter(isMissing) : []
  }
  return options
})

const serveOverPipe = Effect.fnUntraced(function* (options: McpServer.Options) {
  const { input, write } = yield* Screen
  const flow = makeFlow()
  const { info, registrations } = yield* plan(options, flow)
  const register = (subscribed: Effect.Effect<void>) => Layer.merge(registrations, changeNotices(subscribed))
  yield* Server.serve({ info, flow, ends: { input, write }, register })
})

const serveTransport = Effect.fnUntraced(function* (options: McpServer.Options, address: Address | undefined) {
  if (address === undefined) return yield* serveOverPipe(options)
  const { serve } = yield* Effect.promise(() => import("./mcpHttp.ts"))
  return yield* serve(address, options)
})

const serve = Effect.fnUntraced(function* ({ input, version }: ParsedCommand) {
  const { backend } = yield* Settings
  const options = yield* optionsOf(input, backend, version, yield* workspaceOf())
  yield* Effect.provide(serveTransport(options, input.http), yield* makeToolServices(input))
})

export interface ParsedCommand extends Omit<McpArguments, "roots"> {
  readonly version: string
  readonly root: string
  readonly directories?: ReadonlyArray<Directory> | undefined
}

export const toParsedCommand = (
  { roots: _, ...quick }: McpArguments,
  version: string,
  roots: ReadonlyArray<string>,
  directory: string
): ParsedCommand => ({
  ...quick,
  version,
  root: roots[0] ?? ".",
  directories: roots.length > 1 ? nameDirectories(roots.map((root) => resolve(directory, root))) : undefined
})

const settingsOf = ({
  backend,
  container = noContainer,
  directories,
  hardlinks,
  journal,
  json = false,
  mounts = [],
  root,
  tokenFile
}: ParsedCommand) => ({
  command: "mcp",
  root,
  directories,
  backend,
  hardlinks,
  container,
  mounts,
  journal,
  tokenFile,
  json
})

const withReporting = <A, E extends Failure, R>(parsedCommand: ParsedCommand, self: Effect.Effect<A, E, R>) =>
  Effect.provideService(reported(self), Settings, settingsOf(parsedCommand))

export const reportRefusal = (quick: McpArguments, complaint: Complaint) =>
  withReporting(toParsedCommand(quick, "", ["."], "/"), Effect.fail(complaint))

/** Checks tools and globs before any file is opened. */
export const checkedOptions = (parsedCommand: ParsedCommand) => {
  const { backend, input, version } = parsedCommand
  const both = Effect.gen(function* () {
    yield* rules(yield* accessOptionsOf(input))
    return yield* optionsOf(input, backend, version, undefined)
  })
  return withReporting(parsedCommand, both)
}

export const workspaceServices = (parsedCommand: ParsedCommand) => {
  const settings = Layer.succeed(Settings, settingsOf(parsedCommand))
  return Layer.merge(
    workspaceLayer.pipe(Layer.provide(Layer.effect(Recovery, makeRecovery(parsedCommand.input))), Layer.provideMerge(settings)),
    Layer.succeed(Limits.Limits, limits)
  )
}

export const run = (parsedCommand: ParsedCommand) =>
  Effect.provide(reported(serve(parsedCommand)), workspaceServices(parsedCommand))

/** Makes the layer for a server that has already answered `initialize`. */
export const layer = (parsedCommand: ParsedCommand, flow: Flow, subscribed: Effect.Effect<void>) => {
  const { input, version } = parsedCommand
  const made = Effect.gen(function* () {
    const options = yield* optionsOf(input, parsedCommand.backend, version, yield* workspaceOf())
    const planned = Effect.map(plan(options, flow), ({ registrations }) => registrations)
    return Layer.provide(Layer.merge(Layer.unwrap(planned), changeNotices(subscribed)), yield* makeToolServices(input))
  })
  return Layer.provide(Layer.unwrap(reported(made)), workspaceServices(parsedCommand))
}
