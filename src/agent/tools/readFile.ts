/**
 * What is text is read as text, in whatever encoding its first bytes tell; what is an image is shown; of anything else it is said what it
 * is, since half a page of damaged characters helps nobody. Bytes are answered when bytes are asked for.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { FsPath } from "../../model/FsPath.ts"
import { standard } from "../../model/Limits.ts"
import { type Answer, type Call, define, refused, type ToolFailure } from "../definition.ts"
import { base64, bytesPage } from "../text/bytes.ts"
import { isViewable, type MediaType, mediaTypeOf } from "../text/mediaType.ts"
import { type Encoding, page, windowOf } from "../text/page.ts"
import { size } from "../text/words.ts"

const maxLines = 2000
const maxImage = 5 * 1024 * 1024
/** Of one answer, where the budget has room for more. */
const maxBytes = 256 * 1024
/** Bytes of text that may be gone through for one page. */
const maxText = standard.maxReadBytes
/** Where a NUL makes a file binary, as searches see it. */
const sniffed = 8192

const Value = Schema.Struct({
  path: Schema.String,
  content: Schema.String,
  encoding: Schema.Literals(["utf-8", "utf-16le", "utf-16be", "base64"]),
  offset: Schema.Int,
  limit: Schema.Int,
  total_lines: Schema.optionalKey(Schema.Int),
  size_bytes: Schema.optionalKey(Schema.Int),
  truncated: Schema.Boolean,
  next: Schema.optionalKey(Schema.Int),
  ends_with_newline: Schema.optionalKey(Schema.Boolean),
  cut_lines: Schema.optionalKey(Schema.Array(Schema.Int)),
  media_type: Schema.optionalKey(Schema.String),
  version: Schema.String
})

type Read = Answer<typeof Value.Type>

interface Window {
  readonly offset: number
  readonly limit: number | undefined
}

const asBytes = Effect.fnUntraced(function* (
  path: FsPath,
  { limit, offset }: Window,
  { filesystem, memory, settings }: Call
): Effect.fn.Return<Read, ToolFailure> {
  const most = Math.min(limit ?? maxBytes, maxBytes)
  const read = yield* filesystem.readBytes(path, { offset, limit: most, version: true })
  const version = read.version!
  memory.saw(path, version)
  const type = read.offset === 0 ? mediaTypeOf(read.content)?.type : undefined
  const { message, value } = bytesPage({ ...read, path }, offset, settings)
  return { message, value: { path, encoding: "base64", ...value, ...(type !== undefined && { media_type: type }), version } }
})

const asImage = Effect.fnUntraced(function* (
  path: FsPath,
  { name, type }: MediaType,
  { filesystem, memory }: Call
): Effect.fn.Return<Read, ToolFailure> {
  const { content, sizeBytes, version } = yield* filesystem.readBytes(path, { version: true })
  memory.saw(path, version!)
  const value = {
    path,
    content: base64(content),
    encoding: "base64" as const,
    offset: 0,
    limit: sizeBytes,
    size_bytes: sizeBytes,
    truncated: false,
    media_type: type,
    version: version!
  }
  return { message: `${path}: ${name}, ${size(sizeBytes)}`, value }
})

const asText = Effect.fnUntraced(function* (
  path: FsPath,
  { limit, offset }: Window,
  encoding: Encoding,
  { filesystem, memory, settings }: Call
): Effect.fn.Return<Read | "binary", ToolFailure> {
  // The whole of it: what has changed since is told by comparing with it, and a page costs a read of the whole file anyway.
  const read = yield* filesystem.read(path, { limit: -1, encoding, version: true })
  // A CR that is left at the end stood before a CRLF.
  const end = read.endsWithNewline ? (read.content.endsWith("\r") ? "\r\n" : "\n") : ""
  const text = read.content + end
  if (text.slice(0, sniffed).includes("\0")) return "binary"
  const version = read.version!
  memory.saw(path, version, text)
  const window = windowOf(path, text, encoding, offset, Math.min(limit ?? maxLines, maxLines))
  const { message, value } = page(window, offset, settings)
  return { message, value: { path, encoding, ...value, version } }
})

/**
 * More than may be held at once is read from front to end, of which only the page is kept, its lines joined by LF whatever stands between
 * them. The version comes first: where the file changes meanwhile, what was seen is out of date, and not the other way round.
 */
