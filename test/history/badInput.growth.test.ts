/**
 * The size of a store after many edits of real text with a snapshot each. The limit is 1.5 times the size of all
 * distinct file contents, each compressed on its own (zlib, level 6). Git's deltas must save enough for the
 * directories, commits and indexes.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { deflateSync } from "node:zlib"
import { chooser } from "./awkward.ts"
import { fsck, hasGit, isSoak, place, within } from "./badInput.ts"

const edits = isSoak ? 10_000 : 300

const source = fileURLToPath(new URL("../../src", import.meta.url))

/** Returns the sum of the apparent sizes of all files, in bytes. */
const sizeOf = (directory: string): number =>
  Fs.readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .reduce((sum, entry) => sum + Fs.statSync(join(entry.parentPath, entry.name)).size, 0)

describe.runIf(hasGit)("a store after many edits", () => {
  it.live(
    `takes at most 1.5 times the compressed size of its distinct contents (${edits} edits)`,
    () =>
      Effect.gen(function* () {
        const here = yield* place
        Fs.cpSync(source, here.root, { recursive: true })
        const files = Fs.readdirSync(here.root, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".ts"))
        const choose = chooser(104_729)
        const distinct = new Map<string, number>()
        const count = (bytes: Buffer): void => {
          const id = createHash("sha1").update(bytes).digest("hex")
          if (!distinct.has(id)) distinct.set(id, deflateSync(bytes, { level: 6 }).length)
        }
        for (const path of files) count(Fs.readFileSync(join(here.root, path)))
        const edit = (turn: number): void => {
          const path = join(here.root, files[choose(files.length)]!)
          const lines = Fs.readFileSync(path, "utf8").split("\n")
          lines.splice(
            choose(lines.length),
            choose(3),
            `// ${turn} ${choose(1_000_000)}`,
            `const value${turn} = ${choose(1000)}`
          )
          Fs.writeFileSync(path, lines.join("\n"))
          count(Fs.readFileSync(path))
        }
        const times: Array<number> = []
        let largest = 0
        const after = yield* within(here, (snapshots) =>
          Effect.gen(function* () {
            for (let turn = 0; turn < edits; turn++) {
              edit(turn)
              const began = performance.now()
              yield* snapshots.snapshot()
              times.push(performance.now() - began)
              if (turn % 10 === 9) largest = Math.max(largest, sizeOf(here.gitDir))
            }
            const before = sizeOf(here.gitDir)
            yield* snapshots.collect
            assert.strictEqual((yield* snapshots.stats).snapshots, edits)
            return { before, stats: yield* snapshots.stats }
          })
        )
        fsck(here)
        const content = [...distinct.values()].reduce((sum, size) => sum + size, 0)
        const [store, disk] = [sizeOf(here.gitDir), after.stats.bytes]
        const median = (of: ReadonlyArray<number>): number => Math.round(of.toSorted((a, b) => a - b)[of.length >> 1]!)
        const tenth = Math.ceil(edits / 10)
        const said = {
          files: files.length,
          distinct: distinct.size,
          content,
          largest,
          before: after.before,
          store,
          disk,
          first: median(times.slice(0, tenth)),
          last: median(times.slice(-tenth)),
          slowest: Math.round(Math.max(...times))
        }
        if (isSoak) console.log("growth", said)
        assert.isAtMost(store, 1.5 * content)
        assert.isAtMost(largest, 1.5 * content + 64 * 2 ** 20)
      }),
    isSoak ? 7_200_000 : 240_000
  )
})
