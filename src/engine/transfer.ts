/**
 * Copies and moves entries.
 *
 * Each call inspects both paths and acts on the result under locks: a copy locks its target, a move both paths. If
 * copying a tree fails, the partial copy is removed.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import type { FileStat, TransferResult } from "../model/Entry.ts"
import {
  alreadyExists,
  directoryNotEmpty,
  notADirectory,
  notAFile,
  notFound,
  accessDenied,
  invalidArgument,
  ioError,
  unsupported
} from "../model/Fault.ts"
import { type Fault, located } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type Backend, type Child, keyOf, type Links, type WriteHow } from "../port/Backend.ts"
import { withReadAhead } from "../port/readAhead.ts"
import { performing } from "../port/Request.ts"
import { TakingBack } from "../port/Rules.ts"
import * as TemporaryNames from "../runtime/temporaryNames.ts"
import {
  runAccelerated,
  at as locate,
  withLocks,
  makeDirectories,
  makeRecordedDirectory,
  undoQuietly,
  withRollback
} from "./directories.ts"
import * as Read from "./read.ts"
import { isPinned, removeAt } from "./remove.ts"
import { placeFault, type Resolved, resolveLink } from "./resolve.ts"

const root: Fault = accessDenied("root")

interface TransferEnds {
  readonly from: FsPath.FsPath
  readonly source: FileStat
  readonly to: FsPath.FsPath
  readonly target: FileStat | undefined
  /**
   * The operation if it keeps permission bits, otherwise false. A move always keeps the bits, and a copy keeps them
   * unless its layer forbids it.
   */
  readonly keepsModes: false | Operation
}

const intoItself: Fault = invalidArgument("to", "a file cannot be copied or moved onto itself, nor a directory into itself")

const foldName = (port: Backend, path: FsPath.FsPath): FsPath.FsPath => (port.info.caseSensitive ? path : FsPath.fold(path))

export type Operation = "copy" | "move"

export const checkNames = (port: Backend, operation: Operation, from: FsPath.FsPath, to: FsPath.FsPath): Fault | undefined => {
  if (isPinned(port, to)) return root
  return FsPath.isWithin(foldName(port, from), foldName(port, to)) && !(operation === "move" && isCaseRename(port, from, to))
    ? intoItself
    : undefined
}

const isCaseRename = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath): boolean =>
  !port.info.caseSensitive && FsPath.name(from) !== FsPath.name(to) && FsPath.fold(from) === FsPath.fold(to)

const replacementFault = (source: FileStat, target: FileStat): Fault | undefined =>
  source.kind === "directory"
    ? target.kind === "directory"
      ? undefined
      : notADirectory
    : target.kind === "directory"
      ? notAFile
      : undefined

const ends = Effect.fnUntraced(function* (
  port: Backend,
  from: FsPath.FsPath,
  to: FsPath.FsPath,
  overwrite: boolean,
  keepsModes: TransferEnds["keepsModes"]
): Effect.fn.Return<TransferEnds, Fault> {
  const source = yield* locate(from, port.stat(from))
  if (source === undefined) return yield* Effect.fail(located(notFound, from))
  const target = yield* locate(to, port.stat(to))
  if (target === undefined || isCaseRename(port, from, to)) return { from, source, to, target: undefined, keepsModes }
  if (!overwrite) return yield* Effect.fail(located(alreadyExists, to))
  if (target.kind === "other") return yield* Effect.fail(located(notAFile, to))
  if (target.kind === "directory") {
    const children = yield* locate(to, port.list(to))
    if (children.some((child) => !TemporaryNames.isInProgress(child.name)))
      return yield* Effect.fail(located(directoryNotEmpty, to))
  }
  const fault = replacementFault(source, target)
  if (fault !== undefined) return yield* Effect.fail(located(fault, to))
  return { from, source, to, target, keepsModes }
})

