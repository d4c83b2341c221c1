/**
 * Generates the API pages from the comments of the sources. The pages load nothing and work from a disk. A broken link
 * makes the generation fail.
 */
import { getLibFiles } from "@ts-morph/common"
import { readdirSync, readFileSync } from "node:fs"
import { registerHooks } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { root } from "./markdown.ts"
import { aboutModule, library, publicModules, ts } from "./typescript.ts"

/** Returns the import path of each exported file, without "fs-algebra/". The keys are files without their extension. */
const subpaths = (): ReadonlyMap<string, string> => {
  const { exports } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as {
    readonly exports: Readonly<Record<string, string>>
  }
  return new Map(
    Object.entries(exports).map(([name, file]) => [
      file.replace("./dist/", "src/").replace(/(?:\/index)?\.js$/, ""),
      name.replace("./", "")
    ])
  )
}

/** The first guide; the others follow by name. */
const first = "getting-started.md"

const heading = /^# (.*)\n+/

/** Provides the library files of TypeScript as texts, because the compiler does not find them in its own directory. */
const provideLibraries = (): void => {
  const place = "/lib.of.typescript"
  const texts = new Map(getLibFiles().map(({ fileName, text }) => [`${place}/${fileName}`, text]))
  const { fileExists, readFile } = ts.sys
  ts.sys.getExecutingFilePath = () => `${place}/typescript.js`
  ts.sys.fileExists = (path) => texts.has(path) || fileExists(path)
  ts.sys.readFile = (path, encoding) => texts.get(path) ?? readFile(path, encoding)
}

/** Writes the pages and returns the complaints. */
export const makePages = async (out: string): Promise<ReadonlyArray<string>> => {
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === "typescript"
        ? { url: pathToFileURL(library).href, format: "commonjs", shortCircuit: true }
        : next(specifier, context)
  })
  provideLibraries()
  const { Application, Comment, Converter, Logger, LogLevel, ReflectionKind } = await import("typedoc")
  const app = await Application.bootstrap({
    name: "fs-algebra",
    entryPoints: publicModules.map((file) => join(root, file)),
    tsconfig: join(root, "src/tsconfig.json"),
    basePath: root,
    out,
    readme: join(root, "README.md"),
    projectDocuments: readdirSync(join(root, "src/guides"))
      .filter((file) => file.endsWith(".md"))
      .sort((a, b) => Number(b === first) - Number(a === first) || (a < b ? -1 : 1))
      .map((file) => join(root, "src/guides", file)),
    excludeExternals: true,
    externalPattern: ["**/node_modules/**"],
    excludeInternal: true,
    excludePrivate: true,
    disableSources: true,
    hideGenerator: true,
    gitRevision: "main",
    sort: ["source-order"],
    sortEntryPoints: false,
    navigation: { includeCategories: false, includeGroups: false, includeFolders: false },
    categorizeByGroup: false,
    categoryOrder: ["services", "models", "constructors", "layers", "combinators", "*", "errors", "other"],
    defaultCategory: "other",
    blockTags: ["@category", "@default", "@example", "@param", "@returns", "@see", "@since", "@throws", "@deprecated"],
    highlightLanguages: [
      "ts",
      "typescript",
      "javascript",
      "sh",
      "shell",
      "json",
      "jsonc",
      "toml",
      "text",
      "diff",
      "yaml",
      "sql"
    ] as never,
    validation: { invalidLink: true, invalidPath: true, rewrittenLink: true, notExported: false, notDocumented: false },
    // The project's own compiler checks the sources, with its own settings.
    skipErrorChecking: true,
    logLevel: LogLevel.Warn
  })
  const complaints = new Set<string>()
  app.logger = new (class extends Logger {
    override log(message: string, level: number): void {
      if (level >= LogLevel.Warn) complaints.add(message)
    }
  })()
  const names = subpaths()
  const files = new Map(publicModules.map((file) => [file.replace(/(?:\/index)?\.ts$/, ""), file]))
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    for (const module of project.getReflectionsByKind(ReflectionKind.Module)) {
      const file = files.get(module.name)
      module.name = names.get(module.name) ?? module.name
      if (file !== undefined) module.comment ??= new Comment([{ kind: "text", text: aboutModule(file) }])
    }
    for (const guide of project.documents ?? []) guide.name = heading.exec(guide.content[0]?.text ?? "")?.[1] ?? guide.name
    // The page shows the name of the project itself.
    const [start] = project.readme ?? []
    if (start !== undefined) start.text = start.text.replace(heading, "")
  })
  const project = await app.convert()
  if (project === undefined) return [...complaints, "typedoc found no documentation to show"]
  app.validate(project)
  await app.generateDocs(project, out)
  return [...complaints]
}
