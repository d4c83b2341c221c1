import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { resolveLink } from "../../engine/resolve.ts"
import {
  type Algebra,
  type Edit,
  type EditOptions,
  type Precondition,
  type ReadBytesOptions,
  type ReadOptions,
  versioning,
  type WriteOptions
} from "../../filesystem/Filesystem.ts"
import { withExclusiveLock } from "../../history/replace.ts"
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
import { listed } from "../../model/words.ts"
import { type Child, keyOf } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { describeConflict, quotePath } from "../advice.ts"
import { type Refused, refused, resultOfRefusal, type Touch } from "../definition.ts"
import type { Memory } from "../memory.ts"
import { formatCount as plural, whole } from "../../model/words.ts"
import { type Invocation, layer, type Policy } from "./core.ts"

// Checks a whole directory before it is removed or moved. The session must have read every file below the directory at its
// current version. A file that cannot be checked counts as unread. A directory with more than 10,000 entries is refused.

const maxJudgedEntries = 10_000

const maxNamedFiles = 5

interface JudgementInput {
  readonly filesystem: Algebra
  readonly view: Algebra
  readonly memory: Memory
}

interface Unread {
  readonly count: number
  readonly named: ReadonlyArray<FsPath.FsPath>
}

interface LocatedEntry {
  /**
   * The real path of the entry. The session uses the path `named`. The two differ below a link, and for a name that no path can
   * express.
   */
  readonly at: FsPath.FsPath
  readonly named: FsPath.FsPath
  readonly addressable: boolean
}

const below = ({ addressable, at, named }: LocatedEntry, child: Child): LocatedEntry => ({
  at: FsPath.join(at, keyOf(child)),
  named: FsPath.join(named, child.name),
  addressable: addressable && child.addressable
})

interface Census {
  readonly files: ReadonlyArray<LocatedEntry>
  readonly unlistable: ReadonlyArray<LocatedEntry>
}

const listFiles = Effect.fnUntraced(function* ({ port }: Algebra, path: FsPath.FsPath): Effect.fn.Return<Census | "too many"> {
  const top = yield* Effect.orElseSucceed(resolveLink(port, path), () => undefined)
  const files: Array<LocatedEntry> = []
  const unlistable: Array<LocatedEntry> = []
  const pending: Array<LocatedEntry> = [{ at: top?.path ?? path, named: path, addressable: true }]
  let entryCount = 0
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    const children = yield* Effect.catch(port.list(directory.at), ({ _tag }) =>
      Effect.succeed(_tag === "NotFound" ? [] : undefined)
    )
    if (children === undefined) unlistable.push(directory)
    for (const child of children ?? []) {
      if (TemporaryNames.isInProgress(child.name)) continue
      if (++entryCount > maxJudgedEntries) return "too many"
      if (child.kind === "directory") pending.push(below(directory, child))
      else if (child.kind === "file") files.push(below(directory, child))
    }
  }
  return { files, unlistable }
})

const byPath = (self: LocatedEntry, that: LocatedEntry): number => FsPath.compare(self.named, that.named)

const nameUnread = Effect.fnUntraced(function* (spots: ReadonlyArray<LocatedEntry>, view: Algebra): Effect.fn.Return<Unread> {
  const named: Array<FsPath.FsPath> = []
  for (const spot of [...spots].sort(byPath)) {
    if (named.length === maxNamedFiles) break
    if (spot.addressable && (yield* Effect.isSuccess(view.stat(spot.named)))) named.push(spot.named)
  }
  return { count: spots.length, named }
})

/**
 * Returns the files below a directory that were not read at their current version, or "too many" for a directory that is too
 * large. Computes the current versions only if every file was read at some version.
 */
const unreadBelow = Effect.fnUntraced(function* (
  { filesystem, memory, view }: JudgementInput,
  path: FsPath.FsPath
): Effect.fn.Return<Unread | "too many"> {
  const found = yield* listFiles(filesystem, path)
  if (found === "too many") return found
  const seen = ({ addressable, at, named }: LocatedEntry): string | undefined =>
    addressable ? (memory.seen(named) ?? memory.seen(at)) : undefined
  const unseen = [...found.unlistable, ...found.files.filter((file) => seen(file) === undefined)]
  if (unseen.length > 0) return yield* nameUnread(unseen, view)
  const changed: Array<LocatedEntry> = []
  for (const file of found.files) {
    const version = yield* Effect.orElseSucceed(filesystem.version(file.at), () => undefined)
    if (version !== seen(file)) changed.push(file)
  }
  return yield* nameUnread(changed, view)
})

