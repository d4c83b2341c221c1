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
    errors(`${tag} is told as IoError`, (error) =>
      error._tag === tag ? new IoError({ operation: error.operation, path: error.path, detail: tag }) : error
    )
  ),
  errors("every refusal is for want of permission", (error) =>
    error._tag === "AccessDenied" ? changed(error, { why: "permission" }) : error
  ),
  errors("no error names its operation", (error) => changed(error, { operation: "" })),
  errors("errors carry the path in normal form", (error) =>
    changed(error, {
      path: error.path
        .split("/")
        .filter((segment: string) => segment !== "")
        .join("/")
    })
  ),
  errors("no error names what looks like a missing base", (error) =>
    error._tag === "NotFound" ? new NotFound({ operation: error.operation, path: error.path }) : error
  ),
  errors("no error names its argument", (error) =>
    error._tag === "InvalidArgument" ? changed(error, { argument: "?" }) : error
  ),
  errors("no error says anything", (error) => ("detail" in error ? changed(error, { detail: "failed" }) : error)),
  errors("an offset of bad text counts from the line", (error) =>
    error._tag === "NotText" ? changed(error, { offset: 0 }) : error
  ),
  errors("a limit tells what was allowed, not what there was", (error) =>
    error._tag === "LimitExceeded" ? changed(error, { actual: error.allowed }) : error
  ),
  errors("a conflict does not tell what there is", (error) =>
    error._tag === "Conflict" ? changed(error, { actual: "?" }) : error
  ),
  errors("errors are plain objects", (error) => ({ ...error })),
  errors("errors do not survive JSON", (error) => ({ ...error, path: Symbol.iterator })),
  errors("a host's words are in the message", (error) =>
    error.code === "EIO" ? changed(error, { detail: "/secret/root/d/f" }) : error
  ),
  errors("an error tells where the root stands on the host", (error, { port }) =>
    error._tag === "NotFound" ? changed(error, { path: `${port.info.root}/${error.path}` }) : error
  )
]

const spellings: ReadonlyArray<Mutant> = [
  spelling("paths are trimmed", (path) => path.trim()),
  spelling("paths are clamped at the root", (path) => path.replace(/^(\/?[^/]+\/)?(\.\.\/)+/, "")),
  spelling("percent signs are decoded", (path) => path.replaceAll("%2e", ".")),
  spelling("backslashes separate", (path) => path.replaceAll("\\", "/")),
  spelling("names are normalised", (path) => path.normalize("NFC")),
  spelling("names lose their case", (path) => path.toLowerCase()),
  spelling("control characters are dropped", (path) => path.replaceAll(/[\0-\x1f\x7f]/g, "")),
  spelling("lone surrogates are replaced", (path) => path.toWellFormed()),
  spelling("names of writes in progress can be used", (path) => path.replace(".~fsa", "fsa")),
  spelling("an absolute path is the machine's", (path) => (path.startsWith("/") && path !== "/" ? `machine${path}` : path)),
  spelling("a double slash is a name", (path) => path.replaceAll("//", "/_/")),
  spelling("a dot is a name", (path) => path.replaceAll("./", "_/").replaceAll("/.", "/_")),
  spelling("two dots are a name", (path) => path.replaceAll("..", "_")),
  spelling("a trailing slash asks for a directory", (path) => (path.length > 1 && path.endsWith("/") ? `${path}x` : path)),
  spelling("the root is not called by a dot", (path) => (path === "." ? "_" : path)),
  spelling("the root has no other name", (path) => (path === "" || path === "/" ? "root" : path)),
  spelling("long names are cut", (path) =>
    path
      .split("/")
      .map((name) => name.slice(0, 100))
      .join("/")
      .slice(0, 2000)
  ),
  spelling("deep paths are cut", (path) => path.split("/").slice(0, 15).join("/")),
  spelling("long names are refused early", (path) => (path.length > 200 && path.length < 256 ? "../too long" : path))
]

