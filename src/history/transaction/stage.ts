/**
 * Stages a transaction: creates and checks all new entries under hidden names before any visible change.
 *
 * A symlink or small file that a file or symlink will replace is also copied to the staging directory. With the copy as a backup,
 * a rename can replace the entry in one step, so its path is never missing.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { at as locate } from "../../engine/directories.ts"
import type { FileStat } from "../../model/Entry.ts"
import { unsupported } from "../../model/Fault.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import { type Backend, keyOf, type NewEntry } from "../../port/Backend.ts"
import { performing } from "../../port/Request.ts"
import { createHash, type Hash } from "../../runtime/node.ts"
import type { Unpack, UnstagedFile } from "../unpack.ts"
import { blobHasher, blobId, countFiles, type FileNode, type Node } from "../tree.ts"
import { copyFile, copyLink, maxWholeBytes, noLinks } from "./entries.ts"
import { modeOf, type Move, type Plan, slotOf, type Step, withOwnerBits } from "./plan.ts"

// Staged entries are created many in one call if the port supports `MakeMany`, and otherwise one by one.

interface PendingEntry<E> {
  readonly entry: NewEntry
  readonly path: FsPath.FsPath
  readonly createAlone: Effect.Effect<void, E>
  readonly onCreated: Effect.Effect<void>
}

interface EntryCreator<E> {
  readonly add: (pending: PendingEntry<E>) => Effect.Effect<void, E | Fault>
  /** Creates the added entries that do not exist yet. Callers must flush before they use an entry. */
  readonly flush: Effect.Effect<void, E | Fault>
}

const maxPendingEntries = 1024
const maxPendingBytes = 1024 * 1024

const makeCreator = <E>(port: Backend): EntryCreator<E> => {
  const perform = performing(port, "MakeMany")
  if (perform === undefined) return { add: ({ createAlone }) => createAlone, flush: Effect.void }
  let pendingEntries: Array<PendingEntry<E>> = []
  let bytes = 0
  const flush = Effect.suspend(() => {
    const all = pendingEntries
    const [first] = all
    if (first === undefined) return Effect.void
    pendingEntries = []
    bytes = 0
    const creation = perform({ _tag: "MakeMany", entries: all.map(({ entry }) => entry) })
    return Effect.flatMap(
      Effect.mapError(creation, (fault) => located(fault, first.path)),
      (answer) => {
        const isCreated = Option.getOrElse(answer, () => [])
        return Effect.forEach(
          all,
          ({ createAlone, onCreated }, index): Effect.Effect<void, E> => (isCreated[index] === true ? onCreated : createAlone),
          { discard: true }
        )
      }
    )
  })
  return {
    add: (pending) =>
      Effect.suspend(() => {
        pendingEntries.push(pending)
        bytes += pending.entry.bytes?.length ?? 0
        return pendingEntries.length < maxPendingEntries && bytes < maxPendingBytes ? Effect.void : flush
      }),
    flush
  }
}

// Each staged file, symlink or tree has a digest of its kinds, names, targets and contents. The digest also covers the
// permission bits if all of them are known. Recovery compares the digest before it publishes an entry.

interface StagedFields {
  readonly path: FsPath.FsPath
  readonly mode: number | undefined
}

type Staged =
  | (StagedFields & { readonly kind: "file"; hash: string })
  | (StagedFields & { readonly kind: "symlink"; readonly target: string })
  | (StagedFields & { readonly kind: "directory" })

const sha256 = (value: unknown): string => createHash("sha256").update(JSON.stringify(value)).digest("hex")

/** Returns the digest of a tree. In `entries` each directory must come before the entries below it. */
const treeDigest = (entries: ReadonlyArray<Staged>, hasBits: boolean): string => {
  const inside = new Map<FsPath.FsPath, Array<readonly [name: string, digest: string]>>()
  let digest = ""
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at]!
    const bits = hasBits && entry.kind !== "symlink" ? entry.mode : null
    const content =
      entry.kind === "file"
        ? entry.hash
        : entry.kind === "symlink"
          ? entry.target
          : (inside.get(entry.path) ?? []).sort(([a], [b]) => FsPath.compare(a, b))
    inside.delete(entry.path)
    digest = sha256([entry.kind, bits, content])
    const above = FsPath.parent(entry.path)
    const siblings = inside.get(above)
    if (siblings === undefined) inside.set(above, [[FsPath.name(entry.path), digest]])
    else siblings.push([FsPath.name(entry.path), digest])
  }
  return digest
}

export type StagedDigest = Required<Pick<Move, "digest" | "hasBits">>

const digestStaged = (entries: ReadonlyArray<Staged>): StagedDigest => {
  const hasBits = entries.every(({ kind, mode }) => kind === "symlink" || mode !== undefined)
  return { digest: treeDigest(entries, hasBits), hasBits }
}

