import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const src = join(root, "src")

const sources = readdirSync(src, { recursive: true, encoding: "utf8" })
  .filter((file) => /\.tsx?$/.test(file))
  .sort()
const text = (file: string) => readFileSync(join(src, file), "utf8")

/** Returns the source without comments and string contents, so that words such as Date in prose do not count. */
const code = (file: string) =>
  text(file)
    .replace(/\/\*[^]*?\*\/|\/\/[^\n]*/g, "")
    .replace(/"(?:[^"\\\n]|\\.)*"/g, '""')

const imports = (file: string): ReadonlyArray<{ readonly specifier: string; readonly typeOnly: boolean }> =>
  [
    ...text(file).matchAll(
      /^\s*(?:import|export)\b(\s+type\b)?[^"';]*?\bfrom\s+"([^"]+)"|\bimport\(\s*"([^"]+)"\s*\)|^import\s+"([^"]+)"/gm
    )
  ].map((match) => ({ specifier: match[2] ?? match[3] ?? match[4]!, typeOnly: match[1] !== undefined }))

const effect = (specifier: string) => /^effect\/[A-Z]\w*$/.test(specifier)
const node = (specifier: string) => specifier.startsWith("node:")
const is =
  (...specifiers: ReadonlyArray<string>) =>
  (specifier: string) =>
    specifiers.some((prefix) => specifier === prefix || specifier.startsWith(`${prefix}/`))

/** The imports that each folder may have, besides its own files and effect's root modules. */
const table: Record<string, { readonly folders: ReadonlyArray<string>; readonly packages: (specifier: string) => boolean }> = {
  model: { folders: [], packages: () => false },
  port: { folders: ["model"], packages: () => false },
  runtime: { folders: ["model"], packages: node },
  engine: { folders: ["model", "port", "runtime"], packages: is("picomatch") },
  filesystem: { folders: ["model", "port", "engine", "runtime"], packages: () => false },
  backends: {
    // Opening a root completes the transactions of killed processes. These modules are loaded only if there are any.
    folders: [
      "model",
      "port",
      "runtime",
      "filesystem/Filesystem.ts",
      "filesystem/Sandbox.ts",
      "filesystem/sandbox",
      "history/transaction/settle.ts"
    ],
    packages: (specifier) =>
      node(specifier) ||
      is("effect/process", "effect/http", "effect/encoding", "@effect/platform-node", "aws4fetch", "ssh2")(specifier)
  },
  history: {
    folders: ["model", "port", "runtime", "engine", "filesystem", "backends/InMemory.ts"],
    packages: (specifier) => node(specifier) || is("effect/process", "effect/encoding")(specifier)
  },
  repository: {
    folders: ["model", "port", "runtime", "engine", "filesystem", "backends", "history", "remote"],
    packages: (specifier) =>
      node(specifier) ||
      is("effect/cluster", "effect/rpc", "effect/sql", "effect/reactivity", "effect/encoding", "@nats-io")(specifier)
  },
  workspace: {
    folders: ["model", "port", "runtime", "engine", "filesystem", "backends", "history"],
    packages: node
  },
  journal: {
    folders: ["model", "port", "runtime", "engine", "filesystem", "backends", "history", "repository"],
    packages: (specifier) => node(specifier) || is("@nats-io", "effect/encoding")(specifier)
  },
  agent: {
    folders: ["model", "port", "runtime", "engine", "filesystem", "backends", "history", "workspace"],
    packages: (specifier) => node(specifier) || is("effect/ai", "effect/http", "effect/rpc")(specifier)
  },
  remote: {
    folders: ["model", "port", "runtime", "engine", "filesystem"],
    packages: (specifier) =>
      node(specifier) ||
      is("effect/encoding", "effect/http", "effect/net", "effect/rpc", "effect/socket", "@effect/platform-node")(specifier)
  },
  debug: {
    folders: [
      "model",
      "port",
      "runtime",
      "engine",
      "filesystem",
      "backends",
      "history",
      "workspace",
      "journal",
      "agent",
      "repository"
    ],
    packages: (specifier) =>
      node(specifier) || is("effect/http", "effect/http-api", "effect/encoding", "@effect/platform-node")(specifier)
  },
  // The page in the browser knows only the answers of the server. build.ts bundles the page.
  "debug/page": {
    folders: ["debug/model.ts", "debug/partOfLine.ts"],
    packages: is("preact", "@preact", "@codemirror", "@lezer", "@tanstack", "dompurify", "marked", "jsonc-parser", "papaparse")
  },
  "debug/page/build.ts": { folders: [], packages: (specifier) => node(specifier) || is("rolldown")(specifier) },
  // An adapter imports its foreign package only as types. The rule below checks that.
  adapters: {
    folders: ["model", "port", "runtime", "engine", "filesystem", "history", "agent"],
    packages: () => true
  },
  testing: {
    folders: ["model", "port", "runtime", "filesystem", "backends/InMemory.ts", "repository"],
    packages: is("@effect/vitest")
  },
  cli: {
    folders: [
      "model",
      "port",
      "runtime",
      "engine",
      "filesystem",
      "backends",
      "history",
      "workspace",
      "journal",
      "agent",
      "remote",
      "repository",
      "debug",
      "testing"
    ],
    packages: () => true
  }
}

describe("the architecture of the sources:", () => {
  it("the check finds the real source files", () => assert.isAbove(sources.length, 30))

  for (const file of sources.filter((file) => file !== "index.ts")) {
    it(`${file} imports only the folders and packages of its layer`, () => {
      const folder = [file, "debug/page"].find((key) => key in table && file.startsWith(key)) ?? file.split("/")[0]!
      const rule = table[folder]!
      assert.isDefined(rule, `${folder} is not in the table`)
      for (const { specifier, typeOnly } of imports(file)) {
        if (folder === "debug/page" && specifier.endsWith("/model.ts")) assert.isTrue(typeOnly, `${file} imports ${specifier}`)
        if (specifier.startsWith(".")) {
          const target = relative(src, resolve(src, dirname(file), specifier))
          assert.isTrue(
            [folder, ...rule.folders].some((allowed) => target === allowed || target.startsWith(`${allowed}/`)),
            `${file} imports ${target}`
          )
          assert.isTrue(sources.includes(target), `${file} imports ${target}, which is not there`)
          if (folder === "backends" && !file.includes("/internal/")) {
            assert.isFalse(/^backends\/[A-Z]/.test(target), `${file} imports its sibling ${target}`)
          }
        } else {
          assert.isTrue(effect(specifier) || rule.packages(specifier), `${file} imports ${specifier}`)
          assert.notStrictEqual(specifier, "effect", "the barrel costs 100 ms at start; import the module")
        }
      }
    })

    if (file.startsWith("adapters/")) {
      it(`${file} imports only types from other packages`, () => {
        for (const { specifier, typeOnly } of imports(file)) {
          const isOwn =
            specifier.startsWith(".") || effect(specifier) || is("effect/ai", "effect/http", "effect/persistence")(specifier)
          assert.isTrue(isOwn || typeOnly, `${file} imports ${specifier}`)
        }
      })
    }

    // A browser bundle must not import modules of Node. runtime/node.ts looks them up at run time.
    if (!/^(?:cli|debug|testing)\//.test(file)) {
      it(`${file} imports only types from Node`, () => {
        for (const { specifier, typeOnly } of imports(file)) {
          if (node(specifier)) assert.isTrue(typeOnly, `${file} imports ${specifier}`)
        }
      })
    }

    // The process and the page are the edges of the program and may use globals.
    if (file !== "cli/bin.ts" && file !== "cli/start.ts" && !file.startsWith("debug/page/")) {
      it(`${file} takes time, randomness, output and configuration from services`, () => {
        const body = code(file)
        for (const forbidden of [
          /\bconsole\s*\./,
          /\bprocess\s*\.\s*env\b/,
          /\bnew Date\b|\bDate\s*\.\s*now\b/,
          /\bMath\s*\.\s*random\b/
        ]) {
          assert.notMatch(body, forbidden)
        }
      })
    }
  }

  const isPublic = (file: string) => /^[A-Z]/.test(file.split("/").pop()!)
  const modules = sources.filter(
    (file) => isPublic(file) && !/^(testing|cli|debug|adapters)\//.test(file) && !file.includes("/internal/")
  )
  const adapters = sources.filter((file) => isPublic(file) && file.startsWith("adapters/"))
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))

  it("the main module exports exactly the public modules", () => {
    const lines = text("index.ts")
      .replace(/\/\*[^]*?\*\//g, "")
      .trim()
      .split("\n")
    assert.deepStrictEqual(
      lines.sort(),
      modules.map((file) => `export * as ${file.split("/").pop()!.slice(0, -3)} from "./${file}"`).sort()
    )
  })

  it("the export map contains exactly the public modules, the main module, the adapters, the testing kit and the debug view", () => {
    const expected: Record<string, string> = {
      "./package.json": "./package.json",
      ".": "./dist/index.js",
      "./debug": "./dist/debug/index.js",
      "./testing": "./dist/testing/index.js"
    }
    for (const file of modules) expected[`./${file.split("/").pop()!.slice(0, -3)}`] = `./dist/${file.slice(0, -3)}.js`
    for (const file of adapters) expected[`./${file.slice(0, -3)}`] = `./dist/${file.slice(0, -3)}.js`
    assert.deepStrictEqual(manifest.exports, expected)
  })

  it("a source file has at most 700 lines", () => {
    for (const file of sources) assert.isAtMost(text(file).split("\n").length, 700, file)
  })

  it("the top level of the repository contains only the files and folders of the layout", () => {
    const allowed = new Set([
      "package.json",
      "package-lock.json",
      "tsconfig.json",
      "README.md",
      "LICENSE",
      "src",
      "test",
      "bench"
    ])
    const built = new Set(["node_modules", "dist"])
    for (const name of readdirSync(root)) {
      assert.isTrue(name.startsWith(".") || allowed.has(name) || built.has(name) || name.endsWith(".tgz"), name)
    }
  })
})
