/**
 * Serves the filesystem of a command, or all workspaces of a store, to remote clients until the command is interrupted. Also
 * serves one client on the standard streams.
 */
import { statSync } from "node:fs"
import { hostname } from "node:os"
import { dirname, resolve } from "node:path"
import { setFlagsFromString } from "node:v8"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as Redacted from "effect/Redacted"
import { type AccessOptions, confined, make as makeRules } from "../agent/policy/access.ts"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { InvalidArgument, Unavailable } from "../model/FsError.ts"
import * as Limits from "../model/Limits.ts"
import * as Address from "../remote/address.ts"
import * as Remote from "../remote/Remote.ts"
import { readOnly } from "../filesystem/Decorator.ts"
import { workspaceParameter } from "../remote/choice.ts"
import { listenWith } from "../remote/layers.ts"
import { FilesystemRpcs } from "../remote/protocol.ts"
import * as Served from "../repository/served.ts"
import { Complaint, hostPathError, systemErrorCode, usage } from "./exit.ts"
import { errorStyle, quote } from "./look.ts"
import { readToken } from "./openRoot.ts"
import { Screen } from "./screen.ts"
import { limits, Settings } from "./settings.ts"
import { author, openStores } from "./stores.ts"
import { servedLayer } from "./workspace.ts"

export interface ServeInput {
  readonly listen: string
  readonly readOnly: boolean
  readonly deletes: boolean
  readonly allow: ReadonlyArray<string>
  readonly deny: ReadonlyArray<string>
  readonly limits: "agent" | "standard" | "unlimited" | undefined
}

const parseListen = Effect.fnUntraced(function* (text: string) {
  const { directory } = yield* Screen
  const parsed = Address.parse(text)
  if (parsed === undefined) {
    return yield* usage(
      `cannot listen on ${JSON.stringify(text)}: it is neither unix:PATH nor HOST:PORT`,
      "Give --listen unix:PATH or --listen 127.0.0.1:0; port 0 is any free port."
    )
  }
  return parsed._tag === "Unix" ? { ...parsed, path: resolve(directory, parsed.path) } : parsed
})

/** Refuses a directory in which another user could replace the socket, as ssh refuses such directories for its files. */
const checkSocketDirectory = (path: string): Complaint | undefined => {
  const directory = dirname(path)
  const hint = "Put the socket into a private directory, such as $XDG_RUNTIME_DIR, or one that mkdir -m 700 makes."
  const stats = statSync(directory, { throwIfNoEntry: false })
  if (stats?.isDirectory() !== true) return hostPathError("NotFound", "serve", directory, "is not a directory", hint)
  const user = process.geteuid?.()
  if (user === undefined) return undefined
  const what =
    stats.uid !== user && stats.uid !== 0
      ? "belongs to another user, who could replace the socket"
      : (stats.mode & 0o022) !== 0
        ? "can be written by other users, who could replace the socket"
        : undefined
  return what === undefined ? undefined : hostPathError("AccessDenied", "serve", directory, what, hint)
}

const listenComplaint = (address: string, { _tag, detail }: Unavailable | InvalidArgument): Complaint =>
  _tag === "InvalidArgument"
    ? usage(
        `cannot listen on ${address}: ${detail}`,
        "Give --token-file FILE with a private file, set FS_ALGEBRA_TOKEN, or listen on 127.0.0.1 or a Unix socket."
      )
    : new Complaint({
        error: { _tag: "ListenError", address },
        message: detail,
        hint: "Give another address with --listen, or end the program that uses this address.",
        code: systemErrorCode
      })

const accessOf = ({ allow, deletes, deny }: ServeInput): AccessOptions => ({
  ...(allow.length > 0 && { allow: { read: allow } }),
  ...((deny.length > 0 || !deletes) && {
    deny: { ...(deny.length > 0 && { read: deny }), ...(!deletes && { delete: ["**"] }) }
  })
})

/** Returns the function that restricts a filesystem to what `--allow`, `--deny` and `--no-delete` permit. */
const confining = (input: ServeInput, caseSensitive: boolean): Effect.Effect<(fs: Algebra) => Algebra, Complaint> => {
  const access = accessOf(input)
  return access.allow === undefined && access.deny === undefined
    ? Effect.succeed((fs) => fs)
    : Effect.try({
        try: () => {
          const rules = makeRules(access, caseSensitive)
          return (fs: Algebra) => confined(fs, rules)
        },
        catch: (error) =>
          usage(
            error instanceof Error ? error.message : String(error),
            "Each --allow and --deny takes one glob, as the glob command does; quote it for the shell."
          )
      })
}

/** Returns the URL for clients. A server on all addresses of the machine is reached by the name of the machine. */
const urlOf = (parsed: Address.Address, listening: string): string => {
  if (parsed._tag === "Unix") return listening
  const port = listening.slice(listening.lastIndexOf(":"))
  return parsed.host === "0.0.0.0" || parsed.host === "::" ? `http://${hostname()}${port}` : `http://${listening}`
}

