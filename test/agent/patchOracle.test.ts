/**
 * Compares apply_patch with git and GNU patch. A diff of two trees must turn the old tree into the new one, whichever
 * program wrote the diff. If a file changed after the diff, the result must be that of `git apply` or GNU patch,
 * or the patch is refused.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { spawnSync } from "node:child_process"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { unlimited } from "../../src/model/Limits.ts"
import { type Files, picture } from "../../src/testing/Files.ts"
import { has, needs } from "../faults/ground.ts"
import { directory } from "./changing.ts"
import { patched, randomOf } from "./patching.ts"

const hasGit = needs("patches of git", () => has("git"), "apt-get install git")
const hasDiff = needs("patches of GNU diff", () => has("diff"), "apt-get install diffutils")
const hasPatch = needs("what GNU patch makes of a patch", () => has("patch"), "apt-get install patch")

type Random = (below: number) => number
type Texts = Record<string, string>

const words = ["a", "b", "c", "}", "", "  x", "foo()", "ä", "-- x", "++ y", "@@ -1 +1 @@", "\t"]

const someLines = (random: Random, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, () => words[random(words.length)]! + (random(3) === 0 ? random(9) : ""))

const edited = (random: Random, lines: ReadonlyArray<string>, edits: number): ReadonlyArray<string> => {
  const out = [...lines]
  for (let i = 0; i < edits; i++) {
    const at = random(out.length + 1)
    const kind = random(3)
    if (kind === 0) out.splice(at, 0, ...someLines(random, 1 + random(3)))
    else out.splice(at, 1 + random(2), ...(kind === 1 ? [] : [`Z${random(99)}`]))
  }
  return out
}

const asText = (random: Random, lines: ReadonlyArray<string>, ending: string): string =>
  lines.map((line) => line + (ending === "mixed" ? ["\n", "\r\n"][random(2)]! : ending)).join("")

const endings = ["\n", "\n", "\n", "\r\n", "mixed"]

/** Builds two trees: some files are in both, changed or not, some in only one, and some have another name. */
const trees = (seed: number): { readonly before: Texts; readonly after: Texts } => {
  const random = randomOf(seed)
  const before: Texts = {}
  const after: Texts = {}
  for (let i = 0; i < 60; i++) {
    const path = ["", "d/", "d e/ä/"][random(3)]! + `f${i}${random(4) === 0 ? " x" : ""}`
    const ending = endings[random(endings.length)]!
    const lines = someLines(random, random(30))
    const mark = random(8) === 0 ? "\uFEFF" : ""
    const open = (text: string): string => (random(4) === 0 ? text.replace(/\r?\n$/, "") : text)
    const fate = random(10)
    if (fate !== 0) before[path] = open(mark + asText(random, lines, ending))
    if (fate === 2) after[`moved/${path}`] = before[path]! + (random(2) === 0 ? "" : `${before[path]!.length}`)
    else if (fate !== 1) after[path] = open(mark + asText(random, edited(random, lines, random(4)), ending))
  }
  return { before, after }
}

const plantAt = (root: string, texts: Texts): void => {
  for (const [path, text] of Object.entries(texts)) {
    Fs.mkdirSync(join(root, dirname(path)), { recursive: true })
    Fs.writeFileSync(join(root, path), text)
  }
}

