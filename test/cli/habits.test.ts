/** Tests flags and words that users know from ls, grep, cp and other shell tools. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { done, shell } from "./terminal.ts"

const tree = {
  "a.txt": "one needle\n",
  "b.txt": "two\n",
  ".hidden": "needle\n",
  dir: { "c.txt": "a needle\n", deep: { "d.txt": "needle\n" } },
  empty: {},
  link: { link: "empty" },
  dangling: { link: "nowhere" }
}

const ran = (args: ReadonlyArray<string>, options?: { readonly isTerminal?: boolean }) =>
  Effect.flatMap(shell(tree), ({ run }) => run(args, options))
const out = (...args: ReadonlyArray<string>) => Effect.map(ran(args), (ran) => ran.out)
describe("a flag of another tool", () => {
  it.effect.each([
    ["ls -la", "ls --long"],
    ["ls -lah dir", "ls --long dir"],
    ["ls dir -a -1", "ls dir"],
    ["ls -h", "ls"],
    ["ls -l -h dir", "ls --long dir"],
    ["tree -h dir", "tree dir"],
    ["tree -a -L 1", "tree --depth 1"],
    ["tree -L1 dir", "tree dir --depth 1"],
    ["grep -rn needle", "grep needle"],
    ["grep -rniE NEEDLE dir", "grep --ignore-case NEEDLE dir"],
    ["grep -R needle --include=*.txt .", "grep needle --glob *.txt"],
    ["grep needle -m1", "grep needle --max 1"],
    ["glob * -m 2", "glob * --max 2"],
    ["cat -n a.txt", "cat --number a.txt"],
    ["mkdir -p x/y", "mkdir x/y"],
    ["mkdir -pv dir x", "mkdir dir x"],
    ["rm -rf dir missing", "rm --recursive --missing-ok dir missing"],
    ["rm -Rfv dir", "rm --recursive --missing-ok dir"],
    ["cp -r dir copy", "cp dir copy"],
    ["cp -Rfv a.txt b.txt", "cp --overwrite a.txt b.txt"],
    ["mv -f a.txt b.txt", "mv --overwrite a.txt b.txt"]
  ] as const)("in %j has the effect of %j", ([typed, ours]) =>
    Effect.gen(function* () {
      const [theirs, expected] = [yield* ran(typed.split(" ")), yield* ran(ours.split(" "))]
      assert.deepStrictEqual(theirs, expected)
      assert.notStrictEqual(expected.code, 2, expected.err)
      assert.notStrictEqual(expected.out, "")
    })
  )
  it.effect("that would change the matches is refused", () =>
    Effect.gen(function* () {
      const inverted = yield* ran(["grep", "-v", "needle"])
      assert.deepStrictEqual([inverted.code, inverted.out], [2, ""])
      assert.include(inverted.err, "--invert-match")
      for (const nameless of [
        ["grep", "-h", "needle"],
        ["grep", "-nh", "needle", "dir"]
      ]) {
        const { code, err, out } = yield* ran(nameless)
        assert.deepStrictEqual([code, out], [2, ""])
        assert.include(err, "--no-filename")
      }
    })
  )
  it.effect("after -- is treated as a path", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ "-rf": "x\n", dir: {} })
      assert.strictEqual((yield* run(["rm", "--", "-rf"])).out, "Removed -rf\n")
      assert.strictEqual((yield* run(["ls"])).out, "dir/\n")
      assert.strictEqual((yield* run(["grep", "-n", "--", "-x", "-v"])).code, 3)
    })
  )
})

describe("help", () => {
  it.effect("is printed for the word `help` as for `--help`", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* out("help"), yield* out("--help"))
      assert.strictEqual(yield* out("help", "grep"), yield* out("grep", "--help"))
      assert.strictEqual(yield* out("help", "journal", "verify"), yield* out("journal", "verify", "--help"))
      assert.strictEqual(yield* out("journal", "help"), yield* out("journal", "--help"))
    })
  )
  it.effect("is printed for -h, unless -h has another meaning in the tool of the same name", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* out("-h"), yield* out("--help"))
      for (const command of ["cat", "stat", "glob", "write", "mkdir", "cp", "mv", "rm", "restore", "journal", "exec"]) {
        assert.strictEqual(yield* out(command, "-h"), yield* out(command, "--help"))
      }
    })
  )
  it.effect("for a command of another tool names our command", () =>
    Effect.gen(function* () {
      for (const [typed, ours] of [
        ["head", "cat --lines"],
        ["find", "glob"],
        ["rg", "grep"],
        ["touch", "write"]
      ] as const) {
        const { code, err } = yield* ran([typed, "x"])
        assert.strictEqual(code, 2)
        assert.match(err, new RegExp(`^hint: {2}.*fs-algebra ${ours}`, "m"), typed)
      }
    })
  )
})

describe("a mistake", () => {
  it.effect("in the name of a command is reported once, even if flags follow", () =>
    Effect.gen(function* () {
      const { err } = yield* ran(["find", "dir", "-name", "*.txt"])
      assert.deepStrictEqual(err.match(/^error: .*/gm), ['error: Unknown subcommand "find" for "fs-algebra"'])
    })
  )
  it.effect("of a directory for a command gets a command with --root as hint", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["/usr"])
      assert.strictEqual(code, 2)
      assert.match(err, /^hint: {2}Try fs-algebra ls --root \/usr, or see fs-algebra --help$/m)
      for (const word of ["/etc/passwd", "", " "]) assert.notInclude((yield* ran([word])).err, "ls --root")
    })
  )
  it.effect("in a one-letter flag gets no suggestion of another letter", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["grep", "-o", "needle"])
      assert.strictEqual(code, 2)
      assert.match(err, /^error: Unrecognized flag: -o in command fs-algebra grep\nusage: /)
    })
  )
})

