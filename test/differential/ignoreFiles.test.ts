/** Compares ignore rules on a host where workers read with git, and for trees with .ignore files with ripgrep. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { git, hasGit, names, ripgreps, same, saysNoGit, saysNoRipgrep } from "./engines.ts"
import { growIgnoring, type Tree } from "./ignoreTrees.ts"
import { pick, random } from "./trees.ts"

saysNoGit("ignore files beside git")
saysNoRipgrep("ignore files beside ripgrep")

const everything = Number.POSITIVE_INFINITY

const open = (root: string) => Effect.map(Effect.orDie(PosixHost.make({ root })), make)

/** Sorts by code point. A directory sorts as its name with "/" at the end. */
const inOrder = (files: ReadonlyArray<string>, directories: ReadonlyArray<string>): Array<string> =>
  [...files.map((path) => [path, path] as const), ...directories.map((path) => [path, `${path}/`] as const)]
    .sort(([, one], [, two]) => Buffer.compare(Buffer.from(one), Buffer.from(two)))
    .map(([path]) => path)

const walked = (fs: Algebra, path = ".") =>
  Effect.map(Stream.runCollect(fs.walk(path, { gitignore: true })), (all) => all.map((entry) => entry.path as string))

const globbed = (fs: Algebra, path?: string) =>
  Effect.map(fs.glob("**", { gitignore: true, maxMatches: everything, path }), ({ matches }) =>
    matches.map((match) => match.path as string)
  )

/** Returns the paths that git ignores in a tree without tracked files. */
const ignoredByGit = (root: string, { directories, files }: Tree): Set<string> => {
  const all = [...directories, ...files].map((path) => `${path}\0`).join("")
  return new Set(names(git(root, ["check-ignore", "--stdin", "-z", "--no-index"], all)))
}

const both = [".gitignore", ".ignore"]

const filesOfRipgrep = [
  "--files",
  "--null",
  "--hidden",
  "--no-ignore-global",
  "--no-ignore-parent",
  "--no-ignore-exclude"
].concat(
  // Use .gitignore files without a repository too.
  ["--no-require-git", "-g", "!.git"]
)

describe.runIf(hasGit)("a walk and a glob with .gitignore files at many levels", () => {
  for (const seed of [1, 3, 7, 9, 13, 14, 15, 16]) {
    it.live(`return the entries that git does not ignore, in order and below any directory, tree ${seed}`, () =>
      Effect.gen(function* () {
        const root = yield* fastDirectory
        const next = random(seed)
        const tree = growIgnoring(root, next, "git", [".gitignore"])
        git(root, ["init", "--quiet"])
        const ignored = ignoredByGit(root, tree)
        const files = tree.files.filter((path) => !ignored.has(path))
        const directories = tree.directories.filter((path) => !ignored.has(path))
        // Too few entries would prove little, and workers read only from 128 directories on.
        assert.isAbove(directories.length, 250)
        assert.isAbove(ignored.size, 250)
        const listed = names(git(root, ["ls-files", "--cached", "--others", "--exclude-standard", "-z"]))
        same(listed.sort(), files.toSorted(), "git agrees with itself")
        const fs = yield* open(root)
        same(yield* walked(fs), inOrder(files, directories), "walk")
        same(yield* globbed(fs), inOrder(files, []), "glob")
        for (let i = 0; i < 12; i++) {
          const base = pick(next, tree.directories)
          const inside = files.filter((path) => path.startsWith(`${base}/`))
          same(yield* globbed(fs, base), inOrder(inside, []), base)
        }
      }).pipe(Effect.scoped)
    )
  }
})

describe.each(ripgreps)("a glob with .gitignore and .ignore files at many levels", (rg) => {
  for (const seed of [1, 3, 5, 8, 10, 17]) {
    it.live(`returns the files of $name, tree ${seed}`, () =>
      Effect.gen(function* () {
        const root = yield* fastDirectory
        const next = random(seed)
        const tree = growIgnoring(root, next, "shared", pick(next, [[".ignore"], both, both]))
        mkdirSync(join(root, ".git"))
        writeFileSync(join(root, ".git", "config"), "")
        const theirs = names(rg.run(root, filesOfRipgrep))
        assert.isAbove(new Set(theirs.map((path) => dirname(path))).size, 128)
        assert.isAbove(tree.files.length - theirs.length, 250)
        const fs = yield* open(root)
        same(yield* globbed(fs), inOrder(theirs, []), rg.name)
      }).pipe(Effect.scoped)
    )
  }
})

