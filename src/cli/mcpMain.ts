/**
 * Runs the parsed mcp command. Over standard input, `initialize` is usually answered before the tools are loaded, so that the tools
 * load while the client processes the answer.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { realpathSync, statSync } from "node:fs"
import * as NodeModule from "node:module"
import { basename, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { makeFlow } from "../agent/mcp/stdio.ts"
import { type EarlyTools, earlyTools, instructions } from "../agent/mcp/guide.ts"
import { serve } from "../agent/mcp/serve.ts"
import * as Limits from "../model/Limits.ts"
import { isInside, leadsInto, resolvePath } from "../runtime/openRoots.ts"
import { describeWideRoot } from "../runtime/wideRoots.ts"
import { Complaint, ended, exitCodeOf } from "./exit.ts"
import type { McpArguments } from "./mcpArgs.ts"
import { isDirectoryAt, isDirectoryRoot, needsDirectory } from "./root.ts"
import { Screen, type ScreenShape } from "./screen.ts"

/**
 * Returns the directories with code that Node runs: the directory in which bin.ts makes the compile cache, and the compile
 * cache that Node uses.
 */
const listCodeDirectories = (stateDirectory: string | undefined): ReadonlyArray<string> =>
  [stateDirectory && join(stateDirectory, "fs-algebra"), NodeModule.getCompileCacheDir()].filter((path) => path !== undefined)

/**
 * Returns a description of a directory that is served only with --any-root, such as a home directory. Returns `undefined` for
 * other directories. Node runs the code in the compile cache without a check, so no agent may write to the cache or replace a
 * symlink that leads to it. `real` must not contain symlinks.
 */
const describeRefusedRoot = (real: string, stateDirectory: string | undefined): string | undefined => {
  const holdsCode = (path: string): boolean => {
    const resolved = resolvePath(path)
    return leadsInto(path, [real]) || (resolved !== undefined && isInside(resolved, real))
  }
  return (
    describeWideRoot(real) ??
    (listCodeDirectories(stateDirectory).some(holdsCode) ? "a directory with code that fs-algebra runs" : undefined)
  )
}

const tooWideKind = (path: string, { stateDirectory }: ScreenShape): string | undefined => {
  try {
    return describeRefusedRoot(realpathSync.native(path), stateDirectory)
  } catch {
    return undefined
  }
}

/**
 * Returns an error for a directory that is served only with --any-root, and `undefined` for other directories. A forgotten
 * argument must not expose a home directory to an agent. `given` is the path as typed, if any.
 */
export const refusalOf = (path: string, given: string | undefined, screen: ScreenShape): Complaint | undefined => {
  const width = tooWideKind(path, screen)
  if (width === undefined) return undefined
  const root = given === undefined ? "the current directory" : `the root ${JSON.stringify(given)}`
  const message = `${root} is ${width}${path === given ? "" : `, ${path}`}: an agent could read and change everything in it`
  const hint =
    "Give the absolute path of one project: --root /path/to/project. A client may start its servers anywhere, so a relative path may lead elsewhere. --any-root allows such a root."
  return new Complaint({ error: { _tag: "RootRefused", root: path, width }, message, hint, code: exitCodeOf("AccessDenied") })
}

export interface ChosenRoots {
  readonly directories: ReadonlyArray<string>
  readonly skippedRoots: ReadonlyArray<{ readonly root: string; readonly why: string }>
}

/** The note for a person who starts the server in a terminal, where no client sends requests or reads the output. */
const waitsForClient =
  "note: the server waits for a client on standard input. Put this command into the configuration of your client. Ctrl-C ends the server."

/** The largest number of roots to serve. Each root costs memory and descriptors. */
const maxRoots = 32

const maxUriCharacters = 200

const pathOf = (uri: unknown): { readonly path: string } | { readonly why: string } => {
  if (typeof uri !== "string" || !URL.canParse(uri)) return { why: "it has no URI" }
  if (new URL(uri).protocol !== "file:") return { why: "it is not a file of this machine" }
  try {
    return { path: resolve(fileURLToPath(uri)) }
  } catch {
    return { why: "its URI does not name a path of this machine" }
  }
}

