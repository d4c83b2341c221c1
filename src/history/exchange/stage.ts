/**
 * Stages a transaction: creates and checks all new entries under hidden names before any visible change.
 *
 * A replaced file is also copied aside if that is cheap, so that its name shows the old file until it shows the new one.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Hash as HashType } from "node:crypto"
import { at as locate } from "../../engine/directories.ts"
import * as Read from "../../engine/read.ts"
import type { FileStat } from "../../model/Entry.ts"
import { type Fault, located } from "../../model/FsError.ts"
import * as FsPathModule from "../../model/FsPath.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { isBytes } from "../../model/bytes.ts"
import { type Backend, keyOf, type NewEntry } from "../../port/Backend.ts"
import { performing } from "../../port/Request.ts"
import { createHash, type Hash } from "../../runtime/node.ts"
import { blobHasher, blobId, countFiles, type FileNode, type Node } from "../tree.ts"
import { modeOf, type Move, type Plan, slotPath, type Step, withOwnerBits } from "./plan.ts"

// Creates staged entries: many at once if the port supports it, and one by one otherwise or if the port declines.

interface PendingEntry<E> {
  readonly entry: NewEntry
  readonly path: FsPath
  readonly createAlone: Effect.Effect<void, E>
  readonly onCreated: Effect.Effect<void>
}

interface EntryCreator<E> {
  readonly add: (making: PendingEntry<E>) => Effect.Effect<void, E | Fault>
  /** Creates the added entries that do not exist yet. Callers must flush before they use an added entry. */
  readonly flush: Effect.Effect<void, E | Fault>
}

const maxPendingEntries = 1024
const maxPendingBytes = 1024 * 1024

const make = <E>(port: Backend): EntryCreator<E> => {
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
    add: (making) =>
      Effect.suspend(() => {
        pendingEntries.push(making)
        bytes += making.entry.bytes?.length ?? 0
        return pendingEntries.length < maxPendingEntries && bytes < maxPendingBytes ? Effect.void : flush
      }),
    flush
  }
}

// The digest of a staged file, symlink or tree: its kinds, names, targets and contents, and its permission bits if all are
// known.
//
// Recovery compares the digest before it puts an entry in place.

const makeHasher = (): Hash => createHash("sha256")

interface StagedFields {
  readonly path: FsPathModule.FsPath
  readonly mode: number | undefined
}

type Staged =
  | (StagedFields & { readonly kind: "file"; readonly hash: string })
  | (StagedFields & { readonly kind: "symlink"; readonly target: string })
  | (StagedFields & { readonly kind: "directory" })

const sha256 = (value: unknown): string => makeHasher().update(JSON.stringify(value)).digest("hex")

/** Returns the digest of a tree. In `entries` every directory must come before its contents. */
const treeDigest = (entries: ReadonlyArray<Staged>, hasBits: boolean): string => {
  const inside = new Map<FsPathModule.FsPath, Array<readonly [name: string, digest: string]>>()
  let digest = ""
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at]!
    const bits = hasBits && entry.kind !== "symlink" ? entry.mode : null
    const content =
      entry.kind === "file"
        ? entry.hash
        : entry.kind === "symlink"
          ? entry.target
          : (inside.get(entry.path) ?? []).sort(([a], [b]) => FsPathModule.compare(a, b))
    inside.delete(entry.path)
    digest = sha256([entry.kind, bits, content])
    const above = FsPathModule.parent(entry.path)
    const siblings = inside.get(above)
    if (siblings === undefined) inside.set(above, [[FsPathModule.name(entry.path), digest]])
    else siblings.push([FsPathModule.name(entry.path), digest])
  }
  return digest
}

export type StagedDigest = Required<Pick<Move, "digest" | "hasBits">>

const digestStaged = (entries: ReadonlyArray<Staged>): StagedDigest => {
  const hasBits = entries.every(({ kind, mode }) => kind === "symlink" || mode !== undefined)
  return { digest: treeDigest(entries, hasBits), hasBits }
}

const blockBytes = 1024 * 1024

const hashAt = (port: Backend, path: FsPathModule.FsPath): Effect.Effect<string, Fault> =>
  Effect.scoped(
    Effect.gen(function* () {
      const { read } = yield* port.open(path)
      const hash = makeHasher()
      for (let offset = 0; ;) {
        const bytes = yield* read(offset, blockBytes)
        if (bytes.length === 0) return hash.digest("hex")
        hash.update(bytes)
        offset += bytes.length
      }
    })
  )

const noLinksDigest: Fault = { _tag: "Unsupported", feature: "symbolic links" }

