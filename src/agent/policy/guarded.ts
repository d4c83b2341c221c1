/**
 * A filesystem on which existing files can be changed only at the version this session has seen. The version goes with each
 * change as its precondition, so no other change can come in between.
 */
import * as Effect from "effect/Effect"
import {
  type Algebra,
  type Edit,
  type EditOptions,
  type ReadBytesOptions,
  type ReadOptions,
  versioning,
  type WriteOptions
} from "../../filesystem/Filesystem.ts"
import type { EditResult, ReadBytesResult, ReadResult, WriteResult } from "../../model/Entry.ts"
import {
  AccessDenied,
  Conflict,
  type EditError,
  type ReadBytesError,
  type ReadError,
  type WriteError
} from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Memory } from "../memory.ts"
import { unreadBelow } from "./unread.ts"

const deniedByPolicy = (operation: string, path: string): AccessDenied => new AccessDenied({ operation, path, why: "policy" })

/** Runs the effect while no other call of this process can change the paths. */
const withLocks = <A, E, R>(
  { port }: Algebra,
  paths: ReadonlyArray<FsPath.FsPath | undefined>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  port.locks?.alone?.(
    paths.filter((path) => path !== undefined),
    effect
  ) ?? effect

export const guardVersions = (self: Algebra, memory: Memory, mutates: boolean): Algebra => {
  const policy = self.port.rules?.policy
  const parsed = (path: string): FsPath.FsPath | undefined => {
    const known = FsPath.parse(path, policy)
    return typeof known === "string" ? known : undefined
  }
  const seenVersion = (path: string): string | undefined => {
    const known = parsed(path)
    return known === undefined ? undefined : memory.seen(known)
  }
  const recordVersion = (path: string, version: string | undefined): void => {
    const known = parsed(path)
    if (known !== undefined && version !== undefined) memory.saw(known, version)
  }

  const withSeenVersion = (path: string, options: WriteOptions = {}): WriteOptions => {
    if (options.mode === "create") return { ...options, version: true }
    const known = seenVersion(path)
    return {
      ...options,
      version: true,
      ifMatch: known === undefined ? null : options.ifMatch === undefined ? known : options.ifMatch
    }
  }
  const recordWritten = <E>(path: string, write: Effect.Effect<WriteResult, E>): Effect.Effect<WriteResult, E> =>
    Effect.tap(write, ({ version }) => Effect.sync(() => recordVersion(path, version)))

  /** Fails if the path is a file at another version than the session has seen. */
  const checkFileAsSeen = (operation: string, path: string): Effect.Effect<void, AccessDenied> =>
    Effect.matchEffect(self.stat(path), {
      onFailure: () => Effect.void,
      onSuccess: ({ isFile, isSymlink }) =>
        !isFile || isSymlink === true
          ? Effect.void
          : Effect.matchEffect(self.version(path), {
              onFailure: () => Effect.fail(deniedByPolicy(operation, path)),
              onSuccess: (version) =>
                version === seenVersion(path) ? Effect.void : Effect.fail(deniedByPolicy(operation, path))
            })
    })

  const checkTreeAsSeen = (operation: string, path: string): Effect.Effect<void, AccessDenied> =>
    Effect.matchEffect(self.stat(path), {
      onFailure: () => Effect.void,
      onSuccess: ({ isDirectory, isSymlink }) => {
        const known = parsed(path)
        if (!isDirectory || isSymlink === true || known === undefined || known === FsPath.root) return Effect.void
        return Effect.flatMap(unreadBelow({ filesystem: self, view: self, memory }, known), (unread) =>
          unread !== "too many" && unread.count === 0 ? Effect.void : Effect.fail(deniedByPolicy(operation, path))
        )
      }
    })

  /**
   * Fails unless the file read for a change is at the version seen. The type of a read has no Conflict. This runs only in tools
   * that change files, whose callers handle a Conflict.
   */
  const requireSeenVersion = <A extends { readonly version?: string }, E>(
    operation: string,
    path: string,
    read: Effect.Effect<A, E>
  ): Effect.Effect<A, E | AccessDenied> =>
    Effect.flatMap(read, (result): Effect.Effect<A, E | AccessDenied> => {
      const expected = seenVersion(path)
      const actual = result.version
      // The file was created after the call was judged.
      if (expected === undefined) return Effect.fail(deniedByPolicy(operation, path))
      return actual === undefined || actual === expected
        ? Effect.succeed(result)
        : (Effect.fail(new Conflict({ operation, path, expected, actual })) as Effect.Effect<never, never> as Effect.Effect<
            A,
            E
          >)
    })

  return {
    ...self,
    read: versioning<[path: string], ReadOptions, ReadResult, ReadError>((path, options) =>
      mutates ? requireSeenVersion("read", path, self.read(path, { ...options, version: true })) : self.read(path, options)
    ),
    readBytes: versioning<[path: string], ReadBytesOptions, ReadBytesResult, ReadBytesError>((path, options) =>
      mutates
        ? requireSeenVersion("read", path, self.readBytes(path, { ...options, version: true }))
        : self.readBytes(path, options)
    ),
    write: versioning<[path: string, content: string], WriteOptions, WriteResult, WriteError>((path, content, options) =>
      recordWritten(path, self.write(path, content, withSeenVersion(path, options)))
    ),
    writeBytes: versioning<[path: string, content: Uint8Array], WriteOptions, WriteResult, WriteError>(
      (path, content, options) => recordWritten(path, self.writeBytes(path, content, withSeenVersion(path, options)))
    ),
    sink: ((path: string, options?: WriteOptions) => self.sink(path, withSeenVersion(path, options))) as Algebra["sink"],
    edit: versioning<[path: string, edits: Edit | ReadonlyArray<Edit>], EditOptions, EditResult, EditError>(
      (path, edits, options) => {
        const known = seenVersion(path)
        if (options?.dryRun === true) return self.edit(path, edits, options)
        if (known !== undefined) {
          const edited = self.edit(path, edits, {
            ...options,
            version: true,
            ifMatch: options?.ifMatch === undefined ? known : options.ifMatch
          })
          return Effect.tap(edited, ({ version }) => Effect.sync(() => recordVersion(path, version)))
        }
        return Effect.andThen(checkFileAsSeen("edit", path), self.edit(path, edits, options))
      }
    ),
    delete: (path, options) =>
      Effect.matchEffect(self.stat(path), {
        onFailure: () => self.delete(path, options),
        onSuccess: ({ isDirectory, isFile, isSymlink }) => {
          if (isDirectory && isSymlink !== true && options?.recursive === true) {
            return withLocks(self, [parsed(path)], Effect.andThen(checkTreeAsSeen("delete", path), self.delete(path, options)))
          }
          if (!isFile || isSymlink === true) return self.delete(path, options)
          const known = seenVersion(path)
          return known === undefined
            ? Effect.fail(deniedByPolicy("delete", path))
            : self.delete(path, { ...options, ifMatch: options?.ifMatch === undefined ? known : options.ifMatch })
        }
      }),
    copy: (from, to, options) =>
      options?.overwrite === true
        ? withLocks(self, [parsed(to)], Effect.andThen(checkFileAsSeen("copy", to), self.copy(from, to, options)))
        : self.copy(from, to, options),
    move: (from, to, options) => {
      const target = options?.overwrite === true ? checkFileAsSeen("move", to) : Effect.void
      const checked = Effect.andThen(Effect.andThen(checkFileAsSeen("move", from), checkTreeAsSeen("move", from)), target)
      return withLocks(self, [parsed(from), parsed(to)], Effect.andThen(checked, self.move(from, to, options)))
    }
  }
}
