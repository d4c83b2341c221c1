/** Stores that pass every call to a function, and repositories over them. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import type { Operations as Snapshots } from "../../src/history/snapshots/operations.ts"
import { Snapshots as SnapshotsTag } from "../../src/history/snapshots/tag.ts"
import { BlobStore, type StoreError } from "../../src/repository/BlobStore.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Stores from "../../src/repository/Stores.ts"

export type Step = "put" | "get" | "has" | "delete" | "list" | "getHead" | "compareAndSet" | "deleteHead" | "listHeads"

export interface Tap {
  <A>(step: Step, call: Effect.Effect<A, StoreError>): Effect.Effect<A, StoreError>
}

export type StoreServices = Context.Context<BlobStore | HeadStore>

export const untapped: Tap = (_, call) => call

/** Returns the stores with a function around every call. `follows` is false for a layer that never hears of other writers. */
export const tapped = (stores: StoreServices, tap: Tap, follows = true): StoreServices => {
  const blobs = Context.get(stores, BlobStore)
  const heads = Context.get(stores, HeadStore)
  return Context.make(BlobStore, {
    put: (bytes) => tap("put", blobs.put(bytes)),
    get: (hash, range) => tap("get", blobs.get(hash, range)),
    has: (hashes) => tap("has", blobs.has(hashes)),
    delete: (hashes) => tap("delete", blobs.delete(hashes)),
    list: Stream.unwrap(Effect.as(tap("list", Effect.void), blobs.list))
  }).pipe(
    Context.add(HeadStore, {
      get: (workspace) => tap("getHead", heads.get(workspace)),
      compareAndSet: (workspace, expected, next) => tap("compareAndSet", heads.compareAndSet(workspace, expected, next)),
      delete: (workspace, expected) => tap("deleteHead", heads.delete(workspace, expected)),
      list: Stream.unwrap(Effect.as(tap("listHeads", Effect.void), heads.list)),
      changes: (workspace) => (follows ? heads.changes(workspace) : Stream.never)
    })
  )
}

export const memory: Effect.Effect<StoreServices, never, Scope.Scope> = Layer.build(Stores.layerMemory)

export interface Opened {
  readonly fs: Algebra
  readonly snapshots: Snapshots
}

/** Opens a workspace over stores, for the scope. */
export const open = (
  stores: StoreServices,
  options: Partial<Repository.RepositoryOptions> = {}
): Effect.Effect<Opened, unknown, Scope.Scope> =>
  Effect.map(
    Layer.build(Layer.provide(Repository.layer({ workspace: "w", ...options }), Layer.succeedContext(stores))),
    (context) => ({ fs: Context.get(context, Filesystem), snapshots: Context.get(context, SnapshotsTag) })
  )

/** Returns the texts of all files and the targets of all links, by path. Directories have the text "/". */
export const contentsOf = (fs: Algebra): Effect.Effect<Record<string, string>, unknown> =>
  Effect.gen(function* () {
    const out: Record<string, string> = {}
    for (const entry of yield* Stream.runCollect(fs.walk("."))) {
      out[entry.path] =
        entry.kind === "directory"
          ? "/"
          : entry.kind === "symlink"
            ? `-> ${yield* fs.readLink(entry.path)}`
            : yield* fs.readString(entry.path)
    }
    return out
  })

/** Reads a workspace as another program would: by new layers over the stores. */
export const stored = (stores: StoreServices, workspace = "w"): Effect.Effect<Record<string, string>, unknown> =>
  Effect.scoped(Effect.flatMap(open(stores, { workspace }), ({ fs }) => contentsOf(fs)))
