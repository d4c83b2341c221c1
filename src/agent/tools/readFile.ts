/**
 * The tool `read_file`: decodes text by its byte order mark, and returns images for the model to see. A call for another binary
 * file fails and states the type and the size, unless the call asks for base64.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Text from "../../engine/text.ts"
import { InvalidArgument } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { standard } from "../../model/Limits.ts"
import {
  type Answer,
  type Attachment,
  type Call,
  define,
  optional,
  refused,
  type ToolFailure,
  touching
} from "../definition.ts"
import { countFitting, type Excerpt, excerpt, joinLines, maxLineLength, numberLine, type PageBudget } from "../text/fit.ts"
import { base64, isViewable, type MediaType, mediaTypeOf } from "../text/mediaType.ts"
import { formatCount as plural, formatSize as size } from "../../model/words.ts"

// A page of a text. The message and the value contain the same lines. A page that exceeds the budget is shortened, and all its
// fields describe the shorter page.

type Encoding = "utf-8" | "utf-16le" | "utf-16be"

interface Window {
  readonly path: string
  readonly content: string
  readonly offset: number
  readonly limit: number
  readonly totalLines: number
  readonly endsWithNewline: boolean
  readonly bytesOf?: ((line: number, column: number) => { readonly offset: number; readonly length: number }) | undefined
}

interface Page {
  readonly message: string
  readonly value: {
    readonly content: string
    readonly offset: number
    readonly limit: number
    readonly total_lines: number
    readonly truncated: boolean
    readonly ends_with_newline: boolean
    readonly next?: number
    readonly cut_lines?: ReadonlyArray<number>
  }
}

const lineStart = (text: string, line: number): number => {
  let at = 0
  for (let linesLeft = line; linesLeft > 0; linesLeft--) at = text.indexOf("\n", at) + 1
  return at
}

const encoder = new TextEncoder()

const windowOf = (path: string, text: string, encoding: Encoding, offset: number, limit: number): Window => {
  const sizeOf = (part: string): number => (encoding === "utf-8" ? encoder.encode(part).length : 2 * part.length)
  return {
    path,
    ...Text.page(text, offset, limit),
    bytesOf: (line, column) => {
      const from = lineStart(text, line) + column
      const newline = text.indexOf("\n", from)
      const end = newline === -1 ? text.length : newline
      const isCrlf = newline > from && text.charCodeAt(newline - 1) === 13
      return { offset: sizeOf(text.slice(0, from)), length: sizeOf(text.slice(from, isCrlf ? end - 1 : end)) }
    }
  }
}

interface Line {
  readonly excerpt: Excerpt
  readonly terminator: string
}

/**
 * Returns the lines of a window, each cut to `width`. The last line of the window has no line ending, so a CR at its end is
 * text.
 */
const linesOf = ({ content, limit }: Window, width: number): ReadonlyArray<Line> => {
  if (limit === 0) return []
  const pieces = content.split("\n")
  return pieces.map((piece, index) => {
    const isCrlf = index < pieces.length - 1 && piece.endsWith("\r")
    return { excerpt: excerpt(isCrlf ? piece.slice(0, -1) : piece, width), terminator: isCrlf ? "\r\n" : "\n" }
  })
}

const contentOf = (lines: ReadonlyArray<Line>): string =>
  lines
    .map(({ excerpt, terminator }, index) => (index < lines.length - 1 ? excerpt.shown + terminator : excerpt.shown))
    .join("")

const cutLines = ({ offset }: Window, lines: ReadonlyArray<Line>): ReadonlyArray<number> =>
  lines.flatMap(({ excerpt }, index) => (excerpt.isCut ? [offset + index + 1] : []))