describe("--color", () => {
  const colors = /\u001b\[/
  it.effect("colours output into a pipe, and `never` switches colours off", () =>
    Effect.gen(function* () {
      assert.match(yield* out("ls", "--color"), colors)
      assert.match(yield* out("ls", "--color=always"), colors)
      assert.match(yield* out("--color", "always", "ls"), colors)
      assert.notMatch(yield* out("ls", "--color=auto"), colors)
      const { run } = yield* shell(tree)
      const terminal = { isTerminal: true, colors: true, errorColors: true }
      assert.match((yield* run(["ls"], terminal)).out, colors)
      for (const none of ["--color=never", "--no-color"]) {
        assert.notMatch((yield* run(["ls", none], terminal)).out, colors)
        assert.notMatch((yield* run(["ls", "missing", none], terminal)).err, colors)
        assert.notMatch((yield* run(["ls", "--lnog", none], terminal)).err, colors)
      }
    })
  )
  it.effect("does not take the next path as its value", () =>
    Effect.gen(function* () {
      assert.include(yield* out("ls", "--color", "dir"), "c.txt")
      assert.strictEqual((yield* ran(["ls", "--color=purple"])).code, 2)
    })
  )
  it.effect("after -- is treated as a path", () =>
    Effect.gen(function* () {
      assert.notMatch((yield* ran(["cat", "a.txt", "--", "--color"])).err, colors)
    })
  )
})

describe("grep with several paths", () => {
  it.effect("searches each file once, in the order of paths", () =>
    Effect.gen(function* () {
      const expected = "a.txt:1:one needle\ndir/c.txt:1:a needle\ndir/deep/d.txt:1:needle\n"
      assert.strictEqual(yield* out("grep", "needle", "dir", "a.txt"), expected)
      assert.strictEqual(yield* out("grep", "needle", "dir/deep", "a.txt", "dir", "dir/", "./a.txt"), expected)
      assert.strictEqual(yield* out("grep", "needle", "a.txt", "."), yield* out("grep", "needle"))
    })
  )
  it.effect("continues after a missing path, and exits with the code for the missing path", () =>
    Effect.gen(function* () {
      const { code, err, out } = yield* ran(["grep", "needle", "a.txt", "drr", "dir/c.txt"])
      assert.strictEqual(out, "a.txt:1:one needle\ndir/c.txt:1:a needle\n")
      assert.strictEqual(code, 3)
      assert.match(err, /^error: grep "drr": there is no such file or directory\nhint: {2}Did you mean dir\?\n/)
    })
  )
  it.effect("exits with code 1 only if no path has a match", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ran(["grep", "needle", "b.txt", "a.txt"])).code, 0)
      assert.strictEqual((yield* ran(["grep", "needle", "b.txt", "empty"])).code, 1)
      assert.strictEqual((yield* ran(["grep", "(", "b.txt", "a.txt"])).code, 2)
    })
  )
  it.effect("applies --max to all paths together, and continues in the next path with --after", () =>
    Effect.gen(function* () {
      const paths = ["dir", "a.txt"]
      const first = yield* ran(["grep", "needle", ...paths, "--max", "1", "--json"])
      const { next } = JSON.parse(first.err) as { next: string }
      const rest = yield* ran(["grep", "needle", ...paths, "--max", "5", "--after", next])
      assert.deepStrictEqual(
        [first.out.match(/"path":"(.*?)"/)![1], rest.out],
        ["a.txt", "dir/c.txt:1:a needle\ndir/deep/d.txt:1:needle\n"]
      )
      assert.strictEqual(rest.err, "")
      const whole = yield* ran(["grep", "needle", ...paths, "--max", "3"])
      assert.strictEqual(whole.err, "")
      const part = yield* ran(["grep", "needle", ...paths, "--max", "2"])
      assert.include(part.err, "there are more results than --max allows")
    })
  )
  it.effect("counts and groups matches as for one path", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* out("grep", "-c", "needle", "dir", "a.txt"), "a.txt:1\ndir/c.txt:1\ndir/deep/d.txt:1\n")
      const grouped = yield* ran(["grep", "needle", "a.txt", "dir/c.txt"], { isTerminal: true })
      assert.strictEqual(grouped.out, "a.txt\n1:one needle\n\ndir/c.txt\n1:a needle\n")
      assert.include(grouped.err, "2 matches in 2 files")
    })
  )
  it.effect("explains that \\| is not an alternation if nothing matches", () =>
    Effect.gen(function* () {
      const { code, err } = yield* ran(["grep", String.raw`one\|two`])
      assert.strictEqual(code, 1)
      assert.include(err, "one|two")
      assert.strictEqual((yield* ran(["grep", "-F", String.raw`one\|two`])).err, "")
    })
  )
})

