/**
 * The start of the built command line beside that of a node that does nothing, and the import of one backend beside
 * the import of effect. Run `npm run build` first.
 */
import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { Case } from "../harness.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const bin = `${root}dist/cli/bin.js`

const starting = (name: string, args: ReadonlyArray<string>) => ({
  name,
  run: (count: number) => {
    for (let i = 0; i < count; i++) execFileSync(process.execPath, args, { cwd: root, stdio: "ignore" })
  }
})

const bare = starting("node", ["-e", "0"])
const importing = (...modules: ReadonlyArray<string>) => [
  "--input-type=module",
  "-e",
  modules.map((module) => `await import(${JSON.stringify(module)})`).join("; ")
]
const effect = starting("effect", importing("effect/Effect"))

const startup = (
  name: string,
  args: ReadonlyArray<string>,
  options: Pick<Case, "target" | "bound" | "figure">,
  baseline = bare
): Case => ({
  name: `start: ${name}`,
  ...options,
  count: 1,
  samples: 15,
  make: async () => {
    if (!existsSync(bin)) throw new Error("there is no built package: run npm run build")
    return { ours: starting(name, args), baseline }
  }
})

export const cases: ReadonlyArray<Case> = [
  startup("fs-algebra --version", [bin, "--version"], { target: "≤ 4.4 of bare node", bound: 4.4, figure: "ratio" }),
  startup("fs-algebra ls", [bin, "ls"], { target: "≤ 5.6 of bare node", bound: 5.6, figure: "ratio" }),
  startup(
    'import "fs-algebra/InMemory"',
    importing("./dist/backends/InMemory.js"),
    { target: "≤ 50 ms beyond effect/Effect", bound: 50_000, figure: "overhead µs" },
    effect
  ),
  // These modules of effect load all others that InMemory needs.
  startup(
    "the part of effect in that import",
    importing(...["Config", "Layer", "Schema", "Sink", "Stream"].map((name) => `effect/${name}`)),
    { target: "none", bound: Number.POSITIVE_INFINITY, figure: "overhead µs" },
    effect
  )
]
