/** The walkers and globbers of npm and Node, each asked for all paths from the root as an array, and the plain search. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import fastGlob from "fast-glob"
import { fdir } from "fdir"
import { globby } from "globby"
import { existsSync, lstatSync, readdirSync, readFileSync } from "node:fs"
import * as promises from "node:fs/promises"
import { createRequire } from "node:module"
import { join, relative } from "node:path"
import { glob as tinyglobby } from "tinyglobby"
import type { Peer, Question } from "./peer.ts"
import { regExp } from "./peer.ts"

const require = createRequire(import.meta.url)

/**
 * Returns the version of a package. Its manifest is searched in the module paths, because not all packages export it.
 */
const versionOf = (name: string): string => {
  const all = require.resolve.paths(name)!.map((path) => join(path, name, "package.json"))
  return (JSON.parse(readFileSync(all.find(existsSync)!, "utf8")) as { readonly version: string }).version
}

export const named = (name: string): string => `${name} ${versionOf(name)}`

type Paths = () => Promise<ReadonlyArray<string>>

const peer = (id: string, name: string, paths: Paths, answer: Paths = paths): Peer => ({
  id,
  name,
  run: () => paths().then(({ length }) => ({ results: length })),
  answer
})

const crawl = (root: string) => new fdir({ excludeSymlinks: true, relativePaths: true }).crawl(root)

export const fdirs = (root: string): ReadonlyArray<Peer> => [
  peer("fdir", `${named("fdir")}, async`, () => crawl(root).withPromise()),
  peer("fdir-sync", `${named("fdir")}, sync`, () => Promise.resolve(crawl(root).sync()))
]

/** Globs with Node, whose results include directories; the entry tells whether it is a file. */
const nodeGlob = async (root: string, pattern: string): Promise<ReadonlyArray<string>> => {
  const found: Array<string> = []
  for await (const entry of promises.glob(pattern, { cwd: root, withFileTypes: true })) {
    if (entry.isFile()) found.push(relative(root, join(entry.parentPath, entry.name)))
  }
  return found
}

const plain = { dot: true, followSymbolicLinks: false, onlyFiles: true, expandDirectories: false }

/** Returns all peers that read a glob. */
export const globs = (root: string, pattern: string): ReadonlyArray<Peer> => [
  peer("tinyglobby", named("tinyglobby"), () => tinyglobby(pattern, { ...plain, cwd: root })),
  peer("fast-glob", named("fast-glob"), () => fastGlob(pattern, { ...plain, cwd: root })),
  peer("globby", named("globby"), () => globby(pattern, { ...plain, cwd: root })),
  {
    ...peer("node", `fs.promises.glob of Node ${process.versions.node}`, () => nodeGlob(root, pattern)),
    lacks: { what: "hidden files", is: (path) => /(^|\/)\./.test(path) }
  }
]

/** Returns the peers that read the tree's .gitignore files, of these only globby. */
export const ignoring = (root: string): ReadonlyArray<Peer> => [
  peer("globby", `${named("globby")}, gitignore: true`, () => globby("**", { ...plain, cwd: root, gitignore: true }))
]

/** Walks with effect, which returns names without kinds, including directories and links. */
export const effectWalk = (root: string): Peer => {
  const all: Paths = () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const fs = yield* FileSystem.FileSystem
        return yield* fs.readDirectory(root, { recursive: true })
      }).pipe(Effect.provide(NodeFileSystem.layer))
    )
  const isFile = (path: string) => lstatSync(join(root, path)).isFile()
  return peer("effect", `FileSystem.readDirectory of ${named("effect")}`, all, async () => (await all()).filter(isFile))
}

/** The part of node:fs that the plain search needs; memfs has it too. */
export interface Readable {
  readonly readdirSync: (path: string, options: { readonly withFileTypes: true }) => ReadonlyArray<Entry>
  readonly readFileSync: (path: string) => Uint8Array
}

interface Entry {
  readonly name: string
  readonly isFile: () => boolean
  readonly isDirectory: () => boolean
}

export const nodeFs: Readable = { readdirSync, readFileSync } as unknown as Readable

interface Line {
  readonly path: string
  readonly line: number
  readonly text: string
}

/**
 * Searches in the obvious way: reads as text, splits into lines, tests each. A file with a NUL near its beginning is
 * binary.
 */
export const naive = ({ readdirSync, readFileSync }: Readable, root: string, question: Question): ReadonlyArray<Line> => {
  const expression = regExp(question)
  const found: Array<Line> = []
  const search = (path: string, name: string): void => {
    const bytes = readFileSync(path)
    if (bytes.subarray(0, 8192).includes(0)) return
    const lines = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString().split("\n")
    for (let i = 0; i < lines.length; i++) {
      if (i === lines.length - 1 && lines[i] === "") break
      const text = lines[i]!.endsWith("\r") ? lines[i]!.slice(0, -1) : lines[i]!
      if (expression.test(text)) found.push({ path: name, line: i + 1, text })
    }
  }
  const visit = (directory: string, prefix: string): void => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      if (entry.isDirectory()) visit(`${directory}/${entry.name}`, `${prefix}${entry.name}/`)
      else if (entry.isFile()) search(`${directory}/${entry.name}`, prefix + entry.name)
    }
  }
  visit(root, "")
  return found
}

export const naivePeer = (id: string, name: string, fs: Readable, root: string, question: Question): Peer => ({
  id,
  name,
  run: async () => ({ results: naive(fs, root, question).length }),
  answer: async () => naive(fs, root, question).map(({ line, path }) => `${path}:${line}`)
})