const cached = (operation: Operation): Mutant =>
  call(`${operation} keeps what it has answered once`, operation, (original) => {
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
  answer("read ends lines at everything that Unicode does", "read", (page) => ({
    ...page,
    totalLines: page.content.split(/\r\n|[\n\r\v\f\u0085\u2028\u2029]/).length
  })),
  answer("read never says that there is more", "read", (page) => ({ ...page, truncated: false, next: undefined })),
  answer("read says always that there is more", "read", (page) => ({
    ...page,
    truncated: true,
    next: page.offset + page.limit
  })),
  answer("read does not say how a file ends", "read", (page) => ({ ...page, endsWithNewline: false })),
  answer("read answers the limit that it was given", "read", (page, [, options]) => ({
    ...page,
    limit: options?.limit ?? 2000
  })),
  answer("read answers the offset that it was given", "read", (page, [, options]) => ({
    ...page,
    offset: options?.offset ?? 0
  })),
  answer("read answers the version unasked", "read", (page) => ({ ...page, version: "0" })),
  answer("readBytes answers the version unasked", "readBytes", (page) => ({ ...page, version: "0" })),
  answer("read drops the byte order mark", "read", (page) => ({ ...page, content: page.content.replace(/^\ufeff/, "") })),
  answer("readString drops the byte order mark", "readString", (text) => text.replace(/^\ufeff/, "")),
  answer("readString loses the carriage returns", "readString", (text) => text.replaceAll("\r\n", "\n")),
  answer("readString is in one normal form", "readString", (text) => text.normalize("NFD")),
  answer("readString takes U+FFFD for bad text", "readString", (text) => text.replaceAll("\ufffd", "?")),
  outcome("bad bytes are read as U+FFFD", "readString", (result, self, [path]) =>
    Effect.catch(result, () => Effect.map(self.readBytes(path), ({ content }) => new TextDecoder().decode(content)))
  ),
  outcome("bad bytes are paged as U+FFFD", "read", (result, self, [path, options]) =>
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
  given("read takes a negative limit for all", "read", ([path, options]) => [
    path,
    { ...options, limit: options?.limit < 0 ? -1 : options?.limit }
  ]),
  answer("readBytes answers text", "readBytes", (page) => ({
    ...page,
    content: new TextEncoder().encode(new TextDecoder().decode(page.content))
  })),
  given("readBytes reads three bytes unless it is told otherwise", "readBytes", ([path, options]) => [
    path,
    { limit: 3, ...options }
  ]),
  given("names are found only in the case that they were written in", "readString", ([path, ...rest]) => [
    /^d[A-Z]/.test(path) ? "missing" : path,
    ...rest
  ]),
  answer("readBytes says nothing of what is left", "readBytes", (page) => ({ ...page, truncated: false })),
  answer("readBytes answers the size of the window", "readBytes", (page) => ({ ...page, sizeBytes: page.limit })),
  answer("readBytes answers the offset that it was given", "readBytes", (page, [, options]) => ({
    ...page,
    offset: options?.offset ?? 0
  })),
  answer("readBytes answers the limit that it was given", "readBytes", (page, [, options]) => ({
    ...page,
    limit: options?.limit ?? page.limit
  })),
  answer("versions are in capitals", "version", (version) => version.toUpperCase()),
  answer("readBytes answers the version of the page", "readBytes", (page) =>
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
  call("exists fails where it cannot look", "exists", (_, self) => (path: string) => Effect.as(self.stat(path), true)),
  outcome("exists never fails", "exists", (result) => Effect.orElseSucceed(result, () => false)),
  answer("stat counts characters", "stat", (stat) => ({ ...stat, sizeBytes: Math.ceil(stat.sizeBytes / 2) })),
  answer("stat gives directories a size", "stat", (stat) => (stat.isDirectory ? { ...stat, sizeBytes: 4096 } : stat)),
  answer("stat takes everything for a file", "stat", (stat) => ({ ...stat, kind: "file", isFile: true, isDirectory: false })),
  answer("stat tells of no link", "stat", ({ isSymlink: _, ...stat }) => stat),
  answer("stat takes everything for a link", "stat", (stat) => ({ ...stat, isSymlink: true })),
  answer("stat answers the path as it was given", "stat", (stat, [path]) => ({ ...stat, path })),
  answer("stat knows no modes", "stat", ({ mode: _, ...stat }) => stat),
  answer("stat gives times in seconds", "stat", (stat) => ({
    ...stat,
    modifiedAt: stat.modifiedAt && { ...stat.modifiedAt, epochMilliseconds: stat.modifiedAt.epochMilliseconds / 1000 + 0.5 }
  })),
  answer("listings are in no order", "list", (all) => [...all].reverse()),
  answer("listings are in the order of UTF-16", "list", (all) => [...all].sort((a, b) => (a.name < b.name ? -1 : 1))),
  answer("listings put capitals and small letters together", "list", (all) =>
    [...all].sort((a, b) => (a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1))
  ),
  answer("listings lose an entry", "list", (all) => all.slice(0, -1)),
  answer("listings show paths for names", "list", (all) => all.map((entry: any) => ({ ...entry, name: entry.path }))),
  answer("listings show no sizes", "list", (all) => all.map(({ sizeBytes: _, ...entry }: any) => entry)),
  answer("listings take links for files", "list", (all) =>
    all.map((entry: any) => (entry.kind === "symlink" ? { ...entry, kind: "file", isFile: true } : entry))
  ),
  answer("listings take everything for addressable", "list", (all) =>
    all.map((entry: any) => ({ ...entry, addressable: true }))
  ),
  answer("listings show names as they are on disk", "list", (all) =>
    all.map((entry: any) => (entry.addressable ? entry : { ...entry, name: `${entry.name}\0` }))
  ),
  answer("listings show others as files", "list", (all) =>
    all.map((entry: any) => (entry.kind === "other" ? { ...entry, kind: "file" } : entry))
  ),
  answer("listings show writes in progress", "list", (all, [path]) => (path === "d" ? [...all, { name: ".~fsa-1.tmp" }] : all)),
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
  outcome("a watch of anything is taken", "watch", (result) => Stream.catch(result, () => Stream.empty))
]

const streams: ReadonlyArray<Mutant> = [
  option("stream", "offset"),
  option("stream", "length"),
  option("stream", "chunkSize"),
  given("stream takes every number", "stream", ([path, options]) => [
    path,
    options &&
      Object.fromEntries(Object.entries(options).map(([key, value]) => [key, Math.max(1, Math.round(Number(value) || 0))]))
  ]),
  answer("a stream loses its last chunk", "stream", (chunks) => chunks.slice(0, -1)),
  answer("a stream is one chunk", "stream", (chunks) => [Uint8Array.from(chunks.flatMap((chunk: Uint8Array) => [...chunk]))]),
  answer("a stream ends with an empty chunk", "stream", (chunks) => [...chunks, new Uint8Array(0)]),
  answer("a stream of much has a bound", "stream", (chunks) => (chunks.length > 3 ? [] : chunks)),
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
  answer("lines add one after the last line end", "lines", (lines) => [...lines, ""]),
  answer("lines lose the last one", "lines", (lines) => lines.slice(0, -1)),
  answer("lines break at chunks", "lines", (lines) =>
    lines.flatMap((line: string) => (line.length > 65530 ? [line.slice(0, 65530), line.slice(65530)] : [line]))
  ),
  outcome("lines take bad bytes for U+FFFD", "lines", (result, self, [path]) =>
    Stream.catch(result, () => Stream.fromEffect(self.readString(path, "latin1")))
  ),
  answer("lines have the bound of a read", "lines", (lines) => (lines.length === 2 && lines[1] === "6" ? [] : lines))
]

export const readingMutants: ReadonlyArray<Mutant> = [...telling, ...spellings, ...reading, ...looking, ...watching, ...streams]
