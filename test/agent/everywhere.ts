/** Runs one table of tool calls on every filesystem. Answers and resulting files must be the same everywhere. */
import { NodeFileSystem } from "@effect/platform-node"
import { assert } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Container from "../../src/backends/Container.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { readOnly, subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import { fromFileSystem } from "../../src/filesystem/Platform.ts"
import * as Remote from "../../src/remote/Remote.ts"
import { type Files, plant } from "../../src/testing/Files.ts"
import * as Podman from "../backends/container/podman.ts"
import { host as simulatedHost } from "../backends/windows/windowsHost.ts"
import { apart } from "../conformance/containers.ts"
import { has, needs } from "../faults/ground.ts"
import { unixAddress } from "../remote/transports.ts"
import { isSoak } from "../runs.ts"
import { inMemory } from "../scratch.ts"
import {
  differences,
  faultsOf,
  type Ground,
  memory,
  memoryOf,
  type Outcome,
  type Place,
  type Row,
  run
} from "./everywhereRun.ts"

export { memory }

/** A temporary root, with a file beside it that links can lead to. */
const root: Place<string> = Effect.map(
  Effect.acquireRelease(
    Effect.sync(() => Fs.mkdtempSync(join(inMemory(), "everywhere-"))),
    (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
  ),
  (path) => {
    Fs.writeFileSync(join(path, "outside.txt"), "secret\n")
    Fs.mkdirSync(join(path, "root"))
    return join(path, "root")
  }
)

const plantedRoot = (files: Files): Place<string> =>
  Effect.gen(function* () {
    const path = yield* root
    yield* Effect.scoped(Effect.flatMap(PosixHost.make({ root: path }), (port) => plant(port, files)))
    return path
  }).pipe(Effect.orDie)

const hostOf = (files: Files): Place<Algebra> =>
  Effect.orDie(Effect.flatMap(plantedRoot(files), (root) => Effect.map(PosixHost.make({ root }), make)))

const below = (path: string, files: Files): Files =>
  Object.fromEntries(Object.entries(files).map(([name, entry]) => [`${path}/${name}`, entry]))

const within = (path: string, whole: Place<Algebra>): Place<Algebra> =>
  Effect.orDie(
    Effect.gen(function* () {
      const fs = yield* whole
      yield* fs.mkdir(path)
      return yield* subdirectory(path)(fs)
    })
  )

const mounted = (at: string, inner: Place<Algebra>, outer: Place<Algebra>): Place<Algebra> =>
  Effect.orDie(
    Effect.gen(function* () {
      return yield* mount(at, yield* inner)(yield* outer)
    })
  )

const outside: Files = { "outside.txt": "secret\n" }

const archives = needs("snapshot tools on a host", () => has("git"), "apt-get install git") ? {} : ({ archives: true } as const)

export const host: Ground = { name: "a host", make: hostOf, ...archives }
/** An overlay whose lower filesystem is read-only, so that an accidental write to it fails. */
export const anOverlay: Ground = {
  name: "an overlay on a host",
  make: (files) => Effect.map(Effect.all([memoryOf({}), hostOf(files)]), ([upper, lower]) => overlay(upper)(readOnly(lower)))
}

export const caseless: Ground = {
  name: "memory that ignores case",
  make: (files) => memoryOf(files, { caseInsensitive: true }),
  caseless: true
}

/** A simulated disk with the rules of Windows. */
export const windows: Ground = {
  name: "a Windows disk",
  caseless: true,
  modeless: true,
  make: (files) =>
    Effect.orDie(
      Effect.flatMap(simulatedHost({}, { allowSymlinks: true }), ({ port }) => Effect.as(plant(port, files), make(port)))
    )
}

/** A directory of a host, used through a server on a Unix socket. */
const served: Ground = {
  name: "a served host",
  make: (files) =>
    Effect.gen(function* () {
      const address = yield* unixAddress
      const listening = yield* Effect.provideService(Remote.listen(address), Filesystem, yield* hostOf(files))
      return Context.get(yield* Layer.build(Remote.layerUrl(listening)), Filesystem)
    }).pipe(Effect.orDie)
}

const container = Podman.use("tools in containers") ? apart(Podman.gnuRoot) : undefined

const apartOf = (files: Files): Place<Algebra> =>
  Effect.map(Effect.orDie(Layer.build(container!.with({}, files))), (built) => Context.get(built, Filesystem))

const sharedOf = (files: Files): Place<Algebra> =>
  Effect.gen(function* () {
    const hostDirectory = yield* plantedRoot(files)
    const layer = Container.layer({ image: { rootfs: Podman.gnuRoot() }, hostDirectory })
    return Context.get(yield* Layer.build(Layer.provide(layer, Podman.services)), Filesystem)
  }).pipe(Effect.orDie)

const containers: ReadonlyArray<Ground> =
  container === undefined
    ? []
    : [
        { name: "a container with files of its own", make: apartOf },
        { name: "a directory shared with a container", make: sharedOf, ...archives }
      ]

/** The filesystems under test. All others are compared with the first. */
export const grounds: ReadonlyArray<Ground> = [
  memory,
  host,
  anOverlay,
  {
    name: "an overlay on memory",
    make: (files) => Effect.map(Effect.all([hostOf({}), memoryOf(files)]), ([upper, lower]) => overlay(upper)(readOnly(lower)))
  },
  { name: "a subdirectory of a host", make: (files) => within("side", hostOf({ ...below("side", files), ...outside })) },
  {
    name: "a mounted filesystem",
    make: (files) => within("mount", mounted("mount", hostOf(files), memoryOf(outside)))
  },
  {
    name: "a filesystem under a mount",
    make: (files) => within("around", mounted("mount", memoryOf({}), memoryOf({ ...below("around", files), ...outside })))
  },
  {
    name: "Node's FileSystem",
    make: (files) =>
      Effect.gen(function* () {
        const path = yield* plantedRoot(files)
        const built = yield* Layer.build(Layer.provide(fromFileSystem({ root: path }), NodeFileSystem.layer))
        return Context.get(built, Filesystem)
      }).pipe(Effect.orDie)
  },
  caseless,
  windows,
  served,
  ...containers
]

const suits = (ground: Ground, { cases, few }: Row): boolean =>
  (ground.caseless !== true || cases !== true) && (few !== true || ground === memory || ground === host || ground === anOverlay)

/**
 * Tests whether a row runs on a filesystem. Memory and a host run every row. Other filesystems run a share of the rows,
 * because each call in a container starts processes. The soak runs every row everywhere.
 */
const isDue = (ground: Ground, number: number): boolean => {
  if (isSoak || ground === memory || ground === host) return true
  return (number + grounds.indexOf(ground)) % (containers.includes(ground) ? 8 : 4) === 0
}

/** Runs a row of the table on the filesystems, and compares the answers with the expectation and with each other. */
export const holds = (row: Row, number: number): Effect.Effect<void> =>
  Effect.gen(function* () {
    const faults = new Map<string, Array<string>>()
    let first: Outcome | undefined
    for (const ground of grounds) {
      if (!suits(ground, row) || !isDue(ground, number)) continue
      const outcome = yield* run(row, ground)
      first ??= outcome
      for (const fault of [...faultsOf(row, outcome), ...differences(outcome, first, ground)]) {
        faults.set(fault, [...(faults.get(fault) ?? []), ground.name])
      }
    }
    assert.deepStrictEqual(Object.fromEntries(faults), {})
  })
