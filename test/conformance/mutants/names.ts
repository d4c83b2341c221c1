/** Services that get names, trees, links or searches wrong. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { answer, call, given, type Mutant, type Operation, option } from "./mutant.ts"

const trees: ReadonlyArray<Mutant> = [
  option("mkdir", "parents"),
  option("mkdir", "parents", false),
  option("mkdir", "existOk"),
  option("mkdir", "existOk", false),
  call("mkdir over a file does nothing", "mkdir", (original) => (...args: ReadonlyArray<any>) =>
    Effect.catchTag(original(...args), "AlreadyExists" as never, () => Effect.void)
  ),
  call("mkdir through a file makes a directory of it", "mkdir", (original, self) => (path: string, options: any) =>
    Effect.catchTag(original(path, options), "NotADirectory" as never, () =>
      Effect.andThen(Effect.ignore(self.delete(path.split("/")[0]!)), self.mkdir(path))
    )
  ),
  call("mkdir makes what it can", "mkdir", (original, self) => (path: string, options: any) =>
    Effect.tapError(original(path, options), () => Effect.ignore(self.mkdir("made")))
  ),
  option("delete", "recursive", true),
  option("delete", "recursive"),
  option("delete", "missing"),
  option("delete", "missing", "ignore"),
  option("delete", "ifMatch"),
  answer("delete counts directories as files", "delete", (result) => ({ ...result, deleted: result.deleted + result.directories })),
  answer("delete counts only what it was asked for", "delete", (result) => ({ deleted: Math.min(result.deleted, 1), directories: result.directories })),
  answer("delete counts no directories", "delete", (result) => ({ ...result, directories: 0 })),
  answer("delete counts nothing of an empty directory", "delete", (result) => ({
    ...result,
    deleted: result.directories > 0 ? 0 : result.deleted
  })),
  call("delete removes parents left empty", "delete", (original, self) => (path: string, options: any) =>
    Effect.tap(original(path, options), () => (path.includes("/") ? Effect.ignore(self.delete(path.replace(/\/[^/]*$/, ""))) : Effect.void))
  ),
  call("deleting the root empties it", "delete", (original, self) => (path: string, options: any) =>
    Effect.tapError(original(path, options), (error: any) =>
      error._tag === "AccessDenied" ? Effect.flatMap(self.list(), (all) => Effect.forEach(all, (entry) => self.delete(entry.path, { recursive: true }))) : Effect.void
    )
  ),
  call("delete removes all whose names begin so", "delete", (original, self) => (path: string, options: any) =>
    Effect.tap(original(path, options), () =>
      Effect.flatMap(self.list(), (all) =>
        Effect.forEach(
          all.filter(({ name }) => options?.recursive === true && name.startsWith(path)),
          ({ path }) => self.delete(path, { recursive: true })
        )
      )
    )
  ),
  call("a recursive delete says that all is gone", "delete", (original) => (path: string, options: any) =>
    options?.recursive === true ? Effect.succeed({ deleted: 1, directories: 1 }) : original(path, options)
  ),
  ...(["copy", "move"] as const).flatMap((operation) => [
    option(operation, "overwrite", true),
    option(operation, "overwrite", false),
    answer(`${operation} counts no bytes`, operation, (result) => ({ ...result, bytes: 0 })),
    answer(`${operation} counts no directories`, operation, (result) => ({ ...result, directories: 0 })),
    answer(`${operation} counts no files`, operation, (result) => ({ ...result, files: 0 })),
    answer(`${operation} counts files and directories together`, operation, (result) => ({ ...result, files: result.files + result.directories })),
    call(`${operation} onto itself does nothing`, operation, (original) => (...args: ReadonlyArray<any>) =>
      Effect.catchTag(original(...args), "InvalidArgument" as never, () => Effect.succeed({}))
    ),
    call(`${operation} makes no parents`, operation, (original, self) => (from: string, to: string, options: any) =>
      to.includes("/") ? Effect.flatMap(self.stat(to.replace(/\/[^/]*$/, "")), () => original(from, to, options)) : original(from, to, options)
    ),
    call(`${operation} into a directory is what ${operation} over one means`, operation, (original) => (from: string, to: string, options: any) =>
      Effect.catchTag(original(from, to, options), "DirectoryNotEmpty" as never, () => original(from, `${to}/${from}`, options))
    ),
    call(`${operation} over another kind clears the way`, operation, (original, self) => (from: string, to: string, options: any) =>
      Effect.catchTag(original(from, to, options), ["NotAFile", "NotADirectory"] as never, () =>
        Effect.andThen(Effect.ignore(self.delete(to, { recursive: true })), original(from, to, options))
      )
    ),
    call(`${operation} blames the other end`, operation, (original) => (from: string, to: string, options: any) =>
      Effect.mapError(original(from, to, options), (error: any) => {
        const path = error.path === from ? to : from
        return new error.constructor({ ...error, path })
      })
    ),
    call(`${operation} leaves out empty directories`, operation, (original, self) => (from: string, to: string, options: any) =>
      Effect.tap(original(from, to, options), () => Effect.ignore(self.delete(`${to}/empty`)))
    ),
    call(`${operation} copies text`, operation, (original, self) => (from: string, to: string, options: any) =>
      Effect.tap(original(from, to, options), () =>
        Effect.ignore(
          Effect.flatMap(self.readBytes(`${to}/a.bin`), ({ content }) => self.write(`${to}/a.bin`, new TextDecoder().decode(content)))
        )
      )
    ),
    call(`${operation} makes the target before it looks`, operation, (original, self) => (from: string, to: string, options: any) =>
      Effect.tapError(original(from, to, options), () => Effect.ignore(self.write("aside", "")))
    ),
    call(`${operation} stops at the first level`, operation, (original, self) => (from: string, to: string, options: any) =>
      Effect.tap(original(from, to, options), () => Effect.ignore(self.delete(`${to}/b`, { recursive: true })))
    )
  ]),
  call("copy removes the source", "copy", (original, self) => (from: string, to: string, options: any) =>
    Effect.tap(original(from, to, options), () => Effect.ignore(self.delete(from, { recursive: true })))
  ),
  call("move leaves the source", "move", (_, self) => (from: string, to: string, options: any) => self.copy(from, to, options)),
  call("move removes the parent that it leaves empty", "move", (original, self) => (from: string, to: string, options: any) =>
    Effect.tap(original(from, to, options), () => (from.includes("/") ? Effect.ignore(self.delete(from.replace(/\/[^/]*$/, ""))) : Effect.void))
  ),
  call("copy shares what it copies", "copy", (original, self) => (from: string, to: string, options: any) =>
    Effect.tap(original(from, to, options), () =>
      Effect.ignore(Effect.andThen(self.delete(to, { recursive: true }), self.symlink(to, from)))
    )
  ),
  call("copy takes the mode along", "copy", (original, self) => (from: string, to: string, options: any) =>
    Effect.tap(original(from, to, options), () => Effect.ignore(self.setAttributes(to, { mode: 0o600 })))
  )
]

const linkCalls: ReadonlyArray<Operation> = ["delete", "copy", "move"]

/** Where a link leads, by reading it. */
const led = (self: any, path: string): Effect.Effect<string> =>
  Effect.orElseSucceed(
    Effect.map(self.readLink(path) as Effect.Effect<string, unknown>, (target) => (path.includes("/") ? path : target)),
    () => path
  )

