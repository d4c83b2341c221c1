/** Runs the tour. Each step runs the code that it shows, on an in-memory copy, and prints the result and the time. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { displayWidth } from "effect/cli/CliOutput"
import { suggestPaths } from "../agent/toolPath.ts"
import { type Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { GlobMatch } from "../model/Entry.ts"
import type { FsError } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import * as humanise from "./humanise.ts"
import { paintDiff, printableName, styleFor, type TextStyle } from "./look.ts"
import { type OutputFailed, Screen } from "./screen.ts"
import { program as installed, Settings } from "./settings.ts"
import { copyInMemory } from "./workspace.ts"

/** The files for a tour of a directory without suitable files. */
const demonstration: Readonly<Record<string, string>> = {
  "README.md": "# Greeter\n\nSays hello, in whatever language it is asked to.\n\nTODO: say goodbye, too.\n",
  "src/greet.ts": "export const greet = (name: string): string => `Hello, ${name}!`\n",
  "src/main.ts": 'import { greet } from "./greet.ts"\n\nprocess.stdout.write(greet("world"))\n',
  "docs/languages.md": "- English\n- Deutsch\n- 日本語\n"
}

const extension = (path: FsPath.FsPath): string => {
  const name = FsPath.name(path)
  const dot = name.lastIndexOf(".")
  return dot > 0 ? name.slice(dot) : ""
}

const commonPattern = (files: ReadonlyArray<GlobMatch>): string => {
  const counts = new Map<string, number>()
  for (const { path } of files) {
    const ending = extension(path)
    if (/^\.\w+$/.test(ending)) counts.set(ending, (counts.get(ending) ?? 0) + 1)
  }
  let best = ""
  for (const [ending, count] of counts) if (count > (counts.get(best) ?? 0)) best = ending
  return `**/*${best}`
}

const patterns = [
  "TODO|FIXME",
  "^export (const|function|class)",
  String.raw`\b(function|class|def|import)\b`,
  String.raw`\w{3,}`
]

const findablePattern = Effect.fnUntraced(function* (fs: Algebra) {
  for (const pattern of patterns) {
    const { matches } = yield* fs.grep(pattern, { maxMatches: 1 })
    if (matches.length > 0) return pattern
  }
  return "."
})

interface Passage {
  readonly path: FsPath.FsPath
  readonly line: string
}

const maxEditableBytes = 64 * 1024
const maxCandidateFiles = 200

/** Tests whether a line is long enough to be distinctive and short enough to show. */
const isShowable = (line: string): boolean => line.trim().length >= 3 && line.length <= 100 && printableName(line) === line

const findUniqueLine = (text: string): string | undefined =>
  text.split(/\r?\n/).find((line) => isShowable(line) && text.split(line).length === 2)

/** Finds a passage to edit, first in README.md and then in other text files. Returns `undefined` if there is none. */
const editablePassage = Effect.fnUntraced(function* (fs: Algebra, files: ReadonlyArray<GlobMatch>) {
  const small = files.filter(({ sizeBytes }) => (sizeBytes ?? 0) <= maxEditableBytes)
  const candidates = [...small.filter(({ path }) => path === "README.md"), ...small].slice(0, maxCandidateFiles)
  for (const { path } of candidates) {
    const text = yield* Effect.option(fs.readString(path))
    const line = Option.isSome(text) ? findUniqueLine(text.value) : undefined
    if (line !== undefined) return { path, line } satisfies Passage
  }
  return undefined
})

/** Returns a misspelled path. The last two letters before the extension are swapped, or one letter is added. */
const misspell = (path: FsPath.FsPath): string => {
  const ending = extension(path)
  const stem = path.slice(0, path.length - ending.length)
  const [a, b] = [stem.at(-2), stem.at(-1)]
  return a === undefined || a === b || a === "/" ? `${stem}x${ending}` : `${stem.slice(0, -2)}${b}${a}${ending}`
}

interface Step<A> {
  readonly title: string
  readonly code: string
  readonly run: Effect.Effect<A, FsError, Screen | Settings>
  readonly show: (value: A, look: TextStyle) => ReadonlyArray<string>
}

interface Guide {
  readonly say: (lines: (look: TextStyle) => ReadonlyArray<string>) => Effect.Effect<void, OutputFailed>
  readonly step: <A>(step: Step<A>) => Effect.Effect<A, FsError | OutputFailed, Screen | Settings>
}

const indent = "   "
const maxColumns = 100

