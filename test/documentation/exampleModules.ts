/** The `@example` fences of the doc comments, each as a module that runs it. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "./markdown.ts"
import { parse, publicModules, ts } from "./typescript.ts"

export interface Example {
  /** The file relative to the repository, and the line of the fence. */
  readonly name: string
  readonly file: string
  /** The member or declaration after the comment; empty in the comment of a module. */
  readonly of: string
  readonly body: string
}

/** The sources below src, relative to the repository. */
const sources: ReadonlyArray<string> = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
  .filter((file) => file.endsWith(".ts"))
  .map((file) => `src/${file}`)
  .sort()

/** Returns the examples of a text. Fails if an `@example` has no TypeScript fence. */
export const examplesOf = (file: string, text: string): ReadonlyArray<Example> =>
  [...text.matchAll(/^ *\/\*\*[^]*?\*\//gm)].flatMap(({ 0: comment, index }) =>
    comment
      .replace(/^ *\* ?/gm, "")
      .split(/^@example$/m)
      .slice(1)
      .map((part, at) => {
        const fence = /^\n```ts\n([^]*?)^```$/m.exec(part)
        const before = comment.split(/@example$/m).slice(0, at + 1)
        const line = text.slice(0, index + before.join("@example").length).split("\n").length + 2
        if (fence === null || fence.index !== 0) throw new Error(`${file}:${line - 2}: the example has no fence of "ts"`)
        const after = text.slice(index + comment.length)
        const of = /^\n *(?:(?:export|readonly|const|class|interface|function|type) )*(\w+)/.exec(after)?.[1] ?? ""
        return { name: `${file}:${line}`, file, of, body: fence[1]! }
      })
  )

/** The examples of src, by file and line. */
export const examples = (): ReadonlyArray<Example> =>
  sources.flatMap((file) => examplesOf(file, readFileSync(join(root, file), "utf8")))

/** Returns the names that a barrel exports as namespaces or one by one. */
const namesOf = (file: string): ReadonlyArray<string> =>
  parse(file).statements.flatMap((statement) => {
    if (!ts.isExportDeclaration(statement) || statement.exportClause === undefined) return []
    const clause = statement.exportClause
    return ts.isNamespaceExport(clause) ? [clause.name.text] : clause.elements.map(({ name }) => name.text)
  })

/** The packages whose names an example may use without an import; the first package with a name wins. */
const packages: ReadonlyArray<readonly [from: string, names: ReadonlyArray<string>]> = [
  ["effect", ["Context", "DateTime", "Effect", "Fiber", "FileSystem", "Layer", "Option", "Schema", "Stream"]],
  ["fs-algebra", namesOf("src/index.ts")],
  ["fs-algebra/testing", namesOf("src/testing/index.ts")],
  ["fs-algebra/debug", namesOf("src/debug/index.ts")],
  ["@effect/platform-node", ["NodeFileSystem", "NodeServices"]]
]

/** The names of the adapters, which an example may use without an import. */
const adapters: ReadonlyArray<string> = publicModules.flatMap((file) => /^src\/adapters\/(\w+)\.ts$/.exec(file)?.[1] ?? [])

/** The lines at the beginning of an example that import other people's packages. */
const leadingImports = /^(?:import .*\n)*/

/** The mark before the value of an expression. */
const mark = /^\s*\/\/ => (.+)$/

/** Returns the body of an example. Each statement with a value in a comment becomes an assertion of this value. */
const asserted = ({ body, name }: Example): string => {
  const before = "function* example() {\n"
  const text = `${before}${body}}`
  const source = ts.createSourceFile("example.ts", text, ts.ScriptTarget.ES2024, true)
  const [generator] = source.statements
  if (generator === undefined || !ts.isFunctionDeclaration(generator)) throw new Error(`${name}: cannot parse the example`)
  let out = body
  for (const statement of [...generator.body!.statements].reverse()) {
    const [comment] = ts.getTrailingCommentRanges(text, statement.end) ?? []
    const value = comment && mark.exec(text.slice(comment.pos, comment.end))?.[1]
    if (comment === undefined || value === undefined || !ts.isExpressionStatement(statement)) continue
    const actual = statement.expression.getText(source)
    const [from, to] = [statement.getStart(source), comment.end].map((at) => at - before.length)
    out = `${out.slice(0, from)}gives(${actual}, ${value})${out.slice(to)}`
  }
  if (out.includes("// => ")) throw new Error(`${name}: only a statement that is an expression can have a value`)
  return out
}

/** Returns the module whose export `example` is the fragment as an effect. */
export const moduleOf = (example: Example): string => {
  const { body } = example
  const [foreign] = leadingImports.exec(body)!
  const checked = asserted({ ...example, body: body.slice(foreign.length) })
  const uses = (name: string): boolean => new RegExp(`(?<![.\\w"'])${name}\\b(?!:)`).test(body)
  const taken = new Set<string>()
  const needsFilesystem = uses("fs") && !/\(fs\) =>/.test(body)
  const imports = packages.flatMap(([from, names]) => {
    const used = names.filter(
      (name) =>
        !taken.has(name) &&
        (uses(name) || name === "Effect" || (needsFilesystem && from === "fs-algebra" && name === "Filesystem"))
    )
    for (const name of used) taken.add(name)
    return used.length === 0 ? [] : [`import { ${used.join(", ")} } from "${from}"`]
  })
  return [
    ...(foreign === "" ? [] : [foreign.trimEnd()]),
    ...imports,
    ...adapters
      .filter((name) => uses(name) && !foreign.includes(` ${name} `))
      .map((name) => `import * as ${name} from "fs-algebra/adapters/${name}"`),
    ...(checked === body.slice(foreign.length)
      ? []
      : [
          'import { assert } from "vitest"',
          "const gives = (actual: unknown, expected: unknown) => assert.deepStrictEqual(actual, expected)"
        ]),
    "export const example = Effect.gen(function* () {",
    ...(needsFilesystem ? ["const fs = yield* Filesystem.Filesystem"] : []),
    `${checked}})`,
    ""
  ].join("\n")
}

/** Tests whether an example states a value. */
export const statesValue = (example: Example): boolean => asserted(example) !== example.body
