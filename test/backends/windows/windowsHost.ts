/** The Windows port over a simulated disk, which enforces rules that the disks of our machines do not enforce. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { is as isFault } from "../../../src/model/Fault.ts"
import type { WindowsHostOptions } from "../../../src/backends/hostRoot.ts"
import { backend } from "../../../src/backends/windows/port.ts"
import * as Root from "../../../src/backends/windows/walk.ts"
import { type Filesystem, layer } from "../../../src/filesystem/Filesystem.ts"
import type { Backend } from "../../../src/port/Backend.ts"
import { enforce } from "../../../src/port/Rules.ts"
import { type Files, plant } from "../../../src/testing/Files.ts"
import { Bench } from "../../../src/testing/Law.ts"
import { SimulatedDisk, type SimulatedDiskOptions } from "./simulatedDisk.ts"

type Options = Omit<WindowsHostOptions, "root">

export const root = "C:\\work\\root"

export const portOn = (
  disk: SimulatedDisk,
  options: Options & { readonly root?: string } = {}
): Effect.Effect<Backend, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const opened = Root.open(disk, { root, ...options })
        if (isFault(opened)) throw new Error(`no root: ${opened._tag}`)
        return opened
      }),
      (walker) => Effect.sync(walker.close)
    ),
    (walker) => enforce(backend(walker, { root, ...options }))
  )

export interface Host {
  readonly disk: SimulatedDisk
  readonly port: Backend
}

export const host = (options: Options = {}, of?: SimulatedDiskOptions): Effect.Effect<Host, never, Scope.Scope> =>
  Effect.suspend(() => {
    const disk = new SimulatedDisk(of)
    disk.putDirectory(root)
    disk.putDirectory("C:\\work\\outside")
    return Effect.map(portOn(disk, options), (port) => ({ disk, port }))
  })

const bench = (disk: SimulatedDisk): Bench => ({
  makeUnaddressable: Effect.sync(() => disk.put(`${root}\\CON.txt`, "hit")),
  plainEnds: true
})

/** Serves a filesystem on a fresh disk for each test. */
export const simulated = (options: Options = {}, of?: SimulatedDiskOptions): Layer.Layer<Filesystem> =>
  Layer.unwrap(
    Effect.map(host(options, of), ({ disk, port }) =>
      Layer.merge(layer(Effect.succeed(port)), Layer.succeed(Bench, bench(disk)))
    )
  )

/** Serves a tree with options that may forbid the filesystem to write it. */
export const simulatedWith = (options: Options, files: Files): Layer.Layer<Filesystem, unknown> =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { disk, port } = yield* host()
      yield* plant(port, files)
      return layer(portOn(disk, options))
    })
  )
