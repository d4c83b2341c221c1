/** Serves the filesystem of a command to remote clients until the command is interrupted. */
import { statSync } from "node:fs"
import { hostname } from "node:os"
import { dirname, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { type AccessOptions, confined, make as makeRules } from "../agent/policy/access.ts"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { InvalidArgument, Unavailable } from "../model/FsError.ts"
import * as Limits from "../model/Limits.ts"
import * as Address from "../remote/address.ts"
import * as Remote from "../remote/Remote.ts"
import { Complaint, hostPathError, systemErrorCode, usage } from "./exit.ts"
import { errorStyle, quote } from "./look.ts"
import { readToken } from "./openRoot.ts"
import { Screen } from "./screen.ts"
import { limits, Settings } from "./settings.ts"

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
        hint: "End the program that uses the address, or give another address with --listen.",
        code: systemErrorCode
      })

const accessOf = ({ allow, deletes, deny }: ServeInput): AccessOptions => ({
  ...(allow.length > 0 && { allow: { read: allow } }),
  ...((deny.length > 0 || !deletes) && {
    deny: { ...(deny.length > 0 && { read: deny }), ...(!deletes && { delete: ["**"] }) }
  })
})

const confine = (fs: Algebra, input: ServeInput): Effect.Effect<Algebra, Complaint> => {
  const access = accessOf(input)
  return access.allow === undefined && access.deny === undefined
    ? Effect.succeed(fs)
    : Effect.try({
        try: () => confined(fs, makeRules(access, fs.port.info.caseSensitive)),
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

const announce = Effect.fnUntraced(function* (url: string, token: "file" | "variable" | undefined, isOpen: boolean) {
  const screen = yield* Screen
  const { json, tokenFile } = yield* Settings
  if (json) return yield* screen.write(`${JSON.stringify({ url, token: token !== undefined })}\n`)
  const flag = token === "file" ? ` --token-file ${quote(tokenFile!)}` : ""
  yield* screen.warn(
    `Serving at ${url} (Ctrl-C ends it). Clients: ${screen.program} ls --root ${quote(url)}${flag}${token === "variable" ? ", with FS_ALGEBRA_TOKEN" : ""}`
  )
  if (isOpen) {
    const { yellow } = errorStyle(screen)
    yield* screen.warn(
      `${yellow("note:")}  HTTP does not encrypt the token and the files; put a proxy with TLS in front of the server`
    )
  }
})

/** Runs a server on the filesystem that clients may use. No call of a client gets larger limits than `--limits` allows. */
const withServed =
  (input: ServeInput) =>
  <A, E, R>(
    server: Effect.Effect<A, E, R | Filesystem>
  ): Effect.Effect<A, E | Complaint, Exclude<R, Filesystem> | Filesystem> =>
    Effect.flatMap(
      Effect.flatMap(Filesystem, (fs) => confine(fs, input)),
      (fs) =>
        server.pipe(
          Effect.provideService(Filesystem, fs),
          Effect.provideService(Limits.Limits, input.limits === undefined ? limits : Limits[input.limits])
        )
    )

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

export const serve = Effect.fnUntraced(
  function* (input: ServeInput) {
    const { tokenFile } = yield* Settings
    if (input.listen === "stdio") return yield* serveStandardStreams(input)
    const parsed = yield* parseListen(input.listen)
    const wrong = parsed._tag === "Unix" ? checkSocketDirectory(parsed.path) : undefined
    if (wrong !== undefined) return yield* wrong
    const token = yield* readToken(tokenFile)
    const address =
      parsed._tag === "Unix"
        ? `unix:${parsed.path}`
        : `${parsed.host.includes(":") ? `[${parsed.host}]` : parsed.host}:${parsed.port}`
    const listening = yield* Remote.listen(address, { readOnly: input.readOnly, token }).pipe(
      Effect.mapError((error) => listenComplaint(input.listen, error)),
      withServed(input)
    )
    const kind = token === undefined ? undefined : tokenFile === undefined ? "variable" : "file"
    yield* announce(urlOf(parsed, listening), kind, !Address.isLocal(parsed))
    return yield* Effect.never
  },
  Effect.scoped,
  Effect.provideService(Logger.LogToStderr, true)
)