const blockBytes = 1024 * 1024

const hashAt = Effect.fnUntraced(function* (port: Backend, path: FsPath.FsPath) {
  const handle = yield* port.open(path)
  const hash = createHash("sha256")
  for (let offset = 0; ;) {
    const bytes = yield* handle.read(offset, blockBytes)
    if (bytes.length === 0) return hash.digest("hex")
    hash.update(bytes)
    offset += bytes.length
  }
}, Effect.scoped)

const readStagedEntry = (
  port: Backend,
  path: FsPath.FsPath,
  { kind, mode }: FileStat
): Effect.Effect<Staged | undefined, Fault> => {
  const common = { path, mode: mode === undefined ? undefined : mode & 0o777 }
  if (kind === "file") return Effect.map(hashAt(port, path), (hash) => ({ ...common, kind, hash }))
  if (kind === "directory") return Effect.succeed({ ...common, kind })
  if (kind !== "symlink") return Effect.succeed(undefined)
  return Effect.map(port.links?.read(path) ?? Effect.fail(located(unsupported("symbolic links"), path)), (target) => ({
    ...common,
    kind,
    target
  }))
}

export const isStagedEntry = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPath.FsPath,
  { digest, hasBits = false, next }: Move,
  stat: FileStat
): Effect.fn.Return<boolean, Fault> {
  if (stat.kind !== next || digest === undefined) return false
  const entries: Array<Staged> = []
  const pending = [top]
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    const found = path === top ? stat : yield* locate(path, port.stat(path))
    const entry = found && (yield* locate(path, readStagedEntry(port, path, found)))
    if (entry === undefined) return false
    entries.push(entry)
    if (entry.kind !== "directory") continue
    for (const child of yield* locate(path, port.list(path))) pending.push(FsPath.join(path, keyOf(child)))
  }
  return treeDigest(entries, hasBits) === digest
})

export interface Mismatch {
  readonly _tag: "Mismatch"
  readonly path: FsPath.FsPath
}

export type Content<E> = (
  path: FsPath.FsPath,
  file: FileNode
) => Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, E | Fault>, E | Fault>

const mismatch = (path: FsPath.FsPath): Effect.Effect<never, Mismatch> => Effect.fail({ _tag: "Mismatch", path })

interface StagedPath {
  readonly at: FsPath.FsPath
  readonly path: FsPath.FsPath
}

/**
 * Returns the stream with a check of its content. The stream fails when it exceeds the size of the file, or at the end if the
 * content does not match the file.
 */
const checkContent = <E>(
  content: Stream.Stream<Uint8Array, E>,
  file: FileNode,
  path: FsPath.FsPath,
  hash: Hash | undefined
): Stream.Stream<Uint8Array, E | Mismatch> =>
  Stream.suspend(() => {
    const hasher = blobHasher(file.sizeBytes)
    let size = 0
    const counted = Stream.mapArrayEffect(content, (chunks) => {
      for (const bytes of chunks) {
        size += bytes.length
        hasher.update(bytes)
        hash?.update(bytes)
      }
      return size > file.sizeBytes ? mismatch(path) : Effect.succeed(chunks)
    })
    const end = Effect.suspend(() =>
      size === file.sizeBytes && (file.id === "" || hasher.digest("hex") === file.id) ? Effect.void : mismatch(path)
    )
    return Stream.concat(counted, Stream.drain(Stream.fromEffect(end)))
  })

const matchesFile = (bytes: Uint8Array, file: FileNode): boolean =>
  bytes.length === file.sizeBytes && (file.id === "" || blobId(bytes) === file.id)

interface StagingContext<E> {
  readonly content: Content<E>
  /** The files to stage in threads, after the directories. Absent if no thread can stage files. */
  readonly unstaged: Array<UnstagedFile & { readonly staged: Extract<Staged, { readonly kind: "file" }> }> | undefined
  readonly isRecorded: boolean
  readonly creator: EntryCreator<Fault | Mismatch | E>
  readonly done: Effect.Effect<void>
}

const writeFile = Effect.fnUntraced(function* <E>(
  port: Backend,
  { at, path }: StagedPath,
  file: FileNode,
  mode: number | undefined,
  bytes: Uint8Array | Stream.Stream<Uint8Array, E>
): Effect.fn.Return<void, Fault | Mismatch | E> {
  const stat = yield* Effect.mapError(port.write(at, bytes, "create"), (error) => atFinalPath(error, at, path))
  if (stat.sizeBytes !== file.sizeBytes) return yield* mismatch(path)
  const attributes = {
    ...(mode === undefined || mode === stat.mode ? {} : { mode }),
    ...(file.modifiedAt === undefined ? {} : { modifiedAt: file.modifiedAt })
  }
  if (Object.keys(attributes).length > 0 && port.attributes !== undefined) {
    yield* locate(path, port.attributes.set(at, attributes))
  }
})

