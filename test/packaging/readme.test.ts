import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { Filesystem as Service } from "../../src/filesystem/Filesystem.ts"
import { Filesystem, InMemory, type Snapshots } from "../../src/index.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const readme = readFileSync(join(root, "README.md"), "utf8")
const fences = [...readme.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(([, language, body]) => ({
  language: language!,
  body: body!
}))
const programs = fences.filter(({ language }) => language === "ts").map(({ body }) => body)
const shells = fences.filter(({ language }) => language === "sh").map(({ body }) => body)

/** The fences as files beside the sources, which stand in for the package. */
const directory = join(root, "test", ".readme")
const source = (path: string) => relative(directory, join(root, "src", path))
const isSuite = (body: string) => /\b(?:suite\(|it\.)/.test(body)

rmSync(directory, { recursive: true, force: true })
mkdirSync(directory, { recursive: true })
const files = programs.map((body, index) => {
  const file = join(directory, `fence${index}${isSuite(body) ? ".test" : ""}.ts`)
  writeFileSync(
    file,
    body
      .replaceAll('from "fs-algebra/testing"', `from "${source("testing/index.ts")}"`)
      .replaceAll('from "fs-algebra"', `from "${source("index.ts")}"`)
  )
  return file
})

const load = async <Module>(name: string): Promise<Module> => {
  const file = files.find((_, index) => programs[index]!.includes(`export const ${name} `))!
  return (await import(pathToFileURL(file).href)) as Module
}

describe("README", () => {
  it("has fences", () => assert.deepStrictEqual([programs.length >= 5, shells.length >= 2], [true, true]))

  it("every program compiles as its reader would compile it", () => {
    writeFileSync(
      join(directory, "tsconfig.json"),
      JSON.stringify({
        extends: "../../tsconfig.json",
        include: ["*.ts"],
        compilerOptions: { allowImportingTsExtensions: true }
      })
    )
    const { status, stdout } = spawnSync("npx", ["tsc", "-p", directory, "--noEmit"], { cwd: root, encoding: "utf8" })
    assert.strictEqual(status, 0, stdout)
  })

  it("the application writes, edits and finds", async () => {
    const { main } = await load<{ main: (root: string) => Effect.Effect<ReadonlyArray<string>, unknown> }>("main")
    const workspace = mkdtempSync(join(tmpdir(), "fs-algebra-readme-"))
    try {
      assert.deepStrictEqual(await Effect.runPromise(main(workspace)), ["notes/todo.md:1: - [x] try fs-algebra"])
      assert.strictEqual(readFileSync(join(workspace, "notes/todo.md"), "utf8"), "- [x] try fs-algebra\n")
    } finally {
      rmSync(workspace, { recursive: true })
    }
  })

  it("the tool handler answers a page, and says of a missing file what to do", async () => {
    type Answer = { readonly success: boolean; readonly message: string }
    const { readFile } = await load<{
      readFile: (parameters: { path: string }) => Effect.Effect<Answer, never, Service>
    }>("readFile")
    const run = (path: string) =>
      Effect.runPromise(Effect.provide(readFile({ path }), InMemory.layer({ tree: { "a.txt": "hello\n" } })))
    assert.deepStrictEqual(await run("a.txt"), { success: true, message: "hello" })
    assert.deepStrictEqual(await run("b.txt"), { success: false, message: "b.txt is not there; list first" })
    assert.isFalse((await run("../up.txt")).success)
  })

  it("the draft leaves the project as it is", async () => {
    type Draft = {
      readonly draft: (root: string) => Layer.Layer<Service>
    }
    const { draft } = await load<Draft>("draft")
    const workspace = mkdtempSync(join(tmpdir(), "fs-algebra-readme-"))
    try {
      writeFileSync(join(workspace, "a.txt"), "as it was")
      const program = Effect.gen(function* () {
        const fs = yield* Filesystem.Filesystem
        yield* fs.write("a.txt", "changed")
        yield* fs.write("b.txt", "new")
        return [yield* fs.readString("a.txt"), yield* fs.exists("b.txt")]
      })
      assert.deepStrictEqual(await Effect.runPromise(Effect.provide(program, draft(workspace))), ["changed", true])
      assert.strictEqual(readFileSync(join(workspace, "a.txt"), "utf8"), "as it was")
      assert.isFalse(existsSync(join(workspace, "b.txt")))
    } finally {
      rmSync(workspace, { recursive: true })
    }
  })

  it("the past can be looked at and brought back", async () => {
    type Past = {
      readonly careful: Effect.Effect<
        { readonly changes: ReadonlyArray<string>; readonly before: boolean },
        unknown,
        Service | Snapshots.Snapshots
      >
      readonly history: (root: string, gitDir: string) => Layer.Layer<Service | Snapshots.Snapshots, unknown>
    }
    const { careful, history } = await load<Past>("careful")
    const workspace = mkdtempSync(join(tmpdir(), "fs-algebra-readme-"))
    const store = mkdtempSync(join(tmpdir(), "fs-algebra-readme-"))
    try {
      writeFileSync(join(workspace, "a.txt"), "as it was")
      const done = await Effect.runPromise(Effect.provide(careful, history(workspace, join(store, "git"))))
      assert.deepStrictEqual(done, { changes: ["Added notes", "Added notes/todo.md"], before: false })
      assert.deepStrictEqual(readdirSync(workspace), ["a.txt"])
      const log = execFileSync("git", ["--git-dir", join(store, "git"), "log", "--all", "--stat"], { encoding: "utf8" })
      assert.include(log, "before the refactoring")
    } finally {
      rmSync(workspace, { recursive: true })
      rmSync(store, { recursive: true })
    }
  })

  it("the suites pass", () => {
    const config = join(directory, "vitest.config.ts")
    writeFileSync(
      config,
      `export default { root: ${JSON.stringify(directory)}, test: { include: ["*.test.ts"], testTimeout: 120_000 } }\n`
    )
    const child = spawnSync("npx", ["vitest", "run", "--config", config], { cwd: root, encoding: "utf8", timeout: 300_000 })
    assert.strictEqual(child.status, 0, child.stdout + child.stderr)
  })

  const lines = shells.flatMap((body) => body.split("\n")).filter((line) => line.startsWith("npm start -- "))
  it("shows commands", () => assert.isAbove(lines.length, 2))
  for (const line of lines) {
    it(`${line}`, () => {
      const before = readFileSync(join(root, "README.md"))
      execFileSync("sh", ["-c", line], { cwd: root, stdio: "pipe" })
      assert.isTrue(before.equals(readFileSync(join(root, "README.md"))))
    })
  }
})
