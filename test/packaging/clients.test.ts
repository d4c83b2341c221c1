/** Starts MCP servers with the configurations of the guide to agents, and uses them with a client. */
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { type CallToolResult, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Toml from "effect/encoding/Toml"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { fencesOf, rowsOf, sectionsOf } from "../documentation/markdown.ts"
import { machine } from "./machine.ts"

const guide = "src/guides/agents.md"

const Server = Schema.Struct({ command: Schema.String, args: Schema.Array(Schema.String) })
const Files = Schema.Struct({ files: Server })
const inJson = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ mcpServers: Files })))
const inToml = Schema.decodeUnknownSync(Schema.Struct({ mcp_servers: Files }))

const bodiesOf = (document: string, language: string) =>
  fencesOf(document).flatMap((fence) => (fence.language === language ? [fence.body] : []))

/** The absolute path in the guide's example, which the tests replace by the path of a project. */
const example = "/home/me/project"

// The README repeats one of these configurations.
const configurations = [
  ...bodiesOf(guide, "json").map((body) => inJson(body).mcpServers.files),
  ...bodiesOf(guide, "toml").map((body) => inToml(Result.getOrThrow(Toml.parse(body))).mcp_servers.files)
].map((server) => ({
  name: server.args.slice(2).join(" "),
  server,
  isAbsolute: server.args.includes(example),
  mayChange: !server.args.includes("--read-only")
}))

type Configuration = (typeof configurations)[number]

const files = { "src/a.ts": "const one = 1\n", ".env": "TOKEN=secret\n" }

/** Starts the server in the directory that its client would use: the project, or "/" if the configuration has an absolute path. */
const started = async (
  { isAbsolute, server }: Configuration,
  more: { readonly structured: boolean; readonly roots: boolean }
) => {
  const { env, work } = machine()
  const project = join(work, "project")
  mkdirSync(join(project, "src"), { recursive: true })
  for (const [path, content] of Object.entries(files)) writeFileSync(join(project, path), content)
  const client = new Client({ name: "guide", version: "1" }, { capabilities: more.roots ? { roots: {} } : {} })
  if (more.roots) client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: pathToFileURL(project).href }] }))
  const args = [...server.args.map((arg) => (arg === example ? project : arg)), ...(more.structured ? ["--structured"] : [])]
  await client.connect(new StdioClientTransport({ command: server.command, args, cwd: isAbsolute ? "/" : project, env }))
  const call = async (name: string, parameters: Record<string, unknown> = {}) => {
    const answer = (await client.callTool({ name, arguments: parameters })) as CallToolResult
    const text = answer.content.map((part) => (part.type === "text" ? part.text : "")).join("\n")
    assert.strictEqual(answer.structuredContent !== undefined, more.structured && answer.isError !== true, name)
    return { isError: answer.isError === true, text }
  }
  return { client, call, project, names: (await client.listTools()).tools.map(({ name }) => name) }
}

const changing = new Set(["write_file", "edit_file", "apply_patch", "move", "copy", "mkdir", "rm", "snapshot", "restore"])

describe("the documented configurations of MCP clients", () => {
  it("are the same in the README and the guide; the guide adds a configuration for desktop clients and a configuration in TOML", () => {
    const [inReadme, inGuide] = ["README.md", guide].map((document) => bodiesOf(document, "json"))
    assert.lengthOf(inReadme!, 1)
    assert.include(inGuide!, inReadme![0]!)
    assert.deepStrictEqual(
      configurations.map(({ isAbsolute, mayChange }) => [isAbsolute, mayChange]),
      [
        [true, true],
        [false, true],
        [false, false]
      ]
    )
  })

  const modes = [
    { structured: false, roots: false },
    { structured: true, roots: true }
  ]
  const cases = configurations.flatMap((configuration) => modes.map((mode) => ({ ...configuration, mode })))

  it.each(cases)("$name serves the project, but no secret file ($mode)", async ({ mode, ...configuration }) => {
    const { call, client, names, project } = await started(configuration, mode)
    try {
      const table = sectionsOf(guide)
        .find(({ title }) => title === "The tools")!
        .text.split("| kit |")[0]!
      const all = rowsOf(table).flatMap(([row]) => [...row!.matchAll(/\w+/g)].map(String))
      assert.sameMembers(names, configuration.mayChange ? all : all.filter((name) => !changing.has(name)))

      assert.include((await call("ls")).text, "src/")
      assert.include((await call("read_file", { path: "src/a.ts" })).text, "const one = 1")
      assert.include((await call("read_file", { path: join(project, "src/a.ts") })).text, "const one = 1")
      assert.include((await call("grep", { pattern: "one" })).text, "src/a.ts")
      assert.isTrue((await call("read_file", { path: ".env" })).isError)
      assert.notInclude((await call("grep", { pattern: "TOKEN", include_ignored: true })).text, "secret")

      if (configuration.mayChange) {
        const written = await call("write_file", { path: "docs/new.md", content: "new\n" })
        assert.match(written.text, /Checkpoint \w+ contains all files/)
        assert.strictEqual(readFileSync(join(project, "docs/new.md"), "utf8"), "new\n")
        assert.isFalse((await call("snapshot", { tag: "mine" })).isError)
        const edited = await call("edit_file", { path: "src/a.ts", old_string: "one", new_string: "two" })
        assert.isFalse(edited.isError, edited.text)
        assert.strictEqual(readFileSync(join(project, "src/a.ts"), "utf8"), "const two = 1\n")
        assert.isFalse((await call("restore", { snapshot_id: "mine" })).isError)
        assert.isTrue(existsSync(join(project, "docs/new.md")))
      }
      for (const [path, content] of Object.entries(files))
        assert.strictEqual(readFileSync(join(project, path), "utf8"), content)
    } finally {
      await client.close()
    }
  })
})
