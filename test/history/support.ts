import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { decorate, type Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import { fastDirectory } from "../backends/posixHost.ts"

export type SnapshotLayer = Layer.Layer<Filesystem | Snapshots.Snapshots, unknown>

/** A root and, outside it, a git directory and a path that nothing may create. */
export interface Place {
  readonly root: string
  readonly gitDir: string
  readonly trap: string
}

export const place: Effect.Effect<Place, never, Scope.Scope> = Effect.map(fastDirectory, (top) => {
  Fs.mkdirSync(join(top, "root"))
  return { root: join(top, "root"), gitDir: join(top, "store"), trap: join(top, "trap") }
})

/** Provides a directory, and snapshots of it in a git directory. */
export const inGit = (
  { gitDir, root }: Pick<Place, "gitDir" | "root">,
  options: Snapshots.LayerOptions = {},
  hostOptions: Partial<PosixHost.PosixHostOptions> = {}
) => Snapshots.layerGit({ gitDir, ...options }).pipe(Layer.provideMerge(PosixHost.layer({ root, ...hostOptions })))

/** Provides a new directory on the host. */
export const host = Layer.unwrap(Effect.map(fastDirectory, (root) => PosixHost.layer({ root })))

/** Each kind of snapshots, with a filesystem whose default is this kind. */
export const byKind = (options: Snapshots.LayerOptions): Record<"memory" | "git" | "archive", SnapshotLayer> => {
  const snapshots = Snapshots.layerWith(options)
  return {
    memory: snapshots.pipe(Layer.provideMerge(InMemory.layer())),
    git: snapshots.pipe(Layer.provideMerge(host)),
    archive: snapshots.pipe(Layer.provideMerge(InMemory.layer({ tree: { sub: {} } }).pipe(decorate(subdirectory("sub")))))
  }
}

export const shown = (changes: ReadonlyArray<Snapshots.Change>) => changes.map(({ _tag, path }) => `${_tag} ${path}`)

export const idsOf = (snapshots: ReadonlyArray<Snapshots.FilesystemSnapshot>) => snapshots.map(({ snapshotId }) => snapshotId)
