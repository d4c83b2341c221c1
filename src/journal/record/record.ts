import * as Effect from "effect/Effect"
import { type Algebra, make } from "../../filesystem/Filesystem.ts"
import type { Backend } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import * as Correlation from "../Correlation.ts"
import { type Entry, Journal, type Scrivener } from "../Journal.ts"
import * as Changing from "./changing.ts"
import * as Ids from "./ids.ts"
import { recordReads, readLink } from "./looking.ts"
import { write, type RecordContext } from "./writing.ts"

/**
 * The options of `record`.
 *
 * @since 0.1.0
 */
export interface RecordOptions {
  /** True if reads are recorded too: stat, list, open and each read, for `Replay.double`. Turns accelerations off. @default false */
  readonly reads?: boolean | undefined
  /**
   * True if an answer includes what the change removed. `Replay` uses this to know the former state, and `Replay.undo` to restore it.
   * @default true
   */
  readonly previous?: boolean | undefined
}

const performOf = ({ previous, reads, self }: RecordContext): Request.Perform | undefined =>
  Request.only(
    self.perform,
    new Set<Request.Tag>([...(reads ? [] : Request.reading), ...(previous ? (["RemoveTree"] as const) : [])])
  )

const recordBackend = (writing: RecordContext): Backend => {
  const { reads, self } = writing
  const { attributes, links } = self
  return {
    ...self,
    history: undefined,
    perform: Request.override(performOf(writing), (perform) => ({ RemoveTree: Changing.removeTree(writing, perform) })),
    ...(reads ? { explore: undefined } : {}),
    ...(reads ? recordReads(writing, self) : {}),
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
        recordBackend({
          journal,
          nextId: Ids.make(beginning),
          self,
          reads: options?.reads === true,
          previous: options?.previous !== false
        })
      )
    )

/**
 * Records every change that is made through the filesystem, by any caller and on any path. The request is recorded before the change, and
 * its result after it, for each step at the port. So an overwriting move is recorded as its steps, and the rollback of a failed call is
 * recorded too. The journal must have no leaf, because a leaf would carry out everything again.
 *
 * - streams are recorded in chunks as they pass, in constant memory
 * - after an interruption or a defect, the file is examined, and its state becomes the answer; if the state is unclear, there is no answer
 * - if the request cannot be recorded, nothing is done and the call fails with Unavailable; if the answer cannot be recorded, the call also
 *   fails with Unavailable, and its message says that the change was made
 * - locks, rules and requests that only read are kept; other requests and the history are dropped
 *
 * @since 0.1.0
 */
export const record =
  (options?: RecordOptions) =>
  (self: Algebra): Effect.Effect<Algebra, never, Journal> =>
    Effect.flatMap(Journal, (journal) => recordInto(journal, options)(self))