const restOfLine = (window: Window, lines: ReadonlyArray<Line>): string => {
  const cut = cutLines(window, lines)
  const first = cut[0]
  if (first === undefined) return ""
  const { end } = lines[first - 1 - window.offset]!.excerpt
  const bytes = window.bytesOf?.(first - 1, end)
  const cutDescription =
    cut.length === 1 ? `line ${first} is cut` : `${plural(cut.length, "line")} are cut, of which line ${first} is the first`
  return bytes === undefined
    ? cutDescription
    : `${cutDescription}; to read the rest of that line: encoding="base64", offset=${bytes.offset}, limit=${bytes.length} (bytes)`
}

const footer = (window: Window, lines: ReadonlyArray<Line>): string => {
  const { offset, totalLines } = window
  const next = offset + lines.length
  const range = `lines ${offset + 1}-${next} of ${totalLines}`
  const rest = restOfLine(window, lines)
  return joinLines([next < totalLines ? `${range}; continue with offset=${next}` : range], rest)
}

const render = (window: Window, lines: ReadonlyArray<Line>): string =>
  joinLines(
    lines.map(({ excerpt }, index) => numberLine(window.offset + index + 1, excerpt.shown)),
    footer(window, lines)
  )

const emptyMessage = ({ path, totalLines }: Window, requestedOffset: number): string =>
  totalLines === 0
    ? `${path} is empty`
    : `there are no lines from offset ${requestedOffset}: ${path} has ${plural(totalLines, "line")}`

const valueOf = (window: Window, lines: ReadonlyArray<Line>): Page["value"] => {
  const { endsWithNewline, offset, totalLines } = window
  const next = offset + lines.length
  const truncated = next < totalLines
  const cut = cutLines(window, lines)
  return {
    content: contentOf(lines),
    offset,
    limit: lines.length,
    total_lines: totalLines,
    truncated,
    ends_with_newline: lines.length > 0 && (truncated || endsWithNewline),
    ...(truncated ? { next } : {}),
    ...(cut.length > 0 ? { cut_lines: cut } : {})
  }
}

const fittingLines = (window: Window, settings: PageBudget): ReadonlyArray<Line> => {
  const all = linesOf(window, maxLineLength)
  const sent = (lines: ReadonlyArray<Line>): string => settings.sent(render(window, lines), () => valueOf(window, lines))
  const shown = all.slice(
    0,
    countFitting(all.length, (count) => sent(all.slice(0, count)), settings)
  )
  if (shown.length !== 1 || settings.measure(sent(shown)) <= settings.budget) return shown
  const { content } = window
  const newline = content.indexOf("\n")
  const first = { ...window, content: newline === -1 ? content : content.slice(0, newline + 1) }
  const cutFirstLine = (width: number): ReadonlyArray<Line> => linesOf(first, width).slice(0, 1)
  const maxWidth = Math.min(maxLineLength, first.content.length)
  return cutFirstLine(countFitting(maxWidth, (width) => sent(cutFirstLine(width)), settings))
}

const page = (window: Window, requestedOffset: number, settings: PageBudget): Page => {
  const lines = fittingLines(window, settings)
  return {
    message: lines.length === 0 ? emptyMessage(window, requestedOffset) : render(window, lines),
    value: valueOf(window, lines)
  }
}

// A window of bytes as base64. A window that the budget shortens has a multiple of three bytes, so that windows can be joined
// before or after decoding.

interface BytesWindow {
  readonly path: string
  readonly content: Uint8Array
  readonly offset: number
  readonly sizeBytes: number
}

interface BytesPage {
  readonly message: string
  readonly value: {
    readonly content: string
    readonly offset: number
    readonly limit: number
    readonly size_bytes: number
    readonly truncated: boolean
    readonly next?: number
  }
}

const bytesPerGroup = 3

