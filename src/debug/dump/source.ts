/**
 * Serves a dump, and the other dumps of its directory for comparison and switching. Requests share one opening of a dump, which
 * stays open for a minute after its last use.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as DateTime from "effect/DateTime"
import * as RcMap from "effect/RcMap"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { differences } from "../../history/tree.ts"
import { type DebugError, makeDebugError } from "../errors.ts"
import type { FileJournal } from "../journal.ts"
import * as Live from "../live.ts"
import type { Diff, SnapshotInfo } from "../model.ts"
import type { OpenTree, Source } from "../source.ts"
import * as Tree from "../tree.ts"
import { type Archive, manifestOf, open, type OpenDump, sessionsOf, sliceOf, slicesOf } from "./opened.ts"
import * as Place from "./place.ts"

const viewOfArchive = (archive: Archive): OpenTree => {
  const { archive_bytes, case_sensitive, created_at, name } = manifestOf(archive)
  return {
    filesystem: archive.filesystem,
    tree: archive.tree,
    about: {
      name,
      ...(created_at !== undefined && { created_at }),
      ...(archive_bytes !== undefined && { archive_bytes }),
      case_sensitive
    }
  }
}

/** The time for which an unused dump stays open. */
const dumpIdleTime = "1 minute"

export const make = Effect.fnUntraced(function* (
  path: string,
  journal: FileJournal | undefined
): Effect.fn.Return<Source, DebugError, Scope.Scope> {
  const firstPlace = yield* Place.find(path)
  const { directory } = firstPlace
  const places = new Map<string, Place.Place>()
  const dumps = yield* RcMap.make({
    lookup: (file: string) => open(places.get(file)!),
    idleTimeToLive: dumpIdleTime
  })
  const scope = yield* Effect.scope
  const switchLock = yield* Semaphore.make(1)
  let shownPlace = firstPlace
  let generation = 0
  let shownScope: Scope.Closeable | undefined

  const keyOf = ({ archiveAlone: alone, lines }: Place.Place): string => lines ?? alone!
  const opened = (place: Place.Place): Effect.Effect<OpenDump, never, Scope.Scope> =>
    Effect.suspend(() => {
      places.set(keyOf(place), place)
      return RcMap.get(dumps, keyOf(place))
    })
  /** Switches to a dump, and keeps it open. Requests that still read the previous dump can finish. */
  const showDump = (place: Place.Place) =>
    switchLock.withPermit(
      Effect.gen(function* () {
        yield* RcMap.invalidate(dumps, keyOf(place))
        const next = yield* Scope.fork(scope)
        yield* Scope.provide(opened(place), next)
        const previousScope = shownScope
        shownScope = next
        shownPlace = place
        generation++
        if (previousScope !== undefined) yield* Scope.close(previousScope, Exit.void)
      })
    )
  yield* showDump(firstPlace)

  const useDump = <A, E>(use: (dump: OpenDump) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.scoped(
      Effect.flatMap(
        Effect.suspend(() => opened(shownPlace)),
        use
      )
    )
  const mapDump = <A>(tell: (dump: OpenDump) => A): Effect.Effect<A> => useDump((dump) => Effect.sync(() => tell(dump)))

  const requireReadable = (dump: OpenDump): Effect.Effect<OpenDump, DebugError> =>
    dump.archiveProblem === undefined
      ? Effect.succeed(dump)
      : Effect.fail(makeDebugError("unreadable", dump.archiveProblem, dump.place.path))

  const at = (other: string | undefined): Effect.Effect<OpenDump, DebugError, Scope.Scope> =>
    other === undefined
      ? Effect.flatMap(
          Effect.suspend(() => opened(shownPlace)),
          requireReadable
        )
      : Place.findBelow(directory, other).pipe(
          Effect.flatMap(opened),
          Effect.flatMap(requireReadable),
          Effect.filterOrFail(
            ({ archive }) => archive !== undefined,
            () => makeDebugError("missing", `${JSON.stringify(other)} has no files`, other)
          )
        )

  const list = Effect.map(Place.list(directory), (all) =>
    all.map((file) => (file.path === shownPlace.path ? { ...file, is_shown: true } : file))
  )

  const comparableDumps = Effect.map(list, (all) =>
    all
      .filter(({ has_archive: has, is_shown: isShown }) => has && !isShown)
      .map(({ modified_at: created_at, path }): SnapshotInfo => ({
        id: path,
        label: path.replace(/\.(jsonl|fs\.zip)$/, ""),
        created_at
      }))
  )

  const diff = (from: string | undefined, to: string | undefined): Effect.Effect<Diff, DebugError> =>
    Effect.gen(function* () {
      const [before, after] = [(yield* at(from)).archive, (yield* at(to)).archive]
      const endpoints = { from: from ?? null, to: to ?? null }
      if (before === undefined || after === undefined) return { ...endpoints, changes: [] }
      const changes = differences(before.node, after.node, true)
      return { ...endpoints, changes: yield* Tree.entriesOf(changes, before.filesystem, after.filesystem) }
    }).pipe(Effect.scoped)

  return {
    about: mapDump(({ archive, place, problems, sessions: [root] }) => ({
      kind: "dump" as const,
      title: place.name,
      path: place.path,
      tags: root?.tags ?? {},
      has_filesystem: archive !== undefined,
      problems,
      ...(root !== undefined && { session_id: root.sessionId, created_at: DateTime.formatIso(root.createdAt) })
    })),
    generation: () => generation,
    sessions: mapDump(({ sessions }) => sessionsOf(sessions)),
    slices: mapDump(({ sessions }) => slicesOf(sessions)),
    slice: (name, session) => mapDump(({ sessions }) => sliceOf(sessions, name, session)),
    events: mapDump(({ events }) => events),
    dumps: list,
    reload: Effect.suspend(() => showDump(shownPlace)),
    switchTo: (path) => Effect.flatMap(Place.findBelow(directory, path), showDump),
    snapshots: comparableDumps,
    snapshotCount: Effect.match(comparableDumps, { onFailure: () => 0, onSuccess: ({ length }) => length }),
    look: (other) => Effect.map(at(other), ({ archive }) => (archive === undefined ? undefined : viewOfArchive(archive))),
    diff,
    journal,
    live: yield* Live.shareWithListeners({
      transientEvents: [Live.emitOnChange(Place.stamp(directory), { type: "dumps" })],
      statefulEvents: Live.followJournal(journal)
    })
  }
})
