import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { make as makeSnapshots } from "../history/snapshots/service.ts"
import { Snapshots } from "../history/snapshots/tag.ts"
import { randomUUID } from "../runtime/node.ts"
import { BlobStore } from "./BlobStore.ts"
import type { StoreError } from "./errors.ts"
import * as Objects from "./format/objects.ts"
import { HeadStore } from "./HeadStore.ts"
import { makeStrategy } from "./history.ts"
import { makePort } from "./port.ts"
import * as Workspace from "./workspace.ts"

/**
 * The options of a workspace in a repository.
 *
 * @category models
 * @since 0.1.0
 */
export interface RepositoryOptions {
  /** The name of the workspace. A workspace that does not exist is created empty. */
  readonly workspace: string
  /**
   * The grouping of changes into commits. `each`: every change is a commit of its own. `batched`: changes that arrive during a
   * commit share the next commit. In both cases, a change returns after its commit.
   * @default "batched"
   */
  readonly durability?: "each" | "batched" | undefined
  /** The author in the heads of the commits. @default "fs-algebra" */
  readonly author?: string | undefined
}

const cacheBytes = 64 * 1024 * 1024

export const open = ({
  author = "fs-algebra",
  durability = "batched",
  mustExist,
  workspace: name
}: RepositoryOptions & Pick<Workspace.Settings, "mustExist">): Effect.Effect<
  Context.Context<Filesystem | Snapshots>,
  StoreError,
  BlobStore | HeadStore | Scope.Scope
> =>
  Effect.gen(function* () {
    const blobs = yield* BlobStore
    const heads = yield* HeadStore
    const workspace = yield* Workspace.make(Objects.make(blobs, { cacheBytes }), heads, {
      workspace: name,
      author,
      durability,
      mustExist
    })
    const place = { name, identity: randomUUID() }
    const port = makePort(workspace, place)
    const context = Context.make(Filesystem, makeAlgebra(port))
    return Context.add(context, Snapshots, makeSnapshots(makeStrategy(workspace, port, place), port))
  })