const bytesPage = (
  { content, offset, path, sizeBytes }: BytesWindow,
  requestedOffset: number,
  settings: PageBudget
): BytesPage => {
  const encoded = base64(content)
  const lengthOf = (groups: number): number => Math.min(bytesPerGroup * groups, content.length)
  const footer = (length: number): string => {
    const range = `${plural(length, "byte")} from offset ${offset}, of ${sizeBytes}`
    const next = offset + length
    return next < sizeBytes ? `${range}; continue with encoding="base64", offset=${next}` : range
  }
  const render = (groups: number): string => `${encoded.slice(0, 4 * groups)}\n${footer(lengthOf(groups))}`
  const valueOf = (groups: number): BytesPage["value"] => {
    const length = lengthOf(groups)
    const next = offset + length
    return {
      content: encoded.slice(0, 4 * groups),
      offset,
      limit: length,
      size_bytes: sizeBytes,
      truncated: next < sizeBytes,
      ...(next < sizeBytes ? { next } : {})
    }
  }
  const sentText = (groups: number): string => settings.sent(render(groups), () => valueOf(groups))
  const groups = countFitting(Math.ceil(content.length / bytesPerGroup), sentText, settings)
  const emptyMessage =
    sizeBytes === 0
      ? `${path} is empty`
      : `there are no bytes from offset ${requestedOffset}: ${path} has ${plural(sizeBytes, "byte")}`
  return { message: lengthOf(groups) === 0 ? emptyMessage : render(groups), value: valueOf(groups) }
}

const maxLines = 2000
const maxImageBytes = 5 * 1024 * 1024
/** The largest number of bytes in one result. A small budget reduces this number. */
const maxBytes = 256 * 1024
/** The largest text file, in bytes, that is read to its end for one page. */
const maxTextBytes = standard.maxReadBytes
/**
 * The number of bytes at the beginning of a file that are checked for NUL. A file with a NUL there is binary, as in searches.
 */
const sniffedBytes = 8192

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

type ReadAnswer = Answer<typeof Value.Type>

interface LineWindow {
  readonly offset: number
  readonly limit: number | undefined
}

const budgetOf = ({ sent, settings }: Call, fields: object): PageBudget => ({
  ...settings,
  sent: (message, value) => sent(message, () => ({ ...fields, ...value() }))
})

const readAsBytes = Effect.fnUntraced(function* (
  path: FsPath,
  { limit, offset }: LineWindow,
  call: Call
): Effect.fn.Return<ReadAnswer, ToolFailure> {
  const { filesystem, memory } = call
  const maxCount = Math.min(limit ?? maxBytes, maxBytes)
  const read = yield* filesystem.readBytes(path, { offset, limit: maxCount, version: true })
  const version = read.version!
  memory.saw(path, version)
  const media = read.offset === 0 ? mediaTypeOf(read.content) : undefined
  const commonFields = { path, encoding: "base64" as const, ...(media !== undefined && { media_type: media.type }), version }
  const { message, value } = bytesPage({ ...read, path }, offset, budgetOf(call, commonFields))
  const isShown = media !== undefined && isViewable(media.type) && !value.truncated
  return { message: isShown ? imageMessage(path, media, read.sizeBytes) : message, value: { ...commonFields, ...value } }
})

const imageMessage = (path: FsPath, { name }: MediaType, sizeBytes: number): string => `${path}: ${name}, ${size(sizeBytes)}`

const readAsImage = Effect.fnUntraced(function* (
  path: FsPath,
  media: MediaType,
  { filesystem, memory }: Call
): Effect.fn.Return<ReadAnswer, ToolFailure> {
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
    media_type: media.type,
    version: version!
  }
  return { message: imageMessage(path, media, sizeBytes), value }
})

const readAsText = Effect.fnUntraced(function* (
  path: FsPath,
  { limit, offset }: LineWindow,
  encoding: Encoding,
  call: Call
): Effect.fn.Return<ReadAnswer | "binary", ToolFailure> {
  const { filesystem, memory } = call
  // Read the whole text. A page costs a full read anyway, and later the text shows which lines have changed.
  const read = yield* filesystem.read(path, { limit: -1, encoding, version: true })
  // The read removed the final LF. A CR that remains at the end was part of a CRLF.
  const end = read.endsWithNewline ? (read.content.endsWith("\r") ? "\r\n" : "\n") : ""
  const text = read.content + end
  if (text.slice(0, sniffedBytes).includes("\0")) return "binary"
  const version = read.version!
  memory.saw(path, version, text)
  const start = offset < 0 ? Math.max(0, Text.page(text, 0, 0).totalLines + offset) : offset
  const window = windowOf(path, text, encoding, start, Math.min(limit ?? maxLines, maxLines))
  const commonFields = { path, encoding, version }
  const { message, value } = page(window, start, budgetOf(call, commonFields))
  return { message, value: { ...commonFields, ...value } }
})

