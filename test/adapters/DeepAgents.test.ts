import { assert, describe, it } from "@effect/vitest"
import { BaseChatModel } from "@langchain/core/language_models/chat_models"
import { AIMessage, type BaseMessage } from "@langchain/core/messages"
import type { ChatResult } from "@langchain/core/outputs"
import { type BackendProtocolV2, createDeepAgent, FilesystemBackend } from "deepagents"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import * as DeepAgents from "../../src/adapters/DeepAgents.ts"
import { Decorator, Filesystem, InMemory } from "../../src/index.ts"
import { inMemory } from "../scratch.ts"

type Backend = Required<BackendProtocolV2>

const over = <A, E, R>(layer: Layer.Layer<Filesystem.Filesystem, E, R>, use: (backend: Backend) => Promise<A>) =>
  Effect.provide(
    Effect.flatMap(DeepAgents.make(), (backend) => Effect.promise(() => use(backend))),
    layer,
    { local: true }
  )

/** Returns the FilesystemBackend of deepagents on an empty directory. */
const own = (): Backend => new FilesystemBackend({ rootDir: mkdtempSync(join(inMemory(), "agent-")), virtualMode: true })

const bytes = (...values: ReadonlyArray<number>) => Uint8Array.from(values)

const files: Array<[string, Uint8Array]> = Object.entries({
  "/a.md": "# A\nneedle here\n",
  "/src/main.ts": "const needle = 1\nneedle()\n\nexport {}",
  "/src/deep/b.md": "no newline",
  "/src/deep/c.json": "{}\n",
  "/spaces.txt": "x\n\n\ny\n",
  "/crlf.txt": "one\r\ntwo\r\n",
  "/bom.txt": "\ufeffone\n",
  "/ü/ö.txt": "äöü\n"
}).map(([path, text]) => [path, new TextEncoder().encode(text)])

const plant = async (backend: Backend) => {
  const answers = await backend.uploadFiles([
    ...files,
    ["/picture.png", bytes(0x89, 0x50, 0xff, 0)],
    ["/wild", bytes(0x61, 0xff, 10)]
  ])
  assert.isTrue(answers.every(({ error }) => error === null))
}

/** Drops times and absent properties, and sorts the matches of a search, whose order is not specified. */
const comparable = (value: unknown): unknown => {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value))
    return ArrayBuffer.isView(value) ? [...(value as Uint8Array)] : value
  if (Array.isArray(value)) return value.map(comparable)
  const entries = Object.entries(value)
    .filter(([key, one]) => !/^(?:created|modified)_at$/.test(key) && one !== undefined)
    .map(([key, one]) => [
      key,
      key === "matches"
        ? (one as Array<{ path: string; line: number }>).toSorted((a, b) => a.path.localeCompare(b.path) || a.line - b.line)
        : comparable(one)
    ])
  return Object.fromEntries(entries) as unknown
}

const tree = async (backend: Backend): Promise<unknown> => {
  const { files = [] } = await backend.glob("**/*")
  return comparable(await backend.downloadFiles(files.map(({ path }) => path)))
}

type Call = (backend: Backend) => unknown

