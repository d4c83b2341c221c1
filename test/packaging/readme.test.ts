/** What the README and the guides tell to type or to paste does what they say; their programs are run by documentation/guides.test.ts. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { delimiter, join } from "node:path"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import * as Effect from "effect/Effect"
import { shell } from "../cli/terminal.ts"
import { documents, fencesOf, proseOf, root, rowsOf, sectionsOf, textOf } from "../documentation/markdown.ts"
import { onDisk } from "../scratch.ts"

const bin = join(root, "src/cli/bin.ts")

/** A machine on which the package is installed: `fs-algebra` in the PATH, a home of its own. */
const machine = () => {
  const home = mkdtempSync(join(onDisk(), "readme-"))
  const [work, tools] = [join(home, "work"), join(home, "bin")]
  mkdirSync(work)
  mkdirSync(tools)
  writeFileSync(join(tools, "fs-algebra"), `#!/bin/sh\nexec '${process.execPath}' '${bin}' "$@"\n`)
  chmodSync(join(tools, "fs-algebra"), 0o755)
  const env = { PATH: `${tools}${delimiter}${process.env["PATH"] ?? ""}`, HOME: home, XDG_STATE_HOME: join(home, "state") }
  return { work, env }
}

describe("what is to be pasted", () => {
  const fences = ["README.md", "src/guides/agents.md"].flatMap(fencesOf)

  /** What a client's configuration starts, from the sources instead of the registry. */
  const toolsOf = async (args: ReadonlyArray<string>) => {
    assert.deepStrictEqual(args.slice(0, 3), ["-y", "fs-algebra", "mcp"])
    const { env, work } = machine()
    const client = new Client({ name: "readme", version: "1.0.0" })
    try {
      await client.connect(
        new StdioClientTransport({ command: process.execPath, args: [bin, ...args.slice(2)], cwd: work, env })
      )
      return (await client.listTools()).tools.map(({ name }) => name)
    } finally {
      await client.close()
    }
  }

  it("is in the guide what it is in the README, beside one for clients that do not start in the project", () => {
    const [inReadme, inGuide] = ["README.md", "src/guides/agents.md"].map((file) =>
      fencesOf(file).flatMap(({ body, language }) => (language === "json" ? [body] : []))
    )
    assert.lengthOf(inReadme!, 1)
    assert.lengthOf(inGuide!, 2)
    assert.include(inGuide!, inReadme![0]!)
    assert.isTrue(inGuide!.some((body) => body.includes('"--root", "/')))
  })

  it("the configuration in JSON starts a server with the tools of the table", async () => {
    const section = sectionsOf("src/guides/agents.md").find(({ title }) => title === "The tools")!
    const [first] = section.text.split("Beside them")
    const named = rowsOf(first!).flatMap(([names]) => [...names!.matchAll(/\w+/g)].map(String))
    const { body } = fences.find(({ language }) => language === "json")!
    const { files } = (JSON.parse(body) as { mcpServers: Record<string, { args: ReadonlyArray<string> }> }).mcpServers
    assert.sameMembers(await toolsOf(files!.args), named)
  })

  it("the configuration in TOML starts a server that changes nothing", async () => {
    const { body } = fences.find(({ language }) => language === "toml")!
    const [, args] = /^args = (\[.*\])$/m.exec(body)!
    const tools = await toolsOf(JSON.parse(args!) as ReadonlyArray<string>)
    assert.includeMembers(tools, ["read_file", "grep"])
    for (const tool of ["write_file", "edit_file", "apply_patch", "move", "rm", "restore"]) assert.notInclude(tools, tool)
  })
})

/** Not run, and why; whatever has none of these is run as it stands. */
const reasons: ReadonlyArray<readonly [pattern: RegExp, why: string]> = [
  [/^npm ci\b/m, "installs this project, and runs all of its tests"],
  [/^npm (?:init|install)\b/m, "needs the registry; test/packaging/pack.test.ts installs the package"],
  [/^fs-algebra debug\b/m, "serves until it is stopped; test/debug runs it"],
  [/^fs-algebra mcp\b/m, "serves until it is stopped; test/cli/mcpStdio.test.ts runs it"],
  [/^npm run bench\b/m, "takes minutes"]
]

