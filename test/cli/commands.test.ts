import { assert, describe, it } from "@effect/vitest"
import { createHash } from "node:crypto"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { TestClock } from "effect/testing"
import { done, shell } from "./terminal.ts"

const project = {
  "README.md": "# Title\n\nTODO: write\n",
  src: { "main.ts": "const a = 1\nconst b = 2\n// TODO later\n", lib: { "util.ts": "export const x = 'todo'\n" } },
  "image.png": new Uint8Array([137, 80, 78, 71, 0, 1, 2, 3]),
  empty: {},
  link: { link: "src/main.ts" }
}

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex")
const terminal = { isTerminal: true } as const
describe("ls", () => {
  it.effect("prints one name per line into a pipe, with a slash after directories", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell(project)).run(["ls"])
      done(ran)
      assert.strictEqual(ran.out, "README.md\nempty/\nimage.png\nlink\nsrc/\n")
      assert.strictEqual(ran.err, "")
    })
  )
  it.effect("shows sizes and marks links on a terminal", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell(project)).run(["ls"], terminal)
      assert.strictEqual(ran.out, "21 B  README.md\n   -  empty/\n 8 B  image.png\n   -  link@\n   -  src/\n")
    })
  )
  it.effect("adds permissions, times and targets with --long", () =>
    Effect.gen(function* () {
      const { out } = yield* (yield* shell(project)).run(["ls", "-l"])
      const lines = out.trimEnd().split("\n")
      assert.match(lines[0]!, /^-\S{9} +21 B +1970-01-01 00:00 UTC +README\.md$/)
      assert.match(lines[1]!, /^d\S{9} +- +\S+ \S+ UTC +empty\/$/)
      assert.match(lines[3]!, /^l.* link -> src\/main\.ts$/)
    })
  )
  it.effect("prints one JSON entry per line with --json", () =>
    Effect.gen(function* () {
      const entries = yield* (yield* shell(project)).json(["ls", "src"])
      assert.deepStrictEqual(entries, [
        { name: "lib", path: "src/lib", kind: "directory", isFile: false, isDirectory: true, sizeBytes: 0, addressable: true },
        {
          name: "main.ts",
          path: "src/main.ts",
          kind: "file",
          isFile: true,
          isDirectory: false,
          sizeBytes: 38,
          addressable: true
        }
      ])
    })
  )
  it.effect("adds permissions, times and targets with --long --json", () =>
    Effect.gen(function* () {
      const entries = yield* (yield* shell(project)).json(["ls", "--long"])
      assert.isNumber((entries[0] as { mode: number }).mode)
      assert.strictEqual((entries[3] as { target: string }).target, "src/main.ts")
      assert.strictEqual((entries[0] as { modifiedAt: string }).modifiedAt, "1970-01-01T00:00:00.000Z")
    })
  )
})

describe("tree", () => {
  it.effect("draws with ASCII characters into a pipe", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell(project)).run(["tree"])
      done(ran)
      assert.strictEqual(
        ran.out,
        [
          "./",
          "|-- README.md  21 B",
          "|-- empty/",
          "|-- image.png  8 B",
          "|-- link",
          "`-- src/",
          "    |-- lib/",
          "    |   `-- util.ts  24 B",
          "    `-- main.ts  38 B",
          "",
          "3 directories, 5 files, 91 B",
          ""
        ].join("\n")
      )
    })
  )
  it.effect("draws with box characters on a terminal", () =>
    Effect.gen(function* () {
      const { out } = yield* (yield* shell(project)).run(["tree", "src"], terminal)
      assert.strictEqual(out, "src/\n├── lib/\n│   └── util.ts  24 B\n└── main.ts  38 B\n\n1 directory, 2 files, 62 B\n")
    })
  )
  it.effect("limits the walk with --depth and prunes it with --exclude", () =>
    Effect.gen(function* () {
      const { json } = yield* shell(project)
      const paths = (items: ReadonlyArray<unknown>) => items.map((item) => (item as { path: string }).path)
      assert.deepStrictEqual(paths(yield* json(["tree", "--depth", "1"])), ["README.md", "empty", "image.png", "link", "src"])
      assert.deepStrictEqual(paths(yield* json(["tree", "src", "-d2", "-x", "lib"])), ["src/main.ts"])
    })
  )
  it.effect("skips files that git ignores", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ ".gitignore": "out\n", out: { a: "a" }, b: "b" })
      const { out } = yield* run(["tree"])
      assert.include(out, "b  1 B")
      assert.notInclude(out, "out")
    })
  )
})

