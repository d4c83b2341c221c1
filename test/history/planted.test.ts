/** Directories that other programs made in a root, and that look like staging directories of this library. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { execFileSync, spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import * as Names from "../runtime/names.ts"
import { file, look, plant as seed, tree } from "./transactionTrees.ts"
import type { Orders } from "./killed.ts"

const step = { path: ".git/hooks/pre-commit", region: 0, slot: 0, next: "file", keeps: false }
const journal = JSON.stringify({ version: 1, regions: [{ path: ".", isFlat: false }], steps: [step], modes: [] })

interface Planted {
  readonly owner: string
  readonly journal: string
  readonly text: string
}

/** Plants a cloned repository with a hook that a forged transaction would install. */
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
  ["a dead process that was rolling back", { owner: dead(), journal: "journal.back", text: journal }],
  ["a dead process that had finished", { owner: dead(), journal: "journal.done", text: journal }],
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

describe("a planted directory that looks like the staging directory of a transaction", () => {
  for (const [whose, planted] of forgeries) {
    for (const [when, open] of openings) {
      it.live(`of ${whose} is ignored when ${when}`, () =>
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

describe("a temporary file next to an archive that is being written", () => {
  it.effect("is removed if a dead process of this installation made it, and is kept if its name is forged", () =>
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

/** Returns a command as another installation of this user would run it, with a state directory and a key of its own. */
const elsewhere = (state: string, ...args: ReadonlyArray<string>) => ({
  command: process.execPath,
  args,
  env: { ...process.env, XDG_STATE_HOME: state, TMPDIR: state }
})

/** Returns names that an installation with another key signed, of a process that has ended. */
const namedElsewhere = (state: string): ReadonlyArray<string> => {
  const module = new URL("../../src/runtime/temporaryNames.ts", import.meta.url).href
  const script = `const { derivePartName, make } = await import(${JSON.stringify(module)})
    const staging = make("exchange")
    console.log(JSON.stringify([make(), make("archive"), derivePartName(staging, "new0"), derivePartName(staging, "probe"), staging]))`
  const { args, command, env } = elsewhere(state, "--input-type=module", "-e", script)
  return JSON.parse(execFileSync(command, args, { encoding: "utf8", env })) as ReadonlyArray<string>
}

describe("leftovers of an installation with another key on this machine", () => {
  const before = tree({ a: file("1"), b: file("2"), ".git": tree({ hooks: tree({}) }) })
  const after = tree({
    a: file("3"),
    c: file("4"),
    ".git": tree({ hooks: tree({ "pre-commit": file("#!/bin/sh\n", 0o755) }) })
  })

  /**
   * Creates a root with an unfinished change of another installation, and with the records, key and claims of that
   * installation.
   */
  const received = (top: string): string => {
    const [root, state] = [join(top, "root"), join(top, "state")]
    Fs.mkdirSync(state)
    // Fewer calls only prepare the change.
    for (let call = 10; ; call++) {
      Fs.rmSync(root, { recursive: true, force: true })
      seed(root, before)
      const orders: Orders = { root, trees: [before, after], what: "there and back", call }
      const { args, command, env } = elsewhere(state, fileURLToPath(new URL("killed.ts", import.meta.url)))
      const { signal } = spawnSync(command, args, { env, input: JSON.stringify(orders) })
      assert.strictEqual(signal, "SIGKILL", `no change was left midway before call ${call}`)
      if (Fs.readdirSync(join(state, "fs-algebra/transactions")).some((name) => name.endsWith(".forward"))) break
    }
    Fs.cpSync(join(state, "fs-algebra"), join(root, "fs-algebra"), { recursive: true })
    for (const name of namedElsewhere(state)) Fs.writeFileSync(join(root, name), "his")
    return root
  }

  it.live("are never completed or removed, and are listed and captured like other files", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const root = received(yield* fastDirectory)
        const found = look(root)
        const names = Fs.readdirSync(root).sort()
        assert.isAtLeast(names.filter((name) => name.startsWith(".~fsa-")).length, 6)
        for (const [, open] of openings.slice(0, 1)) yield* open(root)
        assert.deepStrictEqual(look(root), found)
        yield* Effect.gen(function* () {
          const fs = yield* Filesystem
          const snapshots = yield* Snapshots.Snapshots
          assert.deepStrictEqual((yield* fs.list()).map(({ name }) => name as string).sort(), names)
          const taken = yield* snapshots.snapshot()
          // These are the operations that remove leftovers: listing, replacing a file and removing a tree.
          yield* fs.write("a", "ours")
          yield* fs.write("b", "ours")
          const walked = Array.from(yield* Stream.runCollect(fs.walk()), ({ path }) => path as string)
          for (const name of names) assert.include(walked, name)
          const all = yield* fs.glob("**/*", { kinds: ["file", "directory"] })
          assert.includeMembers(
            all.matches.map(({ path }) => path as string),
            names
          )
          yield* snapshots.restore(taken)
        }).pipe(Effect.provide(Snapshots.layerArchive.pipe(Layer.provideMerge(PosixHost.layer({ root })))))
        assert.deepStrictEqual(look(root), found)
        assert.isFalse(Fs.existsSync(join(root, ".git/hooks/pre-commit")))
      })
    )
  )
})