const transfer = (
  port: Backend,
  operation: Operation,
  from: FsPath.FsPath,
  to: FsPath.FsPath,
  overwrite: boolean,
  run: (ends: TransferEnds) => Effect.Effect<TransferResult, Fault>
): Effect.Effect<TransferResult, Fault> =>
  Effect.suspend(() => {
    const { decidesModeOfCopies, preservePermissions } = port.rules ?? {}
    const keepsModes = (operation === "move" || preservePermissions !== false || decidesModeOfCopies === true) && operation
    const found = Effect.flatMap(locate(from, resolveLink(port, from)), (one) =>
      one.stat === undefined
        ? Effect.fail(located(notFound, from))
        : Effect.map(locate(to, resolveLink(port, to)), (other) => [one, other] as const)
    )
    /**
     * Takes the locks and resolves the symlinks of both paths. If a resolved path differs from the locked path, retries
     * with the resolved paths, up to `left` times.
     */
    const attempt = (source: FsPath.FsPath, target: FsPath.FsPath, left: number): Effect.Effect<TransferResult, Fault> =>
      Effect.flatMap(
        withLocks(
          port,
          operation === "copy" ? [target] : [source, target],
          Effect.flatMap(found, ([one, other]): Effect.Effect<TransferResult | readonly [Resolved, Resolved], Fault> => {
            const targetFault = placeFault(other)
            if (targetFault !== undefined) return Effect.fail(located(targetFault, to))
            if (one.path !== source || other.path !== target) return Effect.succeed([one, other] as const)
            const fault = checkNames(port, operation, source, target)
            if (fault !== undefined) return Effect.fail(located(fault, to))
            return Effect.flatMap(ends(port, source, target, overwrite, keepsModes), run).pipe(
              Effect.mapError((fault) => withCallerPaths(fault, one, from, other, to))
            )
          })
        ),
        (out) =>
          "files" in out
            ? Effect.succeed(out)
            : left === 0
              ? Effect.fail(located(ioError("the symlinks in its path keep changing; try again"), from))
              : attempt(out[0].path, out[1].path, left - 1)
      )
    return attempt(from, to, 8)
  })

const withCallerPaths = (fault: Fault, source: Resolved, from: FsPath.FsPath, target: Resolved, to: FsPath.FsPath): Fault =>
  fault["path"] === source.path ? { ...fault, path: from } : fault["path"] === target.path ? { ...fault, path: to } : fault

export const copy = (
  port: Backend,
  from: FsPath.FsPath,
  to: FsPath.FsPath,
  overwrite: boolean
): Effect.Effect<TransferResult, Fault> => transfer(port, "copy", from, to, overwrite, (ends) => copyTree(port, ends))

interface CreatedEntries {
  readonly directories: Array<FsPath.FsPath>
  readonly leaves: Array<CreatedLeaf>
}

interface CreatedLeaf {
  readonly path: FsPath.FsPath
  stat: FileStat | undefined
}

/**
 * Copies an entry. If the copy fails, removes the entries that it created, but not entries that others have added to the
 * copy.
 *
 * `lastStep` runs after the copy. If `lastStep` fails, the copy is removed only if the original is unchanged. Otherwise
 * the original may have been removed, and the copy may be the only version.
 */
const copyTree = (
  port: Backend,
  ends: TransferEnds,
  lastStep?: Effect.Effect<unknown, Fault>
): Effect.Effect<TransferResult, Fault> =>
  withRollback(port, (directories) => {
    const made: CreatedEntries = { directories, leaves: [] }
    const stepByStep = copyInto(port, ends, made)
    const copied =
      lastStep === undefined
        ? Effect.flatMap(copyAtOnce(port, ends), Option.match({ onNone: () => stepByStep, onSome: Effect.succeed }))
        : stepByStep
    return Effect.andThen(
      ends.target === undefined ? locate(ends.to, makeDirectories(port, FsPath.parent(ends.to), directories)) : Effect.void,
      Effect.onExit(lastStep === undefined ? copied : Effect.tap(copied, () => lastStep), (exit) =>
        Exit.isSuccess(exit)
          ? // An interruption after this moment must not remove the empty directories of a complete copy.
            Effect.sync(() => void (directories.length = 0))
          : undoQuietly(removeCopy(port, ends, made, lastStep !== undefined))
      )
    )
  })

