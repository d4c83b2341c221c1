import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import { merge, type Options, type Source } from "../../src/history/merge.ts"
import { Conflict } from "../../src/history/mergeText.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { blobId, type DirectoryNode } from "../../src/history/tree.ts"
import { type Blob, type Flat, fileNode, flat, latin1, mutated, pick, random, shown, sourceOf, treeOf } from "./mergeSupport.ts"

type Entries = Parameters<typeof flat>[0]

const merging = (base: Entries, ours: Entries, theirs: Entries, more: Partial<Options<string>> = {}) =>
  merge({
    base: sourceOf(flat(base)),
    ours: sourceOf(flat(ours)),
    theirs: sourceOf(flat(theirs)),
    caseSensitive: true,
    ...more
  })

type Result = Effect.Success<ReturnType<typeof merging>>

/** Returns the content of every file in the merged tree, and checks the bytes against the ids. */
const contents = Effect.fnUntraced(function* ({ after, content }: Result) {
  const out: Record<string, string> = {}
  const visit: (node: DirectoryNode, prefix: string) => Effect.Effect<void, string> = Effect.fnUntraced(
    function* (node, prefix) {
      for (const [name, child] of node.entries) {
        if (child.kind === "directory") yield* visit(child, `${prefix}${name}/`)
        if (child.kind !== "file") continue
        const read = yield* content(`${prefix}${name}` as FsPath, child)
        assert.deepStrictEqual([blobId(read), read.length], [child.id, child.sizeBytes], prefix + name)
        out[prefix + name] = latin1(read)
      }
    }
  )
  yield* visit(after, "")
  return out
})

const changesOf = ({ changes }: Result) => changes.map(({ _tag, path }) => `${_tag} ${path}`)
const messagesOf = ({ conflicts }: Result) => conflicts.map(({ message }) => message)

