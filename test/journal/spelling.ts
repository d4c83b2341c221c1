/** Helpers for spells over leaves of each kind, which all start with the same tree. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import type { Tree } from "../../src/backends/InMemory.ts"
import type { Scrivener } from "../../src/journal/Journal.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import * as Spells from "../../src/journal/Spells.ts"
import { inMemory } from "../scratch.ts"

const plantAt = (root: string, tree: Tree): void => {
  for (const [name, entry] of Object.entries(tree)) {
    const at = join(root, name)
    if (typeof entry === "string" || entry instanceof Uint8Array) Fs.writeFileSync(at, entry)
    else if (typeof entry["link"] === "string") Fs.symlinkSync(entry["link"], at)
    else {
      Fs.mkdirSync(at)
      plantAt(at, entry as Tree)
    }
  }
}

export const directory = (tree: Tree = {}): string => {
  const root = Fs.mkdtempSync(join(inMemory(), "spells-"))
  plantAt(root, tree)
  return root
}

type Settings = Omit<Parameters<typeof Leaf.posixFS>[0], "rootPath" | "followSymlinks" | "preservePermissions">

export interface Kind {
  readonly name: string
  readonly extended: boolean
  readonly leaf: (
    tree: Tree,
    settings?: Settings,
    options?: Omit<Leaf.LeafOptions, keyof Settings>
  ) => Layer.Layer<never, unknown, Journal.Journal>
}

const kindsOf = (extended: boolean): ReadonlyArray<Kind> => [
  {
    name: `mockFS${extended ? ", extended" : ""}`,
    extended,
    leaf: (tree, settings, options) => Leaf.mockFS(settings, { ...options, extended, tree })
  },
  {
    name: `posixFS${extended ? ", extended" : ""}`,
    extended,
    leaf: (tree, settings, options) =>
      Layer.unwrap(Effect.sync(() => Leaf.posixFS({ ...settings, rootPath: directory(tree) }, { ...options, extended })))
  }
]

export const kinds: ReadonlyArray<Kind> = [...kindsOf(false), ...kindsOf(true)]

/** The layers of both journals, in memory. */
export const journals = Layer.merge(Journal.layerMemory, Spells.layerJournalMemory)

/** Returns a layer with spells, their covenant and a leaf. */
export const whole = (kind: Kind, tree: Tree, settings?: Settings, options?: Spells.Options & Parameters<Kind["leaf"]>[2]) => {
  const { maxBytes, timeout, ...leafOptions } = options ?? {}
  const spells = Spells.layer({
    extended: kind.extended,
    ...(maxBytes !== undefined && { maxBytes }),
    ...(timeout !== undefined && { timeout })
  })
  const { name: _, ...rest } = leafOptions
  return Layer.provideMerge(Layer.merge(spells, kind.leaf(tree, settings, rest)), journals)
}

export const entries = <E>(journal: Scrivener<E>) =>
  Effect.map(Stream.runCollect(journal.stored()), (all) => all.map(({ entry }) => entry))

/** Waits until the journal has an entry that matches. */
export const until = <E>(journal: Scrivener<E>, is: (entry: E) => boolean, after = 0) =>
  Stream.runDrain(
    Stream.take(
      Stream.filter(journal.tail(after), ({ entry }) => is(entry)),
      1
    )
  )
