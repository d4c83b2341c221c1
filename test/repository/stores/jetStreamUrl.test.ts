import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Stores } from "../../../src/index.ts"

it.effect("a URL contains the servers, the name and the credentials of stores on NATS", () =>
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

it.effect("any other URL is refused as invalid, and no message contains a password", () =>
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

it.live("a connection error contains the addresses of the servers without their credentials", () =>
  Effect.gen(function* () {
    const servers = ["nats://ann:secret@127.0.0.1:1", "secret,@secret@127.0.0.1:2"]
    const { message } = yield* Effect.flip(Effect.scoped(Layer.build(Stores.layerJetStream({ name: "n", servers }))))
    assert.notInclude(message, "secret")
    assert.include(message, "nats://127.0.0.1:1,127.0.0.1:2")
  })
)
