/**
 * The cost of the debug view: the tree and a file over HTTP, compared with the same data from the filesystem, written
 * as JSON.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Server from "../../src/debug/Server.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import type { Case } from "../harness.ts"
import { awaited, check } from "../harness.ts"

const [directories, filesEach] = [500, 100]

const planted = (): string => {
  const root = mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))
  for (let i = 0; i < directories; i++) {
    const directory = join(root, `package-${i}`)
    mkdirSync(directory)
    for (let j = 0; j < filesEach; j++) writeFileSync(join(directory, `module-${j}.ts`), `export const n = ${j}\n`)
  }
  return root
}

const get = async (url: string): Promise<string> => (await fetch(url)).text()

const served = (
  name: string,
  bound: number,
  samples: number,
  path: string,
  plain: (fs: Filesystem.Algebra) => Effect.Effect<unknown, unknown>
): Case => ({
  name: `debug: ${name}`,
  target: `≤ ${bound} of asking the filesystem`,
  bound,
  figure: "ratio",
  count: 1,
  samples,
  make: async () => {
    const root = planted()
    const scope = await Effect.runPromise(Scope.make())
    const open = Effect.gen(function* () {
      const filesystem = Filesystem.make(yield* PosixHost.make({ root }))
      return { filesystem, ...(yield* Server.serve({ source: { filesystem } })) }
    })
    const { filesystem, url } = await Effect.runPromise(Scope.provide(open, scope))
    const asked = () => Effect.runPromise(Effect.map(plain(filesystem), (answer) => JSON.stringify(answer)))
    const [ours, theirs] = [JSON.parse(await get(url + path)), JSON.parse(await asked())]
    check(Array.isArray(theirs) ? ours.length === theirs.length : ours.content === theirs.content)
    return {
      ours: { name: "over HTTP", run: awaited(() => get(url + path)) },
      baseline: { name: "the filesystem itself", run: awaited(asked) },
      close: async () => {
        await Effect.runPromise(Scope.close(scope, Exit.void))
        rmSync(root, { recursive: true })
      }
    }
  }
})

export const cases: ReadonlyArray<Case> = [
  served("the tree of 50,000 files", 2, 7, "api/filesystem/tree", (fs) =>
    Effect.map(Stream.runCollect(fs.walk(".", { sizes: true })), (entries) =>
      entries.filter(({ kind }) => kind === "file").map(({ path, sizeBytes }) => ({ path, size_bytes: sizeBytes }))
    )
  ),
  served("a file", 20, 101, "api/filesystem/file?path=package-1/module-1.ts", (fs) =>
    Effect.map(fs.readString("package-1/module-1.ts"), (content) => ({ content }))
  )
]
