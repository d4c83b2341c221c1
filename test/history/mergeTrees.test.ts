import { assert, describe, it } from "@effect/vitest"
import { type FsPath, fold } from "../../src/model/FsPath.ts"
import { mergeTrees } from "../../src/history/merge.ts"
import type { DirectoryNode, Node } from "../../src/history/tree.ts"
import { type Blob, type Flat, flat, pick, type Random, random, shown, treeOf } from "./mergeSupport.ts"

type Entries = Parameters<typeof flat>[0]

const merge = (
  base: Entries,
  ours: Entries,
  theirs: Entries,
  more: { caseSensitive?: boolean; prefer?: "ours" | "theirs" } = {}
) =>
  mergeTrees({
    base: treeOf(flat(base)),
    ours: treeOf(flat(ours)),
    theirs: treeOf(flat(theirs)),
    caseSensitive: true,
    ...more
  })

interface Case {
  readonly claim: string
  readonly base: Entries
  readonly ours: Entries
  readonly theirs: Entries
  /** The merged tree if `ours` is preferred. `settled` is the merged tree if `theirs` is preferred. */
  readonly merged: Entries
  readonly settled?: Entries
  readonly conflicts?: ReadonlyArray<string>
  readonly toMerge?: ReadonlyArray<string>
  readonly caseInsensitive?: boolean
}

