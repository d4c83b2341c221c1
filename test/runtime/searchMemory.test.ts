/** The memory of streamed searches does not grow with the number of files, in this process and in the search processes. */
import { afterAll, assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import { bundled } from "../bundled.ts"
import { isSoak } from "../runs.ts"
import { onDisk } from "../scratch.ts"

const top = Fs.mkdtempSync(join(onDisk(), "many-"))
afterAll(() => Fs.rmSync(top, { recursive: true, force: true }))

/** Makes a tree of directories with 100 files each. */
const grow = (name: string, files: number): string => {
  const root = join(top, name)
  for (let n = 0; n < files / 100; n++) {
    const directory = join(root, `d${Math.floor(n / 50)}`, `e${n}`)
    Fs.mkdirSync(directory, { recursive: true })
    for (let i = 0; i < 100; i++) Fs.writeFileSync(join(directory, `file-${i}.ts`), `export const needle${i} = ${n}\n`)
  }
  return root
}

interface Measured {
  readonly entries: number
  readonly mine: number
  readonly theirs: number
}

/** Limits of the heap, so that V8 collects garbage often. Without them it lets the heap grow while the machine has memory. */
const limits = ["--max-old-space-size=48", "--max-semi-space-size=4"]

const measure = (kind: string, root: string): Measured =>
  JSON.parse(
    execFileSync(process.execPath, [...limits, bundled(new URL("./searchMemoryProgram.ts", import.meta.url)), kind, root], {
      encoding: "utf8"
    })
  ) as Measured

describe.runIf(isSoak && process.platform === "linux")("300,000 files need at most 64 MiB more memory than 10,000", () => {
  for (const kind of ["walk", "walk with sizes", "walk and read", "grep"]) {
    it(`in a ${kind}`, { timeout: 1_800_000 }, () => {
      const few = measure(kind, Fs.existsSync(join(top, "few")) ? join(top, "few") : grow("few", 10_000))
      const many = measure(kind, Fs.existsSync(join(top, "many")) ? join(top, "many") : grow("many", 300_000))
      console.log(kind, few, many)
      assert.isAtLeast(few.entries, 10_000)
      assert.isAtLeast(many.entries, 300_000)
      // Below its limit, the heap of a process grows by some tens of MiB before its garbage is collected.
      assert.isBelow(many.mine - few.mine, 64)
      assert.isBelow(many.theirs - few.theirs, 64)
    })
  }
})
