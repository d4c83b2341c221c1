/**
 * Trees as flat records of paths, to set up a test and to check its result. This module uses only the port, so a bug of the
 * service cannot change the check.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, keyOf } from "../port/Backend.ts"
import { concatBytes } from "./operations.ts"

/**
 * A symbolic link with its target.
 *
 * @since 0.1.0
 */
export interface Link {
  readonly link: string
}

/**
 * The entry at one path of a tree: a text, bytes, a link or a directory.
 *
 * @since 0.1.0
 */
export type Entry = string | Uint8Array | Link | typeof directory

/**
 * A tree: paths and their entries. Parent directories need no entries. A string is a file of UTF-8 text.
 *
 * @since 0.1.0
 */
export type Files = { readonly [path: string]: Entry }

/**
 * A directory in `Files`. Only empty directories need such an entry.
 *
 * @since 0.1.0
 */
export const directory: unique symbol = Symbol.for("fs-algebra/testing/directory")

/**
 * Returns a symbolic link with this target.
 *
 * @since 0.1.0
 */
export const link = (target: string): Link => ({ link: target })

/**
 * Creates the tree with all parent directories. Fails with the fault of the first primitive call that fails, or with
 * Unsupported at a link if the port has no links.
 *
 * @example
 * ```ts
 * yield* Files.plant(fs.port, { "docs/guide.md": "Read it.", empty: Files.directory })
 * yield* fs.readString("docs/guide.md") // => "Read it."
 * ```
 * @category testing
 * @since 0.1.0
 */
export const plant = Effect.fnUntraced(function* (port: Backend, files: Files): Effect.fn.Return<void, Fault> {
  const made = new Set<string>()
  const parents = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<void, Fault> {
    if (path === FsPath.root || made.has(path)) return
    yield* parents(FsPath.parent(path))
    made.add(path)
    if ((yield* port.stat(path)) === undefined) yield* port.makeDirectory(path)
  })
  for (const [key, entry] of Object.entries(files)) {
    const path = key as FsPath.FsPath
    if (entry === directory) {
      yield* parents(path)
      continue
    }
    yield* parents(FsPath.parent(path))
    if (typeof entry === "object" && "link" in entry) {
      if (port.links === undefined) return yield* Effect.fail<Fault>({ _tag: "Unsupported", feature: "symbolic links" })
      yield* port.links.make(path, entry.link)
    } else {
      yield* port.write<never, never>(path, typeof entry === "string" ? new TextEncoder().encode(entry) : entry, "create")
    }
  }
})

/**
 * The content of a tree, with one description per path: `directory`, `link -> target`, `file "text"`, `bytes 00ff` or `other`.
 *
 * @since 0.1.0
 */
export type Picture = { readonly [path: string]: string }

const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

const decodeUtf8 = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const pictureOf = (content: string | Uint8Array): string => {
  const decoded = typeof content === "string" ? content : decodeUtf8(content)
  return decoded === undefined ? `bytes ${toHex(content as Uint8Array)}` : `file ${JSON.stringify(decoded)}`
}

/**
 * Returns the picture of the tree, as `capture` returns it after `plant`.
 *
 * @since 0.1.0
 */
export const picture = (files: Files): Picture => {
  const out = new Map<string, string>()
  for (const [key, entry] of Object.entries(files)) {
    for (let at = FsPath.parent(key as FsPath.FsPath); at !== FsPath.root; at = FsPath.parent(at)) out.set(at, "directory")
    if (entry === directory) out.set(key, "directory")
    else if (typeof entry === "object" && "link" in entry) out.set(key, `link -> ${entry.link}`)
    else out.set(key, pictureOf(entry))
  }
  return sortPicture(out)
}

const sortPicture = (entries: ReadonlyMap<string, string>): Picture =>
  Object.fromEntries([...entries].sort(([a], [b]) => FsPath.compare(a, b)))

/**
 * Returns the picture of the whole tree, including temporary files, which `Filesystem.list` hides.
 *
 * @category testing
 * @since 0.1.0
 */
export const capture = Effect.fnUntraced(function* (port: Backend): Effect.fn.Return<Picture, Fault> {
  const out = new Map<string, string>()
  const stack: Array<FsPath.FsPath> = [FsPath.root]
  while (stack.length > 0) {
    const here = stack.pop()!
    for (const child of yield* port.list(here)) {
      const path = FsPath.join(here, keyOf(child))
      if (child.kind === "directory") {
        out.set(path, "directory")
        stack.push(path)
      } else if (child.kind === "file") out.set(path, pictureOf(yield* contentOf(port, path)))
      else if (child.kind === "symlink" && port.links !== undefined) out.set(path, `link -> ${yield* port.links.read(path)}`)
      else out.set(path, child.kind)
    }
  }
  return sortPicture(out)
})

const contentOf = (port: Backend, path: FsPath.FsPath): Effect.Effect<Uint8Array, Fault> =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* port.open(path)
      const chunks: Array<Uint8Array> = []
      let length = 0
      for (;;) {
        const chunk = yield* handle.read(length, 65536)
        if (chunk.length === 0) return concatBytes(chunks)
        chunks.push(chunk)
        length += chunk.length
      }
    })
  )
