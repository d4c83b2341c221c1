/**
 * Four processes with up to fifty fibers each on one file. Their reports must agree with each other and with the disk: each
 * version has one successor, and every reported change is there.
 */
import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import { type Report, scratch, type Step, type Task, together, type Way } from "./workers.ts"

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined
const rounds = soak ? 20 : 1
const timeout = (soak ? 30 : 10) * 60_000

const ground = (files: Record<string, string>): string => {
  const root = scratch()
  Fs.mkdirSync(join(root, "shared"))
  for (const [name, text] of Object.entries(files)) Fs.writeFileSync(join(root, "shared", name), text)
  return root
}

const same: ReadonlyArray<Way> = ["host", "host", "host", "host"]
const mixed: ReadonlyArray<Way> = ["below", "subdirectory", "mount", "caseless"]

/**
 * Returns the number of fibers of each process. A fiber that loses tries again, so the work grows with the square of this number.
 * Processes with different kinds of filesystem have fewer fibers, except in the soak.
 */
const fibersOf = (ways: ReadonlyArray<Way>): number => (soak ? 50 : ways === same ? 25 : 10)

const four = (root: string, what: Task["what"], ways: ReadonlyArray<Way>, times = rounds) =>
  together(ways.map((way, n) => ({ what, way, root, name: `p${n}`, fibers: fibersOf(ways), rounds: times })))

const all = (reports: ReadonlyArray<Report>): ReadonlyArray<Step> => reports.flatMap(({ won }) => won)

/** Returns every entry of the shared directory, hidden ones too. */
const names = (root: string): ReadonlyArray<string> => Fs.readdirSync(join(root, "shared")).sort()
const content = (root: string, name: string): string => Fs.readFileSync(join(root, "shared", name), "utf8")

const versionOf = (text: string): string => createHash("sha256").update(text).digest("hex")

const distinct = (of: ReadonlyArray<unknown>, what: string): void => assert.strictEqual(new Set(of).size, of.length, what)

describe("four processes", () => {
  for (const [by, ways] of [
    ["the same path", same],
    ["a deeper root, a subdirectory, a mount and a case-insensitive mount", mixed]
  ] as const) {
    it(
      `replace, append to and edit one file by ${by} with ifMatch: each version has one successor and no update is lost`,
      async () => {
        const root = ground({ log: "start\n" })
        const steps = all(await four(root, "extend", ways))
        assert.strictEqual(steps.length, 4 * fibersOf(ways) * rounds)
        distinct(
          steps.map(([was]) => was),
          "winners of one version"
        )
        // Follow the reported versions from the first file to the current one.
        const next = new Map<unknown, string | null>(steps)
        let version: string | null | undefined = versionOf("start\n")
        for (let count = 0; count < steps.length; count++) version = next.get(version)
        assert.strictEqual(version, versionOf(content(root, "log")))
        const lines = content(root, "log").trimEnd().split("\n")
        assert.strictEqual(lines.length, steps.length + 1)
        distinct(lines, "lines")
        assert.deepStrictEqual(names(root), ["log"])
      },
      timeout
    )

    it(
      `edit one file by ${by} without ifMatch: no edit is lost`,
      async () => {
        const root = ground({ log: "end\n" })
        await four(root, "edit", ways)
        const expected = ways.flatMap((_, n) =>
          Array.from({ length: fibersOf(ways) * rounds }, (_, i) => `p${n} ${Math.floor(i / rounds)} ${i % rounds}`)
        )
        assert.deepStrictEqual(content(root, "log").trimEnd().split("\n").sort(), [...expected, "end"].sort())
        assert.deepStrictEqual(names(root), ["log"])
      },
      timeout
    )
  }

  it(
    "create one file with ifMatch null: exactly one succeeds, and the file has its content",
    async () => {
      const root = ground({})
      const files = Array.from({ length: 5 * rounds }, (_, round) => `new${round}`)
      const steps = all(await four(root, "create", same, files.length))
      assert.deepStrictEqual(steps.map(([name]) => name).sort(), [...files].sort())
      for (const [name, text] of steps) assert.strictEqual(content(root, name!), text)
      assert.deepStrictEqual(names(root), [...files].sort())
    },
    timeout
  )

  it(
    "create, replace and delete one file with ifMatch: each version is replaced or deleted exactly once",
    async () => {
      const root = ground({})
      const steps = all(await four(root, "recreate", same, 2 * rounds))
      assert.strictEqual(steps.length, 4 * fibersOf(same) * 2 * rounds)
      const made = steps.flatMap(([, is]) => (is === null ? [] : [is]))
      const ended = steps.flatMap(([was]) => (was === null ? [] : [was]))
      distinct(ended, "ends of one version")
      const left = made.filter((version) => !ended.includes(version))
      assert.deepStrictEqual(left, Fs.existsSync(join(root, "shared/file")) ? [content(root, "file")] : [])
      assert.deepStrictEqual(
        ended.filter((version) => !made.includes(version)),
        []
      )
      // Each created file was deleted or still exists.
      const count = (of: ReadonlyArray<unknown>): number => of.filter((version) => version === null).length
      assert.strictEqual(count(steps.map(([was]) => was)) - count(steps.map(([, is]) => is)), left.length)
      assert.deepStrictEqual(names(root), left.length === 0 ? [] : ["file"])
    },
    timeout
  )
})
