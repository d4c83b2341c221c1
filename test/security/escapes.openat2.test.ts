/**
 * Random trees and paths, compared with the kernel. The library must find the inode that openat2(RESOLVE_BENEATH)
 * finds, and refuse the paths that the kernel refuses. `escapes/resolution.ts` explains the few allowed differences,
 * which are counted.
 */
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join as joinHost } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { type Answer, compile, inodeOf, type Oracle, type Question } from "./escapes/beneath.ts"
import { inObjects, plant } from "./escapes/grounds.ts"
import { random, randomPath, randomTree } from "./escapes/random.ts"
import { asKernel, asPromised, differences, isCopied, reasonFor, type Verdict } from "./escapes/resolution.ts"
import { childrenOf, complete, isDirectory, isFile, isLink, normal, textOf, type Tree, whatIs } from "./escapes/tree.ts"
import { isSoak } from "../runs.ts"

const trees = isSoak ? 20_000 : 150
const batch = 150
const pathsEach = 24
const firstSeed = 20_260_101

const scratch = Fs.mkdtempSync(
  joinHost(Fs.realpathSync(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir()), "fs-algebra-openat2-")
)
afterAll(() => Fs.rmSync(scratch, { recursive: true, force: true }))

const oracle = compile(scratch)
if (typeof oracle === "string") {
  if (process.env["FS_ALGEBRA_NO_SKIP"] === "1") throw new Error(`openat2 is not available: ${oracle}`)
  console.log(`skipped: the kernel as oracle; the walk over data replaces it: ${oracle}`)
}

interface Planted {
  readonly seed: number
  readonly tree: Tree
  readonly root: string
  readonly questions: ReadonlyArray<Question & { readonly asked: string }>
  readonly places: ReadonlyMap<string, string>
}

/** Returns a different time for each entry, which identifies the entry in a result. */
const timeOf = (index: number): number => 1_000_000_000 + index * 1000

const timesOf = (tree: Tree): ReadonlyMap<string, number> =>
  new Map([".", ...Object.keys(complete(tree))].map((path, index) => [path, timeOf(index)]))

const plantAt = (seed: number): Planted => {
  const next = random(seed)
  const tree = complete(randomTree(next))
  const root = `${scratch}/${seed}/root`
  Fs.mkdirSync(root, { recursive: true })
  // Plants the same names outside, so that an escape shows.
  plant(
    `${scratch}/${seed}`,
    Object.fromEntries(Object.entries(tree).filter(([path]) => !path.includes("/") && path !== "root"))
  )
  plant(root, tree)
  const places = new Map([[inodeOf(root), "."]])
  const times = timesOf(tree)
  for (const path of Object.keys(tree)) places.set(inodeOf(`${root}/${path}`), path)
  for (const path of Object.keys(tree).reverse().concat(".")) {
    if (!isLink(whatIs(tree, path))) Fs.utimesSync(`${root}/${path}`, times.get(path)!, times.get(path)!)
  }
  const questions = Array.from({ length: pathsEach }, (_, i) => {
    const asked = randomPath(next, tree)
    return { root, asked, path: normal(asked) ?? "..", follow: i % 3 !== 0 }
  })
  return { seed, tree, root, questions, places }
}

const standIn =
  (all: ReadonlyArray<Planted>): Oracle =>
  (questions) =>
    questions.map(({ follow, path, root }) => {
      const { places, tree } = all.find((planted) => planted.root === root)!
      const found = asKernel(tree, path, follow)
      if ("no" in found) return found
      const what = whatIs(tree, found.at)
      const inode = [...places].find(([, place]) => place === found.at)![0]
      return { ok: inode, kind: isDirectory(what) ? "directory" : isFile(what) ? "file" : "symlink" }
    })

