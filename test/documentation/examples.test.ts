/**
 * Compiles every `@example` of the sources, and runs the examples that need only memory. A fragment runs in
 * `Effect.gen` with `fs` and the package's names in scope, and `// => value` states the value of an expression.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { pathToFileURL } from "node:url"
import { type Filesystem, InMemory } from "../../src/index.ts"
import { type Example, examples, examplesOf, moduleOf, statesValue } from "./exampleModules.ts"
import { makeProgramDirectory } from "./programs.ts"
import { parse, publicModules, target, ts } from "./typescript.ts"

/** The modules whose examples need a disk, a program or a server, or declare tests. They are compiled only. */
const compiledOnly: ReadonlySet<string> = new Set([
  "src/agent/McpServer.ts",
  "src/agent/SandboxToolkit.ts",
  "src/backends/Bucket.ts",
  "src/backends/Container.ts",
  "src/backends/PosixHost.ts",
  "src/backends/Sftp.ts",
  "src/backends/WindowsHost.ts",
  "src/debug/Server.ts",
  "src/filesystem/Sandbox.ts",
  "src/remote/Remote.ts",
  "src/history/SnapshotStore.ts",
  "src/journal/JetStream.ts",
  "src/repository/Stores.ts",
  "src/testing/Suite.ts",
  "src/workspace/HostMount.ts",
  "src/workspace/VfsState.ts"
])

/** The tree in which an example runs. */
const tree: InMemory.Tree = {
  notes: { "todo.md": "- [ ] tea\n- [ ] bread\n" },
  src: { "main.ts": "export const answer = 42\n" }
}

const directory = makeProgramDirectory(".examples")

interface Program extends Example {
  readonly path: string
}

const programs: ReadonlyArray<Program> = examples().map((example) => ({
  ...example,
  path: directory.write(`${example.name.replace(/^src\//, "").replaceAll(/[/.:]+/g, "-")}.ts`, moduleOf(example))
}))

const load = async ({ path }: Program) => {
  type Module = { readonly example: Effect.Effect<void, unknown, Filesystem.Filesystem | Scope.Scope> }
  return ((await import(pathToFileURL(path).href)) as Module).example
}

const run = async (program: Program): Promise<void> =>
  Effect.runPromise(Effect.provide(Effect.scoped(await load(program)), InMemory.layer({ tree })))

const algebra = "src/filesystem/Filesystem.ts"

/** The names of the members of Algebra. */
const members: ReadonlyArray<string> = parse(algebra).statements.flatMap((statement) =>
  ts.isInterfaceDeclaration(statement) && statement.name.text === "Algebra"
    ? statement.members.map((member) => (member.name as { readonly text: string } | undefined)?.text ?? "")
    : []
)

/** Returns the files from which a module exports names. */
const exportedFiles = (file: string): ReadonlyArray<string> =>
  parse(file).statements.flatMap((statement) =>
    ts.isExportDeclaration(statement) &&
    statement.moduleSpecifier !== undefined &&
    ts.isStringLiteral(statement.moduleSpecifier)
      ? [target(file, statement.moduleSpecifier.text)]
      : []
  )

describe("the examples of the doc comments", () => {
  it("compile in a project of a reader", () => {
    assert.strictEqual(directory.compile(), "")
  })

  it("include an example of each operation of Algebra", () => {
    assert.isAbove(members.length, 25)
    const found = new Set(programs.filter(({ file }) => file === algebra).map(({ of }) => of))
    const properties = new Set(["root", "readOnly", "name", "port"])
    assert.deepStrictEqual(
      members.filter((name) => !properties.has(name) && !found.has(name)),
      []
    )
  })

  it("include an example of each public module", () => {
    const found = new Set(programs.map(({ file }) => file))
    const bare = publicModules.filter((file) => ![file, ...exportedFiles(file)].some((one) => found.has(one)))
    assert.deepStrictEqual(bare, [])
  })

  it("are only compiled for a list of modules, each of which has examples", () => {
    const files = new Set(programs.map(({ file }) => file))
    assert.deepStrictEqual(
      [...compiledOnly].filter((file) => !files.has(file)),
      []
    )
  })

  for (const program of programs.filter(({ file }) => !compiledOnly.has(file))) {
    it(`return the stated values in ${program.name}`, async () => {
      assert.isTrue(statesValue(program), "the example states a value")
      await run(program)
    })
  }

  it("are found with file and line, and fail if a stated value is wrong", async () => {
    const text =
      'const one = 1\n\n/**\n * Counts.\n *\n * @example\n * ```ts\n * fs.name // => "none"\n * ```\n */\nexport const two = 2\n'
    const [example] = examplesOf("src/a.ts", text)
    assert.deepStrictEqual(example, { name: "src/a.ts:8", file: "src/a.ts", of: "two", body: 'fs.name // => "none"\n' })
    const path = directory.write("wrong.ts", moduleOf(example!))
    const failure = await run({ ...example!, path }).then(
      () => "",
      (error: Error) => error.message
    )
    assert.include(failure, "'InMemory' to deeply equal")
    assert.throws(() => examplesOf("src/a.ts", "/**\n * @example\n * fs.name\n */"), "src/a.ts:2")
    assert.throws(() => moduleOf({ ...example!, body: 'const name = fs.name // => "none"\n' }), "src/a.ts:8")
  })
})
