import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { FileEntry, FileStat, Kind, WriteMode } from "../../model/Entry.ts"
import {
  type BackendError,
  type EditError,
  InvalidArgument,
  type ListError,
  type NotFound,
  type NotText,
  type ReadBytesError,
  type StatError,
  type StreamError
} from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { type Call, define, optional, refused, type ToolFailure, touching } from "../definition.ts"
import { joinFitting, numberLines } from "../text/fit.ts"
import { base64, isViewable, mediaTypeOf, textOf } from "../text/mediaType.ts"
import { formatCount as plural, formatSize as size } from "../../model/words.ts"
import { checkFile, displayPath } from "../toolPath.ts"
import { removeDirectory } from "./rm.ts"

const Encoding = Schema.Literals(["utf-8", "binary"])
type Encoding = typeof Encoding.Type

interface Content {
  readonly encoding: Encoding
  readonly content: string
  readonly text?: string
}

const contentOf = (bytes: Uint8Array): Content => {
  const text = textOf(bytes)
  return text === undefined ? { encoding: "binary", content: base64(bytes) } : { encoding: "utf-8", content: text, text }
}

const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

const bytesOf = (text: string): Uint8Array | undefined => {
  const compactText = text.replace(/[ \t\r\n]/g, "")
  return base64Pattern.test(compactText) ? Buffer.from(compactText, "base64") : undefined
}

const sniffedBytes = 64 * 1024

/** Drops the last character, which may be incomplete. */
const withoutLastCharacter = (bytes: Uint8Array): Uint8Array => {
  let end = bytes.length
  while (end > bytes.length - 4 && end > 0 && (bytes[end - 1]! & 0xc0) === 0x80) end--
  return bytes.subarray(0, Math.max(0, end - 1))
}

const encodingAt = (fs: Algebra, path: FsPath): Effect.Effect<Encoding, ReadBytesError | NotText> =>
  Effect.map(
    fs.readBytes(path, { limit: sniffedBytes }),
    ({ content, truncated }) => contentOf(truncated ? withoutLastCharacter(content) : content).encoding
  )

const File = Schema.Struct({
  path: Schema.String,
  encoding: Encoding,
  size_bytes: Schema.Int,
  version: Schema.String,
  created_at: Schema.optionalKey(Schema.String),
  updated_at: Schema.optionalKey(Schema.String)
})

const time = (at: DateTime.Utc): string => DateTime.formatIso(at)

const timesOf = ({ createdAt, modifiedAt }: FileStat): Pick<typeof File.Type, "created_at" | "updated_at"> => ({
  ...(createdAt !== undefined && { created_at: time(createdAt) }),
  ...(modifiedAt !== undefined && { updated_at: time(modifiedAt) })
})

const shortVersionLength = 12

const shortVersion = (version: string): string => version.slice(0, shortVersionLength)

const isShortVersion = (version: string): boolean =>
  version.length >= shortVersionLength && version.length < 64 && /^[0-9a-f]+$/.test(version)

const formatFacts = (stat: FileStat, version: string | undefined): string => {
  const { created_at: created, updated_at: updated } = timesOf(stat)
  return [
    size(stat.sizeBytes),
    ...(version === undefined ? [] : [`version ${shortVersion(version)}`]),
    ...(created === undefined ? [] : [`created ${created}`]),
    ...(updated === undefined ? [] : [`updated ${updated}`])
  ].join(", ")
}