const found = Effect.fnUntraced(function* (
  fs: Algebra,
  links: Algebra,
  { follow, asked }: { readonly follow: boolean; readonly asked: string },
  times: ReadonlyMap<string, number>
) {
  if (!follow) {
    const text = yield* Effect.result(fs.readLink(asked))
    if (text._tag === "Success") return { at: `link ${text.success}` }
    if (text.failure._tag !== "InvalidArgument") return { fails: text.failure._tag }
  }
  const stat = yield* Effect.result((follow ? fs : links).stat(asked))
  if (stat._tag === "Failure") return { fails: stat.failure._tag, why: (stat.failure as { readonly why?: string }).why }
  const time = DateTime.toEpochMillis(stat.success.modifiedAt!) / 1000
  return {
    at: [...times].find(([, mine]) => mine === time)?.[0] ?? `an unknown entry with the time ${time}`,
    kind: stat.success.kind
  }
})

const content = Effect.fnUntraced(function* (fs: Algebra, asked: string, what: string, tree: Tree, at: string) {
  if (isFile(what)) assert.strictEqual(yield* fs.readString(asked), textOf(what))
  else {
    const entries = yield* fs.list(asked)
    assert.deepStrictEqual(entries.map(({ name }) => name).sort(), childrenOf(tree, at))
  }
})

const shown = (tree: Tree): string =>
  Object.entries(tree)
    .filter(([path]) => !/^chain([1-9]|[12].|3[0-6])$/.test(path))
    .map(([path, what]) => `  ${path} ${isLink(what) ? `-> ${textOf(what)}` : isDirectory(what) ? "/" : ""}`)
    .join("\n")

const kernelWord = (answer: Answer): string => ("no" in answer ? answer.no : "ok")

const word = (fails: string | undefined, kernel: string): string =>
  fails === undefined
    ? "ok"
    : fails === "AccessDenied"
      ? kernel === "EXDEV"
        ? "EXDEV"
        : "escape"
      : fails === "InvalidPath"
        ? kernel === "ELOOP"
          ? "ELOOP"
          : "loop"
        : kernel === "ENOTDIR"
          ? "ENOTDIR"
          : "ENOENT"

const reasons = new Map<string, number>()
const answers = new Map<string, number>()
const count = (map: Map<string, number>, key: string): void => void map.set(key, (map.get(key) ?? 0) + 1)

const checkOne = Effect.fnUntraced(function* (
  { places, questions, tree }: Planted,
  fs: Algebra,
  links: Algebra,
  index: number,
  answer: Answer
) {
  const { asked, follow, path } = questions[index]!
  const times = timesOf(tree)
  const promised: Verdict | { readonly fails: string } =
    normal(asked) === undefined ? { fails: "InvalidPath" } : asPromised(tree, path, follow)
  const ours = yield* found(fs, links, questions[index]!, times)
  if ("fails" in promised) {
    assert.strictEqual("fails" in ours ? ours.fails : ours.at, promised.fails, "the verdict of C-39")
    if (promised.fails === "AccessDenied") assert.strictEqual((ours as { readonly why?: string }).why ?? "escape", "escape")
  } else {
    const what = whatIs(tree, promised.at)!
    assert.strictEqual(
      (ours as { readonly at: string }).at,
      isLink(what) ? `link ${textOf(what)}` : promised.at,
      "the verdict of C-39"
    )
    if (follow) yield* content(fs, asked, what, tree, promised.at)
  }
  if (normal(asked) === undefined) return
  const copy = asKernel(tree, path, follow)
  const [place, no] = "ok" in answer ? [places.get(answer.ok), undefined] : [undefined, answer.no]
  assert.isTrue(isCopied(copy, place, no), `the kernel gives ${place ?? no}, its copy ${JSON.stringify(copy)}`)
  count(answers, kernelWord(answer))
  if ("ok" in answer && "at" in promised) {
    assert.strictEqual(promised.at, places.get(answer.ok), "the same inode as the kernel's")
    return
  }
  const kernel = kernelWord(answer)
  const reason = reasonFor(kernel, word("fails" in promised ? promised.fails : undefined, kernel))
  if (reason === undefined) return
  assert.notInclude(reason, "unexplained")
  count(reasons, reason)
})

