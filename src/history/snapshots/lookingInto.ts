/** What a view asks of a tree in the store: each directory is read when it is looked into, and remembered for a while. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import type { Fault } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { StoreFault } from "../errors.ts"
import { type Directory, directoryOf } from "../git/load.ts"
import type { Reader } from "../git/reader.ts"
import type { FileNode } from "../tree.ts"
import type { Source } from "../view.ts"

/** Directories remembered. */
const capacity = 20_000

/** Where a store is, and what its programs say, is nothing for those who look at a tree. */
const toFault = ({ reason }: StoreFault): Fault =>
  reason === "unavailable" || reason === "gitMissing"
    ? { _tag: "Unavailable", detail: "the store of this snapshot cannot be read" }
    : { _tag: "IoError", detail: `the store of this snapshot cannot be read (${reason})` }

export const lookingInto = (
  reader: Reader,
  tree: string,
  content: (path: FsPath, file: FileNode) => Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, StoreFault>, StoreFault>
): Pick<Source, "tree" | "entries" | "mode" | "content"> => {
  const known = new Map<string, Directory>()
  const directory = (id: string): Effect.Effect<Directory, Fault> => {
    const found = known.get(id)
    if (found !== undefined) return Effect.succeed(found)
    return Effect.mapBoth(directoryOf(reader, id), {
      onFailure: toFault,
      onSuccess: (read) => {
        if (known.size >= capacity) known.clear()
        known.set(id, read)
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
