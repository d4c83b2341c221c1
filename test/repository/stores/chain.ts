/**
 * A chain of commits that several processes extend until they are killed. Each blob names the blob before it, so the chain shows
 * every commit that was ever made, in order.
 */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { Opened } from "../../../src/testing/stores/law.ts"
import { type Child, start } from "../../durability/children.ts"
import { inMemory } from "../../scratch.ts"
import { join } from "node:path"

export const workspace = "shared/Ä chain"

export interface Link {
  readonly before: string | null
  readonly author: string
  /** Characters that make the blob larger. */
  readonly weight: string
}

export type Place =
  | { readonly directory: string; readonly fsync: boolean }
  | { readonly url: string }
  | { readonly file: string }
  | { readonly nats: string; readonly name: string }
  | { readonly endpoint: string; readonly bucket: string; readonly prefix: string }

export interface Orders {
  readonly place: Place
  readonly name: string
  readonly fibers: number
}

const cache = join(inMemory(), "compiled-stores")

/** Starts a process that extends the chain and prints a line `<sequence> <author>` for each answered commit. */
export const writer = (orders: Orders, isBundled = true): Child => {
  const child = start("../repository/stores/chainWriter.ts", cache, isBundled)
  child.say(orders)
  return child
}

/** Returns the answered commits that the process has printed. */
export const answered = (child: Child): ReadonlyArray<readonly [sequence: number, author: string]> =>
  child
    .said()
    .split("\n")
    .slice(0, -1)
    .map((line) => {
      const [sequence, author] = line.split(" ")
      return [Number(sequence), author!] as const
    })

/** Reads the chain from the head back to its start, and checks it. Returns the authors in order. */
export const readChain = ({ blobs, heads }: Opened) =>
  Effect.gen(function* () {
    const head = yield* heads.get(workspace)
    const authors: Array<string> = []
    for (let at: string | null = head?.root ?? null; at !== null;) {
      const link: Link = JSON.parse(new TextDecoder().decode(yield* blobs.get(at)))
      authors.unshift(link.author)
      at = link.before
    }
    assert.strictEqual(authors.length, head?.sequence ?? 0, "the sequence counts the commits")
    assert.strictEqual(new Set(authors).size, authors.length, "no commit is doubled")
    return authors
  })

export const expectAnswered = (authors: ReadonlyArray<string>, children: ReadonlyArray<Child>): void => {
  for (const [sequence, author] of children.flatMap(answered)) {
    assert.strictEqual(authors[sequence - 1], author, `the answered commit ${sequence}`)
  }
}
