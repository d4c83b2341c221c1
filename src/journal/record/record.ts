/** A filesystem whose journal is written by what is done to it: at the port, so that nothing goes past, and step by step. */
import * as Effect from "effect/Effect"
import { type Algebra, make } from "../../filesystem/Filesystem.ts"
import { type Accelerations, type Backend, looking as onlyLooking } from "../../port/Backend.ts"
import * as Correlation from "../Correlation.ts"
import { type Entry, Journal, type Scrivener } from "../Journal.ts"
import * as Changing from "./changing.ts"
import * as Ids from "./ids.ts"
import { looking, readLink } from "./looking.ts"
import { write, type Writing } from "./writing.ts"

/**
 * How much of what a filesystem does is recorded.
 *
 * @since 0.1.0
 */
export interface RecordOptions {
  /** Whether what is looked at is recorded too: stat, list, open and each read, for `Replay.double`. Turns fast ways off. @default false */
  readonly reads?: boolean | undefined
  /**
   * Whether an answer holds what the change took away, by which `Replay` knows what was there before, and `Replay.undo` brings it back.
   * @default true
   */
  readonly previous?: boolean | undefined
}

const accelerationsOf = (writing: Writing): Accelerations | undefined => {
  const { accelerations } = writing.self
  if (accelerations === undefined) return undefined
  const { removeTree } = accelerations
  return {
    ...(writing.reads ? {} : onlyLooking(accelerations)),
    ...(removeTree && writing.previous ? { removeTree: Changing.removeTree(writing, removeTree) } : {})
  }
}

const around = (writing: Writing): Backend => {
  const { reads, self } = writing
  const { attributes, links } = self
  return {
    ...self,
    history: undefined,
    accelerations: accelerationsOf(writing),
    ...(reads ? looking(writing, self) : {}),
    write: write(writing),
    makeDirectory: Changing.makeDirectory(writing),
    remove: Changing.remove(writing),
    rename: Changing.rename(writing),
    links: links && {
      ...links,
      ...(reads ? { read: readLink(writing, links, "read"), follow: readLink(writing, links, "follow") } : {}),
      make: Changing.makeLink(writing, links)
    },
    attributes: attributes && { set: Changing.setAttributes(writing, attributes) }
  }
}

export const recordInto =
  (journal: Scrivener<Entry>, options?: RecordOptions) =>
  ({ port: self }: Algebra): Effect.Effect<Algebra> =>
    Effect.map(Correlation.generate, (beginning) =>
      make(
        around({
          journal,
          nextId: Ids.make(beginning),
          self,
          reads: options?.reads === true,
          previous: options?.previous !== false
        })
      )
    )

/**
 * Records every change that is made through the filesystem, whoever makes it and by whatever way: what is asked before it is done, what
 * came of it after, each step at the port for itself. So an overwriting move is recorded as the steps of which it is made, and what a
 * failed call takes back is there too. The journal is to be one that no leaf serves, which would do everything once more.
 *
 * - streams are recorded in chunks as they go by, in constant memory
 * - what is interrupted or dies is looked at, and answered as what it has become; where that cannot be told it stays unanswered
 * - where what is asked cannot be written down, nothing is done: Unavailable. Where the answer cannot, the call fails with Unavailable too,
 *   and says that the change was made
 * - keeps the locks, the rules and the fast ways to what only looks; other accelerations go, and history
 *
 * @since 0.1.0
 */
export const record =
  (options?: RecordOptions) =>
  (self: Algebra): Effect.Effect<Algebra, never, Journal> =>
    Effect.flatMap(Journal, (journal) => recordInto(journal, options)(self))
