import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Algebra, GlobOptions } from "../../filesystem/Filesystem.ts"
import type { Kind } from "../../model/Entry.ts"
import { lawForms, withFaults, withLimits } from "../chapter.ts"
import { equal, fails, has, holds } from "../expect.ts"
import { directory, type Files } from "../Files.ts"
import type { Law } from "../Law.ts"
import { collect, paths } from "../operations.ts"

const service = lawForms("service")
const changing = lawForms("service", "write", "delete")
const caseSensitive = lawForms("service", "case sensitive")

const pythonTree: Files = {
  "r.py": "",
  ".h.py": "",
  "s/a.py": "",
  "s/t/c.py": "",
  "s/.d/x.py": "",
  "s/n.txt": "12345",
  readme: ""
}
const pythonFiles = [".h.py", "r.py", "s/.d/x.py", "s/a.py", "s/t/c.py"]
const allFiles = [".h.py", "r.py", "readme", "s/.d/x.py", "s/a.py", "s/n.txt", "s/t/c.py"]

interface Row {
  readonly what: string
  readonly pattern: string | ReadonlyArray<string>
  readonly options?: GlobOptions
  readonly expected: ReadonlyArray<string>
  readonly files?: Files
  readonly needsCaseSensitive?: boolean
}

const directories: ReadonlyArray<Kind> = ["directory"]

