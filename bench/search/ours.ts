/** The service as programs use it: a layer that stays open, and only public operations. */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Stream from "effect/Stream"
import { readdirSync, readFileSync } from "node:fs"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import type { Outcome, Peer, Question } from "./peer.ts"

export interface Ours {
  readonly fs: Filesystem.Algebra
  readonly run: <A, E>(effect: Effect.Effect<A, E>) => Promise<A>
  readonly close: () => Promise<void>
}

const open = async <E>(layer: Layer.Layer<Filesystem.Filesystem, E>): Promise<Ours> => {
  const runtime = ManagedRuntime.make(layer)
  return { fs: await runtime.runPromise(Filesystem.Filesystem), run: runtime.runPromise, close: runtime.dispose }
}

export const onHost = (root: string): Promise<Ours> => open(PosixHost.layer({ root }))

type Branch = { [name: string]: Uint8Array | Branch }

const treeOf = (directory: string): Branch => {
  const branch: Branch = {}
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = `${directory}/${entry.name}`
    if (entry.isDirectory()) branch[entry.name] = treeOf(path)
    else if (entry.isFile()) branch[entry.name] = readFileSync(path)
  }
  return branch
}

export const inMemory = (root: string): Promise<Ours> => open(InMemory.layer({ tree: treeOf(root) }))

/** Collects or only counts the values of a stream, and notes when the first of them came. */
const drained = <A, E>(stream: Stream.Stream<A, E>, into?: Array<A>): Effect.Effect<Outcome, E> =>
  Effect.suspend(() => {
    const start = performance.now()
    let [firstMs, results] = [0, 0]
    const take = (chunk: ReadonlyArray<A>) => {
      if (results === 0) firstMs = performance.now() - start
      results += chunk.length
      if (into !== undefined) for (const value of chunk) into.push(value)
    }
    return Effect.map(
      Stream.runForEachArray(stream, (chunk) => Effect.sync(() => take(chunk))),
      () => (results === 0 ? { results } : { firstMs, results })
    )
  })

const collected = async <A, E>(self: Ours, stream: Stream.Stream<A, E>): Promise<ReadonlyArray<A>> => {
  const all: Array<A> = []
  await self.run(drained(stream, all))
  return all
}

const pathsOf = (entries: ReadonlyArray<{ readonly path: string; readonly isFile: boolean }>): ReadonlyArray<string> =>
  entries.filter(({ isFile }) => isFile).map(({ path }) => path)

export const walk = (self: Ours, options: Filesystem.WalkOptions = {}): ReadonlyArray<Peer> => {
  const stream = self.fs.walk(".", options)
  const answer = async () => pathsOf(await collected(self, stream))
  return [
    { id: "ours", name: "fs.walk, entries in order", run: () => self.run(drained(stream, [])), answer },
    { id: "ours-stream", name: "fs.walk, counted", run: () => self.run(drained(stream)), answer }
  ]
}

const unbounded = { maxMatches: Number.POSITIVE_INFINITY }

export const glob = (self: Ours, pattern: string, options: Filesystem.GlobOptions = {}): ReadonlyArray<Peer> => {
  const all = self.fs.glob(pattern, { ...options, ...unbounded })
  const stream = self.fs.globStream(pattern, options)
  return [
    {
      id: "ours",
      name: "fs.glob, an array in order",
      run: async () => ({ results: (await self.run(all)).matches.length }),
      answer: async () => pathsOf((await self.run(all)).matches)
    },
    {
      id: "ours-stream",
      name: "fs.globStream, counted",
      run: () => self.run(drained(stream)),
      answer: async () => pathsOf(await collected(self, stream))
    }
  ]
}

const placed = (matches: ReadonlyArray<{ readonly path: string; readonly lineNumber: number }>): ReadonlyArray<string> =>
  matches.map(({ lineNumber, path }) => `${path}:${lineNumber}`)

export const grep = (self: Ours, { pattern, ...options }: Question): ReadonlyArray<Peer> => {
  const all = self.fs.grep(pattern, { ...options, ...unbounded })
  const stream = self.fs.grepStream(pattern, options)
  return [
    {
      id: "ours",
      name: "fs.grep, an array in order",
      run: async () => ({ results: (await self.run(all)).matches.length }),
      answer: async () => placed((await self.run(all)).matches)
    },
    {
      id: "ours-stream",
      name: "fs.grepStream, counted",
      run: () => self.run(drained(stream)),
      answer: async () => placed(await collected(self, stream))
    }
  ]
}
