import { assert, describe, it } from "@effect/vitest"
import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { type Hunk, mergeText, type TextMerge } from "../../src/history/mergeText.ts"
import { runAtOnce } from "../../src/runtime/steps.ts"
import { hasGit, saysNoGit } from "../differential/engines.ts"
import { bytes, latin1, mutated, pick, type Random, random } from "./mergeSupport.ts"

type Triple = readonly [base: string, ours: string, theirs: string]

const merge = (...[base, ours, theirs]: Triple): TextMerge => runAtOnce(mergeText(bytes(base), bytes(ours), bytes(theirs)))

const clean = (result: TextMerge): string | undefined => (result._tag === "Merged" ? latin1(result.bytes) : undefined)

const linesOf = (text: string): ReadonlyArray<string> => text.match(/[^\n]*\n|[^\n]+$/g) ?? []

/** Texts for which git must agree: a base, two sides and the result, or `undefined` for a conflict. */
const table: ReadonlyArray<readonly [claim: string, ...Triple, merged: string | undefined]> = [
  ["changes with a line between them are both taken", "a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"],
  ["changes of adjacent lines are a conflict", "a\nb\n", "A\nb\n", "a\nB\n", undefined],
  ["changes of the same line are a conflict", "a\n", "b\n", "c\n", undefined],
  ["the same change on both sides is taken once", "a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n", "a\nX\nc\n"],
  [
    "the same change on both sides and another change on one side are taken",
    "a\nb\nc\nd\ne\n",
    "a\nX\nc\nd\ne\n",
    "a\nX\nc\nd\nE\n",
    "a\nX\nc\nd\nE\n"
  ],
  ["different insertions at one position are a conflict", "a\nb\n", "a\nx\nb\n", "a\ny\nb\n", undefined],
  ["the same insertion at one position is taken once", "a\nb\nc\n", "a\nx\nb\nc\n", "a\nx\nb\nC\n", "a\nx\nb\nC\n"],
  ["an insertion at the start and another at the end are both taken", "a\nb\n", "x\na\nb\n", "a\nb\ny\n", "x\na\nb\ny\n"],
  ["an insertion next to a removal is a conflict", "a\nb\nc\n", "a\nc\n", "a\nb\nx\nc\n", undefined],
  ["overlapping removals of different size are a conflict", "a\nb\nc\nd\n", "a\nd\n", "a\nc\nd\n", undefined],
  ["equal results of both sides are taken once", "a\nb\nc\n", "x\ny\n", "x\ny\n", "x\ny\n"],
  ["adding a newline to the last line is a change of that line", "a\nb", "a\nb\n", "A\nb", undefined],
  ["a removed newline at the end is merged with a distant change", "a\nb\nc\n", "a\nb\nc", "A\nb\nc\n", "A\nb\nc"],
  [
    "lines that are added after a last line without a newline change this line, and merge with a distant change",
    "a\nb\nc",
    "a\nb\nc\nd\n",
    "A\nb\nc",
    "A\nb\nc\nd\n"
  ],
  ["CRLF stays in merged lines", "a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n"],
  ["a change of all line endings conflicts with any other change", "a\nb\nc\n", "a\r\nb\r\nc\r\n", "a\nb\nC\n", undefined],
  ["a lone CR does not end a line", "a\rb\nc\nd\n", "a\rB\nc\nd\n", "a\rb\nc\nD\n", "a\rB\nc\nD\n"],
  [
    "bytes that are not UTF-8 are merged by line",
    "\xff\nb\n\xfe\xfd\n",
    "\xff\xff\nb\n\xfe\xfd\n",
    "\xff\nb\n\xfe\n",
    "\xff\xff\nb\n\xfe\n"
  ],
  [
    "a byte order mark is merged as content of the first line",
    "\xef\xbb\xbfa\nb\nc\n",
    "a\nb\nc\n",
    "\xef\xbb\xbfa\nb\nC\n",
    "a\nb\nC\n"
  ],
  ["different texts without a base are a conflict", "", "a\n", "b\n", undefined],
  ["a text and an empty text without a base give the text", "", "", "b\n", "b\n"],
  ["an emptied text conflicts with a change", "a\n", "", "b\n", undefined],
  ["a text that both sides made empty stays empty", "a\n", "", "", ""],
  ["a change next to equal lines extends to the change of the other side", "a\nb\nb\n", "b\nc\n", "b\n", "b\nc\n"],
  ["a change next to equal lines joins another change of the same side", "b\nb\nc\n", "a\nb\n", "b\n", "a\nb\n"],
  [
    "a line that is inserted among equal lines is merged with a distant change",
    "x\nx\nx\nb\nc\n",
    "x\nx\nx\nx\nb\nc\n",
    "x\nx\nx\nb\nC\n",
    "x\nx\nx\nx\nb\nC\n"
  ]
]

