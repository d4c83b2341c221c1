/**
 * Provides the file backend of the agents of `deepagents` (npm), over any `Filesystem`.
 *
 * @example
 * ```ts
 * const backend = yield* DeepAgents.make()
 * yield* Effect.promise(async () => backend.edit("/notes/todo.md", "[ ] tea", "[x] tea"))
 * yield* fs.readString("notes/todo.md") // => "- [x] tea\n- [ ] bread\n"
 * const { files } = yield* Effect.promise(async () => backend.glob("*.ts", "/src"))
 * files?.map(({ path }) => path) // => ["/src/main.ts"]
 * ```
 * @since 0.1.0
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { BackendProtocolV2, FileInfo, FileOperationError, ReadResult } from "deepagents"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { FsError } from "../model/FsError.ts"
import { isBytes } from "../model/realms.ts"
import { Buffer } from "../runtime/buffer.ts"
import { fromFsError } from "./errno.ts"
import { runner } from "./run.ts"
import type { AdapterSupport } from "./support.ts"

/**
 * The tested version of the package, and its features that the adapter supports or does not support.
 *
 * @category models
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "DeepAgents",
  package: "deepagents",
  version: "1.14.1",
  maps: [
    "every method of BackendProtocolV2: ls, read, readRaw, write, edit, delete, grep, glob, uploadFiles, downloadFiles",
    "concurrent edits: each edit applies to the result of the previous edit"
  ],
  missing: [
    "execute: the backend is not a sandbox",
    "paths with `..` and with `~` at the start: refused in each method, where FilesystemBackend returns no files",
    'an empty text file has the content "", as in StateBackend',
    "symlinks inside the root are followed, where FilesystemBackend refuses them",
    "grep also finds hidden and ignored files, as in StateBackend",
    "edits of a file that is not UTF-8: refused, where FilesystemBackend replaces the invalid bytes"
  ]
}

const binaryTypes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  heic: "image/heic",
  heif: "image/heif",
  mp3: "audio/mpeg",
  wav: "audio/wav",
  aiff: "audio/aiff",
  aac: "audio/aac",
  ogg: "audio/ogg",
  flac: "audio/flac",
  mp4: "video/mp4",
  webm: "video/webm",
  mpeg: "video/mpeg",
  mov: "video/quicktime",
  avi: "video/x-msvideo",
  flv: "video/x-flv",
  mpg: "video/mpeg",
  wmv: "video/x-ms-wmv",
  "3gpp": "video/3gpp",
  pdf: "application/pdf",
  ppt: "application/vnd.ms-powerpoint",
  pptx: "application/vnd.openxmlformats-officedocument.presentationml.presentation"
}

const textTypes: Readonly<Record<string, string>> = {
  svg: "image/svg+xml",
  md: "text/markdown",
  markdown: "text/markdown",
  html: "text/html",
  htm: "text/html",
  css: "text/css",
  csv: "text/csv",
  xml: "text/xml",
  json: "application/json",
  js: "application/javascript",
  mjs: "application/javascript",
  cjs: "application/javascript"
}

/** Returns the type that deepagents gives to a file name. Only the types in `binaryTypes` are not text. */
const typeOf = (path: string): { readonly mimeType: string; readonly isBinary: boolean } => {
  const name = path.slice(path.lastIndexOf("/") + 1)
  const dot = name.lastIndexOf(".")
  const extension = dot <= 0 ? "" : name.slice(dot + 1).toLowerCase()
  const binary = Object.hasOwn(binaryTypes, extension) ? binaryTypes[extension] : undefined
  const text = Object.hasOwn(textTypes, extension) ? textTypes[extension] : undefined
  return { mimeType: binary ?? text ?? "text/plain", isBinary: binary !== undefined }
}

const binaryGlobs = Object.keys(binaryTypes).flatMap((extension) => [`*.${extension}`, `*.${extension.toUpperCase()}`])