const colour = /^\u001b\[[0-9;]*m/
const graphemes = new Intl.Segmenter()

const cutToRow = (line: string, columns: number): string => {
  if (displayWidth(line) <= columns) return line
  let [shown, room, isColoured] = ["", columns - 1, false]
  for (let rest = line; rest !== "";) {
    const next = colour.exec(rest)?.[0] ?? graphemes.segment(rest).containing(0)!.segment
    rest = rest.slice(next.length)
    if (colour.test(next)) isColoured = true
    else if ((room -= displayWidth(next)) < 0) break
    shown += next
  }
  return `${shown}${isColoured ? "\u001b[0m" : ""}…`
}

const makeGuide = Effect.gen(function* () {
  const screen = yield* Screen
  const { json } = yield* Settings
  const shown = styleFor(screen)
  let steps = 0

  const asText = <A>({ code, show, title }: Step<A>, value: A, elapsedNanos: bigint): string => {
    const head = `${steps}. ${title}`
    const time = humanise.duration(elapsedNanos)
    const gap = " ".repeat(Math.max(2, Math.min(screen.columns, maxColumns) - displayWidth(head) - displayWidth(time)))
    const fit = (line: string): string => (screen.isTerminal ? cutToRow(line, screen.columns) : line)
    const body = [shown.cyan(code), ...show(value, shown)].map((line) => `${fit(`${indent}${line}`)}\n`).join("")
    return `\n${fit(`${shown.bold(head)}${gap}${shown.dim(time)}`)}\n${body}`
  }
  const asJson = <A>({ code, show, title }: Step<A>, value: A, elapsedNanos: bigint): string => {
    const plain = show(value, styleFor({ ...screen, colors: false, isTerminal: false }))
    return `${JSON.stringify({ step: steps, title, code, answer: plain, millis: Number(elapsedNanos) / 1_000_000 })}\n`
  }
  const guide: Guide = {
    say: (lines) =>
      json
        ? Effect.void
        : screen.write(
            lines(shown)
              .map((line) => `${line}\n`)
              .join("")
          ),
    step: Effect.fnUntraced(function* (step) {
      const start = yield* Clock.currentTimeNanos
      const value = yield* step.run
      const elapsedNanos = (yield* Clock.currentTimeNanos) - start
      steps++
      yield* screen.write(json ? asJson(step, value, elapsedNanos) : asText(step, value, elapsedNanos))
      return value
    })
  }
  return guide
})

const quoted = (text: string): string => JSON.stringify(text)

const firstItems = <A>(items: ReadonlyArray<A>, maxItems: number, line: (item: A) => string): ReadonlyArray<string> => [
  ...items.slice(0, maxItems).map(line),
  ...(items.length > maxItems ? [`... and ${humanise.whole(items.length - maxItems)} more`] : [])
]

const failureOf = <A, R>(self: Effect.Effect<A, FsError, R>): Effect.Effect<FsError | undefined, never, R> =>
  Effect.match(self, { onFailure: (error) => error, onSuccess: () => undefined })

/** The limits of the copy, so that the copy of a home directory fits in memory and its tour stays short. */
const upTo = { files: 20_000, bytes: 256 * 1024 * 1024 }

const writeDemonstration = Effect.fnUntraced(function* (guide: Guide, fs: Algebra, directory: string) {
  yield* guide.say((look) => [
    "",
    look.dim(`${indent}This directory has no suitable text, so the tour goes on with four files of its own, in memory.`)
  ])
  for (const [path, text] of Object.entries(demonstration)) yield* fs.write(directory + path, text)
})

const loadDirectory = Effect.fnUntraced(function* (guide: Guide, host: Algebra) {
  const { copied, fs } = yield* guide.step({
    title: "Load the directory into memory, without files that git ignores",
    code: "const fs = yield* Filesystem.Filesystem",
    run: copyInMemory(host, { gitignore: true, upTo }),
    show: ({ copied }, look) => [
      [
        humanise.count(copied.files, "file"),
        humanise.count(copied.directories, "directory"),
        ...(copied.links > 0 ? [humanise.count(copied.links, "link")] : []),
        humanise.bytes(copied.bytes)
      ].join(", "),
      ...(copied.truncated ? [look.yellow("The directory has more files; the tour continues with the copied ones.")] : [])
    ]
  })
  if (copied.files === 0) yield* writeDemonstration(guide, fs, "")
  return fs
})

const showSearches = Effect.fnUntraced(function* (guide: Guide, fs: Algebra, files: ReadonlyArray<GlobMatch>) {
  yield* guide.step({
    title: "List",
    code: `yield* fs.list()`,
    run: fs.list(),
    show: (entries, look) => {
      const line = entries
        .slice(0, 6)
        .map((entry) => look.entry(entry.name, entry.kind))
        .join("  ")
      return [line + (entries.length > 6 ? `  ... ${entries.length - 6} more` : "")]
    }
  })
  const glob = commonPattern(files)
  yield* guide.step({
    title: "Find files",
    code: `yield* fs.glob(${quoted(glob)})`,
    run: fs.glob(glob),
    show: ({ matches }, look) => firstItems(matches, 3, ({ path }) => look.name(path))
  })
  const pattern = yield* findablePattern(fs)
  yield* guide.step({
    title: "Find lines",
    code: `yield* fs.grep(${quoted(pattern)})`,
    run: fs.grep(pattern),
    show: ({ filesMatched, filesSearched, matches, truncated }, look) => [
      ...matches.slice(0, 3).map(({ lineContent, lineNumber, matchEnd, matchStart, path }) => {
        const text = [
          lineContent.slice(0, matchStart).trimStart(),
          lineContent.slice(matchStart, matchEnd),
          lineContent.slice(matchEnd)
        ]
        const [before, match, after] = text.map((part) => look.text(part.slice(0, 60)))
        return `${look.magenta(look.name(path))}:${look.green(`${lineNumber}`)}: ${before}${look.red(match!)}${after}`
      }),
      `${truncated ? "the first " : ""}${humanise.count(matches.length, "match")} in ${filesMatched} of ${humanise.count(filesSearched, "file")}`
    ]
  })
})

const textToEdit = Effect.fnUntraced(function* (guide: Guide, fs: Algebra, files: ReadonlyArray<GlobMatch>) {
  const passage = yield* editablePassage(fs, files)
  if (passage !== undefined) return passage
  yield* writeDemonstration(guide, fs, "greeter/")
  return { path: "greeter/README.md" as FsPath.FsPath, line: "# Greeter" } satisfies Passage
})

const showConflict = (error: FsError | undefined, look: TextStyle): ReadonlyArray<string> =>
  error?._tag !== "Conflict"
    ? ["no conflict"]
    : [
        look.red(`Conflict on ${look.name(error.path)}`),
        `expected ${error.expected?.slice(0, 16)}...  version that was read`,
        `actual   ${error.actual?.slice(0, 16)}...  version after the first edit`,
        look.dim("Nothing was written: read the file again, then decide.")
      ]

const showEdits = Effect.fnUntraced(function* (guide: Guide, fs: Algebra, { line, path }: Passage) {
  const read = yield* fs.version(path)
  const change = { oldText: line, newText: `${line} (edited)` }
  yield* guide.step({
    title: "Edit only if the file has not changed since the read",
    code: `yield* fs.edit(${quoted(path)}, { oldText, newText }, { ifMatch: version })`,
    run: fs.edit(path, change, { ifMatch: read }),
    show: ({ diff }, look) => firstItems(paintDiff(look, diff.trimEnd()).split("\n"), 10, (line) => line)
  })
  yield* guide.step({
    title: "The same edit again, with the old version",
    code: `yield* fs.edit(${quoted(path)}, { oldText, newText }, { ifMatch: version })`,
    run: failureOf(fs.edit(path, change, { ifMatch: read })),
    show: showConflict
  })
  return read
})

const showTypedFailure = (guide: Guide, fs: Algebra, { path }: Passage) => {
  const wrong = misspell(path)
  return guide.step({
    title: "Failures are typed and say what to do",
    code: `yield* Effect.catchTag(fs.read(${quoted(wrong)}), "NotFound", (error) => ...)`,
    run: Effect.all([failureOf(fs.read(wrong)), suggestPaths(fs, { path: wrong })]),
    show: ([error, near], look) => [
      look.red(look.text(error === undefined ? "no failure" : `${error._tag}: ${error.message}`)),
      ...(near.length === 0 ? [] : [`Did you mean ${near.map(look.name).join(", ")}?`])
    ]
  })
}

const showDisk = (guide: Guide, host: Algebra, path: string, read: string) =>
  guide.step({
    title: "Check that the disk is unchanged",
    code: `(yield* onDisk.version(${quoted(path)})) === version`,
    run: host.version(path),
    show: (version, look) => [
      version === read
        ? look.green("true: the file on disk is unchanged")
        : look.yellow("false: another program changed the file")
    ]
  })

const formatNextSteps =
  (program: string) =>
  (look: TextStyle): ReadonlyArray<string> => {
    const row = (code: string, what: string) => `${indent}${look.cyan(code.padEnd(48))}${look.dim(what)}`
    return [
      "",
      look.bold("Where to go next"),
      row(`${program} tree`, "the files of this directory, as a tree"),
      row(`${program} grep 'TODO|FIXME' --root ../other`, "the same in another directory"),
      row(`${program} --help`, "all commands"),
      "",
      `${indent}In a program  ${look.cyan("Effect.provide(program, PosixHost.layer({ root }))")}`,
      `${indent}In a test     ${look.cyan('Effect.provide(program, InMemory.layer({ tree: { "a.txt": "hello" } }))')}`,
      `${indent}For an agent  ${look.cyan("Effect.provideService(tool, Limits.Limits, Limits.agent)")}`,
      `${indent}${program === installed ? "The README of fs-algebra" : "README.md"} explains each of them.`
    ]
  }

export const run = Effect.gen(function* () {
  const host = yield* Filesystem
  const { program } = yield* Screen
  const guide = yield* makeGuide
  yield* guide.say((look) => [
    look.bold(`A tour of fs-algebra, on the files of ${look.name(host.root)}`),
    "All steps work on a copy in memory: nothing on disk is touched."
  ])
  const fs = yield* loadDirectory(guide, host)
  const { matches: files } = yield* fs.glob("*", { sizes: true })
  yield* showSearches(guide, fs, files)
  const passage = yield* textToEdit(guide, fs, files)
  const read = yield* showEdits(guide, fs, passage)
  yield* showTypedFailure(guide, fs, passage)
  if (yield* host.exists(passage.path)) yield* showDisk(guide, host, passage.path, read)
  yield* guide.say(formatNextSteps(program))
})
