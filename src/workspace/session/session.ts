import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as PubSub from "effect/PubSub"
import * as Stream from "effect/Stream"
import { write } from "../../history/zip/hostFile.ts"
import { root } from "../../model/FsPath.ts"
import type { AnySlice } from "../../model/Slice.ts"
import { SessionError } from "../../model/sessionError.ts"
import type { Participant } from "../../port/slices.ts"
import * as Locks from "../../runtime/locks.ts"
import { randomUUID } from "../../runtime/node.ts"
import type { Operations, Options, SliceChanged } from "../Session.ts"
import { toError } from "./files.ts"
import { checkId, invalid, quoteId } from "./ids.ts"
import { encode, type SessionRecord } from "./saved.ts"
import {
  type CellHolder,
  holdAll,
  type InstalledSlice,
  type Items,
  kept,
  resetAll,
  runAll,
  SessionSnapshots,
  State
} from "./state.ts"

const save = (path: string, writing: SessionRecord): Effect.Effect<void, SessionError> =>
  Effect.flatMap(encode("save", writing), (bytes) => write(path, () => Stream.make(bytes), toError("save", path)))

export type SliceItems = readonly [slice: AnySlice, items: Items]

interface SessionStart {
  readonly id: string
  readonly createdAt: DateTime.Utc
  readonly tags: Readonly<Record<string, string>>
  readonly held: ReadonlyArray<SliceItems>
  readonly parent?: Session | undefined
}

export interface Session {
  readonly operations: Operations
  readonly parent: Session | undefined
  readonly children: Array<Session>
  readonly ids: Set<string>
  /** The installed slices, in the order of their installation. */
  readonly held: () => ReadonlyArray<SliceItems>
}

const sessionsByOperations = new WeakMap<Operations, Session>()

/** Returns the session behind the operations. Fails for operations that this module did not create. */
export const sessionOf = (operation: string, operations: Operations): Effect.Effect<Session, SessionError> =>
  Effect.suspend(() => {
    const session = sessionsByOperations.get(operations)
    return session === undefined
      ? Effect.fail(invalid(operation, "the value is not a session that this copy of the library created"))
      : Effect.succeed(session)
  })

/** Runs one synchronous step. An error that the step throws becomes a defect. */
const runStep = <A>(step: () => A | SessionError): Effect.Effect<A, SessionError> =>
  Effect.suspend(() => {
    const answer = step()
    return answer instanceof SessionError ? Effect.fail(answer) : Effect.succeed(answer)
  })

const checkTags = (operation: string, tags: Readonly<Record<string, string>>): Effect.Effect<void, SessionError> =>
  typeof tags === "object" && tags !== null && Object.values(tags).every((value) => typeof value === "string")
    ? Effect.void
    : Effect.fail(invalid(operation, "tags must be an object whose values are strings"))

/** Creates a session. Validates everything before it adds the session to the tree of its parent. */
export const openSession = (operation: string, sessionStart: SessionStart): Effect.Effect<Session, SessionError> =>
  Effect.gen(function* () {
    yield* checkId(operation, "session", sessionStart.id)
    yield* checkTags(operation, sessionStart.tags)
    const state = yield* State.make
    for (const [slice, items] of sessionStart.held) {
      const entry = yield* runStep(() => state.installSlice(operation, slice))
      if (items !== slice.initial) state.change("set", [[entry, kept(items)]])
    }
    return yield* runStep(() => createOperations(operation, sessionStart, state))
  })

const slicesOf = (state: State) => {
  /** Changes a slice. Computes the new items before it installs the slice, so that a failed computation installs nothing. */
  const changeSlice = (cause: SliceChanged["cause"], slice: AnySlice, next: (entry: InstalledSlice) => Items) =>
    runStep(() => {
      const entry = state.entryOf(cause, slice)
      if (entry instanceof SessionError) return entry
      const items = next(entry)
      state.install(entry)
      state.change(cause, [[entry, items]])
      return undefined
    })
  const itemsOf = (slice: AnySlice): Items => state.find(slice)?.items ?? []
  return {
    install: (slice) => Effect.asVoid(runStep(() => state.installSlice("install", slice))),
    all: <A>(slice: AnySlice) => Effect.sync(() => itemsOf(slice) as ReadonlyArray<A>),
    latest: <A>(slice: AnySlice) =>
      Effect.sync((): Option.Option<A> => {
        const items = itemsOf(slice) as ReadonlyArray<A>
        return items.length === 0 ? Option.none() : Option.some(items.at(-1)!)
      }),
    set: (slice, ...items) => changeSlice("set", slice, () => kept(items)),
    dispatch: (slice, event) => changeSlice("dispatch", slice, (entry) => state.reduceEvent(entry, event)),
    publish: (event) =>
      Effect.sync(() => {
        const steps = state.stepsOfEvent(event)
        PubSub.publishUnsafe(state.events, event)
        state.change("publish", steps)
      }),
    changes: Stream.fromPubSub(state.changes),
    events: Stream.fromPubSub(state.events),
    cell: <A>(slice: AnySlice, changed: (latest: A | undefined) => void) =>
      Effect.gen(function* () {
        const entry = yield* runStep(() => state.installSlice("cell", slice))
        const holder: CellHolder = { changed: (latest) => changed(latest as A | undefined) }
        yield* Effect.acquireRelease(
          Effect.sync(() => void entry.holders.add(holder)),
          () => Effect.sync(() => void entry.holders.delete(holder))
        )
        return {
          get: () => entry.items.at(-1) as A | undefined,
          set: (value: A) => state.change("cell", [[entry, kept([value])]], holder),
          clear: () => state.change("cell", [[entry, kept([])]], holder)
        }
      })
  } satisfies Partial<Operations>
}