describe("what is to be typed", () => {
  const all = documents.flatMap(fencesOf).filter(({ language }) => language === "sh")

  it("is there, and nearly all of it is run", () => {
    assert.isAbove(all.length, 30)
    for (const [pattern] of reasons.slice(0, 3))
      assert.isTrue(
        all.some(({ body }) => pattern.test(body)),
        String(pattern)
      )
  })

  /** One machine for a document, whose fences follow each other. */
  const inOrder = documents.filter((document) => !document.endsWith("command-line.md"))
  for (const document of inOrder) {
    const { env, work } = machine()
    const fences = all.filter((fence) => fence.document === document && !reasons.some(([pattern]) => pattern.test(fence.body)))
    for (const { body, line } of fences) {
      it(`${document}:${line} ends well`, () => {
        const isCheckout = /^npm start -- /m.test(body)
        const before = textOf(document)
        const ran = spawnSync("sh", ["-ec", body], {
          cwd: isCheckout ? root : work,
          encoding: "utf8",
          env: isCheckout ? process.env : env,
          timeout: 60_000
        })
        assert.strictEqual(ran.status, 0, ran.stdout + ran.stderr)
        assert.strictEqual(textOf(document), before)
      })
    }
  }

  /** What a shell makes of an example: up to a pipe or a redirection, without the quotes. */
  const words = (line: string): ReadonlyArray<string> =>
    [...line.replace(/ [|<>] .*$/, "").matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)].map(([word]) => word.replace(/['"]/g, ""))

  for (const { body, line } of all.filter(({ document }) => document.endsWith("command-line.md"))) {
    for (const typed of body.split("\n").filter((one) => one.startsWith("fs-algebra"))) {
      if (reasons.some(([pattern]) => pattern.test(typed))) continue
      it.effect(`command-line.md:${line} is right usage: ${typed}`, () =>
        Effect.gen(function* () {
          const ran = yield* (yield* shell({ "README.md": "text" })).run(words(typed).slice(1), { input: "" })
          assert.notMatch(ran.err, /^usage:/m)
          assert.notStrictEqual(ran.code, 70, ran.err)
        })
      )
    }
  }
})

describe("the README", () => {
  it("is short where everybody sees it", () => {
    const text = textOf("README.md")
    assert.isAtMost(text.slice(0, text.indexOf("<details>")).split("\n").length, 220)
  })

  it("has each guide in its table", () => {
    const named = rowsOf(sectionsOf("README.md").find(({ title }) => title === "Guides")!.text).map(
      ([link]) => /\((.*)\)/.exec(link!)![1]!
    )
    assert.sameMembers(
      named,
      documents.filter((document) => document !== "README.md")
    )
  })

  it("tells the two commands, and the dependencies that a program needs", () => {
    const { engines, peerDependencies, peerDependenciesMeta } = JSON.parse(
      readFileSync(join(root, "package.json"), "utf8")
    ) as {
      readonly engines: { readonly node: string }
      readonly peerDependencies: Record<string, string>
      readonly peerDependenciesMeta: Record<string, { readonly optional?: boolean }>
    }
    const needed = Object.keys(peerDependencies).filter((name) => peerDependenciesMeta[name]?.optional !== true)
    const [install] = /npm install .*/.exec(textOf("README.md"))!
    assert.sameMembers(
      install
        .replace(/\s*#.*/, "")
        .split(" ")
        .slice(2),
      ["fs-algebra", ...needed]
    )
    assert.include(textOf("README.md"), `Node ≥ ${/\d+\.\d+/.exec(engines.node)![0]}`)
    assert.match(textOf("README.md"), /^npm ci && npm start /m)
    assert.match(textOf("README.md"), /^npm ci && npm test /m)
  })

  it("names only commands that are there", () => {
    const help = execFileSync(process.execPath, [bin, "--help"], { encoding: "utf8" })
    const section = proseOf("README.md").split("## On the command line")[1]!.split("\n## ")[0]!
    for (const [, name] of section.matchAll(/`([a-z]+)`/g)) {
      if (name !== "fs") assert.match(help, new RegExp(`^ {2}${name}\\b`, "m"))
    }
  })
})