class Refusal {
  readonly _tag = "Refusal"
  readonly message: string
  constructor(message: string) {
    this.message = message
  }
}

const refuse = (message: string): Effect.Effect<never, Refusal> => Effect.fail(new Refusal(message))

/** Returns the path below the root, or refuses a path that FilesystemBackend refuses. */
const toPath = (path: string): Effect.Effect<string, Refusal> => {
  if (typeof path !== "string") return refuse("Path must be a string")
  if (path.startsWith("~") || path.split("/").includes("..")) return refuse("Path traversal not allowed")
  return Effect.succeed(
    path
      .split("/")
      .filter((name) => name !== "" && name !== ".")
      .join("/") || "."
  )
}

const shown = (path: string): string => (path === "." ? "/" : `/${path}`)

const lossy = new TextDecoder("utf-8", { ignoreBOM: true })
const strict = new TextDecoder("utf-8", { ignoreBOM: true, fatal: true })
const encoder = new TextEncoder()

const toCount = (value: number): number => (Number.isFinite(value) ? Math.max(0, Math.floor(value)) : 0)

/** Returns a page of a text in the form of deepagents, with 1-based line numbers. */
const toPage = (text: string, mimeType: string, first: number, count: number): ReadResult => {
  const lines = text.split("\n")
  const totalLines = lines.at(-1) === "" ? lines.length - 1 : lines.length
  if (totalLines === 0) return { content: text, mimeType }
  if (first >= totalLines) return { error: `Line offset ${first} exceeds file length (${totalLines} lines)` }
  const content = lines.slice(first, first + count).join("\n")
  if (count === 0) return { content, mimeType }
  const endLine = Math.min(first + count, totalLines)
  const page = { content, mimeType, totalLines, startLine: first + 1, endLine }
  return endLine < totalLines ? { ...page, nextOffset: endLine } : page
}

const replace = (
  content: string,
  from: string,
  to: string,
  all: boolean
): Effect.Effect<readonly [string, number], Refusal> => {
  if (from === "")
    return content === "" ? Effect.succeed([to, 0]) : refuse("Error: oldString cannot be empty when file has content")
  const parts = content.split(from)
  const count = parts.length - 1
  if (count === 0) return refuse(`Error: String not found in file: '${from}'`)
  return count === 1 || all
    ? Effect.succeed([parts.join(to), count])
    : refuse(
        `Error: String '${from}' has multiple occurrences (appears ${count} times) in file. Use replace_all=True to replace all instances, or provide a more specific string with surrounding context.`
      )
}

const codes: Readonly<Record<string, FileOperationError>> = {
  NotFound: "file_not_found",
  AccessDenied: "permission_denied",
  NotAFile: "is_directory"
}

const isMissing = (error: FsError | Refusal): boolean => error._tag === "NotFound" || error._tag === "NotAFile"

/** The number of times that an edit starts again because the file changed during the edit. */
const maxEditRetries = 20