export const deleteFile = define({
  name: "delete_file",
  description: "Delete a file, or a directory with everything in it.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file or directory, relative to the root." }),
    allow_missing: optional(Schema.Boolean, "Whether to accept that the path does not exist. Default: false.")
  }),
  value: Schema.Struct({
    path: Schema.String,
    deleted: Schema.Int
  }),
  does: "changes",
  idempotent: true,
  examples: [{ path: "scratch" }, { path: "notes/old.md", allow_missing: true }],
  touches: touching("delete"),
  handle: Effect.fnUntraced(function* ({ allow_missing: missing = false, path }, call) {
    const at = yield* call.path(path)
    const { deleted, directories, files } = yield* removeDirectory(call.filesystem, at, missing ? "ignore" : "fail")
    call.memory.forget(at)
    const folders = directories === 0 ? "" : ` and ${plural(directories, "directory", "directories")}`
    return {
      message:
        deleted + directories === 0
          ? `${at} did not exist, so nothing was deleted`
          : `Deleted ${at}: ${plural(files, "file")}${folders}`,
      value: { path: at, deleted }
    }
  })
})

/** The largest number of files whose versions are listed. Each version costs a read of the file. */
const maxVersions = 500

interface FoundEntry {
  readonly entry: FileEntry
  readonly kind: Kind
  readonly stat?: FileStat
}

/**
 * Turns an error about a single entry into `undefined`. An entry that was removed meanwhile or may not be read is listed by its
 * name only.
 */
const orUnknown = <A>(effect: Effect.Effect<A, StatError | StreamError>) =>
  Effect.catchIf(
    effect,
    (error: StatError | StreamError): error is Exclude<typeof error, BackendError> =>
      error._tag !== "IoError" && error._tag !== "Timeout" && error._tag !== "Unavailable",
    () => Effect.succeed(undefined)
  )

const statEntry = (fs: Algebra, entry: FileEntry): Effect.Effect<FoundEntry, StatError> =>
  entry.kind === "directory"
    ? Effect.succeed({ entry, kind: entry.kind })
    : Effect.map(orUnknown(fs.stat(entry.path)), (stat) =>
        stat === undefined ? { entry, kind: entry.kind } : { entry, kind: stat.kind, stat }
      )

const formatLine = Effect.fnUntraced(function* (
  fs: Algebra,
  { entry, kind, stat }: FoundEntry,
  isVersioned: boolean
): Effect.fn.Return<string, StreamError> {
  if (kind === "directory") return `${entry.name}/`
  if (kind !== "file" || stat === undefined) {
    return `${entry.name} (${kind === "symlink" ? "a broken link" : kind === "other" ? "neither file nor directory" : "unreadable"})`
  }
  const version = isVersioned ? yield* orUnknown(fs.version(entry.path)) : undefined
  return `${entry.name} (${formatFacts(stat, version)})`
})

const orEmpty = (listing: Effect.Effect<ReadonlyArray<FileEntry>, ListError>) =>
  Effect.catchTag(listing, "NotFound", (_: NotFound) => Effect.succeed<ReadonlyArray<FileEntry> | undefined>(undefined))

export const listDirectory = define({
  name: "list_directory",
  description:
    "List one directory, not its subdirectories: names, and for files size, version and times. A missing directory is empty.",
  parameters: Schema.Struct({
    path: optional(Schema.String, "A directory, relative to the root. Default: the root.")
  }),
  value: Schema.Struct({
    path: Schema.String,
    directories: Schema.Array(Schema.String),
    files: Schema.Array(Schema.String)
  }),
  does: "reads",
  idempotent: true,
  examples: [{}, { path: "notes" }],
  touches: touching("read", { blank: "root" }),
  handle: Effect.fnUntraced(function* ({ path = "" }, call) {
    const fs = call.filesystem
    const at = yield* call.path(path, { blank: "root" })
    const entries = yield* orEmpty(fs.list(at))
    if (entries === undefined) {
      return {
        message: `${displayPath(at)} does not exist yet, so it has no entries`,
        value: { path: at, directories: [], files: [] }
      }
    }
    const found = yield* Effect.forEach(
      entries.filter(({ addressable }) => addressable),
      (entry) => statEntry(fs, entry),
      { concurrency: 16 }
    )
    const unaddressableCount = entries.length - found.length
    const lines = yield* Effect.forEach(found, (one, index) => formatLine(fs, one, index < maxVersions), { concurrency: 4 })
    const directories = found.filter(({ kind }) => kind === "directory").map(({ entry }) => entry.name)
    const files = found.filter(({ kind }) => kind !== "directory").map(({ entry }) => entry.name)
    const head =
      entries.length === 0
        ? `${displayPath(at)} is empty`
        : `${displayPath(at)}: ${plural(directories.length, "directory", "directories")}, ${plural(files.length, "file")}`
    const hidden = unaddressableCount === 0 ? [] : [`not shown: ${plural(unaddressableCount, "name")} that no path can express`]
    return {
      message: joinFitting(
        [head, ...lines, ...hidden],
        call.settings,
        (shown) => `[cut: ${shown - 1} of ${plural(lines.length, "entry", "entries")}]`
      ),
      value: { path: at, directories, files }
    }
  })
})

