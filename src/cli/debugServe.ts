import { existsSync } from "node:fs"
import { resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Server from "../debug/Server.ts"
import { Filesystem } from "../filesystem/Filesystem.ts"
import { Complaint, exitCodeOf, systemErrorCode, usage, usageErrorCode } from "./exit.ts"
import { withJournalComplaints } from "./advice.ts"
import { openForReading } from "./journal/file.ts"
import { rootName } from "./root.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"
import { openStoreOnce, storeDirectory } from "./snapshotStore.ts"
import { viewedLayer } from "./workspace.ts"

export interface DebugServeInput {
  readonly path: string | undefined
  readonly port: number
  readonly host: "127.0.0.1" | "::1"
  readonly store: string | undefined
}

const findMisplacedFlag = Effect.fnUntraced(function* ({ path, store }: DebugServeInput) {
  const { backend, mounts } = yield* Settings
  if (path === undefined) return undefined
  if (path.trim() === "")
    return usage("the name of the dump is blank", "Name a .jsonl file, its .fs.zip, or a directory of dumps.")
  const wrong =
    backend !== "host" ? `--backend ${backend}` : mounts.length > 0 ? "--mount" : store === undefined ? undefined : "--store"
  return wrong === undefined
    ? undefined
    : usage(`${wrong} does not apply to a dump, which is shown as it is`, `Leave out ${wrong}, or the path.`)
})

const listenComplaint = ({ code, host, message, port }: Server.ListenError): Complaint =>
  new Complaint({
    error: { _tag: "ListenError", host, port, code },
    message,
    hint: "Give another port with --port, or omit --port to use any free port.",
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

/**
 * Opens the snapshots of the root when their store exists. Viewing creates no store, but another command may create the store
 * while the server runs.
 */
const snapshotsOf = Effect.fnUntraced(function* (store: string | undefined) {
  const { backend } = yield* Settings
  if (backend === "memory") return undefined
  const directory = yield* Effect.orElseSucceed(storeDirectory(store), () => undefined)
  if (directory === undefined) return undefined
  const opened = yield* openStoreOnce(directory, true)
  return Effect.suspend(() => (existsSync(directory) ? opened : Effect.succeed(undefined)))
})

const openWorkspace = Effect.fnUntraced(function* (store: string | undefined) {
  const { root } = yield* Settings
  const { directory } = yield* Screen
  const snapshots = yield* snapshotsOf(store)
  return { filesystem: yield* Filesystem, snapshots, title: rootName(root, directory) }
})

const announceUrl = Effect.fnUntraced(function* (url: string) {
  const { warn, write } = yield* Screen
  const { json } = yield* Settings
  yield* json ? write(`${JSON.stringify({ url })}\n`) : warn(`The debug view is at ${url} (Ctrl-C ends it)`)
})

const serveSource = Effect.fnUntraced(function* (
  source: Server.DumpSource | Server.WorkspaceSource,
  { host, path, port }: DebugServeInput,
  version: string
) {
  const { journal: file } = yield* Settings
  const journal = file === undefined ? undefined : yield* withJournalComplaints(file)(openForReading(file))
  const { url } = yield* Effect.catchTags(Server.serve({ source, journal, host, port, version }), {
    DebugError: (error) => Effect.fail(debugComplaint(path ?? "")(error)),
    ListenError: (error) => Effect.fail(listenComplaint(error))
  })
  yield* announceUrl(url)
  return yield* Effect.never
})

export const serve = Effect.fnUntraced(
  function* (input: DebugServeInput, version: string) {
    const wrong = yield* findMisplacedFlag(input)
    if (wrong !== undefined) return yield* wrong
    const { path, store } = input
    if (path !== undefined) {
      const { directory } = yield* Screen
      return yield* serveSource({ dump: resolve(directory, path) }, input, version)
    }
    return yield* Effect.flatMap(openWorkspace(store), (source) => serveSource(source, input, version)).pipe(
      Effect.provide(viewedLayer)
    )
  },
  Effect.scoped,
  Effect.provideService(Logger.LogToStderr, true)
)