describe("cat", () => {
  it.effect("prints the bytes unchanged into a pipe", () =>
    Effect.gen(function* () {
      const { bytes, code } = yield* (yield* shell(project)).run(["cat", "image.png", "README.md"])
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(Array.from(bytes.slice(0, 8)), [137, 80, 78, 71, 0, 1, 2, 3])
      assert.strictEqual(Buffer.from(bytes.slice(8)).toString(), project["README.md"])
    })
  )
  it.effect("refuses a binary file on a terminal, and suggests an alternative", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell(project)).run(["cat", "image.png"], terminal)
      assert.strictEqual(ran.code, 7)
      assert.strictEqual(ran.out, "")
      assert.include(ran.err, "xxd")
    })
  )
  it.effect("escapes control characters on a terminal only", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ evil: "a\u001b[31mb\u009bc\rd\r\ne\tf\n" })
      assert.strictEqual((yield* run(["cat", "evil"], terminal)).out, "a\\x1b[31mb\\x9bc\\rd\ne\tf\n")
      assert.strictEqual((yield* run(["cat", "evil"])).out, "a\u001b[31mb\u009bc\rd\r\ne\tf\n")
    })
  )
  it.effect("prints a range of lines with --lines and keeps their line endings", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ f: "1\r\n2\r\n3\r\n4" })
      const lines = (span: string) => Effect.map(run(["cat", "f", "--lines", span]), ({ out }) => out)
      assert.strictEqual(yield* lines("2:3"), "2\r\n3\n")
      assert.strictEqual(yield* lines("3:"), "3\r\n4")
      assert.strictEqual(yield* lines(":1"), "1\n")
      assert.strictEqual(yield* lines("2"), "2\n")
      assert.strictEqual(yield* lines("9:"), "")
    })
  )
  it.effect("numbers lines from the start of the file with --number, even with --lines", () =>
    Effect.gen(function* () {
      const { run } = yield* shell(project)
      assert.strictEqual(
        (yield* run(["cat", "-n", "src/main.ts", "--lines", "2:"])).out,
        "     2  const b = 2\n     3  // TODO later\n"
      )
      assert.strictEqual((yield* run(["cat", "-n", "src/lib/util.ts"])).out, "     1  export const x = 'todo'\n")
    })
  )
  it.effect("prints a range of bytes with --bytes, as base64 in JSON", () =>
    Effect.gen(function* () {
      const { json, run } = yield* shell(project)
      assert.deepStrictEqual([...(yield* run(["cat", "image.png", "--bytes", "1:4"])).bytes], [80, 78, 71])
      const [answer] = yield* json(["cat", "image.png", "--bytes", "1:4"])
      assert.strictEqual((answer as { content: string }).content, Buffer.from("PNG").toString("base64"))
    })
  )
  it.effect("prints text, number of lines and version with --json", () =>
    Effect.gen(function* () {
      const [answer] = yield* (yield* shell(project)).json(["cat", "README.md"])
      assert.deepInclude(answer as object, {
        path: "README.md",
        content: "# Title\n\nTODO: write",
        totalLines: 3,
        endsWithNewline: true,
        version: sha256(project["README.md"])
      })
    })
  )
  it.effect("prints the other files if a file is missing", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell(project)).run(["cat", "nope", "README.md"])
      assert.strictEqual(ran.code, 3)
      assert.strictEqual(ran.out, project["README.md"])
    })
  )
})

describe("stat", () => {
  it.effect("shows path, size and version of a file", () =>
    Effect.gen(function* () {
      const { out } = yield* (yield* shell(project)).run(["stat", "README.md"])
      assert.match(out, /^ +path {2}README\.md$/m)
      assert.match(out, /^ +size {2}21 B \(21 bytes\)$/m)
      assert.match(out, new RegExp(`^ +version {2}${sha256(project["README.md"])}$`, "m"))
    })
  )
  it.effect("shows no version for a directory", () =>
    Effect.gen(function* () {
      const [answer] = yield* (yield* shell(project)).json(["stat", "src"])
      assert.deepInclude(answer as object, { path: "src", kind: "directory", isDirectory: true })
      assert.notProperty(answer, "version")
    })
  )
})

