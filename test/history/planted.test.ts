/** Directories in a workspace that look like those of a transaction of ours, and are a stranger's. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import * as Names from "../runtime/names.ts"
import { look } from "./exchanging.ts"

const step = { path: ".git/hooks/pre-commit", region: 0, slot: 0, next: "file", keeps: false }
const journal = JSON.stringify({ version: 1, regions: [{ path: ".", isFlat: false }], steps: [step], modes: [] })

interface Planted {
  readonly owner: string
  readonly journal: string
  readonly text: string
}

/** A clone of a repository with a hook that would be installed. */
const plant = (root: string, { journal: name, owner, text }: Planted): string => {
  Fs.mkdirSync(join(root, ".git/hooks"), { recursive: true })
  Fs.writeFileSync(join(root, "README.md"), "hello")
  const token = `.~fsa-exchange-${owner}-0123456789abcdef01.tmp`
  Fs.mkdirSync(join(root, token, "new"), { recursive: true })
  Fs.mkdirSync(join(root, token, "old"))
  Fs.writeFileSync(join(root, token, "new/0"), "#!/bin/sh\ntouch owned\n", { mode: 0o755 })
  Fs.writeFileSync(join(root, token, name), text)
  const longAgo = new Date(2020, 0, 1)
  for (const path of ["new/0", "new", "old", name, ""]) Fs.utimesSync(join(root, token, path), longAgo, longAgo)
  return token
}

const dead = (): string => Identity.self().replace(/[^-]+$/, "1")

const forgeries: ReadonlyArray<readonly [claim: string, planted: Planted]> = [
  ["an unknown process", { owner: "a-1-1", journal: "journal", text: journal }],
  ["a dead process", { owner: dead(), journal: "journal", text: journal }],
  ["this process", { owner: Identity.self(), journal: "journal", text: journal }],
  ["a dead process that was going back", { owner: dead(), journal: "journal.back", text: journal }],
  ["a dead process that was done", { owner: dead(), journal: "journal.done", text: journal }],
  ["a dead process, with garbage as the journal", { owner: dead(), journal: "journal", text: "{ not JSON" }]
]

const openings: ReadonlyArray<readonly [claim: string, open: (root: string) => Effect.Effect<void, unknown>]> = [
  ["a root is opened", (root) => Effect.scoped(Effect.asVoid(PosixHost.make({ root })))],
  [
    "a snapshot is taken and restored",
    (root) =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const snapshots = yield* Snapshots.Snapshots
        const taken = yield* snapshots.snapshot()
        yield* fs.write("README.md", "other")
        yield* snapshots.restore(taken)
      }).pipe(Effect.provide(Snapshots.layerArchive.pipe(Layer.provideMerge(PosixHost.layer({ root })))))
  ]
]

describe("a planted directory that looks like a transaction's", () => {
  for (const [whose, planted] of forgeries) {
    for (const [when, open] of openings) {
      it.live(`of ${whose} is not obeyed when ${when}`, () =>
        Effect.scoped(
          Effect.gen(function* () {
            const root = join(yield* fastDirectory, "root")
            Fs.mkdirSync(root)
            const token = plant(root, planted)
            const before = look(root)
            yield* open(root)
            assert.deepStrictEqual(look(root), before)
            assert.isFalse(Fs.existsSync(join(root, ".git/hooks/pre-commit")))
            assert.isTrue(Fs.existsSync(join(root, token, "new/0")))
            const names = yield* Effect.scoped(Effect.flatMap(PosixHost.make({ root }), (port) => make(port).list()))
            assert.include(
              names.map(({ name }) => name),
              token
            )
          })
        )
      )
    }
  }
})

describe("beside an archive that is written", () => {
  it.effect("goes the draft of a process of ours that has ended, and no file that somebody gave such a name", () =>
    Effect.gen(function* () {
      const directory = yield* fastDirectory
      const ended = Names.dead()
      const draft = Names.signed(ended, "archive")
      const kept = [
        Names.forged(ended, "archive"),
        Names.signed(Names.elsewhere, "archive"),
        Names.signed(ended, "other"),
        ".~fsa-archive-a.tmp"
      ]
      for (const name of [draft, ...kept]) {
        Fs.writeFileSync(join(directory, name), "x")
        Fs.utimesSync(join(directory, name), 1, 1)
      }
      yield* Archive.exportArchive(join(directory, "a.zip")).pipe(Effect.provide(InMemory.layer()))
      assert.deepStrictEqual(Fs.readdirSync(directory).sort(), [...kept, "a.zip"].sort())
    })
  )
})
