/**
 * Describes the content of one file, up to the size that a page can show. Text is returned as text, and other content as
 * base64. A file counts as text by its bytes, not by its name.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { base64, type MediaType, mediaTypeOf as typeByBytes, mediaTypeOfName as typeByName } from "../agent/text/mediaType.ts"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FileStat } from "../model/Entry.ts"
import type { FsError } from "../model/FsError.ts"
import * as FsPathModule from "../model/FsPath.ts"
import type { FsPath } from "../model/FsPath.ts"
import { Limits, unlimited } from "../model/Limits.ts"
import { sha256 } from "../runtime/hash.ts"
import { type DebugError, makeDebugError, toFileError } from "./errors.ts"
import type { FileContent } from "./model.ts"
import { partOfLine } from "./partOfLine.ts"

// Splits a large text into parts that a page shows one at a time, with line numbers. A part ends at the end of a line, unless
// the line is longer than a part.

/** The beginning of each part: its byte offset, and the number of its first line, counted from 1. */
interface Index {
  readonly offsets: ReadonlyArray<number>
  readonly firstLines: ReadonlyArray<number>
  readonly totalLines: number
  readonly size: number
}

const lineFeed = 10

export const indexOf = (fs: Algebra, path: FsPath, maxPart: number): Effect.Effect<Index, FsError> =>
  Effect.suspend(() => {
    const offsets = [0]
    const firstLines = [1]
    let size = 0
    let line = 1
    let afterLine = 0
    const beginPart = (): void => {
      const begin = offsets.at(-1)!
      offsets.push(afterLine > begin ? afterLine : begin + maxPart)
      firstLines.push(line)
    }
    const take = (chunk: Uint8Array): void => {
      for (let at = 0; at < chunk.length;) {
        // The part is full and more bytes follow, so begin another part.
        if (size + at === offsets.at(-1)! + maxPart) beginPart()
        const stop = Math.min(chunk.length, offsets.at(-1)! + maxPart - size)
        for (
          let found = chunk.indexOf(lineFeed, at);
          found !== -1 && found < stop;
          found = chunk.indexOf(lineFeed, found + 1)
        ) {
          line++
          afterLine = size + found + 1
        }
        at = stop
      }
      size += chunk.length
    }
    return Effect.map(
      Stream.runForEach(fs.stream(path, { chunkSize: 2 ** 20 }), (chunk) => Effect.sync(() => take(chunk))),
      () => ({ offsets, firstLines, size, totalLines: afterLine === size ? line - 1 : line })
    )
  })

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80

/** The largest number of bytes in a UTF-8 character after the first byte. */
const maxContinuationBytes = 3

/** Reads one part as UTF-8. A character on the boundary of two parts belongs to the second part. */
export const read = (fs: Algebra, path: FsPath, { offsets, size }: Index, part: number): Effect.Effect<string, FsError> => {
  const begin = offsets[part]!
  const end = offsets[part + 1] ?? size
  const offset = Math.max(0, begin - maxContinuationBytes)
  return Effect.map(fs.readBytes(path, { offset, limit: end + 1 - offset }), ({ content }) => {
    const boundary = (given: number): number => {
      let at = given
      while (at > 0 && given - at < maxContinuationBytes && isContinuation(content[at])) at--
      return isContinuation(content[at]) ? given : at
    }
    const bytes = content.subarray(boundary(begin - offset), boundary(Math.min(end - offset, content.length)))
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)
  })
}

interface CachedIndex {
  readonly stamp: string
  readonly index: Index
}

const maxIndexesPerTree = 16

const indexesByTree = new WeakMap<object, Map<string, CachedIndex>>()

const stampOf = ({ modifiedAt, sizeBytes }: FileStat): string => `${sizeBytes} ${modifiedAt?.epochMilliseconds ?? ""}`

/**
 * Returns the index of the parts of a file. The index is cached until the size or the time of the file changes. The cache key
 * includes `tree`, the identity of the file's tree, because several filesystems can show the same tree.
 */
