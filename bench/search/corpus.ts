/**
 * The trees that are searched, generated from a seed. They are kept in the system's temporary directory under a hash of
 * their parameters, so only the first run makes them. `npm run bench -- search --clean` removes them.
 */
import { createHash } from "node:crypto"
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync
} from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { Random } from "./random.ts"
import { make as random } from "./random.ts"
import { logs, needle, sources, unicodeSources } from "./text.ts"

export type Shape = "flat" | "large" | "deep" | "wide" | "unicode" | "ignored" | "sparse" | "real"

/** Must be raised whenever the same parameters would make another tree. */
const version = 1

const home = join(tmpdir(), "fs-algebra-bench-corpora")

export const clean = (): void => rmSync(home, { recursive: true, force: true })

const roots = ["src", "test", "docs", "packages", "tools", "examples", "scripts", "internal", "plugins", "bench"]
const below = ["lib", "test", "core", "utils", "model", "api", "client", "server", "fixtures", "types", "parser", "view"]
const names = ["alpha", "array", "base", "bucket", "config", "dispatch", "event", "filter", "group", "hash", "input", "util"]
const extensions = ["ts", "ts", "ts", "ts", "js", "js", "json", "md", "tsx", "css"]

/** Returns the directories of a random tree. Each of its 64 roots is small, so a static base is an advantage. */
const directories = (self: Random, count: number): ReadonlyArray<string> => {
  const all: Array<{ readonly path: string; readonly depth: number }> = []
  for (let i = 0; i < count; i++) {
    const parent = i < 64 ? undefined : self.pick(all)
    if (parent === undefined) all.push({ path: i < roots.length ? roots[i]! : `area${i}`, depth: 1 })
    else if (parent.depth >= 11) i--
    else all.push({ path: `${parent.path}/${self.pick(below)}${self.oneIn(3) ? "" : i}`, depth: parent.depth + 1 })
  }
  return [...new Set(all.map(({ path }) => path))]
}

type Name = (self: Random, index: number) => string

const plainName: Name = (self, index) => `${self.pick(names)}-${index.toString(36)}.${self.pick(extensions)}`

const unicodeName: Name = (self, index) =>
  `${self.pick(["é", "漢字", "emoji-🦀", "naïve", "Ελλ"])}-${index}.${self.pick(extensions)}`

interface Sown {
  readonly seed: number
  /** Directories per file. @default 0.16 */
  readonly density?: number
  readonly files: number
  readonly text?: typeof sources
  readonly name?: Name
}

const sow = (root: string, { density = 0.16, files, name = plainName, seed, text = sources }: Sown): void => {
  const self = random(seed)
  const all = directories(self, Math.max(64, Math.floor(files * density)))
  const content = text(self)
  for (const directory of all) mkdirSync(join(root, directory), { recursive: true })
  for (let i = 0; i < files; i++) writeFileSync(`${root}/${self.pick(all)}/${name(self, i)}`, content(i))
}

const sowLarge = (root: string, files: number, mebibytes: number): void => {
  const block = logs(random(2))
  for (let i = 0; i < files; i++) {
    const file = openSync(join(root, `service-${i}.log`), "w")
    for (let j = 0; j < mebibytes; j++) {
      writeSync(file, block())
      if (i === 0 && j === mebibytes >> 1) writeSync(file, `INFO ${needle}\n`)
    }
    closeSync(file)
  }
}

/** Makes chains of a hundred directories with three files each. */
const sowDeep = (root: string, files: number): void => {
  const content = sources(random(3))
  for (let i = 0, directory = ""; i < files; i++) {
    if (i % 300 === 0) directory = `${root}/chain${i / 300}`
    else if (i % 3 === 0) directory += `/d${i % 7}`
    if (i % 3 === 0) mkdirSync(directory, { recursive: true })
    writeFileSync(`${directory}/file${i}.ts`, content(i))
  }
}

const sowWide = (root: string, files: number): void => {
  const self = random(4)
  const content = sources(self)
  mkdirSync(join(root, "all"))
  for (let i = 0; i < files; i++) writeFileSync(`${root}/all/${plainName(self, i)}`, content(i))
}

const sowIgnored = (root: string, files: number): void => {
  sow(join(root, "node_modules"), { seed: 5, files: Math.floor(files * 0.9) })
  sow(root, { seed: 6, files: Math.floor(files * 0.1) })
  writeFileSync(join(root, ".gitignore"), "node_modules/\n*.css\n!util-*.css\n")
}

interface Made {
  readonly files: number
  readonly grow: (root: string, files: number) => void
}

/** Returns how many files a shape has in a run of `files`, and what makes them. */
const made = (shape: Exclude<Shape, "real">, files: number): Made => {
  const logFiles = Math.min(20, Math.max(1, Math.floor(files / 7500)))
  return {
    flat: { files, grow: (root: string, files: number) => sow(root, { seed: 1, files }) },
    large: { files: logFiles, grow: (root: string, files: number) => sowLarge(root, files, 100) },
    deep: { files: Math.floor(files / 10), grow: sowDeep },
    wide: { files: Math.min(files, 50_000), grow: sowWide },
    unicode: {
      files: Math.floor(files / 3),
      grow: (root: string, files: number) => sow(root, { seed: 7, files, text: unicodeSources, name: unicodeName })
    },
    ignored: { files, grow: sowIgnored },
    // Many published packages look so: directories outnumber files.
    sparse: { files, grow: (root: string, files: number) => sow(root, { seed: 8, files, density: 2 }) }
  }[shape]
}

const project = fileURLToPath(new URL("../..", import.meta.url))

/** The entries that tools write into node_modules while they run. */
const transient = new Set([".vite", ".vitest", ".cache", ".vite-temp"])

/** Copies the project's own packages, because other work on the project changes them during a run. */
const copyModules = (root: string): void =>
  cpSync(join(project, "node_modules"), root, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (source) => !transient.has(basename(source))
  })

const hashed = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, 12)

const planned = (shape: Shape, files: number): { readonly name: string; readonly grow: (root: string) => void } => {
  if (shape === "real")
    return { name: `real-${hashed(readFileSync(join(project, "package-lock.json"), "utf8"))}`, grow: copyModules }
  const { files: count, grow } = made(shape, files)
  return { name: `${shape}-${count}-${hashed(JSON.stringify({ version, shape, count }))}`, grow: (root) => grow(root, count) }
}

/**
 * Returns the directory of a corpus, and makes it if necessary. A run that is killed leaves no partial corpus under the
 * final name.
 */
export const ensure = (shape: Shape, files: number): string => {
  const { grow, name } = planned(shape, files)
  const target = join(home, name)
  if (existsSync(target)) return target
  const growing = `${target}.${process.pid}`
  rmSync(growing, { recursive: true, force: true })
  mkdirSync(growing, { recursive: true })
  grow(growing)
  renameSync(growing, target)
  return target
}

export interface Size {
  readonly files: number
  readonly directories: number
  readonly bytes: number
}

/** Reads every file once to warm the page cache, and counts the entries and bytes. */
export const warm = (root: string): Size => {
  const buffer = Buffer.allocUnsafe(1024 * 1024)
  let [files, directories, bytes] = [0, 0, 0]
  const read = (path: string): void => {
    const file = openSync(path, "r")
    for (let n = 1; n > 0; bytes += n) n = readSync(file, buffer)
    closeSync(file)
    files++
  }
  const visit = (directory: string): void => {
    directories++
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = `${directory}/${entry.name}`
      if (entry.isDirectory()) visit(path)
      else if (entry.isFile()) read(path)
    }
  }
  visit(root)
  return { files, directories, bytes }
}
