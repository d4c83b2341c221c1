/**
 * The snapshot tools. A restore first takes a snapshot of the current state, and its result says how to return to that state.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { Snapshots } from "../../history/snapshots/tag.ts"
import { findCandidates, isSafety, latest, makeShortIds, type FilesystemSnapshot } from "../../history/snapshots/value.ts"
import type { Details, Operations, RestoreResult } from "../../history/snapshots/operations.ts"
import type { Change as TreeChange } from "../../history/tree.ts"
import { InvalidArgument, NotFound } from "../../model/FsError.ts"
import { type FsPath, isWithin, root } from "../../model/FsPath.ts"
import { checkpointTag } from "../policy/checkpoint.ts"
import { type Call, define, optional, refused, type ToolFailure, type Touch } from "../definition.ts"
import { joinFitting } from "../text/fit.ts"
import { formatCount as plural } from "../../model/words.ts"

const noSnapshots = refused("Snapshots are not available.", "Provide a layer of fs-algebra's Snapshots to the tools.")

export const requireSnapshots: Effect.Effect<Operations, ToolFailure> = Effect.flatMap(
  Effect.serviceOption(Snapshots),
  Option.match({ onNone: () => Effect.fail<ToolFailure>(noSnapshots), onSome: Effect.succeed })
)

const maxExamples = 5

const describeSnapshot = (all: ReadonlyArray<FilesystemSnapshot>, { tag, ...snapshot }: FilesystemSnapshot): string =>
  `${makeShortIds(all)({ tag, ...snapshot } as FilesystemSnapshot)}${tag === undefined ? "" : ` (${tag})`}`

const refuseChoice = (
  all: ReadonlyArray<FilesystemSnapshot>,
  found: ReadonlyArray<FilesystemSnapshot>,
  text: string
): ToolFailure => {
  if (all.every(isSafety) && found.length === 0) {
    return refused("There is no snapshot yet.", "Take a snapshot of the current files with the tool snapshot.")
  }
  const quoted = JSON.stringify(text.slice(0, 100))
  if (found.length === 0) return refused(`There is no snapshot ${quoted}.`, "List the snapshots with the tool snapshots.")
  const examples = found.slice(-maxExamples).map((snapshot) => describeSnapshot(all, snapshot))
  return refused(`${quoted} matches ${plural(found.length, "snapshot")}.`, `Give more of the id: ${examples.join(", ")}.`)
}

export const snapshotParameter = Schema.String.annotate({
  description: 'Beginning of its id, a tag, or "latest". Default: latest'
})

/**
 * Finds a snapshot by a unique beginning of its id, by a unique tag, or by "latest". The checkpoint of the current call is
 * ignored.
 */
export const chooseSnapshot = Effect.fnUntraced(function* (
  snapshots: Operations,
  text: string | undefined,
  { callId, tool }: Call
): Effect.fn.Return<FilesystemSnapshot, ToolFailure> {
  const ownTag = checkpointTag(tool, callId)
  const all = (yield* snapshots.list).filter(({ tag }) => tag !== ownTag)
  const wanted = text?.trim() ?? latest
  const found = findCandidates(all, wanted)
  return found.length === 1 ? found[0]! : yield* Effect.fail(refuseChoice(all, found, wanted))
})

const OptionalCount = Schema.optionalKey(Schema.Int)

const Snapshot = Schema.Struct({
  snapshot_id: Schema.String,
  created_at: Schema.String,
  tag: Schema.optionalKey(Schema.String),
  tool: Schema.optionalKey(Schema.String),
  call_id: Schema.optionalKey(Schema.String),
  files: OptionalCount,
  size_bytes: OptionalCount,
  files_changed: OptionalCount,
  lines_added: OptionalCount,
  lines_removed: OptionalCount
})
type Snapshot = typeof Snapshot.Type

const snapshotOf = ({ createdAt, snapshotId, tag }: FilesystemSnapshot): Snapshot => ({
  snapshot_id: snapshotId,
  created_at: DateTime.formatIso(createdAt),
  ...(tag !== undefined && { tag })
})

const snapshotWithDetails = ({
  bytes,
  callId,
  files,
  filesChanged,
  linesAdded,
  linesRemoved,
  snapshot,
  tool
}: Details): Snapshot => ({
  ...snapshotOf(snapshot),
  ...(tool !== undefined && { tool }),
  ...(callId !== undefined && { call_id: callId }),
  files,
  size_bytes: bytes,
  ...(filesChanged !== undefined && { files_changed: filesChanged }),
  ...(linesAdded !== undefined && { lines_added: linesAdded }),
  ...(linesRemoved !== undefined && { lines_removed: linesRemoved })
})

export const changed = ({
  files_changed: files,
  lines_added: added,
  lines_removed: removed
}: Pick<Snapshot, "files_changed" | "lines_added" | "lines_removed">): string =>
  [
    ...(files === undefined ? [] : [`${plural(files, "file")} changed`]),
    ...(added === undefined || removed === undefined ? [] : [`+${added} -${removed}`])
  ].join(", ")

const snapshotLine = (snapshot: Snapshot, short: string): string => {
  const { call_id: call, created_at: created, files, tag, tool } = snapshot
  const facts = [
    ...(files === undefined ? [] : [plural(files, "file")]),
    changed(snapshot),
    ...(tool === undefined ? [] : [call === undefined ? `by ${tool}` : `by ${tool}, call ${call}`])
  ].filter((fact) => fact !== "")
  return `${short}${tag === undefined ? "" : ` ${JSON.stringify(tag)}`} ${created}${facts.length === 0 ? "" : `: ${facts.join("; ")}`}`
}

