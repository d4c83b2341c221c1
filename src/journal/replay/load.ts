/** Reads a journal once and builds the known tree, at a position and at the end. */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { type FsPath, root } from "../../model/FsPath.ts"
import type { JournalError } from "../errors.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import { apply, isChange } from "./apply.ts"
import { NotRecorded } from "./errors.ts"
import { type Operation, operations } from "./operations.ts"
import { World } from "./world.ts"

export interface Loaded {
  readonly targetWorld: World
  /** The tree after all answered changes. */
  readonly now: World
  readonly touched: ReadonlySet<FsPath>
  /** The changes without an answer, in order. */
  readonly open: ReadonlyArray<Operation>
}

export interface LoadOptions {
  readonly caseSensitive: boolean
  /** @default the end */
  readonly position?: number | undefined
  /** True to read the entries after the position too, because they may reveal the state before it. */
  readonly includesLaterEntries: boolean
}

export const pathsOf = ({ path, to }: { readonly path: FsPath; readonly to?: FsPath | undefined }): ReadonlyArray<FsPath> =>
  to === undefined ? [path] : [path, to]

export const load = (
  journal: Scrivener<Entry>,
  { caseSensitive, includesLaterEntries, position = Number.POSITIVE_INFINITY }: LoadOptions
): Effect.Effect<Loaded, JournalError | NotRecorded> =>
  Effect.flatMap(Stream.runHead(journal.stored()), (first): Effect.Effect<Loaded, JournalError | NotRecorded> => {
    const lastRemoved = Option.match(first, { onNone: () => 0, onSome: ({ position }) => position - 1 })
    if (position < lastRemoved) {
      const detail = `the journal was compacted: its entries up to ${lastRemoved} are gone, and with them what was there at ${position}`
      return Effect.fail(new NotRecorded({ operation: "Replay", path: root, detail }))
    }
    const now = new World(caseSensitive)
    let targetWorld: World | undefined
    const touched = new Set<FsPath>()
    const open: Array<Operation> = []
    const take = (operation: Operation): void => {
      if (!isChange(operation)) return
      now.beginning.hidden.observe(operation)
      const { answered } = operation
      if (answered === undefined) {
        open.push(operation)
        for (const path of pathsOf(operation)) touched.add(path)
        return
      }
      if (answered.position > position) {
        targetWorld ??= now.copyTree()
        for (const path of pathsOf(operation)) touched.add(now.resolveLinks(path, "parents"))
      }
      apply(now, operation)
      if (answered.position > position) for (const path of pathsOf(operation)) touched.add(now.resolveLinks(path, "last"))
    }
    const all = operations(journal, includesLaterEntries ? undefined : position)
    return Effect.map(
      Stream.runForEachArray(all, (some) => Effect.sync(() => some.forEach(take))),
      () => ({ targetWorld: targetWorld ?? now.copyTree(), now, touched, open })
    )
  })