const table: ReadonlyArray<Case> = [
  {
    claim: "each side's additions, changes and removals are taken",
    base: { keep: "k", mine: "1", yours: "1", gone: "g", away: "a", "d/x": "x" },
    ours: { keep: "k", mine: "2", yours: "1", away: "a", "d/x": "x", "d/new": "n" },
    theirs: { keep: "k", mine: "1", yours: "2", gone: "g", "d/x": "y", other: { link: "keep" } },
    merged: { keep: "k", mine: "2", yours: "2", "d/x": "y", "d/new": "n", other: { link: "keep" } }
  },
  {
    claim: "equal changes on both sides are not a conflict",
    base: { a: "1", b: "1", l: { link: "x" } },
    ours: { a: "2", l: { link: "y" }, n: "n", "e/": 0o700 },
    theirs: { a: "2", l: { link: "y" }, n: "n", "e/": 0o700 },
    merged: { a: "2", l: { link: "y" }, n: "n", "e/": 0o700 }
  },
  {
    claim: "bytes and mode of one file are merged separately",
    base: { run: "1", stop: ["1", 0o755] },
    ours: { run: ["1", 0o755], stop: ["2", 0o755] },
    theirs: { run: "2", stop: "1" },
    merged: { run: ["2", 0o755], stop: "2" }
  },
  {
    claim: "different modes of a file, a directory or the root on both sides are conflicts",
    base: { f: "1", "d/": 0o755 },
    ours: { "/": 0o711, f: ["1", 0o600], "d/": 0o700 },
    theirs: { "/": 0o700, f: ["1", 0o755], "d/": 0o750 },
    merged: { "/": 0o711, f: ["1", 0o600], "d/": 0o700 },
    settled: { "/": 0o700, f: ["1", 0o755], "d/": 0o750 },
    conflicts: [
      '".": its mode is 0711 in ours and 0700 in theirs',
      '"d": its mode is 0700 in ours and 0750 in theirs',
      '"f": its mode is 0600 in ours and 0755 in theirs'
    ]
  },
  {
    claim: "a file that both sides changed or added is returned for a merge of its lines",
    base: { a: "1" },
    ours: { a: "2", b: "2" },
    theirs: { a: ["3", 0o755], b: "3" },
    merged: { a: ["2", 0o755], b: "2" },
    settled: { a: ["3", 0o755], b: "3" },
    toMerge: ["a", "b"]
  },
  {
    claim: "a file that one side removed and the other changed is a conflict",
    base: { a: "1", b: "1" },
    ours: { b: "2" },
    theirs: { a: ["1", 0o700] },
    merged: { b: "2" },
    settled: { a: ["1", 0o700] },
    conflicts: ['"a": ours removed it, theirs changed it', '"b": theirs removed it, ours changed it']
  },
  {
    claim: "a directory that one side removed and in which the other changed or added entries is one conflict",
    base: { "d/a": "1", "d/b": "1", "d/e/c": "1" },
    ours: {},
    theirs: { "d/a": "1", "d/b": "2", "d/e/c": "1", "d/e/n": "n" },
    merged: {},
    settled: { "d/a": "1", "d/b": "2", "d/e/c": "1", "d/e/n": "n" },
    conflicts: ['"d": ours removed it, theirs changed "d/b" in it, and 1 more']
  },
  {
    claim: "a directory that one side removed and in which the other only removed entries is removed",
    base: { "d/a": "1", "d/b": "1" },
    ours: {},
    theirs: { "d/a": "1" },
    merged: {}
  },
  {
    claim: "a directory that one side emptied contains the entries that the other added",
    base: { "d/a": "1" },
    ours: { "d/": 0o755 },
    theirs: { "d/a": "1", "d/b": "2" },
    merged: { "d/b": "2" }
  },
  {
    claim: "an added and a removed empty directory are both merged",
    base: { "old/": 0o755 },
    ours: { "old/": 0o755, "new/": 0o755 },
    theirs: {},
    merged: { "new/": 0o755 }
  },
  {
    claim: "a file that one side changed and the other replaced by a directory is a conflict",
    base: { a: "1" },
    ours: { a: "2" },
    theirs: { "a/b": "1" },
    merged: { a: "2" },
    settled: { "a/b": "1" },
    conflicts: ['"a": it is a file in ours and a directory in theirs']
  },
  {
    claim: "a new file and a new link of the same name are a conflict",
    base: {},
    ours: { a: "1" },
    theirs: { a: { link: "b" } },
    merged: { a: "1" },
    settled: { a: { link: "b" } },
    conflicts: ['"a": it is a file in ours and a link in theirs']
  },
  {
    claim: "an entry that one side left unchanged may become an entry of another kind on the other side",
    base: { a: "1", "d/x": "1", l: { link: "a" } },
    ours: { a: "1", "d/x": "1", l: "no link" },
    theirs: { "a/b": "1", d: "file", l: { link: "a" } },
    merged: { "a/b": "1", d: "file", l: "no link" }
  },
  {
    claim: "a directory that one side replaced and in which the other only removed entries is replaced",
    base: { "d/a": "1", "d/b": "1" },
    ours: { d: "file" },
    theirs: { "d/a": "1" },
    merged: { d: "file" }
  },
  {
    claim: "a link with different new targets on both sides is a conflict",
    base: { l: { link: "a" } },
    ours: { l: { link: "b" } },
    theirs: { l: { link: "c" } },
    merged: { l: { link: "b" } },
    settled: { l: { link: "c" } },
    conflicts: ['"l": the link points to "b" in ours and to "c" in theirs']
  },
  {
    claim: "names that differ only in case are two entries in a case-sensitive filesystem",
    base: {},
    ours: { Readme: "1" },
    theirs: { README: "2" },
    merged: { Readme: "1", README: "2" }
  },
  {
    claim: "two new names that differ only in case are a conflict in a case-insensitive filesystem",
    caseInsensitive: true,
    base: {},
    ours: { "d/Readme": "1" },
    theirs: { "d/README": "2" },
    merged: { "d/Readme": "1" },
    settled: { "d/README": "2" },
    conflicts: ['"d/Readme": "Readme" and "README" are the same name in this filesystem']
  },
  {
    claim: "a change of case is merged with other changes in a case-insensitive filesystem",
    caseInsensitive: true,
    base: { a: "1", b: "1", "dir/x": "1" },
    ours: { A: "1", b: "2", "Dir/x": "1" },
    theirs: { a: "2", B: "1", "dir/x": "2" },
    merged: { A: "2", B: "2", "Dir/x": "2" }
  },
  {
    claim: "two different changes of case of one name are a conflict in a case-insensitive filesystem",
    caseInsensitive: true,
    base: { name: "1" },
    ours: { Name: "1" },
    theirs: { NAME: "2" },
    merged: { Name: "1" },
    settled: { NAME: "2" },
    conflicts: ['"Name": "Name" and "NAME" are the same name in this filesystem']
  },
  {
    claim: "a removed entry whose case the other side changed is a conflict in a case-insensitive filesystem",
    caseInsensitive: true,
    base: { a: "1" },
    ours: {},
    theirs: { A: "1" },
    merged: {},
    settled: { A: "1" },
    conflicts: ['"A": ours removed it, theirs changed it']
  },
  {
    claim: "two names of one side that differ only in case are a conflict in a case-insensitive filesystem",
    caseInsensitive: true,
    base: { "d/a": "1" },
    ours: { "d/a": "1" },
    theirs: { "d/a": "1", "d/A": "2", "new/b": "1", "new/B": "1" },
    merged: { "d/a": "1", "new/B": "1" },
    settled: { "d/a": "1", "new/B": "1" },
    conflicts: [
      '"d/A": "a" and "A" are the same name in this filesystem',
      '"new/b": "B" and "b" are the same name in this filesystem'
    ]
  }
]

