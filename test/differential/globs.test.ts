/**
 * Compares globs on a host, where workers read and directories are pruned, with picomatch over all paths. Also compares them
 * with ripgrep and git, for patterns that these programs read in the same way.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import picomatch from "picomatch"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, type GlobOptions, make } from "../../src/filesystem/Filesystem.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { git, hasGit, names, ripgreps, same, saysNoGit, saysNoRipgrep } from "./engines.ts"
import { type Dialect, globOf } from "./globPatterns.ts"
import { growIgnoring, type Tree } from "./ignoreTrees.ts"
import { pick, random } from "./trees.ts"

saysNoGit("globs beside git")
saysNoRipgrep("globs beside ripgrep")

const planted = (seed: number) =>
  Effect.gen(function* () {
    const root = yield* fastDirectory
    const next = random(seed)
    const tree = growIgnoring(root, next, "git", [], { directories: 400, files: 1200 })
    const fs = make(yield* Effect.orDie(PosixHost.make({ root })))
    return { fs, next, root, tree }
  })

/** Sorts by code point. A directory sorts as its name with "/" at the end. */
const inOrder = (paths: ReadonlyArray<string>, isDirectory: (path: string) => boolean = () => false): Array<string> =>
  paths
    .map((path) => [path, Buffer.from(isDirectory(path) ? `${path}/` : path)] as const)
    .sort(([, one], [, two]) => Buffer.compare(one, two))
    .map(([path]) => path)

const globbed = (fs: Algebra, pattern: string | ReadonlyArray<string>, options: GlobOptions = {}) =>
  Effect.map(fs.glob(pattern, { maxMatches: Number.POSITIVE_INFINITY, ...options }), ({ matches }) =>
    matches.map(({ path }) => path as string)
  )

const options = { dot: true, posix: true, regex: false, nonegate: true, strictSlashes: true } as const

/** Returns the specified meaning of a glob, from the rules and picomatch alone, for paths relative to the base. */
const meaning = (glob: string): ((path: string, isDirectory: boolean) => boolean) => {
  const text = glob.replace(/^(?:\.?\/)+/, "").replace(/\/$/, "")
  const matches = picomatch(text, options)
  const isAnchored = text.includes("/") || /^\.?\//.test(glob)
  return (path, isDirectory) =>
    (isDirectory || !glob.endsWith("/")) && matches(isAnchored ? path : path.slice(path.lastIndexOf("/") + 1))
}

/** Returns the test of exclude rules. The last matching rule decides, and an excluded directory excludes all entries in it. */
const leavesOut = (rules: ReadonlyArray<string>, isDirectory: (path: string) => boolean): ((path: string) => boolean) => {
  const read = rules.map((rule) => {
    const takesBack = rule.startsWith("!") && !rule.startsWith("!(")
    return { takesBack, matches: meaning(takesBack ? rule.slice(1) : rule) }
  })
  const known = new Map<string, boolean>()
  const isOut = (path: string): boolean => {
    const before = known.get(path)
    if (before !== undefined) return before
    const slash = path.lastIndexOf("/")
    const last = read.findLast(({ matches }) => matches(path, isDirectory(path)))
    const out = (slash !== -1 && isOut(path.slice(0, slash))) || (last !== undefined && !last.takesBack)
    known.set(path, out)
    return out
  }
  return isOut
}

const all = ({ directories, files }: Tree): ReadonlyArray<string> => [...directories, ...files]

const isRefused = (error: { readonly _tag: string }): boolean => error._tag === "InvalidArgument"

/** Returns the matches, or `undefined` for an invalid pattern. */
const answer = (fs: Algebra, pattern: string | ReadonlyArray<string>, options?: GlobOptions) =>
  Effect.catch(globbed(fs, pattern, options), (error) => (isRefused(error) ? Effect.succeed(undefined) : Effect.fail(error)))

const isSoak = process.env["FS_ALGEBRA_SOAK"] !== undefined