const links: ReadonlyArray<Mutant> = [
  ...linkCalls.map((operation) =>
    call(`${operation} follows the link`, operation, (original, self) => (path: string, ...rest: ReadonlyArray<any>) =>
      Effect.flatMap(led(self, path), (at) => original(at, ...rest))
    )
  ),
  ...(["write", "edit", "sink"] as const).map((operation) =>
    call(`${operation} replaces the link`, operation, (original, self) => (path: string, ...rest: ReadonlyArray<any>) => {
      const unlinked = Effect.ignore(Effect.flatMap(self.readLink(path), () => self.delete(path)))
      return operation === "sink"
        ? unlink(self, path, () => original(path, ...rest))
        : Effect.andThen(unlinked, original(path, ...rest))
    })
  ),
  call("copy follows links into the target", "copy", (original, self) => (from: string, to: string, options: any) =>
    Effect.flatMap(options?.overwrite === true ? led(self, to) : Effect.succeed(to), (at) => original(from, at, options))
  ),
  call("move follows links into the target", "move", (original, self) => (from: string, to: string, options: any) =>
    Effect.flatMap(options?.overwrite === true ? led(self, to) : Effect.succeed(to), (at) => original(from, at, options))
  ),
  answer("readLink answers a path from the root", "readLink", (target) => target.replace(/^(\.\.?\/)+/, "")),
  given("links are kept in normal form", "symlink", ([path, target]) => [path, target.replace(/^\.\//, "")]),
  given("every link is made to the root", "symlink", ([path]) => [path, "."]),
  call("symlink replaces what there is", "symlink", (original, self) => (path: string, target: string) =>
    Effect.catchTag(original(path, target), "AlreadyExists" as never, () => Effect.andThen(self.delete(path, { recursive: true }), original(path, target)))
  ),
  call("symlink makes links to the outside", "symlink", (_, self) => (path: string, target: string) => self.port.links!.make(path as never, target)),
  call("symlink refuses to climb at all", "symlink", (original) => (path: string, target: string) => original(path, target.includes("..") ? "/" : target)),
  call("symlink needs its target", "symlink", (original, self) => (path: string, target: string) => Effect.andThen(self.stat(target), original(path, target))),
  call("a link to the outside reads as empty", "readString", (original) => (...args: ReadonlyArray<any>) =>
    Effect.catchTag(original(...args), "AccessDenied" as never, () => Effect.succeed(""))
  ),
  call("a loop of links reads as empty", "readString", (original) => (path: string) =>
    path === "a" || path === "self" ? Effect.catchTag(original(path), "InvalidPath" as never, () => Effect.succeed("")) : original(path)
  ),
  call("a link that leads nowhere reads as empty", "readString", (original) => (path: string) =>
    path === "dangling" ? Effect.orElseSucceed(original(path), () => "") : original(path)
  ),
  call("38 links are too many", "readString", (original) => (path: string) => (path === "l40" ? original("missing") : original(path)))
]

const unlink = (self: any, path: string, sink: () => any): any => {
  Effect.runSync(Effect.ignore(Effect.flatMap(self.readLink(path), () => self.delete(path))) as Effect.Effect<void>)
  return sink()
}

const inOrderOf = (key: (path: string) => string) => (all: ReadonlyArray<any>) =>
  [...all].sort((a, b) => (key(a.path) < key(b.path) ? -1 : key(a.path) > key(b.path) ? 1 : 0))

const pattern = (name: string, operation: Operation, f: (pattern: any) => any): Mutant =>
  given(name, operation, ([first, ...rest]) => [typeof first === "string" ? f(first) : first, ...rest])

const matches = (name: string, operation: "glob" | "grep", f: (all: ReadonlyArray<any>) => ReadonlyArray<any>): Mutant =>
  answer(name, operation, (result) => ({ ...result, matches: f(result.matches) }))

const walks: ReadonlyArray<Mutant> = [
  ...["maxDepth", "exclude", "gitignore", "sizes"].map((key) => option("walk", key)),
  option("walk", "sizes", true),
  given("a walk begins at the root", "walk", ([, options]) => [".", options]),
  answer("a walk is in the order of names", "walk", inOrderOf((path) => path)),
  answer("a walk is in no order", "walk", (all) => [...all].reverse()),
  answer("a walk shows no directories", "walk", (all) => all.filter((entry: any) => !entry.isDirectory)),
  answer("a walk shows no links", "walk", (all) => all.filter((entry: any) => entry.kind !== "symlink")),
  answer("a walk says of links that they are files", "walk", (all) => all.map((entry: any) => (entry.kind === "symlink" ? { ...entry, kind: "file" } : entry))),
  answer("a walk shows itself", "walk", (all) => [...all, { path: "." }]),
  answer("a walk sees 10 levels", "walk", (all) => all.filter((entry: any) => entry.path.split("/").length <= 10)),
  answer("a walk shows writes in progress", "walk", (all) => (all.some(({ path }: any) => path === "d/a") ? [...all, { path: "d/.~fsa-1.tmp" }] : all)),
  call("a walk of nothing is empty", "walk", (original) => (...args: ReadonlyArray<any>) => Stream.catch(original(...args), () => Stream.empty))
]

const globs: ReadonlyArray<Mutant> = [
  ...["path", "exclude", "gitignore", "after", "dialect", "maxMatches", "kinds", "sizes"].flatMap((key) => [option("glob", key), option("globStream", key)]),
  option("glob", "onSkip"),
  option("glob", "gitignore", true),
  option("glob", "dialect", "fnmatch"),
  option("glob", "kinds", ["file", "directory", "symlink"]),
  option("glob", "sizes", true),
  matches("globs are in no order", "glob", (all) => [...all].reverse()),
  matches("globs are in the order of UTF-16", "glob", inOrderOf((path) => path)),
  matches("globs are in the order of directories", "glob", inOrderOf((path) => path.replaceAll("/", "\0"))),
  matches("globs find nothing hidden", "glob", (all) => all.filter(({ path }) => !/(^|\/)\./.test(path))),
  matches("globs answer paths from the base", "glob", (all) => all.map((match) => ({ ...match, path: match.path.replace(/^s\//, "") }))),
  matches("globs find what matches twice", "glob", (all) => all.flatMap((match) => [match, match])),
  matches("globs see 10 levels", "glob", (all) => all.filter(({ path }) => path.split("/").length <= 10)),
  matches("globs find links", "glob", (all) => [...all, { path: "lf" }]),
  matches("globs match nothing where nothing is", "glob", (all) => (all.length === 0 ? [{ path: "nothing" }] : all)),
  pattern("a star crosses slashes", "glob", (text) => text.replace(/(^|[^*])\*([^*]|$)/, "$1**/*$2")),
  pattern("two stars are one", "glob", (text) => text.replaceAll("**/", "*/")),
  pattern("a name matches only at the base", "glob", (text) => (text.includes("/") ? text : `/${text}`)),
  pattern("an anchor is dropped and nothing else", "glob", (text) => text.replace(/^(\.?\/)/, "**/")),
  pattern("a question mark is itself", "glob", (text) => text.replaceAll("?", "\\?")),
  pattern("a question mark is a star", "glob", (text) => text.replaceAll("?", "*")),
  pattern("braces are themselves", "glob", (text) => text.replaceAll(/[{}]/g, "\\$&")),
  pattern("brackets are themselves", "glob", (text) => text.replaceAll(/[[\]]/g, "\\$&")),
  pattern("a trailing slash is dropped", "glob", (text) => (text.length > 1 ? text.replace(/\/$/, "") : text)),
  pattern("patterns are trimmed", "glob", (text) => text.trim()),
  pattern("patterns are small letters", "glob", (text) => text.toLowerCase()),
  pattern("a bad pattern finds nothing", "glob", (text) =>
    text.trim() === "" || text.includes("\0") || !text.isWellFormed() || text.includes("..") || text.length > 1000 || text.startsWith("{a,b}{a,b}") ? "nothing" : text
  ),
  given("of several patterns the first counts", "glob", ([patterns, ...rest]) => [Array.isArray(patterns) ? patterns[0] : patterns, ...rest]),
  given("bad patterns among others are left out", "globStream", ([patterns, ...rest]) => [Array.isArray(patterns) ? patterns[0] : patterns, ...rest]),
  given("the first exclude wins", "glob", ([first, options, ...rest]) => [
    first,
    options?.exclude && { ...options, exclude: [options.exclude].flat().filter((text: string) => !text.startsWith("!")) },
    ...rest
  ]),
  given("excludes are names", "glob", ([first, options, ...rest]) => [
    first,
    options?.exclude && { ...options, exclude: [options.exclude].flat().map((text: string) => text.replace(/^\//, "**/").replaceAll("*.", "x")) },
    ...rest
  ]),
  answer("a glob that is cut does not say so", "glob", (result) => ({ ...result, truncated: false })),
  answer("a glob says always that it is cut", "glob", (result) => ({ ...result, truncated: true })),
  answer("a glob counts nothing that it skipped", "glob", (result) => ({ ...result, skipped: { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0, unreadablePaths: [] } })),
  call("a glob below a file finds it", "glob", (original) => (first: any, options: any) =>
    Effect.catchTag(original(first, options), "NotADirectory" as never, () => Effect.succeed({ matches: [], truncated: false }))
  )
]

const short = (key: string, value: (match: any) => unknown) => (match: any) => ({ ...match, [key]: value(match) })

const greps: ReadonlyArray<Mutant> = [
  ...["path", "glob", "exclude", "gitignore", "after", "maxMatches", "literal", "ignoreCase", "wholeWord", "context", "maxFileSize", "multiline"].flatMap((key) => [
    option("grep", key),
    option("grepStream", key)
  ]),
  option("grep", "onSkip"),
  option("grep", "multiline", true),
  option("grep", "ignoreCase", true),
  option("grep", "literal", true),
  option("grep", "wholeWord", true),
  option("grep", "maxMatches", 100000),
  matches("lines are counted from 0", "grep", (all) => all.map(short("lineNumber", ({ lineNumber }) => lineNumber - 1))),
  matches("columns are counted in code points", "grep", (all) =>
    all.map((match) => ({ ...match, matchStart: [...match.lineContent.slice(0, match.matchStart)].length }))
  ),
  matches("columns end where the line does", "grep", (all) => all.map(short("matchEnd", ({ lineContent }) => lineContent.length + 1))),
  matches("lines keep their carriage return", "grep", (all) => all.map(short("lineContent", ({ lineContent }) => `${lineContent}\r`))),
  matches("matches are in the order of files found", "grep", (all) => [...all].reverse()),
  matches("matches are by line only", "grep", (all) => [...all].sort((a, b) => a.lineNumber - b.lineNumber)),
  matches("each match of a line counts", "grep", (all) => all.flatMap((match) => (match.lineContent === "aXbX" || match.lineContent === "" ? [match, match] : [match]))),
  matches("one match of a file is enough", "grep", (all) => all.filter(({ path }, i) => all.findIndex((other) => other.path === path) === i)),
  matches("empty matches are none", "grep", (all) => all.filter(({ matchEnd, matchStart }) => matchEnd > matchStart)),
  matches("greps read links", "grep", (all) => [...all, { path: "lf" }]),
  matches("greps see 10 levels", "grep", (all) => all.filter(({ path }) => path.split("/").length <= 10)),
  matches("the last line needs its end", "grep", (all) => all.filter(({ lineNumber, path }) => !(path === "f" && lineNumber === 2))),
  matches("a match where there is none", "grep", (all) => (all.length === 0 ? [{ path: "f", lineNumber: 1, lineContent: "", matchStart: 0, matchEnd: 0 }] : all)),
  matches("a file is not searched when it is the base", "grep", () => []),
  pattern("a pattern is of the whole text", "grep", (text) => text.replaceAll("^", "(?<![^])")),
  pattern("a dot is no line end of any kind", "grep", (text) => text.replaceAll(".", "[^\\n\\r\\u2028]")),
  pattern("flags in front are text", "grep", (text) => text.replace("(?", "(?:")),
  pattern("properties are letters", "grep", (text) => text.replace("\\p", "p")),
  pattern("every pattern is Unicode's", "grep", (text) => (text.includes("\\-") ? `\\p{L}${text}` : text)),
  pattern("a bad pattern is text", "grep", (text) => (text === "(a" || text === "[a" || text.length > 1000 ? "text" : text)),
  pattern("hostile patterns are let off", "grep", (text) => text.replace("(a+)+", "a+")),
  given("a RegExp's flags do not count", "grep", ([first, ...rest]) => [first instanceof RegExp ? first.source : first, ...rest]),
  given("a RegExp's flags all count", "grep", ([first, ...rest]) => [first instanceof RegExp && first.global ? /^$/ : first, ...rest]),
  given("of several globs the first counts", "grep", ([first, options]) => [first, { ...options, glob: Array.isArray(options?.glob) ? options.glob[0] : options?.glob }]),
  given("a bad glob in grep is none", "grep", ([first, options]) => [first, { ...options, glob: options?.glob === "../*" ? "*" : options?.glob }]),
  given("a negative maximum is 0", "grep", ([first, options]) => [first, { ...options, maxMatches: options?.maxMatches && Math.max(0, options.maxMatches) }]),
  given("a negative maximum of globs is 0", "glob", ([first, options]) => [first, { ...options, maxMatches: options?.maxMatches && Math.max(0, options.maxMatches) }]),
  given("a literal RegExp is its source", "grep", ([first, options]) => [first instanceof RegExp && options?.literal ? first.source : first, options]),
  answer("a grep counts the files that match as searched", "grep", (result) => ({ ...result, filesSearched: result.filesMatched })),
  answer("a grep that is cut does not say so", "grep", (result) => ({ ...result, truncated: false })),
  answer("a grep counts nothing that it skipped", "grep", (result) => ({ ...result, skipped: { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0, unreadablePaths: [] } })),
  answer("a grep streams no more than 1,000", "grepStream", (all) => all.slice(0, 1000)),
  answer("a stream of matches is in no order", "grepStream", (all) => [...all].reverse()),
  call("a grep that fails once fails for ever", "grep", (original) => {
    let failed = false
    return (...args: ReadonlyArray<any>) => Effect.suspend(() => (failed ? Effect.succeed({ matches: [] }) : Effect.tapError(original(...args), () => Effect.sync(() => void (failed = true)))))
  })
]

const abilities: ReadonlyArray<Mutant> = [
  option("setAttributes", "mode"),
  option("setAttributes", "mode", 0o600),
  option("setAttributes", "modifiedAt"),
  call("attributes of nothing are taken", "setAttributes", (original) => (...args: ReadonlyArray<any>) => Effect.ignore(original(...args))),
  ...(["write", "edit", "copy"] as const).map((operation) =>
    call(`${operation} gives the file its first mode again`, operation, (original, self) => (path: string, second: any, ...rest: ReadonlyArray<any>) =>
      Effect.tap(original(path, second, ...rest), () => Effect.ignore(self.setAttributes(operation === "copy" ? second : path, { mode: 0o644 })))
    )
  ),
  call("links are Unsupported", "symlink", (original) => (...args: ReadonlyArray<any>) => Effect.ignore(original(...args))),
  call("what is no link reads as one", "readLink", (original) => (...args: ReadonlyArray<any>) => Effect.orElseSucceed(original(...args), () => ""))
]

export const nameMutants: ReadonlyArray<Mutant> = [...trees, ...links, ...walks, ...globs, ...greps, ...abilities]
