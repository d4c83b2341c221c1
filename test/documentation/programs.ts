/** Programs of the documentation as files of this repository, compiled as readers would compile them. */
import { spawnSync } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join, relative } from "node:path"
import { root } from "./markdown.ts"

export interface ProgramDirectory {
  readonly path: string
  /** Writes a program, with the sources in place of the package, and returns its path. */
  readonly write: (name: string, body: string) => string
  /** Returns the complaints of the compiler about all programs; empty if there are none. */
  readonly compile: () => string
}

/** Creates an empty directory for programs below test. */
export const makeProgramDirectory = (name: string): ProgramDirectory => {
  const path = join(root, "test", name)
  const source = (file: string) => relative(path, join(root, "src", file))
  rmSync(path, { recursive: true, force: true })
  mkdirSync(path, { recursive: true })
  return {
    path,
    write: (name, body) => {
      const file = join(path, name)
      writeFileSync(
        file,
        body
          .replaceAll('from "fs-algebra/testing"', `from "${source("testing/index.ts")}"`)
          .replaceAll('from "fs-algebra/debug"', `from "${source("debug/index.ts")}"`)
          .replaceAll(/from "fs-algebra\/adapters\/(\w+)"/g, (_, name) => `from "${source(`adapters/${name}.ts`)}"`)
          .replaceAll('from "fs-algebra"', `from "${source("index.ts")}"`)
      )
      return file
    },
    compile: () => {
      writeFileSync(
        join(path, "tsconfig.json"),
        JSON.stringify({
          extends: "../../tsconfig.json",
          include: ["*.ts"],
          compilerOptions: { allowImportingTsExtensions: true }
        })
      )
      const { status, stdout } = spawnSync("npx", ["tsc", "-p", path, "--noEmit"], { cwd: root, encoding: "utf8" })
      return status === 0 ? "" : stdout || `tsc ended with ${status}`
    }
  }
}