/** Files in directories that neither side changes, so that each path is merged separately. */
const directories = ["", "d/", "d/e/"]
const names = ["a", "b", "c", "d2"]

const blob = (random: Random): Blob => {
  const text = String(random(4))
  return random(6) === 0 ? { text, mode: 0, link: true } : { text, mode: pick(random, [0o644, 0o755, 0o600]) }
}

const edited = (random: Random, from: Flat, changes: number): Flat => {
  const out = new Map(from)
  for (let i = random(changes + 1); i > 0; i--) {
    const path = pick(random, directories) + pick(random, names)
    const there = out.get(path)
    const how = random(4)
    if (how === 0) out.delete(path)
    else if (how === 1 && there && !there.link) out.set(path, { ...there, mode: pick(random, [0o644, 0o755, 0o600]) })
    else if (how === 2 && there) out.set(path, { ...there, text: String(random(4)) })
    else out.set(path, blob(random))
  }
  return out
}

const skeleton: Flat = flat({ "d/e/": 0o755 })

const triple = (random: Random) => {
  const base = edited(random, skeleton, 14)
  const common = edited(random, base, 2)
  return { base, ours: edited(random, common, 4), theirs: edited(random, common, 4) }
}

const threeWay = <A>(base: A, ours: A, theirs: A): A | "conflict" =>
  ours === theirs || base === theirs ? ours : base === ours ? theirs : "conflict"

const word = (blob: Blob | undefined): string =>
  blob === undefined ? "" : `${blob.link ? "link" : blob.mode.toString(8)} ${blob.text}`

/** Merges each path separately, and the bytes and mode of a file separately. Also returns the undecided paths. */
const model = (base: Flat, ours: Flat, theirs: Flat) => {
  const merged = new Map<string, Blob>()
  const undecided = new Set<string>()
  for (const path of new Set([...base.keys(), ...ours.keys(), ...theirs.keys()])) {
    const [b, o, t] = [base.get(path), ours.get(path), theirs.get(path)]
    const whole = threeWay(word(b), word(o), word(t))
    if (whole !== "conflict") {
      const taken = [o, t].find((one) => word(one) === whole)
      if (taken) merged.set(path, taken)
    } else if (o && t && !o.link && !t.link) {
      const before = b?.link ? undefined : b
      const text = threeWay(before?.text, o.text, t.text)
      const mode = threeWay<number | undefined | "conflict">(before?.mode, o.mode, t.mode)
      if (text === "conflict" || mode === "conflict") undecided.add(path)
      else merged.set(path, { text: text!, mode: mode! })
    } else undecided.add(path)
  }
  return { merged, undecided }
}

const equalTo = (actual: DirectoryNode, expected: DirectoryNode, what?: string) =>
  assert.deepStrictEqual(shown(actual), shown(expected), what)

/** Adds an id to every directory; equal directories get equal ids. */
const withIds = (node: DirectoryNode): DirectoryNode => {
  const entries = new Map(
    [...node.entries].map(([name, child]): [string, Node] => [name, child.kind === "directory" ? withIds(child) : child])
  )
  const bare: DirectoryNode = { kind: "directory", mode: node.mode, entries }
  return { ...bare, id: JSON.stringify(shown(bare)) }
}

