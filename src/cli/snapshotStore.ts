/**
 * Opens the store of a root's snapshots. By default the store is in the user's state directory. Its name consists of the root's
 * name and a hash of the root's path, so that every command for the root finds the store. `--store` names another store, and a
 * workspace has its own snapshots.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { existsSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { Filesystem } from "../filesystem/Filesystem.ts"
import type { Operations, SnapshotProgress } from "../history/Snapshots.ts"
import { SnapshotError } from "../history/errors.ts"
import { findCandidates, makeShortIds, type FilesystemSnapshot } from "../history/snapshots/value.ts"
import { makeDirectories } from "../runtime/directories.ts"
import { leadsInto } from "../runtime/openRoots.ts"
import { Sha } from "../runtime/sha.ts"
import { withProgress } from "./answer.ts"
import { Complaint, exitCodeOf, usage, usageErrorCode } from "./exit.ts"
import * as humanise from "./humanise.ts"
import { type CommandLine, commandLine, printableName } from "./look.ts"
import { resolveLinks } from "./paths.ts"
import { rootIdentity } from "./root.ts"
import { ofRoot, WorkspaceSnapshots } from "./workspaceRoot.ts"
import { Screen } from "./screen.ts"
import { type Directory, Settings } from "./settings.ts"

export { latest, makeShortIds as shortIds, safetyTag } from "../history/snapshots/value.ts"

export interface StoreOptions {
  /** True to allow a home directory or the whole machine as root. @default false */
  readonly anyRoot?: boolean | undefined
}

