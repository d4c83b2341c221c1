/**
 * Bundles the built command line with its libraries. A command then starts faster, because Node resolves, reads and links a
 * few files instead of hundreds.
 */
import { renameSync, rmSync, writeFileSync } from "node:fs"
import { isBuiltin } from "node:module"
import { join, resolve } from "node:path"
import { type CodeSplittingGroup, type Plugin, rolldown } from "rolldown"
import { licencesOf } from "../../src/debug/page/build.ts"

type Modules = Parameters<Exclude<CodeSplittingGroup["name"], string>>[1]

/** Returns the modules that a module loads: itself and its static imports. */
const loadedBy = (entry: string, modules: Modules): ReadonlySet<string> => {
  const found = new Set([entry])
  for (const id of found) for (const imported of modules.getModuleInfo(id)?.importedIds ?? []) found.add(imported)
  return found
}

/**
 * Groups the modules that are loaded together. Each group imports only from the groups before it; every other module goes with
 * the dynamic import that needs it.
 */
const groupsIn = (directory: string): Array<CodeSplittingGroup> => {
  const program = join(directory, "bin.js")
  const known = new Map<string, ReadonlySet<string>>()
  const loads = (file: string, id: string, modules: Modules): boolean => {
    const entry = join(directory, file)
    if (!known.has(entry)) known.set(entry, loadedBy(entry, modules))
    return known.get(entry)!.has(id)
  }
  const groups: ReadonlyArray<readonly [name: string, ...entries: ReadonlyArray<string>]> = [
    ["before", "bin.js"],
    ["start", "start.js"],
    ["common", "main.js", "mcpMain.js"],
    ["greeting", "mcpMain.js"],
    ["files", "main.js", "mcpServe.js"],
    ["transactions", "mcpServe.js", "../backends/PosixHost.js"],
    ["tools", "mcpServe.js"],
    ["commands", "main.js"],
    ["host", "../backends/PosixHost.js"]
  ]
  return groups.map(([name, ...entries], index) => ({
    debugName: name,
    name: (id, modules) => (id !== program && entries.every((file) => loads(file, id, modules)) ? name : undefined),
    priority: groups.length - index
  }))
}

const lookedUp = "\0looked-up/"

/**
 * Looks up modules of Node instead of importing them. An import reads every property, and some properties load further modules:
 * the import of node:util and node:fs slows the start. `bin.js` must run on versions of Node without such a lookup.
 * The runtime of rolldown imports node:module itself, and must not depend on a chunk that depends on it.
 */
const lookUpBuiltins = (program: string): Plugin => ({
  name: "look-up-builtins",
  resolveId: (id, importer) =>
    id.startsWith("node:") && id !== "node:module" && importer !== program
      ? { id: lookedUp + id, moduleSideEffects: false }
      : undefined,
  load: (id) => {
    if (!id.startsWith(lookedUp)) return undefined
    const name = id.slice(lookedUp.length)
    const names = Object.keys(process.getBuiltinModule(name)!).filter((key) => key !== "default")
    return [
      `const builtin = process.getBuiltinModule(${JSON.stringify(name)})`,
      "export default builtin",
      ...names.map((key) => `export const ${key} = /* @__PURE__ */ (() => builtin.${key})()`)
    ].join("\n")
  }
})

/** The largest amount of code, in characters, that is loaded before the compile cache is enabled and so compiled at each start. */
const maxBeforeCache = 20_000

/** Replaces the modules in `directory` by a bundle of `bin.js` and its chunks. */
const bundle = async (directory: string): Promise<void> => {
  const built = await rolldown({
    input: { bin: join(directory, "bin.js") },
    platform: "node",
    plugins: [lookUpBuiltins(join(directory, "bin.js"))],
    logLevel: "warn",
    // Optional packages for NATS, buckets and SFTP; users install them.
    external: [/^@nats-io\//, "aws4fetch", "ssh2"]
  })
  const fresh = `${directory}-bundled`
  const { output } = await built.write({
    dir: fresh,
    format: "es",
    entryFileNames: "[name].js",
    // Node looks for the package of each file that does not end with .mjs.
    chunkFileNames: "chunks/[name]-[hash].mjs",
    codeSplitting: { groups: groupsIn(directory) },
    // Names stay, for stack traces.
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } }
  })
  await built.close()
  const foreign = output
    .flatMap((chunk) => (chunk.type === "chunk" ? [...chunk.imports, ...chunk.dynamicImports] : []))
    .filter((name) => !/^(?:chunks\/|@nats-io\/|(?:aws4fetch|ssh2)$)/.test(name) && !isBuiltin(name))
  if (foreign.length > 0) throw new Error(`the bundle imports ${foreign.join(", ")}`)
  const chunks = new Map(output.flatMap((chunk) => (chunk.type === "chunk" ? [[chunk.fileName, chunk] as const] : [])))
  const closureOf = (first: ReadonlyArray<string>): ReadonlySet<string> => {
    const names = new Set(first)
    for (const name of names) for (const imported of chunks.get(name)?.imports ?? []) names.add(imported)
    return names
  }
  const hostChunks = closureOf([...chunks.keys()].filter((name) => name.startsWith("chunks/host-")))
  const forServer = [...hostChunks].filter((name) => /^chunks\/(?:greeting|tools)-/.test(name))
  if (hostChunks.size === 0 || forServer.length > 0)
    throw new Error(`commands on host directories load chunks of the MCP server: ${forServer.join(", ")}`)
  const early = closureOf(["bin.js"])
  const size = [...early].reduce((sum, name) => sum + (chunks.get(name)?.code.length ?? 0), 0)
  if (size > maxBeforeCache) throw new Error(`bin.js loads ${size} characters before it enables the compile cache`)
  writeFileSync(join(fresh, "LICENSES.txt"), licencesOf(output))
  rmSync(directory, { recursive: true })
  renameSync(fresh, directory)
}

const [, , directory] = process.argv
if (import.meta.main && directory !== undefined) await bundle(resolve(directory))
