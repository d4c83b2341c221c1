import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Flag from "effect/cli/Flag"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import { EditResult, ReadBytesResult, ReadResult, WriteResult } from "../../model/Entry.ts"
import { NotText } from "../../model/FsError.ts"
import { withProgress, writeDocument } from "../answer.ts"
import { forEachPath } from "../failure.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { errorStyle, paintDiff, printableLines, styleFor } from "../look.ts"
import { toPathInRoot } from "../paths.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { refuseFlags, subcommand } from "../subcommand.ts"

/** The number of bytes at the beginning of a file that are tested for binary content, as in searches. */
const sniffedBytes = 8192

const refuseBinary = Effect.fnUntraced(function* (fs: Algebra, path: string) {
  const { content } = yield* fs.readBytes(path, { limit: sniffedBytes })
  const offset = content.indexOf(0)
  if (offset !== -1) return yield* new NotText({ operation: "cat", path, encoding: "utf-8", offset })
})

const printOnTerminal = (fs: Algebra, path: string) =>
  Effect.andThen(
    refuseBinary(fs, path),
    Effect.gen(function* () {
      const screen = yield* Screen
      const decoder = new TextDecoder()
      const safe = printableLines()
      yield* Stream.runForEachArray(fs.stream(path), (chunks) =>
        screen.write(safe(chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join(""), false))
      )
      yield* screen.write(safe(decoder.decode(), true))
    })
  )

const printRaw = (fs: Algebra, path: string) =>
  Effect.flatMap(Screen, (screen) => Stream.runForEach(fs.stream(path), (chunk) => screen.write(chunk)))

const lineNumberColumns = 6

const printNumbered = Effect.fnUntraced(function* (fs: Algebra, path: string) {
  const screen = yield* Screen
  const shown = styleFor(screen)
  let line = 0
  yield* Stream.runForEachArray(fs.lines(path), (lines) =>
    screen.write(lines.map((text) => `${shown.dim(`${++line}`.padStart(lineNumberColumns))}  ${shown.text(text)}\n`).join(""))
  )
})

const printLines = Effect.fnUntraced(function* (fs: Algebra, path: string, [from, to]: flags.Span, number: boolean) {
  const first = from ?? 1
  const result = yield* fs.read(path, { offset: first - 1, limit: to === undefined ? -1 : to - first + 1, version: true })
  yield* writeDocument(ReadResult, result, (look) => {
    if (result.limit === 0) return ""
    const end = result.truncated || result.endsWithNewline ? "\n" : ""
    if (!number) return look.lines(result.content) + end
    return result.content
      .split(/\r?\n/)
      .map((text, index) => `${look.dim(`${result.offset + index + 1}`.padStart(lineNumberColumns))}  ${look.text(text)}\n`)
      .join("")
  })
})

const printByteRange = Effect.fnUntraced(function* (fs: Algebra, path: string, [from, to]: flags.Span) {
  const screen = yield* Screen
  const { json } = yield* Settings
  const offset = from ?? 0
  const length = to === undefined ? undefined : to - offset
  if (json) {
    const result = yield* fs.readBytes(path, { offset, limit: length, version: true })
    return yield* writeDocument(ReadBytesResult, result, () => "")
  }
  if (screen.isTerminal) yield* refuseBinary(fs, path)
  yield* Stream.runForEach(fs.stream(path, { offset, length }), (chunk) => screen.write(chunk))
})

export const cat = subcommand(
  "cat",
  {
    summary: "Print files",
    description: `Print files one after another. A pipe gets the exact bytes. For a terminal, control characters are escaped
and binary files are refused. --json prints the text, its line count and its version; with --bytes, it prints base64.`,
    examples: [
      ["README.md", "A whole file"],
      ["-n --lines 10:20 src/main.ts", "Lines 10 to 20, with their numbers"],
      ["--bytes 0:256 image.png | xxd", "The first 256 bytes"],
      ["--json notes.txt | jq -r .version", "The version, for --if-match"]
    ]
  },
  {
    paths: flags.paths("The files"),
    lines: flags.span("lines", 1, "From line A to line B; A or B may be omitted"),
    bytes: flags.span("bytes", 0, "From byte A up to byte B; the first byte is 0"),
    number: flags.toggle("number", "Number the lines").pipe(Flag.withAlias("n"))
  },
  Effect.fnUntraced(function* ({ bytes, lines, number, paths }) {
    const fs = yield* Filesystem
    const screen = yield* Screen
    const { json } = yield* Settings
    yield* forEachPath(paths, (path) => {
      if (bytes !== undefined) return printByteRange(fs, path, bytes)
      if (json || lines !== undefined) return printLines(fs, path, lines ?? [undefined, undefined], number)
      if (number) return printNumbered(fs, path)
      return screen.isTerminal ? printOnTerminal(fs, path) : printRaw(fs, path)
    })
  })
).pipe(
  refuseFlags(({ bytes, lines, number }) =>
    bytes !== undefined && (lines !== undefined || number) ? "--bytes cannot be combined with --lines or --number" : undefined
  )
)