/** Copies a directory to a new name in one step, if the backend can do so and no rule decides about modes. */
const copyAtOnce = (
  port: Backend,
  { from, keepsModes, source, target, to }: TransferEnds
): Effect.Effect<Option.Option<TransferResult>, Fault> => {
  const perform = performing(port, "CopyTree")
  return perform === undefined ||
    source.kind !== "directory" ||
    target !== undefined ||
    keepsModes === false ||
    port.rules?.decidesModeOfCopies === true
    ? Effect.succeedNone
    : locate(to, perform({ _tag: "CopyTree", path: from, to }))
}

const isUnchanged = (now: FileStat | undefined, before: FileStat): boolean =>
  now !== undefined &&
  now.kind === before.kind &&
  now.sizeBytes === before.sizeBytes &&
  now.modifiedAt?.epochMilliseconds === before.modifiedAt?.epochMilliseconds

const removeCopy = Effect.fnUntraced(function* (
  port: Backend,
  ends: TransferEnds,
  made: CreatedEntries,
  requiresOriginal: boolean
): Effect.fn.Return<void, Fault> {
  if (requiresOriginal && !isUnchanged(yield* port.stat(ends.from), ends.source)) return
  // Make the copied directories writable, because they may already have the modes of their originals.
  if (ends.keepsModes !== false && port.attributes !== undefined) {
    for (const path of made.directories) yield* Effect.ignore(port.attributes.set(path, { mode: 0o700 }))
  }
  for (const { path, stat } of made.leaves.reverse()) {
    const remove = Effect.flatMap(port.stat(path), (now) =>
      stat === undefined || isUnchanged(now, stat) ? port.remove(path) : Effect.void
    )
    yield* Effect.ignore(remove)
  }
})

const recordCreated = <A, E, R>(
  made: CreatedEntries,
  leaf: CreatedLeaf,
  make: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> => Effect.uninterruptible(Effect.tap(make, () => Effect.sync(() => made.leaves.push(leaf))))

interface Listed {
  readonly path: FsPath.FsPath
  readonly child: Child
}

const listBelow = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath
): Effect.fn.Return<ReadonlyArray<Listed>, Fault> {
  const out: Array<Listed> = []
  const directories = [top]
  for (let next = directories.pop(); next !== undefined; next = directories.pop()) {
    for (const child of yield* locate(next, port.list(next))) {
      if (TemporaryNames.isInProgress(child.name)) continue
      const path = FsPath.join(next, keyOf(child))
      out.push({ path, child })
      if (child.kind === "directory") directories.push(path)
    }
  }
  return out
})

const copyInto = Effect.fnUntraced(function* (
  port: Backend,
  ends: TransferEnds,
  made: CreatedEntries
): Effect.fn.Return<TransferResult, Fault> {
  if (ends.source.kind !== "directory") return yield* copyLeaf(port, ends.from, ends.source, ends, made)
  // List everything before copying. If two paths denote the same directory, the copy would otherwise list its own
  // entries.
  const all = yield* listBelow(port, ends.from)
  const copied: Array<readonly [from: FsPath.FsPath, to: FsPath.FsPath]> = [[ends.from, ends.to]]
  let files = 0
  let bytes = 0
  const reading = withReadAhead(
    port,
    all.flatMap(({ child, path }) => (child.kind === "file" ? [path] : []))
  )
  if (ends.target === undefined) yield* locate(ends.to, makeRecordedDirectory(port, ends.to, made.directories))
  for (const { child, path } of all) {
    const target = FsPath.below(ends.to, FsPath.relative(ends.from, path))
    if (child.kind === "directory") {
      yield* locate(target, makeRecordedDirectory(port, target, made.directories))
      copied.push([path, target])
      continue
    }
    const by = { to: target, target: undefined, keepsModes: ends.keepsModes }
    const inspected = () =>
      Effect.flatMap(locate(path, port.stat(path)), (stat) =>
        stat === undefined ? Effect.succeed(undefined) : copyLeaf(port, path, stat, by, made)
      )
    // The kind is from the listing. Another entry may have replaced the file since then.
    const isNoFile = ({ _tag, path: at }: Fault): boolean => at === path && (_tag === "NotFound" || _tag === "NotAFile")
    const done = yield* child.kind === "file"
      ? Effect.catchIf(copyFile(reading, path, by, made), isNoFile, inspected)
      : inspected()
    if (done === undefined) continue
    files += done.files
    bytes += done.bytes
  }
  if (ends.keepsModes !== false) yield* copyModes(port, copied, ends.keepsModes)
  return { files, directories: copied.length, bytes }
})

