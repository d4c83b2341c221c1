/** Searches of whole trees in memory, beside the obvious loop over memfs and beside the same tree on the host. */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import { Volume } from "memfs"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import picomatch from "picomatch"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import type { GrepMatch } from "../../src/model/Entry.ts"
import type { Case, Side } from "../harness.ts"
import { awaited, check, times } from "../harness.ts"
import * as JavaScript from "../search/javascript.ts"
import { make as random } from "../search/random.ts"
import { sources } from "../search/text.ts"

const [files, directories] = [20_000, 1250]

/** Is in one line of each file. */
const everywhere = "knownToAll"
const nowhere = "knownToNone"

/** The paths and contents: 30 MB. */
const contents: ReadonlyMap<string, string> = (() => {
  const self = random(21)
  const text = sources(self)
  const all = new Map<string, string>()
  for (let i = 0; i < files; i++) {
    const directory = i % directories
    const lines = text(i)
      .slice(0, 1000 + self.below(930))
      .split("\n")
    lines[self.below(lines.length)] = `  const ${everywhere} = ${i}`
    all.set(`area${directory % 10}/part${directory % 125}/unit${directory}/module-${i}.ts`, `${lines.join("\n")}\n`)
  }
  return all
})()

type Branch = { [name: string]: string | Branch }

const treeOf = (all: ReadonlyMap<string, string>): Branch => {
  const top: Branch = {}
  for (const [path, text] of all) {
    const names = path.split("/")
    const last = names.pop()!
    let at = top
    for (const name of names) at = (at[name] ??= {}) as Branch
    at[last] = text
  }
  return top
}

const inMemfs = (): Volume => {
  const volume = new Volume()
  for (const [path, text] of contents) {
    volume.mkdirSync(dirname(`/tree/${path}`), { recursive: true })
    volume.writeFileSync(`/tree/${path}`, text)
  }
  return volume
}

type Answer = ReadonlyArray<string>

/** One way to answer: `run` is measured, and the answers are compared. */
interface Way extends Side {
  readonly answer: () => Promise<Answer>
  readonly close?: () => Promise<void>
}

const host = () => {
  const root = mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))
  for (const [path, text] of contents) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return { layer: PosixHost.layer({ root }), remove: () => rmSync(root, { recursive: true, force: true }) }
}

const service = async <A, E>(
  layer: Layer.Layer<Filesystem.Filesystem, E>,
  ask: (fs: Filesystem.Algebra) => Effect.Effect<ReadonlyArray<A>, unknown>,
  shown: (found: A) => string,
  remove = () => {}
): Promise<Way> => {
  const runtime = ManagedRuntime.make(layer)
  const asked = ask(await runtime.runPromise(Filesystem.Filesystem))
  return {
    name: "the service",
    run: awaited(() => runtime.runPromise(asked)),
    answer: async () => (await runtime.runPromise(asked)).map(shown),
    close: async () => {
      await runtime.dispose()
      remove()
    }
  }
}

const unbounded = { maxMatches: Number.POSITIVE_INFINITY }

const globbing = (fs: Filesystem.Algebra) => Effect.map(fs.glob("**/*.ts", unbounded), ({ matches }) => matches)

const grepping = (pattern: string) => (fs: Filesystem.Algebra) =>
  Effect.map(fs.grep(pattern, unbounded), ({ matches }) => matches)

const placeOf = ({ lineNumber, path }: GrepMatch): string => `${path}:${lineNumber}`

/** Walks memfs as programs do, and tests each path with picomatch. */
const globMemfs = (): Way => {
  const volume = inMemfs() as unknown as JavaScript.Readable
  const isMatch = picomatch("**/*.ts", { dot: true })
  const glob = (): Answer => {
    const found: Array<string> = []
    const visit = (directory: string): void => {
      for (const entry of volume.readdirSync(`/tree/${directory}`, { withFileTypes: true })) {
        const path = directory === "" ? entry.name : `${directory}/${entry.name}`
        if (entry.isDirectory()) visit(path)
        else if (isMatch(path)) found.push(path)
      }
    }
    visit("")
    return found
  }
  return { name: "memfs and picomatch", run: times(glob), answer: async () => glob() }
}

const grepMemfs = (pattern: string): Way => {
  const volume = inMemfs() as unknown as JavaScript.Readable
  const grep = () => JavaScript.naive(volume, "/tree", { pattern })
  return {
    name: "memfs, split, test",
    run: times(grep),
    answer: async () => grep().map(({ line, path }) => `${path}:${line}`)
  }
}

const compared = (
  name: string,
  bound: number,
  beside: string,
  make: () => Promise<readonly [ours: Way, baseline: Way]>
): Case => ({
  name: `memory: ${name} of 20,000 files`,
  target: `≤ ${bound} of ${beside}`,
  bound,
  figure: "ratio",
  count: 1,
  samples: 15,
  warmups: 5,
  make: async () => {
    const [ours, baseline] = await make()
    const [one, other] = [await ours.answer(), await baseline.answer()]
    check(one.toSorted().join("\n") === other.toSorted().join("\n"))
    return { ours, baseline, close: () => Promise.all([ours.close?.(), baseline.close?.()]) }
  }
})

const memoryGrep = (pattern: string) => service(InMemory.layer({ tree: treeOf(contents) }), grepping(pattern), placeOf)

const hostGrep = (pattern: string) => {
  const { layer, remove } = host()
  return service(layer, grepping(pattern), placeOf, remove)
}

export const cases: ReadonlyArray<Case> = [
  compared("glob", 0.5, "memfs with picomatch", async () => [
    await service(InMemory.layer({ tree: treeOf(contents) }), globbing, ({ path }) => path),
    globMemfs()
  ]),
  compared("grep with 20,000 hits", 0.9, "a loop over memfs", async () => [
    await memoryGrep(everywhere),
    grepMemfs(everywhere)
  ]),
  compared("grep with no hits", 0.3, "a loop over memfs", async () => [await memoryGrep(nowhere), grepMemfs(nowhere)]),
  compared("grep with 20,000 hits", 1, "PosixHost", async () => [await memoryGrep(everywhere), await hostGrep(everywhere)]),
  compared("grep with no hits", 1, "PosixHost", async () => [await memoryGrep(nowhere), await hostGrep(nowhere)])
]