// Makes a filesystem on which an existing file can be changed only at the version that the session has seen. Each write, edit and
// removal of a file has this version as its precondition. Copies, moves and removals of directories are checked under a lock.

const deniedByPolicy = (operation: string, path: string): AccessDenied => new AccessDenied({ operation, path, why: "policy" })

const withLocks = <A, E, R>(
  { port }: Algebra,
  paths: ReadonlyArray<FsPath.FsPath | undefined>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  port.locks?.alone?.(
    paths.filter((path) => path !== undefined),
    effect
  ) ?? effect

const guardVersions = (self: Algebra, memory: Memory, mutates: boolean): Algebra => {
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

  const preconditionOf = (known: string, { ifMatch }: Precondition = {}): Precondition => ({
    ifMatch: ifMatch === undefined ? known : ifMatch
  })
  const withSeenVersion = (path: string, options: WriteOptions = {}): WriteOptions => {
    if (options.mode === "create") return { ...options, version: true }
    const known = seenVersion(path)
    return { ...options, version: true, ...(known === undefined ? { ifMatch: null } : preconditionOf(known, options)) }
  }
  const recordWritten = <A extends { readonly version?: string }, E>(
    path: string,
    change: Effect.Effect<A, E>
  ): Effect.Effect<A, E> => Effect.tap(change, ({ version }) => Effect.sync(() => recordVersion(path, version)))

  /**
   * Refuses a file that the session has not seen at its current version. Without `followsLinks` a link is allowed, because
   * the operation replaces the link itself.
   */
  const checkFileAsSeen = (operation: string, path: string, followsLinks = false): Effect.Effect<void, AccessDenied> =>
    Effect.matchEffect(self.stat(path), {
      onFailure: () => Effect.void,
      onSuccess: ({ isFile, isSymlink }) =>
        !isFile || (isSymlink === true && !followsLinks)
          ? Effect.void
          : Effect.flatMap(Effect.option(self.version(path)), (version) =>
              Option.isSome(version) && version.value === seenVersion(path)
                ? Effect.void
                : Effect.fail(deniedByPolicy(operation, path))
            )
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
   * Fails if the session has not seen the file at the version that was read for a change. The error type of a read has no
   * Conflict, but only tools that change files use this function, and these tools handle a Conflict.
   */
  const requireSeenVersion = <A extends { readonly version?: string }, E>(
    operation: string,
    path: string,
    read: Effect.Effect<A, E>
  ): Effect.Effect<A, E | AccessDenied> =>
    Effect.flatMap(read, (result): Effect.Effect<A, E | AccessDenied> => {
      const expected = seenVersion(path)
      const actual = result.version
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
          const how = { ...options, version: true, ...preconditionOf(known, options) }
          return recordWritten(path, self.edit(path, edits, how))
        }
        return Effect.andThen(checkFileAsSeen("edit", path, true), self.edit(path, edits, options))
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
            : self.delete(path, { ...options, ...preconditionOf(known, options) })
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

const isRestore = ({ past }: Pick<Invocation, "past">): boolean => past === "restores"

const onlyCreates = ({ params, tool }: Invocation, { access }: Touch): boolean => {
  if (access !== "write") return false
  if (tool === "mkdir") return true
  if (tool === "move" || tool === "copy") return params["overwrite"] !== true
  return tool === "write_file" && (params["mode"] ?? "create") === "create"
}

/** Returns `advice`. If the memory is discarded after the call, returns advice to ask the user instead. */
const adviseReading = ({ isKept }: Memory, advice: string): string =>
  isKept
    ? advice
    : "This client has no session, so no file counts as read. Ask the user to make the change, or to connect with a version of the protocol that has sessions."

type Finding = "free" | "unread" | Refused

const refuseTooMany = (path: string): Refused =>
  refused(
    `${quotePath(path)} has more than ${whole(maxJudgedEntries)} entries, too many to check whether each file was read. Nothing was changed.`,
    "Process the subdirectories one by one, or ask the user to make the change."
  )

const judgeDirectory = (invocation: Invocation, path: FsPath.FsPath): Effect.Effect<Finding> =>
  Effect.map(unreadBelow(invocation, path), (unread): Finding => {
    if (unread === "too many") return refuseTooMany(path)
    const { count, named } = unread
    if (count === 0) return "free"
    const rest = count - named.length
    const others = rest === 0 ? [] : [named.length === 0 ? `${rest} that cannot be shown` : plural(rest, "other")]
    return refused(
      `${quotePath(path)} contains files whose current version was not read in this session: ${listed([...named.map(quotePath), ...others])}. Nothing was changed.`,
      adviseReading(
        invocation.memory,
        "Read each of these files with read_file, then call the tool again; or ask the user to make the change."
      )
    )
  })

const judgeTouch = Effect.fnUntraced(function* (invocation: Invocation, touch: Touch): Effect.fn.Return<Finding> {
  const { memory, tool, view } = invocation
  const { access, path } = touch
  if (access === "read" || path === FsPath.root || onlyCreates(invocation, touch)) return "free"
  const stat = yield* Effect.orElseSucceed(view.stat(path), () => undefined)
  if (stat === undefined || (stat.isSymlink === true && access === "delete")) return "free"
  if (stat.isDirectory && access === "delete") return yield* judgeDirectory(invocation, path)
  if (!stat.isFile) return "free"
  const expected = memory.seen(path)
  if (expected === undefined) return "unread"
  const actual = yield* Effect.orElseSucceed(view.version(path), () => expected)
  if (actual === expected) return "free"
  const failure = new Conflict({ operation: tool, path, expected, actual })
  const { advice, happened } = yield* describeConflict(failure, { memory, filesystem: view })
  return refused(happened, advice)
})

const unread = (paths: ReadonlyArray<string>, memory: Memory): Refused => {
  const names = listed([...new Set(paths)].map(quotePath))
  const [have, them] = paths.length === 1 ? ["has", "it"] : ["have", "them"]
  return refused(
    `${names} ${have} not been read in this session, and nothing was changed.`,
    adviseReading(memory, `Read ${them} with read_file, then call the tool again.`)
  )
}

const checkTouches = Effect.fnUntraced(function* (invocation: Invocation): Effect.fn.Return<void, Refused> {
  const paths: Array<string> = []
  for (const touch of invocation.touches) {
    const found = yield* judgeTouch(invocation, touch)
    if (found === "unread") paths.push(touch.path)
    else if (found !== "free") return yield* Effect.fail(found)
  }
  if (paths.length > 0) yield* Effect.fail(unread(paths, invocation.memory))
})

const mustCheck = (invocation: Invocation): boolean => invocation.mutates && !isRestore(invocation)

const policy: Policy = {
  name: "readBeforeWrite",
  guard: (self, memory, tool) => (isRestore(tool) ? self : guardVersions(self, memory, tool.does !== "reads")),
  before: (invocation) => (mustCheck(invocation) ? checkTouches(invocation) : Effect.void),
  // The removal of a file compares its version. A directory has no version, so it is checked again under the lock, when no
  // other call can change it.
  around: (invocation, call) =>
    mustCheck(invocation) && invocation.touches.some(({ access }) => access === "delete")
      ? withExclusiveLock(
          invocation.filesystem.port,
          Effect.matchEffect(checkTouches(invocation), {
            onFailure: (refusal) => Effect.succeed(resultOfRefusal(refusal)),
            onSuccess: () => call
          })
        )
      : call
}

/**
 * Allows a file to be overwritten, edited, removed or moved only after `read_file` has succeeded on its path in the same
 * session. The file must still have the version that was read. New files may always be written, and files that the session has
 * written count as read.
 *
 * A directory can be removed or moved only if every file below it has been read in the same way. A file that the session cannot
 * see or read counts as not read. A directory with more than 10,000 entries can be neither removed nor moved.
 *
 * @category policies
 * @since 0.1.0
 */
export const readBeforeWrite: Layer.Layer<never> = layer(policy)
