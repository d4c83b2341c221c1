/** The guide adapters.md, generated from the modules of src/adapters: their comments, examples and `support` values. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { AdapterSupport } from "../../src/adapters/support.ts"
import { type Example, examplesOf } from "./exampleModules.ts"
import { root, textOf } from "./markdown.ts"

export interface Adapter {
  readonly file: string
  readonly support: AdapterSupport
  /** The comment of the module, without its tags. */
  readonly about: string
  readonly examples: ReadonlyArray<Example>
}

const folder = "src/adapters"

/** Returns the first comment of a file as paragraphs, up to its first tag. */
export const aboutOf = (file: string, text: string): string => {
  const comment = /^\/\*\*[^]*?\*\//.exec(text)?.[0]
  if (comment === undefined) throw new Error(`${file}: the module has no comment`)
  const lines = comment.replace(/^\/\*\*\s*|\s*\*\/$/g, "").replace(/^ *\* ?/gm, "")
  return lines.split(/^@/m)[0]!.trim()
}

const load = async (file: string): Promise<Adapter> => {
  const module = (await import(pathToFileURL(join(root, file)).href)) as { readonly support?: AdapterSupport }
  if (module.support === undefined) throw new Error(`${file}: the adapter exports no "support"`)
  const text = textOf(file)
  return { file, support: module.support, about: aboutOf(file, text), examples: examplesOf(file, text) }
}

/** The adapters by name: the files of src/adapters that begin with a capital letter. */
export const adapters = async (): Promise<ReadonlyArray<Adapter>> => {
  const files = readdirSync(join(root, folder)).filter((name) => /^[A-Z]\w*\.ts$/.test(name))
  return Promise.all(files.sort().map((name) => load(`${folder}/${name}`)))
}

const cell = (items: ReadonlyArray<string>): string =>
  items
    .join("<br>")
    .replaceAll("|", "\\|")
    .replaceAll(/<(?!br>)/g, "&lt;")

const tableOf = (all: ReadonlyArray<Adapter>): string =>
  [
    ["adapter", "package", "version", "supported", "not supported"],
    ["---", "---", "---", "---", "---"],
    ...all.map(({ support: { maps, missing, name, package: of, version } }) => [
      `[\`${name}\`](#${name.toLowerCase()})`,
      `\`${of}\``,
      version,
      cell(maps),
      cell(missing)
    ])
  ]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("")

const sectionOf = ({ about, examples, support: { name } }: Adapter): string =>
  [
    `## ${name}`,
    `Import \`fs-algebra/adapters/${name}\`.`,
    about,
    ...examples.map(({ body }) => `\`\`\`ts\n${body}\`\`\``)
  ].join("\n\n")

export const pageOf = (all: ReadonlyArray<Adapter>): string => `# Adapters

With an adapter, a program that expects another interface can use any filesystem of this library. Some adapters do the opposite, and make a filesystem of another interface. Each adapter is a separate module. Install the
package of an adapter before you use the adapter. The tests run with the version in the table.

${tableOf(all)}
This library refuses some calls that another interface permits, such as a path that leads above the root. Such a call fails with an error of the other
interface. Each example runs in an \`Effect.gen\`, with its adapter imported as a namespace. \`fs\` is a filesystem in memory. The
[scoreboard](scoreboard.md) shows which laws of this library the filesystems of other packages keep.

${all.map(sectionOf).join("\n\n")}
`
