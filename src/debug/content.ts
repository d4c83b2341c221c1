/**
 * Describes the content of one file: text as text, bytes as base64, and at most as much as a page can show. The shown bytes
 * decide whether a file is text, not its name.
 */
import * as Effect from "effect/Effect"
import * as DateTime from "effect/DateTime"
import { base64 } from "../agent/text/bytes.ts"
import { type MediaType, mediaTypeOf as typeByBytes, mediaTypeOfMediaTypes as typeByName } from "../agent/text/mediaType.ts"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FileStat } from "../model/Entry.ts"
import * as FsPath from "../model/FsPath.ts"
import { Limits, unlimited } from "../model/Limits.ts"
import { sha256 } from "../runtime/hash.ts"
import { type DebugError, toFileError, makeDebugError } from "./errors.ts"
import type { FileContent } from "./model.ts"
import { partOfLine } from "./partOfLine.ts"
import * as Parts from "./parts.ts"

const MiB = 1024 * 1024

/** The largest text that is shown at once, in bytes. */
export const maxTextBytes = 8 * MiB

/** The largest text that is shown in parts, in bytes; its lines must be counted first. */
export const maxIndexedBytes = 2048 * MiB

/** The largest binary file that is shown, in bytes. */
export const maxBinaryBytes = 16 * MiB

/** The number of bytes that decide the kind of a file. */
const sniffedBytes = 8192

const bitmap: MediaType = { type: "image/bmp", name: "BMP image" }
const unknown: MediaType = { type: "application/octet-stream", name: "binary file" }

/** Tests for a bitmap. Its two letters also begin other files, but only a bitmap has four zeros after its size. */
const isBitmap = (bytes: Uint8Array): boolean =>
  bytes[0] === 0x42 && bytes[1] === 0x4d && [6, 7, 8, 9].every((offset) => bytes[offset] === 0) && bytes.length > 26

const binaryType = (bytes: Uint8Array): MediaType => typeByBytes(bytes) ?? (isBitmap(bytes) ? bitmap : unknown)

const textNames: Readonly<Record<string, string>> = {
  "application/json": "JSON",
  "application/toml": "TOML",
  "application/xml": "XML",
  "application/yaml": "YAML",
  "image/svg+xml": "SVG image",
  "text/css": "CSS",
  "text/csv": "CSV",
  "text/html": "HTML",
  "text/javascript": "JavaScript",
  "text/markdown": "Markdown"
}

const languages: Readonly<Record<string, string>> = {
  bash: "shell script",
  c: "C",
  cc: "C++",
  cpp: "C++",
  cs: "C#",
  cts: "TypeScript",
  diff: "patch",
  go: "Go",
  h: "C header",
  hpp: "C++ header",
  ini: "INI",
  ipynb: "notebook",
  java: "Java",
  jsonc: "JSON with comments",
  jsonl: "JSON Lines",
  jsx: "JavaScript with JSX",
  kt: "Kotlin",
  less: "Less",
  log: "log",
  lua: "Lua",
  mts: "TypeScript",
  patch: "patch",
  php: "PHP",
  pl: "Perl",
  proto: "Protocol Buffers",
  ps1: "PowerShell",
  py: "Python",
  r: "R",
  rb: "Ruby",
  rs: "Rust",
  scss: "Sass",
  sh: "shell script",
  sql: "SQL",
  swift: "Swift",
  ts: "TypeScript",
  tsv: "TSV",
  tsx: "TypeScript with JSX",
  vue: "Vue",
  zig: "Zig"
}

const endingOf = (path: string): string => /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? ""

/** Returns the language by the extension. `hasOwn` protects against extensions such as "constructor". */
const languageOf = (path: string): string | undefined => {
  const ending = endingOf(path)
  return Object.hasOwn(languages, ending) ? languages[ending] : undefined
}

const textType = (path: string): MediaType => {
  const type = typeByName(path, new Uint8Array(), true)
  return { type, name: textNames[type] ?? languageOf(path) ?? "text" }
}

const encodings: ReadonlyArray<readonly [label: string, first: number, second: number]> = [
  ["utf-16le", 0xff, 0xfe],
  ["utf-16be", 0xfe, 0xff]
]

const decodeText = (label: string, bytes: Uint8Array, isWhole: boolean): string | undefined => {
  try {
    return new TextDecoder(label, { fatal: true, ignoreBOM: true }).decode(bytes, { stream: !isWhole })
  } catch {
    return undefined
  }
}

const encodingOf = (bytes: Uint8Array): string =>
  encodings.find(([, first, second]) => bytes[0] === first && bytes[1] === second)?.[0] ?? "utf-8"

/** Decodes text, or returns `undefined` for binary content. A character cut off at the end is dropped. */
const textOf = (bytes: Uint8Array, isWhole: boolean): string | undefined => {
  const encoding = encodingOf(bytes)
  return encoding === "utf-8" && bytes.subarray(0, sniffedBytes).includes(0) ? undefined : decodeText(encoding, bytes, isWhole)
}

type ContentFields = Pick<FileContent, "kind" | "media_type" | "media_name" | "encoding" | "content" | "truncated">

export interface RequestedPart {
  readonly part?: number | undefined
  readonly line?: number | undefined
  /** The identity of the tree in the cache of text parts. @default the filesystem */
  readonly tree?: object | undefined
}