describe("ls with several paths", () => {
  it.effect("lists files first, then each directory under its name", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* out("ls", "a.txt"), "a.txt\n")
      assert.strictEqual(yield* out("ls", "dir", "a.txt", "empty"), "a.txt\n\ndir:\nc.txt\ndeep/\n\nempty:\n")
      assert.strictEqual(yield* out("ls", "dir/c.txt", "b.txt"), "b.txt\ndir/c.txt\n")
    })
  )
  it.effect("continues after a missing path", () =>
    Effect.gen(function* () {
      const { code, out } = yield* ran(["ls", "nope", "a.txt"])
      assert.deepStrictEqual([code, out], [3, "a.txt\n"])
    })
  )
})

describe("cp and mv to a directory", () => {
  it.effect("put a file into the directory, even through a link", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell(tree)
      const copied = yield* run(["cp", "a.txt", "empty"])
      assert.strictEqual(copied.out, "Copied a.txt to empty/a.txt, 1 file, 11 B\n")
      done(yield* run(["cp", "b.txt", "link"]))
      assert.strictEqual(yield* Effect.orDie(fs.readString("empty/b.txt")), "two\n")
      done(yield* run(["mv", "a.txt", "dir"]))
      assert.isTrue(yield* Effect.orDie(fs.exists("dir/a.txt")))
      assert.isFalse(yield* Effect.orDie(fs.exists("a.txt")))
    })
  )
  it.effect("copy a directory into the target, or create the target if it does not exist", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell(tree)
      done(yield* run(["cp", "-r", "dir", "empty"]))
      assert.isTrue(yield* Effect.orDie(fs.exists("empty/dir/deep/d.txt")))
      done(yield* run(["cp", "-r", "dir", "fresh"]))
      assert.isTrue(yield* Effect.orDie(fs.exists("fresh/deep/d.txt")))
      done(yield* run(["mv", "dir/deep", "."]))
      assert.isTrue(yield* Effect.orDie(fs.exists("deep/d.txt")))
    })
  )
  it.effect("never merge with a directory of the same name, nor replace a directory by a file", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell({ dir: { old: "" }, to: { dir: { kept: "" } }, file: "", into: { file: { kept: "" } } })
      for (const args of [
        ["cp", "-r", "dir", "to"],
        ["mv", "dir", "to"],
        ["cp", "file", "into"]
      ]) {
        assert.strictEqual((yield* run(args)).code, 4, args.join(" "))
        assert.strictEqual((yield* run([...args, "-f"])).code, 7, args.join(" "))
      }
      assert.isTrue(yield* Effect.orDie(fs.exists("to/dir/kept")))
      assert.isFalse(yield* Effect.orDie(fs.exists("to/dir/old")))
      assert.isTrue(yield* Effect.orDie(fs.exists("into/file/kept")))
    })
  )
  it.effect("refuse to copy a file onto itself, and refuse a dangling link as target", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ran(["cp", "a.txt", "."])).code, 2)
      assert.strictEqual((yield* ran(["mv", "dir", "dir"])).code, 2)
      assert.strictEqual((yield* ran(["cp", "a.txt", "dangling"])).code, 4)
    })
  )
  it.effect("accept several sources, one after another", () =>
    Effect.gen(function* () {
      const { fs, run } = yield* shell(tree)
      const ran = yield* run(["mv", "a.txt", "nope", "dir", "b.txt", "empty"])
      assert.strictEqual(ran.code, 3)
      assert.strictEqual(
        ran.out,
        "Moved a.txt to empty/a.txt, 1 file, 11 B\nMoved dir to empty/dir, 2 files, 2 directories, 16 B\nMoved b.txt to empty/b.txt, 1 file, 4 B\n"
      )
      assert.isTrue(yield* Effect.orDie(fs.exists("empty/dir/deep/d.txt")))
      done(yield* run(["cp", "empty/a.txt", "empty/b.txt", "made/"]))
      assert.isTrue(yield* Effect.orDie(fs.exists("made/b.txt")))
    })
  )
  it.effect.each([
    [["cp", "a.txt", "b.txt", "missing"], 3, /"missing": there is no such directory\nhint: {2}.*missing\//],
    [["cp", "a.txt", "b.txt", ".hidden"], 7, /".hidden": .*directory/],
    [["mv", "dir/c.txt", "dir/deep/../c.txt", "empty", "-f"], 2, /same destination "empty\/c\.txt"/],
    [["cp", "a.txt"], 2, /at least 2/]
  ] as const)("for %j change nothing and report the reason", ([args, code, said]) =>
    Effect.gen(function* () {
      const { json, run } = yield* shell(tree)
      const before = yield* json(["glob", "*"])
      const ran = yield* run(args)
      assert.strictEqual(ran.code, code, ran.err)
      assert.strictEqual(ran.out, "")
      assert.match(ran.err, said)
      assert.deepStrictEqual(yield* json(["glob", "*"]), before)
    })
  )
})