const rows: ReadonlyArray<Row> = [
  { what: "a pattern without a slash matches names at any depth", pattern: "*.py", expected: pythonFiles },
  { what: "**/*.py finds files in the root", pattern: "**/*.py", expected: pythonFiles },
  { what: "s/*.py does not find s/t/c.py", pattern: "s/*.py", expected: ["s/a.py"] },
  { what: "a leading slash matches only in the root", pattern: "/*.py", expected: [".h.py", "r.py"] },
  { what: "a leading ./ matches only in the root", pattern: "./*.py", expected: [".h.py", "r.py"] },
  { what: "** matches every file, including hidden files", pattern: "**", expected: allFiles },
  {
    what: "** in the middle matches zero or more segments",
    pattern: "s/**/*.py",
    expected: ["s/.d/x.py", "s/a.py", "s/t/c.py"]
  },
  { what: "? does not match a slash", pattern: "s?a.py", expected: [] },
  { what: "? matches one character", pattern: "?.py", expected: ["r.py", "s/.d/x.py", "s/a.py", "s/t/c.py"] },
  { what: "braces are alternatives", pattern: "{r,s/a}.py", expected: ["r.py", "s/a.py"] },
  { what: "** in braces matches zero or more segments", pattern: "{**/*.txt,**/r*}", expected: ["r.py", "readme", "s/n.txt"] },
  {
    what: "** in braces within a path matches zero or more segments",
    pattern: "s/{**/c,**/a,x}.py",
    expected: ["s/a.py", "s/t/c.py"]
  },
  {
    what: "two numbers in braces are a range",
    pattern: "{8..12}.txt",
    files: { "7.txt": "", "8.txt": "", "a/12.txt": "", "13.txt": "", "1.txt": "" },
    expected: ["8.txt", "a/12.txt"]
  },
  {
    what: "a range in braces keeps leading zeros",
    pattern: "{08..10}",
    files: { "8": "", "08": "", "10": "" },
    expected: ["08", "10"]
  },
  {
    what: "brackets accept POSIX character classes",
    pattern: "a[[:space:]][[:digit:]_]",
    files: { "a 1": "", "a _": "", "a b": "", ab1: "" },
    expected: ["a 1", "a _"]
  },
  { what: "a backslash makes the next character literal", pattern: "\\r\\.p\\y", expected: ["r.py"] },
  { what: "brackets are a character class", pattern: "[rc].py", expected: ["r.py", "s/t/c.py"] },
  {
    what: "a path that several patterns match is returned once",
    pattern: ["*.txt", "s/*", "*.txt"],
    expected: ["s/a.py", "s/n.txt"]
  },
  { what: "patterns are case-sensitive", pattern: "README", expected: [], needsCaseSensitive: true },
  {
    what: "directories match if the option kinds includes them",
    pattern: "*",
    options: { kinds: directories },
    expected: ["s", "s/.d", "s/t"]
  },
  {
    what: "a pattern with a trailing slash matches only directories",
    pattern: "t/",
    options: { kinds: ["file", "directory"] },
    expected: ["s/t"]
  },
  {
    what: "a pattern with a trailing slash does not match files",
    pattern: "readme/",
    options: { kinds: ["file", "directory"] },
    expected: []
  },
  {
    what: "a pattern is relative to its base, and results are relative to the root",
    pattern: "*.py",
    options: { path: "s" },
    expected: ["s/.d/x.py", "s/a.py", "s/t/c.py"]
  },
  { what: "a leading slash matches only in the base", pattern: "/*.py", options: { path: "s" }, expected: ["s/a.py"] },
  {
    what: "entries below an excluded directory do not match",
    pattern: "**",
    options: { exclude: "s" },
    expected: [".h.py", "r.py", "readme"]
  },
  {
    what: "excludes are matched like patterns",
    pattern: "**",
    options: { exclude: ["*.py", "/readme"] },
    expected: ["s/n.txt"]
  },
  {
    what: "an exclude with ** in braces excludes at every depth",
    pattern: "**",
    options: { exclude: "{**/s/**,**/r*}" },
    expected: [".h.py"]
  },
  {
    what: "an exclude with ! and ** in braces re-includes at every depth",
    pattern: "**",
    options: { exclude: ["**", "!{**/*.txt,**/readme,**/s/}"] },
    expected: ["readme", "s/n.txt"]
  },
  {
    what: "a later exclude with ! re-includes excluded entries",
    pattern: "**/*.py",
    options: { exclude: ["s/*", "!s/a.py"] },
    expected: [".h.py", "r.py", "s/a.py"]
  },
  {
    what: "excludes are relative to the base",
    pattern: "**",
    options: { path: "s", exclude: "/t" },
    expected: ["s/.d/x.py", "s/a.py", "s/n.txt"]
  },
  {
    what: "in fnmatch a star also matches slashes",
    pattern: "s*.py",
    options: { dialect: "fnmatch" },
    expected: ["s/.d/x.py", "s/a.py", "s/t/c.py"]
  },
  {
    what: "in fnmatch a question mark also matches a slash",
    pattern: "s?a.py",
    options: { dialect: "fnmatch" },
    expected: ["s/a.py"]
  },
  {
    what: "in fnmatch a pattern must match the whole path",
    pattern: "?.py",
    options: { dialect: "fnmatch" },
    expected: ["r.py"]
  },
  {
    what: "in fnmatch [!x] matches all characters except x",
    pattern: "[!s]*",
    options: { dialect: "fnmatch" },
    expected: [".h.py", "r.py", "readme"]
  },
  { what: "spaces in a pattern are literal", pattern: " a", files: { " a": "", a: "" }, expected: [" a"] }
]

const badPatterns: ReadonlyArray<readonly [what: string, pattern: string]> = [
  ["a blank pattern", ""],
  ["a pattern of spaces", "   "],
  ["a pattern with NUL", "a\0b"],
  ["a pattern with a lone surrogate", "a\ud800"],
  ["a pattern with a segment of two dots", "s/../*.py"],
  ["a pattern that begins with two dots", "../*"],
  ["two dots after the expansion of braces", "{..,s}/*.py"],
  ["a pattern of 1,001 characters", "a".repeat(1001)],
  ["braces that stand for more than 1,024 patterns", "{a,b}".repeat(11)]
]

const globPaths = (pattern: Row["pattern"], options?: GlobOptions) => (fs: Algebra) =>
  Effect.map(fs.glob(pattern, options), ({ matches }) => paths(matches))

const globRow = ({ needsCaseSensitive = false, what, pattern, options, expected, files = pythonTree }: Row): Law =>
  (needsCaseSensitive ? caseSensitive : service)("C-19", files).answers(
    `in glob, ${what}`,
    globPaths(pattern, options),
    expected
  )

const globArguments = service("C-19", pythonTree)

