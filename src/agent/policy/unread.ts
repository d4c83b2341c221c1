/**
 * Judges a whole directory before it is removed or moved: every file below it must have been read in the session and be
 * unchanged since. A file that cannot be judged counts as unread.
 */
import * as Effect from "effect/Effect"
import { resolveLink } from "../../engine/resolve.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Child, keyOf } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Memory } from "../memory.ts"

/** The largest number of entries to judge. A session remembers no more files than this. */
export const maxJudgedEntries = 10_000

const maxNamedFiles = 5

/** The inputs of a judgement. `filesystem` shows every file; `view` shows those that the session may see. */
export interface JudgementInput {
  readonly filesystem: Algebra
  readonly view: Algebra
  readonly memory: Memory
}

export interface Unread {
  readonly count: number
  /** The first unread files by path, without those hidden from the session. */
  readonly named: ReadonlyArray<FsPath.FsPath>
}

interface LocatedEntry {
  /** The place of the entry and the session's name for it. They differ below a link, and for names that no path can express. */
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

/** Names only files that the session may see. */
const nameUnread = Effect.fnUntraced(function* (spots: ReadonlyArray<LocatedEntry>, view: Algebra): Effect.fn.Return<Unread> {
  const named: Array<FsPath.FsPath> = []
  for (const spot of [...spots].sort(byPath)) {
    if (named.length === maxNamedFiles) break
    if (spot.addressable && (yield* Effect.isSuccess(view.stat(spot.named)))) named.push(spot.named)
  }
  return { count: spots.length, named }
})

/**
 * Returns the files below a directory that were not read at their current version. Compares contents only if every file was
 * read.
 */
export const unreadBelow = Effect.fnUntraced(function* (
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
