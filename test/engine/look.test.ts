/** Symlinks resolve in the same way on a port that reads a whole path in one request and on a port that does not. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Layer from "effect/Layer"
import * as InMemory from "../../src/backends/InMemory.ts"
import { resolve } from "../../src/engine/resolve.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, decorate, type Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { type FsPath, join, root, segments } from "../../src/model/FsPath.ts"
import { type Backend, portable, type Seen } from "../../src/port/Backend.ts"
import { laws } from "../../src/testing/Laws.ts"
import { suite } from "../../src/testing/Suite.ts"
import type { Fault } from "../../src/model/FsError.ts"
import * as Request from "../../src/port/Request.ts"

/** Returns the port with requests of type `Look`, built from its single calls. Every `declines`-th request is declined. */
const looking = (port: Backend, onLook: () => void = () => {}, declines = 0): Backend => {
  let looks = 0
  const look = Effect.fnUntraced(function* (path: FsPath): Effect.fn.Return<Option.Option<ReadonlyArray<Seen>>, Fault> {
    onLook()
    if (declines > 0 && ++looks % declines === 0) return Option.none()
    const seen: Array<Seen> = []
    let at = root
    for (const name of ["", ...segments(path)]) {
      if (name !== "") at = join(at, name)
      const stat = yield* port.stat(at)
      if (stat === undefined) break
      seen.push(stat.kind === "symlink" ? { stat, target: yield* port.links!.read(at) } : { stat })
      if (stat.kind !== "directory") break
    }
    return Option.some(seen)
  })
  return { ...port, perform: Request.extend(port.perform, { Look: ({ path }) => look(path) }) }
}

const withLooks = (declines: number) => decorate(({ port }: Algebra) => make(looking(port, undefined, declines)))

const linkLaws = laws.filter(({ needs }) => needs.includes("links"))

suite("a port that looks up whole paths", withLooks(0)(InMemory.layer()), { laws: linkLaws, programs: 100 })
suite("a port that declines some lookups of whole paths", withLooks(3)(InMemory.layer()), { laws: linkLaws, programs: 100 })
suite(
  "a subdirectory of a port that looks up whole paths",
  decorate((fs: Algebra) => Effect.flatMap(fs.mkdir("work/shop"), () => subdirectory("work/shop")(fs)))(
    withLooks(0)(InMemory.layer())
  ) as Layer.Layer<Filesystem, unknown>,
  { laws: linkLaws, programs: 100 }
)

describe("resolve, on a port that reads the stats of a whole path in one request,", () => {
  const tree = {
    a: { b: { c: { d: { f: "deep", up: { link: "../../c/d/f" }, round: { link: "round" } } } }, l: { link: "b/c/d" } }
  } as unknown as InMemory.Tree

  const cases: ReadonlyArray<readonly [path: string, looks: number]> = [
    [".", 1],
    ["a/b/c/d/f", 1],
    ["a/b/c/d/none/x/y", 1],
    ["none/of/it/is/there", 1],
    ["a/b/c/d/f/x", 1],
    ["a/l/f", 2],
    ["a/l/none/x", 2],
    ["a/l/up", 3],
    ["a/b/c/d/round", 1]
  ]
  for (const [path, expected] of cases) {
    it.effect(`makes one request, and at most one more for each link that leads to another directory: ${path}`, () =>
      Effect.gen(function* () {
        const port = yield* InMemory.make({ tree })
        let looks = 0
        const blind = () => Effect.die(new Error("it has been looked at"))
        const onlyLooks = {
          ...looking(port, () => looks++),
          stat: blind,
          links: { ...port.links!, read: blind, follow: blind }
        }
        const outcome = (of: Backend) => Effect.result(resolve(of, path as FsPath))
        assert.deepStrictEqual(yield* outcome(onlyLooks), yield* outcome(portable(port)))
        assert.strictEqual(looks, expected)
      })
    )
  }
})