type CopyTarget = Pick<TransferEnds, "to" | "target" | "keepsModes">

const copyLeaf = (
  port: Backend,
  from: FsPath.FsPath,
  source: FileStat,
  { keepsModes, target, to }: CopyTarget,
  made: CreatedEntries
): Effect.Effect<TransferResult, Fault> => {
  const put = source.kind === "file" ? copyFile : source.kind === "symlink" ? copyLink : undefined
  if (put === undefined) return Effect.fail(located(notAFile, from))
  if (target === undefined || (target.kind === "file" && source.kind === "file")) {
    return put(port, from, { to, target, keepsModes }, made)
  }
  return TemporaryNames.withName((name) => {
    const aside = FsPath.join(FsPath.parent(to), name)
    const copied = (from: FsPath.FsPath, to: FsPath.FsPath, by: typeof copyFile) =>
      by(port, from, { to, target: undefined, keepsModes }, { directories: [], leaves: [] })
    return Effect.onExit(
      Effect.tap(copied(from, aside, put), () =>
        // The deleted entry is a temporary file of this library, so no permission to delete is needed.
        Effect.provideService(
          Effect.catchIf(locate(to, port.rename(aside, to, { replace: true })), isCrossDevice, () =>
            Effect.tap(locate(to, replaceByCopying(port, to, copied(aside, to, put), target, copied)), () =>
              Effect.ignore(port.remove(aside))
            )
          ),
          TakingBack,
          true
        )
      ),
      (exit) => (Exit.isSuccess(exit) ? Effect.void : undoQuietly(port.remove(aside)))
    )
  })
}

/**
 * Replaces an entry on a backend that cannot rename. Keeps a copy of the old entry, and restores this copy if the new
 * entry cannot be created.
 */
const replaceByCopying = (
  port: Backend,
  to: FsPath.FsPath,
  made: Effect.Effect<TransferResult, Fault>,
  { kind }: FileStat,
  copied: (from: FsPath.FsPath, to: FsPath.FsPath, by: typeof copyFile) => Effect.Effect<TransferResult, Fault>
): Effect.Effect<void, Fault> => {
  const by = kind === "file" ? copyFile : copyLink
  return TemporaryNames.withName((name) => {
    const kept = FsPath.join(FsPath.parent(to), name)
    const put = Effect.andThen(port.remove(to), made)
    return Effect.uninterruptible(
      Effect.andThen(
        copied(to, kept, by),
        Effect.onError(put, () => Effect.ignore(copied(kept, to, by)))
      ).pipe(Effect.ensuring(Effect.ignore(port.remove(kept))))
    )
  })
}

const changed: Fault = ioError("the entry changed while it was copied; try again")

/** Reads a symlink. Fails with IoError if another kind of entry has replaced the symlink since it was inspected. */
const linkAt = (links: Links, path: FsPath.FsPath): Effect.Effect<string, Fault> =>
  Effect.mapError(links.read(path), (fault) => (fault._tag === "InvalidArgument" ? changed : fault))

