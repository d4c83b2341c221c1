/**
 * What the debug view says over HTTP, as JSON: fields in snake_case, times as ISO 8601, sizes in bytes, paths relative to the root. The
 * page imports nothing of this but its types.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Time = Schema.String
const Tags = Schema.Record(Schema.String, Schema.String)

/**
 * What is shown.
 *
 * @since 0.1.0
 */
export const Meta = Schema.Struct({
  /** `dump`: a session that was written down. `workspace`: a directory as it is now, with its snapshots. */
  kind: Schema.Literals(["dump", "workspace"]),
  /** For the title: the name of the dump, or of the directory. */
  title: Schema.String,
  /** As `/api/switch` takes it; of a workspace the name of its root. */
  path: Schema.String,
  /** Another whenever what is shown has been read anew. */
  generation: Count,
  session_id: Schema.optionalKey(Schema.String),
  created_at: Schema.optionalKey(Time),
  tags: Tags,
  sessions: Count,
  slices: Count,
  events: Count,
  /** A dump without an archive has none. */
  has_filesystem: Schema.Boolean,
  has_journal: Schema.Boolean,
  /** What `at` and `with` may name. */
  snapshots: Count,
  /** Whether changes are told as they happen, by `/api/live`. */
  is_live: Schema.Boolean,
  /** What could not be shown, and why, in sentences for people. */
  problems: Schema.Array(Schema.String),
  version: Schema.String
})
/** @since 0.1.0 */
export type Meta = typeof Meta.Type

/**
 * A session of a dump.
 *
 * @since 0.1.0
 */
export const SessionInfo = Schema.Struct({
  session_id: Schema.String,
  parent_id: Schema.NullOr(Schema.String),
  created_at: Time,
  tags: Tags,
  slices: Count,
  items: Count
})
/** @since 0.1.0 */
export type SessionInfo = typeof SessionInfo.Type

/**
 * A slice of a session, without its items.
 *
 * @since 0.1.0
 */
export const SliceInfo = Schema.Struct({
  session_id: Schema.String,
  name: Schema.String,
  policy: Schema.Literals(["state", "log"]),
  items: Count
})
/** @since 0.1.0 */
export type SliceInfo = typeof SliceInfo.Type

/**
 * A page of a slice, as it is in the dump.
 *
 * @since 0.1.0
 */
export const SlicePage = Schema.Struct({
  session_id: Schema.String,
  name: Schema.String,
  policy: Schema.Literals(["state", "log"]),
  total: Count,
  offset: Count,
  items: Schema.Array(Schema.Unknown)
})
/** @since 0.1.0 */
export type SlicePage = typeof SlicePage.Type

/**
 * A call of a tool, or another item of a log that says when it was. The oldest first, over all sessions.
 *
 * @since 0.1.0
 */
export const Event = Schema.Struct({
  /** From 0, in the order of time. */
  index: Count,
  session_id: Schema.String,
  slice: Schema.String,
  /** `null` where the item does not say. */
  at: Schema.NullOr(Time),
  /** The tool, or the tag of the item, or the name of the slice. */
  name: Schema.String,
  /** Of a call of a tool. */
  call_id: Schema.optionalKey(Schema.String),
  success: Schema.optionalKey(Schema.Boolean),
  message: Schema.optionalKey(Schema.String),
  path: Schema.optionalKey(Schema.String),
  mode: Schema.optionalKey(Schema.String),
  size_bytes: Schema.optionalKey(Count),
  duration_millis: Schema.optionalKey(Schema.Number),
  /** All of the item. */
  item: Schema.Unknown
})
/** @since 0.1.0 */
export type Event = typeof Event.Type

/**
 * Events from an offset on.
 *
 * @since 0.1.0
 */
export const EventPage = Schema.Struct({ total: Count, offset: Count, items: Schema.Array(Event) })
/** @since 0.1.0 */
export type EventPage = typeof EventPage.Type

/**
 * A dump of the served directory, the newest first.
 *
 * @since 0.1.0
 */
export const DumpFile = Schema.Struct({
  path: Schema.String,
  size_bytes: Count,
  modified_at: Time,
  has_archive: Schema.Boolean,
  is_shown: Schema.Boolean
})
/** @since 0.1.0 */
export type DumpFile = typeof DumpFile.Type

/**
 * What files there are, all together.
 *
 * @since 0.1.0
 */