const textFields = (path: string, content: string, truncated: boolean): ContentFields => {
  const { name, type } = textType(path)
  return { kind: "text", media_type: type, media_name: name, encoding: "utf-8", content, truncated }
}

const binaryFields = (head: Uint8Array, bytes: Uint8Array | undefined): ContentFields => {
  const { name, type } = binaryType(head)
  return {
    kind: "binary",
    media_type: type,
    media_name: name,
    encoding: "base64",
    content: bytes === undefined ? null : base64(bytes),
    truncated: false
  }
}

export const describeBytes = (path: string, bytes: Uint8Array): FileContent => {
  const isWhole = bytes.length <= maxTextBytes
  const text = textOf(isWhole ? bytes : bytes.subarray(0, maxTextBytes), isWhole)
  const contentFields =
    text === undefined
      ? binaryFields(bytes, bytes.length > maxBinaryBytes ? undefined : bytes)
      : textFields(path, text, !isWhole)
  return { path, size_bytes: bytes.length, ...contentFields, version: sha256(bytes) }
}

export const describeTooLarge = (path: string, size: number): FileContent => ({
  path,
  size_bytes: size,
  ...binaryFields(new Uint8Array(), undefined)
})

const octal = (mode: number): string => mode.toString(8).padStart(4, "0")

const attributes = ({ mode, modifiedAt }: FileStat): Pick<FileContent, "mode" | "modified_at"> => ({
  ...(mode === undefined ? undefined : { mode: octal(mode) }),
  ...(modifiedAt === undefined ? undefined : { modified_at: DateTime.formatIso(modifiedAt) })
})

const describeLarge = Effect.fnUntraced(function* (fs: Algebra, stat: FileStat, requestedPart: RequestedPart) {
  const { path, sizeBytes } = stat
  const { content: head } = yield* fs.readBytes(path, { limit: sniffedBytes })
  const isLikelyText = textOf(head, false) !== undefined
  if (isLikelyText) {
    const { content } = yield* fs.readBytes(path, { limit: maxTextBytes })
    const text = textOf(content, false)
    if (text !== undefined) {
      // Lines of other encodings end in other bytes.
      const isInParts = encodingOf(head) === "utf-8" && sizeBytes <= maxIndexedBytes
      return isInParts ? yield* describePart(fs, stat, requestedPart) : textFields(path, text, true)
    }
  }
  return binaryFields(head, sizeBytes > maxBinaryBytes ? undefined : (yield* fs.readBytes(path)).content)
})

const describePart = Effect.fnUntraced(function* (fs: Algebra, stat: FileStat, { line, part, tree }: RequestedPart) {
  const { path } = stat
  const index = yield* Parts.cachedIndexOf(fs, path, stat, maxTextBytes, tree)
  const number = part ?? (line === undefined ? 0 : partOfLine(index.firstLines, line))
  const count = index.offsets.length
  if (number >= count)
    return yield* makeDebugError("missing", `${JSON.stringify(path)} has ${count} parts, counted from 0`, path)
  const text = yield* Parts.read(fs, path, index, number)
  return {
    ...textFields(path, text, true),
    part: { number, first_lines: index.firstLines, total_lines: index.totalLines }
  }
})

/** Accepts only a path spelled as in the tree, so that each file has one name. */
const checkPath = (path: string): FsPath.FsPath | DebugError => {
  const parsed = FsPath.parse(path)
  return parsed === path && parsed !== FsPath.root
    ? parsed
    : makeDebugError("missing", `there is no file ${JSON.stringify(path.slice(0, 200))}: a path is as the tree says it`)
}

const linkAt = (fs: Algebra, path: FsPath.FsPath): Effect.Effect<string | undefined> =>
  fs.port.links === undefined
    ? Effect.succeed(undefined)
    : Effect.catch(fs.port.links.read(path), () => Effect.succeed(undefined))

/** Describes a file or link of a filesystem. Fails with `missing` for anything else. */
export const describePath = (
  fs: Algebra,
  givenPath: string,
  requestedPart: RequestedPart = {}
): Effect.Effect<FileContent, DebugError> =>
  Effect.suspend(() => {
    const path = checkPath(givenPath)
    if (typeof path !== "string") return Effect.fail(path)
    return Effect.gen(function* () {
      const target = yield* linkAt(fs, path)
      if (target !== undefined) {
        const link = { kind: "symlink", media_type: "inode/symlink", media_name: "link", encoding: "utf-8" } as const
        return { path, size_bytes: Buffer.byteLength(target), ...link, content: target, truncated: false }
      }
      const stat = yield* fs.stat(path)
      if (!stat.isFile) return yield* makeDebugError("missing", `${JSON.stringify(path)} is no file`, path)
      if (stat.sizeBytes > maxTextBytes) {
        return { path, size_bytes: stat.sizeBytes, ...(yield* describeLarge(fs, stat, requestedPart)), ...attributes(stat) }
      }
      const { content } = yield* fs.readBytes(path, { limit: maxBinaryBytes })
      return { ...describeBytes(path, content), ...attributes(stat) }
    }).pipe(
      Effect.mapError((error) => (error._tag === "DebugError" ? error : toFileError(path)(error))),
      Effect.provideService(Limits, unlimited)
    )
  })
