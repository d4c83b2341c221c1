/**
 * Shows a filesystem in its current state, with its snapshots. The tree is walked at each request, because not every filesystem
 * reports changes. The trees of snapshots are cached, because they never change.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { SnapshotError } from "../history/errors.ts"
import type { Operations } from "../history/Snapshots.ts"
import type { Change } from "../history/tree.ts"
import { type FilesystemSnapshot, makeShortIds } from "../history/snapshots/value.ts"
import { promote } from "../model/FsError.ts"
import * as FsPath from "../model/FsPath.ts"
import { type DebugError, makeDebugError, toUnreadableError } from "./errors.ts"
import type { FileJournal } from "./journal.ts"
import * as Live from "./live.ts"
import type { Diff, SnapshotInfo } from "./model.ts"
import { type OpenTree, type Source, TreeCache, withoutDump } from "./source.ts"
import * as Tree from "./tree.ts"

export interface Workspace {
  readonly filesystem: Algebra
  /** The snapshots; `undefined` if there are none yet. */
  readonly snapshots: Effect.Effect<Operations | undefined, SnapshotError>
  readonly journal: FileJournal | undefined
  readonly title: string
  readonly path: string
}

const detailsOf = (snapshots: Operations, snapshot: FilesystemSnapshot) =>
  Effect.catch(snapshots.details(snapshot), () => Effect.succeed(undefined))

/**
 * The number of snapshots that are shown with details, such as the tool that took the snapshot. Details include a count of
 * changes, which is slow to compute.
 */
const maxDetails = 50

const reversed = (change: Change): Change =>
  change._tag === "Modified" ? change : { ...change, _tag: change._tag === "Added" ? "Removed" : "Added" }