const mode = Flag.ChoiceWithValue("mode", [
  ["create", "create"],
  ["overwrite", "overwrite"],
  ["append", "append"],
  ["replace", "replace"],
  ["append-existing", "appendExisting"]
] as const).pipe(
  Flag.withAlias("m"),
  Flag.withDescription("Create, replace or append to the file"),
  Flag.withMetavar("MODE"),
  Flag.withDefault("overwrite" as const)
)

const verbs = {
  create: "Created",
  overwrite: "Wrote",
  append: "Appended to",
  replace: "Replaced",
  appendExisting: "Appended to"
} as const

export const write = subcommand(
  "write",
  {
    summary: "Write a file from --text or standard input",
    description: `Write a file from --text or, without --text, from standard input. The old content stays until the new content is
complete, even if the input or the command is interrupted.
--mode create needs a new file, replace and append-existing need an existing file, and overwrite (the default)
and append accept both.`,
    examples: [
      ["notes.txt --text 'remember the milk'", "From an argument"],
      ["data/report.json < report.json", "From standard input; directories are made"],
      ['log.txt --mode append --text "$(date)"', "At the end of a file"],
      ["notes.txt --if-match VERSION < new.txt", "Only if the file still has this version"]
    ]
  },
  {
    path: flags.path("The file"),
    text: flags.text("text", "TEXT", "The content, exactly as given (default: standard input)"),
    mode,
    ifMatch: flags.ifMatch,
    parents: flags.negatable("parents", "Make missing parent directories; --no-parents fails instead")
  },
  Effect.fnUntraced(function* ({ ifMatch, mode, parents, path: given, text }) {
    const fs = yield* Filesystem
    const path = yield* toPathInRoot(given)
    const screen = yield* Screen
    const options = { mode, createParents: parents, version: true as const, ...(ifMatch !== undefined && { ifMatch }) }
    if (text === undefined && screen.isInteractive) {
      yield* screen.warn(errorStyle(screen).dim("Type the content; Ctrl-D ends it, Ctrl-C leaves everything as it was."))
    }
    const result = yield* text === undefined
      ? Stream.run(screen.input, fs.sink(path, options)).pipe(withProgress(`Writing ${path}`))
      : fs.write(path, text, options)
    yield* writeDocument(WriteResult, result, (look) => {
      const size = look.green(humanise.bytes(result.bytesWritten))
      return `${verbs[result.mode]} ${look.name(result.path)}, ${size}\n${look.dim(`version ${result.version}`)}\n`
    })
  })
)

export const edit = subcommand(
  "edit",
  {
    summary: "Replace text in a file and show the difference",
    description: `Replace a text that occurs exactly once in the file, and print the difference. Line endings, encoding and byte order
mark do not change. The difference goes to standard output, everything else to standard error.`,
    examples: [
      ["src/main.ts --old 'port = 80' --new 'port = 8080'", "One passage"],
      ["README.md --old colour --new color --all --dry-run", "Show all changes without making them"],
      ["config.yml --old=- --new='* ' --first", "A text that begins with a dash"]
    ]
  },
  {
    path: flags.path("The file"),
    oldText: flags.requiredText("old", "TEXT", "The text to replace"),
    newText: flags.requiredText("new", "TEXT", "The replacement"),
    all: flags.toggle("all", "Replace every occurrence"),
    first: flags.toggle("first", "Replace the first occurrence"),
    dryRun: flags.toggle("dry-run", "Show the difference and change nothing"),
    ifMatch: flags.ifMatch
  },
  Effect.fnUntraced(function* ({ all, dryRun, first, ifMatch, newText, oldText, path }) {
    const fs = yield* Filesystem
    const screen = yield* Screen
    const { json } = yield* Settings
    const match = all ? "all" : first ? "first" : "unique"
    const result = yield* fs.edit(
      yield* toPathInRoot(path),
      { oldText, newText, match },
      { dryRun, version: true, ...(ifMatch !== undefined && { ifMatch }) }
    )
    yield* writeDocument(EditResult, result, (look) => paintDiff(look, result.diff))
    if (json) return
    const { dim, name } = errorStyle(screen)
    const what = `${humanise.count(result.replacements, "replacement")} in ${name(result.path)}`
    yield* screen.warn(dim(dryRun ? `${what} would be made; nothing has changed` : `${what}, version ${result.version}`))
  })
).pipe(refuseFlags(({ all, first }) => (all && first ? "--all and --first exclude each other" : undefined)))