const checkRoot = (
  uri: unknown,
  anyRoot: boolean,
  { stateDirectory }: ScreenShape
): { readonly path: string; readonly real: string } | { readonly why: string } => {
  const found = pathOf(uri)
  if ("why" in found) return found
  const { path } = found
  try {
    if (!statSync(path).isDirectory()) return { why: "it is not a directory" }
    const real = realpathSync.native(path)
    const width = anyRoot ? undefined : describeRefusedRoot(real, stateDirectory)
    return width === undefined ? { path, real } : { why: `it is ${width}; only --any-root serves it` }
  } catch {
    return { why: "there is no such directory, or it cannot be read" }
  }
}

/** Returns the roots of the client that may be served, without duplicates and without directories inside other roots. */
export const rootsOf = (listedRoots: ReadonlyArray<unknown>, anyRoot: boolean, screen: ScreenShape): ChosenRoots => {
  const skippedRoots: Array<ChosenRoots["skippedRoots"][number]> = []
  const found = new Map<string, string>()
  for (const [index, root] of listedRoots.slice(0, maxRoots).entries()) {
    const uri = typeof root === "object" && root !== null && "uri" in root ? root.uri : undefined
    const checkedRoot = checkRoot(uri, anyRoot, screen)
    if ("why" in checkedRoot) {
      skippedRoots.push({
        root: typeof uri === "string" ? uri.slice(0, maxUriCharacters) : `root ${index + 1}`,
        why: checkedRoot.why
      })
    } else if (!found.has(checkedRoot.real)) found.set(checkedRoot.real, checkedRoot.path)
  }
  if (listedRoots.length > maxRoots) {
    skippedRoots.push({ root: `${listedRoots.length - maxRoots} more`, why: `at most ${maxRoots} roots are served` })
  }
  const realPaths = [...found.keys()]
  const directories = [...found].flatMap(([real, path]) =>
    realPaths.some((other) => other !== real && isInside(other, real)) ? [] : [path]
  )
  return { directories, skippedRoots }
}

