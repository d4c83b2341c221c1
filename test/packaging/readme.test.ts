import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { execFileSync, spawnSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import type { Filesystem as Service } from "../../src/filesystem/Filesystem.ts"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { busyboxRoot, describePodman } from "../backends/container/podman.ts"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { FileSystemEntry, Filesystem, type FilesystemToolkit, InMemory, Leaf, type Snapshots } from "../../src/index.ts"

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

  it("what was deleted is read in the past, brought back, and found written down", async () => {
    type Told = { readonly plan: string; readonly was: string; readonly drift: ReadonlyArray<unknown> }
    const { recorded } = await load<{ recorded: (root: string, file: string) => Effect.Effect<Told, unknown> }>("recorded")
    const directory = mkdtempSync(join(tmpdir(), "fs-algebra-readme-"))
    try {
      const root = join(directory, "root")
      mkdirSync(root)
      const told = await Effect.runPromise(recorded(root, join(directory, "journal.ndjson")))
      assert.deepStrictEqual(told, { plan: "1. try it\n", was: "1. try it\n", drift: [] })
      assert.deepStrictEqual(readdirSync(root, { recursive: true }).sort(), ["notes", join("notes", "plan.md")])
      const lines = readFileSync(join(directory, "journal.ndjson"), "utf8").trimEnd().split("\n")
      assert.isAbove(lines.length, 6)
      assert.isTrue(lines.every((line) => typeof JSON.parse(line) === "object"))
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  it("the tables of leaves name every setting with its default, and every kind of fault", () => {
    const rows = new Map(
      [...readme.matchAll(/^\| (`[^|]+) \| ([^|]+) \|/gm)].flatMap(([, names, values]) => {
        const told = [...values!.matchAll(/`([^`]+)`/g)].map(([, value]) => value!)
        return [...names!.matchAll(/`([^`]+)`/g)].map(([, name], i) => [name!, told[i] ?? told[0] ?? values!] as const)
      })
    )
    const decode = Schema.decodeUnknownSync(
      Schema.Struct({ ...Leaf.PosixFS.fields, useLongPaths: Leaf.WindowsFS.fields.useLongPaths, ...Leaf.MockFS.fields })
    )
    for (const [name, value] of Object.entries(decode({ rootPath: "/" }))) {
      assert.strictEqual(rows.get(name), name === "rootPath" ? "required" : String(value), name)
    }
    for (const kind of FileSystemEntry.FaultKind.literals) assert.isTrue(rows.has(kind), kind)
  })

  it("a branch works on the files of a leaf", async () => {
    type Found = { readonly matches: ReadonlyArray<{ readonly path: string; readonly lineContent: string }> }
    const { apart } = await load<{ apart: (root: string) => Effect.Effect<Found, unknown> }>("apart")
    const root = mkdtempSync(join(tmpdir(), "fs-algebra-readme-"))
    try {
      const { matches } = await Effect.runPromise(apart(root))
      assert.deepStrictEqual(
        matches.map(({ lineContent, path }) => [path, lineContent]),
        [["hello.txt", "from the other end"]]
      )
      assert.strictEqual(readFileSync(join(root, "hello.txt"), "utf8"), "from the other end\n")
    } finally {
      rmSync(root, { recursive: true })
    }
  })

  it("the workspace mounts the docs, has them changed and dumped, and takes it back", async () => {
    type Review = {
      readonly review: (project: string) => Effect.Effect<
        {
          readonly dump: string | undefined
          readonly said: ReadonlyArray<string>
          readonly state: Option.Option<{
            readonly files: ReadonlyArray<{ readonly version: number; readonly sizeBytes: number }>
          }>
        },
        unknown
      >
    }
    const { review } = await load<Review>("review")
    const project = mkdtempSync(join(tmpdir(), "fs-algebra-readme-"))
    try {
      mkdirSync(join(project, "docs"))
      writeFileSync(join(project, "docs/guide.md"), "A guide that is far too long.\n")
      writeFileSync(join(project, "docs/logo.svg"), "<svg/>")
      const { dump, said, state } = await Effect.runPromise(review(project))
      assert.include(said[0], "A guide that is far too long.")
      assert.match(said[1]!, /^Wrote docs\/guide\.md/)
      assert.deepStrictEqual(
        Option.map(state, ({ files }) => files.map(({ sizeBytes, version }) => ({ sizeBytes, version }))),
        Option.some([{ sizeBytes: 30, version: 1 }])
      )
      assert.strictEqual(readFileSync(join(project, "docs/guide.md"), "utf8"), "A guide that is far too long.\n")
      assert.strictEqual(dump, join(project, "review.jsonl"))
      const zipped = execFileSync("unzip", ["-p", join(project, "review.fs.zip"), "files/docs/guide.md"], { encoding: "utf8" })
      assert.strictEqual(zipped, "Short.\n")
    } finally {
      rmSync(project, { recursive: true })
    }
  })

  it("the kit of effect/ai reads, refuses what was not read, and does not see what is denied", async () => {
    type Kit = {
      readonly toolkit: typeof FilesystemToolkit.toolkit
      readonly handlers: (root: string) => typeof FilesystemToolkit.layerContextual
    }
    const { handlers, toolkit } = await load<Kit>("handlers")
    const workspace = mkdtempSync(join(tmpdir(), "fs-algebra-readme-"))
    try {
      writeFileSync(join(workspace, "a.txt"), "one\n")
      writeFileSync(join(workspace, ".env"), "SECRET=1\n")
      const program = Effect.gen(function* () {
        const kit = yield* toolkit
        const call = (name: "edit_file" | "grep" | "read_file", parameters: object) =>
          Effect.flatMap(kit.handle(name, parameters as never), Stream.runLast).pipe(
            Effect.map((last) => Option.getOrThrow(last).result as { readonly success: boolean; readonly message: string })
          )
        const edit = { path: "a.txt", old_string: "one", new_string: "two" }
        return [
          yield* call("edit_file", edit),
          yield* call("read_file", { path: "a.txt" }),
          yield* call("edit_file", edit),
          yield* call("grep", { pattern: "SECRET", include_ignored: true })
        ] as const
      })
      const [unread, read, edited, searched] = await Effect.runPromise(Effect.provide(program, handlers(workspace)))
      assert.deepStrictEqual([unread.success, read.success, edited.success], [false, true, true])
      assert.include(unread.message, "read_file")
      assert.include(searched.message, "0 matches")
      assert.strictEqual(readFileSync(join(workspace, "a.txt"), "utf8"), "two\n")
    } finally {
      rmSync(workspace, { recursive: true })
    }
  })

  describePodman("with podman", () => {
    it("the program in a container runs its command where its files are", async () => {
      type InContainer = { readonly inContainer: (image: { readonly rootfs: string }) => Effect.Effect<string, unknown> }
      const { inContainer } = await load<InContainer>("inContainer")
      assert.strictEqual(await Effect.runPromise(inContainer({ rootfs: busyboxRoot() })), "made by 65534\n")
    })
  })

  /** What a client's configuration starts, from the sources instead of the registry. */
  const started = (args: ReadonlyArray<string>) => {
    assert.deepStrictEqual(args.slice(0, 3), ["-y", "fs-algebra", "mcp"])
    return [join(root, "src/cli/bin.ts"), ...args.slice(2)]
  }
  const toolsOf = async (args: ReadonlyArray<string>) => {
    const workspace = mkdtempSync(join(tmpdir(), "fs-algebra-readme-"))
    const client = new Client({ name: "readme", version: "1.0.0" })
    const env = { PATH: process.env["PATH"] ?? "", HOME: workspace, XDG_STATE_HOME: join(workspace, "state") }
    try {
      const cwd = join(workspace, "work")
      mkdirSync(cwd)
      await client.connect(new StdioClientTransport({ command: process.execPath, args: started(args), cwd, env }))
      return (await client.listTools()).tools.map(({ name }) => name)
    } finally {
      await client.close()
      rmSync(workspace, { recursive: true, force: true })
    }
  }
  const named = [...readme.matchAll(/^\| ((?:`[a-z_]+` )+)\|/gm)].flatMap(([, names]) =>
    [...names!.matchAll(/\w+/g)].map(String)
  )

  it("the configuration in JSON starts a server with the tools of the table", async () => {
    const json = fences.find(({ language }) => language === "json")
    const { files } = (JSON.parse(json!.body) as { mcpServers: Record<string, { args: ReadonlyArray<string> }> }).mcpServers
    assert.sameMembers(await toolsOf(files!.args), named)
  })

  it("the configuration in TOML starts a server that changes nothing", async () => {
    const toml = fences.find(({ language }) => language === "toml")
    const [, args] = /^args = (\[.*\])$/m.exec(toml!.body)!
    const tools = await toolsOf(JSON.parse(args!) as ReadonlyArray<string>)
    assert.includeMembers(tools, ["read_file", "grep"])
    for (const tool of ["write_file", "edit_file", "apply_patch", "move", "rm", "restore"]) assert.notInclude(tools, tool)
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
