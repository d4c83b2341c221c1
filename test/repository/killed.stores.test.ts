import { afterAll } from "@effect/vitest"
import { join } from "node:path"
import { clean, scratch } from "../durability/children.ts"
import { describeNats, startServer } from "../journal/nats.ts"
import { killedAtEachCall } from "./killed.ts"
import { describePostgres, server } from "./stores/postgres.ts"

afterAll(clean)

killedAtEachCall("in a directory", () => Promise.resolve({ directory: join(scratch(), "store"), fsync: false }))
killedAtEachCall("in SQLite", () => Promise.resolve({ file: join(scratch(), "store.db") }))
describePostgres("with Postgres", () =>
  killedAtEachCall("in Postgres", async () => ({ url: (await server()).url }), { isBundled: false })
)
// The library of NATS breaks in a bundle, as that of Postgres does.
describeNats("with NATS", () =>
  killedAtEachCall("on JetStream", async () => ({ nats: (await startServer()).url, name: "killed" }), { isBundled: false })
)
