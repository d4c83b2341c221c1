/**
 * Two processes with one root and one store. Each sees the snapshots of both, and nothing in the store may be lost. Two
 * concurrent restores may leave either tree, but never a mixture.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { isDeepStrictEqual } from "node:util"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { read } from "./awkward.ts"
import { fsck, hasGit, hidden, isSoak, type Place, place, within } from "./badInput.ts"
import type { Order } from "./concurrentRestorer.ts"

const rounds = isSoak ? 200 : 15

const program = fileURLToPath(new URL("concurrentRestorer.ts", import.meta.url))

type Say = (order: Order) => Effect.Effect<unknown>

const other = ({ gitDir, root }: Place): Effect.Effect<Say, never, Scope.Scope> =>
  Effect.gen(function* () {
    const child = yield* Effect.acquireRelease(
      Effect.sync(() => spawn(process.execPath, [program, root, gitDir], { stdio: ["pipe", "pipe", "inherit"] })),
      (child) =>
        Effect.promise(
          () =>
            new Promise<void>((resolve) => {
              child.once("close", () => resolve())
              child.stdin.end()
            })
        )
    )
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const answer = Effect.promise(() => lines.next().then(({ value }) => JSON.parse(value as string) as unknown))
    yield* answer
    return (order) =>
      Effect.andThen(
        Effect.sync(() => child.stdin.write(`${JSON.stringify(order)}\n`)),
        answer
      )
  })

const encode = Schema.encodeEffect(Schema.fromJsonString(Schema.toCodecJson(Snapshots.FilesystemSnapshot)))

/**
 * Writes a tree whose contents derive from the word. For each word but the third, the tree has a directory that no other tree
 * has.
 */
const fill = (root: string, word: string): void => {
  for (const name of Fs.readdirSync(root)) if (name.startsWith("only ")) Fs.rmSync(join(root, name), { recursive: true })
  if (word !== "third") {
    Fs.mkdirSync(join(root, `only ${word}`))
    Fs.writeFileSync(join(root, `only ${word}/f`), `${word} alone\n`)
  }
  for (let i = 0; i < 60; i++) {
    const directory = join(root, `d${i % 6}`)
    Fs.mkdirSync(directory, { recursive: true })
    Fs.writeFileSync(join(directory, `f${i}`), `${word} ${i}\n`)
  }
}

describe.runIf(hasGit)("two processes with one root and one store", () => {
  it.live(
    "lose no snapshot and no content when garbage is collected between snapshots",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        fill(here.root, "first")
        yield* Effect.scoped(
          Effect.gen(function* () {
            const [one, two] = [yield* other(here), yield* other(here)]
            for (let round = 0; round < 5; round++) {
              fill(here.root, `round ${round}`)
              const answers = yield* Effect.all([one({ take: 3, collect: true }), two({ collect: true, take: 3 })], {
                concurrency: 2
              })
              assert.deepStrictEqual(answers, ["done", "done"])
            }
          })
        )
        fsck(here)
        yield* within(here, (snapshots) =>
          Effect.gen(function* () {
            const all = yield* snapshots.list
            assert.strictEqual(all.length, 30)
            assert.strictEqual(new Set(all.map(({ snapshotId }) => snapshotId)).size, 30)
            for (const snapshot of all) {
              yield* snapshots.restore(snapshot)
              const words = new Set(Object.values(read(here.root)).flatMap((text) => /round \d|first/.exec(text) ?? []))
              assert.strictEqual(words.size, 1)
            }
          })
        )
      }),
    120_000
  )

  it.live(
    "that restore two snapshots concurrently leave the whole tree of one snapshot, or one restore reports its failure",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const trees: Array<Record<string, string>> = []
        const kept: Array<string> = []
        yield* within(here, (snapshots) =>
          Effect.gen(function* () {
            for (const word of ["first", "second", "third"]) {
              fill(here.root, word)
              trees.push(read(here.root))
              kept.push(yield* Effect.orDie(encode(yield* snapshots.snapshot())))
            }
          })
        )
        const mixtures: Array<string> = []
        yield* Effect.scoped(
          Effect.gen(function* () {
            const [one, two] = [yield* other(here), yield* other(here)]
            for (let round = 0; round < rounds; round++) {
              assert.strictEqual(yield* one({ restore: kept[2]! }), "done")
              const answers = yield* Effect.all([one({ restore: kept[0]! }), two({ restore: kept[1]! })], { concurrency: 2 })
              const found = read(here.root)
              if (!trees.some((tree) => isDeepStrictEqual(found, tree))) {
                const words = Object.values(found).map((text) => /first|second|third/.exec(text)?.[0] ?? "")
                const count = (word: string): number => words.filter((other) => other === word).length
                mixtures.push(`${round}: ${count("first")} ${count("second")} ${count("third")}; ${JSON.stringify(answers)}`)
              }
              if (hidden(here.root).length > 0) mixtures.push(`${round}: ${hidden(here.root).join()}`)
            }
          })
        )
        fsck(here)
        assert.deepStrictEqual(mixtures, [])
      }),
    120_000
  )
})