const clean = { ...process.env, LC_ALL: "C", GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" }
const differing = (at: string, command: string, ...args: ReadonlyArray<string>): string =>
  spawnSync(command, args, { cwd: at, encoding: "utf8", env: clean, maxBuffer: 1e9 }).stdout

const gitDiff = (at: string, { after, before }: { readonly before: Texts; readonly after: Texts }, ...args: Array<string>) => {
  const git = (...rest: ReadonlyArray<string>) =>
    differing(at, "git", "-c", "core.autocrlf=false", "-c", "core.safecrlf=false", ...rest)
  git("init", "-q")
  plantAt(at, before)
  git("add", "-A")
  git("-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x")
  for (const name of Fs.readdirSync(at)) if (name !== ".git") Fs.rmSync(join(at, name), { recursive: true })
  plantAt(at, after)
  git("add", "-A")
  return git("diff", "--cached", "--text", ...args)
}

const gnuDiff = (at: string, { after, before }: { readonly before: Texts; readonly after: Texts }, ...args: Array<string>) => {
  plantAt(join(at, "old"), before)
  plantAt(join(at, "new"), after)
  return differing(at, "diff", "-ruN", "--text", ...args, "old", "new")
}

/** Removes the directories from the tree, because the directories of removed files stay. */
const withoutDirectories = (becomes: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(becomes).filter(([, kind]) => kind !== "directory"))

const becomesTree = (patch: string, { after, before }: { readonly before: Files; readonly after: Files }) =>
  Effect.gen(function* () {
    const result = yield* patched(before, patch, undefined, unlimited)
    assert.isTrue(result.success, result.message)
    assert.deepStrictEqual(withoutDirectories(result.becomes), withoutDirectories(picture(after)))
  })

describe("a diff of two trees turns the old tree into the new tree", () => {
  const gits = [["-U3"], ["-U1", "-M"], ["-U0", "-M50%", "--no-prefix"], ["--patience", "--src-prefix=i/", "--dst-prefix=w/"]]
  for (const [index, args] of gits.entries()) {
    it.effect.skipIf(!hasGit)(`if it is made by git diff ${args.join(" ")}`, () =>
      Effect.scoped(Effect.flatMap(directory, (at) => becomesTree(gitDiff(at, trees(index + 1), ...args), trees(index + 1))))
    )
  }
  // With -N, GNU diff does not distinguish an empty file from a missing one.
  const solid = (texts: Texts): Texts => Object.fromEntries(Object.entries(texts).filter(([, text]) => text !== ""))
  for (const [index, args] of [["-U3"], ["-U1"], ["-U0"]].entries()) {
    it.effect.skipIf(!hasDiff)(`if it is made by diff -ruN ${args.join(" ")}`, () =>
      Effect.gen(function* () {
        const { after, before } = trees(index + 11)
        const both = { before: solid(before), after: solid(after) }
        yield* becomesTree(gnuDiff(yield* directory, both, ...args), both)
      }).pipe(Effect.scoped)
    )
  }
})

/** The last commits of this repository. */
const commits = ((): ReadonlyArray<string> => {
  if (!hasGit) return []
  const log = differing(
    import.meta.dirname,
    "git",
    "log",
    "--no-merges",
    "--min-parents=1",
    "--format=%H",
    "-n",
    "4",
    "--skip=1"
  )
  return log.split("\n").filter((id) => id !== "" && differing(import.meta.dirname, "git", "cat-file", "-t", `${id}^`) !== "")
})()

const textsAt = (commit: string, paths: ReadonlyArray<string>): Texts => {
  const out: Texts = {}
  const top = differing(import.meta.dirname, "git", "rev-parse", "--show-toplevel").trim()
  for (const path of paths) {
    const { status, stdout } = spawnSync("git", ["show", `${commit}:${path}`], { cwd: top, encoding: "utf8", maxBuffer: 1e9 })
    if (status === 0) out[path] = stdout
  }
  return out
}

const recent = needs("patches of this repository's own commits", () => commits.length > 0, "git clone with its history")

describe("the patch of up to eight files of a commit of this repository turns the parent's files into the commit's files", () => {
  for (const commit of commits) {
    it.effect.skipIf(!recent)(`for the commit ${commit.slice(0, 7)}`, () => {
      const show = (...args: Array<string>) => differing(import.meta.dirname, "git", "show", "--format=", ...args, commit)
      // Binary files have no line counts; names that git quotes are skipped.
      const named = show("--numstat", "--no-renames")
        .split("\n")
        .flatMap((line) => /^\d+\t\d+\t([^"].*)$/.exec(line)?.[1] ?? [])
      const links = show("--raw", "--no-renames")
        .split("\n")
        .filter((line) => /^:(?:\d+ )?1[26]0000/.test(line))
      const paths = named.filter((path) => !links.some((line) => line.endsWith(`\t${path}`))).slice(0, 8)
      if (paths.length === 0) return Effect.void
      const patch = differing(
        import.meta.dirname,
        "git",
        "format-patch",
        "--stdout",
        "-1",
        commit,
        "--",
        ...paths.map((path) => `:/${path}`)
      )
      return becomesTree(patch, { before: textsAt(`${commit}^`, paths), after: textsAt(commit, paths) })
    })
  }
})

interface Drift {
  readonly patch: string
  readonly now: string
}

/** Returns a diff of a text, and a version of that text with other edits. */
const drift = (at: string, random: Random): Drift => {
  const lines = someLines(random, 5 + random(30))
  const text = (lines: ReadonlyArray<string>): string => lines.join("\n") + (lines.length === 0 || random(4) === 0 ? "" : "\n")
  Fs.writeFileSync(join(at, "a"), text(lines))
  Fs.writeFileSync(join(at, "b"), text(edited(random, lines, 1 + random(4))))
  const patch = differing(at, "diff", `-U${random(4)}`, "--label", "a/x", "--label", "b/x", "a", "b")
  return { patch, now: text(edited(random, lines, random(4))) }
}

const byGit = (at: string, { now, patch }: Drift): string | undefined => {
  Fs.writeFileSync(join(at, "x"), now)
  const env = { ...clean, GIT_CEILING_DIRECTORIES: dirname(at) }
  const { status } = spawnSync("git", ["apply", "--unidiff-zero"], { cwd: at, env, input: patch })
  return status === 0 ? Fs.readFileSync(join(at, "x"), "utf8") : undefined
}

const byPatch = (at: string, { now, patch }: Drift): string | undefined => {
  Fs.writeFileSync(join(at, "c"), now)
  const { status } = spawnSync("patch", ["-F0", "-s", "-f", "-N", "-r", "-", "-o", "out", "c"], { cwd: at, input: patch })
  return status === 0 ? Fs.readFileSync(join(at, "out"), "utf8") : undefined
}

/**
 * Returns the results of git and GNU patch if the final newline is first added or removed. apply_patch does not require the line
 * `\ No newline at end of file`, because models do not write it.
 */
const besideNewline = (at: string, { now, patch }: Drift): ReadonlyArray<string | undefined> => {
  const other = now.endsWith("\n") ? now.slice(0, -1) : `${now}\n`
  const both = [byGit(at, { now: other, patch }), byPatch(at, { now: other, patch })]
  return both.flatMap((text) => (text === undefined ? [] : [text, text.endsWith("\n") ? text.slice(0, -1) : `${text}\n`]))
}

describe("a patch for a file that changed after the diff", () => {
  const runs = process.env["FS_ALGEBRA_SOAK"] === undefined ? 25 : 3000
  it.effect.skipIf(!hasGit || !hasDiff || !hasPatch)(
    "has the same result as with git or GNU patch, or is refused without a change",
    () =>
      Effect.gen(function* () {
        const at = yield* directory
        const random = randomOf(runs)
        const seen = { same: 0, refused: 0, cautious: 0 }
        for (let run = 0; run < runs; run++) {
          const one = drift(at, random)
          if (one.patch === "") continue
          const [git, gnu] = [byGit(at, one), byPatch(at, one)]
          const { becomes, message, success } = yield* patched({ x: one.now }, one.patch)
          const what = `run ${run}: ${JSON.stringify({ ...one, git, gnu, message })}`
          if (success) {
            const pictures = (texts: ReadonlyArray<string | undefined>) =>
              texts.flatMap((x) => (x === undefined ? [] : [picture({ x })["x"]]))
            const isTheirs = pictures([git, gnu]).includes(becomes["x"])
            if (!isTheirs) assert.include(pictures(besideNewline(at, one)), becomes["x"], what)
            seen.same++
            continue
          }
          assert.deepStrictEqual(becomes, picture({ x: one.now }), what)
          seen[git === undefined && gnu === undefined ? "refused" : "cautious"]++
          // A refusal of a patch that both tools accept must give its reason.
          if (git !== undefined && git === gnu)
            assert.match(message, /at lines|adds lines below|ends at line|are the end of the file/, what)
        }
        // Each outcome must be frequent enough for the test to be meaningful.
        assert.isAtLeast(seen.same, runs / 4, JSON.stringify(seen))
        assert.isAtLeast(seen.refused, runs / 10, JSON.stringify(seen))
        assert.isAtMost(seen.cautious, runs / 5, JSON.stringify(seen))
      }).pipe(Effect.scoped),
    600_000
  )
})
