/** Runs the example of a hundred agents, whose forks are edited through three runners in separate processes. */
import { afterAll, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { join } from "node:path"
import { clean, scratch } from "../durability/children.ts"
import { runAgents } from "../examples/hundred_agents.ts"
import { check, editTwo, prepare } from "../examples/hundredAgents.ts"
import * as Stores from "../../src/repository/Stores.ts"
import * as Workspaces from "../../src/repository/Workspaces.ts"
import { clientOf, startRunner } from "./runners.ts"
import { postgresClient } from "./stores/places.ts"
import { describePostgres, server } from "./stores/postgres.ts"

afterAll(clean)

describePostgres("a hundred agents on Postgres", () => {
  it.live(
    "edit their forks on three runners, and the forks without conflicts are merged",
    () =>
      Effect.gen(function* () {
        const { url } = yield* Effect.promise(server)
        yield* Effect.forEach([0, 1, 2], () => startRunner(url, join(scratch(), "unused")), { concurrency: "unbounded" })
        const cluster = yield* Layer.build(clientOf(url))
        const stores = yield* Layer.build(Stores.layerSql().pipe(Layer.provide(postgresClient(url))))
        const run = Effect.gen(function* () {
          yield* prepare
          const open = (fork: string) => Layer.provide(Workspaces.layer(fork), Layer.succeedContext(cluster))
          yield* check(yield* runAgents("team", 100, editTwo, open), 100)
        })
        yield* Effect.provideContext(run, stores)
      }).pipe(Effect.scoped),
    90_000
  )
})
