/**
 * The messages between a remote filesystem and its server.
 *
 * `FilesystemRpcs` has two parts. The operations of the algebra have the names of the algebra. The operations of the port
 * begin with `port.`; the client derives its filesystem from them.
 *
 * A path of the port may contain segments that no caller can write, so its schema accepts any string. The server checks
 * these paths.
 */
import * as Schema from "effect/Schema"
import * as Rpc from "effect/rpc/Rpc"
import * as RpcGroup from "effect/rpc/RpcGroup"
import * as RpcMiddleware from "effect/rpc/RpcMiddleware"
import {
  DeleteResult,
  EditResult,
  FileEntry,
  FileStat,
  GlobMatch,
  GrepMatch,
  Kind,
  ReadBytesResult,
  ReadResult,
  Skipped,
  TransferResult,
  WatchEvent,
  WriteMode,
  WriteResult
} from "../model/Entry.ts"
import { AccessDenied, FsError } from "../model/FsError.ts"
import { FsPath } from "../model/FsPath.ts"
import { Bytes, Instant } from "./bytes.ts"

/**
 * The version of the protocol, one character in each frame. A client refuses a server with another version. Version 1 had
 * lines of JSON with Base64 instead of frames.
 */
export const version = 2

/** The maximum number of bytes of file content in one message. */
export const maxContentBytes = 512 * 1024

/** The maximum number of characters in the values of one message, such as matches. A single value may be longer. */
export const maxPartLength = 512 * 1024

/** The maximum number of characters of one match. */
export const maxMatchLength = 8 * 1024 * 1024

/** The maximum number of entries in one message. */
export const maxPartEntries = 2000

/** The time for which the server remembers the answer of a change, in milliseconds. */
export const rememberedMillis = 5 * 60_000

/** Checks the bearer token of each request. */
export class Authentication extends RpcMiddleware.Service<Authentication>()("fs-algebra/remote/Authentication", {
  error: AccessDenied
}) {}

const Path = Schema.String
const flag = Schema.optionalKey(Schema.Boolean)
/** The size of an entry in bytes. A snapshot adds sizes up, so a negative one would hide others from its limit. */
const Size = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const size = Schema.optionalKey(Size)
/** A number that is not NaN. A limit of NaN would refuse nothing. */
const Amount = Schema.Number.check(Schema.makeFilter((value) => !Number.isNaN(value) || "must be a number"))
const count = Schema.optionalKey(Amount)
const text = Schema.optionalKey(Schema.String)
const texts = Schema.Union([Schema.String, Schema.Array(Schema.String)])
const Version = Schema.NullOr(Schema.String)

/** The limits of the caller, which the server applies to the call. */
export const CallLimits = Schema.Struct({
  maxFileSize: count,
  maxStreamBytes: count,
  maxReadBytes: count,
  maxPathLength: count,
  maxPathDepth: count,
  maxSegmentLength: count,
  defaultReadLimit: count,
  maxGrepMatches: count,
  maxGlobMatches: count,
  maxListEntries: count,
  maxPatternLength: count,
  patternBudget: count
})
export interface CallLimits extends Schema.Schema.Type<typeof CallLimits> {}

const limits = { limits: Schema.optionalKey(CallLimits) }
/** The id of a change. The server runs a change once for each id, and repeats its answer. */
const Id = Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(64))
const change = { id: Id, ...limits }

const searches = { exclude: Schema.optionalKey(texts), gitignore: flag }
export const WalkOptions = Schema.Struct({ ...searches, maxDepth: count, sizes: flag })
export const GlobOptions = Schema.Struct({
  ...searches,
  path: text,
  after: text,
  dialect: Schema.optionalKey(Schema.Literals(["path", "fnmatch"])),
  maxMatches: count,
  kinds: Schema.optionalKey(Schema.Array(Kind)),
  sizes: flag
})
export const GrepOptions = Schema.Struct({
  ...searches,
  path: text,
  after: text,
  glob: Schema.optionalKey(texts),
  maxMatches: count,
  literal: flag,
  ignoreCase: flag,
  wholeWord: flag,
  context: Schema.optionalKey(Schema.Union([Schema.Number, Schema.Tuple([Schema.Number, Schema.Number])])),
  maxFileSize: count,
  multiline: flag
})
export const GrepPattern = Schema.Union([Schema.String, Schema.Struct({ source: Schema.String, flags: Schema.String })])
export const GlobPattern = texts