/** Creates the operations of a session and adds the session to the tree of its parent. Fails if the tree has the id already. */
const createOperations = (
  operation: string,
  { createdAt, id, parent, tags }: SessionStart,
  state: State
): Session | SessionError => {
  const ids = parent?.ids ?? new Set<string>()
  if (ids.has(id)) return invalid(operation, `this tree already contains a session with the id ${quoteId(id)}`)
  ids.add(id)
  const locks = Locks.make()
  const participants = new Map<string, Participant>()
  const sessionSnapshots = new SessionSnapshots(id, state, participants)
  const children: Array<Session> = []

  const runAlone = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> => locks.alone([root], effect)
  const exclusively: Operations["exclusively"] = (effect) => runAlone(holdAll(participants, effect))

  const held = (): ReadonlyArray<SliceItems> => state.entries.map(({ items, slice }) => [slice, items])
  const resetSlices = (): void =>
    state.change(
      "reset",
      state.entries.map((entry) => [entry, entry.initial])
    )

  const operations: Operations = Object.freeze<Operations>({
    ...slicesOf(state),
    id,
    tags: Object.freeze({ ...tags }),
    createdAt,
    parent: parent?.operations,
    children: Effect.sync(() => children.map((child) => child.operations)),

    snapshot: (snapshotId = randomUUID()) =>
      Effect.andThen(
        checkId("snapshot", "snapshot", snapshotId),
        exclusively(Effect.suspend(() => sessionSnapshots.take(snapshotId)))
      ),
    snapshots: Effect.sync(() => sessionSnapshots.snapshots),
    restore: (snapshot) => exclusively(Effect.suspend(() => sessionSnapshots.restore("restore", snapshot))),
    rollback: (snapshotId) =>
      exclusively(
        Effect.flatMap(
          runStep(() => sessionSnapshots.byId("rollback", snapshotId)),
          (snapshot) => sessionSnapshots.restore("rollback", snapshot)
        )
      ),
    prepare: (snapshot) => Effect.suspend(() => sessionSnapshots.prepare("restore", snapshot)),
    exclusively,
    forget: (snapshotId) => runAlone(Effect.uninterruptible(sessionSnapshots.forget(snapshotId))),

    reset: exclusively(
      Effect.uninterruptible(Effect.suspend(() => runAll([Effect.sync(resetSlices), resetAll([...participants.values()])])))
    ),
    clone: (options = {}) =>
      Effect.flatMap(exclusively(Effect.sync(held)), (items) =>
        Effect.map(createSession("clone", options, items), (session) => session.operations)
      ),
    child: (options = {}) =>
      Effect.suspend(() =>
        Effect.map(
          createSession("child", options, initialItems(options), sessionsByOperations.get(operations)),
          (session) => session.operations
        )
      ),
    save: (path) =>
      Effect.flatMap(exclusively(Effect.sync(held)), (items) =>
        save(path, { operations, held: items, parentId: parent?.operations.id, archive: undefined })
      ),

    addParticipant: (participant) =>
      Locks.withoutHolder(
        Effect.asVoid(
          Effect.acquireRelease(
            runStep(() => {
              if (participants.has(participant.name)) {
                return invalid("join", `this session already has a participant with the name ${quoteId(participant.name)}`)
              }
              participants.set(participant.name, participant)
              return undefined
            }),
            () =>
              runAlone(
                Effect.suspend(() => {
                  participants.delete(participant.name)
                  return sessionSnapshots.releaseParticipant(participant)
                })
              )
          )
        )
      )
  })

  const session: Session = { operations, parent, children, ids, held }
  sessionsByOperations.set(operations, session)
  parent?.children.push(session)
  return session
}

export const initialItems = ({ slices = [] }: Options): ReadonlyArray<SliceItems> =>
  slices.map((slice) => [slice, slice.initial])

export const createSession = (
  operation: string,
  { id = randomUUID(), tags = {} }: Pick<Options, "id" | "tags">,
  held: ReadonlyArray<SliceItems>,
  parent?: Session
): Effect.Effect<Session, SessionError> =>
  Effect.flatMap(DateTime.now, (createdAt) => openSession(operation, { id, createdAt, tags, held, parent }))