describe("merge", () => {
  it.effect("joins two forks of one tree", () =>
    Effect.gen(function* () {
      const result = yield* merging(
        { "main.py": "import os\n\ndef run():\n    pass\n\nrun()\n", "old.py": "old\n", "README.md": "# It\n" },
        {
          "main.py": "import sys\nimport os\n\ndef run():\n    pass\n\nrun()\n",
          "README.md": "# It\n",
          "tests/a.py": "test\n"
        },
        {
          "main.py": "import os\n\ndef run():\n    pass\n\nrun(1)\n",
          "old.py": "old\n",
          "README.md": "# It!\n",
          "lib/a.py": "a\n"
        }
      )
      assert.deepStrictEqual(messagesOf(result), [])
      assert.deepStrictEqual(yield* contents(result), {
        "main.py": "import sys\nimport os\n\ndef run():\n    pass\n\nrun(1)\n",
        "README.md": "# It!\n",
        "tests/a.py": "test\n",
        "lib/a.py": "a\n"
      })
      assert.deepStrictEqual(changesOf(result), ["Modified README.md", "Added lib", "Added lib/a.py", "Modified main.py"])
    })
  )

  const conflicting = [
    { a: "1\n2\n3\n", b: "b\n", c: "c\n" },
    { a: "1\n2\nX\n", b: "b\n", c: "C\n" },
    { a: "0\n2\nY\n", b: "B\n" }
  ] as const

  it.effect("with a conflict changes nothing and reports all conflicts", () =>
    Effect.gen(function* () {
      const ours = sourceOf(flat(conflicting[1]))
      const result = yield* merging(...conflicting, { ours })
      assert.strictEqual(result.after, ours.tree)
      assert.deepStrictEqual(result.changes, [])
      assert.deepStrictEqual(yield* contents(result), { ...conflicting[1] })
      assert.deepStrictEqual(messagesOf(result), [
        '"a": both sides changed the same or adjacent lines (line 3 of ours, line 3 of theirs)',
        '"c": theirs removed it, ours changed it'
      ])
    })
  )

  it.effect("with `ours` or `theirs` still merges all other changes, also in the files that have conflicts", () =>
    Effect.gen(function* () {
      const ours = yield* merging(...conflicting, { conflicts: "ours" })
      assert.deepStrictEqual(yield* contents(ours), { a: "0\n2\nX\n", b: "B\n", c: "C\n" })
      assert.deepStrictEqual(changesOf(ours), ["Modified a", "Modified b"])
      assert.strictEqual(ours.conflicts.length, 2)
      const mine = sourceOf(flat({ a: "2" }))
      assert.strictEqual((yield* merging({ a: "1" }, {}, { a: "3" }, { ours: mine, conflicts: "ours" })).after, mine.tree)
      const theirs = yield* merging(...conflicting, { conflicts: "theirs" })
      assert.deepStrictEqual(yield* contents(theirs), { a: "0\n2\nY\n", b: "B\n" })
      assert.deepStrictEqual(changesOf(theirs), ["Modified a", "Modified b", "Removed c"])
      assert.strictEqual(theirs.conflicts.length, 2)
    })
  )

  it.effect("gives a merged file both the merged bytes and the merged mode", () =>
    Effect.gen(function* () {
      const { after } = yield* merging({ a: "1\n2\n3\n" }, { a: ["0\n2\n3\n", 0o755] }, { a: "1\n2\n4\n" })
      assert.deepStrictEqual(shown(after), shown(treeOf(flat({ a: ["0\n2\n4\n", 0o755] }))))
    })
  )

  it.effect("takes the other version of a file that both sides added if one version is empty", () =>
    Effect.gen(function* () {
      const result = yield* merging({}, { a: "", b: "b" }, { a: "a", b: "" })
      assert.deepStrictEqual(yield* contents(result), { a: "a", b: "b" })
    })
  )

  it.effect("reports binary and large files as conflicts, and takes the version of the chosen side", () =>
    Effect.gen(function* () {
      const args = [
        { large: "1\n2\n3\n", bin: "\0" },
        { large: "0\n2\n3\n", bin: "\x001", both: "x\0" },
        { large: "1\n2\n4\n", bin: "\x002", both: "y\0" }
      ] as const
      const result = yield* merging(...args, { conflicts: "theirs", maxBytes: 5 })
      assert.deepStrictEqual(messagesOf(result), [
        '"bin": both sides changed it, and it is not text, so its lines cannot be merged',
        '"both": both sides added it, and it is not text, so its lines cannot be merged',
        '"large": both sides changed it, and it is too large to merge by lines'
      ])
      assert.deepStrictEqual(yield* contents(result), { ...args[2] })
      assert.strictEqual(
        (yield* merging({ a: "1\n2\n3\n" }, { a: "0\n2\n3\n" }, { a: "1\n2\n4\n" }, { maxBytes: 6 })).conflicts.length,
        0
      )
    })
  )

  it.effect("reads only the files that both sides changed", () =>
    Effect.gen(function* () {
      const reads: Array<string> = []
      const counted = (name: string, entries: Entries): Source<string> => {
        const { read, tree } = sourceOf(flat(entries))
        return {
          tree,
          read: (path, file) => Effect.sync(() => reads.push(`${name} ${path}`)).pipe(Effect.andThen(read(path, file)))
        }
      }
      const { changes } = yield* merge({
        base: counted("base", { a: "1", b: "1", both: "1\n2\n3\n", same: "1" }),
        ours: counted("ours", { a: "2", b: "1", both: "0\n2\n3\n", same: "2", new: "1" }),
        theirs: counted("theirs", { a: "1", b: "2", both: "1\n2\n4\n", same: "2", new: "2" }),
        caseSensitive: true,
        conflicts: "ours"
      })
      assert.deepStrictEqual(reads.sort(), ["base both", "ours both", "ours new", "theirs both", "theirs new"])
      assert.strictEqual(changes.length, 2)
    })
  )

  it.effect("fails with the failure of a source", () =>
    Effect.gen(function* () {
      const broken: Source<string> = { tree: treeOf(flat({ a: "2" })), read: () => Effect.fail("broken") }
      assert.strictEqual(yield* Effect.flip(merging({ a: "1" }, { a: "3" }, {}, { theirs: broken })), "broken")
    })
  )

  it.effect("dies if a caller requests the content of a file that is not in the merged tree", () =>
    Effect.gen(function* () {
      const { content } = yield* merging({ a: "1" }, { a: "2" }, { a: "1" })
      for (const [path, text] of [
        ["a", "1"],
        ["b", "2"]
      ] as const) {
        const exit = yield* Effect.exit(content(path as FsPath, fileNode(text)))
        assert.isTrue(Exit.hasDies(exit))
      }
    })
  )

  it.effect("reads a file by its name on each side in a case-insensitive filesystem", () =>
    Effect.gen(function* () {
      const result = yield* merging(
        { "src/a": "1\n2\n3\n", "src/b": "1" },
        { "SRC/a": "0\n2\n3\n", "SRC/b": "1" },
        { "src/A": "1\n2\n4\n", "src/b": "2" },
        { caseSensitive: false }
      )
      assert.deepStrictEqual(messagesOf(result), [])
      assert.deepStrictEqual(yield* contents(result), { "SRC/A": "0\n2\n4\n", "SRC/b": "2" })
    })
  )

  it.effect("merges three thousand files that both sides changed in one directory", () =>
    Effect.gen(function* () {
      const files = (text: string) => Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`d/${i}`, text]))
      const result = yield* merging(files("1\n2\n3\n"), files("0\n2\n3\n"), files("1\n2\n4\n"))
      assert.strictEqual(result.conflicts.length, 0)
      assert.deepStrictEqual(shown(result.after), shown(treeOf(flat(files("0\n2\n4\n")))))
      assert.strictEqual(result.changes.length, 3000)
    })
  )

  it.effect("reports conflicts that survive JSON with the same messages", () =>
    Effect.gen(function* () {
      const { conflicts } = yield* merging(
        { text: "1\n", bin: "\0", "d/a": "1", kind: "1", mode: "1", link: { link: "1" } },
        { text: "2\n", bin: "\x001", kind: "2", mode: ["1", 0o755], link: { link: "2" }, "\u0000ff": "1" },
        { text: "3\n", bin: "\x002", "d/a": "2", "kind/x": "1", mode: ["1", 0o700], link: { link: "3" }, "\u0000ff": "2" }
      )
      assert.deepStrictEqual(
        conflicts.map(({ reason }) => reason),
        ["content", "binary", "deleted", "kind", "link", "mode", "content"]
      )
      const codec = Schema.toCodecJson(Schema.Array(Conflict))
      const decoded = Schema.decodeUnknownSync(codec)(JSON.parse(JSON.stringify(Schema.encodeSync(codec)(conflicts))))
      assert.deepStrictEqual(decoded, conflicts)
      assert.deepStrictEqual(
        decoded.map(({ message }) => message),
        conflicts.map(({ message }) => message)
      )
    })
  )

  const generate = (next: ReturnType<typeof random>): readonly [Flat, Flat, Flat] => {
    const names = ["a", "b", "c", "d/a", "d/b", "d/e/a"]
    let lines = 0
    const line = () => `${lines++}\n`
    const base = new Map(
      names.map((name): [string, Blob] => [name, { text: Array.from({ length: next(12) }, line).join(""), mode: 0o644 }])
    )
    const edited = () => {
      const out = new Map(base)
      for (let i = next(5); i > 0; i--) {
        const name = pick(next, names)
        const text = out.get(name)?.text.match(/[^\n]*\n/g) ?? []
        if (next(8) === 0) out.delete(name)
        else out.set(name, { text: mutated(next, text, 2, line, false).join(""), mode: pick(next, [0o644, 0o644, 0o755]) })
      }
      return out
    }
    return [base, edited(), edited()]
  }

  it.effect("of random trees gives readable files and complete changes, and is symmetric", () =>
    Effect.gen(function* () {
      const next = random(41)
      let clean = 0
      for (let i = 0; i < 500; i++) {
        const [base, ours, theirs] = generate(next).map((side) => sourceOf(side)) as unknown as [
          Source<string>,
          Source<string>,
          Source<string>
        ]
        const conflicts = pick(next, ["ours", "theirs", "fail"] as const)
        const one = yield* merge({ base, ours, theirs, caseSensitive: true, conflicts })
        yield* contents(one)
        const [before, after] = [shown(ours.tree), shown(one.after)]
        const told = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
          (path) => before[path] !== after[path]
        )
        assert.deepStrictEqual(
          one.changes.map(({ path }) => path as string).sort(),
          told.map((path) => path.replace(/(?<=.)\/$/, "")).sort()
        )
        const swapped = { ours: "theirs", theirs: "ours", fail: "fail" } as const
        const other = yield* merge({ base, ours: theirs, theirs: ours, caseSensitive: true, conflicts: swapped[conflicts] })
        assert.deepStrictEqual(
          other.conflicts.map(({ path, reason }) => [path, reason]),
          one.conflicts.map(({ path, reason }) => [path, reason])
        )
        if (conflicts !== "fail" || one.conflicts.length === 0) assert.deepStrictEqual(shown(other.after), after)
        if (one.conflicts.length === 0) clean++
        assert.strictEqual((yield* merge({ base, ours, theirs: base, caseSensitive: true })).after, ours.tree)
        assert.deepStrictEqual(
          shown((yield* merge({ base, ours: base, theirs, caseSensitive: true })).after),
          shown(theirs.tree)
        )
        // A second merge of the same side changes nothing.
        if (one.conflicts.length > 0) continue
        const again = yield* merge({ base, ours: { tree: one.after, read: one.content }, theirs, caseSensitive: true })
        if (again.conflicts.length === 0) assert.deepStrictEqual(shown(again.after), after)
      }
      assert.isAbove(clean, 100)
      assert.isBelow(clean, 480)
    })
  )
})
