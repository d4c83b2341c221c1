/** One directory, by name, with the size of everything in it. */
import * as Effect from "effect/Effect"
import type { FileEntry } from "../model/Entry.ts"
import type { Fault } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import type { Backend, Child } from "../port/Backend.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import { following } from "./resolve.ts"

const entry = (path: FsPath.FsPath, child: Child, sizeBytes: number): FileEntry => ({
  name: child.name,
  path: FsPath.join(path, child.name),
  kind: child.kind,
  isFile: child.kind === "file",
  isDirectory: child.kind === "directory",
  sizeBytes,
  addressable: child.addressable
})

export const list = (port: Backend, path: FsPath.FsPath, maxEntries: number): Effect.Effect<ReadonlyArray<FileEntry>, Fault> =>
  following(port, path, (at) =>
    Effect.flatMap(port.list(at), (all) => {
      const children = all.filter((child) => !TemporaryNames.isInProgress(child.name))
      if (children.length > maxEntries) {
        return Effect.fail<Fault>({
          _tag: "LimitExceeded",
          limit: "maxListEntries",
          allowed: Math.floor(maxEntries),
          actual: children.length
        })
      }
      return children.every(isSized)
        ? Effect.succeed(
            inOrder(
              port,
              children.map((child) => entry(path, child, child.sizeBytes ?? 0))
            )
          )
        : Effect.map(measured(port, path, at, children, 8), (entries) => inOrder(port, entries))
    })
  )

const isSized = (child: Child): boolean => child.kind === "directory" || child.sizeBytes !== undefined

/**
 * What is gone by the time it is looked at was never listed. What is in the listing all the same was only out of reach for a moment, as
 * when the directory itself is moved away and back, and is looked at again.
 */
const measured = Effect.fnUntraced(function* (
  port: Backend,
  path: FsPath.FsPath,
  at: FsPath.FsPath,
  children: ReadonlyArray<Child>,
  left: number
): Effect.fn.Return<Array<FileEntry>, Fault> {
  const out: Array<FileEntry> = []
  const unseen: Array<Child> = []
  for (const child of children) {
    if (isSized(child)) {
      out.push(entry(path, child, child.sizeBytes ?? 0))
      continue
    }
    const stat = yield* port.stat(FsPath.join(at, child.key ?? child.name))
    if (stat === undefined) unseen.push(child)
    else out.push(entry(path, child, stat.sizeBytes))
  }
  if (unseen.length === 0 || left === 0) return out
  const names = new Set((yield* port.list(at)).map(({ name }) => name))
  const still = unseen.filter(({ name }) => names.has(name))
  return still.length === 0 ? out : [...out, ...(yield* measured(port, path, at, still, left - 1))]
})

const inOrder = (port: Backend, entries: Array<FileEntry>): ReadonlyArray<FileEntry> =>
  port.info.caseSensitive
    ? entries.sort((a, b) => FsPath.compare(a.name, b.name))
    : entries.sort((a, b) => FsPath.compare(FsPath.fold(a.name), FsPath.fold(b.name)) || FsPath.compare(a.name, b.name))
