/** Reads the variables of the environment that several commands use, and the name of the user. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { userInfo } from "node:os"

/** Reads a variable. Returns `undefined` if it is missing or invalid. */
export const configured = <A>(config: Config.Config<Option.Option<A>>): Effect.Effect<A | undefined> =>
  Effect.map(Effect.orElseSucceed(config, Option.none<A>), Option.getOrUndefined)

const firstOf = <A>(config: Config.Config<A>, other: Config.Config<A>): Effect.Effect<A | undefined> =>
  configured(Config.option(Config.orElse(config, () => other)))

/** Reads the address of the server and the region of `s3://` from the variables of AWS's own tools. */
export const readS3Variables = Effect.all({
  endpoint: firstOf(Config.NonEmptyString("AWS_ENDPOINT_URL_S3"), Config.NonEmptyString("AWS_ENDPOINT_URL")),
  region: firstOf(Config.NonEmptyString("AWS_REGION"), Config.NonEmptyString("AWS_DEFAULT_REGION"))
})

/** Returns the name of the user of this program, or `undefined` if the system has no name for it. */
export const currentUser = (): string | undefined => {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}
