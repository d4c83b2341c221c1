/**
 * Snapshots of a workspace. The snapshots are a directory beside the files, in the same commit: `<id>/tree` is the captured
 * tree, and
 * `<id>/info.json` has the label. So a snapshot costs a few small nodes, and a fork of the workspace has the same snapshots.
 */
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { storeFault } from "../history/errors.ts"
import { scan } from "../history/scan.ts"
import {
  findExpired,
  type Problem as SnapshotProblem,
  type StoredSnapshot,
  type Strategy
} from "../history/snapshots/strategy.ts"
import { FilesystemSnapshot } from "../history/snapshots/value.ts"
import { countIn } from "../history/view.ts"
import type { Fault } from "../model/Fault.ts"
import { compare, type FsPath, join, root, segments } from "../model/FsPath.ts"
import type { Backend } from "../port/Backend.ts"
import type { Difference } from "../port/history.ts"
import { Buffer } from "../runtime/buffer.ts"
import { randomUUID } from "../runtime/node.ts"
import { corruptNode } from "./format/nodes.ts"
import type { StoreError } from "./errors.ts"
import * as Contents from "./format/contents.ts"
import type { DirectoryEntry, Entry } from "./format/nodes.ts"
import type { Objects } from "./format/objects.ts"
import * as Trees from "./format/trees.ts"
import { makeView } from "./port.ts"
import { type Draft, hasSameContent, lookup, type Problem, toFault } from "./drafts.ts"
import type { Workspace } from "./workspace.ts"

/** Lists the entries whose kind, bytes, target or mode differ, in path order. Directories with equal hashes are not read. */
export const differences = (
  objects: Objects,
  before: DirectoryEntry,
  after: DirectoryEntry
): Effect.Effect<ReadonlyArray<Difference>, StoreError> =>
  Effect.gen(function* () {
    const out: Array<Difference> = []
    const pending: Array<readonly [path: FsPath, before: Entry | undefined, after: Entry | undefined]> = [[root, before, after]]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const [path, one, other] = next
      if (one === undefined) out.push({ _tag: "Added", path })
      else if (other === undefined) out.push({ _tag: "Removed", path })
      else if (!hasSameContent(one, other) || one.mode !== other.mode) out.push({ _tag: "Modified", path })
      const treeOf = (entry: Entry | undefined) => (entry?.kind === "directory" ? entry.tree : undefined)
      yield* Trees.forEachDifference(objects, treeOf(one), treeOf(other), (one, other) => {
        pending.push([join(path, (one ?? other)!.name), one, other])
      })
    }
    return out.sort((a, b) => compare(a.path, b.path))
  })

const treeName = "tree"
const infoName = "info.json"

const Info = Schema.Struct({
  number: Schema.Int,
  tag: Schema.optionalKey(Schema.String),
  tool: Schema.optionalKey(Schema.String),
  callId: Schema.optionalKey(Schema.String),
  previous: Schema.optionalKey(Schema.String)
})
type Info = typeof Info.Type

const decodeInfo = Schema.decodeUnknownOption(Schema.fromJsonString(Info))

interface Kept extends StoredSnapshot {
  readonly number: number
  readonly files: DirectoryEntry
}

/**
 * Restores the captured entry at a path, or removes the present entry if none was captured. Creates missing directories above
 * the path with their captured attributes.
 */
const restorePath = (
  objects: Objects,
  present: DirectoryEntry,
  captured: DirectoryEntry,
  path: FsPath,
  now: number
): Effect.Effect<DirectoryEntry, StoreError> => {
  const names = segments(path)
  const at = (present: DirectoryEntry, captured: Entry | undefined, i: number): Effect.Effect<DirectoryEntry, StoreError> =>
    Effect.gen(function* () {
      const name = names[i]!
      const existing = yield* Trees.get(objects, present.tree, name)
      const source = captured?.kind === "directory" ? yield* Trees.get(objects, captured.tree, name) : undefined
      let next: Entry | undefined
      if (i === names.length - 1) next = source
      else if (existing?.kind === "directory") next = yield* at(existing, source, i + 1)
      else if (source?.kind === "directory") next = yield* at({ ...source, tree: undefined }, source, i + 1)
      else return present
      if (next === existing) return present
      const tree = yield* Trees.set(objects, present.tree, name, next)
      const isSameName = (next === undefined) === (existing === undefined)
      return { ...present, tree, modifiedAt: isSameName ? present.modifiedAt : now }
    })
  return names.length === 0 ? Effect.succeed({ ...captured, name: "" }) : at(present, captured, 0)
}

/** The parts of a workspace that snapshots need. */
export type Historic = Pick<Workspace, "draft" | "objects" | "observe" | "submit" | "transaction">

