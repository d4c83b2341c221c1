import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import { notADirectory, notFound, unavailable, unsupported } from "../../model/Fault.ts"
import { type BackendError, type Fault, InvalidArgument, promote } from "../../model/FsError.ts"
import type { Backend } from "../../port/Backend.ts"
import { type CommonOptions, enforce, fromOptions, isReadOnly } from "../../port/Rules.ts"
import { below, fromBytes } from "../posix/place.ts"
import * as Calls from "./calls.ts"
import { dialWith, loadSsh2 } from "./dial.ts"
import { isFingerprint } from "./hostKeys.ts"
import * as Link from "./link.ts"
import { faultOf, kindOf } from "./place.ts"
import { makePort } from "./port.ts"
import { Refused, type Session } from "./session.ts"

/**
 * The options of a filesystem on an SSH server.
 *
 * @category models
 * @since 0.1.0
 */
export interface SftpOptions extends CommonOptions {
  readonly host: string
  /** @default 22 */
  readonly port?: number | undefined
  readonly username: string
  /** An existing directory on the server, absolute or relative to the login directory. */
  readonly root: string
  /** A private key without a passphrase, in the format of OpenSSH or PEM. */
  readonly privateKey?: Redacted.Redacted | undefined
  readonly password?: Redacted.Redacted | undefined
  /** The socket of an SSH agent, such as the value of SSH_AUTH_SOCK. */
  readonly agent?: string | undefined
  /**
   * SHA-256 fingerprints as ssh-keygen prints them, or the path of a known_hosts file. A server with any other key is refused,
   * and the message contains the fingerprint of that key.
   */
  readonly hostKeys: ReadonlyArray<string> | { readonly knownHosts: string }
  /**
   * The events that a completed write survives. `none`: a crash of the program or of the connection. `file`: the bytes are on
   * the server's disk, if the server can flush a file.
   * @default "file"
   */
  readonly durability?: "none" | "file" | undefined
  /**
   * If true, a file is removed before it is replaced, on servers that cannot replace a file atomically. Other programs then see
   * no file for a moment, and a lost connection can leave no file.
   * @default false
   */
  readonly unsafeReplace?: boolean | undefined
}

/** The settings that only tests change. */
export interface Tuning {
  readonly timings?: Partial<Link.Timings>
  readonly maxEntries?: number
}

/** The maximum number of entries in a listing of a directory. */
const maxEntries = 1_000_000

const operation = "Sftp.make"

const invalid = (argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation, path: "", argument, detail })

const isText = (value: unknown): value is string => typeof value === "string" && value !== "" && !value.includes("\0")

const checkOptions = ({ agent, host, hostKeys, password, port, privateKey, root, username }: SftpOptions) => {
  if (!isText(host) || /[\s/@]/.test(host)) return invalid("host", "it must be the name or the address of a host")
  if (port !== undefined && !(Number.isInteger(port) && port > 0 && port < 65_536)) {
    return invalid("port", "it must be a whole number from 1 to 65535")
  }
  if (!isText(username)) return invalid("username", "it must be the name of a user on the server")
  if (!isText(root)) return invalid("root", "it must be a directory on the server")
  if (privateKey === undefined && password === undefined && agent === undefined) {
    return invalid("privateKey", "give privateKey, password or agent; the server must know who connects")
  }
  if (agent !== undefined && !isText(agent)) return invalid("agent", "it must be the path of a socket")
  if (Array.isArray(hostKeys)) {
    return (hostKeys as ReadonlyArray<unknown>).every((key) => typeof key === "string" && isFingerprint(key))
      ? undefined
      : invalid("hostKeys", "each must be a fingerprint as ssh-keygen -l prints it: SHA256: and 43 characters")
  }
  return typeof hostKeys === "object" && hostKeys !== null && "knownHosts" in hostKeys && isText(hostKeys.knownHosts)
    ? undefined
    : invalid("hostKeys", "it must be a list of fingerprints, or { knownHosts: path }")
}

const rootFault = (root: string, fault: Fault): Fault =>
  fault._tag === "NotFound" || fault._tag === "NotADirectory" || fault._tag === "AccessDenied"
    ? unavailable(
        `the directory ${JSON.stringify(root)} ${
          fault._tag === "NotFound"
            ? "does not exist on the server; create it, or correct root"
            : fault._tag === "NotADirectory"
              ? "is not a directory on the server; correct root"
              : "cannot be read on the server; give the user access, or correct root"
        }`
      )
    : fault

