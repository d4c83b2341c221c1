/** Reads the variables of the environment that several commands use, and the name of the user. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { userInfo } from "node:os"

/** Reads a variable. Returns `undefined` if it is missing or invalid. */
export const configured = <A>(config: Config.Config<Option.Option<A>>): Effect.Effect<A | undefined> =>
  Effect.map(Effect.orElseSucceed(config, Option.none<A>), Option.getOrUndefined)

const firstOf = (name: string, other: string) =>
  Config.option(Config.NonEmptyString(name).pipe(Config.orElse(() => Config.NonEmptyString(other))))

/** Reads the address of the server and the region of `s3://` from the variables of AWS's own tools. */
export const readS3Variables = Effect.all({
  endpoint: configured(firstOf("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")),
  region: configured(firstOf("AWS_REGION", "AWS_DEFAULT_REGION"))
})

/** Returns the name of the user of this program, or `undefined` if the system has no name for it. */
export const currentUser = (): string | undefined => {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}