const calls: ReadonlyArray<readonly [title: string, call: Call]> = [
  ["ls of the root", (backend) => backend.ls("/")],
  ["ls of a directory", (backend) => backend.ls("/src")],
  ["ls with a slash at the end", (backend) => backend.ls("/src/")],
  ["ls of a missing directory", (backend) => backend.ls("/none")],
  ["ls of a file", (backend) => backend.ls("/a.md")],
  ["read", (backend) => backend.read("/src/main.ts")],
  ["read of a relative path", (backend) => backend.read("src/main.ts")],
  ["read of a page", (backend) => backend.read("/src/main.ts", 1, 2)],
  ["read of the last page", (backend) => backend.read("/a.md", 1, 1)],
  ["read of a page beyond the end", (backend) => backend.read("/a.md", 2, 10)],
  ["read of no lines", (backend) => backend.read("/a.md", 0, 0)],
  ["read with a negative offset", (backend) => backend.read("/a.md", -5, 1.9)],
  ["read with an offset that is not a number", (backend) => backend.read("/a.md", Number.NaN, 1)],
  ["read of a file with blank lines", (backend) => backend.read("/spaces.txt", 1, 2)],
  ["read of a file with CRLF", (backend) => backend.read("/crlf.txt")],
  ["read of a file with a byte order mark", (backend) => backend.read("/bom.txt")],
  ["read of a picture", (backend) => backend.read("/picture.png")],
  ["read of bytes that are not UTF-8", (backend) => backend.read("/wild")],
  ["read of JSON", (backend) => backend.read("/src/deep/c.json")],
  ["readRaw", (backend) => backend.readRaw("/a.md")],
  ["readRaw of a picture", (backend) => backend.readRaw("/picture.png")],
  ["write of a new file", (backend) => backend.write("/new/deep/file.txt", "one")],
  ["write over a file", (backend) => backend.write("/a.md", "changed")],
  ["write of a picture", (backend) => backend.write("/p.PNG", "iVBORw==")],
  ["edit", (backend) => backend.edit("/a.md", "needle", "pin")],
  ["edit of one of two", (backend) => backend.edit("/src/main.ts", "needle", "pin")],
  ["edit of all", (backend) => backend.edit("/src/main.ts", "needle", "pin", true)],
  ["edit of a text that is missing", (backend) => backend.edit("/a.md", "none", "pin")],
  ["edit of an empty text", (backend) => backend.edit("/a.md", "", "pin")],
  ["edit with special replacement signs", (backend) => backend.edit("/a.md", "needle", "$& $1")],
  ["edit over line ends", (backend) => backend.edit("/crlf.txt", "one\r\ntwo", "1\n2")],
  ["edit of a file with a byte order mark", (backend) => backend.edit("/bom.txt", "one", "two")],
  ["edit of a directory", (backend) => backend.edit("/src", "a", "b")],
  ["delete of a file", (backend) => backend.delete("/a.md")],
  ["delete of a directory", (backend) => backend.delete("/src")],
  ["delete of the root", (backend) => backend.delete("/")],
  ["delete of a missing file", (backend) => backend.delete("/none")],
  ["grep", (backend) => backend.grep("needle")],
  ["grep of a directory", (backend) => backend.grep("needle", "/src")],
  ["grep of one file", (backend) => backend.grep("needle", "/src/main.ts")],
  ["grep of a pattern with signs", (backend) => backend.grep("needle()", "/")],
  ["grep with a glob", (backend) => backend.grep("needle", "/", "*.md")],
  ["grep of a missing directory", (backend) => backend.grep("needle", "/none")],
  ["grep without a match", (backend) => backend.grep("nothing")],
  ["glob", (backend) => backend.glob("**/*.md")],
  ["glob of one level", (backend) => backend.glob("*.md")],
  ["glob from the root", (backend) => backend.glob("/src/*")],
  ["glob of a directory", (backend) => backend.glob("*", "/src")],
  ["glob with braces", (backend) => backend.glob("**/*.{ts,json}")],
  ["glob of a missing directory", (backend) => backend.glob("*", "/none")],
  ["glob of a file", (backend) => backend.glob("*", "/a.md")],
  [
    "uploadFiles over a directory",
    (backend) =>
      backend.uploadFiles([
        ["/src", bytes(1)],
        ["/x/y", bytes(2)]
      ])
  ],
  ["downloadFiles", (backend) => backend.downloadFiles(["/a.md", "/none", "/src", "/picture.png"])]
]

const errorOf = async (answer: unknown): Promise<unknown> => ((await answer) as { readonly error?: unknown }).error

