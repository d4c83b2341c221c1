/** Runs third-party bundlers, glob libraries and an archiver over NodeFs in memory. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import fastGlob from "fast-glob"
import { globby } from "globby"
import { rolldown } from "rolldown"
import * as Tar from "tar-stream"
import { build as viteBuild } from "vite"
import webpack from "webpack"
import * as NodeFs from "../../src/adapters/NodeFs.ts"
import * as InMemory from "../../src/backends/InMemory.ts"

const tree: InMemory.Tree = {
  src: {
    "main.js":
      'import { answer } from "./lib/answer.js"\nimport data from "../data.json"\nglobalThis.result = answer + data.more\n',
    lib: { "answer.js": "export const answer = 42\n", "unused.js": "throw new Error()\n" },
    "notes.md": "# Notes\n"
  },
  "data.json": '{ "more": 1 }\n',
  ".hidden": "x",
  ".gitignore": "*.md\n",
  latest: { link: "src" }
}

const makeFs = (given: InMemory.Tree = tree) =>
  Effect.runPromise(Effect.provide(NodeFs.make({ absoluteLinks: "root" }), InMemory.layer({ tree: given })))

describe("fast-glob and globby over NodeFs", () => {
  it("find the files of the tree, follow links unless an option forbids it, and return stats", async () => {
    const fs = (await makeFs()) as unknown as NonNullable<fastGlob.Options["fs"]>
    const find = (pattern: string, options: fastGlob.Options = {}) => fastGlob(pattern, { cwd: "/", fs, ...options })
    const direct = ["data.json", "src/lib/answer.js", "src/lib/unused.js", "src/main.js"]
    assert.deepStrictEqual((await find("**/*.{js,json}", { followSymbolicLinks: false })).sort(), direct)
    assert.includeMembers(await find("**/*.js"), ["latest/main.js", "src/main.js"])
    assert.deepStrictEqual(fastGlob.sync("src/*", { cwd: "/", fs }).sort(), ["src/main.js", "src/notes.md"])
    assert.deepStrictEqual(await find(".*", { dot: true }), [".gitignore", ".hidden"].sort())
    const [entry] = (await fastGlob("src/main.js", { cwd: "/", fs, stats: true })) as unknown as ReadonlyArray<fastGlob.Entry>
    assert.isTrue(entry!.stats!.isFile())
    assert.deepStrictEqual((await globby("src/**", { cwd: "/", fs, gitignore: true })).sort(), direct.slice(1))
  })
})

describe("tar-stream over NodeFs", () => {
  it("packs a tree into a file and unpacks it again, through streams", async () => {
    const fs = await makeFs()
    const pack = Tar.pack()
    const written = new Promise((resolve, reject) =>
      pack
        .pipe(fs.createWriteStream("/all.tar"))
        .on("finish", () => resolve(undefined))
        .on("error", reject)
    )
    for (const name of await fs.promises.readdir("/src", { recursive: true })) {
      const stat = await fs.promises.stat(`/src/${name}`)
      if (stat.isFile())
        pack.entry({ name, mtime: stat.mtime, mode: stat.mode & 0o777 }, await fs.promises.readFile(`/src/${name}`))
      else pack.entry({ name, type: "directory", mode: stat.mode & 0o777 })
    }
    pack.finalize()
    await written
    const extract = Tar.extract()
    extract.on("entry", (header, stream, next) => {
      const to = `/copy/${header.name}`
      if (header.type === "directory") {
        stream.resume()
        return fs.mkdir(to, { recursive: true }, () => next())
      }
      fs.mkdirSync("/copy", { recursive: true })
      return stream.pipe(fs.createWriteStream(to)).on("finish", () => next())
    })
    await new Promise((resolve, reject) =>
      fs
        .createReadStream("/all.tar")
        .pipe(extract)
        .on("finish", () => resolve(undefined))
        .on("error", reject)
    )
    for (const name of ["main.js", "lib/answer.js", "notes.md"]) {
      assert.strictEqual(fs.readFileSync(`/copy/${name}`, "utf8"), fs.readFileSync(`/src/${name}`, "utf8"))
    }
  })
})

describe("bundlers over NodeFs", () => {
  const run = (code: string): unknown => {
    const scope: { result?: unknown } = {}
    new Function("globalThis", code)(scope)
    return scope.result
  }

  it("webpack reads its input from memory, and writes its output there", async () => {
    const fs = await makeFs()
    const compiler = webpack({
      context: "/",
      entry: "./src/main.js",
      mode: "production",
      devtool: false,
      output: { path: "/dist", filename: "bundle.js" },
      cache: false
    })!
    compiler.inputFileSystem = fs as unknown as NonNullable<typeof compiler.inputFileSystem>
    compiler.outputFileSystem = fs as unknown as NonNullable<typeof compiler.outputFileSystem>
    const stats = await new Promise<webpack.Stats | undefined>((resolve, reject) =>
      compiler.run((error, stats) => (error ? reject(error) : resolve(stats)))
    )
    assert.deepStrictEqual(stats!.compilation.errors, [])
    assert.strictEqual(run(fs.readFileSync("/dist/bundle.js", "utf8")), 43)
    await new Promise((resolve) => compiler.close(resolve))
  })

  it("webpack names a missing module and the directory of its importer in the workspace", async () => {
    const fs = await makeFs({ src: { "main.js": 'import "./missing.js"\n' } })
    const compiler = webpack({ context: "/", entry: "./src/main.js", mode: "none", output: { path: "/dist" } })!
    compiler.inputFileSystem = fs as unknown as NonNullable<typeof compiler.inputFileSystem>
    compiler.outputFileSystem = fs as unknown as NonNullable<typeof compiler.outputFileSystem>
    const stats = await new Promise<webpack.Stats | undefined>((resolve) => compiler.run((_, stats) => resolve(stats)))
    assert.match(String(stats!.compilation.errors[0]), /Can't resolve '\.\/missing\.js' in '\/src'/)
    await new Promise((resolve) => compiler.close(resolve))
  })

  const plugin = (fs: NodeFs.NodeFs) => ({
    name: "workspace",
    enforce: "pre" as const,
    resolveId: (source: string, importer?: string) =>
      source.startsWith("\0") ? null : new URL(source, `file://${importer ?? "/"}`).pathname,
    load: (id: string) => (id.startsWith("\0") ? null : fs.promises.readFile(id, "utf8"))
  })

  it("rolldown reads its input from memory with a short plugin", async () => {
    const fs = await makeFs()
    const build = await rolldown({ input: "/src/main.js", plugins: [plugin(fs)] })
    const { output } = await build.generate({ format: "iife" })
    assert.strictEqual(run(output[0].code), 43)
    await build.close()
  })

  it("vite reads its input from memory with a short plugin", async () => {
    const fs = await makeFs()
    const built = await viteBuild({
      configFile: false,
      logLevel: "silent",
      plugins: [plugin(fs)],
      build: { write: false, minify: false, rollupOptions: { input: "/src/main.js", output: { format: "iife" } } }
    })
    const [first] = [built].flat() as ReadonlyArray<{ readonly output: ReadonlyArray<{ readonly code?: string }> }>
    assert.strictEqual(run(first!.output[0]!.code!), 43)
  })
})
