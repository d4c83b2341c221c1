/** Shows a dump, and the dumps beside it for comparison and switching. Each is opened once, while it is in use. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as DateTime from "effect/DateTime"
import * as RcMap from "effect/RcMap"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { differences } from "../../history/tree.ts"
import { type DebugError, refuse } from "../errors.ts"
import type { Files } from "../journal.ts"
import * as Live from "../live.ts"
import type { Diff, SnapshotInfo } from "../model.ts"
import type { Look, Source } from "../source.ts"
import * as Tree from "../tree.ts"
import { type Archive, open, type Opened } from "./opened.ts"
import * as Place from "./place.ts"
import { manifestOf, sessionsOf, sliceOf, slicesOf } from "./said.ts"

const lookAt = (archive: Archive): Look => {
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

/** The time for which a dump that was only compared with stays open. */
const patience = "1 minute"

export const make = Effect.fnUntraced(function* (
  path: string,
  journal: Files | undefined
): Effect.fn.Return<Source, DebugError, Scope.Scope> {
  const first = yield* Place.find(path)
  const { directory } = first
  const places = new Map<string, Place.Place>()
  const dumps = yield* RcMap.make({
    lookup: (file: string) => open(places.get(file)!),
    idleTimeToLive: patience
  })
  const scope = yield* Effect.scope
  const one = yield* Semaphore.make(1)
  let shown = first
  let generation = 0
  let held: Scope.Closeable | undefined

  const keyOf = ({ alone, lines }: Place.Place): string => lines ?? alone!
  const opened = (place: Place.Place): Effect.Effect<Opened, never, Scope.Scope> =>
    Effect.suspend(() => {
      places.set(keyOf(place), place)
      return RcMap.get(dumps, keyOf(place))
    })
  /** Shows another dump and keeps it open. Requests that still read the previous dump can finish. */
  const show = (place: Place.Place) =>
    one.withPermit(
      Effect.gen(function* () {
        yield* RcMap.invalidate(dumps, keyOf(place))
        const next = yield* Scope.fork(scope)
        yield* Scope.provide(opened(place), next)
        const last = held
        held = next
        shown = place
        generation++
        if (last !== undefined) yield* Scope.close(last, Exit.void)
      })
    )
  yield* show(first)

  const using = <A, E>(use: (dump: Opened) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.scoped(
      Effect.flatMap(
        Effect.suspend(() => opened(shown)),
        use
      )
    )
  const telling = <A>(tell: (dump: Opened) => A): Effect.Effect<A> => using((dump) => Effect.sync(() => tell(dump)))

  const readable = (dump: Opened): Effect.Effect<Opened, DebugError> =>
    dump.archiveProblem === undefined
      ? Effect.succeed(dump)
      : Effect.fail(refuse("unreadable", dump.archiveProblem, dump.place.path))

  const at = (other: string | undefined): Effect.Effect<Opened, DebugError, Scope.Scope> =>
    other === undefined
      ? Effect.flatMap(
          Effect.suspend(() => opened(shown)),
          readable
        )
      : Place.within(directory, other).pipe(
          Effect.flatMap(opened),
          Effect.flatMap(readable),
          Effect.filterOrFail(
            ({ archive }) => archive !== undefined,
            () => refuse("missing", `${JSON.stringify(other)} has no files`, other)
          )
        )

  const list = Effect.map(Place.list(directory), (all) =>
    all.map((file) => (file.path === shown.path ? { ...file, is_shown: true } : file))
  )

  const others = Effect.map(list, (all) =>
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
      const said = { from: from ?? null, to: to ?? null }
      if (before === undefined || after === undefined) return { ...said, changes: [] }
      const changes = differences(before.node, after.node, true)
      return { ...said, changes: yield* Tree.entriesOf(changes, before.filesystem, after.filesystem) }
    }).pipe(Effect.scoped)

  return {
    about: telling(({ archive, place, problems, sessions: [root] }) => ({
      kind: "dump" as const,
      title: place.name,
      path: place.path,
      tags: root?.tags ?? {},
      has_filesystem: archive !== undefined,
      problems,
      ...(root !== undefined && { session_id: root.sessionId, created_at: DateTime.formatIso(root.createdAt) })
    })),
    generation: () => generation,
    sessions: telling(({ sessions }) => sessionsOf(sessions)),
    slices: telling(({ sessions }) => slicesOf(sessions)),
    slice: (name, session) => telling(({ sessions }) => sliceOf(sessions, name, session)),
    events: telling(({ events }) => events),
    dumps: list,
    reload: Effect.suspend(() => show(shown)),
    switchTo: (path) => Effect.flatMap(Place.within(directory, path), show),
    snapshots: others,
    snapshotCount: Effect.match(others, { onFailure: () => 0, onSuccess: ({ length }) => length }),
    look: (other) => Effect.map(at(other), ({ archive }) => (archive === undefined ? undefined : lookAt(archive))),
    diff,
    journal,
    live: yield* Live.toAll({
      happenings: [Live.changing(Place.stamp(directory), { type: "dumps" })],
      states: Live.ofJournal(journal)
    })
  }
})
