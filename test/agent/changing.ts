/** Filesystems with the same tree for tests of tools and changes. */
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Decorator from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import * as Overlay from "../../src/filesystem/Overlay.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { CommonOptions } from "../../src/port/Rules.ts"
import { adversarial, type Step } from "../../src/testing/Faults.ts"
import { type Files, plant } from "../../src/testing/Files.ts"

/** Every operation in which a fault can be injected. */
export const every: ReadonlyArray<Step> = [
  "Stat",
  "List",
  "Open",
  "Read",
  "Write",
  "MakeDirectory",
  "Remove",
  "Rename",
  "ReadLink",
  "MakeLink",
  "SetAttributes"
]

export const any = /^/
/**
 * The paths whose operations can be interrupted: all except the temporary directory of a transaction, whose removal is
 * uninterruptible.
 */
export const interruptible = /^(?!\.~fsa-exchange-[0-9a-z-]+\.tmp$)/

export const p = (path: string): FsPath => path as FsPath
export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
export const versionOf = (content: string | Uint8Array): string => createHash("sha256").update(content).digest("hex")

export const directory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(Fs.existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "fs-algebra-agent-"))),
  (path) => Effect.sync(() => Fs.rmSync(path, { recursive: true, force: true }))
)

export type Ground = (files: Files) => Effect.Effect<Algebra, never, Scope.Scope>

export const memory: Ground = (files) =>
  Effect.gen(function* () {
    const port = yield* InMemory.make()
    yield* plant(port, files)
    return make(port)
  }).pipe(Effect.orDie)

/** Makes a directory of the host with the files. The options apply only after the files have been written. */
export const host = (files: Files, options?: CommonOptions): ReturnType<Ground> =>
  Effect.gen(function* () {
    const root = yield* directory
    yield* Effect.scoped(Effect.flatMap(PosixHost.make({ root }), (port) => plant(port, files)))
    return make(yield* PosixHost.make({ root, ...options }))
  }).pipe(Effect.orDie)

const overlay: Ground = (files) =>
  Effect.gen(function* () {
    const lower = yield* host(files)
    const upper = yield* memory({})
    return Overlay.overlay(upper)(lower)
  })

const within: Ground = (files) =>
  Effect.gen(function* () {
    const whole = yield* host(Object.fromEntries(Object.entries(files).map(([path, entry]) => [`inside/${path}`, entry])))
    return yield* Decorator.subdirectory("inside")(whole)
  }).pipe(Effect.orDie)

export const grounds: Readonly<Record<string, Ground>> = {
  memory,
  "a host": host,
  "an overlay": overlay,
  "a subdirectory of a host": within,
  "an adversarial filesystem": (files) => Effect.map(memory(files), adversarial)
}

/** Generates one of the values. */
export const oneOf = <const A>(values: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.map(
    Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: values.length - 1 }))),
    (i) => values[i]!
  )
