/**
 * Replaces the compiled modules of the library by chunks: one for all modules that the same entries need. A program then starts
 * faster, because Node reads and links a third of the files, without their comments.
 */
import { globSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs"
import { dirname, isAbsolute, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { type Plugin, rolldown, RolldownMagicString } from "rolldown"
import { Visitor } from "rolldown/utils"

const manifest = fileURLToPath(new URL("../../package.json", import.meta.url))

/** Returns the compiled entries in `directory`, by their names without ".js". */
const entriesIn = (directory: string): Record<string, string> => {
  const { exports } = JSON.parse(readFileSync(manifest, "utf8")) as { readonly exports: Record<string, string> }
  const names = Object.values(exports).flatMap((file) => /^\.\/dist\/(.*)\.js$/.exec(file)?.[1] ?? [])
  // The page of the debug view is found by the URL of its module.
  const modules = [...names.filter((name) => name !== "index"), "debug/server/page"]
  return Object.fromEntries(modules.map((name) => [name, join(directory, `${name}.js`)]))
}

/**
 * Reads the compiler's source maps, so that the maps of the chunks lead to the TypeScript sources. The map of an embedded program
 * still names its source.
 */
const withSourceMaps: Plugin = {
  name: "source-maps",
  load: (id) => ({ code: readFileSync(id, "utf8"), map: readFileSync(`${id}.map`, "utf8") })
}

/**
 * Marks the calls that initialize top-level constants as free of side effects. A bundler can then drop each unused constant
 * of a chunk, as `sideEffects: false` lets it drop each unused module. A call that is a statement is kept, because only its
 * side effect can be wanted.
 */
const withAnnotations: Plugin = {
  name: "annotations",
  transform(code) {
    const text = new RolldownMagicString(code)
    let depth = 0
    const enter = () => void depth++
    const exit = () => void depth--
    const annotate = ({ start }: { readonly start: number }) => {
      if (depth === 0) text.appendLeft(start, "/* @__PURE__ */ ")
    }
    new Visitor({
      ArrowFunctionExpression: enter,
      "ArrowFunctionExpression:exit": exit,
      FunctionExpression: enter,
      "FunctionExpression:exit": exit,
      FunctionDeclaration: enter,
      "FunctionDeclaration:exit": exit,
      ExpressionStatement: enter,
      "ExpressionStatement:exit": exit,
      CallExpression: annotate,
      NewExpression: annotate
    }).visit(this.parse(code))
    return { code: text.toString(), map: text.generateMap({ hires: true }).toString() }
  }
}

/** Replaces the modules in the output directory of the compiler, except the main module, the command line and the debug page. */
export const makeChunks = async (directory: string): Promise<void> => {
  const built = await rolldown({
    cwd: dirname(directory),
    input: entriesIn(directory),
    platform: "node",
    plugins: [withSourceMaps, withAnnotations],
    logLevel: "warn",
    checks: { bundlerTimings: false },
    external: (id) => !id.startsWith(".") && !isAbsolute(id)
  })
  const fresh = `${directory}-chunks`
  await built.write({
    dir: fresh,
    format: "es",
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name].js",
    // Annotations tell the bundlers of users which calls have no side effects.
    comments: { legal: true, annotation: true, jsdoc: false },
    // V8 stores a text with other characters in two bytes for each character.
    charset: "ascii",
    sourcemap: true,
    sourcemapExcludeSources: true
  })
  await built.close()
  const kept = /^(?:index\.js|cli\/|debug\/page\/)/
  for (const file of globSync("**/*.{js,js.map}", { cwd: directory })) {
    if (!kept.test(file)) rmSync(join(directory, file))
  }
  for (const file of globSync("**/*.{js,js.map}", { cwd: fresh })) {
    mkdirSync(dirname(join(directory, file)), { recursive: true })
    renameSync(join(fresh, file), join(directory, file))
  }
  rmSync(fresh, { recursive: true })
}

const [, , directory] = process.argv
if (import.meta.main && directory !== undefined) await makeChunks(resolve(directory))
