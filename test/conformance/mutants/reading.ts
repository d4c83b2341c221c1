/** Mutants that read wrongly or report failures wrongly. Most of these mistakes occur in real filesystems. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { IoError, NotFound } from "../../../src/model/FsError.ts"
import { answer, call, errors, given, type Mutant, type Operation, option, spelling, outcome } from "./mutant.ts"

const tags = [
  "NotFound",
  "AlreadyExists",
  "AccessDenied",
  "InvalidPath",
  "PathTooLong",
  "NotADirectory",
  "NotAFile",
  "DirectoryNotEmpty",
  "DiskFull",
  "Timeout",
  "NotText",
  "LimitExceeded",
  "InvalidArgument",
  "Conflict",
  "Unsupported",
  "Unavailable"
]

const changed = (error: any, fields: object): any => new error.constructor({ ...error, ...fields })

const telling: ReadonlyArray<Mutant> = [
  ...tags.map((tag) =>
    errors(`${tag} is reported as IoError`, (error) =>
      error._tag === tag ? new IoError({ operation: error.operation, path: error.path, detail: tag }) : error
    )
  ),
  errors("every AccessDenied has the reason permission", (error) =>
    error._tag === "AccessDenied" ? changed(error, { why: "permission" }) : error
  ),
  errors("no error names its operation", (error) => changed(error, { operation: "" })),
  errors("errors contain the normalised path", (error) =>
    changed(error, {
      path: error.path
        .split("/")
        .filter((segment: string) => segment !== "")
        .join("/")
    })
  ),
  errors("no NotFound names the missing base", (error) =>
    error._tag === "NotFound" ? new NotFound({ operation: error.operation, path: error.path }) : error
  ),
  errors("no error names its argument", (error) =>
    error._tag === "InvalidArgument" ? changed(error, { argument: "?" }) : error
  ),
  errors("no error has a detail", (error) => ("detail" in error ? changed(error, { detail: "failed" }) : error)),
  errors("the offset of invalid text is counted from the line", (error) =>
    error._tag === "NotText" ? changed(error, { offset: 0 }) : error
  ),
  errors("LimitExceeded has the allowed value as the actual value", (error) =>
    error._tag === "LimitExceeded" ? changed(error, { actual: error.allowed }) : error
  ),
  errors("a conflict has a wrong actual version", (error) =>
    error._tag === "Conflict" ? changed(error, { actual: "?" }) : error
  ),
  errors("errors are plain objects", (error) => ({ ...error })),
  errors("errors do not survive JSON", (error) => ({ ...error, path: Symbol.iterator })),
  errors("the path of the host is in the message", (error) =>
    error.code === "EIO" ? changed(error, { detail: "/secret/root/d/f" }) : error
  ),
  errors("the path of the root on the host is in the error", (error, { port }) =>
    error._tag === "NotFound" ? changed(error, { path: `${port.info.root}/${error.path}` }) : error
  )
]

const spellings: ReadonlyArray<Mutant> = [
  spelling("paths are trimmed", (path) => path.trim()),
  spelling("paths are clamped at the root", (path) => path.replace(/^(\/?[^/]+\/)?(\.\.\/)+/, "")),
  spelling("percent signs are decoded", (path) => path.replaceAll("%2e", ".")),
  spelling("backslashes separate segments", (path) => path.replaceAll("\\", "/")),
  spelling("names are normalised", (path) => path.normalize("NFC")),
  spelling("names become lower case", (path) => path.toLowerCase()),
  spelling("control characters are dropped", (path) => path.replaceAll(/[\0-\x1f\x7f]/g, "")),
  spelling("lone surrogates are replaced", (path) => path.toWellFormed()),
  spelling("names of temporary files can be used", (path) => path.replace(".~fsa", "fsa")),
  spelling("an absolute path begins at the root of the machine", (path) =>
    path.startsWith("/") && path !== "/" ? `machine${path}` : path
  ),
  spelling("a double slash is a name", (path) => path.replaceAll("//", "/_/")),
  spelling("a dot is a name", (path) => path.replaceAll("./", "_/").replaceAll("/.", "/_")),
  spelling("two dots are a name", (path) => path.replaceAll("..", "_")),
  spelling("a trailing slash requires a directory", (path) => (path.length > 1 && path.endsWith("/") ? `${path}x` : path)),
  spelling("a dot is not the root", (path) => (path === "." ? "_" : path)),
  spelling("an empty path and a slash are not the root", (path) => (path === "" || path === "/" ? "root" : path)),
  spelling("long names are cut", (path) =>
    path
      .split("/")
      .map((name) => name.slice(0, 100))
      .join("/")
      .slice(0, 2000)
  ),
  spelling("deep paths are cut", (path) => path.split("/").slice(0, 15).join("/")),
  spelling("long names are refused below the limit", (path) => (path.length > 200 && path.length < 256 ? "../too long" : path))
]

const cached = (operation: Operation): Mutant =>
  call(`${operation} returns its first answer again and again`, operation, (original) => {
    const kept = new Map<string, any>()
    return (path: string, ...rest: ReadonlyArray<any>) => {
      const key = JSON.stringify([path, rest])
      return Effect.suspend(() =>
        kept.has(key)
          ? Effect.succeed(kept.get(key))
          : Effect.tap(original(path, ...rest), (value) => Effect.sync(() => kept.set(key, value)))
      )
    }
  })

const reading: ReadonlyArray<Mutant> = [
  cached("readString"),
  cached("readBytes"),
  cached("version"),
  cached("stat"),
  answer("read counts one line too many", "read", (page) => ({ ...page, totalLines: page.totalLines + 1 })),
  answer("read counts the line after the last line end", "read", (page) =>
    page.endsWithNewline ? { ...page, totalLines: page.totalLines + 1 } : page
  ),
  answer("read loses the line ends", "read", (page) => ({ ...page, content: page.content.replaceAll("\r\n", "\n") })),
  answer("read keeps the last line end", "read", (page) => ({
    ...page,
    content: page.endsWithNewline ? `${page.content}\n` : page.content
  })),
  answer("read ends lines at every line end of Unicode", "read", (page) => ({
    ...page,
    totalLines: page.content.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/).length
  })),
  answer("read never reports truncated", "read", (page) => ({ ...page, truncated: false, next: undefined })),
  answer("read always reports truncated", "read", (page) => ({
    ...page,
    truncated: true,
    next: page.offset + page.limit
  })),
  answer("read does not report a final line end", "read", (page) => ({ ...page, endsWithNewline: false })),
  answer("read returns the given limit", "read", (page, [, options]) => ({
    ...page,
    limit: options?.limit ?? 2000
  })),
  answer("read returns the given offset", "read", (page, [, options]) => ({
    ...page,
    offset: options?.offset ?? 0
  })),
  answer("read returns a version without the option version", "read", (page) => ({ ...page, version: "0" })),
  answer("readBytes returns a version without the option version", "readBytes", (page) => ({ ...page, version: "0" })),
  answer("read drops the byte order mark", "read", (page) => ({ ...page, content: page.content.replace(/^\ufeff/, "") })),
  answer("readString drops the byte order mark", "readString", (text) => text.replace(/^\ufeff/, "")),
  answer("readString loses the carriage returns", "readString", (text) => text.replaceAll("\r\n", "\n")),
  answer("readString normalises the text", "readString", (text) => text.normalize("NFD")),
  answer("readString treats U+FFFD as invalid text", "readString", (text) => text.replaceAll("\ufffd", "?")),
  outcome("invalid bytes are read as U+FFFD", "readString", (result, self, [path]) =>
    Effect.catch(result, () => Effect.map(self.readBytes(path), ({ content }) => new TextDecoder().decode(content)))
  ),
  outcome("invalid bytes are read by page as Latin-1", "read", (result, self, [path, options]) =>
    Effect.catchTag(result, "NotText" as never, () => self.read(path, { ...options, encoding: "latin1" }))
  ),
  option("read", "offset"),
  option("read", "limit"),
  option("read", "limit", -1),
  option("read", "encoding"),
  option("read", "version", false),
  option("readBytes", "offset"),
  option("readBytes", "limit"),
  option("readBytes", "version", false),
  given("readString knows only UTF-8", "readString", ([path]) => [path]),
  given("read treats every negative limit as no limit", "read", ([path, options]) => [
    path,
    { ...options, limit: options?.limit < 0 ? -1 : options?.limit }
  ]),
  answer("readBytes returns text", "readBytes", (page) => ({
    ...page,
    content: new TextEncoder().encode(new TextDecoder().decode(page.content))
  })),
  given("readBytes reads three bytes by default", "readBytes", ([path, options]) => [path, { limit: 3, ...options }]),
  given("names are found only in their original case", "readString", ([path, ...rest]) => [
    /^d[A-Z]/.test(path) ? "missing" : path,
    ...rest
  ]),
  answer("readBytes never reports truncated", "readBytes", (page) => ({ ...page, truncated: false })),
  answer("readBytes returns the size of the window as the size of the file", "readBytes", (page) => ({
    ...page,
    sizeBytes: page.limit
  })),
  answer("readBytes returns the given offset", "readBytes", (page, [, options]) => ({
    ...page,
    offset: options?.offset ?? 0
  })),
  answer("readBytes returns the given limit", "readBytes", (page, [, options]) => ({
    ...page,
    limit: options?.limit ?? page.limit
  })),
  answer("versions are in upper case", "version", (version) => version.toUpperCase()),
  answer("readBytes returns a wrong version for a part of a file", "readBytes", (page) =>
    "version" in page && page.limit < page.sizeBytes ? { ...page, version: "0" } : page
  ),
  ...(["read", "readString", "readBytes", "version"] as const).map((operation) =>
    outcome(`${operation} of a directory is empty`, operation, (result) =>
      Effect.catchTag(result, "NotAFile" as never, () => Effect.succeed(operation === "readString" ? "" : {}))
    )
  ),
  ...(["read", "readString", "readBytes", "version", "list", "stat"] as const).map((operation) =>
    outcome(`${operation} below a file is NotADirectory`, operation, (result) =>
      Effect.catchTag(result, "NotFound" as never, (error: any) => Effect.fail({ ...error, _tag: "NotADirectory" }))
    )
  )
]

const looking: ReadonlyArray<Mutant> = [
  answer("nothing exists", "exists", () => false),
  answer("everything exists", "exists", () => true),
  call("exists fails for a missing entry", "exists", (_, self) => (path: string) => Effect.as(self.stat(path), true)),
  outcome("exists never fails", "exists", (result) => Effect.orElseSucceed(result, () => false)),
  answer("stat counts characters", "stat", (stat) => ({ ...stat, sizeBytes: Math.ceil(stat.sizeBytes / 2) })),
  answer("stat gives directories a size", "stat", (stat) => (stat.isDirectory ? { ...stat, sizeBytes: 4096 } : stat)),
  answer("stat reports everything as a file", "stat", (stat) => ({ ...stat, kind: "file", isFile: true, isDirectory: false })),
  answer("stat does not report a link", "stat", ({ isSymlink: _, ...stat }) => stat),
  answer("stat reports everything as a link", "stat", (stat) => ({ ...stat, isSymlink: true })),
  answer("stat returns the path as it was given", "stat", (stat, [path]) => ({ ...stat, path })),
  answer("stat returns no mode", "stat", ({ mode: _, ...stat }) => stat),
  answer("stat gives times in seconds", "stat", (stat) => ({
    ...stat,
    modifiedAt: stat.modifiedAt && { ...stat.modifiedAt, epochMilliseconds: stat.modifiedAt.epochMilliseconds / 1000 + 0.5 }
  })),
  answer("listings are in no order", "list", (all) => [...all].reverse()),
  answer("listings are in the order of UTF-16", "list", (all) => [...all].sort((a, b) => (a.name < b.name ? -1 : 1))),
  answer("listings ignore case in their order", "list", (all) =>
    [...all].sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1))
  ),
  answer("listings lose an entry", "list", (all) => all.slice(0, -1)),
  answer("listings show paths instead of names", "list", (all) => all.map((entry: any) => ({ ...entry, name: entry.path }))),
  answer("listings show no sizes", "list", (all) => all.map(({ sizeBytes: _, ...entry }: any) => entry)),
  answer("listings show links as files", "list", (all) =>
    all.map((entry: any) => (entry.kind === "symlink" ? { ...entry, kind: "file", isFile: true } : entry))
  ),
  answer("listings show every name as addressable", "list", (all) =>
    all.map((entry: any) => ({ ...entry, addressable: true }))
  ),
  answer("listings show names as they are on disk", "list", (all) =>
    all.map((entry: any) => (entry.addressable ? entry : { ...entry, name: `${entry.name}\0` }))
  ),
  answer("listings show others as files", "list", (all) =>
    all.map((entry: any) => (entry.kind === "other" ? { ...entry, kind: "file" } : entry))
  ),
  answer("listings show temporary files", "list", (all, [path]) => (path === "d" ? [...all, { name: ".~fsa-1.tmp" }] : all)),
  outcome("a missing directory lists nothing", "list", (result) =>
    Effect.catchTag(result, "NotFound" as never, () => Effect.succeed([]))
  ),
  outcome("a file lists itself", "list", (result) =>
    Effect.catchTag(result, "NotADirectory" as never, () => Effect.succeed([]))
  ),
  outcome("listings have no limit", "list", (result) =>
    Effect.catchTag(result, "LimitExceeded" as never, () => Effect.succeed([]))
  )
]

const watching: ReadonlyArray<Mutant> = [
  outcome("a watch of an invalid path succeeds", "watch", (result) => Stream.catch(result, () => Stream.empty))
]

const streams: ReadonlyArray<Mutant> = [
  option("stream", "offset"),
  option("stream", "length"),
  option("stream", "chunkSize"),
  given("stream accepts every number", "stream", ([path, options]) => [
    path,
    options &&
      Object.fromEntries(Object.entries(options).map(([key, value]) => [key, Math.max(1, Math.round(Number(value) || 0))]))
  ]),
  answer("a stream loses its last chunk", "stream", (chunks) => chunks.slice(0, -1)),
  answer("a stream is one chunk", "stream", (chunks) => [Uint8Array.from(chunks.flatMap((chunk: Uint8Array) => [...chunk]))]),
  answer("a stream ends with an empty chunk", "stream", (chunks) => [...chunks, new Uint8Array(0)]),
  answer("a stream of many chunks is empty", "stream", (chunks) => (chunks.length > 3 ? [] : chunks)),
  call(
    "a stream opens the file again for each chunk",
    "stream",
    (_, self) =>
      (path: string, options: any = {}) =>
        Stream.unwrap(
          Effect.map(self.stat(path), ({ sizeBytes }) =>
            Stream.fromIterable(Array.from({ length: sizeBytes }, (_, i) => i)).pipe(
              Stream.rechunk(1),
              Stream.mapEffect((offset) => Effect.map(self.readBytes(path, { offset, limit: 1 }), ({ content }) => content)),
              (chunks) => (options.chunkSize === 1 ? chunks : self.stream(path, options))
            )
          )
        )
  ),
  answer("lines of a stream keep their carriage return", "lines", (lines) =>
    lines.map((line: string) => (/[a-c]$/.test(line) ? `${line}\r` : line))
  ),
  answer("lines end at a lone carriage return", "lines", (lines) => lines.flatMap((line: string) => line.split("\r"))),
  answer("lines drop the byte order mark", "lines", (lines) => lines.map((line: string) => line.replace("\ufeff", ""))),
  answer("lines add an empty line after the last line end", "lines", (lines) => [...lines, ""]),
  answer("lines lose the last one", "lines", (lines) => lines.slice(0, -1)),
  answer("lines break at chunks", "lines", (lines) =>
    lines.flatMap((line: string) => (line.length > 65530 ? [line.slice(0, 65530), line.slice(65530)] : [line]))
  ),
  outcome("lines decode invalid bytes as Latin-1", "lines", (result, self, [path]) =>
    Stream.catch(result, () => Stream.fromEffect(self.readString(path, "latin1")))
  ),
  answer("lines have the line limit of read", "lines", (lines) => (lines.length === 2 && lines[1] === "6" ? [] : lines))
]

export const readingMutants: ReadonlyArray<Mutant> = [...telling, ...spellings, ...reading, ...looking, ...watching, ...streams]
