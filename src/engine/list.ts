import { limitExceeded } from "../model/Fault.ts"
import * as Effect from "effect/Effect"
import type { FileEntry } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, type Child, keyOf } from "../port/Backend.ts"
import { changed } from "../port/explorer.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import { withResolvedPath } from "./resolve.ts"

// The maximum number of repeated listings in `measure`. A directory is listed again if a child has no stat, because the child or
// the directory may have changed.

const maxRelistings = 8

const isSized = (child: Child): boolean => child.kind === "directory" || child.sizeBytes !== undefined

/**
 * Returns the existing children of the last listing with their sizes.
 *
 * Some disks list names that cannot be opened. So a child that every listing contains, but whose stat is always
 * missing, gets the size 0. Fails with Unavailable if the directory keeps changing.
 */
export const measure = Effect.fnUntraced(function* (
  port: Backend,
  at: FsPath.FsPath,
  listed: ReadonlyArray<Child>,
  listAgain: Effect.Effect<ReadonlyArray<Child>, Fault>
): Effect.fn.Return<ReadonlyMap<Child, number>, Fault> {
  const knownSizes = new Map<string, number>()
  let children = listed
  let neverFound: ReadonlySet<string> | undefined
  for (let left = maxRelistings; ; left--) {
    const sizes = new Map<Child, number>()
    const missing = new Set<string>()
    for (const child of children) {
      const key = keyOf(child)
      const known = isSized(child) ? (child.sizeBytes ?? 0) : knownSizes.get(key)
      const size = known ?? (yield* port.stat(FsPath.join(at, key)))?.sizeBytes
      sizes.set(child, size ?? 0)
      if (size === undefined) missing.add(key)
      else if (known === undefined) knownSizes.set(key, size)
    }
    if (missing.size === 0) return sizes
    const before: ReadonlySet<string> = neverFound ?? missing
    neverFound = new Set([...missing].filter((key) => before.has(key)))
    if (left === 0) return neverFound.size === missing.size ? sizes : yield* Effect.fail(changed)
    children = yield* listAgain
  }
})

const fileEntryOf = (path: FsPath.FsPath, child: Child, sizeBytes: number): FileEntry => ({
  name: child.name,
  path: FsPath.join(path, child.name),
  kind: child.kind,
  isFile: child.kind === "file",
  isDirectory: child.kind === "directory",
  sizeBytes,
  addressable: child.addressable
})

const visibleChildren = (children: ReadonlyArray<Child>): ReadonlyArray<Child> =>
  children.filter(({ name }) => !TemporaryNames.isInProgress(name))

export const list = (port: Backend, path: FsPath.FsPath, maxEntries: number): Effect.Effect<ReadonlyArray<FileEntry>, Fault> =>
  withResolvedPath(port, path, (at) => {
    const listed = Effect.flatMap(port.list(at), (all): Effect.Effect<ReadonlyArray<Child>, Fault> => {
      const children = visibleChildren(all)
      return children.length > maxEntries
        ? Effect.fail(limitExceeded("maxListEntries", maxEntries, children.length))
        : Effect.succeed(children)
    })
    const entries = (sizes: Iterable<readonly [Child, number]>) =>
      sortByName(
        port,
        Array.from(sizes, ([child, size]) => fileEntryOf(path, child, size))
      )
    return Effect.flatMap(listed, (children) =>
      children.every(isSized)
        ? Effect.succeed(entries(children.map((child) => [child, child.sizeBytes ?? 0] as const)))
        : Effect.map(measure(port, at, children, listed), entries)
    )
  })

const sortByName = (port: Backend, entries: Array<FileEntry>): ReadonlyArray<FileEntry> =>
  port.info.caseSensitive
    ? entries.sort((a, b) => FsPath.compare(a.name, b.name))
    : entries.sort((a, b) => FsPath.compare(FsPath.fold(a.name), FsPath.fold(b.name)) || FsPath.compare(a.name, b.name))
