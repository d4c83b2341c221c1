/** Snapshots and what differs between them, in the words and the fields of the tools. */
import * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import type { Details } from "../../../history/snapshots/operations.ts"
import type { FilesystemSnapshot } from "../../../history/snapshots/value.ts"
import type { Change as TreeChange } from "../../../history/tree.ts"
import { plural } from "../../text/words.ts"

const Count = Schema.optionalKey(Schema.Int)

export const Snapshot = Schema.Struct({
  snapshot_id: Schema.String,
  /** In UTC, to the millisecond. */
  created_at: Schema.String,
  tag: Schema.optionalKey(Schema.String),
  /** The tool that took it, or was about to change something, and its call. */
  tool: Schema.optionalKey(Schema.String),
  call_id: Schema.optionalKey(Schema.String),
  files: Count,
  size_bytes: Count,
  /** Since the snapshot before it. */
  files_changed: Count,
  lines_added: Count,
  lines_removed: Count
})
export type Snapshot = typeof Snapshot.Type

export const snapshotOf = ({ createdAt, snapshotId, tag }: FilesystemSnapshot): Snapshot => ({
  snapshot_id: snapshotId,
  created_at: DateTime.formatIso(createdAt),
  ...(tag !== undefined && { tag })
})

export const detailed = ({
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

/** `3 files changed, +10 -2`, as far as that is known. */
export const changed = ({
  files_changed: files,
  lines_added: added,
  lines_removed: removed
}: Pick<Snapshot, "files_changed" | "lines_added" | "lines_removed">): string =>
  [
    ...(files === undefined ? [] : [`${plural(files, "file")} changed`]),
    ...(added === undefined || removed === undefined ? [] : [`+${added} -${removed}`])
  ].join(", ")

/** `3fa91c02 "works" 2026-…Z: 42 files; 3 files changed, +10 -2; by edit_file, call toolu_01` */
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

/** A name of a machine that is no text is known by its bytes in hexadecimal. */
const printable = (path: string): string =>
  path
    .split("/")
    .map((name) => (name.startsWith("\0") ? name.slice(1).replace(/../g, String.raw`\x$&`) : name))
    .join("/")

export const changeOf = ({ _tag, path }: TreeChange): Change => ({ path: printable(path), change: kinds[_tag] })

/** As git's --name-status shows it. */
export const changeLine = ({ change, path }: Change): string => `${letters[change]} ${path}`

/** `2 added, 1 modified` */
export const countChanges = (changes: ReadonlyArray<Change>): string =>
  (["added", "modified", "removed"] as const)
    .map((kind) => [changes.filter(({ change }) => change === kind).length, kind] as const)
    .filter(([count]) => count > 0)
    .map(([count, kind]) => `${count} ${kind}`)
    .join(", ")