const readStagedEntry = (
  port: Backend,
  path: FsPathModule.FsPath,
  { kind, mode }: FileStat
): Effect.Effect<Staged | undefined, Fault> => {
  const common = { path, mode: mode === undefined ? undefined : mode & 0o777 }
  if (kind === "file") return Effect.map(hashAt(port, path), (hash) => ({ ...common, kind, hash }))
  if (kind === "directory") return Effect.succeed({ ...common, kind })
  if (kind !== "symlink") return Effect.succeed(undefined)
  return Effect.map(port.links?.read(path) ?? Effect.fail(located(noLinksDigest, path)), (target) => ({
    ...common,
    kind,
    target
  }))
}

export const isStagedEntry = Effect.fnUntraced(function* (
  port: Backend,
  top: FsPathModule.FsPath,
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
    for (const child of yield* locate(path, port.list(path))) pending.push(FsPathModule.join(path, keyOf(child)))
  }
  return treeDigest(entries, hasBits) === digest
})

export interface Mismatch {
  readonly _tag: "Mismatch"
  readonly path: FsPathModule.FsPath
}

export type Content<E> = (
  path: FsPathModule.FsPath,
  file: FileNode
) => Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, E | Fault>, E | Fault>

interface ContentSource<E> {
  readonly content: Content<E>
  readonly onProgress?: ((done: number, of: number) => Effect.Effect<void>) | undefined
}

const mismatch = (path: FsPathModule.FsPath): Effect.Effect<never, Mismatch> => Effect.fail({ _tag: "Mismatch", path })

const noLinks: Fault = { _tag: "IoError", code: "ENOTSUP", detail: "this backend has no symbolic links" }

interface StagedPath {
  readonly at: FsPathModule.FsPath
  readonly path: FsPathModule.FsPath
}

/** Returns the same bytes, but fails as soon as they are too many, and at the end if they are not the file's. */
const checkContent = <E>(
  content: Stream.Stream<Uint8Array, E>,
  file: FileNode,
  path: FsPathModule.FsPath,
  hash: HashType | undefined
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
      size === file.sizeBytes && hasher.digest("hex") === file.id ? Effect.void : mismatch(path)
    )
    return Stream.concat(counted, Stream.drain(Stream.fromEffect(end)))
  })

const matchesFile = (bytes: Uint8Array, file: FileNode): boolean => bytes.length === file.sizeBytes && blobId(bytes) === file.id

interface StagingContext<E> {
  readonly content: Content<E>
  readonly isRecorded: boolean
  readonly maker: EntryCreator<Fault | Mismatch | E>
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

/** Returns the hash of the content if the transaction is recorded, otherwise "". */
const stageFile = Effect.fnUntraced(function* <E>(
  port: Backend,
  named: StagedPath,
  file: FileNode,
  mode: number | undefined,
  { content, done, isRecorded, maker }: StagingContext<E>
): Effect.fn.Return<string, Fault | Mismatch | E> {
  const { at, path } = named
  const given = yield* content(path, file)
  const hash = isRecorded ? makeHasher() : undefined
  if (isBytes(given)) {
    if (!matchesFile(given, file)) return yield* mismatch(path)
    hash?.update(given)
    const alone = Effect.andThen(writeFile<never>(port, named, file, mode, given), done)
    const entry = { path: at, bytes: given, mode: port.attributes && mode }
    if (file.modifiedAt === undefined) yield* maker.add({ entry, path, createAlone: alone, onCreated: done })
    else yield* Effect.andThen(maker.flush, alone)
  } else {
    yield* maker.flush
    yield* Effect.andThen(writeFile(port, named, file, mode, checkContent(given, file, path, hash)), done)
  }
  return hash?.digest("hex") ?? ""
})

const isPlain = (error: unknown): error is Readonly<Record<string, unknown>> =>
  typeof error === "object" && error !== null && Object.getPrototypeOf(error) === Object.prototype

const atFinalPath = <E>(error: E, at: FsPathModule.FsPath, path: FsPathModule.FsPath): E =>
  isPlain(error) && (error["path"] === undefined || error["path"] === at) ? { ...error, path } : error

const stageLink = (port: Backend, { at, path }: StagedPath, target: string): Effect.Effect<void, Fault> =>
  port.links === undefined ? locate(path, Effect.fail(noLinks)) : locate(path, port.links.make(at, target))

interface Pending extends StagedPath {
  readonly node: Node
}

/** The mode of a directory, set after all its entries are created. `isSet` if the directory was created with that mode. */
interface DeferredMode extends StagedPath {
  readonly mode: number
  isSet: boolean
}

const stageDirectory = <E>(
  port: Backend,
  { at, path }: StagedPath,
  deferredMode: DeferredMode | undefined,
  { maker }: StagingContext<E>
): Effect.Effect<void, Fault | Mismatch | E> =>
  maker.add({
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
  at: FsPathModule.FsPath,
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
        pending.push({ at: FsPathModule.join(next.at, name), path: FsPathModule.join(next.path, name), node: child })
      }
    } else if (node.kind === "symlink") {
      yield* staging.maker.flush
      yield* Effect.andThen(stageLink(port, next, node.target), staging.done)
      staged.push({ kind: "symlink", path: next.at, mode: undefined, target: node.target })
    } else {
      const mode = modeOf(node) ?? replacedMode(step)
      const hash = yield* stageFile(port, next, node, mode, staging)
      staged.push({ kind: "file", path: next.at, mode: attributes === undefined ? undefined : mode, hash })
    }
  }
  return staged
})