interface Subject {
  readonly name: string
  readonly open: (planted: Planted, symlinks: "follow" | "report") => Effect.Effect<Algebra, unknown, Scope.Scope>
}

const subjects: ReadonlyArray<Subject> = [
  { name: "PosixHost", open: ({ root }, symlinks) => Effect.map(PosixHost.make({ root, symlinks }), make) },
  {
    name: "a directory of a PosixHost",
    open: ({ root }, symlinks) =>
      Effect.flatMap(PosixHost.make({ root: joinHost(root, ".."), symlinks }), (port) => subdirectory("root")(make(port)))
  },
  {
    name: "InMemory",
    open: ({ tree }) =>
      Effect.gen(function* () {
        const fs = make(yield* InMemory.make({ tree: inObjects(tree) }))
        for (const [path, time] of [...timesOf(tree)].reverse()) {
          if (!isLink(whatIs(tree, path))) yield* fs.setAttributes(path, { modifiedAt: DateTime.makeUnsafe(time * 1000) })
        }
        return fs
      })
  }
]

const wrong: Array<string> = []

const checkTree = Effect.fnUntraced(function* (planted: Planted, given: ReadonlyArray<Answer>, subject: Subject) {
  const fs = yield* subject.open(planted, "follow")
  const links = yield* subject.open(planted, "report")
  for (const [index, { asked, follow }] of planted.questions.entries()) {
    yield* Effect.catchDefect(checkOne(planted, fs, links, index, given[index]!), (error) =>
      Effect.sync(
        () =>
          void wrong.push(
            `seed ${planted.seed}, ${JSON.stringify(asked)}, ${follow ? "followed" : "not followed"}, on ${subject.name}: ` +
              `${String((error as Error).message)}\n${shown(planted.tree)}`
          )
      )
    )
  }
})

const checkBatch = Effect.fnUntraced(function* (from: number, size: number) {
  const all = Array.from({ length: size }, (_, i) => plantAt(firstSeed + from + i))
  const given = (typeof oracle === "string" ? standIn(all) : oracle)(all.flatMap(({ questions }) => questions))
  for (const [i, planted] of all.entries()) {
    for (const subject of subjects) {
      yield* Effect.scoped(checkTree(planted, given.slice(i * pathsEach, (i + 1) * pathsEach), subject))
    }
    Fs.rmSync(`${scratch}/${planted.seed}`, { recursive: true })
  }
})

describe("resolution beneath a root", () => {
  it.live(
    `of ${pathsEach} paths in each of ${trees} random trees agrees with openat2`,
    () =>
      Effect.gen(function* () {
        for (let from = 0; from < trees; from += batch) yield* checkBatch(from, Math.min(batch, trees - from))
        if (wrong.length > 0) assert.fail(`${wrong.length} are wrong\n${wrong.slice(0, 20).join("\n")}`)
        console.log("the kernel's answers", Object.fromEntries(answers))
        console.log("differences", Object.fromEntries(reasons))
      }),
    isSoak ? 3_600_000 : 120_000
  )

  it("is compared with every kind of answer of openat2, and shows every allowed difference", () => {
    for (const kind of ["ok", "ENOENT", "ENOTDIR", "ELOOP", "EXDEV"]) assert.isAbove(answers.get(kind) ?? 0, 20, kind)
    for (const [, why] of differences) assert.isAbove(reasons.get(why) ?? 0, 0, why)
  })

  it("reports each difference that is not allowed", () => {
    assert.include(reasonFor("EXDEV", "ok") ?? "", "unexplained")
    assert.include(reasonFor("ENOENT", "ok") ?? "", "unexplained")
    assert.include(reasonFor("ok", "ENOENT") ?? "", "unexplained")
    assert.isUndefined(reasonFor("EXDEV", "EXDEV"))
  })
})
