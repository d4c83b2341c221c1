/** Helpers for tests of recordings: random programs, and the real tree after each journal entry. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { isTemporaryName } from "../../src/model/FsPath.ts"
import type { FsError, Unsupported } from "../../src/model/FsError.ts"
import type { Backend } from "../../src/port/Backend.ts"
import * as Arbitraries from "../../src/testing/Arbitraries.ts"
import { capture, type Picture } from "../../src/testing/Files.ts"
import type { Command } from "../../src/testing/Model.ts"

export type Files = Journal.Scrivener<Journal.Entry>

export const another = (options: InMemory.InMemoryOptions = {}): Effect.Effect<Algebra> =>
  Effect.map(Effect.orDie(InMemory.make(options)), make)

export const makeJournal: Effect.Effect<Files> = Journal.makeMemory<Journal.Entry>()

export const record = (journal: Files, fs: Algebra, options?: Journal.RecordOptions): Effect.Effect<Algebra> =>
  Effect.provideService(Journal.record(options)(fs), Journal.Journal, journal)

export const entriesOf = (journal: Files) =>
  Effect.map(Stream.runCollect(journal.stored()), (all) => all.map(({ entry }) => entry))

/** Runs a command without `ifMatch`, which the filesystem checks before anything is recorded. */
const run = (fs: Algebra, command: Command): Effect.Effect<unknown, FsError | Unsupported> => {
  switch (command._tag) {
    case "Write": {
      const { createParents, mode, path, text, via } = command
      const bytes = new TextEncoder().encode(text)
      return via === "sink"
        ? Stream.run(Stream.make(bytes.subarray(0, 3), bytes.subarray(3)), fs.sink(path, { mode, createParents }))
        : fs.writeBytes(path, bytes, { mode, createParents })
    }
    case "Edit": {
      const { match, newText, oldText, path } = command
      return fs.edit(path, { oldText, newText, match })
    }
    case "Delete":
      return fs.delete(command.path, { recursive: command.recursive, missing: command.missing })
    case "Mkdir":
      return fs.mkdir(command.path, { parents: command.parents, existOk: command.existOk })
    case "Transfer":
      return fs[command.via](command.from, command.to, { overwrite: command.overwrite })
    case "Symlink":
      return fs.symlink(command.path, command.target)
    case "Walk":
      return Effect.map(Stream.runCollect(fs.walk()), (all) => all.map(({ kind, path }) => `${path} ${kind}`))
    case "Look":
      return command.via === "glob"
        ? Effect.map(fs.glob("**", { path: command.path }), ({ matches }) => matches)
        : command.via === "grep"
          ? Effect.map(fs.grep("x", { path: command.path }), ({ matches }) => matches)
          : command.via === "stat"
            ? Effect.map(fs.stat(command.path), ({ kind, sizeBytes }) => ({ kind, sizeBytes }))
            : command.via === "list"
              ? Effect.map(fs.list(command.path), (all) => all.map(({ kind, name }) => `${name} ${kind}`))
              : fs[command.via](command.path)
  }
}

/** Removes the identity of a stat, which a journal does not contain. */
export const withoutIdentity = <A>(value: A): Omit<A, "identity"> => {
  if (typeof value !== "object" || value === null || !("identity" in value)) return value
  return Object.fromEntries(Object.entries(value).filter(([key]) => key !== "identity")) as Omit<A, "identity">
}

/** Returns the result of a command as data, or the tag of its error. */
export const outcome = (fs: Algebra, command: Command): Effect.Effect<unknown> =>
  Effect.match(run(fs, command), {
    onSuccess: (value) => ({ value: withoutIdentity(value) }),
    onFailure: (error) => ({ error: error._tag })
  })

export const programs = Arbitraries.program({ links: "any" })

/** Removes the names that backends use for themselves: writes in progress and claims. */
const shown = (picture: Picture): Picture =>
  Object.fromEntries(Object.entries(picture).filter(([path]) => !path.split("/").some(isTemporaryName)))

export const look = (port: Backend): Effect.Effect<Picture> => Effect.map(Effect.orDie(capture(port)), shown)

export interface Watched {
  readonly journal: Files
  /** The real tree after the entry at each position was written; index 0 is the beginning. */
  readonly pictures: Array<Picture>
}

/** Returns a journal for this port that captures the tree whenever it grows. */
export const watching = Effect.fnUntraced(function* (port: Backend): Effect.fn.Return<Watched> {
  const journal = yield* makeJournal
  const pictures = [yield* look(port)]
  const note = Effect.map(look(port), (picture) => pictures.push(picture))
  return {
    journal: {
      ...journal,
      append: (entry) => Effect.tap(journal.append(entry), note),
      appendAll: (entries) =>
        Effect.tap(
          journal.appendAll(entries),
          Effect.forEach(entries, () => note)
        )
    },
    pictures
  }
})
