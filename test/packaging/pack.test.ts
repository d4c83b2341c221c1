import { afterAll, assert, describe, it } from "@effect/vitest"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { existsSync, globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Returns all modules that are loaded with a module before any of its code is called. */
const closure = (file: string, seen = new Set<string>()): ReadonlySet<string> => {
  if (seen.has(file)) return seen
  seen.add(file)
  for (const [, specifier] of readFileSync(file, "utf8").matchAll(
    /^(?:import|export) (?!type\b)(?:[^"';]*? from )?"([^"]+)"/gm
  )) {
    if (specifier!.startsWith(".")) closure(resolve(dirname(file), specifier!), seen)
    else seen.add(specifier!)
  }
  return seen
}

describe("the loaded modules", () => {
  it("of InMemory are effect's own and the glob matcher", () => {
    const outside = [...closure(join(root, "src/backends/InMemory.ts"))].filter((name) => !name.startsWith(root))
    assert.deepStrictEqual(outside.filter((name) => !/^effect\/[A-Z]\w*$/.test(name)).sort(), ["picomatch"])
  })

  it("of the main module include no platform, worker, server or test runner, and only the tool definitions of effect/ai", () => {
    const loaded = [...closure(join(root, "src/index.ts"))].join("\n")
    assert.notMatch(loaded, /@effect\/|effect\/(?:cli|http|rpc|workers)|node:(?:worker_threads|child_process|http)/)
    const ai = [...loaded.matchAll(/effect\/ai\/\w+/g)].map(String).sort()
    assert.deepStrictEqual(ai, ["effect/ai/Prompt", "effect/ai/Tool", "effect/ai/Toolkit"])
  })
})

const wanted = process.env["FS_ALGEBRA_NO_SKIP"] !== undefined || process.env["FS_ALGEBRA_SOAK"] !== undefined
if (!wanted)
  console.log("skipped: the package installed elsewhere, which needs the npm registry; FS_ALGEBRA_NO_SKIP=1 npm test runs it")

/**
 * The timeout in milliseconds. Building, checking and installing the package takes half a minute, and several on a busy
 * machine.
 */
const timeoutMillis = 600_000

describe.runIf(wanted)("the package, installed in another directory,", () => {
  const scratch = mkdtempSync(join(tmpdir(), "fs-algebra-pack-"))
  afterAll(() => rmSync(scratch, { recursive: true, force: true }))
  const run = (command: string, ...args: ReadonlyArray<string>) => {
    const { status, stderr, stdout } = spawnSync(command, args, { cwd: scratch, encoding: "utf8" })
    assert.strictEqual(status, 0, stdout + stderr)
    return stdout.trim()
  }

  const archive = () =>
    join(
      scratch,
      readdirSync(scratch).find((file) => file.endsWith(".tgz"))!
    )

  it(
    "can be packed, and publint finds no problem",
    () => {
      execFileSync("npm", ["pack", "--pack-destination", scratch], { cwd: root, stdio: "pipe" })
      // The archive itself, because publint would build the package again to pack it.
      const lint = spawnSync("npx", ["publint", "--strict", archive()], { cwd: root, encoding: "utf8" })
      assert.strictEqual(lint.status, 0, lint.stdout + lint.stderr)
      assert.match(lint.stdout, /All good/)
    },
    timeoutMillis
  )

  it(
    "can be installed",
    () => {
      writeFileSync(join(scratch, "package.json"), JSON.stringify({ private: true, type: "module" }))
      run(
        "npm",
        "install",
        "--prefer-offline",
        "--no-audit",
        "--no-fund",
        archive(),
        "typescript@7.0.2",
        "@types/node@24",
        "node22@npm:node@22.19.0"
      )
    },
    timeoutMillis
  )

  it("has types that check without skipLibCheck", () => {
    writeFileSync(
      join(scratch, "main.ts"),
      `import { Effect } from "effect"
import { Filesystem, InMemory, Limits, FsError, PosixHost, Decorator } from "fs-algebra"
import * as Direct from "fs-algebra/InMemory"
const program = Effect.gen(function* () {
  const fs = yield* Filesystem.Filesystem
  yield* fs.write("a/b.txt", "hello", { mode: "create" })
  return yield* fs.readString("a/b.txt")
})
const failing: Effect.Effect<string, FsError.ReadError | FsError.WriteError> = program.pipe(
  Effect.provide(InMemory.layer()),
  Effect.provideService(Limits.Limits, Limits.agent)
)
export const layer = PosixHost.layer({ root: "/tmp" }).pipe(Filesystem.decorate(Decorator.readOnly))
console.log(await Effect.runPromise(failing), Direct.layer === InMemory.layer)
`
    )
    writeFileSync(
      join(scratch, "tsconfig.json"),
      JSON.stringify({
        compilerOptions: {
          strict: true,
          exactOptionalPropertyTypes: true,
          skipLibCheck: false,
          target: "ES2023",
          lib: ["ES2024", "DOM", "DOM.Iterable"],
          module: "NodeNext",
          types: ["node"],
          outDir: "out"
        },
        include: ["main.ts"]
      })
    )
    run("npx", "tsc", "-p", ".")
  })

  it("contains every file that its modules find by their URLs, and the sources of its source maps", () => {
    const dist = join(scratch, "node_modules/fs-algebra/dist")
    const missing: Array<string> = []
    const found = { urls: 0, sources: 0 }
    for (const file of globSync("**/*.{js,js.map}", { cwd: dist, exclude: ["cli/**", "debug/page/**"] })) {
      const text = readFileSync(join(dist, file), "utf8")
      const sources = file.endsWith(".map") ? (JSON.parse(text) as { readonly sources: ReadonlyArray<string> }).sources : []
      const urls = [...text.matchAll(/new URL\("([^"]+)", import\.meta\.url\)/g)].map(([, url]) => url!)
      found.urls += urls.length
      found.sources += sources.length
      missing.push(...[...sources, ...urls].filter((path) => !existsSync(join(dist, dirname(file), path))))
    }
    assert.deepStrictEqual(missing, [])
    assert.isAtLeast(found.urls, 1)
    assert.isAtLeast(found.sources, 500)
  })

  it("contains the licenses of the libraries that its command line bundles", () => {
    assert.match(readFileSync(join(scratch, "node_modules/fs-algebra/dist/cli/LICENSES.txt"), "utf8"), /^# effect /m)
  })

  it("runs on the oldest supported Node, as does its command", () => {
    const node = join(scratch, "node_modules/node22/bin/node")
    assert.strictEqual(run(node, "--version"), "v22.19.0")
    assert.strictEqual(run(node, "out/main.js"), "hello true")
    const bin = join(scratch, "node_modules/fs-algebra/dist/cli/bin.js")
    assert.strictEqual(run(node, bin, "--version"), "fs-algebra v0.1.0")
    assert.match(run(node, bin, "grep", "hello", "--glob", "main.ts"), /main\.ts:/)
    // A pattern that needs a worker, from the built files.
    assert.match(run(node, bin, "grep", "(h|e)+llo", "--glob", "main.ts"), /hello/)
  })

  it("serves the debug view from its command line without a further package", async () => {
    const bin = join(scratch, "node_modules/fs-algebra/dist/cli/bin.js")
    assert.isFalse(existsSync(join(scratch, "node_modules/@effect/platform-node")))
    const child = spawn(process.execPath, [bin, "debug"], { cwd: scratch, stdio: ["ignore", "ignore", "pipe"] })
    try {
      let out = ""
      for await (const chunk of child.stderr.setEncoding("utf8")) {
        out += chunk
        if (out.includes("\n")) break
      }
      const [address] = /http:\S+/.exec(out)!
      assert.strictEqual((await fetch(address)).status, 200)
      assert.strictEqual((await fetch(new URL("app.js", address))).status, 200)
    } finally {
      child.kill("SIGKILL")
    }
  })
})