const kinds = { Added: "added", Modified: "modified", Removed: "removed" } as const
const letters = { added: "A", modified: "M", removed: "D" } as const

export const Change = Schema.Struct({ path: Schema.String, change: Schema.Literals(["added", "modified", "removed"]) })
export type Change = typeof Change.Type

/** Formats a path. The bytes of a name that is not valid text are shown as hexadecimal escapes. */
const printablePath = (path: string): string =>
  path
    .split("/")
    .map((name) => (name.startsWith("\0") ? name.slice(1).replace(/../g, String.raw`\x$&`) : name))
    .join("/")

export const changeOf = ({ _tag, path }: TreeChange): Change => ({ path: printablePath(path), change: kinds[_tag] })

export const changeLine = ({ change, path }: Change): string => `${letters[change]} ${path}`

const countChanges = (changes: ReadonlyArray<Change>): string =>
  (["added", "modified", "removed"] as const)
    .map((kind) => [changes.filter(({ change }) => change === kind).length, kind] as const)
    .filter(([count]) => count > 0)
    .map(([count, kind]) => `${count} ${kind}`)
    .join(", ")

const maxTagLength = 1000

// oxlint-disable-next-line no-control-regex
const isValidTag = (tag: string): boolean =>
  tag.length <= maxTagLength && tag.isWellFormed() && !/[\u0000-\u001f\u007f]/.test(tag)

const invalidTag = (tool: string): InvalidArgument =>
  new InvalidArgument({
    operation: tool,
    path: root,
    argument: "tag",
    detail: "it must be one line of at most 1,000 characters"
  })

export const snapshot = define({
  name: "snapshot",
  description: "Take a snapshot of all files, which restore can bring back. Take one before a risky change.",
  parameters: Schema.Struct({
    tag: optional(Schema.String, "A name for the snapshot: one line of text")
  }),
  value: Snapshot,
  does: "adds",
  past: "keeps",
  idempotent: false,
  examples: [{ tag: "tests pass" }, {}],
  touches: () => Effect.succeed([]),
  handle: Effect.fnUntraced(function* ({ tag }, { callId, tool }) {
    const snapshots = yield* requireSnapshots
    const label = tag?.trim() === "" ? undefined : tag?.trim()
    if (label !== undefined && !isValidTag(label)) return yield* Effect.fail(invalidTag(tool))
    const taken = yield* snapshots.snapshot({ tag: label, tool, callId })
    const value = snapshotWithDetails(yield* snapshots.details(taken))
    const changesSince = changed(value)
    return {
      message: `Took snapshot ${taken.snapshotId}: ${plural(value.files ?? 0, "file")}${changesSince === "" ? "" : `; ${changesSince}`}`,
      value
    }
  })
})

const maxDetailedSnapshots = 100

export const snapshots = define({
  name: "snapshots",
  description: "List the snapshots, newest first: id, tag, time, and what changed.",
  parameters: Schema.Struct({}),
  value: Schema.Struct({ snapshots: Schema.Array(Snapshot) }),
  does: "reads",
  past: "shows",
  idempotent: true,
  examples: [{}],
  touches: () => Effect.succeed([]),
  handle: Effect.fnUntraced(function* (_params, call) {
    const history = yield* requireSnapshots
    const all = yield* history.list
    const short = makeShortIds(all)
    const found = yield* Effect.forEach([...all].reverse(), (one, index) =>
      index < maxDetailedSnapshots
        ? Effect.map(history.details(one), (details) => ({ short: short(one), value: snapshotWithDetails(details) }))
        : Effect.succeed({ short: short(one), value: snapshotOf(one) })
    )
    const lines = found.map(({ short: id, value }) => snapshotLine(value, id))
    return {
      message:
        lines.length === 0
          ? "There is no snapshot yet. Take a snapshot of the current files with the tool snapshot."
          : joinFitting(lines, call.settings, (shown) => `[cut: the newest ${shown} of ${plural(lines.length, "snapshot")}]`),
      value: { snapshots: found.map(({ value }) => value) }
    }
  })
})

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
  `The previous state is kept as snapshot ${safety.snapshotId}. To undo this restore, call restore with ${JSON.stringify({
    snapshot_id: short,
    ...(paths !== undefined && { paths })
  })}.`

/** The number of kept files that the answer to a restore names. */
const maxNamed = 5

export const restore = define({
  name: "restore",
  description:
    "Restore all files, or the given paths, from a snapshot. A failed restore changes nothing. A snapshot of the previous state allows an undo.",
  parameters: Schema.Struct({
    snapshot_id: Schema.optionalKey(snapshotParameter),
    paths: optional(
      Schema.Array(Schema.String),
      "Only these files and directories; entries that the snapshot lacks are removed. Default: everything"
    ),
    dry_run: optional(Schema.Boolean, "Only show what would change")
  }),
  value: Schema.Struct({
    snapshot_id: Schema.String,
    dry_run: Schema.Boolean,
    changes: Schema.Array(Change),
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
    // A policy may have kept files that are not as in the snapshot.
    const kept =
      changes.length > 0
        ? []
        : (yield* snapshots.diff(from)).filter(({ path }) => paths === undefined || paths.some((top) => isWithin(top, path)))
    const head =
      changes.length === 0
        ? kept.length === 0
          ? `Nothing changed: all files are already as in snapshot ${short(from)}`
          : `Nothing changed: ${countChanges(kept.map(changeOf))} since snapshot ${short(from)} stay, because their restore is not permitted: ${kept
              .slice(0, maxNamed)
              .map(({ path }) => JSON.stringify(path))
              .join(", ")}${kept.length > maxNamed ? ", …" : ""}`
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