const base64LineWidth = 100

const splitBase64 = (text: string): ReadonlyArray<string> => text.match(new RegExp(`.{1,${base64LineWidth}}`, "g")) ?? []

/** Splits a text into lines. A line break at the end does not begin another line. */
const linesOf = (text: string): ReadonlyArray<string> => {
  const all = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line))
  return text === "" || text.endsWith("\n") ? all.slice(0, -1) : all
}

const bodyOf = ({ content, text }: Content): readonly [what: string, lines: ReadonlyArray<string>] => {
  if (text === undefined) return ["base64", splitBase64(content)]
  const all = linesOf(text)
  return [plural(all.length, "line"), numberLines(all)]
}

const cutMark = (count: number, of: number): string =>
  `[cut: ${count} of ${plural(of, "line")}; write the part that you still need into smaller files]`

export const readFile = define({
  name: "read_file",
  description: "Read a whole file, with its size, version and times. Text comes as text, anything else as base64.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file, relative to the root." })
  }),
  value: Schema.Struct({
    file: File,
    content: Schema.String
  }),
  does: "reads",
  idempotent: true,
  examples: [{ path: "notes/plan.md" }],
  touches: touching("read"),
  handle: Effect.fnUntraced(function* ({ path }, call) {
    const at = yield* call.path(path)
    const { content: bytes, sizeBytes, version } = yield* call.filesystem.readBytes(at, { version: true })
    const stat = yield* call.filesystem.stat(at)
    const read = contentOf(bytes)
    call.memory.saw(at, version!, read.text)
    const [what, body] = bodyOf(read)
    const head = `${at} (${read.encoding}, ${formatFacts({ ...stat, sizeBytes }, version)}): ${sizeBytes === 0 ? "it is empty" : what}`
    return {
      message: joinFitting([head, ...body], call.settings, (count) => cutMark(count - 1, body.length)),
      value: {
        file: { path: at, encoding: read.encoding, size_bytes: sizeBytes, version: version!, ...timesOf(stat) },
        content: read.content
      }
    }
  }),
  images: ({ content, file }) => {
    if (file.encoding !== "binary") return []
    const type = mediaTypeOf(bytesOf(content.slice(0, 1024)) ?? new Uint8Array())?.type
    return type !== undefined && isViewable(type) ? [{ mediaType: type, base64: content }] : []
  }
})

const Mode = Schema.Literals(["create", "overwrite", "append"])

const modes: Readonly<Record<typeof Mode.Type, WriteMode>> = { create: "create", overwrite: "overwrite", append: "append" }
const strictModes: typeof modes = { create: "create", overwrite: "replace", append: "appendExisting" }

const invalid = (call: Call, path: FsPath, argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation: call.tool, path, argument, detail })

const readEncoding = (
  { filesystem }: Call,
  path: FsPath
): Effect.Effect<Encoding, Exclude<ReadBytesError, { _tag: "NotFound" }> | EditError> =>
  Effect.catchTag(encodingAt(filesystem, path), "NotFound", () => Effect.succeed<Encoding>("utf-8"))

