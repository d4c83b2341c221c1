import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { build } from "esbuild"
import * as Effect from "effect/Effect"
import { execFileSync } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { rolldown } from "rolldown"
import { build as viteBuild, type Rolldown } from "vite"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Remote from "../../src/remote/Remote.ts"
import { makeChunks } from "../packaging/chunks.ts"
import { embed } from "../runtime/embed.ts"
import { inBareRealm } from "./bundle.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const project = mkdtempSync(join(tmpdir(), "fs-algebra-bundlers-"))
const installed = join(project, "node_modules/fs-algebra")

const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { readonly exports: Record<string, string> }

/** The barrel and every subpath except `debug`, whose server needs an optional package. */
const entrances = Object.keys(exports).filter((name) => !name.endsWith(".json") && name !== "./debug")

/** Makes an application that has the package without its optional peers. */
beforeAll(async () => {
  execFileSync(process.execPath, [
    join(root, "node_modules/typescript/bin/tsc"),
    "-p",
    join(root, "src"),
    "--outDir",
    join(installed, "dist")
  ])
  await embed(join(installed, "dist"))
  await makeChunks(join(installed, "dist"))
  cpSync(join(root, "package.json"), join(installed, "package.json"))
  for (const name of ["effect", "picomatch"]) symlinkSync(join(root, "node_modules", name), join(project, "node_modules", name))
  mkdirSync(join(project, "files"))
  writeFileSync(join(project, "files/a.txt"), "hello\n")
  writeFileSync(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }))
  writeFileSync(join(project, "node.js"), onHost)
  writeFileSync(join(project, "web.js"), inMemory)
}, 600_000)
afterAll(() => rmSync(project, { recursive: true, force: true }))

const all = entrances
  .map((name, index) => `import * as m${index} from ${JSON.stringify(name.replace(".", "fs-algebra"))}`)
  .join("\n")

// The second pattern is searched by a worker.
const onHost = `${all}
import * as Effect from "effect/Effect"
const modules = [${entrances.map((_, index) => `m${index}`).join(", ")}]
const { Filesystem, PosixHost } = m0
const program = Effect.gen(function* () {
  const fs = yield* Filesystem.Filesystem
  const found = []
  for (const pattern of ["hello", "(h|e)+llo"]) found.push((yield* fs.grep(pattern)).matches.length)
  return found
})
const layer = PosixHost.layer({ root: process.argv[2] })
console.log(JSON.stringify([modules.every((module) => Object.keys(module).length >= 0), await Effect.runPromise(Effect.provide(program, layer))]))
`

// Every value is used, so that no bundler drops one.
const inMemory = `${all}
import * as Effect from "effect/Effect"
import { Filesystem, InMemory, Remote } from "fs-algebra"
import * as NodeFs from "fs-algebra/adapters/NodeFs"
const modules = { ${entrances.map((name, index) => `${JSON.stringify(name)}: m${index}`).join(", ")} }
export const empty = Object.keys(modules).filter((name) => !Object.values(modules[name]).some((value) => value !== undefined))
export const run = () =>
  Effect.gen(function* () {
    const fs = yield* Filesystem.Filesystem
    yield* fs.write("a/b.txt", "hello")
    return yield* fs.readString("a/b.txt")
  }).pipe(Effect.provide(InMemory.layer()), Effect.runPromise)
export const readRemote = (url, path) =>
  Effect.runPromise(Effect.provide(Filesystem.Filesystem.use((fs) => fs.readString(path)), Remote.layerUrl(url)))
export const writeChunks = (...chunks) =>
  Effect.gen(function* () {
    const { promises } = yield* NodeFs.make()
    yield* Effect.promise(() => promises.writeFile("/a.txt", chunks))
    return yield* Filesystem.Filesystem.use((fs) => fs.readString("a.txt"))
  }).pipe(Effect.provide(InMemory.layer()), Effect.runPromise)
`

interface Web {
  readonly empty: ReadonlyArray<string>
  readonly run: () => Promise<string>
  readonly readRemote: (url: string, path: string) => Promise<string>
  readonly writeChunks: (...chunks: ReadonlyArray<string>) => Promise<string>
}

/** The globals with which browsers make HTTP requests. */
const http = { fetch, Headers, Request, Response, Blob, FormData }

type Platform = "node" | "browser"

