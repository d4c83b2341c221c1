/** Serves a view of a stored tree: reads each directory on demand and caches it. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { StoreFault } from "../errors.ts"
import { type Directory, readNodes } from "../git/load.ts"
import type { Reader } from "../git/reader.ts"
import type { FileNode } from "../tree.ts"
import type { TreeSource } from "../view.ts"

const maxCachedDirectories = 20_000

/** Converts a fault, without the store's path and git's messages, which a reader of the view must not see. */
const toFault = ({ reason }: StoreFault): Fault =>
  reason === "unavailable" || reason === "gitMissing"
    ? { _tag: "Unavailable", detail: "the store of this snapshot cannot be read" }
    : { _tag: "IoError", detail: `the store of this snapshot cannot be read (${reason})` }

export const treeSourceOf = (
  reader: Reader,
  tree: string,
  content: (path: FsPath, file: FileNode) => Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, StoreFault>, StoreFault>
): Pick<TreeSource, "tree" | "entries" | "mode" | "content"> => {
  const cachedDirectories = new Map<string, Directory>()
  const directory = (id: string): Effect.Effect<Directory, Fault> => {
    const found = cachedDirectories.get(id)
    if (found !== undefined) return Effect.succeed(found)
    return Effect.mapBoth(readNodes(reader, id), {
      onFailure: toFault,
      onSuccess: (read) => {
        if (cachedDirectories.size >= maxCachedDirectories) cachedDirectories.clear()
        cachedDirectories.set(id, read)
        return read
      }
    })
  }
  return {
    tree: { kind: "directory", id: tree, entries: new Map() },
    entries: ({ id }) => Effect.map(directory(id!), ({ entries }) => entries),
    mode: ({ id }) => Effect.map(directory(id!), ({ mode }) => mode),
    content: (path, file) =>
      Effect.mapBoth(content(path, file), {
        onFailure: toFault,
        onSuccess: (bytes) => (isBytes(bytes) ? bytes : Stream.mapError(bytes, toFault))
      })
  }
}
