import { existsSync } from "node:fs"
import { join, resolve } from "node:path"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Server from "../debug/Server.ts"
import { Filesystem } from "../filesystem/Filesystem.ts"
import { BlobStore } from "../repository/BlobStore.ts"
import { HeadStore } from "../repository/HeadStore.ts"
import { Complaint, exitCodeOf, systemErrorCode, usage, usageErrorCode } from "./exit.ts"
import { withJournalComplaints } from "./advice.ts"
import { openForReading } from "./journal/file.ts"
import { rootName } from "./root.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"
import { openStoreOnce, storeDirectory } from "./snapshotStore.ts"
import { viewedLayer } from "./workspace.ts"
import { isStoreUrl, ofRoot } from "./workspaceRoot.ts"

export interface DebugServeInput {
  readonly path: string | undefined
  readonly port: number
  readonly host: "127.0.0.1" | "::1"
}

const findMisplacedFlag = Effect.fnUntraced(function* ({ path }: DebugServeInput) {
  const { backend, mounts, refusal, root, store } = yield* Settings
  if (refusal !== undefined) return refusal
  if (path === undefined) return undefined
  if (path.trim() === "")
    return usage("the name of the dump is blank", "Name a .jsonl file, its .fs.zip, or a directory of dumps.")
  const wrong =
    backend !== "host"
      ? `--backend ${backend}`
      : mounts.length > 0
        ? "--mount"
        : store === undefined && ofRoot(root) === undefined
          ? undefined
          : "--store"
  return wrong === undefined
    ? undefined
    : usage(`${wrong} does not apply to a dump, which is shown as it is`, `Leave out ${wrong}, or the path.`)
})

const listenComplaint = ({ code, host, message, port }: Server.ListenError): Complaint =>
  new Complaint({
    error: { _tag: "ListenError", host, port, code },
    message,
    hint: "Give another port with --port, omit --port to use any free port, or give another --host.",
    code: systemErrorCode
  })

const hintByReason: Readonly<Record<Server.DebugError["reason"], string>> = {
  missing: "Name a .jsonl file, its .fs.zip, or a directory of dumps; without a path the directory of --root is shown.",
  invalid: "Name a .jsonl file, its .fs.zip, or a directory of dumps.",
  unreadable: "Check the permissions of the file, and that the file is a dump of a session.",
  forbidden: "Give the path of the dump itself."
}

const exitCodeByReason = {
  missing: exitCodeOf("NotFound"),
  invalid: exitCodeOf("NotAFile"),
  unreadable: exitCodeOf("AccessDenied")
}

const debugComplaint =
  (given: string) =>
  ({ message, reason }: Server.DebugError): Complaint =>
    new Complaint({
      error: { _tag: "DebugError", reason, path: given },
      message,
      hint: hintByReason[reason],
      code: reason === "forbidden" ? usageErrorCode : exitCodeByReason[reason]
    })

const wrongStore = ({ message, reason }: Server.DebugError): Complaint =>
  new Complaint({
    error: { _tag: "DebugError", reason },
    message,
    hint:
      reason === "missing"
        ? "fs-algebra workspaces list --store URL shows the workspaces, and workspaces create makes one."
        : "Check the store: fs-algebra workspaces verify --store URL.",
    code: reason === "missing" ? exitCodeOf("NotFound") : exitCodeOf("NotAFile")
  })

/**
 * Returns an effect that opens the snapshots of the root, or succeeds with `undefined` while their store does not exist. Viewing
 * creates no store, but another command may create the store while the server runs.
 */
const snapshotsOf = Effect.gen(function* () {
  const { backend } = yield* Settings
  if (backend === "memory") return undefined
  const directory = yield* Effect.orElseSucceed(storeDirectory, () => undefined)
  if (directory === undefined) return undefined
  const opened = yield* openStoreOnce(directory, true)
  return Effect.suspend(() => (existsSync(directory) ? opened : Effect.succeed(undefined)))
})

const openWorkspace = Effect.gen(function* () {
  const { root } = yield* Settings
  const { directory } = yield* Screen
  const snapshots = yield* snapshotsOf
  return { filesystem: yield* Filesystem, snapshots, title: rootName(root, directory) }
})

const announceUrl = Effect.fnUntraced(function* (url: string) {
  const { warn, write } = yield* Screen
  const { json } = yield* Settings
  yield* json ? write(`${JSON.stringify({ url })}\n`) : warn(`The debug view is at ${url} (Ctrl-C ends it)`)
})

/**
 * Tests whether `--store` names a store of workspaces. Without `--workspace`, the flag may also name a directory of snapshots.
 */
const isStore = Effect.fnUntraced(function* (store: string) {
  const { directory } = yield* Screen
  return isStoreUrl(store) || existsSync(join(resolve(directory, store), "format.json"))
})

/** Serves all workspaces of a store. `workspace` is the workspace that the page shows first. */
const serveStore = Effect.fnUntraced(function* (
  { store, workspace }: { readonly store: string; readonly workspace?: string | undefined },
  input: DebugServeInput,
  version: string
) {
  const { backend, tokenFile } = yield* Settings
  if (backend !== "host") {
    return yield* usage(`--backend ${backend} does not apply to a store, which is shown as it is`, "Leave out --backend.")
  }
  const { openStores } = yield* Effect.promise(() => import("./stores.ts"))
  const context = yield* Layer.build(yield* openStores(store, tokenFile))
  const [blobs, heads] = [Context.get(context, BlobStore), Context.get(context, HeadStore)]
  return yield* serveSource({ blobs, heads, workspace, title: store }, input, version)
})

const serveSource = Effect.fnUntraced(function* (
  source: Server.Options["source"],
  { host, path, port }: DebugServeInput,
  version: string
) {
  const { journal: file } = yield* Settings
  const journal = file === undefined ? undefined : yield* withJournalComplaints(file)(openForReading(file))
  const { url } = yield* Effect.catchTags(Server.serve({ source, journal, host, port, version }), {
    DebugError: (error) => Effect.fail("heads" in source ? wrongStore(error) : debugComplaint(path ?? "")(error)),
    ListenError: (error) => Effect.fail(listenComplaint(error))
  })
  yield* announceUrl(url)
  return yield* Effect.never
})

export const serve = Effect.fnUntraced(
  function* (input: DebugServeInput, version: string) {
    const wrong = yield* findMisplacedFlag(input)
    if (wrong !== undefined) return yield* wrong
    const { path } = input
    if (path !== undefined) {
      const { directory } = yield* Screen
      return yield* serveSource({ dump: resolve(directory, path) }, input, version)
    }
    const { root, store } = yield* Settings
    const stored = ofRoot(root)
    if (stored !== undefined) return yield* serveStore(stored, input, version)
    if (store !== undefined && (yield* isStore(store))) return yield* serveStore({ store }, input, version)
    return yield* Effect.flatMap(openWorkspace, (source) => serveSource(source, input, version)).pipe(
      Effect.provide(viewedLayer)
    )
  },
  Effect.scoped,
  Effect.provideService(Logger.LogToStderr, true)
)
