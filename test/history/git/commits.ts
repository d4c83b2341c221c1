/** Snapshots that git's own fast-import writes into a store. */
import * as Effect from "effect/Effect"
import { randomUUID } from "node:crypto"
import type { StoreFault } from "../../../src/history/errors.ts"
import type { Store } from "../../../src/history/git/store.ts"

export type Tree = Readonly<Record<string, string | Buffer>>

const data = (bytes: string | Buffer): Buffer =>
  Buffer.concat([Buffer.from(`data ${Buffer.byteLength(bytes)}\n`), Buffer.from(bytes), Buffer.from("\n")])

const program = (tree: Tree, seconds: number, message: string, ref: string): Buffer =>
  Buffer.concat([
    Buffer.from(
      `commit ${ref}\nmark :1\nauthor fs-algebra <fs-algebra@localhost> ${seconds} +0000\ncommitter fs-algebra <fs-algebra@localhost> ${seconds} +0000\n`
    ),
    data(message),
    ...Object.entries(tree).flatMap(([path, bytes]) => [Buffer.from(`M 100644 inline ${path}\n`), data(bytes)]),
    // fast-import needs a reference for the commit. The input then deletes the reference.
    Buffer.from(`get-mark :1\nreset ${ref}\nfrom ${"0".repeat(40)}\n\ndone\n`)
  ])

/** Writes a commit of the tree as a separate pack, without a reference to the commit. */
export const commit = (store: Store, tree: Tree, seconds = 1, message = "a snapshot"): Effect.Effect<string, StoreFault> =>
  Effect.map(
    store.git.run(["-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--force", "--done"], {
      input: program(tree, seconds, message, "refs/scratch")
    }),
    ({ stdout }) => stdout.toString().trim()
  )

export interface Taken {
  readonly id: string
  readonly commit: string
}

export const snapshot = (store: Store, tree: Tree, seconds = 1, message = "a snapshot"): Effect.Effect<Taken, StoreFault> =>
  Effect.gen(function* () {
    const id = randomUUID()
    const made = yield* store.withoutRemoval(
      Effect.tap(commit(store, tree, seconds, message), (made) => store.snapshots.put(id, made))
    )
    return { id, commit: made }
  })
