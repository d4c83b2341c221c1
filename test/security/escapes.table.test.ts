/**
 * Runs every operation on every layout of links and every filesystem. The expected results are written by hand, and nothing
 * outside may change.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { type Ground, type Kind, kinds, type Snapshot } from "./escapes/grounds.ts"
import { refused } from "./escapes/meaning.ts"
import { type Case, type Expected, type Method, methods } from "./escapes/methods.ts"
import { base, type Layout, layouts, outside, type Row } from "./escapes/rows.ts"
import { complete, isLink, normal, textOf, type Tree } from "./escapes/tree.ts"
import { isSoak } from "../runs.ts"

const firstLink = (tree: Tree, path: string): string | undefined => {
  const names = path.split("/")
  for (let i = 1; i <= names.length; i++) {
    const at = names.slice(0, i).join("/")
    if (isLink(tree[at])) return at
  }
  return undefined
}

/** Returns the meaning of a row with `symlinks: "refuse"`: a path through a link is refused, an operation on a link is not. */
const underRefuse = (row: Row, tree: Tree): Row => {
  const path = typeof row.path === "string" ? normal(row.path) : undefined
  const first = path === undefined ? undefined : firstLink(tree, path)
  return first === undefined ? row : { path: row.path, leads: refused, link: first === path ? first : undefined }
}

/** Returns the expectation with `symlinks: "report"`: only `stat` and `exists` report the link itself. */
const underReport = (method: Method, self: Case): Expected => {
  if (self.link === undefined || (method.name !== "stat" && method.name !== "exists")) return method.expects(self)
  const size = Buffer.byteLength(textOf(self.tree[self.link]!))
  return { answers: method.name === "exists" ? true : [normal(self.path), "symlink", size, true] }
}

const expectedOf = (kind: Kind, method: Method, row: Row, tree: Tree): Expected => {
  if (kind.symlinks === "refuse") return method.expects({ ...underRefuse(row, tree), tree })
  return kind.symlinks === "report" ? underReport(method, { ...row, tree }) : method.expects({ ...row, tree })
}

const whats = (snapshot: Snapshot): Tree =>
  Object.fromEntries(Object.entries(snapshot).flatMap(([path, { what }]) => (path === "." ? [] : [[path, what]])))

const sortedTree = (tree: Tree): ReadonlyArray<readonly [string, string]> => Object.entries(complete(tree))

/** Returns contents, modes and times, without the times of directories, which temporary names change. */
const standing = (snapshot: Snapshot, but: (path: string) => boolean): Snapshot =>
  Object.fromEntries(
    Object.entries(snapshot).flatMap(([path, seen]) =>
      but(path) ? [] : [[path, seen.what === "/" ? { ...seen, modifiedAt: 0, rest: "" } : seen]]
    )
  )

const outcomeOf = (ground: Ground, method: Method, path: string) =>
  Effect.match(method.run(ground.fs, path), {
    onSuccess: (answers) => ({ answers }) as Record<string, unknown>,
    onFailure: (error) => {
      const { _tag, why } = error as { readonly _tag: string; readonly why?: string }
      assert.notInclude(JSON.stringify(error), ground.hidden, "no error contains a path on the machine")
      assert.notInclude(String((error as Error).message), ground.hidden)
      assert.notInclude(JSON.stringify(error), "secret")
      return (why === undefined ? { fails: _tag } : { fails: _tag, why }) as Record<string, unknown>
    }
  })

interface State {
  readonly inside: Snapshot
  readonly outside: Snapshot
}

const state = (ground: Ground): State => ({ inside: ground.inside(), outside: ground.outside() })

const nameOf = (method: Method, row: Row): string => `${method.name} ${JSON.stringify(row.path)?.slice(0, 120)}`

const checkAnswer = Effect.fnUntraced(function* (ground: Ground, method: Method, row: Row, expected: Expected) {
  const { leaves: _, sets: __, ...answer } = { leaves: undefined, sets: undefined, ...expected }
  const outcome = yield* outcomeOf(ground, method, row.path)
  assert.deepStrictEqual(outcome, { ...answer }, nameOf(method, row))
})