const SkippedEntry = Schema.Struct({
  path: Schema.String,
  why: Schema.Literals(["ignored", "binary", "tooLarge", "unreadable"])
})

/** A part of a glob's matches. The last part also has the other fields of the result. */
const GlobPart = Schema.Struct({
  matches: Schema.Array(Schema.Struct({ ...GlobMatch.fields, sizeBytes: size })),
  skips: Schema.Array(SkippedEntry),
  end: Schema.optionalKey(Schema.Struct({ truncated: Schema.Boolean, next: text, skipped: Skipped }))
})
/** A part of a grep's matches. The last part also has the other fields of the result. */
const GrepPart = Schema.Struct({
  matches: Schema.Array(GrepMatch),
  skips: Schema.Array(SkippedEntry),
  end: Schema.optionalKey(
    Schema.Struct({
      filesSearched: Schema.Int,
      filesMatched: Schema.Int,
      truncated: Schema.Boolean,
      next: text,
      skipped: Skipped
    })
  )
})
const WalkPart = Schema.Struct({
  entries: Schema.Array(Schema.Struct({ ...FileEntry.fields, sizeBytes: size })),
  skips: Schema.Array(SkippedEntry)
})
export interface SkippedEntry extends Schema.Schema.Type<typeof SkippedEntry> {}
export interface GlobPart extends Schema.Schema.Type<typeof GlobPart> {}
export interface GrepPart extends Schema.Schema.Type<typeof GrepPart> {}
export interface WalkPart extends Schema.Schema.Type<typeof WalkPart> {}

const call = <const Tag extends string, Fields extends Schema.Struct.Fields, Success extends Schema.Top>(
  tag: Tag,
  payload: Fields,
  success: Success
) => Rpc.make(tag, { payload, success, error: FsError })

const streaming = <const Tag extends string, Fields extends Schema.Struct.Fields, Success extends Schema.Top>(
  tag: Tag,
  payload: Fields,
  success: Success
) => Rpc.make(tag, { payload, success, error: FsError, stream: true })

const writeOptions = Schema.optionalKey(
  Schema.Struct({
    mode: Schema.optionalKey(WriteMode),
    createParents: flag,
    version: flag,
    ifMatch: Schema.optionalKey(Version)
  })
)
const Edit = Schema.Struct({
  oldText: Schema.String,
  newText: Schema.String,
  match: Schema.optionalKey(Schema.Literals(["unique", "first", "all"]))
})
const ReadBytes = Schema.Struct({ ...ReadBytesResult.fields, content: Bytes })
const transfer = { ...change, from: Schema.String, to: Schema.String, overwrite: flag }