export const make = ({ filesystem, journal, path, snapshots, title }: Workspace): Effect.Effect<Source, never, Scope.Scope> =>
  Effect.gen(function* () {
    let generation = 1
    const cachedTrees = new TreeCache()
    /**
     * The identity of each snapshot's tree. A new view of the same snapshot has the same identity, because a snapshot never
     * changes.
     */
    const identities = new Map<string, object>()
    const cachedInfos = new Map<string, SnapshotInfo>()

    const readSnapshots = Effect.mapError(snapshots, toUnreadableError)
    const listSnapshots = Effect.flatMap(readSnapshots, (found) =>
      found === undefined ? Effect.succeed([]) : Effect.mapError(found.list, toUnreadableError)
    )

    const infoOf = (found: Operations, snapshot: FilesystemSnapshot, label: string, withDetails: boolean) =>
      Effect.gen(function* () {
        const known = cachedInfos.get(snapshot.snapshotId)
        if (known !== undefined) return { ...known, label }
        const details = withDetails ? yield* detailsOf(found, snapshot) : undefined
        const info: SnapshotInfo = {
          id: snapshot.snapshotId,
          label,
          created_at: DateTime.formatIso(snapshot.createdAt),
          ...(snapshot.tag !== undefined && { tag: snapshot.tag }),
          ...(details?.tool !== undefined && { tool: details.tool }),
          ...(details?.callId !== undefined && { call_id: details.callId })
        }
        if (details !== undefined) cachedInfos.set(snapshot.snapshotId, info)
        return info
      })

    const infos = Effect.gen(function* () {
      const found = yield* readSnapshots
      if (found === undefined) return []
      const list = yield* Effect.mapError(found.list, toUnreadableError)
      const short = makeShortIds(list)
      return yield* Effect.forEach(list.toReversed(), (snapshot, index) =>
        infoOf(found, snapshot, snapshot.tag ?? short(snapshot), index < maxDetails)
      )
    })

    const findSnapshot = Effect.fnUntraced(function* (id: string) {
      const found = yield* readSnapshots
      const snapshot = found && (yield* listSnapshots).find(({ snapshotId }) => snapshotId === id)
      if (found === undefined || snapshot === undefined) {
        return yield* makeDebugError("missing", `there is no snapshot ${JSON.stringify(id.slice(0, 100))}`)
      }
      return { found, snapshot }
    })

    const about = { name: filesystem.name, case_sensitive: filesystem.port.info.caseSensitive }
    const now: OpenTree = { filesystem, tree: Tree.ofFilesystem(filesystem), about }

    const openSnapshotTree = Effect.fnUntraced(function* (id: string): Effect.fn.Return<OpenTree, DebugError> {
      const { found, snapshot } = yield* findSnapshot(id)
      const known = cachedTrees.get(id)
      if (known !== undefined) return known
      const view = yield* Effect.mapError(found.view(snapshot), toUnreadableError)
      const identity = identities.get(id) ?? {}
      identities.set(id, identity)
      const look: OpenTree = {
        filesystem: view,
        identity,
        tree: yield* Effect.cached(Tree.ofFilesystem(view)),
        about: { name: view.name, case_sensitive: about.case_sensitive, created_at: DateTime.formatIso(snapshot.createdAt) }
      }
      cachedTrees.set(id, look)
      return look
    })

    /** Completes or undoes the unfinished change of a process that was killed after the filesystem was opened. */
    const settleUnfinished = Effect.mapError(
      filesystem.port.hostRoots?.settleTransactions(() => true) ?? Effect.void,
      (fault) => toUnreadableError(promote(fault, "debug", FsPath.root))
    )

    const look = (at: string | undefined): Effect.Effect<OpenTree, DebugError> =>
      at === undefined ? Effect.as(settleUnfinished, now) : openSnapshotTree(at)

    /**
     * Returns the changes between two snapshots, or between a snapshot and the current state. If `from` is the current state,
     * the changes from `to` to `from` are computed and reversed.
     */
    const changes = Effect.fnUntraced(function* (from: string | undefined, to: string | undefined) {
      if (from === to) return []
      const a = from === undefined ? undefined : yield* findSnapshot(from)
      const b = to === undefined ? undefined : yield* findSnapshot(to)
      const found = (a ?? b)!.found
      const forward = a === undefined ? found.diff(b!.snapshot) : found.diff(a.snapshot, b?.snapshot)
      const changes = yield* Effect.mapError(forward, toUnreadableError)
      return a === undefined ? changes.map(reversed) : changes
    })

    const diff = Effect.fnUntraced(function* (
      from: string | undefined,
      to: string | undefined
    ): Effect.fn.Return<Diff, DebugError> {
      const [before, after] = [yield* look(from), yield* look(to)]
      const entries = yield* Tree.entriesOf(yield* changes(from, to), before.filesystem, after.filesystem)
      return { from: from ?? null, to: to ?? null, changes: entries }
    })

    const count = Effect.orElseSucceed(
      Effect.map(listSnapshots, ({ length }) => length),
      () => 0
    )

    const watch = Live.watchFiles(filesystem)
    const watchProblems = (): ReadonlyArray<string> => {
      const problem = watch.problem()
      return problem === undefined
        ? []
        : [`File changes are not shown as they happen, so reload the page to see them: ${problem}.`]
    }

    return {
      about: Effect.map(
        Effect.match(listSnapshots, {
          onFailure: ({ message }) => [`The snapshots cannot be shown: ${message}.`, ...watchProblems()],
          onSuccess: watchProblems
        }),
        (problems) => ({ kind: "workspace" as const, title, path, tags: {}, has_filesystem: true, problems })
      ),
      generation: () => generation,
      ...withoutDump("workspace"),
      reload: Effect.sync(() => {
        generation++
        cachedTrees.clear()
        cachedInfos.clear()
      }),
      snapshots: infos,
      snapshotCount: count,
      look,
      diff,
      journal,
      live: yield* Live.shareWithListeners({
        transientEvents: watch.events,
        statefulEvents: [Live.emitCounts(count, (count) => ({ type: "snapshots", count })), ...Live.followJournal(journal)]
      })
    }
  })
