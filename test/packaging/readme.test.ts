/** Checks the commands of the README and the guides. documentation/guides.test.ts runs their programs. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync, spawnSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import { shell, words } from "../cli/terminal.ts"
import { documents, fencesOf, proseOf, root, rowsOf, sectionsOf, textOf } from "../documentation/markdown.ts"
import { bin, machine } from "./machine.ts"

/** Commands that no test here runs, with the reason. */
const reasons: ReadonlyArray<readonly [pattern: RegExp, why: string]> = [
  [/^npm ci\b/m, "installs this project, and runs all of its tests"],
  [/^npm (?:init|install)\b/m, "needs the registry; test/packaging/pack.test.ts installs the package"],
  [/^fs-algebra debug\b/m, "serves until it is stopped; test/debug runs it"],
  [/^fs-algebra serve\b/m, "serves until it is stopped; test/cli/serve.test.ts runs it"],
  [/^fs-algebra mcp\b/m, "serves until it is stopped; test/cli/mcpStdio.test.ts runs it"]
]

describe("the shell commands of the documentation", () => {
  const all = documents.flatMap(fencesOf).filter(({ language }) => language === "sh")

  it("include each command that these tests do not run", () => {
    assert.isAbove(all.length, 30)
    for (const [pattern] of reasons)
      assert.isTrue(
        all.some(({ body }) => pattern.test(body)),
        String(pattern)
      )
  })

  /** Documents whose commands run in order on one machine for each document. */
  const inOrder = documents.filter((document) => !document.endsWith("command-line.md"))
  for (const document of inOrder) {
    const { env, work } = machine()
    const fences = all.filter((fence) => fence.document === document && !reasons.some(([pattern]) => pattern.test(fence.body)))
    for (const { body, line } of fences) {
      it(`${document}:${line} succeeds`, () => {
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

  for (const { body, line } of all.filter(({ document }) => document.endsWith("command-line.md"))) {
    for (const typed of body.split("\n").filter((one) => one.startsWith("fs-algebra"))) {
      if (reasons.some(([pattern]) => pattern.test(typed))) continue
      it.effect(`command-line.md:${line} is valid usage: ${typed}`, () =>
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
  it("has at most 200 lines", () => {
    assert.isAtMost(textOf("README.md").split("\n").length, 200)
  })

  it("has each guide in its table", () => {
    const rows = rowsOf(sectionsOf("README.md").find(({ title }) => title === "Guides")!.text)
    const named = rows.flatMap((row) => [...row.join(" ").matchAll(/\((src[^)#]*)\)/g)].map((link) => link[1]!))
    assert.sameMembers(
      named,
      documents.filter((document) => document.startsWith("src/guides/") && !document.includes("/decisions/"))
    )
  })

  it("names the required dependencies, the required Node, and the commands npm start and npm test", () => {
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

  it("names only existing commands", () => {
    const help = execFileSync(process.execPath, [bin, "--help"], { encoding: "utf8" })
    const section = proseOf("README.md").split("## On the command line")[1]!.split("\n## ")[0]!
    for (const [, name] of section.matchAll(/`([a-z]+)`/g)) {
      if (name !== "fs") assert.match(help, new RegExp(`^ {2}${name}\\b`, "m"))
    }
  })
})