/**
 * The rules that ripgrep 13 to 15 reads differently from git. This library follows git, and the comparison with ripgrep omits
 * these rules. The issues are those of BurntSushi/ripgrep.
 */
const departures: ReadonlyArray<readonly [why: string, rules: ReadonlyArray<string>]> = [
  [
    "braces are text (#1221: in ripgrep they are alternatives, and a single brace is an error)",
    ["{a,b}", "{a,b}*", "{a", "a}", "{}"]
  ],
  ["a set never matches a slash (#2745: in ripgrep it can)", ["d[!x]a", "d[^x]a", "*[!x]a", "d[!x]*", "d[+-9]a", "d[/]a"]],
  [
    "a set can contain classes such as [:alpha:] (#2962: not in ripgrep)",
    ["[[:alpha:]]", "[[:digit:]]", "[[:alpha:][:digit:]]", "[[:foo:]]"]
  ],
  [
    "a backslash escapes the next character of a set (in ripgrep the backslash is in the set)",
    ["[\\]]", "[a\\]", "[a-\\z]", "[\\a]"]
  ],
  ["a range may be reversed or follow another range (in ripgrep: an error, or two ranges)", ["[z-a]", "[a-c-e]", "[--a]"]],
  ["an unclosed set matches nothing (in ripgrep 15 it is text)", ["[a", "[", "[]", "[!]"]],
  ["only unescaped spaces are removed at the end of a rule (#3477)", ["a\t", "a \t", "a\\ ", "a\\  ", "a\\  \r", "a\u00a0"]],
  ["a backslash at the end matches nothing (#2236: in ripgrep it is an error)", ["a\\", "\\"]],
  ["a segment of three stars is a globstar (in ripgrep it is a single star)", ["d/***/a", "***/a", "d/***"]],
  ["a byte order mark is not part of the first rule (in ripgrep 13 it is)", ["\ufeffa"]],
  // Ripgrep compares the text before the first special character separately, so its globstar counts as a segment.
  ["a globstar right after text crosses slashes", ["foo**/bar", "foo**/f", "d**/a", "d**"]]
]

const named = [
  "a",
  "b",
  "A",
  "ab",
  "{a,b}",
  "{a,b}x",
  "{a",
  "a}",
  "{}",
  "1",
  "z",
  "-",
  "e",
  "]",
  "a]",
  "a\\",
  "\\",
  "a ",
  "a  ",
  "a\u00a0",
  "[a",
  "[",
  "d/a",
  "d/ab",
  "d/]",
  "d/x/a",
  "d-a",
  "d+a",
  "dxa",
  "foobar",
  "foo/bar/f",
  "foo1/2/bar",
  "foo/x/bar",
  "\ufeffa",
  "é"
]

describe.runIf(hasGit)("where git and ripgrep differ, ignore rules follow git:", () => {
  for (const [why, rules] of departures) {
    it.live(why, () =>
      Effect.gen(function* () {
        const root = yield* fastDirectory
        for (const path of named) {
          mkdirSync(join(root, dirname(path)), { recursive: true })
          writeFileSync(join(root, path), "")
        }
        git(root, ["init", "--quiet"])
        const fs = yield* open(root)
        for (const rule of rules) {
          writeFileSync(join(root, ".gitignore"), `${rule}\n`)
          const theirs = names(git(root, ["ls-files", "--others", "--exclude-standard", "-z"]))
          assert.deepStrictEqual(yield* globbed(fs), inOrder(theirs, []), JSON.stringify(rule))
        }
      }).pipe(Effect.scoped)
    )
  }

  it.live("rules in .git/info/exclude or of the user, which lie outside of the tree, have no effect", () =>
    Effect.gen(function* () {
      const root = yield* fastDirectory
      writeFileSync(join(root, "a"), "")
      git(root, ["init", "--quiet"])
      writeFileSync(join(root, ".git", "info", "exclude"), "a\n")
      assert.deepStrictEqual(names(git(root, ["ls-files", "--others", "--exclude-standard", "-z"])), [])
      const fs = yield* open(root)
      assert.deepStrictEqual(yield* globbed(fs), ["a"])
    }).pipe(Effect.scoped)
  )
})
