/** Streams the content of a file from its recorded parts. Only recorded edits need the whole content in memory. */
import { is as isFault } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Edit from "../../engine/edit.ts"
import * as Read from "../../engine/read.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPathModule from "../../model/FsPath.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { isBytes } from "../../model/realms.ts"
import { sha256 } from "../../runtime/hash.ts"
import type { ContentRef } from "../FileSystemEntry.ts"
import type { ContentStore } from "../model.ts"
import { digestOf, streamOf as contentStream } from "../entries/values.ts"
import { concatenate } from "../../runtime/buffer.ts"
import type { JournalError } from "../errors.ts"
import { NotRecorded } from "./values.ts"
import type { Beginning, Directory, File, Node, Part } from "./world.ts"

const chunkSize = 65_536

export type ContentError = JournalError | NotRecorded | Fault

export interface Source {
  readonly operation: string
  readonly contents: ContentStore
  readonly beginning: (path: FsPath) => Stream.Stream<Uint8Array, ContentError>
}

export const notRecorded = (operation: string, path: FsPath, detail: string): NotRecorded =>
  new NotRecorded({ operation, path, detail })

const applyEdits = (
  source: Source,
  path: FsPath,
  { edits, base: of, version }: Extract<Part, { readonly edits: unknown }>
): Effect.Effect<Uint8Array, ContentError> =>
  Effect.flatMap(Stream.runCollect(streamOf(source, path, of)), (chunks) =>
    Effect.flatMap(Edit.applyEdits(concatenate(chunks), edits, path), (out) =>
      !isFault(out) && (version === undefined || sha256(out.bytes) === version)
        ? Effect.succeed(out.bytes)
        : Effect.fail(notRecorded(source.operation, path, "the recorded edits do not match the recorded content of the file"))
    )
  )

type FlatPart = Exclude<Part, { readonly all: unknown }>

/** Flattens lists of parts. Each append nests the earlier parts once more. */
const flattenParts = (parts: ReadonlyArray<Part>): ReadonlyArray<FlatPart> => {
  const out: Array<FlatPart> = []
  const pending = [...parts]
  for (let part = pending.pop(); part !== undefined; part = pending.pop()) {
    if ("all" in part) for (const one of part.all) pending.push(one)
    else out.push(part)
  }
  return out.reverse()
}

const partOf = (source: Source, path: FsPath, part: FlatPart): Stream.Stream<Uint8Array, ContentError> =>
  isBytes(part) || "sha256" in part
    ? contentStream(source.contents, part)
    : "origin" in part
      ? source.beginning(part.origin)
      : Stream.fromEffect(applyEdits(source, path, part))

const streamOf = (source: Source, path: FsPath, parts: ReadonlyArray<Part>): Stream.Stream<Uint8Array, ContentError> =>
  Stream.flatMap(Stream.fromIterable(flattenParts(parts)), (part) => partOf(source, path, part))

export const content = (source: Source, path: FsPath, { parts }: File): Stream.Stream<Uint8Array, ContentError> =>
  streamOf(source, path, parts)

/** Returns the size and the hash of a file. Reads no content if the file is a single reference, which already has both. */
export const digest = (source: Source, path: FsPath, file: File): Effect.Effect<ContentRef, ContentError> => {
  const [only, more] = flattenParts(file.parts)
  return more === undefined && only !== undefined && "sha256" in only
    ? Effect.succeed(only)
    : digestOf(content(source, path, file))
}

export const bytesAt = (port: Backend, path: FsPath): Stream.Stream<Uint8Array, Fault> =>
  Stream.unwrap(Effect.map(port.open(path), (handle) => Read.chunks(handle, 0, Number.POSITIVE_INFINITY, chunkSize)))

export const beginningSource = (operation: string, contents: ContentStore, beginning: Beginning): Source => ({
  operation,
  contents,
  beginning: (path) => {
    const known = beginning.known.get(path)
    const content = known?.kind === "file" ? known.content : undefined
    return content === undefined
      ? Stream.fail(notRecorded(operation, path, "the journal does not contain the original content of the file"))
      : contentStream(contents, content)
  }
})

export const nodeAt = (beginning: Beginning, path: FsPathModule.FsPath, key: (name: string) => string): Node | undefined => {
  const known = beginning.known.get(path)
  const attributes = beginning.attributesAt(path)
  switch (known?.kind) {
    case "nothing":
      return { kind: "nothing" }
    case "other":
      return { kind: "unknown" }
    case "symlink":
      return known
    case "file":
      return { kind: "file", parts: [{ origin: path }], attributes }
    default: {
      const entries: Directory["entries"] = new Map()
      for (const name of beginning.namesIn(path)) {
        const node = nodeAt(beginning, FsPathModule.join(path, name), key)
        if (node !== undefined) entries.set(key(name), { name, node })
      }
      return known === undefined && entries.size === 0 && path !== FsPathModule.root
        ? undefined
        : { kind: "directory", entries, attributes, isTouched: false }
    }
  }
}