export const makeStrategy = (
  workspace: Historic,
  port: Backend,
  options: { readonly name: string; readonly identity: string }
): Strategy => {
  const { objects } = workspace
  const rootPath = port.info.root
  /** The temporary snapshots of running transactions. These snapshots are not part of a commit. */
  const passing = new Map<string, Kept>()

  const viewOf = (files: DirectoryEntry): Backend =>
    makeView(objects, { files, snapshots: files }, { name: rootPath, identity: `${options.identity}/${randomUUID()}` })

  const keptOf = (
    snapshotId: string,
    createdAt: number,
    hash: string | undefined,
    files: DirectoryEntry,
    { number, previous, ...label }: Info
  ): Kept => ({
    snapshot: new FilesystemSnapshot({
      snapshotId,
      createdAt: DateTime.makeUnsafe(createdAt),
      commitRef: `sha256:${hash ?? "0".repeat(64)}`,
      rootPath,
      ...(label.tag !== undefined && { tag: label.tag })
    }),
    label,
    number,
    files,
    counts: Effect.suspend(() => countIn(viewOf(files))),
    ...(previous !== undefined && { previous })
  })

  /** The decoded snapshots by their entries. Entries never change, and stay in the cache of nodes while they are used. */
  const decoded = new WeakMap<Entry, Kept>()

  const decode = (entry: Entry): Effect.Effect<Kept, StoreError> => {
    const known = decoded.get(entry)
    return known !== undefined
      ? Effect.succeed(known)
      : Effect.tap(decodeNew(entry), (kept) => Effect.sync(() => decoded.set(entry, kept)))
  }

  const decodeNew = (entry: Entry): Effect.Effect<Kept, StoreError> =>
    Effect.gen(function* () {
      const refuse = Effect.fail(corruptNode(JSON.stringify(entry.name), "it is not a snapshot of this version"))
      if (entry.kind !== "directory") return yield* refuse
      const tree = yield* Trees.get(objects, entry.tree, treeName)
      const file = yield* Trees.get(objects, entry.tree, infoName)
      if (tree?.kind !== "directory" || file?.kind !== "file") return yield* refuse
      const bytes = yield* Contents.read(objects, file.content, 0, 65_536)
      const info = Option.getOrUndefined(decodeInfo(Buffer.from(bytes).toString()))
      if (info === undefined || typeof tree.tree === "object") return yield* refuse
      return keptOf(entry.name, entry.createdAt, tree.tree, { ...tree, name: "" }, info)
    })

  const listIn = ({ snapshots }: Draft): Effect.Effect<ReadonlyArray<Kept>, StoreError> =>
    Effect.gen(function* () {
      const all: Array<Kept> = []
      for (const entry of yield* Trees.list(objects, snapshots.tree)) all.push(yield* decode(entry))
      return all.sort((a, b) => a.number - b.number)
    })

  const orFault = <A>(effect: Effect.Effect<A, Problem>): Effect.Effect<A, SnapshotProblem> => Effect.mapError(effect, toFault)

  const find = (snapshotId: string): Effect.Effect<Kept | undefined, SnapshotProblem> => {
    const held = passing.get(snapshotId)
    return held !== undefined
      ? Effect.succeed(held)
      : Effect.flatMap(workspace.draft, ({ snapshots }) =>
          orFault(
            Effect.flatMap(Trees.get(objects, snapshots.tree, snapshotId), (entry) =>
              entry === undefined ? Effect.succeed(undefined) : decode(entry)
            )
          )
        )
  }

  const require = (kept: StoredSnapshot): Effect.Effect<Kept, SnapshotProblem> =>
    Effect.flatMap(find(kept.snapshot.snapshotId), (found) =>
      found === undefined ? Effect.fail(storeFault("unknown", "the snapshot was forgotten")) : Effect.succeed(found)
    )

  const setSnapshot = (draft: Draft, id: string, entry: Entry | undefined): Effect.Effect<Draft, StoreError> =>
    Effect.map(Trees.set(objects, draft.snapshots.tree, id, entry), (tree) => ({
      ...draft,
      snapshots: { ...draft.snapshots, tree }
    }))

  /** Adds guards to the current transaction, because it has captured or replaced everything below the paths. */
  const observeTrees = (paths: ReadonlyArray<FsPath>): Effect.Effect<void, Fault> =>
    Effect.andThen(
      workspace.draft,
      Effect.forEach(paths, (path) => workspace.observe({ path, aspect: "tree" }), { discard: true })
    )

  const take: Strategy["take"] = (label, { isPassing = false, snapshotId = randomUUID(), spared } = {}) =>
    Effect.flatMap(Clock.currentTimeMillis, (millis) => {
      const now = Math.trunc(millis)
      const labelFields: Omit<Info, "number"> = {
        ...(label.tag !== undefined && { tag: label.tag }),
        ...(label.tool !== undefined && { tool: label.tool }),
        ...(label.callId !== undefined && { callId: label.callId })
      }
      if (isPassing) {
        return Effect.flatMap(workspace.draft, ({ files }) =>
          orFault(
            Effect.map(objects.store([files.tree]), ([hash]) => {
              const kept = keptOf(snapshotId, now, hash, { ...files, tree: hash }, { number: 0, ...labelFields })
              passing.set(snapshotId, kept)
              return kept
            })
          )
        )
      }
      const submit = workspace.submit<StoredSnapshot>({
        message: label.tag === undefined ? "snapshot" : `snapshot ${label.tag}`,
        guards: [],
        run: (draft) =>
          Effect.gen(function* () {
            const all = yield* listIn(draft)
            const newest = all.at(-1)
            const info: Info = {
              number: (newest?.number ?? 0) + 1,
              ...labelFields,
              ...(newest !== undefined && { previous: newest.snapshot.snapshotId })
            }
            const [hash] = yield* objects.store([draft.files.tree])
            const files: DirectoryEntry = { ...draft.files, tree: hash }
            const kept = keptOf(snapshotId, now, hash, files, info)
            const fields = { mode: 0o644, createdAt: now, modifiedAt: now }
            const content = yield* Contents.fromBytes(objects, Buffer.from(JSON.stringify(info)))
            const withInfo = yield* Trees.set(objects, undefined, infoName, {
              kind: "file",
              name: infoName,
              ...fields,
              content
            })
            const tree = yield* Trees.set(objects, withInfo, treeName, { ...files, name: treeName })
            let next = yield* setSnapshot(draft, snapshotId, {
              kind: "directory",
              name: snapshotId,
              ...fields,
              mode: 0o755,
              tree
            })
            for (const { snapshot } of findExpired([...all, kept], undefined, now, spared)) {
              next = yield* setSnapshot(next, snapshot.snapshotId, undefined)
            }
            return { draft: next, value: kept }
          })
      })
      return Effect.andThen(observeTrees([root]), submit)
    })

  return {
    name: "repository",
    rootPath,
    commitRef: /^sha256:[0-9a-f]{64}$/,
    take,
    list: Effect.flatMap(workspace.draft, (draft) => orFault(listIn(draft))),
    find,
    transaction: (effect, mapProblem) => workspace.transaction(effect, mapProblem),
    restore: (kept, { dryRun, paths }) =>
      Effect.flatMap(require(kept), ({ files: captured, label }) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const run = (draft: Draft) =>
            Effect.gen(function* () {
              let files = draft.files
              for (const path of paths ?? [root]) files = yield* restorePath(objects, files, captured, path, Math.trunc(now))
              return { draft: { ...draft, files }, value: yield* differences(objects, draft.files, files) }
            })
          return dryRun === true
            ? Effect.flatMap(workspace.draft, (draft) => orFault(Effect.map(run(draft), ({ value }) => value)))
            : Effect.andThen(
                observeTrees(paths ?? [root]),
                workspace.submit({ message: `restore ${label.tag ?? kept.snapshot.snapshotId}`, guards: [], run })
              )
        })
      ),
    diff: (from, to) =>
      Effect.gen(function* () {
        const before = yield* require(from)
        const after = to === undefined ? yield* workspace.draft : yield* require(to)
        return yield* orFault(differences(objects, before.files, after.files))
      }),
    view: (kept) => Effect.map(require(kept), ({ files }) => viewOf(files)),
    tree: (kept) => Effect.flatMap(require(kept), ({ files }) => Effect.map(scan(viewOf(files)), ({ tree }) => tree)),
    now: Effect.map(scan(port), ({ tree }) => tree),
    forget: ({ snapshot }) =>
      passing.delete(snapshot.snapshotId)
        ? Effect.void
        : workspace.submit({
            message: `forget snapshot ${snapshot.snapshotId}`,
            guards: [],
            run: (draft) =>
              Effect.map(setSnapshot(draft, snapshot.snapshotId, undefined), (draft) => ({ draft, value: undefined }))
          }),
    stats: Effect.flatMap(workspace.draft, (draft) =>
      orFault(
        Effect.gen(function* () {
          const all = yield* listIn(draft)
          let bytes = 0
          for (const { files } of all) {
            for (const { _tag, path } of yield* differences(objects, draft.files, files)) {
              const entry = _tag === "Removed" ? undefined : yield* lookup(objects, { ...draft, files }, path)
              if (entry?.kind === "file") bytes += Contents.sizeOf(entry.content)
            }
          }
          return { bytes, objects: all.length, snapshots: all.length }
        })
      )
    ),
    collect: Effect.void
  }
}