/** Stages a file. Returns the hash of the content if the transaction has a record, and otherwise an empty string. */
const stageFile = Effect.fnUntraced(function* <E>(
  port: Backend,
  named: StagedPath,
  file: FileNode,
  mode: number | undefined,
  { content, done, isRecorded, creator }: StagingContext<E>
): Effect.fn.Return<string, Fault | Mismatch | E> {
  const { at, path } = named
  const given = yield* content(path, file)
  const hash = isRecorded ? createHash("sha256") : undefined
  if (isBytes(given)) {
    if (!matchesFile(given, file)) return yield* mismatch(path)
    hash?.update(given)
    const alone = Effect.andThen(writeFile<never>(port, named, file, mode, given), done)
    const entry = { path: at, bytes: given, mode: port.attributes && mode }
    if (file.modifiedAt === undefined) yield* creator.add({ entry, path, createAlone: alone, onCreated: done })
    else yield* Effect.andThen(creator.flush, alone)
  } else {
    yield* creator.flush
    yield* Effect.andThen(writeFile(port, named, file, mode, checkContent(given, file, path, hash)), done)
  }
  return hash?.digest("hex") ?? ""
})

const isPlain = (error: unknown): error is Readonly<Record<string, unknown>> =>
  typeof error === "object" && error !== null && Object.getPrototypeOf(error) === Object.prototype

const atFinalPath = <E>(error: E, at: FsPath.FsPath, path: FsPath.FsPath): E =>
  isPlain(error) && (error["path"] === undefined || error["path"] === at) ? { ...error, path } : error

const stageLink = (port: Backend, { at, path }: StagedPath, target: string): Effect.Effect<void, Fault> =>
  port.links === undefined ? locate(path, Effect.fail(noLinks)) : locate(path, port.links.make(at, target))

interface Pending extends StagedPath {
  readonly node: Node
}

/**
 * The mode of a directory, which is set after all entries of the directory are created. `isSet` means that the directory
 * already has the mode.
 */
interface DeferredMode extends StagedPath {
  readonly mode: number
  isSet: boolean
}

const stageDirectory = <E>(
  port: Backend,
  { at, path }: StagedPath,
  deferredMode: DeferredMode | undefined,
  { creator }: StagingContext<E>
): Effect.Effect<void, Fault | Mismatch | E> =>
  creator.add({
    entry: { path: at, mode: deferredMode && withOwnerBits(deferredMode.mode) },
    path,
    createAlone: locate(path, port.makeDirectory(at)),
    onCreated: Effect.sync(() => {
      if (deferredMode !== undefined) deferredMode.isSet = deferredMode.mode === withOwnerBits(deferredMode.mode)
    })
  })

const stageStep = Effect.fnUntraced(function* <E>(
  port: Backend,
  step: Step,
  at: FsPath.FsPath,
  modes: Array<DeferredMode>,
  staging: StagingContext<E>
): Effect.fn.Return<ReadonlyArray<Staged>, Fault | Mismatch | E> {
  const { attributes } = port
  const staged: Array<Staged> = []
  const pending: Array<Pending> = step.after === undefined ? [] : [{ at, path: step.path, node: step.after }]
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    const { node } = next
    if (node.kind === "directory") {
      const given = attributes === undefined ? undefined : modeOf(node)
      const mode = given !== undefined && next.at === at && step.shuts !== undefined ? withOwnerBits(given) : given
      const deferredMode = mode === undefined ? undefined : { at: next.at, path: next.path, mode, isSet: false }
      if (deferredMode !== undefined) modes.push(deferredMode)
      yield* stageDirectory(port, next, deferredMode, staging)
      staged.push({ kind: "directory", path: next.at, mode })
      for (const [name, child] of node.entries) {
        pending.push({ at: FsPath.join(next.at, name), path: FsPath.join(next.path, name), node: child })
      }
    } else if (node.kind === "symlink") {
      yield* staging.creator.flush
      yield* Effect.andThen(stageLink(port, next, node.target), staging.done)
      staged.push({ kind: "symlink", path: next.at, mode: undefined, target: node.target })
    } else {
      const mode = modeOf(node) ?? replacedMode(step)
      const entry = { kind: "file" as const, path: next.at, mode: attributes === undefined ? undefined : mode, hash: "" }
      staged.push(entry)
      if (staging.unstaged !== undefined && node.modifiedAt === undefined) {
        const { at, path } = next
        staging.unstaged.push({ at, path, file: node, mode, hash: undefined, mayExist: false, staged: entry })
      } else entry.hash = yield* stageFile(port, next, node, mode, staging)
    }
  }
  return staged
})