/** One request for each operation of the algebra except `sink`. For a sink, a client stages a write with `port.begin`. */
const operations = [
  call("exists", { ...limits, path: Schema.String }, Schema.Boolean),
  call("stat", { ...limits, path: Schema.String }, FileStat),
  call("lstat", { ...limits, path: Schema.String }, FileStat),
  call("realPath", { ...limits, path: Schema.String }, FsPath),
  streaming("list", { ...limits, path: text }, Schema.Array(FileEntry)),
  streaming("walk", { ...limits, path: text, options: Schema.optionalKey(WalkOptions), skips: flag }, WalkPart),
  streaming("glob", { ...limits, pattern: GlobPattern, options: Schema.optionalKey(GlobOptions), skips: flag }, GlobPart),
  streaming("globStream", { ...limits, pattern: GlobPattern, options: Schema.optionalKey(GlobOptions), skips: flag }, GlobPart),
  streaming("grep", { ...limits, pattern: GrepPattern, options: Schema.optionalKey(GrepOptions), skips: flag }, GrepPart),
  streaming("grepStream", { ...limits, pattern: GrepPattern, options: Schema.optionalKey(GrepOptions), skips: flag }, GrepPart),
  call("read", { ...limits, path: Schema.String, offset: count, limit: count, encoding: text, version: flag }, ReadResult),
  call("readString", { ...limits, path: Schema.String, encoding: text }, Schema.String),
  call("readBytes", { ...limits, path: Schema.String, offset: count, limit: count, version: flag }, ReadBytes),
  call("version", { ...limits, path: Schema.String }, Schema.String),
  streaming("stream", { ...limits, path: Schema.String, offset: count, length: count, chunkSize: count }, Bytes),
  streaming("lines", { ...limits, path: Schema.String }, Schema.Array(Schema.String)),
  call("write", { ...change, path: Schema.String, content: Schema.String, options: writeOptions }, WriteResult),
  call("writeBytes", { ...change, path: Schema.String, content: Bytes, options: writeOptions }, WriteResult),
  call(
    "edit",
    {
      ...change,
      path: Schema.String,
      edits: Schema.Array(Edit),
      dryRun: flag,
      version: flag,
      ifMatch: Schema.optionalKey(Version)
    },
    EditResult
  ),
  call(
    "delete",
    {
      ...change,
      path: Schema.String,
      recursive: flag,
      missing: Schema.optionalKey(Schema.Literals(["fail", "ignore"])),
      ifMatch: Schema.optionalKey(Version)
    },
    DeleteResult
  ),
  call("mkdir", { ...change, path: Schema.String, parents: flag, existOk: flag }, Schema.Void),
  call("copy", transfer, TransferResult),
  call("move", transfer, TransferResult),
  call("readLink", { ...limits, path: Schema.String }, Schema.String),
  call("symlink", { ...change, path: Schema.String, target: Schema.String }, Schema.Void),
  call(
    "setAttributes",
    { ...change, path: Schema.String, mode: count, modifiedAt: Schema.optionalKey(Schema.DateTimeUtc) },
    Schema.Void
  ),
  streaming("watch", { ...limits, path: text }, Schema.Array(WatchEvent))
] as const

const { path: _, ...statFields } = FileStat.fields
/** A stat without its path, because the client knows the path. */
const Stat = Schema.Struct({
  ...statFields,
  sizeBytes: Size,
  createdAt: Schema.optionalKey(Instant),
  modifiedAt: Schema.optionalKey(Instant)
})
export interface WireStat extends Schema.Schema.Type<typeof Stat> {}

const Child = Schema.Struct({
  name: Schema.String,
  kind: Kind,
  addressable: Schema.Boolean,
  key: text,
  sizeBytes: size
})
const Whole = Schema.Struct({ stat: Stat, bytes: Bytes })

const Info = Schema.Struct({
  version: Schema.Int,
  /** A random id of this run of the server. A restarted server does not know earlier changes. */
  instance: Schema.String,
  name: Schema.String,
  root: Schema.String,
  caseSensitive: Schema.Boolean,
  readOnly: Schema.Boolean,
  confinement: Schema.Literals(["virtual", "race-free", "race-free-open", "best-effort"]),
  mayWrite: Schema.Boolean,
  mayDelete: Schema.Boolean,
  policy: Schema.optionalKey(Schema.Literals(["standard", "vfs", "branch"])),
  symlinks: Schema.optionalKey(Schema.Literals(["follow", "report", "refuse"])),
  preservePermissions: flag,
  decidesModeOfCopies: flag,
  hasLinks: Schema.Boolean,
  hasAttributes: Schema.Boolean,
  canWatch: Schema.Boolean,
  copiesTrees: Schema.Boolean,
  /** The absolute paths that denote the root in symlink targets. */
  absoluteRoots: Schema.Array(Schema.String),
  /** The workspace that a header of the request has named. */
  workspace: text,
  lineage: text,
  /** The time of the clock of a cluster's runner, in milliseconds since 1970. */
  time: Schema.optionalKey(Schema.Finite)
})
export interface Info extends Schema.Schema.Type<typeof Info> {}

/**
 * The fields of a change, with flags that some backends need. `takingBack`: the call removes an entry that a failed call has
 * created. `bringingBack`: the call is part of a restore.
 */
const portChange = { id: Id, path: Path, takingBack: flag, bringingBack: flag }
const PrimitiveMode = Schema.Literals(["create", "replace", "append"])

