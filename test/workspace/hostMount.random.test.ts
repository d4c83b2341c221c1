/** Mounts random trees into random trees; the result must equal writing the files that glob finds in the source. */
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { FsError } from "../../src/model/FsError.ts"
import { plant as plantIn, type Files } from "../../src/testing/Files.ts"
import * as HostMount from "../../src/workspace/HostMount.ts"
import { adversarial } from "../../src/testing/Faults.ts"
import { machine, pictureOf, plant } from "./mounting.ts"

const names = ["a", "b", "a", "b", "A", "é.md", "x.md", ".h"] as const
const globs = ["*", "**", "*.md", "a", "a/", "a/**", "/b", "**/a/*", "b/*", "{a,b}/x.md", " ", "[ab]", "?"] as const
/** Only exclusions can be negated. */
const exclusions = [...globs, "!a", "!x.md"] as const

const Name = Schema.Literals(names)
const Path = Schema.Array(Name).check(Schema.isMinLength(1), Schema.isMaxLength(3))
const Tree = Schema.Array(Schema.Tuple([Path, Schema.String.check(Schema.isMaxLength(3))])).check(
  Schema.isMinLength(3),
  Schema.isMaxLength(12)
)
const Globs = Schema.Array(Schema.Literals(globs)).check(Schema.isMaxLength(3))
const Exclusions = Schema.Array(Schema.Literals(exclusions)).check(Schema.isMaxLength(3))

const Case = Schema.Struct({
  source: Tree,
  target: Tree,
  mounts: Schema.Array(
    Schema.Struct({
      hostPath: Schema.Literals([".", "a", "b", "a/b", "x.md"]),
      mountPath: Schema.OptionFromNullOr(Schema.Array(Name).check(Schema.isMaxLength(2))),
      include: Globs,
      exclude: Exclusions
    })
  ).check(Schema.isMinLength(1), Schema.isMaxLength(3)),
  caseInsensitive: Schema.Boolean
})

type Case = typeof Case.Type

/** Builds files from the tree. If two entries exclude each other, the first is kept. */
const filesOf = (tree: Case["source"], caseInsensitive = false): Record<string, string> => {
  const out: Record<string, string> = {}
  const fold = (text: string) => (caseInsensitive ? text.toLowerCase() : text)
  for (const [path, text] of tree) {
    const key = path.join("/")
    const others = Object.keys(out).filter((other) => other !== key)
    const [folded, all] = [fold(key), others.map(fold)]
    if (all.some((other) => other === folded || other.startsWith(`${folded}/`) || folded.startsWith(`${other}/`))) continue
    out[key] = text.toWellFormed()
  }
  return out
}

interface Write {
  readonly path: string
  readonly text: string
  readonly group: number
}

/** Computes the expected writes with a separate filesystem over the source. */
const writesOf = Effect.fnUntraced(function* (files: Record<string, string>, mounts: Case["mounts"]) {
  const from = make(yield* InMemory.make())
  yield* plantIn(from.port, files)
  const out: Array<Write> = []
  let group = 0
  for (const { exclude, hostPath, include, mountPath } of mounts) {
    group++
    const isFile = (yield* from.stat(hostPath)).isFile
    const kept = (all: ReadonlyArray<string>) => all.filter((glob) => glob.trim() !== "")
    const base = isFile ? hostPath.split("/").slice(0, -1).join("/") : hostPath
    const wanted = kept(include).length === 0 ? ["**"] : kept(include)
    const { matches } = yield* from.glob(wanted, { path: base, exclude: kept(exclude) })
    const own = hostPath.split("/").at(-1)!
    for (const { path } of matches) {
      const below = base === "." || base === "" ? path : path.slice(base.length + 1)
      if (isFile && below !== own) continue
      const to =
        mountPath._tag === "Some"
          ? [...mountPath.value, below]
          : isFile
            ? [hostPath]
            : [...(hostPath === "." ? [] : [hostPath]), below]
      out.push({ path: to.join("/"), text: files[path]!, group })
    }
  }
  return out
})

const there = (files: Record<string, string>, path: string): boolean =>
  path === "." || Object.keys(files).some((key) => key === path || key.startsWith(`${path}/`))

type Outcome = { readonly picture: object } | { readonly error: readonly [tag: string, path: string] }

const written = Effect.fnUntraced(function* (fs: Algebra, writes: ReadonlyArray<Write>): Effect.fn.Return<Outcome, FsError> {
  const seen = new Set<string>()
  for (const { group, path, text } of writes) {
    // Two files of one mount may have the same name on a case-insensitive filesystem.
    const key = `${group} ${fs.port.info.caseSensitive ? path : path.toLowerCase()}`
    if (seen.has(key)) return { error: ["AlreadyExists", path] }
    seen.add(key)
    const result = yield* Effect.result(fs.write(path, text))
    if (result._tag === "Failure") return { error: [result.failure._tag, path] }
  }
  return { picture: yield* pictureOf(fs) }
})

const grounds: ReadonlyArray<readonly [name: string, over: (fs: Algebra) => Algebra, runs: number]> = [
  ["in memory", (fs) => fs, process.env["FS_ALGEBRA_SOAK"] === "1" ? 5000 : 300],
  ["on an adversarial filesystem", adversarial, process.env["FS_ALGEBRA_SOAK"] === "1" ? 1000 : 60]
]

describe("a mount of a random tree", () => {
  for (const [name, over, runs] of grounds) {
    let [copied, failed] = [0, 0]
    it.live.prop(
      `writes the files that its globs match, or fails as these writes would and changes nothing: ${name}`,
      { each: Arbitrary.schema(Case) },
      ({ each }) =>
        Effect.gen(function* () {
          const files = filesOf(each.source)
          const mounts = each.mounts.filter(({ hostPath }) => there(files, hostPath))
          const root = yield* machine({})
          plant(root, files)
          const { caseInsensitive } = each
          const target: Files = filesOf(each.target, caseInsensitive)
          const ground = Effect.gen(function* () {
            const port = yield* InMemory.make({ caseInsensitive })
            yield* plantIn(port, target)
            return make(port)
          })
          const [model, real] = [yield* ground, yield* ground]
          const expected = yield* written(model, yield* writesOf(files, mounts))
          const before = yield* pictureOf(real)
          const asked = mounts.map(({ exclude, hostPath, include, mountPath }) => ({
            hostPath,
            include,
            exclude,
            ...(mountPath._tag === "Some" && { mountPath: mountPath.value })
          }))
          const result = yield* Effect.result(HostMount.hydrate(over(real), asked, { allowedRoots: [root] }))
          if (result._tag === "Success") {
            if (result.success.some(({ files }) => files > 0)) copied++
            assert.deepStrictEqual({ picture: yield* pictureOf(real) }, expected)
          } else {
            failed++
            assert.deepStrictEqual({ error: [result.failure._tag, result.failure.path ?? ""] }, expected)
            assert.deepStrictEqual(yield* pictureOf(real), before)
          }
        }).pipe(Effect.scoped),
      { arbitrary: { runs } }
    )

    it(`succeeds in some cases of the test and fails in others: ${name}`, () => {
      assert.isAbove(copied, runs / 8)
      assert.isAbove(failed, runs / 20)
    })
  }
})