export const FilesystemMeta = Schema.Struct({
  /** Of the archive or the backend. */
  name: Schema.String,
  created_at: Schema.optionalKey(Time),
  /** Files and links. */
  file_count: Count,
  total_bytes: Count,
  /** Of the archive itself. */
  archive_bytes: Schema.optionalKey(Count),
  case_sensitive: Schema.Boolean,
  /** What was looked at: an id of `/api/snapshots`; left out for what is shown by itself. */
  at: Schema.optionalKey(Schema.String)
})
/** @since 0.1.0 */
export type FilesystemMeta = typeof FilesystemMeta.Type

/**
 * Directories are not listed, but for empty ones.
 *
 * @since 0.1.0
 */
export const TreeFile = Schema.Struct({
  path: Schema.String,
  size_bytes: Count,
  /** Left out for files. */
  kind: Schema.optionalKey(Schema.Literals(["symlink", "directory", "other"]))
})
/** @since 0.1.0 */
export type TreeFile = typeof TreeFile.Type

/**
 * The tree by directories.
 *
 * @since 0.1.0
 */
export interface TreeNode {
  readonly name: string
  readonly path: string
  readonly kind: "file" | "directory" | "symlink" | "other"
  /** Of a directory, of everything below. */
  readonly size_bytes: number
  readonly children?: ReadonlyArray<TreeNode>
}
/** @since 0.1.0 */
export const TreeNode: Schema.Codec<TreeNode> = Schema.Struct({
  name: Schema.String,
  path: Schema.String,
  kind: Schema.Literals(["file", "directory", "symlink", "other"]),
  size_bytes: Count,
  children: Schema.optionalKey(Schema.Array(Schema.suspend((): Schema.Codec<TreeNode> => TreeNode)))
})

/**
 * A file, as far as it can be shown.
 *
 * @since 0.1.0
 */
export const FileContent = Schema.Struct({
  path: Schema.String,
  kind: Schema.Literals(["text", "binary", "symlink"]),
  size_bytes: Count,
  /** By its first bytes, or for text by its name. */
  media_type: Schema.String,
  /** For people: "PNG image". */
  media_name: Schema.String,
  /** Text in UTF-8; bytes as base64; of a link, where it leads. */
  encoding: Schema.Literals(["utf-8", "base64"]),
  /** `null`: too large to be shown. */
  content: Schema.NullOr(Schema.String),
  /** Only `part` of the text is in `content`, or only the beginning where there is no `part`. */
  truncated: Schema.Boolean,
  /** Which part of a large text `content` is. Parts end with a line, unless one line alone is longer than 8 MiB. */
  part: Schema.optionalKey(
    Schema.Struct({
      /** From 0. */
      number: Count,
      /** The number, from 1, of the line that each part begins in. */
      first_lines: Schema.Array(Count),
      total_lines: Count
    })
  ),
  /** SHA-256 in hex, of the whole. */
  version: Schema.optionalKey(Schema.String),
  /** Such as "0644". */
  mode: Schema.optionalKey(Schema.String),
  modified_at: Schema.optionalKey(Time)
})
/** @since 0.1.0 */
export type FileContent = typeof FileContent.Type

/**
 * What became of one path.
 *
 * @since 0.1.0
 */
export const DiffEntry = Schema.Struct({
  change: Schema.Literals(["added", "modified", "deleted", "renamed"]),
  path: Schema.String,
  /** Of what was renamed. */
  from_path: Schema.optionalKey(Schema.String),
  kind: Schema.Literals(["file", "directory", "symlink", "other"]),
  size_before: Schema.optionalKey(Count),
  size_after: Schema.optionalKey(Count)
})
/** @since 0.1.0 */
export type DiffEntry = typeof DiffEntry.Type

/**
 * From `with` to `at`, in path order. `null`: what is shown by itself.
 *
 * @since 0.1.0
 */
export const Diff = Schema.Struct({
  from: Schema.NullOr(Schema.String),
  to: Schema.NullOr(Schema.String),
  changes: Schema.Array(DiffEntry)
})
/** @since 0.1.0 */
export type Diff = typeof Diff.Type

/**
 * What `at` and `with` may name, the latest first: snapshots of a workspace, or the other dumps that have an archive.
 *
 * @since 0.1.0
 */
export const SnapshotInfo = Schema.Struct({
  id: Schema.String,
  label: Schema.String,
  created_at: Time,
  tag: Schema.optionalKey(Schema.String),
  /** What was about to change something when it was taken. */
  tool: Schema.optionalKey(Schema.String),
  call_id: Schema.optionalKey(Schema.String)
})
/** @since 0.1.0 */
export type SnapshotInfo = typeof SnapshotInfo.Type

