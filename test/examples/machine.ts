/** Makes a directory on disk with the given files for one example, and removes it with the scope. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { inMemory } from "../scratch.ts"

export const directory = (files: Readonly<Record<string, string>> = {}): Effect.Effect<string, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const root = Fs.mkdtempSync(join(inMemory(), "example-"))
      for (const [path, text] of Object.entries(files)) {
        Fs.mkdirSync(dirname(join(root, path)), { recursive: true })
        Fs.writeFileSync(join(root, path), text)
      }
      return root
    }),
    (root) => Effect.sync(() => Fs.rmSync(root, { recursive: true, force: true }))
  )
