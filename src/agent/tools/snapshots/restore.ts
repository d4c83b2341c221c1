/** Keeps the current state before a restore; the answer says how to restore it. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { makeShortIds } from "../../../history/snapshots/choice.ts"
import type { Operations, RestoreResult } from "../../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../../history/snapshots/value.ts"
import { NotFound } from "../../../model/FsError.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import { type Call, define, type ToolFailure, type Touch } from "../../definition.ts"
import { joinFitting } from "../../text/fit.ts"
import { chooseSnapshot, requireSnapshots, snapshotParameter } from "./choosing.ts"
import { Change, changeLine, changeOf, countChanges } from "./shown.ts"

interface Params {
  readonly snapshot_id?: string
  readonly paths?: ReadonlyArray<string>
  readonly dry_run?: boolean
}

interface RestoreRequest {
  readonly snapshots: Operations
  readonly from: FilesystemSnapshot
  readonly paths: ReadonlyArray<FsPath> | undefined
}

/** Refuses a path that exists neither now nor in the snapshot, because it is probably mistyped. */
const checkPaths = Effect.fnUntraced(function* (
  { from, paths = [], snapshots }: RestoreRequest,
  call: Call
): Effect.fn.Return<void, ToolFailure> {
  if (paths.length === 0) return
  const snapshotView = yield* snapshots.view(from)
  for (const path of paths) {
    if ((yield* call.filesystem.exists(path)) || (yield* snapshotView.exists(path))) continue
    return yield* Effect.fail(new NotFound({ operation: call.tool, path }))
  }
})

const requestOf = Effect.fnUntraced(function* (params: Params, call: Call): Effect.fn.Return<RestoreRequest, ToolFailure> {
  const snapshots = yield* requireSnapshots
  const paths = yield* Effect.forEach(params.paths ?? [], (path) => call.path(path, { argument: "paths" }))
  const from = yield* chooseSnapshot(snapshots, params.snapshot_id, call)
  const found: RestoreRequest = { snapshots, from, paths: paths.length === 0 ? undefined : paths }
  yield* checkPaths(found, call)
  return found
})

const touchOf = ({ _tag, path }: RestoreResult["changes"][number]): Touch => ({
  access: _tag === "Removed" ? "delete" : "write",
  path
})

const undoHint = (safety: FilesystemSnapshot, short: string, { paths }: RestoreRequest): string =>
  `The previous state is kept as ${safety.snapshotId}. To take this back, call restore with ${JSON.stringify({
    snapshot_id: short,
    ...(paths !== undefined && { paths })
  })}.`

export const restore = define({
  name: "restore",
  description:
    "Bring back all files, or some paths, as they were in a snapshot, all or nothing. The present state is kept first, so this can be undone.",
  parameters: Schema.Struct({
    snapshot_id: Schema.optionalKey(snapshotParameter),
    paths: Schema.optionalKey(
      Schema.Array(Schema.String).annotate({
        description: "Only these files and directories; what was not there then is removed. Default: everything"
      })
    ),
    dry_run: Schema.optionalKey(Schema.Boolean.annotate({ description: "Only show what would change" }))
  }),
  value: Schema.Struct({
    snapshot_id: Schema.String,
    dry_run: Schema.Boolean,
    changes: Schema.Array(Change),
    /** The id of the snapshot of the state before the restore. */
    safety_snapshot_id: Schema.optionalKey(Schema.String)
  }),
  does: "changes",
  past: "restores",
  idempotent: true,
  examples: [{ dry_run: true }, { snapshot_id: "3fa91c02", paths: ["src", "README.md"] }],
  touches: Effect.fnUntraced(function* (params, call) {
    if (params.dry_run === true) return []
    const { from, paths, snapshots } = yield* requestOf(params, call)
    return (yield* snapshots.restore(from, { paths, dryRun: true })).changes.map(touchOf)
  }),
  handle: Effect.fnUntraced(function* (params, call) {
    const dryRun = params.dry_run ?? false
    const request = yield* requestOf(params, call)
    const { from, paths, snapshots } = request
    const { changes: restored, safety } = yield* snapshots.restore(from, { paths, dryRun, safety: true })
    if (!dryRun) for (const { path } of restored) call.memory.forget(path)
    const changes = restored.map(changeOf)
    const short = makeShortIds(yield* snapshots.list)
    const head =
      changes.length === 0
        ? `Everything is already as in snapshot ${short(from)}: nothing changed`
        : `${dryRun ? "Would restore" : "Restored"} snapshot ${short(from)}: ${countChanges(changes)}`
    const tail = safety === undefined ? [] : [undoHint(safety, short(safety), request)]
    const lines = changes.map(changeLine)
    return {
      message: joinFitting(
        [head, ...tail, ...lines],
        call.settings,
        (shown) => `[cut: ${shown - 1 - tail.length} of ${lines.length} changes]`
      ),
      value: {
        snapshot_id: from.snapshotId,
        dry_run: dryRun,
        changes,
        ...(safety !== undefined && { safety_snapshot_id: safety.snapshotId })
      }
    }
  })
})
