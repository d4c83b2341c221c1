import * as Effect from "effect/Effect"
import type { FileEntry } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend, Child } from "../port/Backend.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import { withResolvedPath } from "./resolve.ts"
import { measure } from "./sizes.ts"

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

const tooManyEntries = (actual: number, maxEntries: number): Fault => ({
  _tag: "LimitExceeded",
  limit: "maxListEntries",
  allowed: Math.floor(maxEntries),
  actual
})

export const list = (port: Backend, path: FsPath.FsPath, maxEntries: number): Effect.Effect<ReadonlyArray<FileEntry>, Fault> =>
  withResolvedPath(port, path, (at) => {
    const listed = Effect.flatMap(port.list(at), (all): Effect.Effect<ReadonlyArray<Child>, Fault> => {
      const children = visibleChildren(all)
      return children.length > maxEntries ? Effect.fail(tooManyEntries(children.length, maxEntries)) : Effect.succeed(children)
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

const isSized = (child: Child): boolean => child.kind === "directory" || child.sizeBytes !== undefined

const sortByName = (port: Backend, entries: Array<FileEntry>): ReadonlyArray<FileEntry> =>
  port.info.caseSensitive
    ? entries.sort((a, b) => FsPath.compare(a.name, b.name))
    : entries.sort((a, b) => FsPath.compare(FsPath.fold(a.name), FsPath.fold(b.name)) || FsPath.compare(a.name, b.name))