const findRoot = (session: Session, root: string): Effect.Effect<string | Buffer, Calls.Failure> =>
  Effect.gen(function* () {
    const path = fromBytes(yield* Calls.realPath(session, root))
    if (path.includes("\0") || !path.toString().startsWith("/")) return yield* Effect.fail(notFound)
    const [found] = yield* Calls.lookAll(session, [path], path)
    const attributes = yield* found!
    if (attributes === undefined) return yield* Effect.fail(notFound)
    if (kindOf(attributes) !== "directory") return yield* Effect.fail(notADirectory)
    return path
  })

const swapCase = (text: string): string =>
  text.replace(/[a-z]/gi, (letter) => (letter < "a" ? letter.toLowerCase() : letter.toUpperCase()))

/**
 * Tests whether the server ignores case: looks up the name of an entry of the root with upper and lower case swapped. Returns
 * false if the root has no entry with an ASCII name that contains a letter. Writes nothing.
 */
const ignoresCase = (session: Session, root: string | Buffer, entries: number): Effect.Effect<boolean, Calls.Failure> =>
  Effect.gen(function* () {
    const names = (yield* Calls.list(session, root, entries)).map(({ name }) => name.toString())
    const name = names.find((name) => /^[\x20-\x7e]+$/.test(name) && /[a-z]/i.test(name))
    const other = name !== undefined && swapCase(name)
    if (typeof other !== "string") return false
    return !names.includes(other) && (yield* Calls.look(session, below(root, other))) !== undefined
  })

/** Opens the port over the connections that `dial` makes. */
export const openOver = (
  dial: Link.Dial,
  options: Pick<SftpOptions, keyof CommonOptions | "durability" | "root" | "unsafeReplace">,
  shownRoot: (root: string) => string,
  tuning: Tuning = {}
): Effect.Effect<Backend, Fault, Scope.Scope> =>
  Effect.gen(function* () {
    const rules = fromOptions(options)
    const link = yield* Link.make(dial, { ...Link.defaultTimings, ...tuning.timings })
    const limit = tuning.maxEntries ?? maxEntries
    const { extensions, root } = yield* link
      .run((session) =>
        Effect.gen(function* () {
          const root = yield* findRoot(session, options.root)
          const isCaseless = yield* Effect.catch(ignoresCase(session, root, limit), (failure) =>
            failure instanceof Refused ? Effect.succeed(false) : Effect.fail(failure)
          )
          if (isCaseless) return yield* Effect.fail(unsupported("a server whose names ignore case"))
          return { root, extensions: session.extensions }
        })
      )
      .pipe(Effect.mapError((failure) => rootFault(options.root, faultOf(failure))))
    const isDurable = options.durability !== "none"
    const has = (name: string) => extensions.has(name)
    const bestEffort = isReadOnly(rules)
      ? []
      : [
          "preconditions of writes beside other programs",
          ...(has(Calls.posixRename)
            ? []
            : options.unsafeReplace === true
              ? ["replacement: the old file is removed first"]
              : []),
          ...(has(Calls.hardlinking) ? [] : ["creation: a file of another program that appears meanwhile may be replaced"]),
          ...(isDurable && !has(Calls.fsyncing) ? ["durability: the server cannot flush a file"] : [])
        ]
    return enforce(
      makePort({
        site: {
          link,
          root,
          isDurable,
          mayReplaceUnsafely: options.unsafeReplace === true,
          mayRemoveLeftovers: rules.permits?.("delete") !== false,
          maxEntries: limit,
          clock: { seconds: undefined }
        },
        rules,
        shownRoot: shownRoot(root.toString()),
        bestEffort
      })
    )
  })

const toError = (fault: Fault): BackendError | InvalidArgument => {
  const isBackendError = fault._tag === "IoError" || fault._tag === "Timeout" || fault._tag === "Unavailable"
  const detail =
    fault._tag === "Unsupported" ? `it is ${String(fault["feature"])}, which is not supported` : "the root cannot be opened"
  return promote(isBackendError ? fault : unavailable(detail), operation, "") as BackendError
}

export const open = (
  options: SftpOptions,
  tuning: Tuning = {}
): Effect.Effect<Backend, BackendError | InvalidArgument, Scope.Scope> =>
  Effect.suspend(() => {
    const fault = checkOptions(options)
    if (fault !== undefined) return Effect.fail(fault)
    const { host, port = 22, username } = options
    const shownHost = host.includes(":") ? `[${host}]` : host
    return Effect.flatMap(loadSsh2, (ssh2) =>
      openOver(
        dialWith(ssh2, { ...options, port }, { ...Link.defaultTimings, ...tuning.timings }),
        options,
        (root) => `sftp://${username}@${shownHost}${port === 22 ? "" : `:${port}`}${root}`,
        tuning
      )
    ).pipe(Effect.mapError(toError))
  })
