/** Helpers for tests of leaves: a leaf over a filesystem, and a client that asks it. */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { mkdtempSync } from "node:fs"
import { join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"
import * as Scratch from "../scratch.ts"

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

/** Returns `size` bytes, of which any two neighbours differ. */
export const many = (size: number, from = 0): Uint8Array =>
  Uint8Array.from({ length: size }, (_, i) => ((i + from) * 7 + ((i + from) >> 8)) & 255)

export const memory = (options: InMemory.InMemoryOptions = {}): Effect.Effect<Filesystem.Algebra> =>
  Effect.orDie(Effect.map(InMemory.make(options), Filesystem.make))

export const freshDirectory = (): string => mkdtempSync(join(Scratch.inMemory(), "leaf-"))

export const host = (root = freshDirectory(), options: Partial<PosixHost.PosixHostOptions> = {}) =>
  Effect.orDie(Effect.map(PosixHost.make({ ...options, root }), Filesystem.make))

/** Returns the instance of a process that has ended. */
export const dead = (): string => `${Identity.self().replace(/[^-]*$/, "1")}.0`

export interface Asking {
  readonly journal: Journal.Scrivener<Journal.Entry>
  readonly append: (entry: Journal.Entry) => Effect.Effect<number>
  /** Returns every entry of an answer after the position `after`, up to the last entry. */
  readonly answers: (correlationId: string, after?: number) => Effect.Effect<ReadonlyArray<Entry.Afferent>>
  readonly answer: (correlationId: string, after?: number) => Effect.Effect<Entry.Afferent>
  readonly ask: (intent: Entry.Efferent) => Effect.Effect<Entry.Afferent>
  readonly askAll: (intent: Entry.Efferent) => Effect.Effect<ReadonlyArray<Entry.Afferent>>
  /** Returns the bytes of a content. */
  readonly content: (content: Entry.Content) => Effect.Effect<Uint8Array>
  readonly all: Effect.Effect<ReadonlyArray<Journal.Entry>>
  /** Returns the answers to these ids once all are complete. */
  readonly told: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<ReadonlyArray<Entry.Afferent>>>
}

export const asking = (journal: Journal.Scrivener<Journal.Entry>): Asking => {
  const answers: Asking["answers"] = (correlationId, after = 0) =>
    Effect.orDie(
      Effect.map(
        Stream.runCollect(
          Stream.takeUntil(
            Stream.filter(
              Stream.map(journal.tail(after), ({ entry }) => entry),
              Entry.answers(correlationId)
            ),
            Entry.isTerminal
          )
        ),
        (all) => all
      )
    )
  const answer: Asking["answer"] = (correlationId, after) =>
    Effect.map(answers(correlationId, after), (all) => all[all.length - 1]!)
  const append = (entry: Journal.Entry) => Effect.orDie(journal.append(entry))
  return {
    journal,
    append,
    answers,
    answer,
    ask: (intent) => Effect.flatMap(append(intent), (at) => answer(intent.correlationId, at)),
    askAll: (intent) => Effect.flatMap(append(intent), (at) => answers(intent.correlationId, at)),
    content: (content) => Effect.orDie(journal.bytes(content)),
    told: (ids) =>
      Effect.suspend(() => {
        const answers = new Map<string, Array<Entry.Afferent>>(ids.map((id) => [id, []]))
        const open = new Set(ids)
        const take = ({ entry }: Journal.Recorded<Journal.Entry>): void => {
          if (!Entry.isAfferent(entry)) return
          answers.get(entry.correlationId)?.push(entry)
          if (Entry.isTerminal(entry)) open.delete(entry.correlationId)
        }
        const taken = Stream.map(journal.tail(), take)
        const through = Stream.runDrain(Stream.takeUntil(taken, () => open.size === 0))
        return Effect.orDie(Effect.map(ids.length === 0 ? Effect.void : through, () => ids.map((id) => answers.get(id)!)))
      }),
    all: Effect.orDie(Effect.map(Stream.runCollect(journal.stored()), (all) => all.map(({ entry }) => entry)))
  }
}

export const asked = Effect.map(Journal.Journal, asking)

/** Starts a leaf. */
export const started = (fs: Filesystem.Algebra, options?: Leaf.LeafOptions) =>
  Effect.orDie(Effect.tap(Leaf.make(fs, options), (leaf) => leaf.start))

/** Runs an effect with a journal of its own in memory. */
export const journaled = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.provide(effect, Journal.layerMemory)

let count = 0
/** Returns a new id. */
export const id = (): string => `id-${++count}`

export const read = (path: string, range: { offset?: number; length?: number } = {}) =>
  new Entry.FileRead({ correlationId: id(), path, ...range })
export const write = (
  path: string,
  content: string | Uint8Array,
  createMode: Entry.CreateMode = "overwrite",
  more: Partial<Pick<Entry.FileWrite, "ifMatch" | "createParents" | "version">> = {}
) =>
  new Entry.FileWrite({
    correlationId: id(),
    path,
    content: typeof content === "string" ? bytes(content) : content,
    createMode,
    ...more
  })
export const list = (path: string, more: { pattern?: string; recursive?: boolean } = {}) =>
  new Entry.FileList({ correlationId: id(), path, ...more })
export const remove = (path: string, more: { recursive?: boolean; ifMatch?: string | null } = {}) =>
  new Entry.FileDelete({ correlationId: id(), path, ...more })
export const stat = (path: string) => new Entry.FileStat({ correlationId: id(), path })
export const chunk = (
  correlationId: string,
  offset: number,
  data: string | Uint8Array,
  more: Partial<Omit<Entry.FileWriteChunk, "_tag" | "correlationId" | "offset" | "data">> = {}
) =>
  new Entry.FileWriteChunk({
    correlationId,
    offset,
    data: typeof data === "string" ? bytes(data) : data,
    isFinal: false,
    ...more
  })

const encode = Schema.encodeUnknownSync(Schema.toCodecJson(Journal.Entry))

/** Returns the entry as plain JSON, without the given keys and the correlation id. */
export const plain = (entry: Journal.Entry, without: ReadonlyArray<string> = []): Record<string, unknown> => {
  const { correlationId: _, ...rest } = encode(entry) as Record<string, unknown>
  for (const key of without) delete rest[key]
  return rest
}

/** Yields often enough for all runnable fibers to proceed, without time passing. */
export const quiet: Effect.Effect<void> = Effect.asVoid(
  Effect.forEach(Array.from({ length: 50 }), () => Effect.yieldNow, { discard: true })
)

export const fork = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<Fiber.Fiber<A, E>, never, R> =>
  Effect.forkChild(effect, { startImmediately: true })
