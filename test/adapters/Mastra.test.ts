import { assert, describe, it } from "@effect/vitest"
import * as Package from "@mastra/core/workspace"
import type { WorkspaceFilesystem } from "@mastra/core/workspace"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as Mastra from "../../src/adapters/Mastra.ts"
import { Decorator, Filesystem, InMemory, PosixHost } from "../../src/index.ts"
import { runs } from "../runs.ts"
import { inMemory } from "../scratch.ts"
import { randomOf } from "./random.ts"

const over = <A, E, R>(layer: Layer.Layer<Filesystem.Filesystem, E, R>, use: (fs: WorkspaceFilesystem) => Promise<A>) =>
  Effect.provide(
    Effect.flatMap(Mastra.make(Package), (fs) => Effect.promise(() => use(fs))),
    layer,
    { local: true }
  )

const tree = {
  "a.md": "# A\nneedle here\n",
  "picture.png": Uint8Array.of(0x89, 0x50, 0xff, 0),
  ".hidden": "needle\n",
  ".gitignore": "ignored\n",
  ignored: { "x.md": "needle\n" },
  empty: {},
  d: { "b.ts": "const needle = 1\n", README: "read\n", e: { "c.json": "{}\n", f: { "g.md": "deep\n" } } },
  ü: { "ö.txt": "äöü\n" },
  link: { link: "a.md" },
  way: { link: "d/e" },
  broken: { link: "none" },
  loop: { link: "loop" }
} satisfies InMemory.Tree

/** Writes a tree into a directory of the host, and returns the directory. */
const plant = (directory: string, entries: InMemory.Tree): string => {
  for (const [name, entry] of Object.entries(entries)) {
    const path = join(directory, name)
    if (typeof entry === "string" || entry instanceof Uint8Array) writeFileSync(path, entry)
    else if ("link" in entry && typeof entry["link"] === "string" && Object.keys(entry).length === 1)
      symlinkSync(entry["link"], path)
    else {
      mkdirSync(path)
      plant(path, entry as InMemory.Tree)
    }
  }
  return directory
}

const directory = () => mkdtempSync(join(inMemory(), "mastra-"))

/** Returns a LocalFilesystem of Mastra with a tree. */
const own = (entries: InMemory.Tree = tree): WorkspaceFilesystem =>
  new Package.LocalFilesystem({ basePath: plant(directory(), entries) })

const memory = InMemory.layer({ tree })

/** Drops times and absent properties, and sorts listings, whose order is not specified. */
const comparable = (value: unknown): unknown => {
  if (ArrayBuffer.isView(value)) return [...(value as Uint8Array)]
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value))
    return value.map(comparable).toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, one]) => !/^(?:created|modified)At$/.test(key) && one !== undefined)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
  )
}

interface Failure {
  readonly name: string
  readonly message: string
  readonly code: string
  readonly path: string
}

/** Returns the answer of a call, or the error that it threw. */
const outcome = (call: () => Promise<unknown>): Promise<unknown> =>
  call().then(comparable, (error: Failure) => ({
    name: error.name,
    message: error.message,
    code: error.code,
    path: error.path
  }))

