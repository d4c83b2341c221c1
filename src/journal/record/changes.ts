/**
 * Records changes of directory entries. The answer to a removal includes the removed entries, so that an undo can restore them.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { FileStat } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Attributes, Backend, Links } from "../../port/Backend.ts"
import type { Handlers, Perform } from "../../port/Request.ts"
import { statAt } from "../../engine/read.ts"
import { make } from "../entries/kinds.ts"
import {
  FileAttributesSet,
  FileDelete,
  FileDeleted,
  FileDirectoryMade,
  FileLinkMade,
  FileMakeDirectory,
  FileMakeLink,
  FileMove,
  FileMoved,
  FileSetAttributes,
  type Removed
} from "../FileSystemEntry.ts"
import { removedEntry, removedTree } from "./previous.ts"
import { orNothingDone, step } from "./steps.ts"
import type { RecordContext } from "./writes.ts"

/** Returns the stat of a path before a change, or `undefined` if the path is missing or the stat fails. */
const look = (port: Backend, path: FsPath.FsPath): Effect.Effect<FileStat | undefined> =>
  Effect.orElseSucceed(statAt(port, path), () => undefined)

/** Returns the stat of a path, or `undefined` if the path is missing. Returns `null` if the stat fails. */
const statTarget = (port: Backend, path: FsPath.FsPath): Effect.Effect<FileStat | null | undefined> =>
  Effect.orElseSucceed(statAt(port, path), () => null)

const keepRemoved = (
  { journal, previous, self }: RecordContext,
  path: FsPath.FsPath,
  stat: FileStat | undefined
): Effect.Effect<Removed | undefined, Fault> =>
  previous && stat !== undefined ? orNothingDone(removedEntry(self, journal.contents, path, stat)) : Effect.succeed(undefined)

const isGone = (port: Backend, path: FsPath.FsPath): Effect.Effect<boolean, Fault> =>
  Effect.map(port.stat(path), (stat) => stat === undefined)

/**
 * Tests whether an entry of this kind was created. Returns `undefined` if this cannot be determined, because the path already
 * had an entry before.
 */
const hasAppeared = (
  port: Backend,
  path: FsPath.FsPath,
  kind: FileStat["kind"],
  before: FileStat | undefined
): Effect.Effect<boolean | undefined, Fault> =>
  Effect.map(port.stat(path), (stat) => (stat?.kind !== kind ? false : before === undefined ? true : undefined))

export const makeDirectory =
  (writing: RecordContext): Backend["makeDirectory"] =>
  (path) =>
    Effect.flatMap(look(writing.self, path), (before) => {
      const id = writing.nextId()
      return step(writing, {
        request: make(FileMakeDirectory, { correlationId: id, path, parents: false, existOk: false }),
        run: writing.self.makeDirectory(path),
        answer: () => make(FileDirectoryMade, { correlationId: id, path }),
        checkDone: () => hasAppeared(writing.self, path, "directory", before)
      })
    })

const deleted = (
  id: string,
  path: FsPath.FsPath,
  kind: FileStat["kind"] | undefined,
  removed: Removed | undefined
): FileDeleted =>
  make(FileDeleted, {
    correlationId: id,
    path,
    deletedCount: 1,
    directories: kind === undefined ? undefined : kind === "directory" ? 1 : 0,
    removed: removed && [removed]
  })

export const remove =
  (writing: RecordContext): Backend["remove"] =>
  (path) =>
    Effect.flatMap(look(writing.self, path), (stat) =>
      Effect.flatMap(keepRemoved(writing, path, stat), (removed) => {
        const id = writing.nextId()
        return step(writing, {
          request: make(FileDelete, { correlationId: id, path, recursive: false }),
          run: writing.self.remove(path),
          answer: () => deleted(id, path, stat?.kind, removed),
          checkDone: () => isGone(writing.self, path)
        })
      })
    )

/** Records a partial removal of a tree as one delete for each removed entry. Entries come before their parent directories. */
const recordRemoved = Effect.fnUntraced(function* (
  writing: RecordContext,
  removed: ReadonlyArray<Removed>
): Effect.fn.Return<void> {
  for (const one of [...removed].reverse()) {
    const path = one.path as FsPath.FsPath
    if (!(yield* Effect.orElseSucceed(isGone(writing.self, path), () => false))) continue
    const id = writing.nextId()
    yield* Effect.ignore(
      writing.journal.appendAll([
        make(FileDelete, { correlationId: id, path, recursive: false }),
        deleted(id, path, one.kind, one)
      ])
    )
  }
})

/**
 * Records the removal of a tree. Lists the tree first, because after a partial removal the removed entries are no longer known.
 * Fails if the tree cannot be listed.
 */