describe("write", () => {
  it.effect("writes the value of --text, and prints the version of the file", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell({})
      const ran = yield* run(["write", "a/b.txt", "--text", "hello"])
      done(ran)
      assert.strictEqual(ran.out, `Wrote a/b.txt, 5 B\nversion ${sha256("hello")}\n`)
      assert.strictEqual(yield* Effect.orDie(fs.readString("a/b.txt")), "hello")
    })
  )
  it.effect("reads the content from standard input if --text is absent", () =>
    Effect.gen(function* () {
      const { fs, json } = yield* shell({})
      const answer = yield* json(["write", "in.bin"], { input: new Uint8Array([0, 255, 10]) })
      assert.deepInclude(answer[0] as object, { path: "in.bin", bytesWritten: 3, mode: "overwrite" })
      assert.deepStrictEqual([...(yield* Effect.orDie(fs.readBytes("in.bin"))).content], [0, 255, 10])
    })
  )
  it.effect("requires or forbids an existing file, as --mode says", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell({ f: "old" })
      const code = (mode: string, path: string) =>
        Effect.map(run(["write", path, "--text", "new", "--mode", mode]), (ran) => ran.code)
      assert.strictEqual(yield* code("create", "f"), 4)
      assert.strictEqual(yield* code("replace", "nope"), 3)
      assert.strictEqual(yield* code("append-existing", "nope"), 3)
      assert.strictEqual(yield* code("append", "f"), 0)
      assert.strictEqual(yield* Effect.orDie(fs.readString("f")), "oldnew")
      assert.strictEqual(yield* code("nonsense", "f"), 2)
    })
  )
  it.effect("fails with --if-match if the version differs, and with --if-match none if the file exists", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell({ f: "old" })
      const write = (version: string) => run(["write", "f", "--text", "new", "--if-match", version])
      const conflict = yield* write(sha256("something else"))
      assert.strictEqual(conflict.code, 6)
      assert.include(conflict.err, `--if-match ${sha256("old")}`)
      assert.strictEqual((yield* write("none")).code, 6)
      assert.strictEqual(yield* Effect.orDie(fs.readString("f")), "old")
      done(yield* write(sha256("old")))
      assert.strictEqual(yield* Effect.orDie(fs.readString("f")), "new")
    })
  )
  it.effect("fails with --no-parents when the directory is missing", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell({})
      assert.strictEqual((yield* run(["write", "a/b", "--text", "x", "--no-parents"])).code, 3)
      assert.isFalse(yield* Effect.orDie(fs.exists("a")))
    })
  )
  it.effect("keeps the old content when it is interrupted while reading input", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell({ f: "old" })
      const input = Stream.concat(Stream.make(new Uint8Array([1, 2, 3])), Stream.never)
      const fiber = yield* Effect.forkChild(run(["write", "f"], { input }), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(yield* Effect.orDie(fs.readString("f")), "old")
    })
  )
})