const asLines = Effect.fnUntraced(function* (
  path: FsPath,
  { limit = maxLines, offset }: Window,
  sizeBytes: number,
  { filesystem, memory, settings }: Call
): Effect.fn.Return<Read, ToolFailure> {
  const version = yield* filesystem.version(path)
  const most = Math.min(limit, maxLines)
  const kept: Array<string> = []
  let totalLines = 0
  yield* Stream.runForEachArray(filesystem.lines(path), (lines) =>
    Effect.sync(() => {
      for (const line of lines) if (totalLines++ >= offset && kept.length < most) kept.push(line)
    })
  )
  const end = yield* filesystem.readBytes(path, { offset: sizeBytes - 1 })
  memory.saw(path, version)
  const window = { path, content: kept.join("\n"), offset: Math.min(offset, totalLines), limit: kept.length, totalLines }
  const { message, value } = page({ ...window, endsWithNewline: end.content[0] === 10 }, offset, settings)
  return { message, value: { path, encoding: "utf-8", ...value, version } }
})

const byteOrderMark = ([first, second]: Uint8Array): Encoding =>
  first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "utf-8"

const binary = (path: FsPath, sizeBytes: number, media: MediaType | undefined): ToolFailure =>
  refused(
    `${path} is no text but binary: ${media === undefined ? "of an unknown type" : `${media.name} (${media.type})`}, ${size(sizeBytes)}.`,
    'To get its bytes call read_file with encoding="base64"; offset and limit are then in bytes.'
  )

const tooLarge = (path: FsPath, actual: number, allowed: number): ToolFailure =>
  refused(
    `${path} has ${size(actual)}, and at most ${size(allowed)} are read as text.`,
    'Read a part of its bytes with encoding="base64", offset and limit in bytes.'
  )

/** What is not UTF-8, told by its first bytes. */
const notUtf8 = Effect.fnUntraced(function* (
  path: FsPath,
  window: Window,
  call: Call,
  large?: { readonly allowed: number }
): Effect.fn.Return<Read, ToolFailure> {
  const { content, sizeBytes } = yield* call.filesystem.readBytes(path, { limit: sniffed })
  const media = mediaTypeOf(content)
  if (media !== undefined && isViewable(media.type) && sizeBytes <= maxImage) return yield* asImage(path, media, call)
  const encoding = byteOrderMark(content)
  const isBinary = media !== undefined || (encoding === "utf-8" && content.includes(0))
  if (large !== undefined && !isBinary) {
    if (encoding === "utf-8" && sizeBytes <= maxText) return yield* asLines(path, window, sizeBytes, call)
    return yield* Effect.fail(tooLarge(path, sizeBytes, encoding === "utf-8" ? maxText : large.allowed))
  }
  const text =
    encoding === "utf-8" || isBinary
      ? "binary"
      : yield* asText(path, window, encoding, call).pipe(Effect.catchTag("NotText", () => Effect.succeed("binary" as const)))
  return text === "binary" ? yield* Effect.fail(binary(path, sizeBytes, media)) : text
})

const read = (path: FsPath, window: Window, call: Call): Effect.Effect<Read, ToolFailure> =>
  asText(path, window, "utf-8", call).pipe(
    Effect.catchTags({
      NotText: () => Effect.succeed("binary" as const),
      LimitExceeded: (error) => (error.limit === "maxReadBytes" ? notUtf8(path, window, call, error) : Effect.fail(error))
    }),
    Effect.flatMap((read) => (read === "binary" ? notUtf8(path, window, call) : Effect.succeed(read)))
  )

/** @internal */
export const readFile = define({
  name: "read_file",
  description:
    "Reads a file, a page of numbered lines at a time; the last line says how to get the next page. Shows images. " +
    "Other binary files need encoding base64. Read a file before changing it.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "The file, relative to the root, such as src/main.ts" }),
    offset: Schema.optionalKey(
      Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
        description: "0-based line to begin with (with base64: byte). Default 0"
      })
    ),
    limit: Schema.optionalKey(
      Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)).annotate({
        description: "How many lines, at most 2000 (with base64: bytes). Default 2000"
      })
    ),
    encoding: Schema.optionalKey(
      Schema.Literals(["utf-8", "base64"]).annotate({
        description: "base64 answers the bytes of any file. Default utf-8"
      })
    )
  }),
  value: Value,
  does: "reads",
  idempotent: true,
  examples: [{ path: "README.md" }, { path: "src/main.ts", offset: 2000 }, { path: "logo.bin", encoding: "base64" }],
  touches: ({ path }, call) => Effect.map(call.path(path), (path) => [{ access: "read", path }]),
  handle: ({ encoding, limit, offset = 0, path }, call) =>
    Effect.flatMap(call.path(path), (path) =>
      encoding === "base64" ? asBytes(path, { offset, limit }, call) : read(path, { offset, limit }, call)
    ),
  images: ({ content, encoding, media_type: mediaType, offset, truncated }) =>
    encoding === "base64" && mediaType !== undefined && isViewable(mediaType) && offset === 0 && !truncated
      ? [{ mediaType, base64: content }]
      : []
})