/** Calls that the backend refuses, with the errors that it returns. */
const refused: ReadonlyArray<readonly [title: string, error: string, call: Call]> = [
  ["ls above the root", "Error listing '/../etc': Path traversal not allowed", (backend) => backend.ls("/../etc")],
  ["read above the root", "Error reading file '../x': Path traversal not allowed", (backend) => backend.read("../x")],
  ["read of a home directory", "Error reading file '~/x': Path traversal not allowed", (backend) => backend.read("~/x")],
  ["read of a missing file", "File '/none' not found", (backend) => backend.read("/none")],
  ["readRaw of a directory", "File '/src' not found", (backend) => backend.readRaw("/src")],
  [
    "write above the root",
    "Error writing file '/a/../../x': Path traversal not allowed",
    (backend) => backend.write("/a/../../x", "")
  ],
  [
    "write over a directory",
    "Error writing file '/src': EISDIR: illegal operation on a directory, write '/src'",
    (backend) => backend.write("/src", "x")
  ],
  [
    "write below a file",
    "Error writing file '/a.md/x': ENOTDIR: not a directory, write '/a.md/x'",
    (backend) => backend.write("/a.md/x", "x")
  ],
  [
    "write of a number",
    "Error writing file '/a.md': Content must be a string",
    (backend) => backend.write("/a.md", 7 as never)
  ],
  [
    "write to a path that is a number",
    "Error writing file '7': Path must be a string",
    (backend) => backend.write(7 as never, "x")
  ],
  [
    "write to a name with a control character",
    "Error writing file '/\u0001': EINVAL: invalid argument, write '/\u0001'",
    (backend) => backend.write("/\u0001", "x")
  ],
  ["edit of a missing file", "Error: File '/none' not found", (backend) => backend.edit("/none", "a", "b")],
  ["edit of bytes that are not UTF-8", "Error: File '/wild' is not UTF-8 text", (backend) => backend.edit("/wild", "a", "b")],
  ["edit with a number", "Error: oldString and newString must be strings", (backend) => backend.edit("/a.md", 7 as never, "b")],
  ["delete above the root", "Error deleting '/..': Path traversal not allowed", (backend) => backend.delete("/..")],
  ["grep above the root", "Error searching '/..': Path traversal not allowed", (backend) => backend.grep("x", "/..")],
  ["glob above the root", "Error searching '/..': Path traversal not allowed", (backend) => backend.glob("*", "/..")],
  ["glob with a number", "Error searching '/': Pattern must be a string", (backend) => backend.glob(7 as never)]
]

/** Answers each request with the next message of its script. */
class Scripted extends BaseChatModel {
  readonly script: Array<AIMessage>
  constructor(script: ReadonlyArray<AIMessage>) {
    super({})
    this.script = [...script]
  }
  override _llmType(): string {
    return "scripted"
  }
  override bindTools(): this {
    return this
  }
  override async _generate(): Promise<ChatResult> {
    const message = this.script.shift() ?? new AIMessage("done")
    return { generations: [{ text: message.text, message }] }
  }
}

const step = (...calls: ReadonlyArray<readonly [name: string, args: Record<string, unknown>]>): AIMessage =>
  new AIMessage({
    content: "",
    tool_calls: calls.map(([name, args], at) => ({ name, args, id: `${name}-${at}`, type: "tool_call" as const }))
  })

/** Runs an agent that uses six file tools, and returns the answers of the tools. */
const runAgent = async (backend: Backend): Promise<ReadonlyArray<unknown>> => {
  await plant(backend)
  const model = new Scripted([
    step(["ls", { path: "/" }]),
    step(["read_file", { file_path: "/src/main.ts" }], ["read_file", { file_path: "/none.txt" }]),
    step(["write_file", { file_path: "/notes/new.md", content: "# New\nneedle\n" }]),
    step(["edit_file", { file_path: "/notes/new.md", old_string: "# New", new_string: "# Old" }]),
    step(["edit_file", { file_path: "/src/main.ts", old_string: "needle", new_string: "pin" }]),
    step(["grep", { pattern: "needle", path: "/notes", output_mode: "content" }], ["glob", { pattern: "**/*.md", path: "/" }]),
    step(["read_file", { file_path: "/notes/new.md", offset: 1, limit: 1 }]),
    new AIMessage("ready")
  ])
  const agent = createDeepAgent({ model, backend })
  const { messages } = (await agent.invoke({ messages: [{ role: "user", content: "work" }] })) as {
    messages: Array<BaseMessage>
  }
  assert.strictEqual(messages.at(-1)?.text, "ready")
  return messages.filter(({ type }) => type === "tool").map(({ name, text }) => [name, text])
}