describe("edit", () => {
  it.effect("prints only the diff to standard output", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell(project)
      const ran = yield* run(["edit", "src/main.ts", "--old", "a = 1", "--new", "a = 3"])
      done(ran)
      assert.match(
        ran.out,
        /^--- .*\n\+\+\+ .*\n@@ -1,3 \+1,3 @@\n-const a = 1\n\+const a = 3\n const b = 2\n \/\/ TODO later\n$/
      )
      assert.include(ran.err, "1 replacement in src/main.ts")
      assert.include(yield* Effect.orDie(fs.readString("src/main.ts")), "a = 3")
    })
  )
  it.effect("changes nothing with --dry-run", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell(project)
      const ran = yield* run(["edit", "README.md", "--old", "Title", "--new", "Other", "--dry-run"])
      assert.include(ran.out, "+# Other")
      assert.strictEqual(yield* Effect.orDie(fs.readString("README.md")), project["README.md"])
    })
  )
  it.effect("refuses a text that occurs several times, unless --first or --all is given", () =>
    Effect.gen(function* () {
      const { fs, json, run } = yield* shell({ f: "x x x\n" })
      const refused = yield* run(["edit", "f", "--old", "x", "--new", "y"])
      assert.strictEqual(refused.code, 2)
      assert.include(refused.err, "--all")
      yield* run(["edit", "f", "--old", "x", "--new", "y", "--first"])
      assert.strictEqual(yield* Effect.orDie(fs.readString("f")), "y x x\n")
      const [answer] = yield* json(["edit", "f", "--old", "x", "--new", "y", "--all"])
      assert.deepInclude(answer as object, { path: "f", replacements: 2 })
      assert.strictEqual((yield* run(["edit", "f", "--old", "x", "--new", "y", "--first", "--all"])).code, 2)
    })
  )
  it.effect("accepts texts that begin with a dash", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell({ f: "- item\n" })
      done(yield* run(["edit", "f", "--old", "- item", "--new", "-x"]))
      assert.strictEqual(yield* Effect.orDie(fs.readString("f")), "-x\n")
    })
  )
  it.effect("fails with --if-match when the version differs", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ f: "x" })
      assert.strictEqual((yield* run(["edit", "f", "--old", "x", "--new", "y", "--if-match", sha256("z")])).code, 6)
    })
  )
})

describe("rm", () => {
  it.effect("removes files, and directories with -r", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell(project)
      assert.strictEqual((yield* run(["rm", "src"])).code, 7)
      const ran = yield* run(["rm", "-r", "src", "README.md"])
      done(ran)
      assert.strictEqual(ran.out, "Removed src, 2 files and 2 directories\nRemoved README.md\n")
      assert.isFalse(yield* Effect.orDie(fs.exists("src")))
    })
  )
  it.effect("accepts a missing path with --missing-ok", () =>
    Effect.gen(function* () {
      const { json, run } = yield* shell({})
      assert.strictEqual((yield* run(["rm", "nope"])).code, 3)
      assert.deepStrictEqual(yield* json(["rm", "nope", "--missing-ok"]), [{ deleted: 0, directories: 0 }])
    })
  )
  it.effect("never removes the root", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* (yield* shell(project)).run(["rm", "-r", "."])).code, 5)
    })
  )
})

describe("mkdir", () => {
  it.effect("creates missing directories and accepts existing directories", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell({})
      done(yield* run(["mkdir", "a/b", "c"]))
      done(yield* run(["mkdir", "a/b"]))
      assert.isTrue((yield* Effect.orDie(fs.stat("a/b"))).isDirectory)
      assert.strictEqual((yield* run(["mkdir", "a/b", "--no-exist-ok"])).code, 4)
      assert.strictEqual((yield* run(["mkdir", "x/y", "--no-parents"])).code, 3)
    })
  )
})

describe("cp and mv", () => {
  it.effect("copy a tree, and copy into a directory whose name ends with a slash", () =>
    Effect.gen(function* () {
      const { fs, json, run } = yield* shell(project)
      assert.deepStrictEqual(yield* json(["cp", "src", "copy"]), [{ files: 2, directories: 2, bytes: 62 }])
      done(yield* run(["cp", "README.md", "empty/"]))
      assert.strictEqual(yield* Effect.orDie(fs.readString("empty/README.md")), project["README.md"])
    })
  )
  it.effect("move a file, and replace a file only with --overwrite", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell({ a: "a", b: "b" })
      const refused = yield* run(["mv", "a", "b"])
      assert.strictEqual(refused.code, 4)
      assert.include(refused.err, "--overwrite")
      done(yield* run(["mv", "a", "b", "--overwrite"]))
      assert.strictEqual(yield* Effect.orDie(fs.readString("b")), "a")
      assert.isFalse(yield* Effect.orDie(fs.exists("a")))
    })
  )
})