const replacedMode = ({ after, before }: Step): number | undefined =>
  after?.kind === "file" && before?.kind === "file" ? modeOf(before) : undefined

const countLeaves = (node: Node | undefined): number =>
  node === undefined ? 0 : node.kind === "directory" ? countFiles(node).files : 1

export const stage = Effect.fnUntraced(function* <E>(
  port: Backend,
  { regions, steps }: Plan,
  token: string,
  { content, onProgress }: ContentSource<E>,
  isRecorded: boolean
): Effect.fn.Return<ReadonlyMap<number, StagedDigest>, Fault | Mismatch | E> {
  const of = onProgress === undefined ? 0 : steps.reduce((sum, { after }) => sum + countLeaves(after), 0)
  let made = 0
  const done = onProgress === undefined ? Effect.void : Effect.suspend(() => onProgress(++made, of))
  const maker = make<Fault | Mismatch | E>(port)
  const modes: Array<DeferredMode> = []
  const digests = new Map<number, StagedDigest>()
  for (const step of steps) {
    if (step.after === undefined) continue
    const at = slotPath(regions[step.region]!, token, "new", step.slot)
    const staged = yield* stageStep(port, step, at, modes, { content, isRecorded, maker, done })
    if (isRecorded) digests.set(step.slot, digestStaged(staged))
  }
  yield* maker.flush
  for (let i = modes.length - 1; i >= 0; i--) {
    const { at, isSet, mode, path } = modes[i]!
    if (!isSet) yield* locate(path, port.attributes!.set(at, { mode }))
  }
  return digests
})

/** The largest file, in bytes, that is copied aside. A larger one is itself moved aside at its replacement. */
const maxCopiedBytes = 1024 * 1024

const copyFile = (port: Backend, from: FsPathModule.FsPath, to: FsPathModule.FsPath): Effect.Effect<void, Fault> =>
  Effect.scoped(
    Effect.flatMap(port.open(from), (handle) =>
      Effect.flatMap(Read.range(handle, 0, handle.stat.sizeBytes), (bytes) =>
        Effect.andThen(port.write<never, never>(to, bytes, "create"), () => {
          const { mode, modifiedAt } = handle.stat
          return port.attributes === undefined ? Effect.void : port.attributes.set(to, { mode, modifiedAt })
        })
      )
    )
  )

/** Copies a symlink with its time, which identifies it after it has been put back. */
const copyLink = (port: Backend, from: FsPathModule.FsPath, to: FsPathModule.FsPath): Effect.Effect<void, Fault> => {
  const { attributes, links } = port
  if (links === undefined) return Effect.fail(noLinks)
  return Effect.flatMap(Effect.all([links.read(from), port.stat(from)]), ([target, stat]) =>
    Effect.andThen(links.make(to, target), attributes?.set(to, { modifiedAt: stat?.modifiedAt }) ?? Effect.void)
  )
}

/** Copies the old entry aside. If that fails, the entry itself can still be moved aside. */
const copyStepAside = (port: Backend, step: Step, to: FsPathModule.FsPath): Effect.Effect<void> => {
  const { path, was } = step
  const copied = was?.kind === "symlink" ? copyLink(port, path, to) : copyFile(port, path, to)
  return Effect.matchEffect(copied, {
    onSuccess: () => Effect.sync(() => void (step.keeps = true)),
    onFailure: () => Effect.ignore(port.remove(to))
  })
}

const shouldCopyAside = ({ next, was }: Step): boolean =>
  next !== undefined &&
  next !== "directory" &&
  was !== undefined &&
  (was.kind === "symlink" || (was.kind === "file" && was.sizeBytes <= maxCopiedBytes))

export const copyAside = (port: Backend, { regions, steps }: Plan, token: string): Effect.Effect<void> =>
  Effect.forEach(
    steps,
    (step) =>
      shouldCopyAside(step) ? copyStepAside(port, step, slotPath(regions[step.region]!, token, "old", step.slot)) : Effect.void,
    { discard: true }
  )