describe("DeepAgents", () => {
  for (const [title, call] of calls) {
    it.effect(`${title} has the result of FilesystemBackend, and leaves the same files`, () =>
      Effect.gen(function* () {
        const use = async (backend: Backend) => {
          await plant(backend)
          return { answer: comparable(await call(backend)), files: await tree(backend) }
        }
        const expected = yield* Effect.promise(() => use(own()))
        assert.deepStrictEqual(yield* over(InMemory.layer(), use), expected)
      })
    )
  }

  for (const [title, error, call] of refused) {
    it.effect(`${title} returns an error and changes nothing`, () =>
      over(InMemory.layer(), async (backend) => {
        await plant(backend)
        const before = await tree(backend)
        assert.strictEqual(await errorOf(call(backend)), error)
        assert.deepStrictEqual(await tree(backend), before)
      })
    )
  }

  it.effect("an agent's tools return the same results as over FilesystemBackend, except the error for a missing file", () =>
    Effect.gen(function* () {
      const expected = yield* Effect.promise(() => runAgent(own()))
      const actual = yield* over(InMemory.layer(), runAgent)
      const withoutError = (answers: ReadonlyArray<unknown>) =>
        JSON.stringify(answers).replace(/Error reading file '\/none.txt'[^"]*/, "File '/none.txt' not found")
      assert.strictEqual(withoutError(actual), withoutError(expected))
      assert.strictEqual(actual.length, 9)
    })
  )

  it.effect("ten concurrent edits of a file are all kept", () =>
    over(InMemory.layer(), async (backend) => {
      const names = Array.from({ length: 10 }, (_, at) => `<${at}>`)
      await backend.write("/a", names.join("\n"))
      const answers = await Promise.all(names.map(async (name) => backend.edit("/a", name, `${name}!`)))
      assert.deepStrictEqual(
        answers,
        names.map(() => ({ path: "/a", filesUpdate: null, occurrences: 1 }))
      )
      assert.strictEqual((await backend.read("/a")).content, names.map((name) => `${name}!`).join("\n"))
    })
  )

  it.effect("an empty file is edited with an empty oldString", () =>
    over(InMemory.layer(), async (backend) => {
      await backend.write("/a", "")
      assert.deepStrictEqual(await backend.read("/a"), { content: "", mimeType: "text/plain" })
      assert.deepStrictEqual(await backend.edit("/a", "", "one"), { path: "/a", filesUpdate: null, occurrences: 0 })
      assert.strictEqual((await backend.read("/a")).content, "one")
    })
  )

  it.effect("grep stops at maxCount and reports the truncation", () =>
    over(InMemory.layer(), async (backend) => {
      await plant(backend)
      assert.deepStrictEqual(await backend.grep("needle", null, null, 1), {
        matches: [{ path: "/a.md", line: 2, text: "needle here" }],
        truncated: true
      })
      assert.notProperty(await backend.grep("needle", null, null, 3), "truncated")
    })
  )

  it.effect("broken links are not listed, and links inside the root are followed", () =>
    over(
      InMemory.layer({ tree: { d: { a: "one" }, way: { link: "d" }, broken: { link: "none" }, loop: { link: "loop" } } }),
      async (backend) => {
        assert.deepStrictEqual(
          (await backend.ls("/")).files?.map(({ path }) => path),
          ["/d/", "/way/"]
        )
        assert.strictEqual((await backend.read("/way/a")).content, "one")
      }
    )
  )

  it.effect("a write or an edit beyond the quota returns an error and keeps the old file", () =>
    over(InMemory.layer().pipe(Filesystem.decorate(Decorator.quota({ maxBytes: 5 }))), async (backend) => {
      await backend.write("/a", "old")
      assert.strictEqual(
        await errorOf(backend.write("/a", "too long")),
        "Error writing file '/a': ENOSPC: no space left on device, write '/a'"
      )
      assert.strictEqual(
        await errorOf(backend.edit("/a", "old", "too long")),
        "Error editing file '/a': ENOSPC: no space left on device, write '/a'"
      )
      assert.strictEqual((await backend.read("/a")).content, "old")
    })
  )
})