describe("mergeTrees", () => {
  for (const { base, caseInsensitive, claim, conflicts = [], merged, ours, settled = merged, theirs, toMerge = [] } of table) {
    it(claim, () => {
      const caseSensitive = !caseInsensitive
      const mine = merge(base, ours, theirs, { caseSensitive })
      assert.deepStrictEqual(
        mine.conflicts.map(({ message }) => message),
        conflicts
      )
      assert.deepStrictEqual(
        mine.toMerge.map(({ path }) => path as string),
        toMerge
      )
      equalTo(mine.merged, treeOf(flat(merged)), "with ours")
      equalTo(merge(base, ours, theirs, { caseSensitive, prefer: "theirs" }).merged, treeOf(flat(settled)), "with theirs")
    })
  }

  it("describes the entry of each side of a conflict, and omits a side without an entry", () => {
    const [conflict] = merge({ "d/a": "1" }, {}, { "d/a": ["22", 0o700] }).conflicts
    assert.deepStrictEqual(
      { ...conflict },
      {
        path: "d" as FsPath,
        reason: "deleted",
        base: { kind: "directory", mode: 0o755 },
        theirs: { kind: "directory", mode: 0o755 },
        paths: ["d/a" as FsPath]
      }
    )
  })

  it("takes modes from the other side if one side has none", () => {
    const bare = (node: DirectoryNode): DirectoryNode => ({
      kind: "directory",
      entries: new Map(
        [...node.entries].map(([name, child]): [string, Node] => {
          if (child.kind === "directory") return [name, bare(child)]
          if (child.kind === "symlink") return [name, child]
          return [name, { kind: "file", sizeBytes: child.sizeBytes, id: child.id }]
        })
      )
    })
    const base = treeOf(flat({ a: "1", "d/b": ["1", 0o755] }))
    const theirs = treeOf(flat({ a: ["1", 0o755], "d/b": ["1", 0o600], c: "2" }))
    const { conflicts, merged } = mergeTrees({ base: bare(base), ours: bare(base), theirs, caseSensitive: true })
    assert.deepStrictEqual(conflicts, [])
    equalTo(merged, theirs)
    const other = mergeTrees({ base, ours: theirs, theirs: bare(base), caseSensitive: true })
    assert.strictEqual(other.merged, theirs)
    assert.deepStrictEqual(other.conflicts, [])
  })

  it("merges entries whose names no path can express like other entries", () => {
    const key = "\u0000ff"
    const { conflicts, merged } = merge({ [key]: "1", "d/x": "1" }, { "d/x": "2" }, { [key]: "2", "d/x": "1" })
    assert.deepStrictEqual([conflicts[0]!.path as string, conflicts[0]!.reason, conflicts.length], [key, "deleted", 1])
    equalTo(merged, treeOf(flat({ "d/x": "2" })))
  })

  it("merges a tree a thousand directories deep", () => {
    const deep = "d/".repeat(1000)
    const { conflicts, merged } = merge({ [`${deep}a`]: "1" }, { [`${deep}a`]: "1", [`${deep}b`]: "1" }, { [`${deep}a`]: "2" })
    assert.deepStrictEqual(conflicts, [])
    equalTo(merged, treeOf(flat({ [`${deep}a`]: "2", [`${deep}b`]: "1" })))
  })

  it("agrees with a model of flat maps, and reports conflicts where the model is undecided", () => {
    const next = random(21)
    let [decided, undecided] = [0, 0]
    for (let i = 0; i < 3000; i++) {
      const { base, ours, theirs } = triple(next)
      const expected = model(base, ours, theirs)
      const actual = mergeTrees({ base: treeOf(base), ours: treeOf(ours), theirs: treeOf(theirs), caseSensitive: true })
      const paths = new Set<string>([...actual.conflicts, ...actual.toMerge].map(({ path }) => path))
      assert.deepStrictEqual(paths, expected.undecided, `triple ${i}`)
      const withoutThose = (entries: Record<string, string>) =>
        Object.fromEntries(Object.entries(entries).filter(([path]) => !expected.undecided.has(path)))
      assert.deepStrictEqual(withoutThose(shown(actual.merged)), shown(treeOf(new Map([...skeleton, ...expected.merged]))))
      if (paths.size === 0) decided++
      else undecided++
    }
    assert.isAbove(Math.min(decided, undecided), 500)
  })

  it("takes a tree that only one side changed or both changed alike, and is symmetric", () => {
    const next = random(22)
    for (let i = 0; i < 1000; i++) {
      const [base, ours, theirs] = Object.values(triple(next)).map(treeOf) as [DirectoryNode, DirectoryNode, DirectoryNode]
      for (const caseSensitive of [true, false]) {
        const of = (base: DirectoryNode, ours: DirectoryNode, theirs: DirectoryNode, prefer?: "theirs") =>
          mergeTrees({ base, ours, theirs, caseSensitive, prefer })
        assert.strictEqual(of(base, ours, base).merged, ours)
        equalTo(of(base, base, theirs).merged, theirs)
        assert.strictEqual(of(base, ours, structuredClone(ours)).merged, ours)
        for (const { conflicts, toMerge } of [of(base, ours, base), of(base, base, theirs), of(base, ours, ours)]) {
          assert.deepStrictEqual([...conflicts, ...toMerge], [])
        }
        const [one, other] = [of(base, ours, theirs), of(base, theirs, ours, "theirs")]
        equalTo(one.merged, other.merged)
        assert.deepStrictEqual(
          one.conflicts.map(({ path, reason }) => `${path} ${reason}`),
          other.conflicts.map(({ path, reason }) => `${path} ${reason}`)
        )
      }
    }
  })

  it("keeps changes of different files in any order of merging", () => {
    const next = random(23)
    for (let i = 0; i < 500; i++) {
      const base = edited(next, skeleton, 14)
      const sides = [new Map(base), new Map(base), new Map(base)] as const
      const all = new Map(base)
      for (const directory of directories) {
        for (const name of names) {
          const side = sides[next(4)]
          const changed = next(3) === 0 ? undefined : blob(next)
          if (side === undefined) continue
          for (const each of [side, all]) {
            if (changed === undefined) each.delete(directory + name)
            else each.set(directory + name, changed)
          }
        }
      }
      const of = (ours: DirectoryNode, theirs: DirectoryNode) =>
        mergeTrees({ base: treeOf(base), ours, theirs, caseSensitive: true }).merged
      const [a, b, c] = sides.map(treeOf) as [DirectoryNode, DirectoryNode, DirectoryNode]
      equalTo(of(of(a, b), c), treeOf(all))
      equalTo(of(of(c, a), b), treeOf(all))
      equalTo(of(a, of(b, c)), treeOf(all))
    }
  })

  it("gives the same result for trees with and without directory ids", () => {
    const next = random(24)
    for (let i = 0; i < 500; i++) {
      const [base, ours, theirs] = Object.values(triple(next)).map(treeOf) as [DirectoryNode, DirectoryNode, DirectoryNode]
      const plain = mergeTrees({ base, ours, theirs, caseSensitive: true })
      const known = mergeTrees({ base: withIds(base), ours: withIds(ours), theirs: withIds(theirs), caseSensitive: true })
      assert.deepStrictEqual(known.conflicts, plain.conflicts)
      assert.deepStrictEqual(known.toMerge, plain.toMerge)
      equalTo(known.merged, plain.merged)
    }
  })

  it("keeps a directory id only for an equal directory", () => {
    const next = random(25)
    for (let i = 0; i < 500; i++) {
      const [base, ours, theirs] = Object.values(triple(next)).map((side) => withIds(treeOf(side))) as [
        DirectoryNode,
        DirectoryNode,
        DirectoryNode
      ]
      const check = (node: DirectoryNode): void => {
        const { id, ...bare } = node
        if (id !== undefined) assert.deepStrictEqual(JSON.parse(id), shown(bare))
        for (const child of node.entries.values()) if (child.kind === "directory") check(child)
      }
      check(mergeTrees({ base, ours, theirs, caseSensitive: true }).merged)
    }
  })

  it("in a case-insensitive filesystem, never gives a directory two names that differ only in case", () => {
    const next = random(26)
    const spelled = (entries: Flat, spell: (path: string) => string): Flat =>
      new Map([...entries].map(([path, blob]) => [next(3) === 0 && !path.endsWith("/") ? spell(path) : path, blob]))
    const inName = (path: string) => path.replace(/[^/]+$/, (name) => name.toUpperCase())
    let conflicts = 0
    for (let i = 0; i < 1000; i++) {
      const { base, ours, theirs } = triple(next)
      const result = mergeTrees({
        base: treeOf(base),
        ours: treeOf(spelled(ours, inName)),
        theirs: treeOf(spelled(theirs, (path) => path.toUpperCase())),
        caseSensitive: false,
        prefer: pick(next, ["ours", "theirs"])
      })
      conflicts += result.conflicts.length
      const check = (node: DirectoryNode): void => {
        assert.strictEqual(new Set([...node.entries.keys()].map(fold)).size, node.entries.size)
        for (const child of node.entries.values()) if (child.kind === "directory") check(child)
      }
      check(result.merged)
    }
    assert.isAbove(conflicts, 100)
  })
})
