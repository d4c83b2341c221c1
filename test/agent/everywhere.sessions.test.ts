/** The table of tool calls on the filesystems of a session. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, make as derive } from "../../src/filesystem/Filesystem.ts"
import { type Files, plant } from "../../src/testing/Files.ts"
import * as Session from "../../src/workspace/Session.ts"
import * as VfsState from "../../src/workspace/VfsState.ts"
import { inMemory } from "../scratch.ts"
import { memory } from "./changing.ts"
import { differences, faultsOf, type Ground, run } from "./everywhereRun.ts"
import { tables } from "./everywhereTables.ts"

const memoryOf: Ground["make"] = (files) => memory(files)

/** Files that a session keeps in memory, compared with the table of all filesystems. */
const inMemoryOfSession: Ground = {
  name: "memory in a session",
  make: (files) =>
    Effect.gen(function* () {
      const port = yield* InMemory.makeSession(yield* Session.make())
      yield* plant(port, files)
      return derive(port) as Algebra
    }).pipe(Effect.orDie)
}

describe(`the tools on ${inMemoryOfSession.name}`, () => {
  for (const [name, rows] of Object.entries(tables)) {
    it.live(`give the expected results: ${name}`, () =>
      Effect.forEach(
        rows,
        (row) =>
          Effect.map(run(row, inMemoryOfSession), (outcome) => assert.deepStrictEqual(faultsOf(row, outcome), [], row.name)),
        { discard: true }
      )
    )
  }
})

/**
 * A directory of a session. It has no links, so it is compared with memory on trees without links, and only its owner
 * may read its root.
 */
const inDirectoryOfSession: Ground = {
  name: "a directory of a session",
  modeless: true,
  make: (files) =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const { filesystem } = yield* VfsState.make({ session, directory: inMemory(), policy: "standard" })
      yield* plant(filesystem.port, files)
      return filesystem
    }).pipe(Effect.orDie)
}

const withoutLinks = (files: Files): Files =>
  Object.fromEntries(Object.entries(files).filter(([, entry]) => !(typeof entry === "object" && "link" in entry)))

/** Rows whose calls leave directories empty, which this filesystem removes. */
const leavesEmpty: ReadonlySet<string> = new Set([
  "a mount point stands for the root, but not as a part of a longer name",
  "a unified diff changes, makes and removes files"
])

describe(`the tools on ${inDirectoryOfSession.name}`, () => {
  for (const [name, rows] of Object.entries(tables)) {
    it.live(`give the same results as in memory: ${name}`, () =>
      Effect.gen(function* () {
        for (const { cases: _, ...row } of rows) {
          if (leavesEmpty.has(row.name)) continue
          const plain = { ...row, tree: withoutLinks(row.tree) }
          const [there, here] = [yield* run(plain, { name: "memory", make: memoryOf }), yield* run(plain, inDirectoryOfSession)]
          assert.deepStrictEqual(differences(here, there, inDirectoryOfSession), [], row.name)
          assert.deepStrictEqual(here.left, there.left, row.name)
        }
      })
    )
  }
})