/**
 * Reads a page of a file that exceeds the read limit. The whole file is streamed, but only the lines of the page are kept, joined
 * by LF. The version is read first. If the file then changes, the recorded version is outdated, and a change that requires this
 * version fails.
 */
const readAsLines = Effect.fnUntraced(function* (
  path: FsPath,
  { limit = maxLines, offset }: LineWindow,
  sizeBytes: number,
  call: Call
): Effect.fn.Return<ReadAnswer, ToolFailure> {
  const { filesystem, memory } = call
  const version = yield* filesystem.version(path)
  const maxCount = Math.min(limit, maxLines)
  let kept: Array<string> = []
  let totalLines = 0
  yield* Stream.runForEachArray(filesystem.lines(path), (lines) =>
    Effect.sync(() => {
      for (const line of lines) if (totalLines++ >= offset && (offset < 0 || kept.length < maxCount)) kept.push(line)
      if (kept.length > -2 * offset && offset < 0) kept = kept.slice(offset)
    })
  )
  if (offset < 0) kept = kept.slice(offset)
  const start = offset < 0 ? totalLines - kept.length : Math.min(offset, totalLines)
  const end = yield* filesystem.readBytes(path, { offset: sizeBytes - 1 })
  memory.saw(path, version)
  const shown = kept.slice(0, maxCount)
  const window = { path, content: shown.join("\n"), offset: start, limit: shown.length, totalLines }
  const commonFields = { path, encoding: "utf-8" as const, version }
  const endsWithNewline = end.content[0] === 10
  const { message, value } = page({ ...window, endsWithNewline }, Math.max(start, offset), budgetOf(call, commonFields))
  return { message, value: { ...commonFields, ...value } }
})

const byteOrderMark = ([first, second]: Uint8Array): Encoding =>
  first === 0xff && second === 0xfe ? "utf-16le" : first === 0xfe && second === 0xff ? "utf-16be" : "utf-8"

const refuseBinary = (path: FsPath, sizeBytes: number, media: MediaType | undefined): ToolFailure =>
  refused(
    `${path} is binary, not text: ${media === undefined ? "unknown type" : `${media.name} (${media.type})`}, ${size(sizeBytes)}.`,
    'To get its bytes call read_file with encoding="base64"; offset and limit are then in bytes.'
  )

const refuseTooLarge = (path: FsPath, actual: number, allowed: number): ToolFailure =>
  refused(
    `${path} has ${size(actual)}, but only files of at most ${size(allowed)} can be read as text.`,
    'Read a part of its bytes with encoding="base64", and with offset and limit in bytes.'
  )

const readOther = Effect.fnUntraced(function* (
  path: FsPath,
  window: LineWindow,
  call: Call,
  exceededLimit?: { readonly allowed: number }
): Effect.fn.Return<ReadAnswer, ToolFailure> {
  const { content, sizeBytes } = yield* call.filesystem.readBytes(path, { limit: sniffedBytes })
  const media = mediaTypeOf(content)
  if (media !== undefined && isViewable(media.type) && sizeBytes <= maxImageBytes) return yield* readAsImage(path, media, call)
  const encoding = byteOrderMark(content)
  const isBinary = media !== undefined || (encoding === "utf-8" && content.includes(0))
  if (exceededLimit !== undefined && !isBinary) {
    if (encoding === "utf-8" && sizeBytes <= maxTextBytes) return yield* readAsLines(path, window, sizeBytes, call)
    return yield* Effect.fail(refuseTooLarge(path, sizeBytes, encoding === "utf-8" ? maxTextBytes : exceededLimit.allowed))
  }
  const text =
    encoding === "utf-8" || isBinary
      ? "binary"
      : yield* readAsText(path, window, encoding, call).pipe(
          Effect.catchTag("NotText", () => Effect.succeed("binary" as const))
        )
  return text === "binary" ? yield* Effect.fail(refuseBinary(path, sizeBytes, media)) : text
})