const makeBackend = (fs: Algebra) => {
  const time = (at: DateTime.Utc | undefined): string => (at === undefined ? "" : DateTime.formatIso(at))

  /**
   * Returns the entry at a path, and follows links. Returns `undefined` if there is no file or directory, if access is denied, or
   * if the path is invalid.
   */
  const info = (path: string): Effect.Effect<FileInfo | undefined, FsError> =>
    Effect.catchTags(
      Effect.map(fs.stat(path), ({ isDirectory, isFile, modifiedAt, sizeBytes }): FileInfo | undefined => {
        if (!isFile && !isDirectory) return undefined
        const rest = { is_dir: isDirectory, size: isDirectory ? 0 : sizeBytes, modified_at: time(modifiedAt) }
        return { path: isDirectory ? `${shown(path)}/` : shown(path), ...rest }
      }),
      { NotFound: () => Effect.undefined, AccessDenied: () => Effect.undefined, InvalidPath: () => Effect.undefined }
    )

  const infos = (paths: ReadonlyArray<string>) =>
    Effect.map(Effect.forEach(paths, info, { concurrency: 16 }), (found) =>
      found.filter((one) => one !== undefined).toSorted((one, other) => one.path.localeCompare(other.path))
    )

  const write = (path: string, content: unknown) =>
    Effect.flatMap(toPath(path), (at): Effect.Effect<unknown, FsError | Refusal> => {
      if (isBytes(content)) return fs.writeBytes(at, content)
      if (typeof content !== "string") return refuse("Content must be a string")
      return fs.writeBytes(at, typeOf(at).isBinary ? Buffer.from(content, "base64") : encoder.encode(content))
    })

  const edit = Effect.fnUntraced(function* (path: string, from: string, to: string, all: boolean) {
    const at = yield* toPath(path)
    if (typeof from !== "string" || typeof to !== "string")
      return yield* refuse("Error: oldString and newString must be strings")
    const { content, version } = yield* fs.readBytes(at, { version: true })
    const text = yield* Effect.try({
      try: () => strict.decode(content),
      catch: () => new Refusal(`Error: File '${path}' is not UTF-8 text`)
    })
    const [changed, occurrences] = yield* replace(text, from, to, all)
    yield* fs.writeBytes(at, encoder.encode(changed), { ifMatch: version, mode: "replace" })
    return { path, filesUpdate: null, occurrences }
  })

  const remove = Effect.fnUntraced(function* (path: string) {
    const at = yield* toPath(path)
    const paths = at === "." ? (yield* fs.list()).map(({ name }) => name) : [at]
    yield* Effect.forEach(paths, (one) => fs.delete(one, { recursive: true }), { discard: true })
    return { path, filesUpdate: null }
  })

  return { edit, infos, remove, time, write }
}