const copyLink = (
  port: Backend,
  from: FsPath.FsPath,
  { to }: CopyTarget,
  made: CreatedEntries
): Effect.Effect<TransferResult, Fault> => {
  const links = port.links
  if (links === undefined) {
    return Effect.fail(located(unsupported("symbolic links"), to))
  }
  const leaf: CreatedLeaf = { path: to, stat: undefined }
  const known = Effect.ignore(Effect.map(port.stat(to), (stat) => void (leaf.stat = stat)))
  return Effect.as(
    Effect.flatMap(locate(from, linkAt(links, from)), (text) =>
      locate(to, Effect.uninterruptible(Effect.andThen(recordCreated(made, leaf, links.make(to, text)), known)))
    ),
    { files: 1, directories: 0, bytes: 0 }
  )
}

const copyFile = (
  port: Backend,
  from: FsPath.FsPath,
  ends: CopyTarget,
  made: CreatedEntries
): Effect.Effect<TransferResult, Fault> => {
  const perform = performing(port, "CopyFile")
  if (perform === undefined || port.rules?.decidesModeOfCopies === true) return copyContent(port, from, ends, made)
  const { keepsModes, target, to } = ends
  const leaf: CreatedLeaf = { path: to, stat: undefined }
  const how: WriteHow = target === undefined ? { commit: (publish) => recordCreated(made, leaf, publish) } : {}
  const mode = target === undefined ? "create" : "replace"
  const keepsMode = target === undefined && keepsModes !== false
  return Effect.flatMap(
    locate(to, perform({ _tag: "CopyFile", path: from, to, mode, keepsMode, how })),
    Option.match({
      onNone: () => copyContent(port, from, ends, made),
      onSome: (stat) => {
        leaf.stat = stat
        return Effect.succeed({ files: 1, directories: 0, bytes: stat.sizeBytes })
      }
    })
  )
}

const copyContent = (
  port: Backend,
  from: FsPath.FsPath,
  { keepsModes, target, to }: CopyTarget,
  made: CreatedEntries
): Effect.Effect<TransferResult, Fault> => {
  const mode = target === undefined ? "create" : "replace"
  const leaf: CreatedLeaf = { path: to, stat: undefined }
  const how: WriteHow = target === undefined ? { commit: (publish) => recordCreated(made, leaf, publish) } : {}
  const keepsMode = target === undefined && keepsModes
  const write = (source: FileStat, bytes: Uint8Array | Stream.Stream<Uint8Array, Fault>) =>
    Effect.flatMap(locate(to, port.write(to, bytes, mode, how)), (stat) => {
      leaf.stat = stat
      return Effect.as(keepsMode !== false ? copyMode(port, source, to, stat.mode, keepsMode) : Effect.void, {
        files: 1,
        directories: 0,
        bytes: stat.sizeBytes
      })
    })
  const opened = () =>
    Effect.scoped(
      Effect.flatMap(locate(from, port.open(from)), (handle) => {
        const size = handle.stat.sizeBytes
        return size <= maxWholeFileBytes
          ? Effect.flatMap(locate(from, Read.range(handle, 0, size)), (bytes) => write(handle.stat, bytes))
          : write(handle.stat, Read.chunks(handle, 0, size, chunkBytes))
      })
    )
  const perform = performing(port, "Read")
  return perform === undefined
    ? Effect.suspend(opened)
    : Effect.flatMap(
        locate(
          from,
          Effect.suspend(() => perform({ _tag: "Read", path: from, maxBytes: chunkBytes }))
        ),
        Option.match({
          onNone: opened,
          onSome: ({ bytes, isLent, stat }) => write(stat, isLent === true ? bytes.slice() : bytes)
        })
      )
}

const maxWholeFileBytes = 1024 * 1024
const chunkBytes = 64 * 1024

const copyMode = (
  port: Backend,
  source: FileStat,
  to: FsPath.FsPath,
  made: number | undefined,
  operation: Operation
): Effect.Effect<void, Fault> =>
  source.mode === undefined || source.mode === made || port.attributes === undefined
    ? Effect.void
    : operation === "move"
      ? locate(to, port.attributes.set(to, { mode: source.mode }))
      : Effect.catch(locate(to, port.attributes.set(to, { mode: source.mode, isCopy: true })), ignoreForbidden)

const unsupportedModeCodes = new Set<unknown>(["ENOTSUP", "EOPNOTSUPP", "ENOSYS"])

