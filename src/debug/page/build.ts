/**
 * Bundles the program of the page with its libraries. The build of the package writes the bundle into a directory. A server
 * that runs from the sources makes the bundle in memory. The published package contains the bundle, but not this module.
 */
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { type OutputOptions, rolldown, type RolldownOutput } from "rolldown"

const pageDirectory = fileURLToPath(new URL(".", import.meta.url))

const staticFiles: ReadonlyArray<string> = [
  "index.html",
  "style.css",
  "shell.css",
  "files.css",
  "markdown.css",
  "panels.css",
  "details.css",
  "changes.css",
  "narrow.css"
]

const output: OutputOptions = {
  format: "es",
  minify: true,
  entryFileNames: "[name].js",
  chunkFileNames: "chunks/[name]-[hash].js"
}

const startBundler = () =>
  rolldown({ input: { app: join(pageDirectory, "main.tsx") }, platform: "browser", logLevel: "silent" })

export const bundle = async (): Promise<ReadonlyMap<string, string>> => {
  const built = await startBundler()
  const { output: chunks } = await built.generate(output)
  await built.close()
  const files = new Map<string, string>()
  for (const chunk of chunks) if (chunk.type === "chunk") files.set(chunk.fileName, chunk.code)
  files.set("LICENSES.txt", licencesOf(chunks))
  return files
}

export const licencesOf = (chunks: RolldownOutput["output"]): string => {
  const packages = new Set<string>()
  for (const chunk of chunks) {
    for (const id of chunk.type === "chunk" ? chunk.moduleIds : []) {
      const found = /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id.replaceAll("\\", "/"))
      if (found !== null) packages.add(found[1]!)
    }
  }
  return [...packages].sort().map(licence).join("\n")
}

/** Returns the license text of a library, which its license requires to be distributed. */
const licence = (directory: string): string => {
  const { license, name, version } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"))
  const text = ["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE", "license"]
    .map((file) => join(directory, file))
    .find((file) => existsSync(file))
  return `# ${name} ${version} (${license})\n\n${text === undefined ? "" : readFileSync(text, "utf8").trim()}\n`
}

export const build = async (directory: string): Promise<void> => {
  for (const [file, content] of await bundle()) {
    mkdirSync(dirname(join(directory, file)), { recursive: true })
    writeFileSync(join(directory, file), content)
  }
  for (const file of staticFiles) copyFileSync(join(pageDirectory, file), join(directory, file))
}

const [, program, directory] = process.argv
if (program === fileURLToPath(import.meta.url) && directory !== undefined) await build(directory)