const backend: Effect.Effect<Required<BackendProtocolV2>, never, Filesystem> = Effect.gen(function* () {
  const fs = yield* Filesystem
  const runEffect = yield* runner
  const { edit, infos, remove, time, write } = makeBackend(fs)

  const messageOf = (syscall: string, path: string, error: FsError | Refusal): string =>
    error._tag === "Refusal" ? error.message : fromFsError(error, { syscall, path }).message

  type Failed = { readonly error: string }

  /** Runs one call. A failure becomes a result with an error text, as the protocol requires. */
  const run = <A>(
    effect: Effect.Effect<A, FsError | Refusal>,
    describe: (error: FsError | Refusal) => string
  ): Promise<A | Failed> =>
    runEffect(Effect.catch(effect, (error): Effect.Effect<A | Failed> => Effect.succeed({ error: describe(error) })))

  const read = <A>(path: string, use: (at: string, bytes: Uint8Array) => Effect.Effect<A, FsError>) =>
    run(
      Effect.flatMap(toPath(path), (at) => Effect.flatMap(fs.readBytes(at), ({ content }) => use(at, content))),
      (error) =>
        isMissing(error) ? `File '${path}' not found` : `Error reading file '${path}': ${messageOf("open", path, error)}`
    )

  const eachFile = <A>(path: string, effect: Effect.Effect<A, FsError | Refusal>) =>
    runEffect(
      Effect.match(effect, {
        onFailure: (error) => ({ path, error: codes[error._tag] ?? ("invalid_path" as const), value: undefined }),
        onSuccess: (value) => ({ path, error: null, value })
      })
    )

  return {
    ls: (path) =>
      run(
        Effect.catchTags(
          Effect.flatMap(toPath(path), (at) =>
            Effect.flatMap(fs.list(at), (entries) => infos(entries.map((entry) => entry.path)))
          ),
          { NotFound: () => Effect.succeed([]), NotADirectory: () => Effect.succeed([]) }
        ).pipe(Effect.map((files) => ({ files }))),
        (error) => `Error listing '${path}': ${messageOf("scandir", path, error)}`
      ),
    read: (path, offset = 0, limit = 500) =>
      read<ReadResult>(path, (_, bytes) => {
        const { isBinary, mimeType } = typeOf(path)
        return Effect.succeed(
          isBinary ? { content: bytes, mimeType } : toPage(lossy.decode(bytes), mimeType, toCount(offset), toCount(limit))
        )
      }),
    readRaw: (path) =>
      read(path, (at, bytes) =>
        Effect.map(fs.stat(at), ({ createdAt, modifiedAt }) => {
          const { isBinary, mimeType } = typeOf(path)
          const content = isBinary ? bytes : lossy.decode(bytes)
          return { data: { content, mimeType, created_at: time(createdAt ?? modifiedAt), modified_at: time(modifiedAt) } }
        })
      ),
    write: (path, content) =>
      run(
        Effect.as(write(path, content), { path, filesUpdate: null }),
        (error) => `Error writing file '${path}': ${messageOf("write", path, error)}`
      ),
    edit: (path, from, to, all = false) =>
      run(
        Effect.retry(edit(path, from, to, all), { times: maxEditRetries, while: ({ _tag }) => _tag === "Conflict" }),
        (error) => {
          if (isMissing(error)) return `Error: File '${path}' not found`
          const message = messageOf("write", path, error)
          return message.startsWith("Error: ") ? message : `Error editing file '${path}': ${message}`
        }
      ),
    delete: (path) =>
      run(remove(path), (error) =>
        error._tag === "NotFound" ? `Error: '${path}' not found` : `Error deleting '${path}': ${messageOf("rm", path, error)}`
      ),
    grep: (pattern, path, glob, maxCount) =>
      run(
        Effect.flatMap(toPath(path ?? "/"), (at) =>
          fs.grep(pattern, {
            path: at,
            literal: true,
            exclude: binaryGlobs,
            ...(glob == null || glob === "" ? undefined : { glob }),
            ...(maxCount == null ? undefined : { maxMatches: toCount(maxCount) })
          })
        ).pipe(
          Effect.map(({ matches, truncated }) => ({
            matches: matches.map(({ lineContent, lineNumber, path }) => ({
              path: shown(path),
              line: lineNumber,
              text: lineContent
            })),
            ...(truncated ? { truncated } : undefined)
          })),
          Effect.catchTag("NotFound", () => Effect.succeed({ matches: [] }))
        ),
        (error) => `Error searching '${path ?? "/"}': ${messageOf("grep", path ?? "/", error)}`
      ),
    glob: (pattern, path = "/") =>
      run(
        Effect.flatMap(typeof pattern === "string" ? toPath(path) : refuse("Pattern must be a string"), (at) =>
          fs.glob(pattern.startsWith("/") ? pattern : `/${pattern}`, { path: at, kinds: ["file", "symlink"] })
        ).pipe(
          Effect.flatMap(({ matches, truncated }) =>
            Effect.map(infos(matches.map((match) => match.path)), (found) => ({
              files: found.filter((file) => file.is_dir !== true),
              ...(truncated ? { truncated } : undefined)
            }))
          ),
          Effect.catchTags({
            NotFound: () => Effect.succeed({ files: [] }),
            NotADirectory: () => Effect.succeed({ files: [] })
          })
        ),
        (error) => `Error searching '${path}': ${messageOf("glob", path, error)}`
      ),
    uploadFiles: async (files) => {
      const responses = []
      for (const [path, content] of files) {
        const { error } = await eachFile(path, write(path, content))
        responses.push({ path, error })
      }
      return responses
    },
    downloadFiles: async (paths) => {
      const responses = []
      for (const path of paths) {
        const { error, value } = await eachFile(
          path,
          Effect.flatMap(toPath(path), (at) => fs.readBytes(at))
        )
        responses.push({ path, content: value?.content ?? null, error })
      }
      return responses
    }
  }
})

/**
 * Returns the backend for `createDeepAgent({ backend })`. The root of the filesystem is "/". The calls use the clock, the tracer
 * and the other services of this effect's context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (): Effect.Effect<Required<BackendProtocolV2>, never, Filesystem> => backend
