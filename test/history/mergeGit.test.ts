import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { merge } from "../../src/history/merge.ts"
import type { Conflict } from "../../src/history/mergeText.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { DirectoryNode } from "../../src/history/tree.ts"
import { git, hasGit, saysNoGit } from "../differential/engines.ts"
import { type Blob, type Flat, latin1, mutated, pick, type Random, random, sourceOf, treeOf } from "./mergeSupport.ts"

const runs = 1000

const paths = ["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "f/a", "f/b", "f/g/a"]

/** Removes the entries that cannot exist beside this path: files in place of its directories, and entries below it. */
const clear = (entries: Map<string, Blob>, path: string): void => {
  for (const other of entries.keys()) {
    if (other.startsWith(`${path}/`) || path.startsWith(`${other}/`)) entries.delete(other)
  }
}

const generate = (next: Random) => {
  let lines = 0
  const line = () => `line ${lines++}\n`
  const text = () => Array.from({ length: 4 + next(12) }, line).join("")
  const blob = (): Blob =>
    next(6) === 0 ? { text: `to${next(9)}`, mode: 0, link: true } : { text: text(), mode: pick(next, [0o644, 0o755]) }
  const edited = (from: Flat, changes: number): Flat => {
    const out = new Map(from)
    for (let i = next(changes + 1); i > 0; i--) {
      const path = pick(next, paths)
      const there = out.get(path)
      const how = next(8)
      if (how === 0) out.delete(path)
      else if (how === 1) for (const other of out.keys()) if (other.startsWith(`${path}/`)) out.delete(other)
      if (how < 2) continue
      if (how === 2 && there && !there.link) out.set(path, { ...there, mode: pick(next, [0o644, 0o755]) })
      else if (how < 7 && there && !there.link) {
        const all = there.text.match(/[^\n]*\n/g) ?? []
        out.set(path, { ...there, text: mutated(next, all, 2, line, false).join("") })
      } else {
        clear(out, path)
        out.set(path, blob())
      }
    }
    return out
  }
  const base = edited(
    new Map(["a", "d/a", "d/b", "d/e/a", "f/a", "f/g/a"].map((path) => [path, { text: text(), mode: 0o644 }])),
    6
  )
  const common = edited(base, 1)
  return [base, edited(common, 4), edited(common, 4)] as const
}

/**
 * Adds directories that git does not track: a directory that one side only emptied stays, unless another entry has its
 * path.
 */
const withDirectories = (sides: ReadonlyArray<Flat>): ReadonlyArray<DirectoryNode> => {
  const all = ["d", "d/e", "f", "f/g"]
  const kept = all.filter((path) => !sides.some((side) => [...side.keys()].some((file) => `${path}/`.startsWith(`${file}/`))))
  return sides.map((side) =>
    treeOf(new Map([...kept.map((path): [string, Blob] => [`${path}/`, { text: "", mode: 0o755 }]), ...side]))
  )
}

const commit = (ref: string, entries: Flat, from?: string): string => {
  let out = `commit refs/heads/${ref}\ncommitter a <a> 0 +0000\ndata 0\n${from ? `from refs/heads/${from}\ndeleteall\n` : ""}`
  for (const [path, { link, mode, text }] of entries) {
    out += `M ${link ? "120000" : mode === 0o755 ? "100755" : "100644"} inline ${path}\ndata ${text.length}\n${text}\n`
  }
  return `${out}\n`
}

const flattened = Effect.fnUntraced(function* (
  top: DirectoryNode,
  content: (path: FsPath, file: any) => Effect.Effect<Uint8Array, string>
) {
  const out = new Map<string, Blob>()
  const visit: (node: DirectoryNode, prefix: string) => Effect.Effect<void, string> = Effect.fnUntraced(
    function* (node, prefix) {
      for (const [name, child] of node.entries) {
        const path = prefix + name
        if (child.kind === "directory") yield* visit(child, `${path}/`)
        else if (child.kind === "symlink") out.set(path, { text: child.target, mode: 0, link: true })
        else out.set(path, { text: latin1(yield* content(path as FsPath, child)), mode: child.mode! })
      }
    }
  )
  yield* visit(top, "")
  return out
})

/** Tests for a conflict that git does not know: one side removed an entry, the other replaced it with another kind. */
const isOfDirectories = ({ base, ours, reason, theirs }: Conflict): boolean =>
  reason === "deleted" && (ours ?? theirs)!.kind !== base!.kind && [ours?.kind, theirs?.kind, base!.kind].includes("directory")

saysNoGit("merges of trees beside git merge-tree")

describe.runIf(hasGit)("merge, compared with git merge-tree,", () => {
  it.effect(
    "reports a conflict where git does, and otherwise gives the same tree or a conflict about a directory",
    () =>
      Effect.gen(function* () {
        const directory = mkdtempSync(join(tmpdir(), "fs-algebra-merge-"))
        yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(directory, { recursive: true })))
        const next = random(31)
        const mine: Array<{ readonly conflicts: ReadonlyArray<Conflict>; readonly shown: string }> = []
        let stream = ""
        for (let i = 0; i < runs; i++) {
          const sides = generate(next)
          const [base, ours, theirs] = withDirectories(sides).map((tree, side) => sourceOf(sides[side]!, tree))
          const result = yield* merge({ base: base!, ours: ours!, theirs: theirs!, caseSensitive: true, conflicts: "ours" })
          const merged = yield* flattened(result.after, result.content)
          stream += commit(`b${i}`, sides[0]) + commit(`o${i}`, sides[1], `b${i}`) + commit(`t${i}`, sides[2], `b${i}`)
          stream += commit(`m${i}`, merged)
          mine.push({ conflicts: result.conflicts, shown: JSON.stringify([sides.map((side) => [...side]), [...merged]]) })
        }
        git(directory, ["init", "-q", "--bare", "."])
        git(directory, ["fast-import", "--quiet", "--force"], stream)
        const trees = new Map(
          git(directory, ["for-each-ref", "--format=%(refname:short) %(tree)", "refs/heads/m*"])
            .trim()
            .split("\n")
            .map((line) => line.split(" ") as [string, string])
        )
        const answers = git(
          directory,
          ["-c", "merge.renames=false", "-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", "--stdin"],
          Array.from({ length: runs }, (_, i) => `o${i} t${i}\n`).join("")
        )
        const theirs = [...answers.matchAll(/(?:^|\0)([01])\0([0-9a-f]{40})(?=\0)/g)]
        assert.strictEqual(theirs.length, runs)
        const counts = { clean: 0, conflicts: 0, directories: 0 }
        for (const [i, { conflicts, shown }] of mine.entries()) {
          const [, status, tree] = theirs[i]!
          if (status === "0") {
            assert.isAbove(conflicts.length, 0, shown)
            counts.conflicts++
          } else if (conflicts.length > 0 && conflicts.every(isOfDirectories)) counts.directories++
          else {
            assert.deepStrictEqual(
              conflicts.map(({ message }) => message),
              [],
              shown
            )
            assert.strictEqual(trees.get(`m${i}`), tree, shown)
            counts.clean++
          }
        }
        assert.isAbove(Math.min(counts.clean, counts.conflicts), 200)
        assert.isBelow(counts.directories, runs / 20)
      }).pipe(Effect.scoped),
    60_000
  )
})
