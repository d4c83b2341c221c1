import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Stores } from "../../../src/index.ts"

it.effect("a URL names the servers, the name and the credentials of stores on NATS", () =>
  Effect.gen(function* () {
    assert.deepStrictEqual(yield* Stores.jetStreamUrl("nats://localhost/reports"), { servers: ["localhost"], name: "reports" })
    assert.deepStrictEqual(yield* Stores.jetStreamUrl("nats://[::1]:4222,b:4223/a_b-C"), {
      servers: ["[::1]:4222", "b:4223"],
      name: "a_b-C"
    })
    const { authentication, servers, tls } = yield* Stores.jetStreamUrl("tls://ann:p%40ss%3A%2F@a:1/n")
    assert.deepStrictEqual([servers, tls], [["a:1"], true])
    assert.isTrue(authentication !== undefined && "user" in authentication && authentication.user === "ann")
    assert.isTrue(
      authentication !== undefined &&
        "password" in authentication &&
        Redacted.isRedacted(authentication.password) &&
        Redacted.value(authentication.password) === "p@ss:/"
    )
    const token = yield* Stores.jetStreamUrl("nats://secret@a/n")
    assert.notInclude(JSON.stringify(token), "secret")
  })
)

it.effect("any other URL is invalid, and no message shows a password", () =>
  Effect.gen(function* () {
    const urls = [
      "",
      "nats://",
      "nats://localhost",
      "nats://localhost/",
      "nats://localhost/a/b",
      "nats://localhost/a?b",
      "nats://localhost/a b",
      "nats:///a",
      "nats://,/a",
      "nats://secret:secret:secret@a/n",
      "nats://:secret@a/n",
      "nats://%secret@a/n",
      "http://secret@a/n",
      `nats://a/${"x".repeat(201)}`
    ]
    for (const url of urls) {
      const { message, reason } = yield* Effect.flip(Stores.jetStreamUrl(url))
      assert.strictEqual(reason, "invalid", url)
      assert.notInclude(message, "secret", url)
    }
  })
)
