/**
 * Shows a store of workspaces. The current tree is the head of one workspace. The other trees are the last heads of each workspace
 * since the start, and the snapshots of the workspaces with the newest commits.
 */
import * as Context from "effect/Context"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { makeShortIds } from "../history/snapshots/value.ts"
import { BlobStore, type Operations as Blobs } from "../repository/BlobStore.ts"
import * as Browse from "../repository/browse.ts"
import type { StoreError } from "../repository/errors.ts"
import { type Head, HeadStore, type Operations as Heads } from "../repository/HeadStore.ts"
import { type DebugError, makeDebugError } from "./errors.ts"
import type { FileJournal } from "./journal.ts"
import * as Live from "./live.ts"
import type { Diff, SnapshotInfo } from "./model.ts"
import { type OpenTree, type Source, TreeCache, withoutDump } from "./source.ts"
import * as Tree from "./tree.ts"

export interface Store {
  readonly blobs: Blobs
  readonly heads: Heads
  readonly workspace: string | undefined
  readonly title: string
  readonly journal: FileJournal | undefined
}

/** The number of heads to keep for each workspace, including the current head. */
const maxSeenHeads = 50
/** The number of workspaces whose snapshots are listed: those with the newest commits. */
const maxWorkspacesWithSnapshots = 50

/** The number of workspaces to show: those with the newest commits. */
const maxWorkspaces = 1000

/** The time for which requests share one reading of the heads. */
const headsAge = "1 second"
const headsInterval = "3 seconds"
/** All heads are read at each 20th look, and the heads of the workspaces that a page has shown at every look. */
const looksForAll = 20
/** The number of workspaces whose heads are read at every look, those that were shown last. */
const maxShown = 8

const toDebugError = ({ message, reason }: StoreError): DebugError =>
  makeDebugError(reason === "missing" ? "missing" : "unreadable", message)

interface Known {
  readonly workspace: string
  readonly head: Head
}

/** Returns the id of a tree. The name at the end makes the ids of forks different. */
const idOf = ({ root, snapshot }: Browse.TreeId, workspace: string): string =>
  `${root}${snapshot === undefined ? "" : `/${snapshot}`}:${workspace}`

const parseId = (id: string): (Browse.TreeId & { readonly workspace: string }) | undefined => {
  const [, root, snapshot, workspace] = /^([0-9a-f]{64})(?:\/([0-9a-f-]{1,100}))?:([^]*)$/.exec(id) ?? []
  return root === undefined ? undefined : { root, snapshot, workspace: workspace! }
}

const newestFirst = (a: Known, b: Known): number =>
  DateTime.toEpochMillis(b.head.committedAt) - DateTime.toEpochMillis(a.head.committedAt)

