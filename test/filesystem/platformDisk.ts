/** Helpers for the tests of Platform: temporary directories, and effect's FileSystem over each kind of filesystem. */
import { NodeFileSystem } from "@effect/platform-node"
import { Context, Effect, FileSystem, Layer } from "effect"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Platform from "../../src/filesystem/Platform.ts"
import { inMemory } from "../scratch.ts"
import { modes, tree } from "./platformCases.ts"

export const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(inMemory(), "platform-"))),
  (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
)

export const served = <E>(layer: Layer.Layer<Filesystem, E>) => Layer.provideMerge(Platform.toFileSystem, layer)

const service = <E>(layer: Layer.Layer<FileSystem.FileSystem, E>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, FileSystem.FileSystem))

export const overMemory = (tree: InMemory.Tree = {}) => service(served(InMemory.layer({ tree })))

export const overHost = (root: string) => service(served(PosixHost.layer({ root })))

export const nodes = service(NodeFileSystem.layer)

type Tree = { readonly [name: string]: string | { readonly link: string } | Tree }

const isLink = (value: object): value is { readonly link: string } => typeof (value as { link?: unknown }).link === "string"

const plant = (directory: string, tree: Tree): void => {
  for (const [name, value] of Object.entries(tree)) {
    const path = join(directory, name)
    if (typeof value === "string") Fs.writeFileSync(path, value)
    else if (isLink(value)) Fs.symlinkSync(value.link, path)
    else {
      Fs.mkdirSync(path)
      plant(path, value)
    }
  }
}

export const planted = Effect.tap(temporary, (root) =>
  Effect.sync(() => {
    plant(root, tree as Tree)
    Fs.chmodSync(root, 0o755)
    for (const [path, mode] of Object.entries(modes)) Fs.chmodSync(join(root, path), mode)
  })
)

export const line = (path: string, kind: string, mode: number, content: string) =>
  `${path} ${kind} ${mode.toString(8)} ${content}`

export const onDisk = (root: string): ReadonlyArray<string> => {
  const out: Array<string> = []
  const pending = [""]
  while (pending.length > 0) {
    const above = pending.pop()!
    for (const name of Fs.readdirSync(join(root, above))) {
      const path = join(above, name)
      const stat = Fs.lstatSync(join(root, path))
      const mode = stat.mode & 0o777
      if (stat.isDirectory()) {
        pending.push(path)
        out.push(line(path, "directory", mode, ""))
      } else if (stat.isFIFO()) out.push(line(path, "fifo", mode, ""))
      else if (stat.isSymbolicLink()) out.push(line(path, "symlink", mode, Fs.readlinkSync(join(root, path))))
      else out.push(line(path, "file", mode, Fs.readFileSync(join(root, path), "latin1")))
    }
  }
  return out.sort()
}