const announce = Effect.fnUntraced(function* (
  url: string,
  token: "file" | "variable" | undefined,
  isOpen: boolean,
  store: string | undefined
) {
  const screen = yield* Screen
  const { json, tokenFile } = yield* Settings
  if (json) return yield* screen.write(`${JSON.stringify({ url, token: token !== undefined })}\n`)
  const flag = token === "file" ? ` --token-file ${quote(tokenFile!)}` : ""
  const root = store === undefined ? url : `${url}${workspaceParameter}NAME`
  const what = store === undefined ? "" : " the workspaces of the store"
  yield* screen.warn(
    `Serving${what} at ${url} (Ctrl-C ends it). Clients: ${screen.program} ls --root ${quote(root)}${flag}${token === "variable" ? ", with FS_ALGEBRA_TOKEN" : ""}`
  )
  if (isOpen) {
    const { yellow } = errorStyle(screen)
    yield* screen.warn(
      `${yellow("note:")}  HTTP does not encrypt the token and the files; put a proxy with TLS in front of the server`
    )
  }
})

const limitsOf = (input: ServeInput): Limits.LimitsShape => (input.limits === undefined ? limits : Limits[input.limits])

/** Runs a server on the filesystem that clients may use. No call of a client gets larger limits than `--limits` allows. */
const withServed =
  (input: ServeInput) =>
  <A, E, R>(
    server: Effect.Effect<A, E, R | Filesystem>
  ): Effect.Effect<A, E | Complaint, Exclude<R, Filesystem> | Filesystem> =>
    Effect.flatMap(
      Effect.flatMap(Filesystem, (fs) => Effect.map(confining(input, fs.port.info.caseSensitive), (confine) => confine(fs))),
      (fs) => server.pipe(Effect.provideService(Filesystem, fs), Effect.provideService(Limits.Limits, limitsOf(input)))
    )

/** Listens for clients of all workspaces of a store. */
const listenToStore = Effect.fnUntraced(function* (
  input: ServeInput,
  store: string,
  address: string,
  token: Redacted.Redacted | undefined
) {
  const confine = yield* confining(input, true)
  const stores = yield* Layer.build(yield* openStores(store, undefined))
  const answers = FilesystemRpcs.toLayer(
    Served.make({ author: author(), confine: (fs) => confine(input.readOnly ? readOnly(fs) : fs) })
  )
  return yield* listenWith(address, token, answers).pipe(
    Effect.provideContext(stores),
    Effect.provideService(Limits.Limits, limitsOf(input))
  )
})

/** Refuses the flags that have no meaning for the workspaces of a store. */
const refuseForStore = Effect.gen(function* () {
  const { backend, hardlinks, journal, mounts } = yield* Settings
  const given = {
    "--backend": backend !== "host",
    "--journal": journal !== undefined,
    "--mount": mounts.length > 0,
    "--hardlinks": hardlinks === "reject"
  }
  for (const [flag, isGiven] of Object.entries(given)) {
    if (!isGiven) continue
    return yield* usage(
      `${flag} cannot be combined with the workspaces of a store`,
      `Leave out ${flag}, or give --workspace NAME to serve one workspace.`
    )
  }
})

/** Serves the client that has started this process, for example with ssh. A client that can start a process needs no token. */
const serveStandardStreams = Effect.fnUntraced(function* (input: ServeInput) {
  const { tokenFile } = yield* Settings
  if (tokenFile !== undefined) {
    return yield* usage("--token-file cannot be combined with --listen stdio", "Leave out --token-file.")
  }
  yield* Remote.serveStandardStreams({ readOnly: input.readOnly }).pipe(
    Effect.mapError((error) => listenComplaint(input.listen, error)),
    withServed(input)
  )
})

/**
 * The growth of the heap after which V8 collects all of it, in percent of the size after the last garbage collection. V8
 * counts file content as part of the heap. With V8's default, these garbage collections take much of the time of a server that
 * streams.
 */
const heapGrowingPercent = 200

export const serve = Effect.fnUntraced(
  function* (input: ServeInput) {
    setFlagsFromString(`--heap-growing-percent=${heapGrowingPercent}`)
    const { store, tokenFile } = yield* Settings
    if (store !== undefined) yield* refuseForStore
    if (input.listen === "stdio") {
      if (store === undefined) return yield* Effect.provide(serveStandardStreams(input), servedLayer)
      return yield* usage("--listen stdio serves one workspace of a store", "Give --workspace NAME too.")
    }
    const parsed = yield* parseListen(input.listen)
    const wrong = parsed._tag === "Unix" ? checkSocketDirectory(parsed.path) : undefined
    if (wrong !== undefined) return yield* wrong
    const token = yield* readToken(tokenFile)
    const address =
      parsed._tag === "Unix"
        ? `unix:${parsed.path}`
        : `${parsed.host.includes(":") ? `[${parsed.host}]` : parsed.host}:${parsed.port}`
    const listening =
      store === undefined
        ? yield* Remote.listen(address, { readOnly: input.readOnly, token }).pipe(
            Effect.mapError((error) => listenComplaint(input.listen, error)),
            withServed(input),
            Effect.provideContext(yield* Layer.build(servedLayer))
          )
        : yield* Effect.mapError(listenToStore(input, store, address, token), (error) =>
            error._tag === "Complaint" ? error : listenComplaint(input.listen, error)
          )
    const kind = token === undefined ? undefined : tokenFile === undefined ? "variable" : "file"
    yield* announce(urlOf(parsed, listening), kind, !Address.isLocal(parsed), store)
    return yield* Effect.never
  },
  Effect.scoped,
  Effect.provideService(Logger.LogToStderr, true)
)