export const globLaws: ReadonlyArray<Law> = [
  ...rows.map(globRow),
  service("C-18, behaviours: regressions", { "a/b.txt": "", "a.txt": "", "a-b.txt": "" }).answers(
    "globs are in path order",
    globPaths("**/*.txt"),
    ["a-b.txt", "a.txt", "a/b.txt"]
  ),
  service("C-18", { "\u{1f600}": "", "\uffee": "" }).answers("globs are in the order of code points", globPaths("*"), [
    "\uffee",
    "\u{1f600}"
  ]),
  ...badPatterns.flatMap(([what, pattern]) => [
    globArguments.refuses(`${what} is InvalidArgument in glob`, (fs) => fs.glob(pattern), "InvalidArgument", {
      argument: "pattern"
    }),
    globArguments.refuses(
      `${what} is InvalidArgument in a list of patterns`,
      (fs) => collect(fs.globStream(["*", pattern])),
      "InvalidArgument",
      { argument: "pattern" }
    )
  ]),
  globArguments.refuses(
    "glob with a file as its base is NotADirectory",
    (fs) => fs.glob("*", { path: "readme" }),
    "NotADirectory"
  ),
  ...["missing", "missing/x", "readme/x"].flatMap((path) => [
    globArguments.refuses(`glob with the missing base ${path} is NotFound`, (fs) => fs.glob("**", { path }), "NotFound", {
      path
    }),
    globArguments.refuses(
      `globStream with the missing base ${path} is NotFound`,
      (fs) => collect(fs.globStream("**", { path, maxMatches: 0 })),
      "NotFound",
      { path }
    )
  ]),
  service("C-19", { "source/app/main.ts": "", "force/x": "", "sourc.txt": "", other: directory }).law(
    "glob suggests directories with a name like the missing base",
    function* (fs) {
      yield* fails(fs.glob("*", { path: "sorce" }), "NotFound", { nearest: ["force", "source"] })
      yield* fails(fs.glob("*", { path: "sorce/app" }), "NotFound", { nearest: ["force", "source/app"] })
      yield* fails(fs.glob("*", { path: "source/ap" }), "NotFound", { nearest: ["source/app"] })
      yield* fails(fs.glob("*", { path: "sourc.tx" }), "NotFound", { nearest: undefined })
      yield* fails(collect(fs.globStream("*", { path: "othr" })), "NotFound", { nearest: ["other"] })
      const error = yield* fails(fs.glob("*", { path: "othr" }), "NotFound")
      yield* holds(error.message.includes('did you mean "other"'), "a message that names other", error.message)
    }
  ),
  service("C-21", pythonTree).refuses(
    "glob refuses a negative maximum",
    (fs) => fs.glob("*", { maxMatches: -1 }),
    "InvalidArgument",
    { argument: "maxMatches" }
  ),
  service("C-18", pythonTree).law(
    "a glob reports truncation, and the next page continues after the last match",
    function* (fs) {
      const seen: Array<string> = []
      let after: string | undefined
      for (let page = 0; page < 10; page++) {
        const result = yield* fs.glob("**/*.py", { maxMatches: 2, after })
        seen.push(...paths(result.matches))
        yield* equal(result.truncated, result.next !== undefined, "truncated is true only if next is set")
        yield* holds(result.matches.length <= 2, "at most two matches", result.matches)
        after = result.next
        if (after === undefined) break
      }
      yield* equal(seen, pythonFiles)
    }
  ),
  service("C-22", pythonTree).law("a glob with exactly the maximum number of matches is not truncated", function* (fs) {
    yield* has(yield* fs.glob("*.py", { maxMatches: 5 }), { truncated: false, next: undefined })
    yield* has(yield* fs.glob("*.py", { maxMatches: 4 }), { truncated: true })
  }),
  service("C-21", pythonTree).answers("glob with a maximum of 0 returns no matches", (fs) => fs.glob("*", { maxMatches: 0 }), {
    matches: []
  }),
  service("C-22", pythonTree).law("the limit maxGlobMatches applies to glob but not to globStream", function* (fs) {
    const small = withLimits({ maxGlobMatches: 2 })
    yield* has(yield* small(fs.glob("*.py")), { truncated: true })
    yield* equal(paths(yield* small(collect(fs.globStream("*.py")))), pythonFiles)
  }),
  changing("C-20", { a: "", b: "", c: "" }).law("a glob continues after its cursor even if files have changed", function* (fs) {
    const { next } = yield* fs.glob("*", { maxMatches: 2 })
    yield* fs.delete("b")
    yield* fs.write("a2", "")
    yield* fs.write("b2", "")
    yield* equal(paths((yield* fs.glob("*", { after: next })).matches), ["b2", "c"])
  }),
  service("S0-10", pythonTree).law("glob returns sizes only with the option sizes", function* (fs) {
    yield* equal<object>((yield* fs.glob("n.txt", { sizes: true })).matches, [
      { path: "s/n.txt", kind: "file", isFile: true, sizeBytes: 5 }
    ])
    yield* equal<object>((yield* fs.glob("n.txt")).matches, [{ path: "s/n.txt", kind: "file", isFile: true }])
  }),
  service("C-19", { ...pythonTree, ".gitignore": "/s/t/\n" }).law("globStream finds the same matches as glob", function* (fs) {
    const { next } = yield* fs.glob("**", { maxMatches: 3 })
    const cases: ReadonlyArray<readonly [pattern: string, options: GlobOptions]> = [
      ["**", {}],
      ["**", { path: "s" }],
      ["**", { exclude: "t" }],
      ["**", { kinds: ["directory", "file"] }],
      ["**", { sizes: true }],
      ["**", { gitignore: true }],
      ["**", { after: next }],
      ["**", { maxMatches: 2 }],
      ["s*.py", { dialect: "fnmatch" }]
    ]
    for (const [pattern, options] of cases) {
      const { matches } = yield* fs.glob(pattern, options)
      yield* equal(yield* collect(fs.globStream(pattern, options)), matches, `${pattern} ${JSON.stringify(options)}`)
    }
  }),
  service("api: Skipped", { a: "", "x/b": "", "x/c": "", ".gitignore": "x/\n" }).law(
    "glob counts an ignored directory once, and passes it to onSkip",
    function* (fs) {
      const skipped: Array<string> = []
      const result = yield* fs.glob("*", { gitignore: true, onSkip: (path, why) => skipped.push(`${why} ${path}`) })
      yield* equal(paths(result.matches), [".gitignore", "a"])
      yield* equal(result.skipped.ignored, 1)
      yield* equal(
        skipped.map((line) => line.replace(/\/$/, "")),
        ["ignored x"]
      )
    }
  ),
  service("C-21", { "a/x": "", "b/x": "", "c/x": "" }).law(
    "a glob reports an unreadable directory and returns all other matches",
    function* (fs) {
      const broken = yield* withFaults(fs, { operation: "List", path: "b", fault: { _tag: "AccessDenied", why: "permission" } })
      const result = yield* broken.glob("*")
      yield* equal(paths(result.matches), ["a/x", "c/x"])
      yield* has(result.skipped, { unreadable: 1, unreadablePaths: ["b" as never] })
    }
  ),
  service("C-21, C-54", { "a/x": "", "b/x": "" }).law("a search fails if the backend is unavailable", function* (fs) {
    const gone = yield* withFaults(fs, { operation: "List", path: "b", fault: { _tag: "Unavailable", detail: "stopped" } })
    yield* fails(gone.glob("*"), "Unavailable")
    yield* fails(gone.grep("x"), "Unavailable")
  })
]