describe("glob returns the paths that picomatch matches", () => {
  for (const seed of isSoak ? [1, 2] : [1]) {
    it.live(`for one pattern, tree ${seed}`, () =>
      Effect.gen(function* () {
        const { fs, next, tree } = yield* planted(seed)
        const directories = new Set(tree.directories)
        const isDirectory = (path: string) => directories.has(path)
        let found = 0
        let refused = 0
        for (let i = 0; i < (isSoak ? 60 : 30); i++) {
          const pattern = globOf(next, all(tree), "picomatch")
          const matches = yield* answer(fs, pattern, { kinds: ["file", "directory"] })
          if (matches === undefined) {
            refused++
            continue
          }
          const matched = meaning(pattern)
          const expected = all(tree).filter((path) => matched(path, isDirectory(path)))
          same(matches, inOrder(expected, isDirectory), pattern)
          same(yield* globbed(fs, pattern), inOrder(expected.filter((path) => !isDirectory(path))), `files of ${pattern}`)
          if (expected.length > 0) found++
        }
        // Too few matches would prove little.
        assert.isAbove(found, isSoak ? 35 : 17)
        assert.isBelow(refused, 12)
      }).pipe(Effect.scoped)
    )

    it.live(`for several patterns below a base with exclude rules, tree ${seed}`, () =>
      Effect.gen(function* () {
        const { fs, next, tree } = yield* planted(seed + 10)
        const directories = new Set(tree.directories)
        let left = 0
        for (let i = 0; i < (isSoak ? 40 : 20); i++) {
          const base = next() < 0.5 ? "" : `${pick(next, tree.directories)}/`
          const below = (paths: ReadonlyArray<string>) =>
            paths.filter((path) => path.startsWith(base)).map((path) => path.slice(base.length))
          const inside = below(tree.files)
          if (inside.length === 0) continue
          const isDirectory = (path: string) => directories.has(base + path)
          const patterns = pick(next, [["**"], Array.from({ length: 3 }, () => globOf(next, inside, "picomatch"))])
          const exclude = Array.from({ length: 3 }, () => {
            const rule = globOf(next, below(all(tree)), "picomatch")
            return rule.startsWith("!") || next() < 0.6 ? rule : `!${rule}`
          })
          const matches = yield* answer(fs, patterns, { path: base === "" ? "." : base.slice(0, -1), exclude })
          if (matches === undefined) continue
          const isOut = leavesOut(exclude, isDirectory)
          const includes = patterns.map(meaning)
          const expected = inside.filter((path) => !isOut(path) && includes.some((matched) => matched(path, false)))
          assert.deepStrictEqual(
            matches,
            inOrder(expected.map((path) => base + path)),
            JSON.stringify({ base, patterns, exclude })
          )
          if (expected.length < inside.length && expected.length > 0) left++
        }
        assert.isAbove(left, isSoak ? 12 : 6)
      }).pipe(Effect.scoped)
    )
  }
})

/** Tests whether a path can be compared. `?` and a set match a UTF-16 unit in picomatch, and a byte in ripgrep and git. */
const isComparable = (pattern: string) => (path: string) => /^[\0-\x7f]*$/.test(path) || !/[?[]/.test(pattern)

/**
 * Tests whether both programs read the pattern alike. Without a wildcard git lists everything below a directory of that name.
 * For ripgrep a leading "#" is a comment, and trailing spaces are removed. For picomatch two backslashes match no name.
 */
const isShared = (pattern: string, dialect: Dialect): boolean =>
  !pattern.includes("\\\\") && (dialect === "git" ? /(?<!\\)[*?[]/.test(pattern) : !/^#| $/.test(pattern))

const beside = (
  seed: number,
  dialect: Dialect,
  count: number,
  theirs: (root: string, pattern: string) => Array<string>
): Effect.Effect<void, unknown> =>
  Effect.gen(function* () {
    const { fs, next, root, tree } = yield* planted(seed)
    let found = 0
    for (let i = 0; i < count; i++) {
      const pattern = globOf(next, tree.files, dialect)
      if (!isShared(pattern, dialect)) continue
      const expected = theirs(root, pattern).filter(isComparable(pattern))
      const ours = yield* globbed(fs, pattern, { exclude: "/.git" })
      same(ours.filter(isComparable(pattern)), inOrder(expected), pattern)
      if (expected.length > 0) found++
    }
    assert.isAbove(found, count / 3)
  }).pipe(Effect.scoped)

describe.each(ripgreps)("glob and $name", (rg) => {
  for (const seed of isSoak ? [21, 22] : [21]) {
    it.live(`find the same files for patterns with the same meaning in both, tree ${seed}`, () =>
      beside(seed, "ripgrep", isSoak ? 100 : 40, (root, pattern) =>
        names(rg.run(root, ["--files", "-uu", "--null", "-g", pattern]))
      )
    )
  }

  it.live("exclude the same files", () =>
    Effect.gen(function* () {
      const { fs, next, root, tree } = yield* planted(23)
      const comparable = tree.files.filter(isComparable("?"))
      for (let i = 0; i < (isSoak ? 40 : 15); i++) {
        const exclude = Array.from({ length: 1 + Math.floor(next() * 3) }, () => globOf(next, all(tree), "ripgrep")).filter(
          (rule) => isShared(rule, "ripgrep")
        )
        const flags = exclude.flatMap((rule) => ["-g", `!${rule}`])
        const theirs = new Set(names(rg.run(root, ["--files", "-uu", "--null", ...flags])))
        const walked = yield* Stream.runCollect(fs.walk(".", { exclude }))
        const ours = new Set(walked.map(({ path }) => path as string))
        same(
          comparable.filter((path) => ours.has(path)),
          comparable.filter((path) => theirs.has(path)),
          JSON.stringify(exclude)
        )
      }
    }).pipe(Effect.scoped)
  )
})

describe.runIf(hasGit)('glob and git with the pathspec magic "glob"', () => {
  for (const seed of isSoak ? [31, 32] : [31]) {
    it.live(`find the same files for patterns with the same meaning in both, tree ${seed}`, () =>
      beside(seed, "git", 100, (root, pattern) => {
        git(root, ["init", "--quiet"])
        // Git anchors every pattern.
        const text = pattern.replace(/^\//, "")
        const glob = pattern.includes("/") ? text : `**/${text}`
        return names(git(root, ["ls-files", "--others", "-z", "--", `:(glob)${glob}`]))
      })
    )
  }
})
