/** Opens the roots that are not directories of this machine: servers, directories of SSH servers, buckets and workspaces. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { homedir } from "node:os"
import { join } from "node:path"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import * as FsError from "../model/FsError.ts"
import { openOperation } from "./advice.ts"
import { type Complaint, usage } from "./exit.ts"
import { parseRoot, type Root, shownRoot } from "./root.ts"
import { Screen } from "./screen.ts"
import { isToken, readPrivateKey, readTokenFile } from "./token.ts"
import { configured, currentUser, readS3Variables } from "./variables.ts"

const environment = {
  token: Config.option(Config.Redacted("FS_ALGEBRA_TOKEN")),
  agent: Config.option(Config.NonEmptyString("SSH_AUTH_SOCK")),
  key: Config.option(Config.NonEmptyString("FS_ALGEBRA_SSH_KEY")),
  password: Config.option(Config.Redacted("FS_ALGEBRA_SSH_PASSWORD")),
  knownHosts: Config.option(Config.NonEmptyString("FS_ALGEBRA_KNOWN_HOSTS")),
  hostKeys: Config.option(Config.NonEmptyString("FS_ALGEBRA_HOST_KEYS"))
}

const wrongVariable = usage(
  "the variable FS_ALGEBRA_TOKEN is not a token: one line of visible ASCII characters",
  "Set the variable to the token of the server, or unset it."
)

/** Returns the token of the file or, without a file, of the environment. */
export const readToken = Effect.fnUntraced(function* (file: string | undefined) {
  if (file !== undefined) return yield* readTokenFile(file)
  const token = yield* configured(environment.token)
  if (token === undefined || Redacted.value(token) === "") return undefined
  return isToken(Redacted.value(token)) ? token : yield* wrongVariable
})

const sftpHint =
  "Check the address; FS_ALGEBRA_SSH_KEY or the SSH agent gives the key, and FS_ALGEBRA_KNOWN_HOSTS or FS_ALGEBRA_HOST_KEYS the keys of known servers."

type Opened = Layer.Layer<Filesystem, FsError.FsError>

const openServer = Effect.fnUntraced(function* (url: string, tokenFile: string | undefined) {
  const token = yield* readToken(tokenFile)
  const { layerUrl } = yield* Effect.promise(() => import("../remote/Remote.ts"))
  return layerUrl(url, { token }) as Opened
})

const openBucket = Effect.fnUntraced(function* (bucket: string, prefix: string) {
  const { endpoint, region } = yield* readS3Variables
  const { layer } = yield* Effect.promise(() => import("../backends/Bucket.ts"))
  return layer({ bucket, prefix, endpoint, region }) as Opened
})

const noLogin = usage(
  "there is no key and no password for the SSH server",
  "Start an SSH agent that has your key, or set FS_ALGEBRA_SSH_KEY (the file of a private key without a passphrase) or FS_ALGEBRA_SSH_PASSWORD."
)

/**
 * Returns the credentials for SSH servers. A private key or password from the variables of this program takes precedence over
 * the agent, because an agent offers all its keys.
 */
const readLogin = Effect.gen(function* () {
  const file = yield* configured(environment.key)
  const privateKey = file === undefined ? undefined : yield* readPrivateKey(file)
  const variable = yield* configured(environment.password)
  const password = variable === undefined || Redacted.value(variable) === "" ? undefined : variable
  if (privateKey !== undefined || password !== undefined) return { privateKey, password }
  const agent = yield* configured(environment.agent)
  return agent === undefined ? yield* noLogin : { agent }
})

/** Opens a directory of an SSH server whose key is known. */
const openSftp = Effect.fnUntraced(function* ({ host, path, port, user }: Extract<Root, { readonly _tag: "Sftp" }>) {
  const username = user ?? currentUser()
  if (username === undefined) return yield* usage("the user for the SSH server is not known", "Give sftp://USER@HOST/PATH.")
  const login = yield* readLogin
  const fingerprints = yield* configured(environment.hostKeys)
  const knownHosts = (yield* configured(environment.knownHosts)) ?? join(homedir(), ".ssh", "known_hosts")
  const hostKeys = fingerprints === undefined ? { knownHosts } : fingerprints.split(/[\s,]+/).filter((key) => key !== "")
  const { layer } = yield* Effect.promise(() => import("../backends/Sftp.ts"))
  return layer({ host, port, username, root: path, ...login, hostKeys }) as Opened
})

const noServer = usage(
  "--token-file applies to a server of fs-algebra, and to a store in Postgres or on NATS",
  "Leave out --token-file, or give the address of a server or of such a store."
)

/** Opens a root that is not a directory of this machine. Returns `undefined` for a directory. */
export const openRoot = (
  text: string,
  tokenFile: string | undefined
): Effect.Effect<Layer.Layer<Filesystem, FsError.FsError | Complaint> | undefined, Complaint, Screen> =>
  Effect.gen(function* () {
    const root = parseRoot(text, (yield* Screen).directory)
    if (root._tag === "Directory") {
      return tokenFile === undefined ? undefined : yield* noServer
    }
    if (root._tag === "Invalid") return yield* usage(`the root ${shownRoot(text)} is not valid: ${root.detail}`, root.hint)
    if (root._tag === "Workspace") {
      const { openWorkspace } = yield* Effect.promise(() => import("./stores.ts"))
      return yield* openWorkspace(root, tokenFile)
    }
    if (root._tag !== "Server" && tokenFile !== undefined) return yield* noServer
    const opened =
      root._tag === "Server"
        ? yield* openServer(root.url, tokenFile)
        : root._tag === "Sftp"
          ? yield* openSftp(root)
          : yield* openBucket(root.bucket, root.prefix)
    return Layer.catch(opened, (error) => {
      const fault = FsError.toFault(error)
      const advised = root._tag === "Sftp" && fault._tag === "Unavailable" ? { ...fault, hint: sftpHint } : fault
      return Layer.effectContext(Effect.fail(FsError.promote(advised, openOperation, text)))
    }) as Opened
  })
