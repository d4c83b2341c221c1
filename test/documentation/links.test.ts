/** Checks that every link of the README and the guides has a target, and that every named export exists. */
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { anchorsOf, codeIn, documents, proseOf, root, textOf } from "./markdown.ts"
import { publicModules } from "./typescript.ts"

/** The permitted external hosts. No test visits them, so they must be durable. */
const hosts = ["effect.website", "modelcontextprotocol.io", "nats.io", "nodejs.org"]

interface Link {
  readonly text: string
  readonly to: string
  readonly isImage: boolean
}

const linksOf = (document: string): ReadonlyArray<Link> => [
  ...[...proseOf(document).matchAll(/<img src="([^"]*)"[^>]* alt="([^"]*)"/g)].map(([, to, text]) => ({
    isImage: true,
    text: text!,
    to: to!
  })),
  ...[...proseOf(document).matchAll(/(!?)\[((?:[^\][]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g)].map(([, mark, text, to]) => ({
    isImage: mark === "!",
    text: text!,
    to: to!
  }))
]

describe.each(documents)("the document %s", (document) => {
  const links = linksOf(document)

  it("has links to existing targets only", () => {
    for (const { isImage, text, to } of links) {
      if (/^[a-z]+:/i.test(to)) {
        assert.match(to, /^https:\/\//)
        assert.include(hosts, new URL(to).hostname)
        continue
      }
      const [path, anchor] = to.split("#") as [string, string | undefined]
      const target = path === "" ? document : relative(root, join(root, dirname(document), path))
      assert.isTrue(existsSync(join(root, target)), `${to} in ${document}`)
      assert.notStrictEqual(text.trim(), "", `what ${to} is`)
      if (isImage) assert.isAbove(readFileSync(join(root, target)).length, 1000, to)
      if (anchor !== undefined) assert.isTrue(anchorsOf(target).has(anchor), `${to} in ${document}`)
    }
  })

  it("names only permitted hosts, even in text", () => {
    for (const [, host] of textOf(document).matchAll(/\bhttps?:\/\/([\w.[\]:-]+)/g)) {
      const isLocal = /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/.test(host!)
      assert.isTrue(isLocal || hosts.includes(host!), host)
    }
  })

  it("has one title, and no heading skips a level", () => {
    const depths = [...proseOf(document).matchAll(/^(#+) /gm)].map(([, marks]) => marks!.length)
    assert.strictEqual(depths[0], 1)
    assert.strictEqual(depths.filter((depth) => depth === 1).length, 1)
    for (const [i, depth] of depths.entries()) if (i > 0) assert.isAtMost(depth, depths[i - 1]! + 1)
  })

  it("names only existing exports of the package", () => {
    const modules = new Map(publicModules.map((file) => [file.replace(/^.*\/|\.ts$/g, "").replace(/\.ts$/, ""), file] as const))
    for (const code of codeIn(proseOf(document))) {
      const [, module, name] = /^([A-Z]\w+)\.(\w+)(?:[({<].*)?$/.exec(code) ?? []
      const file = module === undefined ? undefined : modules.get(module)
      if (file === undefined) continue
      const text = readFileSync(join(root, file), "utf8")
      // The name is exported by the module, re-exported, or a member of a service or class in it.
      assert.match(text, new RegExp(`\\b${name}\\b`), code)
    }
  })
})

describe("the guides", () => {
  it("can all be reached from the README", () => {
    const reached = new Set(["README.md"])
    for (const document of reached) {
      for (const { to } of linksOf(document)) {
        const target = relative(root, join(root, dirname(document), to.split("#")[0]!))
        if (documents.includes(target)) reached.add(target)
      }
    }
    assert.sameMembers([...reached], [...documents])
  })
})
