/**
 * Compares searches of the project's node_modules with ripgrep, down to the column. A file may differ only if its bytes show a
 * known reason.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isUtf8 } from "node:buffer"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type GrepOptions, make } from "../../src/filesystem/Filesystem.ts"
import type { GrepMatch } from "../../src/model/Entry.ts"
import { names, type Ripgrep, ripgreps, same, saysNoRipgrep } from "./engines.ts"

saysNoRipgrep("node_modules beside ripgrep")

const root = fileURLToPath(new URL("../../node_modules", import.meta.url))

const isSoak = process.env["FS_ALGEBRA_SOAK"] !== undefined

/** Large packages whose files resemble those of the others. Only the soak searches them. */
const repetitive = ["/node", "/openai", "/@anthropic-ai", "/@mastra", "/@langchain", "/@redis", "/js-tiktoken", "/sql.js"]

/** The directories that test runners write to, and those that this run leaves out. */
const leftOut = ["/.vite", "/.vite-temp", "/.vitest-cache", "/.cache", ...(isSoak ? [] : repetitive)]

const all = ["-uu", ...leftOut.flatMap((rule) => ["-g", `!${rule}`])]

const maxFileSize = 8 * 1024 * 1024
const sizes = ["--max-filesize", String(maxFileSize)]

const fs = Effect.map(Effect.orDie(PosixHost.make({ root })), make)

const inOrder = (paths: ReadonlyArray<string>): Array<string> =>
  paths.toSorted((one, two) => Buffer.compare(Buffer.from(one), Buffer.from(two)))

/** Returns the reason why a file may differ, or `undefined`. */
const reasonIn = (path: string): string | undefined => {
  const bytes = readFileSync(join(root, path))
  if (bytes.length > maxFileSize) return "too large"
  if ((bytes[0] === 0xff && bytes[1] === 0xfe) || (bytes[0] === 0xfe && bytes[1] === 0xff)) return "UTF-16"
  if (bytes.subarray(0, 8192).includes(0)) return "a NUL"
  if (!isUtf8(bytes)) return "not UTF-8"
  const text = bytes.toString()
  if (/\r(?!\n)/.test(text)) return "a lone CR"
  return /[\u2028\u2029]/.test(text) ? "U+2028 or U+2029" : undefined
}

interface Line {
  readonly path: string
  readonly lineNumber: number
  readonly text: string
  /** The UTF-16 columns of the first match, or `undefined` for a context line. */
  readonly columns: readonly [number, number] | undefined
}

interface Text {
  readonly text?: string
  readonly bytes?: string
}

const textOf = ({ bytes, text }: Text): Buffer => (bytes === undefined ? Buffer.from(text!) : Buffer.from(bytes, "base64"))

