/**
 * The cost of confinement: calls for a file five directories deep, with a warm cache. No exchange of directories and
 * links can mislead a `race-free` root; the checked walk is that of a `best-effort` root.
 */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Exit from "effect/Exit"
import { lstatSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import * as promises from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Confined } from "../../src/backends/posix/place.ts"
import type { Whole } from "../../src/port/Backend.ts"
import { readSmallSync, stat } from "../../src/backends/posix/read.ts"
import * as HostRoot from "../../src/backends/posix/confinement.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Backend } from "../../src/port/Backend.ts"
import type { Case } from "../harness.ts"
import { awaited, check, effects, times } from "../harness.ts"
import { performed } from "../../test/performed.ts"

const path = "a/b/c/d/e/file.txt" as FsPath

interface Ground {
  readonly real: string
  readonly confined: Confined
  readonly checked: Confined
  readonly port: Backend
}

const ready = async (): Promise<Ground & { readonly close: () => Promise<void> }> => {
  const root = mkdtempSync(join(tmpdir(), "fs-algebra-bench-"))
  const real = join(root, path)
  mkdirSync(join(real, ".."), { recursive: true })
  writeFileSync(real, Buffer.alloc(4096, 7))
  const confined = HostRoot.open(root) as Confined
  const checked = HostRoot.open(root, "best-effort") as Confined
  check(confined.level === "race-free" && checked.level === "best-effort")
  const scope = Effect.runSync(Scope.make())
  const port = await Effect.runPromise(Scope.provide(PosixHost.make({ root }), scope))
  const close = async () => {
    confined.close()
    checked.close()
    await Effect.runPromise(Scope.close(scope, Exit.void))
    rmSync(root, { recursive: true })
  }
  return { real, confined, checked, port, close }
}

const statIn = (confined: Confined) => () => stat(confined, path)
const readIn = (confined: Confined) => () => readSmallSync(confined, path, 1e6, "allow") as Whole | undefined

const sizeOf = (found: unknown): number | undefined => (found as { sizeBytes?: number } | undefined)?.sizeBytes

const lookedUp = (
  name: string,
  target: string,
  bound: number,
  baseline: (ground: Ground) => (count: number) => unknown
): Case => ({
  name: `confinement: lstat beside ${name}`,
  target,
  bound,
  figure: "ratio",
  count: 5000,
  samples: 15,
  make: async () => {
    const ground = await ready()
    check(sizeOf(statIn(ground.confined)()) === 4096 && sizeOf(statIn(ground.checked)()) === 4096)
    return {
      ours: { name: "ours", run: times(statIn(ground.confined)) },
      baseline: { name, run: baseline(ground) },
      close: ground.close
    }
  }
})

const wasRead = (
  name: string,
  target: string,
  bound: number,
  baseline: (ground: Ground) => (count: number) => unknown
): Case => ({
  name: `confinement: read of 4 KiB beside ${name}`,
  target,
  bound,
  figure: "ratio",
  count: 2000,
  samples: 15,
  make: async () => {
    const ground = await ready()
    for (const confined of [ground.confined, ground.checked]) {
      check(readIn(confined)()?.bytes.every((byte) => byte === 7) === true)
    }
    return {
      ours: { name: "ours", run: times(readIn(ground.confined)) },
      baseline: { name, run: baseline(ground) },
      close: ground.close
    }
  }
})

const throughPort = (
  name: string,
  ours: (port: Backend) => Effect.Effect<unknown, unknown>,
  baseline: (real: string) => Promise<unknown>
): Case => ({
  name: `confinement: ${name} of the port beside node:fs/promises`,
  target: "≤ 1 of node:fs/promises",
  bound: 1,
  figure: "ratio",
  count: 1000,
  samples: 15,
  make: async () => {
    const ground = await ready()
    return {
      ours: { name: "ours", run: effects(ours(ground.port)) },
      baseline: { name: "promises", run: awaited(() => baseline(ground.real)) },
      close: ground.close
    }
  }
})

export const cases: ReadonlyArray<Case> = [
  lookedUp("lstatSync", "≤ 6 of lstatSync", 6, ({ real }) => times(() => lstatSync(real))),
  lookedUp("the checked walk", "≤ 1 of the checked walk", 1, ({ checked }) => times(statIn(checked))),
  wasRead("readFileSync", "≤ 3 of readFileSync", 3, ({ real }) => times(() => readFileSync(real))),
  wasRead("the checked walk", "≤ 1 of the checked walk", 1, ({ checked }) => times(readIn(checked))),
  throughPort(
    "stat",
    (port) => port.stat(path),
    (real) => promises.lstat(real)
  ),
  throughPort(
    "read",
    (port) => performed(port, { _tag: "Read", path, maxBytes: 1e6 }),
    (real) => promises.readFile(real)
  ),
  throughPort(
    "write",
    (port) => port.write<never, never>(path, new Uint8Array(4096).fill(7), "replace"),
    (real) => promises.writeFile(`${real}.tmp`, Buffer.alloc(4096, 7)).then(() => promises.rename(`${real}.tmp`, real))
  )
]
