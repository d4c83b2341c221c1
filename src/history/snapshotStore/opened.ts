import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Fault } from "../../model/FsError.ts"
import { Limits } from "../../model/Limits.ts"
import type { ArchiveError } from "../errors.ts"
import * as Codec from "../zip/codec.ts"
import { stored } from "../zip/format.ts"
import * as Manifest from "../zip/manifest.ts"
import { tryArchive, refuse } from "../zip/names.ts"
import * as Outside from "../zip/outside.ts"
import { type Archived, read as readArchive } from "../zip/reader.ts"
import { checkLocal, readCentralDirectory, type CentralEntry, Window } from "../zip/records.ts"
import { fromDescriptor, type Source } from "../zip/spool.ts"

const checkContent = ({ crc, size }: CentralEntry, bytes: Uint8Array | undefined): Uint8Array => {
  if (bytes === undefined || bytes.length !== size || Codec.crc32(bytes) !== crc) {
    throw refuse("corrupt", "its content is damaged", Manifest.manifestName)
  }
  return bytes
}

const manifestIn = Effect.fnUntraced(function* (source: Source): Effect.fn.Return<Manifest.Manifest, ArchiveError | Fault> {
  const { maxArchiveEntries } = yield* Limits
  const { entries } = yield* readCentralDirectory(source, maxArchiveEntries + 1)
  const entry = entries.find(({ name }) => name === Manifest.manifestName)
  if (entry === undefined) return yield* Effect.fail(refuse("corrupt", "it has no manifest"))
  if (entry.size > Manifest.maxManifestBytes || entry.packed > Manifest.maxManifestBytes) {
    return yield* Effect.fail(refuse("tooLarge", "the manifest is too large", entry.name))
  }
  const data = yield* checkLocal(new Window(source), entry)
  if (data + entry.packed > source.size) return yield* Effect.fail(refuse("corrupt", "it ends too early", entry.name))
  const packed = yield* source.read(data, entry.packed)
  const bytes = entry.method === stored ? packed : yield* Codec.inflate(packed, entry.size)
  return yield* tryArchive(() => Manifest.read(checkContent(entry, bytes)))
})

const sourceAt = (path: string): Effect.Effect<Source, Fault, Scope.Scope> =>
  Effect.map(Outside.open(path), ({ descriptor, size }) => fromDescriptor(descriptor, size))

export const manifestOf = (path: string): Effect.Effect<Manifest.Manifest, ArchiveError | Fault> =>
  Effect.scoped(Effect.flatMap(sourceAt(path), manifestIn))

/** Opens and checks an archive. For the scope, contents come from the opened file, even if its name changes. */
export const contentsOf = (path: string): Effect.Effect<Archived, ArchiveError | Fault, Scope.Scope> =>
  Effect.flatMap(Limits, (limits) =>
    Effect.flatMap(sourceAt(path), (source) => readArchive(source, { limits, policy: undefined }))
  )