const linesOf = (rg: Ripgrep, args: ReadonlyArray<string>): Array<Line> => {
  const out: Array<Line> = []
  for (const json of rg
    .run(root, ["--json", "--text", "--crlf", ...all, ...sizes, ...args])
    .toString()
    .split("\n")) {
    if (!json.startsWith('{"type":"match"') && !json.startsWith('{"type":"context"')) continue
    const { data, type } = JSON.parse(json) as {
      readonly type: string
      readonly data: {
        readonly path: Text
        readonly lines: Text
        readonly line_number: number
        readonly submatches: ReadonlyArray<{ readonly start: number; readonly end: number }>
      }
    }
    const line = textOf(data.lines)
    const mark = data.line_number === 1 && line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? 3 : 0
    const column = (at: number): number => line.subarray(mark, Math.max(at, mark)).toString().length
    const first = data.submatches[0]
    out.push({
      path: textOf(data.path).toString().replace(/^\.\//, ""),
      lineNumber: data.line_number,
      text: line
        .subarray(mark)
        .toString()
        .replace(/\r?\n$/, ""),
      columns: type === "match" ? [column(first!.start), column(first!.end)] : undefined
    })
  }
  return out
}

const show = ({ columns, lineNumber, path, text }: Line): string =>
  `${path}:${lineNumber}${columns === undefined ? "-" : `:${columns.join("-")}:`}${text}`

/** Returns each line once. A line with a match is not also a context line. */
const linesOfOurs = (matches: ReadonlyArray<GrepMatch>): Array<Line> => {
  const out = new Map<string, Line>()
  const add = (line: Line): void => {
    const key = `${line.path}:${line.lineNumber}`
    if (line.columns !== undefined || !out.has(key)) out.set(key, line)
  }
  for (const { after = [], before = [], lineContent, lineNumber, matchEnd, matchStart, path } of matches) {
    for (const [index, text] of before.entries())
      add({ path, lineNumber: lineNumber - before.length + index, text, columns: undefined })
    add({ path, lineNumber, text: lineContent, columns: [matchStart, matchEnd] })
    for (const [index, text] of after.entries()) add({ path, lineNumber: lineNumber + 1 + index, text, columns: undefined })
  }
  return [...out.values()]
}

const byPath = (lines: ReadonlyArray<Line>): Map<string, Array<string>> => {
  const out = new Map<string, Array<string>>()
  for (const line of lines) {
    const known = out.get(line.path)
    if (known === undefined) out.set(line.path, [show(line)])
    else known.push(show(line))
  }
  for (const known of out.values()) known.sort()
  return out
}

/** Returns the files whose lines differ, with the first difference. */
const different = (ours: Map<string, Array<string>>, theirs: Map<string, Array<string>>): Array<readonly [string, string]> =>
  inOrder([...new Set([...ours.keys(), ...theirs.keys()])]).flatMap((path) => {
    const [mine, others] = [ours.get(path) ?? [], theirs.get(path) ?? []]
    const at = Array.from({ length: Math.max(mine.length, others.length) }, (_, i) => i).find((i) => mine[i] !== others[i])
    return at === undefined ? [] : [[path, `ours ${mine[at]?.slice(0, 300)}, theirs ${others[at]?.slice(0, 300)}`] as const]
  })

const rows: ReadonlyArray<readonly [pattern: string, options: GrepOptions, flags: ReadonlyArray<string>, atLeast: number]> = [
  ["readFileSync", {}, [], 20],
  ["todo|fixme", { ignoreCase: true }, ["-i"], 100],
  ["stream", { wholeWord: true }, ["-w"], 500],
  ["=> {}", { literal: true }, ["-F"], 100],
  ["a.b(c)*", { literal: true }, ["-F"], 0],
  ["^export (const|function) [a-z]{3,7}\\b", {}, [], 1000],
  ["–|©|é", { glob: "*.md" }, ["-g", "*.md"], 5],
  ["\\bclass [A-Z][A-Za-z]*Error\\b", {}, [], 20],
  ["\\}\\);?$", { glob: "*.mjs" }, ["-g", "*.mjs"], 100],
  ["^\\s*$", { glob: "**/package.json" }, ["-g", "package.json"], 0],
  ["(MIT|ISC|Apache)-?[0-9.]*", { glob: ["LICENSE*", "*.json"] }, ["-g", "LICENSE*", "-g", "*.json"], 100],
  ["Effect\\.gen\\(function ?\\*", { context: 1 }, ["-C", "1"], 50],
  ["license", { ignoreCase: true, context: 1, glob: "package.json" }, ["-i", "-C", "1", "-g", "package.json"], 50],
  ["\\t \\t| \\t ", { context: [2, 0] }, ["-B", "2"], 0]
]

/** Moves the excluded directories to the end, because in ripgrep the last glob decides. */
const ordered = (flags: ReadonlyArray<string>): ReadonlyArray<string> =>
  flags.includes("-g") ? [...flags, ...leftOut.flatMap((rule) => ["-g", `!${rule}`])] : flags

// The soak compares with every ripgrep.
const asked = isSoak ? ripgreps : ripgreps.slice(-1)

describe.each(asked)("a search of node_modules, compared with $name:", (rg) => {
  it.live("a walk returns the same files", () =>
    Effect.gen(function* () {
      const walked = yield* Stream.runCollect((yield* fs).walk(".", { exclude: leftOut }))
      const theirs = names(rg.run(root, ["--files", "--null", ...all]))
      assert.isAbove(theirs.length, 5000)
      same(
        walked.flatMap(({ isFile, path }) => (isFile ? [path as string] : [])),
        inOrder(theirs),
        "walk"
      )
    }).pipe(Effect.scoped)
  )

  it.live("globs return the same files", () =>
    Effect.gen(function* () {
      const globs = [
        "*.ts",
        "*.d.{ts,mts,cts}",
        "effect/src/*.ts",
        "/*/package.json",
        "**/src/**/*.js",
        "**/[A-Z]*.md",
        "@*/**"
      ]
      const more = ["effect/**/internal/**", "*LICENSE*", "**/.*", "**/dist/*/*.[cm]js", "{effect,vitest}/**/*.json", "?.js"]
      const filesystem = yield* fs
      for (const glob of [...globs, ...more]) {
        const { matches } = yield* filesystem.glob(glob, { exclude: leftOut })
        const flags = ["-uu", "-g", glob, ...leftOut.flatMap((rule) => ["-g", `!${rule}`])]
        same(
          matches.map(({ path }) => path as string),
          inOrder(names(rg.run(root, ["--files", "--null", ...flags]))),
          glob
        )
      }
    }).pipe(Effect.scoped)
  )

  for (const [pattern, options, flags, atLeast] of rows) {
    it.live(`grep returns the same lines for ${pattern} ${JSON.stringify(options)}`, () =>
      Effect.gen(function* () {
        const heard = new Map<string, string>()
        const onSkip = (path: string, why: string): void => void heard.set(path, why)
        const { filesMatched, matches, truncated } = yield* (yield* fs).grep(pattern, {
          ...options,
          exclude: leftOut,
          maxFileSize,
          maxMatches: Number.POSITIVE_INFINITY,
          onSkip
        })
        assert.isFalse(truncated)
        assert.strictEqual(filesMatched, new Set(matches.map(({ path }) => path)).size)
        // Only a pattern that is not ASCII needs ripgrep's Unicode classes. This library has the classes of JavaScript.
        const unicode = /^[\0-\x7f]*$/.test(pattern) ? ["--no-unicode"] : []
        const theirs = byPath(linesOf(rg, [...unicode, ...ordered(flags), "-e", pattern, "."]))
        const ours = byPath(linesOfOurs(matches))
        for (const [path, line] of different(ours, theirs)) {
          const reason = reasonIn(path)
          assert.isDefined(reason, `${path}: ${line}`)
          // A binary or too large file must be reported as skipped, and all other files must be searched.
          const isSaid = heard.get(path) === "binary" || heard.get(path) === "tooLarge"
          assert.strictEqual(isSaid, !/CR|U\+2028/.test(reason!), `${path} has ${reason}, we said ${heard.get(path)}: ${line}`)
        }
        const agreed = [...ours].filter(([path]) => theirs.has(path))
        assert.isAtLeast(
          agreed.reduce((sum, [, lines]) => sum + lines.length, 0),
          atLeast
        )
      }).pipe(Effect.scoped)
    )
  }

  it.live("grep matches the same files with the same counts", () =>
    Effect.gen(function* () {
      const counts = new Map<string, number>()
      yield* Stream.runForEach((yield* fs).grepStream("import", { exclude: leftOut, maxFileSize }), ({ path }) =>
        Effect.sync(() => void counts.set(path, (counts.get(path) ?? 0) + 1))
      )
      const listed = names(rg.run(root, ["-l", "--null", "--text", ...all, ...sizes, "-e", "import", "."]))
      const paths = listed.map((path) => path.replace(/^\.\//, ""))
      const isText = (path: string): boolean => counts.has(path) || reasonIn(path) === undefined
      same([...counts.keys()], inOrder(paths.filter(isText)), "files")
      const counted = rg.run(root, ["-c", "--null", "--text", ...all, ...sizes, "-e", "import", "."]).toString()
      for (const [, path, count] of counted.matchAll(/^(?:\.\/)?([^\0\n]*)\0(\d+)$/gm)) {
        if (counts.has(path!)) assert.strictEqual(counts.get(path!), Number(count), path)
      }
    }).pipe(Effect.scoped)
  )
})
