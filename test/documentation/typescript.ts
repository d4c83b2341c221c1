/**
 * The compiler as a library for typedoc and the tests of the documentation. TypeScript 7 has no such library, so the
 * one in `@ts-morph/common` is used.
 */
import { readFileSync } from "node:fs"
import type { ts as compiler } from "@ts-morph/common"
import { createRequire } from "node:module"
import { dirname, join, resolve } from "node:path"
import { root } from "./markdown.ts"

const require = createRequire(import.meta.url)

/** The path of the library. */
export const library = join(dirname(require.resolve("@ts-morph/common")), "typescript.js")

export type SourceFile = compiler.SourceFile
export type Node = compiler.Node

export const ts = require(library) as typeof compiler

/** The modules that package.json exports, as files of src, without the barrel. */
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

/** Returns the file that an import or export names. */
export const target = (from: string, specifier: string): string => resolve("/", dirname(from), specifier).slice(1)

/** Returns the first comment of a file as Markdown. */
export const aboutModule = (file: string): string =>
  (/^\/\*\*([^]*?)\*\//.exec(parse(file).text)?.[1] ?? "")
    .replace(/^ *\* ?/gm, "")
    .replace(/^@[^]*/m, "")
    .trim()