const isDirectory = (path: string): boolean => {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

const load = Effect.promise(() => import("./mcpServe.ts"))
const loadRoots = Effect.promise(() => import("./mcpClientRoots.ts"))

interface Versioned {
  readonly version: string
}

/** Tests whether a glob is certainly valid. Other globs are checked when the glob module is loaded. */
const isPlainGlob = (glob: string): boolean =>
  /^(?!.*\.\.|.*\/\.?(?:\/|$)|.*\*\*[^/]|.*[^/]\*\*)(?=.*[\w*?-])[\w.*?/-]{1,1000}$/.test(glob)

export const hasSnapshots = ({ backend, input }: McpArguments, { stateDirectory }: ScreenShape): boolean =>
  input.snapshots !== false && (backend === "memory" || stateDirectory !== undefined)

/**
 * Returns the names of the offered tools if they are known without loading the tools. Returns `undefined` for an unusual or
 * invalid command line.
 */
const knownTools = (quick: McpArguments, screen: ScreenShape): EarlyTools | undefined => {
  const { backend, input, mounts } = quick
  const { allow, deletes, deny, http, readOnly, snapshots, tools } = input
  const isKit = !tools.includes(",") && (tools === "all" || tools === "seven" || tools === "vfs")
  const isPlain =
    // `mounts` is defined only if effect/cli has parsed the arguments, which are then unusual.
    mounts === undefined &&
    backend !== "container" &&
    http === undefined &&
    snapshots !== true &&
    deletes &&
    (isKit || (!readOnly && snapshots !== false)) &&
    [...allow, ...deny].every(isPlainGlob)
  return isPlain ? earlyTools(tools, hasSnapshots(quick, screen)) : undefined
}

const makeGreeting = (
  quick: McpArguments,
  version: string,
  { certainTool, names }: EarlyTools,
  workspace: string | undefined
) =>
  Effect.map(Screen, ({ input: bytes, write }) => {
    const { limits, readOnly } = quick.input
    const info = {
      name: "fs-algebra",
      version,
      instructions: instructions({ names, limits: Limits[limits], readOnly, workspace })
    }
    return { certainTool, ends: { input: bytes, write }, flow: makeFlow(), info }
  })

const serveClientRoots = Effect.fnUntraced(function* (quick: McpArguments, { version }: Versioned) {
  const plainToolNames = knownTools(quick, yield* Screen) ?? (yield* (yield* loadRoots).offeredTools(quick, version))
  const start = yield* makeGreeting(quick, version, plainToolNames, undefined)
  yield* serve({
    ...start,
    register: (subscribed, roots) =>
      Layer.unwrap(Effect.map(loadRoots, ({ layer }) => layer({ quick, version, flow: start.flow, subscribed, roots })))
  })
})

const serveRoots = Effect.fnUntraced(function* (quick: McpArguments, version: string, givenRoots: ReadonlyArray<string>) {
  const screen = yield* Screen
  const [first = "."] = givenRoots
  const root = resolve(screen.directory, first)
  const isHere = isDirectoryRoot(first, screen.directory)
  const plainToolNames = givenRoots.length <= 1 && isHere && isDirectory(root) ? knownTools(quick, screen) : undefined
  if (plainToolNames === undefined) {
    const { run, toParsedCommand } = yield* load
    return yield* run(toParsedCommand(quick, version, givenRoots, screen.directory))
  }
  const start = yield* makeGreeting(quick, version, plainToolNames, basename(root))
  yield* serve({
    ...start,
    register: (subscribed) =>
      Layer.unwrap(Effect.map(load, ({ layer }) => layer({ ...quick, version, root: first }, start.flow, subscribed)))
  })
})

/**
 * Tests whether a flag needs a backend other than the given backend, so that the error is reported before `initialize` is
 * answered.
 */
const needsOtherBackend = ({ backend, container, mounts = [] }: McpArguments): boolean =>
  (backend !== "memory" && mounts.length > 0) || (container?.image ?? container?.rootfs) !== undefined

/**
 * Serves the given roots. Without given roots, serves the current directory over HTTP or in a container, and otherwise the roots
 * of the client. Over standard input, returns when the client disconnects.
 */
export const serving = (quick: McpArguments, versioned: Versioned) =>
  Effect.gen(function* () {
    const { backend, input, refusal: misplaced, roots } = quick
    if (misplaced !== undefined) return yield* (yield* load).reportRefusal(quick, misplaced)
    const screen = yield* Screen
    const { directory } = screen
    const isDirectory = (root: string) => isDirectoryAt(resolve(directory, root))
    const isAtTerminal = screen.isInteractive && screen.isTerminal
    const waits =
      isAtTerminal && input.http === undefined && roots.every(isDirectory) ? screen.warn(waitsForClient) : Effect.void
    const hasOwnRoots = roots.length > 0 || input.http !== undefined || backend === "container" || needsOtherBackend(quick)
    if (!hasOwnRoots) return yield* Effect.andThen(waits, serveClientRoots(quick, versioned))
    const givenRoots = roots.length === 0 ? ["."] : roots
    const elsewhere = givenRoots.find((root) => !isDirectoryRoot(root, directory))
    const refusal =
      elsewhere === undefined
        ? input.anyRoot
          ? undefined
          : givenRoots
              .map((root, index) => refusalOf(resolve(directory, root), roots[index], screen))
              .find((refusal) => refusal !== undefined)
        : givenRoots.length > 1
          ? needsDirectory(elsewhere, "serving several roots")
          : undefined
    if (refusal !== undefined) return yield* (yield* load).reportRefusal(quick, refusal)
    yield* Effect.andThen(waits, serveRoots(quick, versioned.version, givenRoots))
  }).pipe(Effect.provideService(Logger.LogToStderr, true))

export const run = (quick: McpArguments, versioned: Versioned): Effect.Effect<number, never, Screen> =>
  Effect.flatMap(Screen, (screen) => ended(screen)(serving(quick, versioned)))
