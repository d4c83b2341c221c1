/** The state of a workspace before or after a change, and the conditions under which changes may be made again. */
import * as Effect from "effect/Effect"
import * as Eager from "../engine/eager.ts"
import { diskFull, type Fault, ioError, unavailable } from "../model/Fault.ts"
import { type FsPath, root as rootPath, segments } from "../model/FsPath.ts"
import { StoreError } from "./errors.ts"
import * as Contents from "./format/contents.ts"
import {
  type Answer,
  areContentsEqual,
  areEntriesEqual,
  type Content,
  type DirectoryEntry,
  type Entry,
  type KeptAnswers
} from "./format/nodes.ts"
import type { Objects } from "./format/objects.ts"
import * as Trees from "./format/trees.ts"

/** A failure of a change: of the change itself, or of the stores. */
export type Problem = Fault | StoreError

export const toFault = (problem: Problem): Fault => {
  if (!(problem instanceof StoreError)) return problem
  switch (problem.reason) {
    case "unavailable":
      return unavailable(problem.detail)
    case "full":
      return diskFull
    case "missing":
    case "corrupt":
    case "invalid":
      return ioError(problem.detail)
  }
}

/** The files and snapshots of a workspace before or after a change. */
export interface Draft {
  readonly files: DirectoryEntry
  readonly snapshots: DirectoryEntry
  /** The answers to earlier changes. */
  readonly answers?: KeptAnswers
  /** The answers to the changes in this draft, the newest first. */
  readonly fresh?: ReadonlyArray<Answer>
}

/** A condition on the commits of other writers. If a commit violates the condition, the change fails with Conflict. */
export interface Guard {
  readonly path: FsPath
  /**
   * `content`: the entry still has the content that it had, or is still absent. `stat`: the mode is also the same and, unless
   * the entry is a directory, the times are. `names`: the directory still has the same names and kinds. `tree`: everything
   * below the directory is still the same.
   */
  readonly aspect: "content" | "stat" | "names" | "tree"
}

/** A change of a draft. The change may run several times, each time on a newer draft. */
export interface Change<A> {
  readonly message: string
  readonly run: (draft: Draft) => Effect.Effect<{ readonly draft: Draft; readonly value: A }, Problem>
  /** The conditions under which the change may be rebased on the commit of another writer. */
  readonly guards: ReadonlyArray<Guard>
  /**
   * The entries on which the result of the change depends, with those of the guards. A transaction observes them. If a
   * transaction cannot make the change again, a Conflict names the first path.
   */
  readonly touched?: ReadonlyArray<Guard>
  /** The content that was stored before the change ran. */
  readonly contents?: ReadonlyArray<Content>
}

/** The number of directories on a path that are looked up in one synchronous run, which limits the depth of the stack. */
export const maxEager = 64

export const lookup = (objects: Objects, { files }: Draft, path: FsPath): Effect.Effect<Entry | undefined, StoreError> => {
  if (path === rootPath) return Effect.succeed(files)
  const names = segments(path)
  const next = (at: Entry, i: number): Effect.Effect<Entry | undefined, StoreError> =>
    at.kind !== "directory"
      ? Effect.succeed(undefined)
      : Eager.flatMap(Trees.get(objects, at.tree, names[i]!), (entry) =>
          entry === undefined || i === names.length - 1
            ? Effect.succeed(entry)
            : i % maxEager === maxEager - 1
              ? Effect.suspend(() => next(entry, i + 1))
              : next(entry, i + 1)
        )
  return next(files, 0)
}

export const hasSameContent = (self: Entry | undefined, that: Entry | undefined): boolean =>
  self === that ||
  (self !== undefined &&
    that !== undefined &&
    (self.kind === "file"
      ? that.kind === "file" && areContentsEqual(self.content, that.content)
      : self.kind === "symlink"
        ? that.kind === "symlink" && self.target === that.target
        : that.kind === "directory"))

const versionOf = (entry: Entry | undefined): string | null | undefined =>
  entry === undefined ? null : entry.kind === "file" ? Contents.versionOf(entry.content) : undefined

export const conflict = (path: FsPath, before: Entry | undefined, after: Entry | undefined): Fault => {
  const actual = versionOf(after)
  const expected = versionOf(before) ?? null
  return { _tag: "Conflict", path, expected, ...(actual === undefined ? {} : { actual }) }
}

/** Returns the Conflict of the first guard that another writer's commit violates. */
export const violation = (
  objects: Objects,
  guards: Iterable<Guard>,
  before: Draft,
  after: Draft
): Effect.Effect<Fault | undefined, StoreError> =>
  Effect.gen(function* () {
    for (const { aspect, path } of guards) {
      const [one, other] = [yield* lookup(objects, before, path), yield* lookup(objects, after, path)]
      if (!hasSameContent(one, other)) return conflict(path, one, other)
      if (one === undefined || other === undefined) continue
      if (aspect === "stat" && (one.kind === "directory" ? one.mode !== other.mode : !areEntriesEqual(one, other))) {
        return conflict(path, one, other)
      }
      if ((aspect !== "names" && aspect !== "tree") || one.kind !== "directory" || other.kind !== "directory") continue
      let differs = false
      yield* Trees.forEachDifference(objects, one.tree, other.tree, (one, other) => {
        if (aspect === "tree" || one?.kind !== other?.kind) differs = true
      })
      if (differs) return conflict(path, one, other)
    }
    return undefined
  })
