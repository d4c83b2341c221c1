/**
 * The compiler as a library, which typedoc and the tests of the documentation need: the project's own TypeScript 7 has none, so it is the
 * one that comes with `@ts-morph/common`.
 */
import { readFileSync } from "node:fs"
import type { ts as compiler } from "@ts-morph/common"
import { createRequire } from "node:module"
import { dirname, join, resolve } from "node:path"
import { root } from "./guides.ts"

const require = createRequire(import.meta.url)

/** Where it is. */
export const library = join(dirname(require.resolve("@ts-morph/common")), "typescript.js")

export type SourceFile = compiler.SourceFile
export type Node = compiler.Node

export const ts = require(library) as typeof compiler

/** The modules that package.json exports, as files of src; the barrel is none of its own. */
export const publicModules: ReadonlyArray<string> = Object.values(
  (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { readonly exports: Readonly<Record<string, string>> })
    .exports
)
  .filter((file) => file.endsWith(".js") && file !== "./dist/index.js")
  .map((file) => file.replace("./dist/", "src/").replace(/\.js$/, ".ts"))

const parsed = new Map<string, SourceFile>()

export const parse = (file: string): SourceFile => {
  let found = parsed.get(file)
  if (found === undefined) {
    const text = readFileSync(join(root, file), "utf8")
    parsed.set(file, (found = ts.createSourceFile(file, text, ts.ScriptTarget.ES2024, true)))
  }
  return found
}

/** The file that an import or export names. */
export const target = (from: string, specifier: string): string => resolve("/", dirname(from), specifier).slice(1)

/** What the first comment of a file says, as Markdown. */
export const aboutModule = (file: string): string =>
  (/^\/\*\*([^]*?)\*\//.exec(parse(file).text)?.[1] ?? "")
    .replace(/^ *\* ?/gm, "")
    .replace(/^@[^]*/m, "")
    .trim()