/**
 * One who changed a path, the latest first.
 *
 * @since 0.1.0
 */
export const HistoryItem = Schema.Struct({
  source: Schema.Literals(["tool", "journal"]),
  at: Schema.NullOr(Time),
  path: Schema.String,
  /** Of a move. */
  to_path: Schema.optionalKey(Schema.String),
  /** `write`, `edit`, `delete`, `move`, `mkdir`, `link`, `attributes`, or the name of the tool. */
  what: Schema.String,
  outcome: Schema.Literals(["done", "failed", "unanswered"]),
  message: Schema.optionalKey(Schema.String),
  size_bytes: Schema.optionalKey(Count),
  tool: Schema.optionalKey(Schema.String),
  call_id: Schema.optionalKey(Schema.String),
  session_id: Schema.optionalKey(Schema.String),
  /** Into `/api/events`. */
  event_index: Schema.optionalKey(Count),
  /** Into the journal. */
  position: Schema.optionalKey(Count),
  correlation_id: Schema.optionalKey(Schema.String),
  /** SHA-256 of the content then, where it is known. */
  version: Schema.optionalKey(Schema.String)
})
/** @since 0.1.0 */
export type HistoryItem = typeof HistoryItem.Type

/**
 * An entry of the journal, in a line.
 *
 * @since 0.1.0
 */
export const JournalItem = Schema.Struct({
  position: Count,
  at: Time,
  /** The tag: `FileWrite`, `FileWritten`, `FileFault`, … */
  kind: Schema.String,
  direction: Schema.Literals(["request", "answer", "other"]),
  path: Schema.optionalKey(Schema.String),
  to_path: Schema.optionalKey(Schema.String),
  correlation_id: Schema.optionalKey(Schema.String),
  /** A line for people. */
  summary: Schema.String,
  /** Of a FileFault. */
  fault: Schema.optionalKey(Schema.String),
  size_bytes: Schema.optionalKey(Count)
})
/** @since 0.1.0 */
export type JournalItem = typeof JournalItem.Type

/**
 * Entries of the journal, in the order that was asked for.
 *
 * @since 0.1.0
 */
export const JournalPage = Schema.Struct({
  /** The position of the end. */
  last: Count,
  items: Schema.Array(JournalItem),
  /** To be given as `before` (or `after`) for the next page. */
  next: Schema.NullOr(Count)
})
/** @since 0.1.0 */
export type JournalPage = typeof JournalPage.Type

/**
 * Changes that the journal has, the latest first: one for each that was asked for, with what became of it.
 *
 * @since 0.1.0
 */
export const JournalChanges = Schema.Struct({
  /** The position of the end. */
  last: Count,
  items: Schema.Array(HistoryItem),
  /** To be given as `before` for the next page. */
  next: Schema.NullOr(Count)
})
/** @since 0.1.0 */
export type JournalChanges = typeof JournalChanges.Type

/**
 * An entry whole, its contents as text where they are text.
 *
 * @since 0.1.0
 */
export const JournalEntry = Schema.Struct({
  item: JournalItem,
  /** As the journal's file has it, contents replaced by their sizes. */
  entry: Schema.Unknown,
  content: Schema.optionalKey(FileContent)
})
/** @since 0.1.0 */
export type JournalEntry = typeof JournalEntry.Type

/**
 * What has happened; who hears of it asks again for what it shows.
 *
 * @since 0.1.0
 */
export const LiveEvent = Schema.Union([
  /** `null`: so much that it is not named. */
  Schema.Struct({ type: Schema.Literal("files"), paths: Schema.NullOr(Schema.Array(Schema.String)) }),
  Schema.Struct({ type: Schema.Literal("snapshots"), count: Count }),
  Schema.Struct({ type: Schema.Literal("journal"), last: Count }),
  /** The dump that is shown was written again, or another is there. */
  Schema.Struct({ type: Schema.Literal("dumps") })
])
/** @since 0.1.0 */
export type LiveEvent = typeof LiveEvent.Type

/**
 * Every failure, with its status: 400, 403, 404, 422 (what is there cannot be read) or 500.
 *
 * @since 0.1.0
 */
export const Failure = Schema.Struct({
  error: Schema.String,
  message: Schema.String,
  path: Schema.optionalKey(Schema.String)
})
/** @since 0.1.0 */
export type Failure = typeof Failure.Type
