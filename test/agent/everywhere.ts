/**
 * One table for memory, a host and a container: calls, their answers, and the files afterwards, which must be the same. The
 * laws hold for the other backends and the combinators.
 */
import { assert } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { readOnly } from "../../src/filesystem/Decorator.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import { type Files, plant } from "../../src/testing/Files.ts"
import * as Podman from "../backends/container/podman.ts"
import { apart } from "../conformance/containers.ts"
import { has, needs } from "../faults/ground.ts"
import { inMemory } from "../scratch.ts"
import { differences, faultsOf, type Ground, type Outcome, type Place, type Row, run } from "./everywhereRun.ts"

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

const memoryOf = (files: Files, options: InMemory.InMemoryOptions = {}): Place<Algebra> =>
  Effect.orDie(Effect.flatMap(InMemory.make(options), (port) => Effect.as(plant(port, files), make(port))))

const plantedRoot = (files: Files): Place<string> =>
  Effect.gen(function* () {
    const path = yield* root
    yield* Effect.scoped(Effect.flatMap(PosixHost.make({ root: path }), (port) => plant(port, files)))
    return path
  }).pipe(Effect.orDie)

const hostOf = (files: Files): Place<Algebra> =>
  Effect.orDie(Effect.flatMap(plantedRoot(files), (root) => Effect.map(PosixHost.make({ root }), make)))

const archives = needs("snapshot tools on a host", () => has("git"), "apt-get install git") ? {} : ({ archives: true } as const)

export const memory: Ground = { name: "memory", make: memoryOf }
export const host: Ground = { name: "a host", make: hostOf, ...archives }
/** The lower filesystem is read-only, so that a write to it by mistake fails. */
export const anOverlay: Ground = {
  name: "an overlay on a host",
  make: (files) => Effect.map(Effect.all([memoryOf({}), hostOf(files)]), ([upper, lower]) => overlay(upper)(readOnly(lower)))
}

const container = Podman.use("tools in containers") ? apart(Podman.gnuRoot) : undefined

const apartOf = (files: Files): Place<Algebra> =>
  Effect.map(Effect.orDie(Layer.build(container!.with({}, files))), (built) => Context.get(built, Filesystem))

const aContainer: ReadonlyArray<Ground> = container === undefined ? [] : [{ name: "a container, apart", make: apartOf }]

/**
 * Runs the row in memory, on a host and, if `isInContainer`, in a container, and compares the answers with the expectation and
 * with each other.
 */
export const holds = (row: Row, isInContainer: boolean): Effect.Effect<void> =>
  Effect.gen(function* () {
    const faults = new Map<string, Array<string>>()
    let first: Outcome | undefined
    for (const ground of [memory, host, ...(isInContainer && row.few !== true ? aContainer : [])]) {
      const outcome = yield* run(row, ground)
      first ??= outcome
      for (const fault of [...faultsOf(row, outcome), ...differences(outcome, first, ground)]) {
        faults.set(fault, [...(faults.get(fault) ?? []), ground.name])
      }
    }
    assert.deepStrictEqual(Object.fromEntries(faults), {})
  })
