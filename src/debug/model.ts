/**
 * The JSON of the debug view's HTTP API: fields in snake_case, times as ISO 8601, sizes in bytes, paths relative to the root.
 * The page imports only the types of this module.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

const Count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const Time = Schema.String
const Tags = Schema.Record(Schema.String, Schema.String)

/**
 * The metadata of the shown source.
 *
 * @since 0.1.0
 */
export const Meta = Schema.Struct({
  /** The kind of source. `dump`: a recorded session. `workspace`: a filesystem or a store in its current state. */
  kind: Schema.Literals(["dump", "workspace"]),
  title: Schema.String,
  /** The path of the dump, as `/api/switch` takes it. For a filesystem, the name of its root; for a store, of its workspace. */
  path: Schema.String,
  /** A number that changes each time the server reads the source again. */
  generation: Count,
  session_id: Schema.optionalKey(Schema.String),
  created_at: Schema.optionalKey(Time),
  tags: Tags,
  sessions: Count,
  slices: Count,
  events: Count,
  /** True if the source has files. A dump without an archive has no files. */
  has_filesystem: Schema.Boolean,
  has_journal: Schema.Boolean,
  /**
   * The number of trees that the parameters `at` and `with` can name: the snapshots of a filesystem, the heads and snapshots of a
   * store, or the other dumps in the directory of a dump.
   */
  snapshots: Count,
  /** True if `/api/live` reports changes as they happen. */
  is_live: Schema.Boolean,
  /** The problems that prevent parts of the source from being shown, as sentences for people. */
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
 * A page of the items of a slice, as they are in the dump.
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
 * A call of a tool, or another item of a log. Lists contain the events of all sessions in the order of time.
 *
 * @since 0.1.0
 */
export const Event = Schema.Struct({
  /** The position in the order of time, from 0. */
  index: Count,
  session_id: Schema.String,
  slice: Schema.String,
  /** The time; `null` if the item has none. */
  at: Schema.NullOr(Time),
  /** The name of the tool. For an item that is not a call: its `_tag` or `type` or, without these, the name of its slice. */
  name: Schema.String,
  call_id: Schema.optionalKey(Schema.String),
  success: Schema.optionalKey(Schema.Boolean),
  message: Schema.optionalKey(Schema.String),
  path: Schema.optionalKey(Schema.String),
  mode: Schema.optionalKey(Schema.String),
  size_bytes: Schema.optionalKey(Count),
  duration_millis: Schema.optionalKey(Schema.Number),
  item: Schema.Unknown
})
/** @since 0.1.0 */
export type Event = typeof Event.Type

/**
 * A page of events, which begins at `offset`.
 *
 * @since 0.1.0
 */
export const EventPage = Schema.Struct({ total: Count, offset: Count, items: Schema.Array(Event) })
/** @since 0.1.0 */
export type EventPage = typeof EventPage.Type

/**
 * A dump of the served directory. Lists begin with the newest dump.
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
 * The metadata of a tree: the number and size of its files, and the time of the tree.
 *
 * @since 0.1.0
 */
export const FilesystemMeta = Schema.Struct({
  name: Schema.String,
  created_at: Schema.optionalKey(Time),
  file_count: Count,
  total_bytes: Count,
  /** The size of the archive file, in bytes. */
  archive_bytes: Schema.optionalKey(Count),
  case_sensitive: Schema.Boolean,
  /** The id of the snapshot that is shown, as in `/api/snapshots`; absent for the current files. */
  at: Schema.optionalKey(Schema.String)
})
/** @since 0.1.0 */
export type FilesystemMeta = typeof FilesystemMeta.Type

/**
 * A file of the flat list. Directories are listed only if they are empty.
 *
 * @since 0.1.0
 */
export const TreeFile = Schema.Struct({
  path: Schema.String,
  size_bytes: Count,
  /** The kind; absent for files. */
  kind: Schema.optionalKey(Schema.Literals(["symlink", "directory", "other"]))
})
/** @since 0.1.0 */
export type TreeFile = typeof TreeFile.Type

/**
 * A file or directory in the nested form of the tree.
 *
 * @since 0.1.0
 */
export interface TreeNode {
  readonly name: string
  readonly path: string
  readonly kind: "file" | "directory" | "symlink" | "other"
  /** The size of a file, or of all files below a directory, in bytes. */
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
 * A file and its content, if the content can be shown.
 *
 * @since 0.1.0
 */
export const FileContent = Schema.Struct({
  path: Schema.String,
  kind: Schema.Literals(["text", "binary", "symlink"]),
  size_bytes: Count,
  /** The media type, from the first bytes of the file or, for text, from its name. */
  media_type: Schema.String,
  media_name: Schema.String,
  /** The encoding of `content`: UTF-8 for text and for the target of a link, base64 for bytes. */
  encoding: Schema.Literals(["utf-8", "base64"]),
  /** The content; `null` if it is too large to show. */
  content: Schema.NullOr(Schema.String),
  /** True if `content` is only a part of the text: the part that `part` describes or, without `part`, the beginning. */
  truncated: Schema.Boolean,
  /**
   * The part of a large text that `content` contains. A part ends at the end of a line, unless the line is longer than 8 MiB.
   */
  part: Schema.optionalKey(
    Schema.Struct({
      /** The number of the part, from 0. */
      number: Count,
      /** The number of the line in which each part begins, counted from 1. */
      first_lines: Schema.Array(Count),
      total_lines: Count
    })
  ),
  /** The SHA-256 of the whole content, in hexadecimal. */
  version: Schema.optionalKey(Schema.String),
  mode: Schema.optionalKey(Schema.String),
  modified_at: Schema.optionalKey(Time)
})
/** @since 0.1.0 */
export type FileContent = typeof FileContent.Type

/**
 * A changed path, and the kind of its change.
 *
 * @since 0.1.0
 */
export const DiffEntry = Schema.Struct({
  change: Schema.Literals(["added", "modified", "deleted", "renamed"]),
  path: Schema.String,
  /** The old path of a renamed file; absent for other changes. */
  from_path: Schema.optionalKey(Schema.String),
  kind: Schema.Literals(["file", "directory", "symlink", "other"]),
  size_before: Schema.optionalKey(Count),
  size_after: Schema.optionalKey(Count)
})
/** @since 0.1.0 */
export type DiffEntry = typeof DiffEntry.Type

/**
 * The changes from one tree to another, in path order. `null` means the current tree of the source.
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
 * A tree that `at` and `with` can name: a snapshot, a head of a workspace in a store, or another dump with an archive. Lists begin
 * with the latest.
 *
 * @since 0.1.0
 */
export const SnapshotInfo = Schema.Struct({
  id: Schema.String,
  label: Schema.String,
  created_at: Time,
  tag: Schema.optionalKey(Schema.String),
  tool: Schema.optionalKey(Schema.String),
  call_id: Schema.optionalKey(Schema.String)
})
/** @since 0.1.0 */
export type SnapshotInfo = typeof SnapshotInfo.Type

/**
 * A change of a path. Lists begin with the latest change.
 *
 * @since 0.1.0
 */
export const HistoryItem = Schema.Struct({
  source: Schema.Literals(["tool", "journal"]),
  at: Schema.NullOr(Time),
  path: Schema.String,
  to_path: Schema.optionalKey(Schema.String),
  /** The kind of change: `write`, `edit`, `delete`, `move`, `mkdir`, `link`, `attributes`, or the name of the tool. */
  what: Schema.String,
  outcome: Schema.Literals(["done", "failed", "unanswered"]),
  message: Schema.optionalKey(Schema.String),
  size_bytes: Schema.optionalKey(Count),
  tool: Schema.optionalKey(Schema.String),
  call_id: Schema.optionalKey(Schema.String),
  session_id: Schema.optionalKey(Schema.String),
  /** The index of the event in `/api/events`. */
  event_index: Schema.optionalKey(Count),
  position: Schema.optionalKey(Count),
  correlation_id: Schema.optionalKey(Schema.String),
  /** The SHA-256 of the content after the change, if known. */
  version: Schema.optionalKey(Schema.String)
})
/** @since 0.1.0 */
export type HistoryItem = typeof HistoryItem.Type

/**
 * The summary of a journal entry, for lists.
 *
 * @since 0.1.0
 */
export const JournalItem = Schema.Struct({
  position: Count,
  at: Time,
  /** The tag of the entry: `FileWrite`, `FileWritten`, `FileFault`, … */
  kind: Schema.String,
  direction: Schema.Literals(["request", "answer", "other"]),
  path: Schema.optionalKey(Schema.String),
  to_path: Schema.optionalKey(Schema.String),
  correlation_id: Schema.optionalKey(Schema.String),
  summary: Schema.String,
  fault: Schema.optionalKey(Schema.String),
  size_bytes: Schema.optionalKey(Count)
})
/** @since 0.1.0 */
export type JournalItem = typeof JournalItem.Type

/**
 * A page of the journal, in the requested order.
 *
 * @since 0.1.0
 */
export const JournalPage = Schema.Struct({
  last: Count,
  items: Schema.Array(JournalItem),
  /** The value of `before` or `after` that requests the next page; `null` on the last page. */
  next: Schema.NullOr(Count)
})
/** @since 0.1.0 */
export type JournalPage = typeof JournalPage.Type

/**
 * A page of the changes in the journal, latest first. A change is a request with its outcome.
 *
 * @since 0.1.0
 */
export const JournalChanges = Schema.Struct({
  last: Count,
  items: Schema.Array(HistoryItem),
  /** The value of `before` that requests the next page; `null` on the last page. */
  next: Schema.NullOr(Count)
})
/** @since 0.1.0 */
export type JournalChanges = typeof JournalChanges.Type

/**
 * A complete journal entry. Content that is text is returned as text.
 *
 * @since 0.1.0
 */
export const JournalEntry = Schema.Struct({
  item: JournalItem,
  /** The entry as in the journal's file, with contents replaced by their sizes and hashes. */
  entry: Schema.Unknown,
  content: Schema.optionalKey(FileContent)
})
/** @since 0.1.0 */
export type JournalEntry = typeof JournalEntry.Type

/**
 * An event after which a client must request the shown state again.
 *
 * @since 0.1.0
 */
export const LiveEvent = Schema.Union([
  /** The changed paths; `null` if they are unknown or too many. */
  Schema.Struct({ type: Schema.Literal("files"), paths: Schema.NullOr(Schema.Array(Schema.String)) }),
  Schema.Struct({ type: Schema.Literal("snapshots"), count: Count }),
  Schema.Struct({ type: Schema.Literal("journal"), last: Count }),
  /** The shown dump was written again, or the list of dumps has changed. */
  Schema.Struct({ type: Schema.Literal("dumps") })
])
/** @since 0.1.0 */
export type LiveEvent = typeof LiveEvent.Type

/**
 * The body of a response of the API with status 400, 403, 404, 405, 413, 415, 422 (the source cannot be read) or 500.
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