export const make = ({ blobs, heads, journal, title, workspace }: Store): Effect.Effect<Source, DebugError, Scope.Scope> =>
  Effect.gen(function* () {
    const browser = yield* Effect.provideContext(Browse.make, Context.add(Context.make(BlobStore, blobs), HeadStore, heads))
    let generation = 1
    const cachedTrees = new TreeCache()
    /** The heads of each workspace that were seen since the start, the newest first. */
    const seen = new Map<string, ReadonlyArray<Head>>()
    let damaged: ReadonlyArray<string> = []

    const note = ({ head, workspace }: Known): void => {
      const before = seen.get(workspace) ?? []
      if (before[0]?.root !== head.root) seen.set(workspace, [head, ...before].slice(0, maxSeenHeads))
    }

    /** The workspaces in the order of their commits, newest first. Requests within `headsAge` share one reading of the heads. */
    const [known, forget] = yield* Effect.cachedInvalidateWithTTL(
      Effect.map(browser.heads, ({ damage, workspaces: all }) => {
        damaged = all.flatMap(({ head }) => (Result.isFailure(head) ? [head.failure.message] : []))
        if (damage !== undefined) damaged = [...damaged, damage.message]
        if (all.length > maxWorkspaces) {
          const [shown, present] = [maxWorkspaces, all.length].map((count) => count.toLocaleString("en"))
          damaged = [...damaged, `Of ${present} workspaces, only the ${shown} with the newest commits are shown.`]
        }
        const found = all.flatMap(({ head, workspace }) => (Result.isSuccess(head) ? [{ workspace, head: head.success }] : []))
        const newest = found.sort(newestFirst).slice(0, maxWorkspaces)
        const names = new Set(newest.map(({ workspace }) => workspace))
        for (const name of seen.keys()) if (!names.has(name)) seen.delete(name)
        newest.forEach(note)
        return newest
      }).pipe(Effect.mapError(toDebugError)),
      headsAge
    )

    const main = workspace ?? (yield* known)[0]?.workspace
    if (main === undefined) return yield* makeDebugError("missing", "the store has no workspaces")
    yield* Effect.mapError(browser.head(main), toDebugError)

    const openTree = (tree: Browse.TreeId, name: string, createdAt?: string): Effect.Effect<OpenTree, DebugError> =>
      Effect.gen(function* () {
        const id = idOf(tree, name)
        const cached = cachedTrees.get(id)
        if (cached !== undefined) return cached
        const filesystem = yield* Effect.mapError(browser.view(tree, name), toDebugError)
        const look: OpenTree = {
          filesystem,
          identity: {},
          tree: yield* Effect.cached(Tree.ofFilesystem(filesystem)),
          about: { name, case_sensitive: true, ...(createdAt !== undefined && { created_at: createdAt }) }
        }
        cachedTrees.set(id, look)
        return look
      })

    /** The workspaces that were shown last, the latest at the end. */
    const shown = new Set([main])
    const noteShown = (workspace: string): void => {
      shown.delete(workspace)
      shown.add(workspace)
      if (shown.size > maxShown) shown.delete([...shown].find((name) => name !== main)!)
    }

    const treeOf = (at: string | undefined): Effect.Effect<Browse.TreeId & { readonly workspace: string }, DebugError> => {
      if (at === undefined) {
        return Effect.map(Effect.mapError(browser.head(main), toDebugError), (head) => {
          note({ workspace: main, head })
          return { root: head.root, workspace: main }
        })
      }
      const tree = parseId(at)
      if (tree === undefined)
        return Effect.fail(makeDebugError("missing", `there is no tree ${JSON.stringify(at.slice(0, 100))}`))
      if (seen.has(tree.workspace)) noteShown(tree.workspace)
      return Effect.succeed(tree)
    }

    const look = (at: string | undefined): Effect.Effect<OpenTree, DebugError> =>
      Effect.flatMap(treeOf(at), (tree) => openTree(tree, tree.workspace))

    const headInfos = (workspace: string): ReadonlyArray<SnapshotInfo> =>
      (seen.get(workspace) ?? []).map(({ author, committedAt, message, root, sequence }, index) => ({
        id: idOf({ root }, workspace),
        label: index === 0 ? workspace : `${workspace}, commit ${sequence}`,
        created_at: DateTime.formatIso(committedAt),
        tag: `${message}, by ${author}`.slice(0, 200)
      }))

    /** Lists the snapshots of a workspace. Returns none for a damaged workspace, because its head shows the error. */
    const snapshotInfos = ({ head, workspace }: Known): Effect.Effect<ReadonlyArray<SnapshotInfo>> =>
      Effect.flatMap(browser.snapshots(head.root, workspace), ({ list }) => list).pipe(
        Effect.map((all) => {
          const short = makeShortIds(all)
          return all.toReversed().map((snapshot): SnapshotInfo => ({
            id: idOf({ root: head.root, snapshot: snapshot.snapshotId }, workspace),
            label: `${workspace}: ${snapshot.tag ?? short(snapshot)}`,
            created_at: DateTime.formatIso(snapshot.createdAt),
            ...(snapshot.tag !== undefined && { tag: snapshot.tag })
          }))
        }),
        Effect.orElseSucceed(() => [])
      )

    const infos = Effect.gen(function* () {
      const all = yield* known
      const kept = yield* Effect.forEach(all.slice(0, maxWorkspacesWithSnapshots), snapshotInfos, { concurrency: 4 })
      return all.flatMap(({ workspace }, index) => [...headInfos(workspace), ...(kept[index] ?? [])])
    })

    const diff = (from: string | undefined, to: string | undefined): Effect.Effect<Diff, DebugError> =>
      Effect.gen(function* () {
        const [one, other] = [yield* treeOf(from), yield* treeOf(to)]
        const [before, after] = [yield* openTree(one, one.workspace), yield* openTree(other, other.workspace)]
        const changes = yield* Effect.mapError(browser.differences(one, other), toDebugError)
        const entries = yield* Tree.entriesOf(changes, before.filesystem, after.filesystem)
        return { from: from ?? null, to: to ?? null, changes: entries }
      })

    /** The root of each workspace when it was read last. */
    const roots = new Map<string, string>()
    const readAll = Effect.map(known, (all) => {
      roots.clear()
      for (const { head, workspace } of all) roots.set(workspace, head.root)
    })
    const readShown = Effect.suspend(() =>
      Effect.forEach(
        [...shown],
        (workspace) =>
          Effect.map(
            // A damaged head counts as missing here, so that it does not hide the changes of other workspaces.
            Effect.catchIf(
              heads.get(workspace),
              ({ reason }) => reason === "corrupt",
              () => Effect.succeed(undefined)
            ),
            (head) => {
              if (head === undefined) roots.delete(workspace)
              else roots.set(workspace, head.root)
            }
          ),
        { discard: true }
      )
    )
    let looks = 0
    const state = Effect.suspend(() =>
      Effect.ignore(looks++ % looksForAll === 0 ? Effect.andThen(readAll, readShown) : readShown)
    ).pipe(
      Effect.map(() =>
        Array.from(roots, ([workspace, root]) => `${workspace}\n${root}`)
          .sort()
          .join("\n")
      )
    )
    const count = Effect.orElseSucceed(
      Effect.map(known, (all) => all.reduce((sum, { workspace }) => sum + (seen.get(workspace)?.length ?? 0), 0)),
      () => 0
    )

    return {
      about: Effect.map(
        Effect.match(known, {
          onFailure: ({ message }) => [`The workspaces cannot be listed: ${message}.`],
          onSuccess: () => damaged
        }),
        (problems) => ({ kind: "workspace" as const, title, path: main, tags: {}, has_filesystem: true, problems })
      ),
      generation: () => generation,
      ...withoutDump("store"),
      reload: Effect.andThen(
        forget,
        Effect.sync(() => {
          generation++
          cachedTrees.clear()
        })
      ),
      snapshots: infos,
      snapshotCount: count,
      look,
      diff,
      journal,
      live: yield* Live.shareWithListeners({
        transientEvents: [Live.emitOnChange(state, { type: "files", paths: null }, headsInterval)],
        statefulEvents: Live.followJournal(journal)
      })
    }
  })
