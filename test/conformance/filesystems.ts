import { NodeFileSystem } from "@effect/platform-node"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { execFileSync } from "node:child_process"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { quota, readOnly, retry, subdirectory, traced } from "../../src/filesystem/Decorator.ts"
import { type Algebra, decorate, Filesystem, layer, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import { fromFileSystem, toFileSystem } from "../../src/filesystem/Platform.ts"
import { parallelExplore } from "../../src/port/parallelExplorer.ts"
import { type Files, plant } from "../../src/testing/Files.ts"
import { Bench } from "../../src/testing/Law.ts"
import * as Session from "../../src/workspace/Session.ts"
import { checked } from "../backends/posixHost.ts"
import { isSoak, runs } from "../runs.ts"
import { inMemory as inMemory_ } from "../scratch.ts"

/** The number of random programs that are compared with the model, for each filesystem. */
export const programs = runs(200)

/** The number of random programs for filesystems with a round trip in each step. */
export const containerPrograms = isSoak ? 2000 : 30

/** A fresh directory, removed with its scope. */
export const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(inMemory_(), "law-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

/** Returns functions that make FIFOs, and a file whose name is not UTF-8, on disk. */
export const onDisk = (root: string): Bench => ({
  makeOther: (path) => Effect.sync(() => void execFileSync("mkfifo", [join(root, path)])),
  makeUnaddressable: Effect.sync(() =>
    Fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x61, 0xff])]), "hit")
  )
})

const inDirectory = <E>(
  layer: (root: string) => Layer.Layer<Filesystem, E>,
  bench: Partial<Bench> = {}
): Layer.Layer<Filesystem, E> =>
  Layer.unwrap(Effect.map(directory, (root) => Layer.merge(layer(root), Layer.succeed(Bench, { ...onDisk(root), ...bench }))))

export const inMemory = InMemory.layer()
export const caseless = InMemory.layer({ caseInsensitive: true })

export const inSession = (options: InMemory.InMemoryOptions = {}): Layer.Layer<Filesystem, unknown> =>
  Layer.unwrap(Effect.map(Session.make(), (session) => InMemory.layerSession(session, options)))

export const posixHost = inDirectory((root) => PosixHost.layer({ root }))

/** A host on a simulated machine without /proc, where descriptors are not visible as files. */
export const checkedHost = inDirectory((root) => layer(checked({ root })))

/** Creates a tree without options, and then serves it with the options, which may forbid writes. */
export const posixHostWith = (
  options: Omit<PosixHost.PosixHostOptions, "root">,
  files: Files
): Layer.Layer<Filesystem, unknown> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const root = yield* directory
      yield* Effect.flatMap(Filesystem, (fs) => plant(fs.port, files)).pipe(
        Effect.provide(PosixHost.layer({ root })),
        Effect.orDie
      )
      return PosixHost.layer({ root, ...options })
    })
  )

export const linkedRoot = inDirectory((root) => {
  Fs.mkdirSync(`${root}.real`)
  Fs.rmdirSync(root)
  Fs.renameSync(`${root}.real`, `${root}.d`)
  Fs.symlinkSync(`${root}.d`, root)
  return Layer.merge(
    PosixHost.layer({ root }),
    Layer.effectDiscard(Effect.addFinalizer(() => Effect.sync(() => Fs.rmSync(`${root}.d`, { recursive: true, force: true }))))
  )
})

/** Effect's FileSystem over Node. It decodes the names that it lists, so names that are not UTF-8 cannot be reached. */
export const nodeFileSystem = inDirectory((root) => Layer.provide(fromFileSystem({ root }), NodeFileSystem.layer), {
  makeUnaddressable: undefined
})

export const another = Effect.map(InMemory.make(), make)

/**
 * Our filesystem, converted to effect's FileSystem and back. Links that lead out of the root cannot be created through it, so
 * the bench creates them in the filesystem below.
 */
export const thereAndBack: Layer.Layer<Filesystem, unknown> = Layer.unwrap(
  Effect.map(another, (writable) =>
    Layer.merge(
      Layer.provide(fromFileSystem({ root: "/" }), Layer.provide(toFileSystem, Layer.succeed(Filesystem, writable))),
      Layer.succeed(Bench, { writable })
    )
  )
)

export const decorated = (f: (self: Algebra) => Algebra) => decorate(f)(InMemory.layer())

export const combinators: ReadonlyArray<readonly [name: string, layer: Layer.Layer<Filesystem, unknown>]> = [
  [
    "subdirectory",
    decorate((self: Algebra) =>
      Effect.gen(function* () {
        yield* self.write("beside/secret", "not to be seen")
        yield* self.mkdir("work/shop")
        return yield* subdirectory("work/shop")(self)
      })
    )(InMemory.layer())
  ],
  ["quota", decorate(quota({ maxBytes: 1e9, maxFiles: 1e6 }))(InMemory.layer())],
  ["overlay", decorate((lower: Algebra) => Effect.map(another, (upper) => overlay(upper)(lower)))(InMemory.layer())],
  [
    "mount, the mounted part",
    decorate((self: Algebra) =>
      Effect.gen(function* () {
        return yield* subdirectory("a/mounted")(yield* mount("a/mounted", yield* another)(self))
      })
    )(InMemory.layer())
  ],
  [
    "mount, the part around it",
    decorate((self: Algebra) =>
      Effect.gen(function* () {
        const whole = yield* mount("mounted", yield* another)(self)
        yield* whole.mkdir("outer")
        return yield* subdirectory("outer")(whole)
      })
    )(InMemory.layer())
  ]
]

/** Combinators that change no result. */
export const passThrough: ReadonlyArray<readonly [name: string, layer: Layer.Layer<Filesystem, unknown>]> = [
  ["traced", decorated(traced)],
  ["retry", decorated(retry({ times: 2 }))],
  ["parallel listing", decorated((self) => make({ ...self.port, explore: parallelExplore(self.port, 4) }))]
]

/** A read-only view. The filesystem below it is writable, so that a test can plant its files. */
export const readOnlyView: Layer.Layer<Filesystem> = Layer.unwrap(
  Effect.map(another, (writable) =>
    Layer.merge(Layer.succeed(Filesystem, readOnly(writable)), Layer.succeed(Bench, { writable }))
  )
)
