/** Reads the variables of the environment that several commands use, and the name of the user. */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import { userInfo } from "node:os"

/** Reads a variable. Returns `undefined` if the variable is missing or invalid. */
export const configured = <A>(config: Config.Config<Option.Option<A>>): Effect.Effect<A | undefined> =>
  Effect.map(Effect.orElseSucceed(config, Option.none<A>), Option.getOrUndefined)

const firstOf = <A>(config: Config.Config<A>, other: Config.Config<A>): Effect.Effect<A | undefined> =>
  configured(Config.option(Config.orElse(config, () => other)))

/** Reads the address of the server and the region of `s3://` from the variables of AWS's own tools. */
export const readS3Variables = Effect.all({
  endpoint: firstOf(Config.NonEmptyString("AWS_ENDPOINT_URL_S3"), Config.NonEmptyString("AWS_ENDPOINT_URL")),
  region: firstOf(Config.NonEmptyString("AWS_REGION"), Config.NonEmptyString("AWS_DEFAULT_REGION"))
})

const natsVariables = Effect.all({
  user: configured(Config.option(Config.NonEmptyString("NATS_USER"))),
  password: configured(Config.option(Config.Redacted("NATS_PASSWORD"))),
  token: configured(Config.option(Config.Redacted("NATS_TOKEN")))
})

/**
 * Reads the credentials for `nats://`. With a user, `secret` is the password, and otherwise the token. Without `secret`, reads
 * the credentials from the variables of NATS's own tools. Returns `undefined` if there are none, or if the user has no password.
 */
export const readNatsCredentials = (secret: Redacted.Redacted | undefined) =>
  Effect.map(natsVariables, ({ password: ownPassword, token: ownToken, user }) => {
    const password = secret ?? ownPassword
    const token = secret ?? ownToken
    if (user !== undefined) return password === undefined ? undefined : { user, password }
    return token === undefined ? undefined : { token }
  })

/** Returns the name of the user of this program, or `undefined` if the system has no name for it. */
export const currentUser = (): string | undefined => {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}
