/** Changes a directory tree. Each function returns a new draft, and does not modify the given draft. */
import * as Effect from "effect/Effect"
import * as Eager from "../engine/eager.ts"
import { alreadyExists, directoryNotEmpty, type Fault, notADirectory, notAFile, notFound, pathTooLong } from "../model/Fault.ts"
import { type FsPath, isWithin, name as nameOf, parent, root, segments } from "../model/FsPath.ts"
import { Buffer } from "../runtime/buffer.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import { intoItself, isRoot, kindFault, linkMode, rootWriteFault } from "../backends/faults.ts"
import type { Mode } from "../backends/writing.ts"
import type { StoreError } from "./errors.ts"
import { type Content, type DirectoryEntry, type Entry, type FileEntry, maxNameBytes, maxTargetBytes } from "./format/nodes.ts"
import type { Objects } from "./format/objects.ts"
import * as Trees from "./format/trees.ts"
import { type Draft, lookup, maxEager, type Problem } from "./drafts.ts"

type Changed = Effect.Effect<Draft, Problem>

/** Changes the directory at a path, which must exist. */
const editDirectory = (
  objects: Objects,
  draft: Draft,
  path: FsPath,
  edit: (directory: DirectoryEntry) => Effect.Effect<DirectoryEntry, Problem>
): Changed => {
  const names = segments(path)
  const descend = (at: DirectoryEntry, i: number): Effect.Effect<DirectoryEntry, Problem> => {
    if (i === names.length) return edit(at)
    return Eager.flatMap(Trees.get(objects, at.tree, names[i]!), (entry): Effect.Effect<DirectoryEntry, Problem> => {
      if (entry === undefined) return Effect.fail(notFound)
      if (entry.kind !== "directory") return Effect.fail(notADirectory)
      const below = i % maxEager === maxEager - 1 ? Effect.suspend(() => descend(entry, i + 1)) : descend(entry, i + 1)
      return Eager.flatMap(below, (next) =>
        next === entry
          ? Effect.succeed(at)
          : Eager.map(Trees.set(objects, at.tree, next.name, next), (tree) => ({ ...at, tree }))
      )
    })
  }
  return Eager.map(descend(draft.files, 0), (files) => (files === draft.files ? draft : { ...draft, files }))
}

/** Sets or removes an entry of a directory, and sets the directory's modification time. */
const setEntry = (
  objects: Objects,
  directory: DirectoryEntry,
  name: string,
  entry: Entry | undefined,
  modifiedAt: number
): Effect.Effect<DirectoryEntry, StoreError> =>
  Eager.map(Trees.set(objects, directory.tree, name, entry), (tree) => ({ ...directory, tree, modifiedAt }))

const checkName = (path: FsPath): Effect.Effect<void, Fault> =>
  Buffer.byteLength(nameOf(path)) > maxNameBytes
    ? Effect.fail(pathTooLong(`a name in it has more than ${maxNameBytes} bytes`))
    : Effect.void

/**
 * Changes the entry at a path. `edit` returns the new entry, or `undefined` to remove it. If a name is added or removed, the
 * directory's modification time becomes `now`.
 */
const editEntry = (
  objects: Objects,
  draft: Draft,
  path: FsPath,
  now: number,
  edit: (present: Entry | undefined, name: string) => Effect.Effect<Entry | undefined, Problem>
): Changed =>
  editDirectory(objects, draft, parent(path), (directory) => {
    const name = nameOf(path)
    return Eager.flatMap(Trees.get(objects, directory.tree, name), (present) =>
      Eager.flatMap(edit(present, name), (next) =>
        next === present
          ? Effect.succeed(directory)
          : setEntry(
              objects,
              directory,
              name,
              next,
              (next === undefined) === (present === undefined) ? directory.modifiedAt : now
            )
      )
    )
  })

const timed = (now: number) => ({ createdAt: now, modifiedAt: now })

export const write = (
  objects: Objects,
  draft: Draft,
  path: FsPath,
  content: Content,
  mode: Mode,
  now: number,
  permissions?: number
): Effect.Effect<{ readonly draft: Draft; readonly value: FileEntry }, Problem> => {
  if (path === root) return Effect.fail(rootWriteFault(mode))
  let written: FileEntry
  const edit = (present: Entry | undefined, name: string): Effect.Effect<Entry, Problem> => {
    if (present === undefined) {
      written = { kind: "file", name, mode: (permissions ?? 0o644) & 0o7777, ...timed(now), content }
      return Eager.map(checkName(path), () => written)
    }
    if (mode === "create") return Effect.fail(alreadyExists)
    if (present.kind !== "file") return Effect.fail(notAFile)
    written = { ...present, modifiedAt: now, content }
    return Effect.succeed(written)
  }
  return Eager.map(editEntry(objects, draft, path, now, edit), (draft) => ({ draft, value: written }))
}