const ignoreTree: Files = {
  ".git/config": "",
  ".gitignore": "*.log\n/build/\n!keep.log\n# *.ts\n",
  "a.log": "",
  "keep.log": "",
  "a.ts": "",
  "build/out": "",
  "src/build/in": "",
  "src/b.log": "",
  "src/.gitignore": "!b.log\n*.tmp\n",
  "src/c.tmp": "",
  "other/c.tmp": "",
  "other/.ignore": "c.tmp\n"
}

const ignoring = service("semantics: gitignore", ignoreTree)

export const gitignoreLaws: ReadonlyArray<Law> = [
  ignoring.answers("ignore files apply at every level, and .git is skipped", globPaths("**", { gitignore: true }), [
    ".gitignore",
    "a.ts",
    "keep.log",
    "other/.ignore",
    "src/.gitignore",
    "src/b.log",
    "src/build/in"
  ]),
  ignoring.answers(
    "no file is ignored without the option gitignore",
    (fs) => Effect.map(globPaths("**")(fs), (all) => all.length),
    12
  ),
  ignoring.answers("ignore files above the base apply", globPaths("**", { gitignore: true, path: "src" }), [
    "src/.gitignore",
    "src/b.log",
    "src/build/in"
  ]),
  service("semantics: gitignore", { ".gitignore": "b\n", a: "x", b: "x" }).answers(
    "greps apply ignore files",
    (fs) => Effect.map(fs.grep("x", { gitignore: true }), ({ matches }) => paths(matches)),
    ["a"]
  ),
  service("semantics: gitignore", { ".gitignore": "b\n", a: "x", "b/c": "x" }).answers(
    "walks apply ignore files",
    (fs) => Effect.map(collect(fs.walk(".", { gitignore: true })), paths),
    [".gitignore", "a"]
  )
]

