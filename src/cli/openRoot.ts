/** Opens the roots that are not directories of this machine: servers and buckets. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import type { Filesystem } from "../filesystem/Filesystem.ts"
import * as FsError from "../model/FsError.ts"
import { openOperation } from "./advice.ts"
import { type Complaint, usage } from "./exit.ts"
import { parseRoot } from "./root.ts"
import { Screen } from "./screen.ts"
import { isToken, readTokenFile } from "./token.ts"

const environment = {
  token: Config.option(Config.Redacted("FS_ALGEBRA_TOKEN")),
  endpoint: Config.option(
    Config.NonEmptyString("AWS_ENDPOINT_URL_S3").pipe(Config.orElse(() => Config.NonEmptyString("AWS_ENDPOINT_URL")))
  ),
  region: Config.option(
    Config.NonEmptyString("AWS_REGION").pipe(Config.orElse(() => Config.NonEmptyString("AWS_DEFAULT_REGION")))
  )
}

const configured = <A>(config: Config.Config<Option.Option<A>>): Effect.Effect<A | undefined> =>
  Effect.map(Effect.orElseSucceed(config, Option.none<A>), Option.getOrUndefined)

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

type Opened = Layer.Layer<Filesystem, FsError.FsError>

const openServer = Effect.fnUntraced(function* (url: string, tokenFile: string | undefined) {
  const token = yield* readToken(tokenFile)
  const { layerUrl } = yield* Effect.promise(() => import("../remote/Remote.ts"))
  return layerUrl(url, { token }) as Opened
})

const openBucket = Effect.fnUntraced(function* (bucket: string, prefix: string) {
  const [endpoint, region] = [yield* configured(environment.endpoint), yield* configured(environment.region)]
  const { layer } = yield* Effect.promise(() => import("../backends/Bucket.ts"))
  return layer({ bucket, prefix, endpoint, region }) as Opened
})

/** Opens a root that is not a directory of this machine. Returns `undefined` for a directory. */
export const openRoot = (
  text: string,
  tokenFile: string | undefined
): Effect.Effect<Layer.Layer<Filesystem, FsError.FsError | Complaint> | undefined, Complaint, Screen> =>
  Effect.gen(function* () {
    const root = parseRoot(text, (yield* Screen).directory)
    if (root._tag === "Directory") {
      return tokenFile === undefined
        ? undefined
        : yield* usage(
            "--token-file applies to a root that is a server",
            "Leave out --token-file, or give the address of a server."
          )
    }
    if (root._tag === "Invalid") return yield* usage(`the root ${JSON.stringify(text)} is not valid: ${root.detail}`, root.hint)
    if (root._tag === "Workspace") {
      const { openWorkspace } = yield* Effect.promise(() => import("./stores.ts"))
      return yield* openWorkspace(root, tokenFile)
    }
    const opened = root._tag === "Server" ? yield* openServer(root.url, tokenFile) : yield* openBucket(root.bucket, root.prefix)
    return Layer.catch(opened, (error) =>
      Layer.effectContext(Effect.fail(FsError.promote(FsError.toFault(error), openOperation, text)))
    ) as Opened
  })