describe("glob", () => {
  it.effect("prints each match once with --json, and exits with status 1 if nothing matches", () =>
    Effect.gen(function* () {
      const { run } = yield* shell(project)
      const ran = yield* run(["glob", "*.ts", "--json"])
      assert.deepStrictEqual([ran.code, ran.out.trimEnd().split("\n").length], [0, 2])
      assert.strictEqual((yield* run(["glob", "*.py", "--json"])).code, 1)
    })
  )
  it.effect("prints paths in order", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell(project)).run(["glob", "*.ts", "README.md"])
      done(ran)
      assert.strictEqual(ran.out, "README.md\nsrc/lib/util.ts\nsrc/main.ts\n")
    })
  )
  it.effect("prints nothing and exits with status 1 when nothing matches", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell(project)).run(["glob", "*.py"])
      assert.deepStrictEqual([ran.code, ran.out, ran.err], [1, "", ""])
    })
  )
  it.effect("filters by --kinds, --exclude and --path, adds sizes with --long, and refuses an unknown kind", () =>
    Effect.gen(function* () {
      const { json, run } = yield* shell(project)
      assert.strictEqual((yield* run(["glob", "*", "--kinds", "directory,symlink"])).out, "empty/\nlink\nsrc/\nsrc/lib/\n")
      assert.strictEqual((yield* run(["glob", "*.ts", "-x", "lib"])).out, "src/main.ts\n")
      assert.deepStrictEqual(yield* json(["glob", "*.ts", "--path", "src/lib", "--long"]), [
        { path: "src/lib/util.ts", kind: "file", isFile: true, sizeBytes: 24 }
      ])
      assert.strictEqual((yield* run(["glob", "*", "--kinds", "files"])).code, 2)
    })
  )
  it.effect("stops at --max, reports where to continue, and continues with --after", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ a: "", b: "", c: "" })
      const first = yield* run(["glob", "*", "--max", "2", "--json"])
      assert.strictEqual(first.out.trimEnd().split("\n").length, 2)
      const { next, truncated } = JSON.parse(first.err) as { next: string; truncated: boolean }
      assert.isTrue(truncated)
      assert.strictEqual((yield* run(["glob", "*", "--after", next])).out, "c\n")
    })
  )
})