const orderedTree: Files = { "a-b.txt": "", "a.txt": "1", "a/b.txt": "22", "a/c": directory, b: "" }

export const walkLaws: ReadonlyArray<Law> = [
  service("C-18", orderedTree).answers(
    "a walk is in path order, where the path of a directory ends with a slash",
    (fs) => Effect.map(collect(fs.walk()), paths),
    ["a-b.txt", "a.txt", "a", "a/b.txt", "a/c", "b"]
  ),
  service("api: walk", { "d/f": "12" }).law(
    "a walk returns each entry with its kind, and with its size if sizes are requested",
    function* (fs) {
      yield* equal<object>(yield* collect(fs.walk()), [
        { name: "d", path: "d", kind: "directory", isFile: false, isDirectory: true, addressable: true },
        { name: "f", path: "d/f", kind: "file", isFile: true, isDirectory: false, addressable: true }
      ])
      yield* equal((yield* collect(fs.walk("d", { sizes: true })))[0]?.sizeBytes, 2)
    }
  ),
  service("api: walk", orderedTree).answers("a walk begins at its base", (fs) => Effect.map(collect(fs.walk("a")), paths), [
    "a/b.txt",
    "a/c"
  ]),
  service("api: walk", { "a/b/c": "", d: "" }).answers(
    "a walk stops at maxDepth",
    (fs) => Effect.map(collect(fs.walk(".", { maxDepth: 2 })), paths),
    ["a", "a/b", "d"]
  ),
  service("api: walk", { "a/b/c": "", "d/c": "", e: "" }).answers(
    "a walk omits excluded entries",
    (fs) => Effect.map(collect(fs.walk(".", { exclude: ["a", "c"] })), paths),
    ["d", "e"]
  ),
  service("api: walk", { d: directory }).answers("a walk of an empty directory is empty", (fs) => collect(fs.walk("d")), []),
  service("api: walk", orderedTree).answers(
    "a walk can be stopped early",
    (fs) => Effect.map(Stream.runCollect(Stream.take(fs.walk(), 2)), paths),
    ["a-b.txt", "a.txt"]
  ),
  service("C-17", orderedTree).refuses("a walk of a missing path is NotFound", (fs) => collect(fs.walk("missing")), "NotFound"),
  service("C-17", orderedTree).refuses("a walk of a file is NotADirectory", (fs) => collect(fs.walk("b")), "NotADirectory"),
  service("C-21", { "a/x": "", "b/x": "" }).law("a walk fails on a directory that it cannot read", function* (fs) {
    const broken = yield* withFaults(fs, { operation: "List", path: "b", fault: { _tag: "AccessDenied", why: "permission" } })
    yield* fails(collect(broken.walk()), "AccessDenied", { why: "permission" })
    yield* fails(broken.list("b"), "AccessDenied", { why: "permission" })
  })
]