const texts = (random: Random, letters: number, length: number, edits: number): Triple => {
  const line = () => `${random(letters)}${random(9) === 0 ? "\r" : ""}\n`
  const base = Array.from({ length: random(length + 1) }, line)
  const cut = (text: string) => (random(5) === 0 ? text.slice(0, -1) : text)
  const [ours, theirs] = [mutated(random, base, edits, line), mutated(random, base, edits, line)]
  return [cut(base.join("")), cut(ours.join("")), cut(theirs.join(""))]
}

/** Returns the conflicts as git writes them with --diff3, from our hunks. */
const marked = ([base, ours, theirs]: Triple, hunks: ReadonlyArray<Hunk>): string => {
  const all = { base: linesOf(base), ours: linesOf(ours), theirs: linesOf(theirs) }
  const part = (side: keyof Hunk, hunk: Hunk) => {
    const { lines, start } = hunk[side]
    const text = all[side].slice(start - 1, start - 1 + lines).join("")
    return text === "" || text.endsWith("\n") ? text : `${text}\n`
  }
  return hunks
    .map(
      (hunk) => `<<<<<<< o\n${part("ours", hunk)}||||||| b\n${part("base", hunk)}=======\n${part("theirs", hunk)}>>>>>>> t\n`
    )
    .join("")
}

const conflictsOf = (text: string): string => (text.match(/^<<<<<<< o\n[^]*?^>>>>>>> t\r?\n/gm) ?? []).join("")

saysNoGit("merges of texts, compared with git merge-file")