describe("grep", () => {
  it.effect("prints path:line:text into a pipe", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell(project)).run(["grep", "TODO"])
      done(ran)
      assert.strictEqual(ran.out, "README.md:3:TODO: write\nsrc/main.ts:3:// TODO later\n")
    })
  )
  it.effect("groups matches by file on a terminal and ends with the count", () =>
    Effect.gen(function* () {
      const ran = yield* (yield* shell(project)).run(["grep", "TODO"], terminal)
      assert.strictEqual(ran.out, "README.md\n3:TODO: write\n\nsrc/main.ts\n3:// TODO later\n")
      assert.include(ran.err, "2 matches in 2 files")
    })
  )
  it.effect("highlights the match in colour", () =>
    Effect.gen(function* () {
      const { out } = yield* (yield* shell({ f: "a needle b\n" })).run(["grep", "needle"], { ...terminal, colors: true })
      assert.include(out, "a \u001b[31m\u001b[1mneedle\u001b[22m\u001b[39m b")
    })
  )
  it.effect("prints shared context lines of near matches once, and separates distant matches", () =>
    Effect.gen(function* () {
      const text = Array.from({ length: 12 }, (_, i) =>
        [2, 4, 5, 10].includes(i + 1) ? `hit ${i + 1}` : `line ${i + 1}`
      ).join("\n")
      const { run } = yield* shell({ f: `${text}\n` })
      // The output of GNU grep -n -C1 for the same file.
      assert.strictEqual(
        (yield* run(["grep", "hit", "-C1"])).out,
        [
          "f-1-line 1",
          "f:2:hit 2",
          "f-3-line 3",
          "f:4:hit 4",
          "f:5:hit 5",
          "f-6-line 6",
          "--",
          "f-9-line 9",
          "f:10:hit 10",
          "f-11-line 11",
          ""
        ].join("\n")
      )
    })
  )
  it.effect("filters with -i, -F, -w, globs and a path", () =>
    Effect.gen(function* () {
      const { run } = yield* shell(project)
      const out = (...args: ReadonlyArray<string>) => Effect.map(run(["grep", ...args]), (ran) => ran.out)
      assert.strictEqual((yield* out("-i", "todo", "src")).split("\n").length, 3)
      assert.strictEqual(yield* out("todo", "--glob", "*.ts"), "src/lib/util.ts:1:export const x = 'todo'\n")
      assert.strictEqual(yield* out("-F", "'todo'"), "src/lib/util.ts:1:export const x = 'todo'\n")
      assert.strictEqual(yield* out("-w", "a"), "src/main.ts:1:const a = 1\n")
      assert.strictEqual(yield* out("-i", "1", "src/main.ts"), "src/main.ts:1:const a = 1\n")
    })
  )
  it.effect("prints one line per file with --count and --files", () =>
    Effect.gen(function* () {
      const { json, run } = yield* shell(project)
      assert.strictEqual((yield* run(["grep", "const", "--count"])).out, "src/lib/util.ts:1\nsrc/main.ts:2\n")
      assert.strictEqual((yield* run(["grep", "const", "-l"])).out, "src/lib/util.ts\nsrc/main.ts\n")
      assert.deepStrictEqual(yield* json(["grep", "const", "-c"]), [
        { path: "src/lib/util.ts", matches: 1 },
        { path: "src/main.ts", matches: 2 }
      ])
    })
  )
  it.effect("reports skipped files, and exits with status 1 if nothing matches", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ bin: new Uint8Array([0, 104, 105]), f: "text" })
      const ran = yield* run(["grep", "hi"])
      assert.deepStrictEqual([ran.code, ran.out], [1, ""])
      assert.include(ran.err, "1 binary")
    })
  )
  it.effect("prints one JSON match per line with --json", () =>
    Effect.gen(function* () {
      const [match] = yield* (yield* shell(project)).json(["grep", "b = "])
      assert.deepStrictEqual(match, {
        path: "src/main.ts",
        lineNumber: 2,
        lineContent: "const b = 2",
        matchStart: 6,
        matchEnd: 10
      })
    })
  )
  it.effect("stops at --max and continues with --after", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ f: "x\nx\nx\n" })
      const first = yield* run(["grep", "x", "--max", "1", "--json"])
      const { next } = JSON.parse(first.err) as { next: string }
      assert.strictEqual((yield* run(["grep", "x", "--after", next])).out, "f:2:x\nf:3:x\n")
    })
  )
  it.effect("escapes control characters on a terminal", () =>
    Effect.gen(function* () {
      const { out } = yield* (yield* shell({ f: "x\u001b]0;title\u0007\n" })).run(["grep", "x"], terminal)
      assert.strictEqual(out, "f\n1:x\\x1b]0;title\\x07\n")
    })
  )
  it.effect("cuts a long line on a terminal to the part around its match", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ f: `${"a".repeat(5000)}needle${"b".repeat(5000)}\n` })
      const { out } = yield* run(["grep", "needle"], terminal)
      assert.isBelow(out.length, 400)
      assert.match(out, /…a+needleb+…/)
      assert.isAbove((yield* run(["grep", "needle"])).out.length, 10_000)
    })
  )
})

describe("--backend memory", () => {
  it.effect("works on a copy with links and empty directories, and leaves the original unchanged", () =>
    Effect.gen(function* () {
      const { fs, json, run } = yield* shell(project)
      const names = (items: ReadonlyArray<unknown>) => items.map((item) => (item as { path: string; kind: string }).kind)
      assert.deepStrictEqual(names(yield* json(["ls", "--backend", "memory"])), [
        "file",
        "directory",
        "file",
        "symlink",
        "directory"
      ])
      done(yield* run(["rm", "-r", "src", "--backend", "memory"]))
      assert.isTrue(yield* Effect.orDie(fs.exists("src/main.ts")))
    })
  )
})

describe("progress", () => {
  it.effect("is shown on a terminal after a second, and removed at the end", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({})
      const statuses: Array<string> = []
      const isReading = yield* Deferred.make<void>()
      const pause = Effect.andThen(Deferred.succeed(isReading, undefined), Effect.sleep("3 seconds"))
      const input = Stream.concat(Stream.fromEffectDrain(pause), Stream.make(new Uint8Array([1])))
      const fiber = yield* Effect.forkChild(run(["write", "f"], { input, showsProgress: true, statuses }))
      // The command opens the root in real time. The test clock must not move before.
      yield* Deferred.await(isReading)
      yield* TestClock.adjust("900 millis")
      assert.deepStrictEqual(statuses, [])
      yield* TestClock.adjust("2200 millis")
      done(yield* Fiber.join(fiber))
      assert.strictEqual(statuses[0], "Writing f · 1.0 s")
      assert.strictEqual(statuses.at(-1), "")
    })
  )
})