const read = (path: FsPath, window: LineWindow, call: Call): Effect.Effect<ReadAnswer, ToolFailure> =>
  readAsText(path, window, "utf-8", call).pipe(
    Effect.catchTags({
      NotText: () => Effect.succeed("binary" as const),
      LimitExceeded: (error) => (error.limit === "maxReadBytes" ? readOther(path, window, call, error) : Effect.fail(error))
    }),
    Effect.flatMap((read) => (read === "binary" ? readOther(path, window, call) : Effect.succeed(read)))
  )

const invalid = (argument: string, detail: string, { tool }: Call, path: string): InvalidArgument =>
  new InvalidArgument({ operation: tool, path, argument, detail })

interface Params {
  readonly path: string
  readonly line?: number
  readonly offset?: number
  readonly limit?: number
  readonly encoding?: "utf-8" | "base64"
}

const windowOfParams = (
  { encoding, limit, line, offset, path }: Params,
  call: Call
): Effect.Effect<LineWindow, InvalidArgument> => {
  if (line === undefined) return Effect.succeed({ offset: offset ?? 0, limit })
  if (encoding === "base64") return Effect.fail(invalid("line", "bytes have no lines; give offset in bytes", call, path))
  const start = line > 0 ? line - 1 : line
  return offset === undefined || offset === start
    ? Effect.succeed({ offset: start, limit })
    : Effect.fail(invalid("line", `offset ${offset} means line ${offset + 1}; give either line or offset`, call, path))
}

const maxShownBase64 = 4000

const attachmentOf = (value: typeof Value.Type, message: string): Attachment | undefined => {
  const {
    content,
    encoding,
    media_type: type = "application/octet-stream",
    offset,
    path,
    size_bytes: bytes = 0,
    truncated
  } = value
  if (encoding !== "base64" || offset !== 0 || truncated || bytes === 0 || isViewable(type)) return undefined
  const summary = `${path}: ${size(bytes)} of ${type}, attached; for a part as text give encoding="base64", offset and limit`
  return { path, mediaType: type, base64: content, message: content.length > maxShownBase64 ? summary : message }
}

export const readFile = define({
  name: "read_file",
  description:
    "Read a file as numbered lines, at most 2000 at a time; the last line of the answer says how to continue. " +
    "Images are shown. Other binary files need encoding base64.",
  parameters: Schema.Struct({
    path: Schema.String.annotate({ description: "File, relative to the root" }),
    line: optional(Schema.Int, "First line, counted from 1. Negative: from the end, -20 is the last 20 lines"),
    offset: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)), "Lines (base64: bytes) to skip"),
    limit: optional(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1)), "Number of lines (base64: bytes)"),
    encoding: optional(Schema.Literals(["utf-8", "base64"]), "Default utf-8")
  }),
  value: Value,
  does: "reads",
  idempotent: true,
  examples: [{ path: "README.md" }, { path: "src/main.ts", line: 120, limit: 40 }, { path: "logo.bin", encoding: "base64" }],
  touches: touching("read"),
  handle: Effect.fnUntraced(function* (params, call) {
    const path = yield* call.path(params.path)
    const window = yield* windowOfParams(params, call)
    return yield* params.encoding === "base64" ? readAsBytes(path, window, call) : read(path, window, call)
  }),
  attachment: attachmentOf,
  images: ({ content, encoding, media_type: mediaType, offset, truncated }) =>
    encoding === "base64" && mediaType !== undefined && isViewable(mediaType) && offset === 0 && !truncated
      ? [{ mediaType, base64: content }]
      : []
})