describe("mergeText", () => {
  for (const [claim, base, ours, theirs, merged] of table) {
    it(claim, () => {
      assert.strictEqual(clean(merge(base, ours, theirs)), merged)
      assert.strictEqual(clean(merge(base, theirs, ours)), merged)
    })
  }

  it("merges content with a NUL only if one side left it unchanged", () => {
    assert.deepStrictEqual(merge("a\n", "a\0\n", "b\n"), { _tag: "Binary" })
    assert.deepStrictEqual(merge("a\0\n", "a\n", "b\n"), { _tag: "Binary" })
    assert.deepStrictEqual(merge("a\n\n\n", "b\n\n\n", `a\n\n\n${"x".repeat(20_000)}\0`), { _tag: "Binary" })
    assert.strictEqual(clean(merge("a\0", "a\0", "b\0")), "b\0")
    assert.strictEqual(clean(merge("a\0", "b\0", "b\0")), "b\0")
  })

  it("merges at most a million lines, unless one side is unchanged", () => {
    const many = "\n".repeat(1_000_001)
    assert.deepStrictEqual(merge(many, `a${many}`, `b${many}`), { _tag: "TooLarge" })
    assert.strictEqual(clean(merge(many, many, "b")), "b")
  })

  it("reports hunks with the lines of all three texts, counted from 1", () => {
    const result = merge("a\nb\nc\nd\ne\n", "a\nB\nc\nd\nx\ny\ne\n", "z\na\nBB\nc\nd\ne\n")
    assert.strictEqual(result._tag, "Conflicts")
    assert.deepStrictEqual(result._tag === "Conflicts" && result.hunks, [
      { base: { start: 2, lines: 1 }, ours: { start: 2, lines: 1 }, theirs: { start: 3, lines: 1 } }
    ])
    const inserted = merge("a\nb\n", "a\nx\nb\n", "a\ny\nz\nb\n")
    assert.deepStrictEqual(inserted._tag === "Conflicts" && inserted.hunks, [
      { base: { start: 2, lines: 0 }, ours: { start: 2, lines: 1 }, theirs: { start: 2, lines: 2 } }
    ])
  })

  it("takes the lines of one side for a conflict and merges the other changes", () => {
    const three = [bytes("a\nb\nc\n"), bytes("A\nb\nX\n"), bytes("a\nb\nY\n")] as const
    const [ours, theirs] = [runAtOnce(mergeText(...three)), runAtOnce(mergeText(...three, "theirs"))]
    assert.strictEqual(ours._tag === "Conflicts" && latin1(ours.bytes), "A\nb\nX\n")
    assert.strictEqual(theirs._tag === "Conflicts" && latin1(theirs.bytes), "A\nb\nY\n")
  })

  it("takes changes of one side and equal changes of both, and is symmetric", () => {
    const next = random(11)
    for (let i = 0; i < 2000; i++) {
      const [base, ours, theirs] = texts(next, pick(next, [2, 5, 50]), 20, 5)
      assert.strictEqual(clean(merge(base, ours, base)), ours)
      assert.strictEqual(clean(merge(base, base, theirs)), theirs)
      assert.strictEqual(clean(merge(base, ours, ours)), ours)
      const [one, other] = [merge(base, ours, theirs), merge(base, theirs, ours)]
      assert.strictEqual(clean(one), clean(other))
      if (one._tag !== "Conflicts" || other._tag !== "Conflicts") continue
      const exchanged = other.hunks.map(({ base, ours, theirs }) => ({ base, ours: theirs, theirs: ours }))
      assert.deepStrictEqual(one.hunks, exchanged)
    }
  })

  it("merges changes of different, non-adjacent lines without conflicts", () => {
    const next = random(12)
    for (let i = 0; i < 500; i++) {
      const base = Array.from({ length: 1 + next(60) }, (_, line) => `line ${line}\n`)
      const [ours, theirs, both] = [[...base], [...base], [...base]]
      for (let at = next(3); at < base.length; at += 2 + next(3)) {
        const changed = next(3) === 0 ? "" : `changed ${at}\n${next(2) === 0 ? `and more ${at}\n` : ""}`
        both[at] = changed
        if (next(2) === 0) ours[at] = changed
        else theirs[at] = changed
      }
      assert.strictEqual(clean(merge(base.join(""), ours.join(""), theirs.join(""))), both.join(""))
    }
  })

  describe.runIf(hasGit)("compared with git merge-file", () => {
    const withGit = (
      use: (git: (triple: Triple, ...args: ReadonlyArray<string>) => { clean: boolean; out: string }) => void
    ) => {
      const directory = mkdtempSync(join(tmpdir(), "fs-algebra-merge-"))
      try {
        use((triple, ...args) => {
          for (const [i, name] of ["b", "o", "t"].entries()) writeFileSync(join(directory, name), triple[i]!, "latin1")
          const env = { PATH: process.env["PATH"], HOME: directory, GIT_CONFIG_NOSYSTEM: "1", LC_ALL: "C" }
          const { status, stderr, stdout } = spawnSync("git", ["merge-file", "-p", ...args, "o", "b", "t"], {
            cwd: directory,
            env
          })
          if (status === null || status > 127) throw new Error(`git merge-file: ${stderr}`)
          return { clean: status === 0, out: latin1(stdout) }
        })
      } finally {
        rmSync(directory, { recursive: true })
      }
    }

    it("gives the result of git for every row of the table", () => {
      withGit((git) => {
        for (const [claim, base, ours, theirs, merged] of table) {
          const { clean, out } = git([base, ours, theirs])
          assert.strictEqual(clean ? out : undefined, merged, claim)
        }
      })
    })

    /** Compares our merges with git's. Hunks are compared only where both conflict. */
    const compare = (cases: Iterable<Triple>) => {
      const counts = { both: 0, conflicts: 0, otherBytes: 0, otherAnswer: 0, otherHunks: 0 }
      withGit((git) => {
        for (const triple of cases) {
          const theirs = git(triple)
          const mine = merge(...triple)
          const text = clean(mine)
          if (theirs.clean !== (text !== undefined)) counts.otherAnswer++
          else if (mine._tag === "Conflicts") {
            counts.conflicts++
            if (marked(triple, mine.hunks) !== conflictsOf(git(triple, "--diff3").out)) counts.otherHunks++
          } else {
            counts.both++
            if (text !== theirs.out) counts.otherBytes++
          }
        }
      })
      assert.isAbove(counts.both, 50)
      assert.isAbove(counts.conflicts, 20)
      return counts
    }

    it("gives the same bytes and conflicts as git for texts without repeated lines", () => {
      const cases = function* () {
        const next = random(1)
        let lines = 0
        const line = () => `${lines++}\n`
        const edited = (from: ReadonlyArray<string>, edits: number) => mutated(next, from, edits, line, false)
        for (let i = 0; i < 250; i++) {
          const base = Array.from({ length: next(40) }, line)
          const common = edited(base, 2)
          yield [base.join(""), edited(common, 4).join(""), edited(common, 4).join("")] as const
        }
      }
      const { otherAnswer, otherBytes, otherHunks } = compare(cases())
      assert.deepStrictEqual({ otherAnswer, otherBytes, otherHunks }, { otherAnswer: 0, otherBytes: 0, otherHunks: 0 })
    })

    it("differs from git in less than 2 of 100 cases for texts of three different lines", () => {
      const cases = function* () {
        const next = random(2)
        for (let i = 0; i < 400; i++) yield texts(next, 3, 10, 3)
      }
      const { otherAnswer, otherBytes } = compare(cases())
      assert.isBelow(otherAnswer + otherBytes, 8)
    })

    it("differs from git in less than 1 of 100 cases for source files of this library with random edits", () => {
      const src = fileURLToPath(new URL("../../src/engine/", import.meta.url))
      const sources = readdirSync(src).map((name) => linesOf(readFileSync(join(src, name), "latin1")))
      const cases = function* () {
        const next = random(3)
        for (let i = 0; i < 400; i++) {
          const base = pick(next, sources)
          const line = () => pick(next, base)
          yield [base.join(""), mutated(next, base, 8, line).join(""), mutated(next, base, 8, line).join("")] as const
        }
      }
      const { otherAnswer, otherBytes } = compare(cases())
      assert.strictEqual(otherBytes, 0)
      assert.isBelow(otherAnswer, 4)
    })
  })
})