/**
 * Ignores the failure to set permission bits on a disk that has no such bits or forbids the change, such as vfat with a
 * fixed owner.
 */
const ignoreForbidden = (fault: Fault): Effect.Effect<void, Fault> =>
  (fault._tag === "AccessDenied" && fault["why"] === "permission") ||
  fault._tag === "Unsupported" ||
  (fault._tag === "IoError" && unsupportedModeCodes.has(fault["code"]))
    ? Effect.void
    : Effect.fail(fault)

/**
 * Copies the modes of directories after their entries, deepest first, because no entry can be created in a read-only
 * directory.
 */
const copyModes = Effect.fnUntraced(function* (
  port: Backend,
  made: ReadonlyArray<readonly [from: FsPath.FsPath, to: FsPath.FsPath]>,
  operation: Operation
): Effect.fn.Return<void, Fault> {
  for (let i = made.length - 1; i >= 0; i--) {
    const [from, to] = made[i]!
    const stat = yield* port.stat(from)
    if (stat !== undefined) yield* copyMode(port, stat, to, (yield* port.stat(to))?.mode, operation)
  }
})

const countEntries = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath,
  stat: FileStat
): Effect.fn.Return<TransferResult, Fault> {
  if (stat.kind !== "directory") return { files: 1, directories: 0, bytes: stat.kind === "file" ? stat.sizeBytes : 0 }
  let files = 0
  let directories = 1
  let bytes = 0
  for (const { child, path } of yield* listBelow(port, top)) {
    if (child.kind === "directory") directories++
    else files++
    if (child.kind === "file") bytes += child.sizeBytes ?? (yield* port.stat(path))?.sizeBytes ?? 0
  }
  return { files, directories, bytes }
})

export const move = (
  port: Backend,
  from: FsPath.FsPath,
  to: FsPath.FsPath,
  overwrite: boolean
): Effect.Effect<TransferResult, Fault> => {
  const stepByStep = transfer(port, "move", from, to, overwrite, (ends) =>
    isPinned(port, ends.from) ? Effect.fail(located(root, ends.from)) : moveTree(port, ends)
  )
  return isPinned(port, from)
    ? stepByStep
    : runAccelerated(
        port,
        "Move",
        [from, to],
        (perform) => perform({ _tag: "Move", path: from, to, plan: { overwrite, createParents: true } }),
        () => stepByStep
      )
}

const isCrossDevice = (fault: Fault): boolean => fault._tag === "IoError" && fault["code"] === "EXDEV"

const moveTree = (port: Backend, ends: TransferEnds): Effect.Effect<TransferResult, Fault> =>
  Effect.flatMap(countEntries(port, ends.from, ends.source), (counted) =>
    withRollback(port, (made) =>
      Effect.andThen(
        ends.target === undefined ? locate(ends.to, makeDirectories(port, FsPath.parent(ends.to), made)) : Effect.void,
        Effect.catch(
          Effect.as(locate(ends.to, port.rename(ends.from, ends.to, { replace: ends.target !== undefined })), counted),
          (fault) => {
            if (isCrossDevice(fault)) return moveByCopying(port, ends)
            // The entry's name already has this spelling.
            const isSame = fault._tag === "AlreadyExists" && isCaseRename(port, ends.from, ends.to)
            return Effect.fail(isSame ? located(intoItself, ends.to) : fault)
          }
        )
      )
    )
  )

/**
 * Moves an entry between two disks. The original is removed after the copy is complete.
 *
 * If the original is a single file or symlink and cannot be removed, its copy is removed again, unless the copy has
 * replaced an entry. The copy of a tree stays, because it may be the only complete version.
 */
const moveByCopying = (port: Backend, ends: TransferEnds): Effect.Effect<TransferResult, Fault> => {
  const removeSource = locate(ends.from, removeAt(port, ends.from, ends.source, true))
  return ends.source.kind === "directory" || ends.target !== undefined
    ? Effect.tap(copyTree(port, ends), () => removeSource)
    : copyTree(port, ends, removeSource)
}
