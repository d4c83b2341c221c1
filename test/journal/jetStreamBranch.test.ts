import { beforeAll } from "@effect/vitest"
import * as Layer from "effect/Layer"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Branch from "../../src/journal/Branch.ts"
import * as JetStream from "../../src/journal/JetStream.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import * as Limits from "../../src/model/Limits.ts"
import { laws } from "../../src/testing/Laws.ts"
import { suite } from "../../src/testing/Suite.ts"
import { describeNats, type Server, startServer } from "./nats.ts"

const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"

describeNats("a Branch and a Leaf on a JetStream", () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer()
  })

  let names = 0
  /** The caller and the leaf have separate connections, as on two machines. */
  const layer = Layer.suspend(() => {
    const journal = () => JetStream.layer({ servers: server.url, name: `laws-${names}` })
    names++
    const leaf = Leaf.layer({ extended: true, preservePermissions: true, limits: Limits.unlimited }).pipe(
      Layer.provide(InMemory.layer()),
      Layer.provide(journal())
    )
    return Branch.layer({ extended: true }).pipe(Layer.provide(journal()), Layer.merge(leaf))
  })

  // A branch shows a leftover of a killed process as an ordinary file, because it has no key to recognise the name.
  const kept = laws.filter(({ name }) => name !== "a recursive delete removes names that no path can express")
  // One law in 25 is enough to show that this journal serves; the other laws of Branch and Leaf are tested on other
  // journals.
  const some = isSoak ? kept : kept.filter((_, index) => index % 25 === 0)
  suite("keep the laws of a filesystem", layer, { laws: some, programs: isSoak ? 100 : 1 })
})