const encodingOf = Effect.fnUntraced(function* (
  call: Call,
  path: FsPath,
  mode: typeof Mode.Type,
  requested: Encoding | undefined
): Effect.fn.Return<Encoding, ToolFailure> {
  if (mode !== "append" || requested === "binary") return requested ?? "utf-8"
  const currentEncoding = yield* readEncoding(call, path)
  if (requested === "utf-8" && currentEncoding !== requested) {
    return yield* Effect.fail(
      refused(`${path} is not UTF-8 text.`, 'To append bytes to this file, send them as base64 with encoding "binary".')
    )
  }
  return currentEncoding
})

const versionOf = Effect.fnUntraced(function* (
  call: Call,
  path: FsPath,
  mode: typeof Mode.Type,
  requested: string | undefined
): Effect.fn.Return<string | undefined, ToolFailure> {
  if (requested === undefined) return undefined
  if (mode === "create") {
    return yield* Effect.fail(
      invalid(call, path, "if_version", 'a new file has no version yet; send mode "overwrite" or "append"')
    )
  }
  const trimmedVersion = requested.trim()
  if (!isShortVersion(trimmedVersion)) return trimmedVersion
  const current = yield* Effect.catchTag(call.filesystem.version(path), "NotFound", () => Effect.succeed(""))
  return current.startsWith(trimmedVersion) ? current : trimmedVersion
})

const pastVerbs = { create: "Created", overwrite: "Wrote", append: "Appended to" } as const

export const writeFile = define({
  name: "write_file",
  description:
    'Create a file, or with mode "overwrite" or "append" change one: text, or bytes as base64; at most 48,000 characters or bytes. Directories are made.',
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file, relative to the root." }),
    content: Schema.String.annotate({ description: 'The text; with encoding "binary" base64.' }),
    mode: optional(Mode, "create fails if the file exists; overwrite and append create a missing file. Default: create."),
    encoding: optional(Encoding, "The encoding of the content. Default: utf-8; for append, the encoding of the file."),
    if_version: optional(Schema.String, "Write only if the file still has this version, which read_file shows.")
  }),
  value: Schema.Struct({
    path: Schema.String,
    content: Schema.String,
    mode: Mode,
    encoding: Encoding,
    if_version: Schema.optionalKey(Schema.String)
  }),
  does: "changes",
  idempotent: false,
  examples: [
    { path: "notes/plan.md", content: "1. look\n2. write\n" },
    { path: "notes/plan.md", content: "3. test\n", mode: "append" }
  ],
  touches: touching("write"),
  handle: Effect.fnUntraced(function* (
    { content, encoding: requested, if_version: requiredVersion, mode = "create", path },
    call
  ) {
    const { filesystem: fs, memory, settings } = call
    const at = yield* call.path(path)
    yield* checkFile(call.tool, path)
    const ifMatch = yield* versionOf(call, at, mode, requiredVersion)
    const encoding = yield* encodingOf(call, at, mode, requested)
    const bytes = encoding === "binary" ? bytesOf(content) : undefined
    if (encoding === "binary" && bytes === undefined) {
      return yield* Effect.fail(invalid(call, at, "content", 'with encoding "binary" it must be base64'))
    }
    const options = {
      mode: (settings.strict ? strictModes : modes)[mode],
      version: true as const,
      ...(ifMatch !== undefined && { ifMatch })
    }
    const { version } = yield* Effect.catchTag(
      bytes === undefined ? fs.write(at, content, options) : fs.writeBytes(at, bytes, options),
      "AlreadyExists",
      () =>
        Effect.fail(
          refused(`${at} exists already.`, 'Read the file, and send mode "overwrite" to replace it or "append" to add to it.')
        )
    )
    memory.saw(at, version!, mode === "append" || bytes !== undefined ? undefined : content)
    const amount = bytes === undefined ? plural([...content].length, "character") : plural(bytes.length, "byte")
    return {
      message: `${pastVerbs[mode]} ${at}: ${amount}, now version ${shortVersion(version!)}`,
      value: { path: at, content, mode, encoding, ...(ifMatch !== undefined && { if_version: ifMatch }) }
    }
  })
})