const cachedIndexOf = (
  fs: Algebra,
  path: FsPath,
  stat: FileStat,
  maxPart: number,
  tree: object = fs
): Effect.Effect<Index, FsError> =>
  Effect.suspend(() => {
    const files = indexesByTree.get(tree) ?? new Map<string, CachedIndex>()
    indexesByTree.set(tree, files)
    const stamp = stampOf(stat)
    const cached = files.get(path)
    if (cached?.stamp === stamp) return Effect.succeed(cached.index)
    return Effect.tap(indexOf(fs, path, maxPart), (index) =>
      Effect.sync(() => {
        files.delete(path)
        if (files.size >= maxIndexesPerTree) files.delete(files.keys().next().value!)
        files.set(path, { stamp, index })
      })
    )
  })

const MiB = 1024 * 1024

/** The largest text that is shown as a whole, in bytes. */
const maxTextBytes = 8 * MiB

/**
 * The largest text that is shown in parts, in bytes. The lines of the whole text must be counted before the first part is
 * shown.
 */
const maxIndexedBytes = 2048 * MiB

export const maxBinaryBytes = 16 * MiB

const sniffedBytes = 8192

const bitmap: MediaType = { type: "image/bmp", name: "BMP image" }
const unknown: MediaType = { type: "application/octet-stream", name: "binary file" }

/**
 * Tests whether the bytes are a bitmap. A text may begin with the same two letters, but a bitmap also has four zero bytes after
 * its size.
 */
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

/**
 * Returns the language for the extension of the path. `hasOwn` prevents matches with inherited properties such as
 * "constructor".
 */
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

/** Decodes text, or returns `undefined` for binary content. Unless `isWhole`, drops an incomplete character at the end. */
const textOf = (bytes: Uint8Array, isWhole: boolean): string | undefined => {
  const encoding = encodingOf(bytes)
  return encoding === "utf-8" && bytes.subarray(0, sniffedBytes).includes(0) ? undefined : decodeText(encoding, bytes, isWhole)
}

type ContentFields = Pick<FileContent, "kind" | "media_type" | "media_name" | "encoding" | "content" | "truncated">

interface RequestedPart {
  readonly part?: number | undefined
  readonly line?: number | undefined
  /** The identity of the tree, which is the key in the cache of text parts. @default the filesystem */
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
      // Only UTF-8 is shown in parts, because the index searches for the byte of LF.
      const isInParts = encodingOf(head) === "utf-8" && sizeBytes <= maxIndexedBytes
      return isInParts ? yield* describePart(fs, stat, requestedPart) : textFields(path, text, true)
    }
  }
  return binaryFields(head, sizeBytes > maxBinaryBytes ? undefined : (yield* fs.readBytes(path)).content)
})

const describePart = Effect.fnUntraced(function* (fs: Algebra, stat: FileStat, { line, part, tree }: RequestedPart) {
  const { path } = stat
  const index = yield* cachedIndexOf(fs, path, stat, maxTextBytes, tree)
  const number = part ?? (line === undefined ? 0 : partOfLine(index.firstLines, line))
  const count = index.offsets.length
  if (number >= count)
    return yield* makeDebugError(
      "missing",
      `there is no part ${number}: ${JSON.stringify(path)} has ${count} parts, counted from 0`,
      path
    )
  const text = yield* read(fs, path, index, number)
  return {
    ...textFields(path, text, true),
    part: { number, first_lines: index.firstLines, total_lines: index.totalLines }
  }
})

/** Returns the path, or an error if the path is not spelled as in the tree. Each file has exactly one valid spelling. */
const checkPath = (path: string): FsPathModule.FsPath | DebugError => {
  const parsed = FsPathModule.parse(path)
  return parsed === path && parsed !== FsPathModule.root
    ? parsed
    : makeDebugError("missing", `there is no file ${JSON.stringify(path.slice(0, 200))}; use a path from the tree`)
}

const linkAt = (fs: Algebra, path: FsPathModule.FsPath): Effect.Effect<string | undefined> =>
  fs.port.links === undefined
    ? Effect.succeed(undefined)
    : Effect.catch(fs.port.links.read(path), () => Effect.succeed(undefined))

/** Describes a file or link of a filesystem. Fails with `missing` for all other entries. */
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
      if (!stat.isFile) return yield* makeDebugError("missing", `${JSON.stringify(path)} is not a file`, path)
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