/** Bundlers that make one minified file in which functions keep their names. */
const bundlers: Readonly<Record<string, (input: string, platform: Platform) => Promise<string>>> = {
  esbuild: async (input, platform) => {
    const { outputFiles } = await build({
      absWorkingDir: project,
      entryPoints: [input],
      bundle: true,
      minify: true,
      keepNames: true,
      platform,
      format: platform === "node" ? "esm" : "iife",
      globalName: "kit",
      logLevel: "silent",
      write: false
    })
    return outputFiles[0]!.text
  },
  rolldown: async (input, platform) => {
    const made = await rolldown({ cwd: project, input: join(project, input), platform, logLevel: "silent" })
    const { output } = await made.generate({
      format: platform === "node" ? "esm" : "iife",
      name: "kit",
      minify: true,
      keepNames: true,
      codeSplitting: false
    })
    await made.close()
    return output[0].code
  },
  vite: async (input, platform) => {
    const made = await viteBuild({
      root: project,
      configFile: false,
      logLevel: "silent",
      // A bundle for a server, with its dependencies in it.
      ...(platform === "node" ? { ssr: { noExternal: true } } : {}),
      build: {
        write: false,
        minify: true,
        target: "esnext",
        ssr: platform === "node",
        rolldownOptions: {
          input: join(project, input),
          preserveEntrySignatures: "strict",
          output: { format: platform === "node" ? "esm" : "iife", name: "kit", keepNames: true, codeSplitting: false }
        }
      }
    })
    const { output } = (Array.isArray(made) ? made[0] : made) as Rolldown.RolldownOutput
    return output[0].code
  }
}

describe("the package in an application without its optional peers", () => {
  for (const [name, bundle] of Object.entries(bundlers)) {
    it(`searches a host with and without a worker when ${name} bundles it for Node`, async () => {
      const file = join(project, `${name}.mjs`)
      writeFileSync(file, await bundle("node.js", "node"))
      const answer = execFileSync(process.execPath, [file, join(project, "files")], { encoding: "utf8" })
      assert.deepStrictEqual(JSON.parse(answer), [true, [1, 1]])
    })

    it(`loads every subpath except debug and works in memory when ${name} bundles it for a browser`, async () => {
      const { empty, run, writeChunks } = inBareRealm<Web>(await bundle("web.js", "browser"))
      assert.deepStrictEqual([...empty], [])
      assert.strictEqual(await run(), "hello")
      assert.strictEqual(await writeChunks("one,", "two"), "one,two")
    })

    it.live(`reads a file of a server over HTTP when ${name} bundles it for a browser`, () =>
      Effect.gen(function* () {
        const { readRemote } = inBareRealm<Web>(yield* Effect.promise(() => bundle("web.js", "browser")), http)
        const address = yield* Remote.listen("127.0.0.1:0")
        assert.strictEqual(yield* Effect.promise(() => readRemote(`http://${address}`, "a.txt")), "over HTTP")
      }).pipe(Effect.scoped, Effect.provide(InMemory.layer({ tree: { "a.txt": "over HTTP" } })))
    )
  }

  it("has the bundle sizes that the guide states, and imports no module of Node in a browser bundle", async () => {
    const guide = readFileSync(join(root, "src/guides/getting-started.md"), "utf8")
    const rows = [...guide.matchAll(/^\| `((?:import|export) [^`]*)` \| (\d+) \| (\d+) \|$/gm)]
    assert.isAtLeast(rows.length, 4)
    for (const [, program, minified, zipped] of rows) {
      const { metafile, outputFiles } = await build({
        stdin: { contents: program!, resolveDir: project },
        bundle: true,
        minify: true,
        platform: "browser",
        format: "esm",
        logLevel: "silent",
        metafile: true,
        write: false
      })
      const { contents } = outputFiles[0]!
      const imported = Object.values(metafile.outputs).flatMap(({ imports }) => imports.map(({ path }) => path))
      assert.deepStrictEqual(
        imported.filter((path) => !/^(?:@nats-io\/|@effect\/platform-node\/|(?:aws4fetch|ssh2)$)/.test(path)),
        [],
        program
      )
      for (const [bytes, kilobytes] of [
        [contents.length, minified],
        [gzipSync(contents, { level: 9 }).length, zipped]
      ] as const) {
        const said = `${program}: ${Math.round(bytes / 1000)} kB, and the guide says ${kilobytes}`
        assert.isAtMost(bytes / 1000, Number(kilobytes) * 1.1, said)
        assert.isAtLeast(bytes / 1000, Number(kilobytes) * 0.9, said)
      }
    }
  })

  it("has the same values in its main module and in its subpaths", () => {
    const subpaths = entrances.filter((name) => /^\.\/[A-Z]\w*$/.test(name)).map((name) => name.slice(2))
    const script = `const main = await import("fs-algebra")
const compared = []
for (const name of ${JSON.stringify(subpaths)}) {
  const subpath = await import("fs-algebra/" + name)
  if (Object.keys(subpath).join() !== Object.keys(main[name]).join()) throw new Error(name)
  for (const key of Object.keys(subpath)) {
    if (subpath[key] !== main[name][key]) throw new Error(name + "." + key)
    compared.push(key)
  }
}
console.log(compared.length)`
    const answer = execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: project, encoding: "utf8" })
    assert.isAbove(Number(answer), 300)
  })

  it("can be loaded by a CommonJS module, as can its testing kit", () => {
    const script = `console.log(typeof require("fs-algebra").InMemory.layer, typeof require("fs-algebra/testing").suite)`
    const answer = execFileSync(process.execPath, ["--input-type=commonjs", "-e", script], { cwd: project, encoding: "utf8" })
    assert.strictEqual(answer.trim(), "function function")
  })
})