const checkState = (ground: Ground, before: State, expected: Expected, at: string): void => {
  const { leaves, sets } = { leaves: undefined, sets: undefined, ...expected }
  assert.deepStrictEqual(ground.outside(), before.outside, `${at}: the outside`)
  const after = ground.inside()
  assert.deepStrictEqual(sortedTree(whats(after)), sortedTree(leaves ?? ground.tree), `${at}: the inside`)
  const isOther = (path: string): boolean => path === sets?.at || after[path]?.what !== before.inside[path]?.what
  assert.deepStrictEqual(standing(after, isOther), standing(before.inside, isOther), `${at}: the unrelated entries`)
  if (sets?.mode !== undefined) assert.strictEqual(after[sets.at]?.mode, sets.mode, at)
  if (sets?.modifiedAt !== undefined) assert.strictEqual(after[sets.at]?.modifiedAt, sets.modifiedAt, at)
}

const isChanging = (expected: Expected): boolean => "leaves" in expected || "sets" in expected

let cases = 0

interface Run {
  readonly ground: Ground
  readonly wrong: Array<string>
}

/** Notes a failed check and continues, so that one mistake does not hide the others. */
const noting = <E, R>({ wrong }: Run, check: Effect.Effect<void, E, R>): Effect.Effect<void, E, R> =>
  Effect.catchDefect(check, (error) => Effect.sync(() => void wrong.push(String((error as Error).message ?? error))))

const alone = (run: Run, method: Method, row: Row, expected: Expected): Effect.Effect<void> =>
  noting(
    run,
    Effect.suspend(() => {
      run.ground.reset()
      const before = state(run.ground)
      return Effect.map(checkAnswer(run.ground, method, row, expected), () =>
        checkState(run.ground, before, expected, nameOf(method, row))
      )
    })
  )

/** Runs the calls that change nothing in sequence and compares once. After a difference, each call runs alone. */
const together = Effect.fnUntraced(function* (run: Run, row: Row, group: ReadonlyArray<readonly [Method, Expected]>) {
  run.ground.reset()
  const before = state(run.ground)
  for (const [method, expected] of group) yield* noting(run, checkAnswer(run.ground, method, row, expected))
  try {
    checkState(run.ground, before, { answers: undefined }, `calls that must change nothing ${JSON.stringify(row.path)}`)
  } catch (error) {
    run.wrong.push(String((error as Error).message))
    for (const [method, expected] of group) yield* alone(run, method, row, expected)
  }
})

/** Returns n to run every nth case, with other operations in each layout, so that each operation runs. The soak runs all. */
const oneIn = (kind: Kind): number => (isSoak ? 1 : kind.name === "PosixHost" ? 4 : kind.name === "InMemory" ? 5 : 10)

let turn = 0

const triedOn = new Map(kinds.map((kind) => [kind, new Set<string>()]))

const tried = methods.filter(({ isExtra }) => isSoak || !isExtra)

const runLayout = Effect.fnUntraced(function* (kind: Kind, layout: Layout) {
  const ground = yield* kind.make({ ...base, ...layout.links }, outside)
  const run: Run = { ground, wrong: [] }
  for (const row of layout.rows) {
    if (row.isExtra === true && !isSoak) continue
    const all = tried
      .map((method) => [method, expectedOf(kind, method, row, ground.tree)] as const)
      .filter(() => turn++ % oneIn(kind) === 0)
    for (const [{ name }] of all) triedOn.get(kind)!.add(name)
    const changing = all.filter(([, expected]) => isChanging(expected))
    yield* together(
      run,
      row,
      all.filter(([, expected]) => !isChanging(expected))
    )
    for (const [method, expected] of changing) yield* alone(run, method, row, expected)
    cases += all.length
  }
  if (run.wrong.length > 0) assert.fail(`${run.wrong.length} are wrong\n${run.wrong.slice(0, 40).join("\n")}`)
})

for (const kind of kinds) {
  describe(`paths on ${kind.name} lead where the table says, for`, () => {
    for (const layout of layouts) {
      if (layout.isHostOnly === true && !kind.isHost) continue
      it.live(layout.claim, () => Effect.scoped(runLayout(kind, layout)))
    }
  })
}

describe("the table", () => {
  it("covers every operation on every filesystem", () => {
    console.log(`${layouts.length} layouts, ${methods.length} operations: ${cases} cases`)
    assert.isAbove(cases, isSoak ? 150_000 : 15_000)
    for (const [kind, names] of triedOn) assert.strictEqual(names.size, tried.length, kind.name)
  })
})
