/** Checks that the guide adapters.md equals the text that is generated from the adapter modules. */
import { assert, describe, it } from "@effect/vitest"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { type Adapter, aboutOf, adapters, pageOf } from "./adapters.ts"
import { guide, root, rowsOf, textOf } from "./markdown.ts"
import { publicModules } from "./typescript.ts"

const all = await adapters()

describe("the guide adapters.md", () => {
  it("equals the guide that `node test/documentation/make.ts adapters` writes", () => {
    assert.strictEqual(textOf(guide("adapters")), pageOf(all))
  })

  it("lists each adapter under the name of its module, which the package exports, with an example", () => {
    assert.isAbove(all.length, 1)
    for (const { examples, file, support } of all) {
      assert.strictEqual(file, `src/adapters/${support.name}.ts`)
      assert.include(publicModules, file)
      assert.isNotEmpty(examples, file)
      assert.isNotEmpty(support.maps, file)
    }
  })

  it("states the installed version of each package", () => {
    for (const { file, support } of all) {
      const manifest = join(root, "node_modules", support.package, "package.json")
      if (!existsSync(manifest)) assert.match(support.package, /^node:/, file)
      else
        assert.strictEqual((JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version, support.version, file)
    }
  })

  it("has a row and a section for an adapter, and keeps marks of tables and HTML out of the cells", () => {
    const adapter: Adapter = {
      file: "src/adapters/One.ts",
      support: { name: "One", package: "one", version: "1.2.3", maps: ["a|b", "Store<A>"], missing: ["c"] },
      about: "Does one thing.",
      examples: [{ name: "", file: "", of: "", body: "one()\n" }]
    }
    const page = pageOf([adapter])
    assert.deepStrictEqual(rowsOf(page), [["[`One`](#one)", "`one`", "1.2.3", "a\\|b<br>Store&lt;A>", "c"]])
    assert.include(page, "## One\n\nImport `fs-algebra/adapters/One`.\n\nDoes one thing.\n\n```ts\none()\n```\n")
  })

  it("takes the comment of the module up to its first tag, and refuses a module without a comment", () => {
    assert.strictEqual(aboutOf("a.ts", "/**\n * One.\n *\n * Two.\n *\n * @since 0.1.0\n */\n/** Three. */"), "One.\n\nTwo.")
    assert.throws(() => aboutOf("a.ts", "import a\n/** One. */"), /a\.ts: the module has no comment/)
  })
})
