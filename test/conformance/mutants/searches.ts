import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { answer, call, given, hanging, type Mutant, type Operation, option, outcome } from "./mutant.ts"

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
  answer(
    "a walk is in the order of names, not of paths",
    "walk",
    inOrderOf((path) => path)
  ),
  answer("a walk is in no order", "walk", (all) => [...all].reverse()),
  answer("a walk shows no directories", "walk", (all) => all.filter((entry: any) => !entry.isDirectory)),
  answer("a walk shows no links", "walk", (all) => all.filter((entry: any) => entry.kind !== "symlink")),
  answer("a walk shows links as files", "walk", (all) =>
    all.map((entry: any) => (entry.kind === "symlink" ? { ...entry, kind: "file" } : entry))
  ),
  answer("a walk shows its base", "walk", (all) => [...all, { path: "." }]),
  answer("a walk stops below 10 levels", "walk", (all) => all.filter((entry: any) => entry.path.split("/").length <= 10)),
  answer("a walk shows temporary files", "walk", (all) =>
    all.some(({ path }: any) => path === "d/a") ? [...all, { path: "d/.~fsa-1.tmp" }] : all
  ),
  outcome("a walk of a missing base is empty", "walk", (result) => Stream.catch(result, () => Stream.empty))
]

const globs: ReadonlyArray<Mutant> = [
  ...["path", "exclude", "gitignore", "after", "dialect", "maxMatches", "kinds", "sizes"].flatMap((key) => [
    option("glob", key),
    option("globStream", key)
  ]),
  option("glob", "onSkip"),
  option("glob", "gitignore", true),
  option("glob", "dialect", "fnmatch"),
  option("glob", "kinds", ["file", "directory", "symlink"]),
  option("glob", "sizes", true),
  matches("globs are in no order", "glob", (all) => [...all].reverse()),
  matches(
    "globs are in the order of UTF-16",
    "glob",
    inOrderOf((path) => path)
  ),
  matches(
    "globs are in the order of directories",
    "glob",
    inOrderOf((path) => path.replaceAll("/", "\0"))
  ),
  matches("globs find no hidden files", "glob", (all) => all.filter(({ path }) => !/(^|\/)\./.test(path))),
  matches("globs return paths from the base", "glob", (all) =>
    all.map((match) => ({ ...match, path: match.path.replace(/^s\//, "") }))
  ),
  matches("globs return each match twice", "glob", (all) => all.flatMap((match) => [match, match])),
  matches("globs stop below 10 levels", "glob", (all) => all.filter(({ path }) => path.split("/").length <= 10)),
  matches("globs find links", "glob", (all) => [...all, { path: "lf" }]),
  matches("globs without a match return a match", "glob", (all) => (all.length === 0 ? [{ path: "nothing" }] : all)),
  pattern("a star crosses slashes", "glob", (text) => text.replace(/(^|[^*])\*([^*]|$)/, "$1**/*$2")),
  pattern("two stars are one star", "glob", (text) => text.replaceAll("**/", "*/")),
  pattern("a name matches only at the base", "glob", (text) => (text.includes("/") ? text : `/${text}`)),
  pattern("a leading slash does not anchor the pattern", "glob", (text) => text.replace(/^(\.?\/)/, "**/")),
  pattern("a question mark is itself", "glob", (text) => text.replaceAll("?", "\\?")),
  pattern("a question mark is a star", "glob", (text) => text.replaceAll("?", "*")),
  pattern("braces are themselves", "glob", (text) => text.replaceAll(/[{}]/g, "\\$&")),
  pattern("brackets are themselves", "glob", (text) => text.replaceAll(/[[\]]/g, "\\$&")),
  pattern("a trailing slash is dropped", "glob", (text) => (text.length > 1 ? text.replace(/\/$/, "") : text)),
  pattern("patterns are trimmed", "glob", (text) => text.trim()),
  pattern("patterns become lower case", "glob", (text) => text.toLowerCase()),
  pattern("a bad pattern finds nothing", "glob", (text) =>
    text.trim() === "" ||
    text.includes("\0") ||
    !text.isWellFormed() ||
    text.includes("..") ||
    text.length > 1000 ||
    text.startsWith("{a,b}{a,b}")
      ? "nothing"
      : text
  ),
  given("only the first of several patterns counts", "glob", ([patterns, ...rest]) => [
    Array.isArray(patterns) ? patterns[0] : patterns,
    ...rest
  ]),
  given("invalid patterns among others are ignored", "globStream", ([patterns, ...rest]) => [
    Array.isArray(patterns) ? patterns[0] : patterns,
    ...rest
  ]),
  given("the first exclude wins", "glob", ([first, options, ...rest]) => [
    first,
    options?.exclude && { ...options, exclude: [options.exclude].flat().filter((text: string) => !text.startsWith("!")) },
    ...rest
  ]),
  given("excludes match names at any depth", "glob", ([first, options, ...rest]) => [
    first,
    options?.exclude && {
      ...options,
      exclude: [options.exclude].flat().map((text: string) => text.replace(/^\//, "**/").replaceAll("*.", "x"))
    },
    ...rest
  ]),
  answer("a truncated glob does not report truncated", "glob", (result) => ({ ...result, truncated: false })),
  answer("a glob always reports truncated", "glob", (result) => ({ ...result, truncated: true })),
  answer("a glob does not count skipped entries", "glob", (result) => ({
    ...result,
    skipped: { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0, unreadablePaths: [] }
  })),
  outcome("a search of an unavailable backend finds nothing", "glob", (result) =>
    Effect.catchTag(result, "Unavailable" as never, () => Effect.succeed({ matches: [], truncated: false }))
  ),
  ...(["glob", "grep"] as const).map((operation) =>
    outcome(`a ${operation} below a missing base finds nothing`, operation, (result) =>
      Effect.catchTag(result, "NotFound" as never, () => Effect.succeed({ matches: [], truncated: false }))
    )
  ),
  ...(["globStream", "grepStream"] as const).map((operation) =>
    outcome(`a ${operation} below a missing base is empty`, operation, (result) =>
      Stream.catchTag(result, "NotFound" as never, () => Stream.empty)
    )
  ),
  outcome("a glob below a file finds nothing", "glob", (result) =>
    Effect.catchTag(result, "NotADirectory" as never, () => Effect.succeed({ matches: [], truncated: false }))
  )
]

const short = (key: string, value: (match: any) => unknown) => (match: any) => ({ ...match, [key]: value(match) })

const greps: ReadonlyArray<Mutant> = [
  ...[
    "path",
    "glob",
    "exclude",
    "gitignore",
    "after",
    "maxMatches",
    "literal",
    "ignoreCase",
    "wholeWord",
    "context",
    "maxFileSize",
    "multiline"
  ].flatMap((key) => [option("grep", key), option("grepStream", key)]),
  option("grep", "onSkip"),
  option("grep", "multiline", true),
  option("grep", "ignoreCase", true),
  option("grep", "literal", true),
  option("grep", "wholeWord", true),
  option("grep", "maxMatches", 100000),
  matches("lines are counted from 0", "grep", (all) => all.map(short("lineNumber", ({ lineNumber }) => lineNumber - 1))),
  matches("columns are counted in code points", "grep", (all) =>
    all.map((match) => ({ ...match, matchStart: Array.from(match.lineContent.slice(0, match.matchStart)).length }))
  ),
  matches("columns end after the end of the line", "grep", (all) =>
    all.map(short("matchEnd", ({ lineContent }) => lineContent.length + 1))
  ),
  matches("lines keep their carriage return", "grep", (all) =>
    all.map(short("lineContent", ({ lineContent }) => `${lineContent}\r`))
  ),
  matches("matches are in the order of files found", "grep", (all) => [...all].reverse()),
  matches("matches are in the order of line numbers only", "grep", (all) =>
    [...all].sort((a, b) => a.lineNumber - b.lineNumber)
  ),
  matches("a line with several matches is returned several times", "grep", (all) =>
    all.flatMap((match) => (match.lineContent === "aXbX" || match.lineContent === "" ? [match, match] : [match]))
  ),
  matches("only one match of a file is returned", "grep", (all) =>
    all.filter(({ path }, i) => all.findIndex((other) => other.path === path) === i)
  ),
  matches("empty matches are ignored", "grep", (all) => all.filter(({ matchEnd, matchStart }) => matchEnd > matchStart)),
  matches("greps read links", "grep", (all) => [...all, { path: "lf" }]),
  matches("greps stop below 10 levels", "grep", (all) => all.filter(({ path }) => path.split("/").length <= 10)),
  matches("the last line needs its end", "grep", (all) =>
    all.filter(({ lineNumber, path }) => !(path === "f" && lineNumber === 2))
  ),
  matches("a grep without a match returns a match", "grep", (all) =>
    all.length === 0 ? [{ path: "f", lineNumber: 1, lineContent: "", matchStart: 0, matchEnd: 0 }] : all
  ),
  matches("a file is not searched when it is the base", "grep", () => []),
  pattern("a dot matches no line end of Unicode", "grep", (text) => text.replaceAll(".", "[^\\n\\r\\u2028]")),
  pattern("inline flags are text", "grep", (text) => text.replace("(?", "(?:")),
  pattern("Unicode properties are letters", "grep", (text) => text.replace("\\p", "p")),
  pattern("every pattern has the flag u", "grep", (text) => (text.includes("\\-") ? `\\p{L}${text}` : text)),
  pattern("an invalid pattern is text", "grep", (text) =>
    text === "(a" || text === "[a" || text.length > 1000 ? "text" : text
  ),
  pattern("hostile patterns are made harmless", "grep", (text) => text.replace("(a+)+", "a+")),
  given("the flags of a RegExp are ignored", "grep", ([first, ...rest]) => [
    first instanceof RegExp ? first.source : first,
    ...rest
  ]),
  given("a RegExp with the flag g matches only empty lines", "grep", ([first, ...rest]) => [
    first instanceof RegExp && first.global ? /^$/ : first,
    ...rest
  ]),
  given("only the first of several globs counts", "grep", ([first, options]) => [
    first,
    { ...options, glob: Array.isArray(options?.glob) ? options.glob[0] : options?.glob }
  ]),
  given("an invalid glob in grep is ignored", "grep", ([first, options]) => [
    first,
    { ...options, glob: options?.glob === "../*" ? "*" : options?.glob }
  ]),
  given("a negative maximum is 0", "grep", ([first, options]) => [
    first,
    { ...options, maxMatches: options?.maxMatches && Math.max(0, options.maxMatches) }
  ]),
  given("a negative maximum of globs is 0", "glob", ([first, options]) => [
    first,
    { ...options, maxMatches: options?.maxMatches && Math.max(0, options.maxMatches) }
  ]),
  given("a literal RegExp is its source", "grep", ([first, options]) => [
    first instanceof RegExp && options?.literal ? first.source : first,
    options
  ]),
  answer("a grep counts only files with a match as searched", "grep", (result) => ({
    ...result,
    filesSearched: result.filesMatched
  })),
  answer("a truncated grep does not report truncated", "grep", (result) => ({ ...result, truncated: false })),
  answer("a grep does not count skipped files", "grep", (result) => ({
    ...result,
    skipped: { ignored: 0, binary: 0, tooLarge: 0, unreadable: 0, unreadablePaths: [] }
  })),
  answer("a grep streams no more than 1,000", "grepStream", (all) => all.slice(0, 1000)),
  answer("a stream of matches is in no order", "grepStream", (all) => [...all].reverse()),
  outcome("a hostile grep blocks other calls", "grep", (result, _, [pattern]) =>
    pattern === "^(a+)+$"
      ? Effect.sync(() => ({ matches: [], spun: Array.from({ length: 100_000 }, (_, i) => i).length }))
      : result
  ),
  hanging(
    outcome("a search that is interrupted, as grep can be, never ends", "grep", (result, _, [pattern]) =>
      pattern === "^(a+)+$" ? Effect.uninterruptible(Effect.sleep("2 seconds")) : result
    )
  ),
  call("every grep fails after a failed grep", "grep", (original) => {
    let failed = false
    return (...args: ReadonlyArray<any>) =>
      Effect.suspend(() =>
        failed
          ? Effect.succeed({ matches: [] })
          : Effect.tapError(original(...args), () => Effect.sync(() => void (failed = true)))
      )
  })
]

export const searchMutants: ReadonlyArray<Mutant> = [...walks, ...globs, ...greps]