/** Returns every entry: the targets of links and the bytes of files. */
const picture = async (fs: WorkspaceFilesystem): Promise<Record<string, unknown>> => {
  const found: Record<string, unknown> = {}
  const visit = async (at: string): Promise<void> => {
    for (const { isSymlink, name, symlinkTarget, type } of await fs.readdir(at === "" ? "." : at)) {
      const path = at === "" ? name : `${at}/${name}`
      found[path] =
        isSymlink === true
          ? ["link", symlinkTarget]
          : type === "directory"
            ? "directory"
            : await fs.readFile(path, { encoding: "hex" })
      if (type === "directory" && isSymlink !== true) await visit(path)
    }
  }
  await visit("")
  return Object.fromEntries(Object.entries(found).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

type Calls = ReadonlyArray<readonly [title: string, call: (fs: WorkspaceFilesystem) => Promise<unknown>]>

const plain = ({ createdAt: _, modifiedAt: __, size, ...stat }: Package.FileStat) =>
  stat.type === "file" ? { ...stat, size } : stat

const calls: Calls = [
  ["readFile", (fs) => fs.readFile("a.md")],
  ["readFile as text", (fs) => fs.readFile("a.md", { encoding: "utf-8" })],
  ["readFile as base64", (fs) => fs.readFile("picture.png", { encoding: "base64" })],
  ["readFile as base64url", (fs) => fs.readFile("picture.png", { encoding: "base64url" })],
  ["readFile as latin1", (fs) => fs.readFile("picture.png", { encoding: "binary" })],
  ["readFile as UTF-16", (fs) => fs.readFile("picture.png", { encoding: "utf16le" })],
  ["readFile as ASCII", (fs) => fs.readFile("ü/ö.txt", { encoding: "ascii" })],
  ["readFile of bytes that are not UTF-8", (fs) => fs.readFile("picture.png", { encoding: "utf8" })],
  ["Buffer.isBuffer of the bytes of readFile", async (fs) => Buffer.isBuffer(await fs.readFile("a.md"))],
  ["readFile with inner dots", (fs) => fs.readFile("./d/../d//e/./c.json")],
  ["readFile with dots behind a link", (fs) => fs.readFile("way/../a.md")],
  ["readFile through links", (fs) => fs.readFile("way/c.json")],
  ["readFile with a slash at the end", (fs) => fs.readFile("a.md/")],
  ["readFile of a directory", (fs) => fs.readFile("d")],
  ["readFile of the root", (fs) => fs.readFile("")],
  ["readFile of a missing file", (fs) => fs.readFile("x/none")],
  ["readFile of a broken link", (fs) => fs.readFile("broken")],
  ["readFile above the root", (fs) => fs.readFile("../x")],
  ["readFile above the root from within", (fs) => fs.readFile("d/../../x")],
  ["readFile of a home directory", (fs) => fs.readFile("~/x")],
  ["readFile of a name that begins with ~", (fs) => fs.readFile("~x")],
  ["writeFile of a new file", (fs) => fs.writeFile("new/deep/a", "one")],
  ["writeFile of bytes", (fs) => fs.writeFile("x", Uint8Array.of(0, 255))],
  ["writeFile of a Buffer", (fs) => fs.writeFile("x", Buffer.from("äö"))],
  ["writeFile over a file", (fs) => fs.writeFile("a.md", "x")],
  ["writeFile through a link", (fs) => fs.writeFile("link", "x")],
  ["writeFile through a broken link", (fs) => fs.writeFile("broken", "x")],
  ["writeFile without overwrite", (fs) => fs.writeFile("a.md", "x", { overwrite: false })],
  ["writeFile of a new file without overwrite", (fs) => fs.writeFile("x/y", "x", { overwrite: false })],
  ["writeFile over a directory without overwrite", (fs) => fs.writeFile("d", "x", { overwrite: false })],
  ["writeFile over a broken link without overwrite", (fs) => fs.writeFile("broken", "x", { overwrite: false })],
  ["writeFile without parents", (fs) => fs.writeFile("x/y/z", "x", { recursive: false })],
  ["writeFile without parents in the root", (fs) => fs.writeFile("x", "x", { recursive: false })],
  ["writeFile above the root", (fs) => fs.writeFile("../x", "x")],
  [
    "writeFile with the expected time",
    async (fs) => fs.writeFile("a.md", "x", { expectedMtime: (await fs.stat("a.md")).modifiedAt })
  ],
  [
    "writeFile with another time",
    (fs) =>
      fs
        .writeFile("a.md", "x", { expectedMtime: new Date(1) })
        .catch(({ code, expectedMtime, name, path }: Package.StaleFileError) => ({
          name,
          code,
          path,
          expectedMtime: expectedMtime.toISOString()
        }))
  ],
  ["writeFile of a missing file with a time", (fs) => fs.writeFile("x", "x", { expectedMtime: new Date(1) })],
  [
    "writeFile without overwrite with the expected time",
    async (fs) => fs.writeFile("a.md", "x", { overwrite: false, expectedMtime: (await fs.stat("a.md")).modifiedAt })
  ],
  ["appendFile", (fs) => fs.appendFile("a.md", "two")],
  ["appendFile of bytes to a missing file", (fs) => fs.appendFile("x/y", Uint8Array.of(1))],
  ["appendFile through a link", (fs) => fs.appendFile("link", "two")],
  ["deleteFile", (fs) => fs.deleteFile("a.md")],
  ["deleteFile of a link", (fs) => fs.deleteFile("link")],
  ["deleteFile of a link to a directory", (fs) => fs.deleteFile("way")],
  ["deleteFile of a broken link", (fs) => fs.deleteFile("broken")],
  ["deleteFile of a directory", (fs) => fs.deleteFile("d")],
  ["deleteFile of a missing file", (fs) => fs.deleteFile("none")],
  ["deleteFile of a missing file with force", (fs) => fs.deleteFile("none", { force: true })],
  ["copyFile", (fs) => fs.copyFile("a.md", "x/y")],
  ["copyFile over a file", (fs) => fs.copyFile("a.md", "d/b.ts")],
  ["copyFile onto itself", (fs) => fs.copyFile("a.md", "./a.md")],
  ["copyFile onto itself through a link", (fs) => fs.copyFile("link", "a.md")],
  ["copyFile onto itself without overwrite", (fs) => fs.copyFile("a.md", "a.md", { overwrite: false })],
  ["copyFile over a file without overwrite", (fs) => fs.copyFile("a.md", "d/b.ts", { overwrite: false })],
  ["copyFile of a link", (fs) => fs.copyFile("link", "x")],
  ["copyFile over a link", (fs) => fs.copyFile("d/b.ts", "link")],
  ["copyFile of a missing file", (fs) => fs.copyFile("none", "x")],
  ["copyFile of a broken link", (fs) => fs.copyFile("broken", "x")],
  ["copyFile above the root", (fs) => fs.copyFile("a.md", "../x")],
  ["copyFile from above the root", (fs) => fs.copyFile("../x", "x")],
  ["copyFile of a directory", (fs) => fs.copyFile("d", "x")],
  ["copyFile of a directory and all in it", (fs) => fs.copyFile("d", "x/y", { recursive: true })],
  [
    "copyFile that merges directories",
    async (fs) => {
      await fs.writeFile("x/e/c.json", "old")
      await fs.writeFile("x/own", "own")
      await fs.copyFile("d", "x", { recursive: true })
    }
  ],
  [
    "copyFile that merges directories without overwrite",
    async (fs) => {
      await fs.writeFile("x/e/c.json", "old")
      await fs.writeFile("x/own", "own")
      await fs.copyFile("d", "x", { recursive: true, overwrite: false })
    }
  ],
  ["copyFile of a directory behind a link", (fs) => fs.copyFile("way", "x", { recursive: true })],
  ["moveFile", (fs) => fs.moveFile("a.md", "x/y")],
  ["moveFile over a file", (fs) => fs.moveFile("a.md", "d/b.ts")],
  ["moveFile over a file without overwrite", (fs) => fs.moveFile("a.md", "d/b.ts", { overwrite: false })],
  ["moveFile of a file without overwrite", (fs) => fs.moveFile("a.md", "x", { overwrite: false })],
  ["moveFile onto itself", (fs) => fs.moveFile("a.md", "./a.md")],
  ["moveFile onto itself without overwrite", (fs) => fs.moveFile("a.md", "a.md", { overwrite: false })],
  ["moveFile of a directory", (fs) => fs.moveFile("d", "x")],
  ["moveFile over an empty directory", (fs) => fs.moveFile("d", "empty")],
  ["moveFile of a link", (fs) => fs.moveFile("link", "x")],
  ["moveFile of a broken link", (fs) => fs.moveFile("broken", "x")],
  ["moveFile of a missing file", (fs) => fs.moveFile("none", "x")],
  ["mkdir", (fs) => fs.mkdir("x/y")],
  ["mkdir without parents", (fs) => fs.mkdir("x", { recursive: false })],
  ["mkdir in a missing directory without parents", (fs) => fs.mkdir("x/y", { recursive: false })],
  ["mkdir of an existing directory", (fs) => fs.mkdir("d")],
  ["mkdir of an existing directory without parents", (fs) => fs.mkdir("d", { recursive: false })],
  ["mkdir of the root", (fs) => fs.mkdir(".")],
  ["mkdir over a file", (fs) => fs.mkdir("a.md")],
  ["mkdir over a file without parents", (fs) => fs.mkdir("a.md", { recursive: false })],
  ["mkdir over a link to a directory", (fs) => fs.mkdir("way")],
  ["rmdir", (fs) => fs.rmdir("empty")],
  ["rmdir of a full directory", (fs) => fs.rmdir("d")],
  ["rmdir of a full directory and all in it", (fs) => fs.rmdir("d", { recursive: true })],
  ["rmdir of a file", (fs) => fs.rmdir("a.md")],
  ["rmdir of a file and all in it", (fs) => fs.rmdir("a.md", { recursive: true, force: true })],
  ["rmdir of a missing directory", (fs) => fs.rmdir("none")],
  ["rmdir of a missing directory with force", (fs) => fs.rmdir("none", { force: true })],
  ["rmdir of a link and all in it", (fs) => fs.rmdir("way", { recursive: true })],
  ["readdir", (fs) => fs.readdir(".")],
  ["readdir of a directory", (fs) => fs.readdir("d")],
  ["readdir through a link", (fs) => fs.readdir("way")],
  ["readdir with an extension", (fs) => fs.readdir(".", { extension: ".md" })],
  ["readdir with an extension without a dot", (fs) => fs.readdir("d", { extension: "ts" })],
  ["readdir with extensions", (fs) => fs.readdir("d", { recursive: true, extension: ["json", ".ts"] })],
  ["readdir of all below", (fs) => fs.readdir("d", { recursive: true })],
  ["readdir of no more levels", (fs) => fs.readdir("d", { recursive: true, maxDepth: 0 })],
  ["readdir of one more level", (fs) => fs.readdir("d", { recursive: true, maxDepth: 1 })],
  ["readdir of a missing directory", (fs) => fs.readdir("none")],
  ["readdir of a file", (fs) => fs.readdir("a.md")],
  ["readdir above the root", (fs) => fs.readdir("..")],
  ["exists", (fs) => Promise.all(["a.md", "d", "none", "broken", "link", "."].map((path) => fs.exists(path)))],
  ["exists above the root", (fs) => fs.exists("../x")],
  ["stat of a file", async (fs) => plain(await fs.stat("./d//b.ts"))],
  ["stat of a picture", async (fs) => plain(await fs.stat("picture.png"))],
  ["stat of a file without an extension", async (fs) => plain(await fs.stat("d/README"))],
  ["stat of a hidden file", async (fs) => plain(await fs.stat(".gitignore"))],
  ["stat of a link", async (fs) => plain(await fs.stat("link"))],
  ["stat of a directory", async (fs) => plain(await fs.stat("d/e/"))],
  ["stat of the root", async (fs) => ({ ...plain(await fs.stat("")), name: "" })],
  ["stat of a missing file", (fs) => fs.stat("none")],
  ["stat above the root", (fs) => fs.stat("../x")],
  [
    "the number of dates in a stat",
    async (fs) => Object.values(await fs.stat("a.md")).filter((value) => value instanceof Date).length
  ],
  ["realpath", (fs) => fs.realpath!("way/../way/c.json")],
  ["realpath of the root", (fs) => fs.realpath!(".")],
  ["realpath above the root", (fs) => fs.realpath!("../x")]
]

/** Calls that fail, with the names and codes of the errors. Mastra exports the classes of the errors. */
const refused: ReadonlyArray<
  readonly [title: string, name: string, code: string, call: (fs: WorkspaceFilesystem) => Promise<unknown>]
> = [
  ["an unknown encoding", "FilesystemError", "EINVAL", (fs) => fs.readFile("a.md", { encoding: "utf32" as never })],
  ["an encoding that is a number", "FilesystemError", "EINVAL", (fs) => fs.readFile("a.md", { encoding: 7 as never })],
  ["a path that is a number", "FilesystemError", "EINVAL", (fs) => fs.readFile(7 as never)],
  ["a path that is a number in a write", "FilesystemError", "EINVAL", (fs) => fs.writeFile(7 as never, "x")],
  ["a second path that is null", "FilesystemError", "EINVAL", (fs) => fs.copyFile("a.md", null as never)],
  ["a path with a NUL", "FilesystemError", "EINVAL", (fs) => fs.readFile("a\0b")],
  ["a name with a control character", "FilesystemError", "EINVAL", (fs) => fs.writeFile("a\u0001", "x")],
  ["a name that is too long", "FilesystemError", "ENAMETOOLONG", (fs) => fs.writeFile("n".repeat(300), "x")],
  ["a content that is a number", "FilesystemError", "EINVAL", (fs) => fs.writeFile("a.md", 7 as never)],
  ["a content that looks like bytes", "FilesystemError", "EINVAL", (fs) => fs.appendFile("a.md", { length: 3 } as never)],
  ["a time that is a text", "FilesystemError", "EINVAL", (fs) => fs.writeFile("a.md", "x", { expectedMtime: "now" as never })],
  ["an invalid time", "FilesystemError", "EINVAL", (fs) => fs.writeFile("a.md", "x", { expectedMtime: new Date(Number.NaN) })],
  ["a read of a loop", "FilesystemError", "ELOOP", (fs) => fs.readFile("loop")],
  ["a read below a file", "FileNotFoundError", "ENOENT", (fs) => fs.readFile("a.md/x")],
  ["a write to a directory", "IsDirectoryError", "EISDIR", (fs) => fs.writeFile("d", "x")],
  [
    "a write below a file without parents",
    "NotDirectoryError",
    "ENOTDIR",
    (fs) => fs.writeFile("a.md/x", "", { recursive: false })
  ],
  ["a write below a file", "NotDirectoryError", "ENOTDIR", (fs) => fs.writeFile("a.md/x/y", "x")],
  ["an append to a directory", "IsDirectoryError", "EISDIR", (fs) => fs.appendFile("d", "x")],
  ["a copy over a directory", "IsDirectoryError", "EISDIR", (fs) => fs.copyFile("a.md", "d")],
  ["a copy over an empty directory", "IsDirectoryError", "EISDIR", (fs) => fs.copyFile("a.md", "empty")],
  [
    "a copy over a directory without overwrite",
    "FileExistsError",
    "EEXIST",
    (fs) => fs.copyFile("a.md", "d", { overwrite: false })
  ],
  ["a move of a file over a full directory", "DirectoryNotEmptyError", "ENOTEMPTY", (fs) => fs.moveFile("a.md", "d")],
  ["a move of a file over an empty directory", "IsDirectoryError", "EISDIR", (fs) => fs.moveFile("a.md", "empty")],
  ["a move of a directory over a file", "NotDirectoryError", "ENOTDIR", (fs) => fs.moveFile("d", "a.md")],
  ["a copy of a directory over a file", "FileExistsError", "EEXIST", (fs) => fs.copyFile("d", "a.md", { recursive: true })],
  ["a copy of a directory into itself", "FilesystemError", "EINVAL", (fs) => fs.copyFile("d", "d/e/x", { recursive: true })],
  ["a copy into itself behind a link", "FilesystemError", "EINVAL", (fs) => fs.copyFile("d", "way/x", { recursive: true })],
  ["a copy of the root into itself", "FilesystemError", "EINVAL", (fs) => fs.copyFile("/", "x", { recursive: true })],
  ["a move into itself", "FilesystemError", "EINVAL", (fs) => fs.moveFile("d", "d/x")],
  ["a move over a full directory", "DirectoryNotEmptyError", "ENOTEMPTY", (fs) => fs.moveFile("empty", "d")],
  [
    "a move of a directory over another without overwrite",
    "FileExistsError",
    "EEXIST",
    (fs) => fs.moveFile("d", "empty", { overwrite: false, recursive: true })
  ],
  ["a move of the root", "PermissionError", "EACCES", (fs) => fs.moveFile("/", "x")],
  ["a removal of the root", "PermissionError", "EACCES", (fs) => fs.rmdir("/", { recursive: true, force: true })],
  ["a removal of a link without recursive", "NotDirectoryError", "ENOTDIR", (fs) => fs.rmdir("way")],
  ["mkdir below a file", "NotDirectoryError", "ENOTDIR", (fs) => fs.mkdir("a.md/x")],
  ["readdir below a file", "DirectoryNotFoundError", "ENOENT", (fs) => fs.readdir("a.md/x")],
  ["realpath of a missing file", "FileNotFoundError", "ENOENT", (fs) => fs.realpath!("none")],
  ["an absolute path above the root", "PermissionError", "EACCES", (fs) => fs.writeFile("/../x", "x")],
  ["a path that leaves the root and returns", "PermissionError", "EACCES", (fs) => fs.writeFile("../root/x", "x")],
  ["a home directory", "PermissionError", "EACCES", (fs) => fs.writeFile("~", "x")],
  ["walk of a file", "NotDirectoryError", "ENOTDIR", (fs) => fs.walk!("a.md")],
  ["walk of a missing directory", "DirectoryNotFoundError", "ENOENT", (fs) => fs.walk!("none")]
]

const changes: ReadonlyArray<readonly [operation: string, call: (fs: WorkspaceFilesystem) => Promise<unknown>]> = [
  ["writeFile", (fs) => fs.writeFile("a.md", "x")],
  ["appendFile", (fs) => fs.appendFile("a.md", "x")],
  ["deleteFile", (fs) => fs.deleteFile("a.md")],
  ["copyFile", (fs) => fs.copyFile("a.md", "x")],
  ["moveFile", (fs) => fs.moveFile("a.md", "x")],
  ["mkdir", (fs) => fs.mkdir("x")],
  ["rmdir", (fs) => fs.rmdir("../x", { force: true })]
]

/** Makes a random program that avoids the documented differences: links, and paths below a file. */
const program = (seed: number): Calls => {
  const random = randomOf(seed)
  const pick = <A>(all: ReadonlyArray<A>): A => all[random(all.length)]!
  const name = () => pick(["a", "b.md", "ü.ts", ".h"])
  const directory = () => pick([".", "d", "d/e", "g h", "d/e/f"])
  const file = () => `${directory()}/${name()}`
  const flag = () => pick([undefined, true, false])
  const option = (key: string) => {
    const value = flag()
    return value === undefined ? {} : { [key]: value }
  }
  const kinds: ReadonlyArray<() => Calls[number]> = [
    () => {
      const [path, options] = [file(), { ...option("overwrite"), ...option("recursive") }]
      const content = pick(["", "tea", "äöü\n", "x".repeat(2000)])
      return [`writeFile ${path} ${JSON.stringify(options)}`, (fs) => fs.writeFile(path, content, options)]
    },
    () => {
      const path = file()
      return [`appendFile ${path}`, (fs) => fs.appendFile(path, "more")]
    },
    () => {
      const [path, options] = [file(), option("force")]
      return [`deleteFile ${path}`, (fs) => fs.deleteFile(path, options)]
    },
    () => {
      const [from, to, options] = [file(), file(), option("overwrite")]
      return [`copyFile ${from} ${to} ${JSON.stringify(options)}`, (fs) => fs.copyFile(from, to, options)]
    },
    () => {
      const [from, to, options] = [directory(), pick(["copy", "copy/e", "g h"]), option("overwrite")]
      if (from === "." || from === to) return [`exists ${from}`, (fs) => fs.exists(from)]
      return [`copyFile -r ${from} ${to}`, (fs) => fs.copyFile(from, to, { recursive: true, ...options })]
    },
    () => {
      const [from, to, options] = [file(), file(), option("overwrite")]
      return [
        `moveFile ${from} ${to} ${JSON.stringify(options)}`,
        async (fs) => (await fs.exists(from)) && fs.moveFile(from, to, options)
      ]
    },
    () => {
      const [path, options] = [directory(), option("recursive")]
      return [`mkdir ${path} ${JSON.stringify(options)}`, (fs) => fs.mkdir(path, options)]
    },
    () => {
      const [path, options] = [pick(["d", "d/e", "g h", "copy", "d/e/f"]), { ...option("recursive"), ...option("force") }]
      return [`rmdir ${path} ${JSON.stringify(options)}`, (fs) => fs.rmdir(path, options)]
    },
    () => {
      const [path, options] = [directory(), { ...option("recursive"), maxDepth: random(3), extension: pick([".md", "ts"]) }]
      return [`readdir ${path} ${JSON.stringify(options)}`, (fs) => fs.readdir(path, options)]
    },
    () => {
      const path = pick([file(), directory()])
      return [`stat ${path}`, async (fs) => ({ ...plain(await fs.stat(path)), name: "" })]
    },
    () => {
      const path = file()
      return [`readFile ${path}`, (fs) => fs.readFile(path)]
    }
  ]
  return Array.from({ length: 40 }, () => pick(kinds)())
}

const execute = async (fs: WorkspaceFilesystem, steps: Calls) => {
  const answers: Array<unknown> = []
  for (const [title, call] of steps) answers.push([title, await outcome(() => call(fs))])
  return { answers, files: await picture(fs) }
}

const tool = Package.WORKSPACE_TOOLS.FILESYSTEM

const toolCalls: ReadonlyArray<readonly [name: string, input: object]> = [
  [tool.LIST_FILES, { path: ".", maxDepth: 5 }],
  [tool.LIST_FILES, { path: "d", maxDepth: 1, showHidden: true }],
  [tool.LIST_FILES, { path: ".", maxDepth: 2, showHidden: true, respectGitignore: false, exclude: "empty" }],
  [tool.LIST_FILES, { path: ".", maxDepth: 9, pattern: "**/*.md" }],
  [tool.LIST_FILES, { path: "none" }],
  [tool.READ_FILE, { path: "a.md" }],
  [tool.READ_FILE, { path: "d/b.ts", offset: 1, limit: 1 }],
  [tool.READ_FILE, { path: "picture.png" }],
  [tool.READ_FILE, { path: "none" }],
  [tool.FILE_STAT, { path: "none" }],
  [tool.GREP, { pattern: "needle", path: "." }],
  [tool.GREP, { pattern: "NEEDLE", path: "**/*.ts", caseSensitive: false, contextLines: 1, includeHidden: true }],
  [tool.MKDIR, { path: "x/y" }],
  [tool.WRITE_FILE, { path: "x/y/z.md", content: "one\ntwo\n" }],
  [tool.WRITE_FILE, { path: "x/y/z.md", content: "other", overwrite: false }],
  [tool.WRITE_FILE, { path: "a.md", content: "changed after a read" }],
  [tool.READ_FILE, { path: "x/y/z.md" }],
  [tool.EDIT_FILE, { path: "x/y/z.md", old_string: "two", new_string: "three" }],
  [tool.EDIT_FILE, { path: "x/y/z.md", old_string: "four", new_string: "five" }],
  [tool.DELETE, { path: "d" }],
  [tool.DELETE, { path: "d", recursive: true }],
  [tool.DELETE, { path: "way" }],
  [tool.DELETE, { path: "a.md" }],
  [tool.DELETE, { path: "../outside" }]
]

/** Runs the tools of a workspace, and returns what they answer. */
const useTools = async (filesystem: WorkspaceFilesystem) => {
  const workspace = new Package.Workspace({
    id: "w",
    name: "w",
    filesystem,
    tools: { [tool.WRITE_FILE]: { requireReadBeforeWrite: true } }
  })
  await workspace.init()
  const tools = (await Package.createWorkspaceTools(workspace)) as Record<
    string,
    { readonly execute: (input: object, context: object) => Promise<unknown> }
  >
  const answers: Array<unknown> = []
  for (const [name, input] of toolCalls)
    answers.push([name, input, await outcome(() => tools[name]!.execute(input, { workspace }))])
  await workspace.destroy()
  return answers
}

describe("Mastra", () => {
  for (const [title, call] of calls) {
    it.effect(`${title} has the result of LocalFilesystem, and leaves the same files`, () =>
      Effect.gen(function* () {
        const use = async (fs: WorkspaceFilesystem) => ({ answer: await outcome(() => call(fs)), files: await picture(fs) })
        const expected = yield* Effect.promise(() => use(own()))
        assert.deepStrictEqual(yield* over(memory, use), expected)
      })
    )
  }

  for (const [title, name, code, call] of refused) {
    it.effect(`${title} fails with ${name} and changes nothing`, () =>
      over(memory, async (fs) => {
        const before = await picture(fs)
        const error = await call(fs).then(
          () => assert.fail("the call succeeded"),
          (error: Failure) => error
        )
        assert.deepStrictEqual([error.name, error.code], [name, code])
        assert.instanceOf(error, Package.FilesystemError)
        assert.deepStrictEqual(await picture(fs), before)
      })
    )
  }

  it.effect("random programs have the same results and files as over LocalFilesystem, in memory and on a host", () =>
    Effect.gen(function* () {
      for (let seed = 1; seed <= runs(40); seed++) {
        const steps = program(seed)
        const expected = yield* Effect.promise(() => execute(own({}), steps))
        const use = (fs: WorkspaceFilesystem) => execute(fs, steps)
        assert.deepStrictEqual(yield* over(InMemory.layer(), use), expected, `program ${seed}`)
        assert.deepStrictEqual(yield* over(PosixHost.layer({ root: directory() }), use), expected, `program ${seed}`)
      }
    })
  )

  it.effect("the tools of a workspace return the same results and leave the same files as over LocalFilesystem", () =>
    Effect.gen(function* () {
      const use = async (fs: WorkspaceFilesystem) => ({ answers: await useTools(fs), files: await picture(fs) })
      const expected = yield* Effect.promise(() => use(own()))
      assert.deepStrictEqual(yield* over(memory, use), expected)
      assert.strictEqual(expected.answers.length, toolCalls.length)
    })
  )

  it.effect("an absolute path begins at the root of the filesystem", () =>
    over(memory, async (fs) => {
      assert.strictEqual(await fs.readFile("/d/../a.md", { encoding: "utf8" }), tree["a.md"])
      await fs.writeFile("/x/y", "one")
      assert.strictEqual(await fs.readFile("x/y", { encoding: "utf8" }), "one")
      assert.strictEqual((await fs.stat("/x/y")).path, "x/y")
      assert.deepInclude(await outcome(() => fs.readFile("/x/none")), { message: "File not found: /x/none", path: "/x/none" })
      assert.deepInclude(await outcome(() => fs.writeFile("/none/a", "", { recursive: false })), {
        message: "Directory not found: /none"
      })
    })
  )

  it.effect("walk lists all visible entries below a directory, and does not enter links", () =>
    over(memory, async (fs) => {
      const walk = async (...args: Parameters<NonNullable<WorkspaceFilesystem["walk"]>>) =>
        (await fs.walk!(...args)).map(({ path }) => path).toSorted()
      assert.deepStrictEqual(await walk("d"), ["README", "b.ts", "e", "e/c.json", "e/f", "e/f/g.md"])
      assert.deepStrictEqual(await walk("/d", { maxDepth: 1 }), ["README", "b.ts", "e"])
      const all = await walk(".", { includeHidden: true })
      assert.includeMembers(all, [".hidden", "way", "ü/ö.txt", "broken"])
      assert.isFalse(all.some((path) => path.startsWith("way/")))
      assert.notInclude(await walk("."), ".hidden")
      const entries = await fs.walk!("/")
      assert.deepStrictEqual(
        entries.find(({ name }) => name === "way"),
        { name: "way", path: "way", type: "directory", isSymlink: true, symlinkTarget: "d/e" }
      )
    })
  )

  for (const [operation, call] of changes) {
    it.effect(`${operation} on a read-only filesystem fails as on LocalFilesystem`, () =>
      Effect.gen(function* () {
        const local = new Package.LocalFilesystem({ basePath: plant(directory(), tree), readOnly: true })
        const expected = yield* Effect.promise(() => outcome(() => call(local)))
        assert.deepInclude(expected, { name: "WorkspaceReadOnlyError" })
        const readOnly = InMemory.layer({ tree, readOnly: true })
        yield* over(readOnly, async (fs) => {
          assert.isTrue(fs.readOnly)
          const before = await picture(fs)
          assert.deepStrictEqual(await outcome(() => call(fs)), expected)
          assert.deepStrictEqual(await picture(fs), before)
        })
      })
    )
  }

  it.effect("expectedMtime detects a change between the check of the time and the write", () => {
    let meddles = false
    const meddling = Layer.effect(
      Filesystem.Filesystem,
      Effect.map(Filesystem.Filesystem, (fs) => ({
        ...fs,
        stat: (path: string) =>
          Effect.tap(fs.stat(path), () => (meddles ? Effect.orDie(fs.write(path, "theirs")) : Effect.void))
      }))
    ).pipe(Layer.provide(memory))
    return over(meddling, async (fs) => {
      const { modifiedAt } = await fs.stat("a.md")
      meddles = true
      assert.deepInclude(await outcome(() => fs.writeFile("a.md", "mine", { expectedMtime: modifiedAt })), {
        name: "StaleFileError",
        code: "ESTALE"
      })
      assert.strictEqual(await fs.readFile("a.md", { encoding: "utf8" }), "theirs")
    })
  })

  it.effect("a write beyond the quota fails with ENOSPC and keeps the old file", () =>
    over(InMemory.layer().pipe(Filesystem.decorate(Decorator.quota({ maxBytes: 5 }))), async (fs) => {
      await fs.writeFile("a", "old")
      assert.deepStrictEqual(await outcome(() => fs.writeFile("a", "too long")), {
        name: "FilesystemError",
        message: "ENOSPC: no space left on device, writeFile 'a'",
        code: "ENOSPC",
        path: "a"
      })
      assert.strictEqual(await fs.readFile("a", { encoding: "utf8" }), "old")
    })
  )

  it.effect("a call through a link that leads out of the root fails with PermissionError", () => {
    const root = directory()
    symlinkSync("/etc", join(root, "out"))
    return over(PosixHost.layer({ root }), async (fs) => {
      for (const call of [() => fs.readFile("out/passwd"), () => fs.writeFile("out/x", ""), () => fs.readdir("out")])
        assert.deepInclude(await outcome(call), { name: "PermissionError", code: "EACCES" })
      assert.deepStrictEqual(
        (await fs.readdir(".")).map(({ isSymlink, name, type }) => [name, type, isSymlink]),
        [["out", "file", true]]
      )
    })
  })

  it.effect("a recursive copyFile copies links as links, also over existing links and files", () =>
    over(
      InMemory.layer({ tree: { d: { a: "one", l: { link: "a" }, broken: { link: "none" } }, x: { l: "own" } } }),
      async (fs) => {
        await fs.copyFile("d", "y", { recursive: true })
        await fs.copyFile("d", "x", { recursive: true, overwrite: false })
        assert.strictEqual((await fs.readFile("x/l")).toString(), "own")
        await fs.copyFile("d", "y", { recursive: true })
        await fs.copyFile("d", "x", { recursive: true })
        const { d: _, x: __, y: ___, ...files } = await picture(fs)
        const one = Buffer.from("one").toString("hex")
        const copies = ["d", "x", "y"].flatMap((at) => [
          [`${at}/a`, one],
          [`${at}/broken`, ["link", "none"]],
          [`${at}/l`, ["link", "a"]]
        ])
        assert.deepStrictEqual(files, Object.fromEntries(copies))
      }
    )
  )

  it.effect("a copy to a link without a target replaces the link", () =>
    over(memory, async (fs) => {
      await fs.copyFile("d/README", "broken")
      assert.isFalse(await fs.exists("none"))
      assert.strictEqual((await fs.readFile("broken")).toString(), "read\n")
    })
  )

  it.effect("the filesystem can be mounted in a CompositeFilesystem", () =>
    over(memory, async (fs) => {
      const composite = new Package.CompositeFilesystem({ mounts: { "/mine": fs, "/local": own({ x: "one" }) } })
      await composite.copyFile("/local/x", "/mine/d/x")
      assert.strictEqual(await fs.readFile("d/x", { encoding: "utf8" }), "one")
      assert.strictEqual((await composite.readFile("/mine/a.md")).toString(), tree["a.md"])
    })
  )

  it.effect("two filesystems have different ids, and both have information and instructions for the agent", () =>
    over(memory, (one) =>
      Effect.runPromise(
        over(memory, async (other) => {
          assert.notStrictEqual(one.id, other.id)
          for (const fs of [one, other]) {
            assert.deepInclude(await fs.getInfo!(), { id: fs.id, provider: "fs-algebra", status: "ready", readOnly: false })
            assert.include(fs.getInstructions!(), "Relative paths resolve from the root")
          }
        })
      )
    )
  )
})