const insert = (objects: Objects, draft: Draft, path: FsPath, now: number, make: (name: string) => Entry): Changed =>
  path === root
    ? Effect.fail(alreadyExists)
    : editEntry(objects, draft, path, now, (present, name) =>
        present === undefined ? Effect.as(checkName(path), make(name)) : Effect.fail(alreadyExists)
      )

export const makeDirectory = (objects: Objects, draft: Draft, path: FsPath, now: number, mode = 0o755): Changed =>
  insert(objects, draft, path, now, (name) => ({
    kind: "directory",
    name,
    mode: mode & 0o7777,
    ...timed(now),
    tree: undefined
  }))

export const makeLink = (objects: Objects, draft: Draft, path: FsPath, target: string, now: number): Changed =>
  Buffer.byteLength(target) > maxTargetBytes
    ? Effect.fail(pathTooLong(`the target of the link has more than ${maxTargetBytes} bytes`))
    : insert(objects, draft, path, now, (name) => ({ kind: "symlink", name, mode: 0o777, ...timed(now), target }))

/** Returns the entry at a path. Fails with NotFound if there is none, also if the path leads through a file. */
const find = (objects: Objects, draft: Draft, path: FsPath): Effect.Effect<Entry, Problem> =>
  Effect.flatMap(lookup(objects, draft, path), (entry) => (entry === undefined ? Effect.fail(notFound) : Effect.succeed(entry)))

const isNotEmpty = (entry: Entry): boolean => entry.kind === "directory" && entry.tree !== undefined

const detach = (objects: Objects, draft: Draft, path: FsPath, now: number): Changed =>
  editEntry(objects, draft, path, now, () => Effect.succeed(undefined))

export const remove = (objects: Objects, draft: Draft, path: FsPath, now: number): Changed =>
  path === root
    ? Effect.fail(isRoot)
    : Effect.flatMap(find(objects, draft, path), (entry) =>
        isNotEmpty(entry) ? Effect.fail(directoryNotEmpty) : detach(objects, draft, path, now)
      )

/** Removes an entry with everything below it. Counts the removed files and directories, without temporary files. */
export const removeTree = (objects: Objects, draft: Draft, path: FsPath, now: number) =>
  path === root
    ? Effect.fail(isRoot)
    : Effect.gen(function* () {
        let deleted = 0
        let directories = 0
        const pending: Array<Entry> = [yield* find(objects, draft, path)]
        for (let entry = pending.pop(); entry !== undefined; entry = pending.pop()) {
          if (entry.kind === "directory") {
            directories++
            yield* Trees.forEach(objects, entry.tree, (child) => pending.push(child))
          } else if (!TemporaryNames.isOwnName(entry.name)) deleted++
        }
        return { draft: yield* detach(objects, draft, path, now), value: { deleted, directories } }
      })

export const rename = (objects: Objects, draft: Draft, from: FsPath, to: FsPath, replace: boolean, now: number): Changed =>
  Effect.gen(function* () {
    if (from === root || to === root) return yield* Effect.fail(isRoot)
    const source = yield* find(objects, draft, from)
    if (from !== to && source.kind === "directory" && isWithin(from, to)) return yield* Effect.fail(intoItself)
    const above = yield* find(objects, draft, parent(to))
    if (above.kind !== "directory") return yield* Effect.fail(notADirectory)
    if (from === to) return replace ? draft : yield* Effect.fail(alreadyExists)
    const target = yield* Trees.get(objects, above.tree, nameOf(to))
    if (target !== undefined) {
      if (!replace) return yield* Effect.fail(alreadyExists)
      const fault = kindFault(source.kind === "directory", target.kind === "directory")
      if (fault !== undefined) return yield* Effect.fail(fault)
      if (isNotEmpty(target)) return yield* Effect.fail(directoryNotEmpty)
    }
    yield* checkName(to)
    const detached = yield* detach(objects, draft, from, now)
    return yield* editDirectory(objects, detached, parent(to), (directory) =>
      setEntry(objects, directory, nameOf(to), { ...source, name: nameOf(to) }, now)
    )
  })

export const setAttributes = (
  objects: Objects,
  draft: Draft,
  path: FsPath,
  mode: number | undefined,
  modifiedAt: number | undefined
): Changed => {
  const change = <E extends Entry>(entry: E): E => ({
    ...entry,
    ...(mode === undefined ? {} : { mode: mode & 0o7777 }),
    ...(modifiedAt === undefined ? {} : { modifiedAt: Math.trunc(modifiedAt) })
  })
  if (path === root) return Effect.succeed({ ...draft, files: change(draft.files) })
  return Effect.flatMap(find(objects, draft, path), (entry) =>
    entry.kind === "symlink" && mode !== undefined
      ? Effect.fail(linkMode)
      : editEntry(objects, draft, path, 0, () => Effect.succeed(change(entry)))
  )
}
