import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { readOnly } from "../../src/filesystem/Decorator.ts"
import { type Algebra, decorate, type Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Branch from "../../src/journal/Branch.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import * as Limits from "../../src/model/Limits.ts"
import { Bench } from "../../src/testing/Law.ts"
import { directory, onDisk } from "./filesystems.ts"

export const leafOf = (fs: Algebra, options: Leaf.LeafOptions = {}) =>
  Effect.flatMap(Leaf.make(fs, { limits: Limits.unlimited, extended: true, ...options }), (leaf) => leaf.start)

export const through = (
  fs: Algebra,
  branch: Branch.Options = {},
  leaf: Leaf.LeafOptions = {}
): Layer.Layer<Filesystem, unknown> =>
  Layer.provide(
    Branch.layer({ extended: true, ...branch }),
    Layer.provideMerge(Layer.effectDiscard(leafOf(fs, { preservePermissions: true, ...leaf })), Journal.layerMemory)
  )

export const overMemory: Layer.Layer<Filesystem, unknown> = Layer.unwrap(
  Effect.map(InMemory.make(), (port) => through(make(port)))
)

export const overHost: Layer.Layer<Filesystem, unknown> = Layer.unwrap(
  Effect.gen(function* () {
    const root = yield* directory
    const fs = make(yield* PosixHost.make({ root }))
    return Layer.merge(through(fs, { root }), Layer.succeed(Bench, onDisk(root)))
  })
)

/** A read-only view of a branch. The filesystem below it is writable, so that a test can plant its files. */
export const readOnlyBranch: Layer.Layer<Filesystem, unknown> = Layer.unwrap(
  Effect.map(InMemory.make(), (port) => {
    const writable = make(port)
    return Layer.merge(decorate(readOnly)(through(writable)), Layer.succeed(Bench, { writable }))
  })
)

/** A branch with only the thirteen basic kinds of entry. Its initial files are written to the leaf's filesystem. */
export const thirteen: Layer.Layer<Filesystem, unknown> = Layer.unwrap(
  Effect.map(InMemory.make(), (port) => {
    const writable = make(port)
    return Layer.merge(through(writable, { extended: false }, { extended: false }), Layer.succeed(Bench, { writable }))
  })
)