const ports = [
  call("port.info", {}, Info),
  call("port.stat", { path: Path }, Schema.NullOr(Stat)),
  /** The answer is null for a directory with more than `maxPartEntries` entries. */
  call("port.list", { path: Path }, Schema.NullOr(Schema.Array(Child))),
  streaming("port.listAll", { path: Path }, Schema.Array(Child)),
  /** Keeps a file open until the request is interrupted. */
  streaming("port.open", { path: Path, handle: Id }, Schema.Struct({ stat: Stat })),
  call("port.readAt", { handle: Id, offset: Schema.Int, length: Schema.Int }, Bytes),
  /** The answer is null if the file has more than `maxBytes` or `maxContentBytes` bytes, or has just become shorter. */
  call("port.read", { path: Path, maxBytes: Amount }, Schema.NullOr(Whole)),
  call("port.readMany", { paths: Schema.Array(Path), maxBytes: Amount }, Schema.Array(Schema.NullOr(Whole))),
  call("port.look", { path: Path }, Schema.Array(Schema.Struct({ stat: Stat, target: text }))),
  call("port.readLink", { path: Path, follow: Schema.Boolean }, Schema.String),
  streaming("port.watch", { path: Path }, Schema.Array(Schema.Struct({ _tag: WatchEvent.fields._tag, path: Path }))),
  /** Holds the lock and the claim of a file until the request is interrupted. */
  streaming("port.claim", { path: Path }, Schema.Void),

  call("port.write", { ...portChange, mode: PrimitiveMode, bytes: Bytes }, Stat),
  /** Keeps a staged write until the request is interrupted. Without `port.publish`, the file keeps its old content. */
  streaming("port.begin", { upload: Id, path: Path, mode: PrimitiveMode, bringingBack: flag }, Schema.Void),
  call("port.chunk", { upload: Id, index: Schema.Int, bytes: Bytes }, Schema.Void),
  call("port.end", { upload: Id }, Schema.Void),
  call("port.publish", { id: Id, upload: Id }, Stat),
  call("port.makeDirectory", portChange, Schema.Void),
  call("port.remove", portChange, Schema.Void),
  call("port.rename", { ...portChange, to: Path, replace: Schema.Boolean }, Schema.Void),
  call("port.makeLink", { ...portChange, target: Schema.String }, Schema.Void),
  call(
    "port.setAttributes",
    { ...portChange, mode: count, modifiedAt: Schema.optionalKey(Schema.DateTimeUtc), isCopy: flag },
    Schema.Void
  ),
  /**
   * Each request from here to `port.copyTree` makes a whole change. After the answer null or false, the client makes the change
   * with other requests.
   */
  call(
    "port.writeWhole",
    {
      ...portChange,
      bytes: Bytes,
      mode: WriteMode,
      createParents: Schema.Boolean,
      version: Schema.Boolean,
      ifMatch: Schema.optionalKey(Version)
    },
    Schema.NullOr(Schema.Struct({ version: text }))
  ),
  call(
    "port.editWhole",
    {
      ...portChange,
      edits: Schema.Array(Edit),
      version: Schema.Boolean,
      ifMatch: Schema.optionalKey(Version),
      maxFileSize: Amount,
      maxReadBytes: Amount
    },
    Schema.NullOr(Schema.Struct({ bytesWritten: Schema.Int, replacements: Schema.Int, hunks: Schema.String, version: text }))
  ),
  call(
    "port.removeWhole",
    { ...portChange, recursive: Schema.Boolean, ifMatch: Schema.optionalKey(Version) },
    Schema.NullOr(DeleteResult)
  ),
  call("port.makeDirectoryWhole", { ...portChange, parents: Schema.Boolean, existOk: Schema.Boolean }, Schema.Boolean),
  call(
    "port.moveWhole",
    { ...portChange, to: Path, overwrite: Schema.Boolean, createParents: Schema.Boolean },
    Schema.NullOr(TransferResult)
  ),
  call("port.removeTree", portChange, Schema.NullOr(DeleteResult)),
  call("port.copyTree", { ...portChange, to: Path }, Schema.NullOr(TransferResult)),
  /** Interrupts a change, and waits until it has ended. A change that has not begun does not begin. */
  call("port.cancel", { id: Id }, Schema.Void)
] as const

/** The requests of a remote filesystem. */
export const FilesystemRpcs = RpcGroup.make(...operations, ...ports).middleware(Authentication)
