/** Shows the commits of a store as read-only filesystems, for programs that show many workspaces. */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { type Algebra, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import type { Operations as Snapshots } from "../history/Snapshots.ts"
import { make as makeSnapshots } from "../history/snapshots/service.ts"
import { accessDenied } from "../model/Fault.ts"
import { parse } from "../model/FsPath.ts"
import type { Difference } from "../port/history.ts"
import { BlobStore } from "./BlobStore.ts"
import { StoreError } from "./errors.ts"
import type { DirectoryEntry } from "./format/nodes.ts"
import * as Objects from "./format/objects.ts"
import { type Head, HeadStore } from "./HeadStore.ts"
import { differences, type Historic, makeStrategy } from "./history.ts"
import { headOf } from "./past.ts"
import { makeView } from "./port.ts"
import { lookup } from "./drafts.ts"

/** The files of a commit or, with `snapshot`, of one of the commit's snapshots. */
export interface TreeId {
  /** The hash of the root node. */
  readonly root: string
  readonly snapshot?: string | undefined
}

export interface Listed {
  readonly workspace: string
  readonly head: Result.Result<Head, StoreError>
}

export interface Heads {
  /** The workspaces in the order of their names. A workspace whose head is damaged has an error instead of a head. */
  readonly workspaces: ReadonlyArray<Listed>
  /** The error for damaged names. `workspaces` does not contain these names. */
  readonly damage: StoreError | undefined
}

export interface Browser {
  readonly heads: Effect.Effect<Heads, StoreError>
  /** Returns the head. Fails with `missing` if there is no such workspace. */
  readonly head: (workspace: string) => Effect.Effect<Head, StoreError>
  readonly view: (tree: TreeId, name: string) => Effect.Effect<Algebra, StoreError>
  /** Returns the snapshots of a commit. All changes of the snapshots fail. */
  readonly snapshots: (root: string, name: string) => Effect.Effect<Snapshots, StoreError>
  readonly differences: (from: TreeId, to: TreeId) => Effect.Effect<ReadonlyArray<Difference>, StoreError>
}

const cacheBytes = 64 * 1024 * 1024
const headsAtOnce = 16

export const make: Effect.Effect<Browser, never, BlobStore | HeadStore> = Effect.gen(function* () {
  const heads = yield* HeadStore
  const objects = Objects.make(yield* BlobStore, { cacheBytes })

  const filesOf = ({ root: hash, snapshot }: TreeId): Effect.Effect<DirectoryEntry, StoreError> =>
    Effect.gen(function* () {
      const { files, snapshots } = yield* objects.root(hash)
      if (snapshot === undefined) return files
      const path = parse(`${snapshot}/tree`)
      const found = typeof path === "string" ? yield* lookup(objects, { files: snapshots, snapshots }, path) : undefined
      if (found?.kind === "directory") return { ...found, name: "" }
      const detail = `the commit ${hash} has no snapshot ${JSON.stringify(snapshot)}`
      return yield* Effect.fail(new StoreError({ reason: "missing", detail }))
    })

  return {
    heads: Effect.gen(function* () {
      const names: Array<string> = []
      const damage = yield* Stream.runForEach(heads.list, (name) => Effect.sync(() => void names.push(name))).pipe(
        Effect.as(undefined),
        Effect.catch((error) => (error.reason === "corrupt" ? Effect.succeed(error) : Effect.fail(error)))
      )
      const all = yield* Effect.forEach(
        names.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)),
        (workspace) => Effect.map(Effect.result(heads.get(workspace)), (head) => ({ workspace, head })),
        { concurrency: headsAtOnce }
      )
      // A workspace that was deleted after the list was read has no head.
      const workspaces = all.flatMap(({ head, workspace }): ReadonlyArray<Listed> => {
        if (Result.isFailure(head)) return [{ workspace, head: Result.fail(head.failure) }]
        return head.success === undefined ? [] : [{ workspace, head: Result.succeed(head.success) }]
      })
      return { workspaces, damage }
    }),
    head: (workspace) => headOf(heads, workspace),
    view: (tree, name) =>
      Effect.map(filesOf(tree), (files) =>
        makeAlgebra(makeView(objects, { files, snapshots: files }, { name, identity: `${tree.root}/${tree.snapshot ?? ""}` }))
      ),
    snapshots: (root, name) =>
      Effect.map(objects.root(root), (draft) => {
        const readOnly = Effect.fail(accessDenied("readOnly"))
        const workspace: Historic = {
          objects,
          draft: Effect.succeed(draft),
          observe: () => Effect.void,
          submit: () => readOnly,
          transaction: (effect) => effect
        }
        const place = { name, identity: root }
        const view = makeView(objects, draft, place)
        return makeSnapshots(makeStrategy(workspace, view, place), view)
      }),
    differences: (from, to) =>
      Effect.gen(function* () {
        return yield* differences(objects, yield* filesOf(from), yield* filesOf(to))
      })
  }
})