export const removeTree = (writing: RecordContext, perform: Perform): NonNullable<Handlers["RemoveTree"]> => {
  const { journal, self } = writing
  return ({ path }) =>
    Effect.flatMap(
      removedTree(self, journal.contents, path).pipe(
        Effect.catchTag("JournalError", (error) => orNothingDone(Effect.fail(error)))
      ),
      (removed) => {
        const id = writing.nextId()
        return step(writing, {
          request: make(FileDelete, { correlationId: id, path, recursive: true }),
          run: perform({ _tag: "RemoveTree", path }),
          answer: (counts) =>
            make(FileDeleted, {
              correlationId: id,
              path,
              ...countsOf(counts && Option.getOrUndefined(counts), removed),
              removed
            }),
          checkDone: () =>
            Effect.flatMap(isGone(self, path), (isDone) =>
              isDone ? Effect.succeed(true) : Effect.as(recordRemoved(writing, removed), false)
            )
        })
      }
    )
}

const countsOf = (
  counts: { readonly deleted: number; readonly directories: number } | undefined,
  removed: ReadonlyArray<Removed>
): { readonly deletedCount: number; readonly directories: number } => {
  if (counts !== undefined) return { deletedCount: Math.max(1, counts.deleted), directories: counts.directories }
  const directories = removed.filter(({ kind }) => kind === "directory").length
  return { deletedCount: Math.max(1, removed.length - directories), directories }
}

const isSameName = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath): boolean =>
  port.info.caseSensitive ? from === to : FsPath.fold(from) === FsPath.fold(to)

/** Returns the answer to a move. A directory counts as one entry, because its contents are not read. */
const moveAnswer = (
  id: string,
  path: FsPath.FsPath,
  to: FsPath.FsPath,
  stat: FileStat | undefined,
  replaced: Removed | undefined
): FileMoved =>
  make(FileMoved, {
    correlationId: id,
    path,
    to,
    files: stat === undefined || stat.kind === "directory" ? 0 : 1,
    directories: stat?.kind === "directory" ? 1 : 0,
    bytes: stat?.kind === "file" ? stat.sizeBytes : 0,
    replaced
  })

export const rename =
  (writing: RecordContext): Backend["rename"] =>
  (from, to, options) =>
    Effect.gen(function* () {
      const { self } = writing
      const stat = yield* look(self, from)
      const target = !options.replace || isSameName(self, from, to) ? null : yield* statTarget(self, to)
      const replaced = yield* keepRemoved(writing, to, target ?? undefined)
      const id = writing.nextId()
      return yield* step(writing, {
        // If the target was missing, record a move without `overwrite`, so that a replay knows that the target was missing.
        request: make(FileMove, {
          correlationId: id,
          path: from,
          to,
          overwrite: options.replace && target !== undefined,
          createParents: false
        }),
        run: self.rename(from, to, options),
        answer: () => moveAnswer(id, from, to, stat, replaced),
        checkDone: () => isGone(self, from)
      })
    })

export const makeLink =
  (writing: RecordContext, links: Links): Links["make"] =>
  (path, target) =>
    Effect.flatMap(look(writing.self, path), (before) => {
      const id = writing.nextId()
      return step(writing, {
        request: make(FileMakeLink, { correlationId: id, path, target }),
        run: links.make(path, target),
        answer: () => make(FileLinkMade, { correlationId: id, path }),
        checkDone: () => hasAppeared(writing.self, path, "symlink", before)
      })
    })

const attributesOf = (stat: FileStat): NonNullable<FileAttributesSet["previous"]> => ({
  ...(stat.mode === undefined ? {} : { mode: stat.mode }),
  ...(stat.modifiedAt === undefined ? {} : { modified: stat.modifiedAt })
})

export const setAttributes =
  (writing: RecordContext, attributes: Attributes): Attributes["set"] =>
  (path, values) =>
    Effect.flatMap(look(writing.self, path), (stat) => {
      const id = writing.nextId()
      const { isCopy, mode, modifiedAt } = values
      const maySkipMode = isCopy === true && mode !== undefined && writing.self.rules?.decidesModeOfCopies === true
      const skipsMode = Effect.map(look(writing.self, path), (now) => now !== undefined && now.mode !== mode)
      return step<boolean, Fault, never>(writing, {
        request: make(FileSetAttributes, {
          correlationId: id,
          path,
          mode,
          modified: modifiedAt,
          isCopy: isCopy === true ? isCopy : undefined
        }),
        run: Effect.andThen(attributes.set(path, values), maySkipMode ? skipsMode : Effect.succeed(false)),
        answer: (skippedMode) =>
          make(FileAttributesSet, {
            correlationId: id,
            path,
            skippedMode: skippedMode === true ? skippedMode : undefined,
            previous: writing.previous && stat !== undefined ? attributesOf(stat) : undefined
          }),
        checkDone: () =>
          Effect.map(
            writing.self.stat(path),
            (now) =>
              now !== undefined &&
              (mode === undefined || now.mode === mode) &&
              (modifiedAt === undefined || now.modifiedAt?.epochMilliseconds === modifiedAt.epochMilliseconds)
          )
      })
    })
