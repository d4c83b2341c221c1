import * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import type { Details } from "../../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../../history/snapshots/value.ts"
import type { Change as TreeChange } from "../../../history/tree.ts"
import { plural } from "../../text/words.ts"

const OptionalCount = Schema.optionalKey(Schema.Int)

export const Snapshot = Schema.Struct({
  snapshot_id: Schema.String,
  /** The time in UTC, with milliseconds. */
  created_at: Schema.String,
  tag: Schema.optionalKey(Schema.String),
  /** The tool that took the snapshot, or the tool whose change it precedes, and the id of the call. */
  tool: Schema.optionalKey(Schema.String),
  call_id: Schema.optionalKey(Schema.String),
  files: OptionalCount,
  size_bytes: OptionalCount,
  /** The changes since the previous snapshot. */
  files_changed: OptionalCount,
  lines_added: OptionalCount,
  lines_removed: OptionalCount
})
export type Snapshot = typeof Snapshot.Type

export const snapshotOf = ({ createdAt, snapshotId, tag }: FilesystemSnapshot): Snapshot => ({
  snapshot_id: snapshotId,
  created_at: DateTime.formatIso(createdAt),
  ...(tag !== undefined && { tag })
})

export const snapshotWithDetails = ({
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

/** Formats the known counts as `3 files changed, +10 -2`. */
export const changed = ({
  files_changed: files,
  lines_added: added,
  lines_removed: removed
}: Pick<Snapshot, "files_changed" | "lines_added" | "lines_removed">): string =>
  [
    ...(files === undefined ? [] : [`${plural(files, "file")} changed`]),
    ...(added === undefined || removed === undefined ? [] : [`+${added} -${removed}`])
  ].join(", ")

/** Formats a snapshot as `3fa91c02 "works" 2026-…Z: 42 files; 3 files changed, +10 -2; by edit_file, call toolu_01`. */
export const snapshotLine = (snapshot: Snapshot, short: string): string => {
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

/** Formats a path. A name that is not valid text is kept by its bytes, and shown as hexadecimal escapes. */
const printablePath = (path: string): string =>
  path
    .split("/")
    .map((name) => (name.startsWith("\0") ? name.slice(1).replace(/../g, String.raw`\x$&`) : name))
    .join("/")

export const changeOf = ({ _tag, path }: TreeChange): Change => ({ path: printablePath(path), change: kinds[_tag] })

/** Formats a change as git's --name-status does. */
export const changeLine = ({ change, path }: Change): string => `${letters[change]} ${path}`

/** Formats the counts as `2 added, 1 modified`. */
export const countChanges = (changes: ReadonlyArray<Change>): string =>
  (["added", "modified", "removed"] as const)
    .map((kind) => [changes.filter(({ change }) => change === kind).length, kind] as const)
    .filter(([count]) => count > 0)
    .map(([count, kind]) => `${count} ${kind}`)
    .join(", ")
