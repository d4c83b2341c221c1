/**
 * Stages a transaction: creates and checks all new entries under hidden names before any visible change.
 *
 * A replaced file is also copied aside if that is cheap, so that its name shows the old file until it shows the new one.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Hash } from "node:crypto"
import { isBytes } from "../../model/bytes.ts"
import { at as locate } from "../../engine/directories.ts"
import * as Read from "../../engine/read.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { type StagedDigest, digestStaged, makeHasher, type Staged } from "./digest.ts"
import { blobHasher, blobId, countFiles, type FileNode, type Node } from "../tree.ts"
import * as Making from "./making.ts"
import { modeOf, withOwnerBits, type Plan, type Step } from "./plan.ts"
import { slotPath } from "./places.ts"

export interface Mismatch {
  readonly _tag: "Mismatch"
  readonly path: FsPath.FsPath
}

export type Content<E> = (
  path: FsPath.FsPath,
  file: FileNode
) => Effect.Effect<Uint8Array | Stream.Stream<Uint8Array, E | Fault>, E | Fault>

export interface ContentSource<E> {
  readonly content: Content<E>
  readonly onProgress?: ((done: number, of: number) => Effect.Effect<void>) | undefined
}

const mismatch = (path: FsPath.FsPath): Effect.Effect<never, Mismatch> => Effect.fail({ _tag: "Mismatch", path })

const noLinks: Fault = { _tag: "IoError", code: "ENOTSUP", detail: "there are no links on this backend" }

interface StagedPath {
  readonly at: FsPath.FsPath
  readonly path: FsPath.FsPath
}

/** Returns the same bytes, but fails as soon as they are too many, and at the end if they are not the file's. */
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
      size === file.sizeBytes && hasher.digest("hex") === file.id ? Effect.void : mismatch(path)
    )
    return Stream.concat(counted, Stream.drain(Stream.fromEffect(end)))
  })

const matchesFile = (bytes: Uint8Array, file: FileNode): boolean => bytes.length === file.sizeBytes && blobId(bytes) === file.id

interface StagingContext<E> {
  readonly content: Content<E>
  readonly isRecorded: boolean
  readonly maker: Making.EntryCreator<Fault | Mismatch | E>
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

const atFinalPath = <E>(error: E, at: FsPath.FsPath, path: FsPath.FsPath): E =>
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
  const maker = Making.make<Fault | Mismatch | E>(port)
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

const copyFile = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath): Effect.Effect<void, Fault> =>
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
const copyLink = (port: Backend, from: FsPath.FsPath, to: FsPath.FsPath): Effect.Effect<void, Fault> => {
  const { attributes, links } = port
  if (links === undefined) return Effect.fail(noLinks)
  return Effect.flatMap(Effect.all([links.read(from), port.stat(from)]), ([target, stat]) =>
    Effect.andThen(links.make(to, target), attributes?.set(to, { modifiedAt: stat?.modifiedAt }) ?? Effect.void)
  )
}

/** Copies the old entry aside. If that fails, the entry itself can still be moved aside. */
const copyStepAside = (port: Backend, step: Step, to: FsPath.FsPath): Effect.Effect<void> => {
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