const replacedMode = ({ after, before }: Step): number | undefined =>
  after?.kind === "file" && before?.kind === "file" ? modeOf(before) : undefined

const countLeaves = (node: Node | undefined): number =>
  node === undefined ? 0 : node.kind === "directory" ? countFiles(node).files : 1

export interface StagingSource<E> {
  /** Returns the content of a file at a path of the new tree. The content of a small file should be a byte array. */
  readonly content: Content<E>
  readonly unpack?: Unpack | undefined
  /** Runs after each staged file or symlink, with the number of entries so far and the total. */
  readonly onProgress?: ((done: number, of: number) => Effect.Effect<void>) | undefined
}

/** The minimum number of files that are staged in threads. For fewer files, starting the threads takes too long. */
const minThreadedFiles = 256

const hasManyLeaves = (steps: Plan["steps"]): boolean => {
  let leaves = 0
  return steps.some(({ after }) => (leaves += countLeaves(after)) >= minThreadedFiles)
}

export const stage = Effect.fnUntraced(function* <E>(
  port: Backend,
  { regions, steps }: Plan,
  token: string,
  { content, onProgress, unpack }: StagingSource<E>,
  isRecorded: boolean
): Effect.fn.Return<ReadonlyMap<number, StagedDigest>, Fault | Mismatch | E> {
  const of = onProgress === undefined ? 0 : steps.reduce((sum, { after }) => sum + countLeaves(after), 0)
  let made = 0
  const done = onProgress === undefined ? Effect.void : Effect.suspend(() => onProgress(++made, of))
  const creator = makeCreator<Fault | Mismatch | E>(port)
  const modes: Array<DeferredMode> = []
  const { history } = port
  const lend = history?._tag === "Directory" ? history.lend : undefined
  const isUnpacked = unpack !== undefined && lend !== undefined && hasManyLeaves(steps)
  const staging: StagingContext<E> = { content, unstaged: isUnpacked ? [] : undefined, isRecorded, creator, done }
  const stagedBySlot: Array<readonly [slot: number, staged: ReadonlyArray<Staged>]> = []
  for (const step of steps) {
    if (step.after === undefined) continue
    const at = slotOf(regions, token, step, "new")
    stagedBySlot.push([step.slot, yield* stageStep(port, step, at, modes, staging)])
  }
  yield* creator.flush
  if (isUnpacked) {
    const files = staging.unstaged!
    const onStaged = (count: number): Effect.Effect<void> =>
      onProgress === undefined ? Effect.void : Effect.forEach(Array.from({ length: count }), () => done, { discard: true })
    yield* unpack(files, { lend, isHashed: isRecorded, onStaged })
    for (const { at, file, hash, mayExist, mode, path, staged } of files) {
      // A fault of the removal also fails the creation.
      if (mayExist) yield* Effect.ignore(port.remove(at))
      staged.hash = hash ?? (yield* stageFile(port, { at, path }, file, mode, staging))
    }
    yield* creator.flush
  }
  const digests = new Map<number, StagedDigest>()
  for (const [slot, staged] of isRecorded ? stagedBySlot : []) {
    digests.set(slot, digestStaged(staged))
    yield* Effect.yieldNow
  }
  for (let i = modes.length - 1; i >= 0; i--) {
    const { at, isSet, mode, path } = modes[i]!
    if (!isSet) yield* locate(path, port.attributes!.set(at, { mode }))
  }
  return digests
})

/** Copies the old entry to the staging directory. If the copy fails, the transaction moves the old entry instead. */
const copyStepAside = (port: Backend, step: Step, to: FsPath.FsPath): Effect.Effect<void> => {
  const { path, was } = step
  const copied = was?.kind === "symlink" ? copyLink(port, path, to) : copyFile(port, path, to)
  return Effect.matchEffect(copied, {
    onSuccess: () => Effect.sync(() => void (step.keeps = true)),
    onFailure: () => Effect.ignore(port.remove(to))
  })
}

/** Tests whether to copy the old entry: a symlink or a small file that a file or a symlink replaces. */
const shouldCopyAside = ({ next, was }: Step): boolean =>
  next !== undefined &&
  next !== "directory" &&
  was !== undefined &&
  (was.kind === "symlink" || (was.kind === "file" && was.sizeBytes <= maxWholeBytes))

export const copyAside = (port: Backend, { regions, steps }: Plan, token: string): Effect.Effect<void> =>
  Effect.forEach(steps.filter(shouldCopyAside), (step) => copyStepAside(port, step, slotOf(regions, token, step, "old")), {
    discard: true
  })
