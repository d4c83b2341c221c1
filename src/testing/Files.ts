/**
 * A tree as one flat record of paths, which is how a test wants to write it down, and how it wants to see what has become of it.
 * Both ways go through the port alone: what a service got wrong cannot hide what it did.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, keyOf } from "../port/Backend.ts"

/**
 * A symbolic link, by its text.
 *
 * @since 0.1.0
 */
export interface Link {
  readonly link: string
}

/**
 * What stands at one path of a tree.
 *
 * @since 0.1.0
 */
export type Entry = string | Uint8Array | Link | typeof directory

/**
 * Paths and what is there; parents need not be named. A string is a file of UTF-8 text.
 *
 * @since 0.1.0
 */
export type Files = { readonly [path: string]: Entry }

/**
 * A directory, which has to be named only where it is empty.
 *
 * @since 0.1.0
 */
export const directory: unique symbol = Symbol.for("fs-algebra/testing/directory")

/**
 * A symbolic link with this text.
 *
 * @since 0.1.0
 */
export const link = (target: string): Link => ({ link: target })

/**
 * Puts the tree there, parents made. Fails with the fault of the primitive call that did not succeed.
 *
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
 * Each path with a line that tells what is there: `directory`, `link -> target`, `file "text"`, `bytes 00ff`, `other`.
 *
 * @since 0.1.0
 */
export type Picture = { readonly [path: string]: string }

const hex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")

const text = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const pictureOf = (content: string | Uint8Array): string => {
  const decoded = typeof content === "string" ? content : text(content)
  return decoded === undefined ? `bytes ${hex(content as Uint8Array)}` : `file ${JSON.stringify(decoded)}`
}

/**
 * The picture that `capture` answers for this tree.
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
  return sorted(out)
}

const sorted = (entries: ReadonlyMap<string, string>): Picture =>
  Object.fromEntries([...entries].sort(([a], [b]) => FsPath.compare(a, b)))

/**
 * What is there: everything, also the temporary files that no listing shows.
 *
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
  return sorted(out)
})

const contentOf = (port: Backend, path: FsPath.FsPath): Effect.Effect<Uint8Array, Fault> =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* port.open(path)
      const parts: Array<number> = []
      for (;;) {
        const part = yield* handle.read(parts.length, 65536)
        if (part.length === 0) return Uint8Array.from(parts)
        for (const byte of part) parts.push(byte)
      }
    })
  )
