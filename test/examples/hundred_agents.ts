/** Forks a workspace for many agents, and merges the changes that do not collide. The same program runs on every store. */
import { Context, Effect, Layer } from "effect"
import { Filesystem, type FsError, Repository, Snapshots } from "../../src/index.ts"

const openFork = (workspace: string) => Layer.build(Repository.layer({ workspace }))

/** Runs agents on forks of a workspace. `open` opens a fork for its agent: in this process, or on a runner of a cluster. */
export const runAgents = Effect.fn(function* <E, R>(
  workspace: string,
  count: number,
  agent: (n: number) => Effect.Effect<unknown, FsError.FsError, Filesystem.Filesystem>,
  open: (fork: string) => Layer.Layer<Filesystem.Filesystem, E, R>
) {
  const context = yield* Layer.build(Repository.layer({ workspace, author: "merge" }))
  const main = Context.get(context, Filesystem.Filesystem)
  const snapshots = Context.get(context, Snapshots.Snapshots)
  const before = yield* snapshots.view(yield* snapshots.snapshot({ tag: "before the agents" }))
  const forks = Array.from({ length: count }, (_, n) => `${workspace}, agent ${n}`)

  // A fork costs one head, whatever the size of the workspace.
  const work = (fork: string, n: number) =>
    Effect.andThen(Repository.fork(workspace, fork), Effect.provide(agent(n), open(fork)))
  yield* Effect.forEach(forks, work, { concurrency: 16, discard: true })

  const merge = Effect.fn(function* (fork: string) {
    const opened = yield* openFork(fork)
    const edited = Context.get(opened, Filesystem.Filesystem)
    const kept = Context.get(opened, Snapshots.Snapshots)
    const edits = yield* Effect.forEach(
      yield* kept.diff((yield* kept.list).at(-1)!),
      Effect.fn(function* ({ _tag, path }) {
        // The version from before the agents: if another fork has changed the file, the merge fails with Conflict.
        const ifMatch = _tag === "Added" ? null : yield* before.version(path)
        if (_tag === "Removed") return Effect.asVoid(main.delete(path, { ifMatch }))
        if ((yield* edited.stat(path)).kind === "directory") return Effect.asVoid(main.mkdir(path))
        const { content } = yield* edited.readBytes(path)
        return Effect.asVoid(main.writeBytes(path, content, { ifMatch }))
      })
    )
    // All changes of a fork are one commit, or none is made.
    yield* Effect.provideContext(Repository.transaction(Effect.all(edits)), context)
    return { fork, conflict: undefined as string | undefined }
  }, Effect.scoped)

  const results = yield* Effect.forEach(forks, (fork) =>
    Effect.catchTag(merge(fork), "Conflict", ({ path }) => Effect.succeed({ fork, conflict: path as string | undefined }))
  )
  return {
    merged: results.filter(({ conflict }) => conflict === undefined).map(({ fork }) => fork),
    conflicts: results.filter(({ conflict }) => conflict !== undefined)
  }
}, Effect.scoped)
