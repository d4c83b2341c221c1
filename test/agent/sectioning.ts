/** What the tests of sections and prompts have in common: a place of their own for everything temporary, trees to mount, backends that are watched. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { mkdirSync, mkdtempSync, readdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Session from "../../src/workspace/Session.ts"
import { inMemory } from "../scratch.ts"

/** A directory that nobody else has. */
export const directory = (name = "sections-"): string => mkdtempSync(join(inMemory(), name))

export const plant = (root: string, files: Readonly<Record<string, string>>): void => {
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), content)
  }
}

/** Of a project to mount from. */
export const project = (): string => {
  const root = directory("project-")
  plant(root, { "src/main.py": "print('hello')\n", "src/data.bin": "\0", "docs/intro.md": "# Intro\n" })
  return root
}

/** Everything temporary that is made from here on is made in a directory of this process, which is answered. */
export const captureTemporary = (): string => {
  const place = directory("temporary-")
  process.env["TMPDIR"] = place
  return place
}

export const names = (directory: string): ReadonlyArray<string> => readdirSync(directory).sort()

export const session = (options?: Session.Options): Effect.Effect<Session.Operations> => Effect.orDie(Session.make(options))

/** A filesystem in memory that counts how often it is made and let go. */
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