export interface Store {
  readonly directory: string
  readonly snapshots: Operations
  readonly line: CommandLine
  readonly withStoreProgress: (what: string) => <A, E, R>(self: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R | Screen>
}

const lineFor = Effect.gen(function* () {
  const { root, store } = yield* Settings
  const line = commandLine((yield* Screen).program, root)
  return (...words: ReadonlyArray<string>) => line(...words, ...(store === undefined ? [] : ["--store", store]))
})

/** Makes a function that makes errors with the JSON form of a SnapshotError of the snapshot service. */
const snapshotComplaint =
  (operation: "store" | "find", reason: SnapshotError["reason"], code: number) =>
  (detail: string, hint: string): Complaint =>
    new Complaint({ error: { _tag: "SnapshotError", operation, reason, detail }, message: detail, hint, code })

const storeRefused = snapshotComplaint("store", "refused", usageErrorCode)

const unknownError = snapshotComplaint("find", "unknown", exitCodeOf("NotFound"))

const maxNameCharacters = 40

/** Returns the name of a store, such as `notes-0123456789abcdef`. */
const storeName = (root: string, baseName = basename(root)): string => {
  const name = baseName.replace(/[^\p{L}\p{N}._-]/gu, "_")
  // Do not use node:crypto: a server computes this name when it starts, and loading node:crypto would delay the start.
  const hash = new Sha("sha256").update(root).digest("hex").slice(0, 16)
  return `${name === "" ? "root" : Array.from(name).slice(0, maxNameCharacters).join("")}-${hash}`
}

/** Returns the name of the store. Several directories together have one store, which does not depend on their order. */
const nameOf = (top: string, directories: ReadonlyArray<Directory> | undefined): string => {
  if (directories === undefined) return storeName(top)
  const sorted = directories.map(({ name, path }) => [name, resolveLinks(path)] as const).sort()
  return storeName(JSON.stringify(sorted), sorted.map(([name]) => name).join("+"))
}

/** Returns the directory of the root's store, even if it does not exist yet. */
export const storeDirectory = Effect.gen(function* () {
  const fs = yield* Filesystem
  const { backend, directories, journal, root, store } = yield* Settings
  const { directory, stateDirectory } = yield* Screen
  if (backend === "memory") {
    return yield* storeRefused(
      "snapshots of a copy in memory would be lost when the command ends",
      "Leave out --backend memory."
    )
  }
  if (ofRoot(root) !== undefined) {
    return yield* storeRefused(
      "the snapshots of a workspace are commits of the workspace, which a journal cannot record",
      "Leave out --journal."
    )
  }
  const { history } = fs.port
  const identity = rootIdentity(root, directory)
  // A recording filesystem has a directory but does not report it.
  const isDirectory =
    history?._tag === "Directory" || (identity === undefined && (journal !== undefined || directories !== undefined))
  const top = history?._tag === "Directory" ? history.root : (identity ?? resolveLinks(resolve(directory, root)))
  const recordedRoots = directories?.map(({ path }) => resolveLinks(path)) ?? [top]
  if (store === undefined && stateDirectory === undefined) {
    return yield* storeRefused(
      "there is no home directory to keep snapshots in",
      "Give a directory for the snapshots: --store DIR."
    )
  }
  const place =
    store === undefined ? join(stateDirectory!, "fs-algebra", "snapshots", nameOf(top, directories)) : resolve(directory, store)
  if (isDirectory && leadsInto(place, recordedRoots)) {
    return yield* storeRefused(
      `the store of snapshots would lie inside the root: ${place}`,
      "Give a store outside of the root, with every command for this root: --store DIR."
    )
  }
  return place
})

export const makeParent = (directory: string) =>
  Effect.try({
    try: () => makeDirectories(dirname(directory), 0o700),
    catch: (error) =>
      new SnapshotError({
        operation: "store",
        reason: "io",
        detail: `cannot create ${dirname(directory)}: ${(error as NodeJS.ErrnoException).code ?? String(error)}`
      })
  })

const formatProgress = ({ bytes, files, phase, totalBytes }: SnapshotProgress): string =>
  phase === "counting"
    ? `${humanise.count(files, "file")}, ${humanise.bytes(bytes)}`
    : `${humanise.bytes(bytes)}${totalBytes === undefined ? "" : ` of ${humanise.bytes(totalBytes)}`} read`

/**
 * Returns an effect that opens a store at its first use, for as long as the scope is open. A failure is not cached, because the
 * next attempt may succeed, for example after git was installed.
 */
export const openStoreOnce = Effect.fnUntraced(function* (
  gitDir: string,
  anyRoot: boolean,
  prepare: Effect.Effect<void, SnapshotError> = Effect.void
) {
  const scope = yield* Effect.scope
  const context = yield* Effect.context<Filesystem>()
  const opened = Effect.gen(function* () {
    yield* prepare
    const { layerGit, Snapshots } = yield* Effect.promise(() => import("../history/Snapshots.ts"))
    return Context.get(yield* Layer.buildWithScope(layerGit({ gitDir, anyRoot }), scope), Snapshots)
  })
  return yield* Effect.cachedWithTTL(Effect.provideContext(opened, context), (exit) => (Exit.isSuccess(exit) ? Infinity : 0))
})

/** Returns the store of the snapshots that are part of the workspace, if the root is a workspace. */
const findOwnStore = Effect.gen(function* () {
  const found = yield* Effect.serviceOption(WorkspaceSnapshots)
  const { root } = yield* Settings
  const address = ofRoot(root)
  if (Option.isNone(found) || address === undefined) return undefined
  const store: Store = {
    directory: address.store,
    snapshots: found.value,
    line: commandLine((yield* Screen).program, root),
    withStoreProgress: (what) => withProgress(what)
  }
  return store
})

const openStore = Effect.fnUntraced(function* <A, E, R>(
  directory: string,
  { anyRoot }: StoreOptions,
  body: (store: Store) => Effect.Effect<A, E, R>
) {
  yield* makeParent(directory)
  const line = yield* lineFor
  const { layerGit, Snapshots } = yield* Effect.promise(() => import("../history/Snapshots.ts"))
  let detail = ""
  const onProgress = (progress: SnapshotProgress): void => {
    detail = formatProgress(progress)
  }
  const withStoreProgress: Store["withStoreProgress"] = (what) => withProgress(what, () => detail)
  return yield* Snapshots.use((snapshots) => body({ directory, snapshots, line, withStoreProgress })).pipe(
    Effect.provide(layerGit({ gitDir: directory, anyRoot, onProgress }))
  )
})

export const withStore = Effect.fnUntraced(function* <A, E, R>(
  options: StoreOptions,
  body: (store: Store) => Effect.Effect<A, E, R>
) {
  const own = yield* findOwnStore
  return own === undefined ? yield* openStore(yield* storeDirectory, options, body) : yield* body(own)
})

/** Runs the body if the store exists, or else `otherwise`. Does not create a store, and allows any root. */
export const withExistingStore = Effect.fnUntraced(function* <A, E, R, A2, E2, R2>(
  body: (store: Store) => Effect.Effect<A, E, R>,
  otherwise: Effect.Effect<A2, E2, R2>
) {
  const own = yield* findOwnStore
  if (own !== undefined) return yield* body(own)
  const directory = yield* storeDirectory
  return existsSync(directory) ? yield* openStore(directory, { anyRoot: true }, body) : yield* otherwise
})

type All = ReadonlyArray<FilesystemSnapshot>

const ambiguousError = (all: All, found: All, text: string): Complaint => {
  const short = makeShortIds(all)
  const shown = found
    .slice(-5)
    .map(
      (snapshot) =>
        `${short(snapshot)}${snapshot.tag === undefined ? "" : ` (${snapshot.tag})`}, ${humanise.time(snapshot.createdAt)}`
    )
  const message = `"${text}" matches ${found.length} snapshots`
  const hint = `Give more of the id: ${found.length > shown.length ? "…; " : ""}${shown.map(printableName).join("; ")}`
  return usage(message, hint)
}

export const noSnapshots = Effect.suspend(() => Effect.flatMap(lineFor, (line) => Effect.fail(noSnapshotError(line))))

const noSnapshotError = (line: CommandLine): Complaint =>
  unknownError("there is no snapshot of this root yet", `Take a snapshot: ${line("snapshot")}`)

/**
 * Returns the snapshot that the text names. If no snapshot matches, the caller's hint can explain another meaning of the text.
 */
export const chooseSnapshot = Effect.fnUntraced(function* <R = never>(
  { line, snapshots }: Store,
  text: string,
  alternativeHint?: Effect.Effect<string | undefined, never, R>
) {
  const all = yield* snapshots.list
  if (all.length === 0) return yield* noSnapshotError(line)
  const found = findCandidates(all, text)
  if (found.length > 1) return yield* ambiguousError(all, found, text)
  if (found.length === 1) return found[0]!
  const hint =
    (alternativeHint === undefined ? undefined : yield* alternativeHint) ?? `List the snapshots: ${line("snapshots")}`
  return yield* unknownError(`there is no snapshot "${text}"`, hint)
})
