/**
 * Helpers for the tests of sections and prompts: a temporary directory per process, trees to mount, and backends that
 * count their uses.
 */
import { afterAll } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Session from "../../src/workspace/Session.ts"
import { inMemory } from "../scratch.ts"

/** Creates a new directory. */
export const directory = (name = "sections-"): string => mkdtempSync(join(inMemory(), name))

export const plant = (root: string, files: Readonly<Record<string, string>>): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
}

/** Creates a project directory to mount from. */
export const project = (): string => {
  const root = directory("project-")
  plant(root, { "src/main.py": "print('hello')\n", "src/data.bin": "\0", "docs/intro.md": "# Intro\n" })
  return root
}

/** Redirects all temporary files to a directory of this process, and returns that directory. */
export const captureTemporary = (): string => {
  const [before, place] = [process.env["TMPDIR"], directory("temporary-")]
  process.env["TMPDIR"] = place
  afterAll(() => {
    if (before === undefined) delete process.env["TMPDIR"]
    else process.env["TMPDIR"] = before
  })
  return place
}

export const names = (directory: string): ReadonlyArray<string> => readdirSync(directory).sort()

export const session = (options?: Session.Options): Effect.Effect<Session.Operations> => Effect.orDie(Session.make(options))

/** Returns a filesystem in memory that counts how often it is opened and released. */
export const counted = <E = never>(before: Effect.Effect<void, E> = Effect.void) => {
  const count = { made: 0, begun: 0, gone: 0 }
  const layer = Layer.effect(
    Filesystem,
    Effect.gen(function* () {
      yield* Effect.acquireRelease(
        Effect.sync(() => void count.begun++),
        () => Effect.sync(() => void count.gone++)
      )
      yield* before
      count.made++
      return yield* Filesystem
    })
  ).pipe(Layer.provide(Layer.suspend(() => InMemory.layer())))
  return { count, layer }
}
