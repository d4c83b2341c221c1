import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Slice from "../../src/model/Slice.ts"
import * as Session from "../../src/workspace/Session.ts"

class Done extends Schema.TaggedClass<Done>()("Done", { task: Schema.String }) {}

const Task = Schema.Struct({ key: Schema.String, done: Schema.Boolean })
const Notes = Slice.make("Notes", Schema.String)
const Plan = Slice.make("Plan", Schema.String, { reduce: Slice.replaceLatest, initial: ["think"] })
const Tasks = Slice.make("Tasks", Task, {
  reduce: Slice.upsert((task) => task.key),
  on: [Slice.on(Done, (tasks, { task }) => tasks.map((one) => (one.key === task ? { ...one, done: true } : one)))]
})
const Log = Slice.make("Log", Schema.String, {
  policy: "log",
  on: [Slice.on(Done, (lines, { task }) => [...lines, `done ${task}`])]
})

/** Runs the effect and returns every change that it causes. */
const heard = <A, E>(session: Session.Operations, effect: Effect.Effect<A, E>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const End = Slice.make("End", Schema.Number)
      const ended = Deferred.makeUnsafe<void>()
      const changes: Array<Session.SliceChanged> = []
      yield* Effect.forkScoped(
        Stream.runForEach(session.changes, (change) =>
          change.slice === "End" ? Deferred.succeed(ended, undefined) : Effect.sync(() => void changes.push(change))
        ),
        { startImmediately: true }
      )
      yield* effect
      yield* session.dispatch(End, 0)
      yield* Deferred.await(ended)
      return changes.map(({ cause, items, slice }) => [slice, cause, items] as const)
    })
  )

const bad: ReadonlyArray<readonly [what: string, id: string]> = [
  ["an empty id", ""],
  ["a slash", "a/b"],
  ["a backslash", "a\\b"],
  ["one dot", "."],
  ["two dots", ".."],
  ["a NUL", "a\0"],
  ["a newline", "a\nb"],
  ["a C1 control", "a\u0085"],
  ["a lone surrogate", "a\ud800"],
  ["more than 200 characters", "x".repeat(201)],
  ["a number", 7 as unknown as string]
]

describe("the slices of a session", () => {
  it.effect("contain their initial items first, and change by their reducers", () =>
    Effect.gen(function* () {
      const session = yield* Session.make({ slices: [Notes, Plan, Tasks] })
      assert.deepStrictEqual(yield* session.all(Plan), ["think"])
      assert.deepStrictEqual(yield* session.latest(Notes), Option.none())
      yield* session.dispatch(Notes, "a")
      yield* session.dispatch(Notes, "b")
      yield* session.dispatch(Plan, "write")
      yield* session.dispatch(Tasks, { key: "1", done: false })
      yield* session.dispatch(Tasks, { key: "2", done: false })
      yield* session.dispatch(Tasks, { key: "1", done: true })
      assert.deepStrictEqual(yield* session.all(Notes), ["a", "b"])
      assert.deepStrictEqual(yield* session.all(Plan), ["write"])
      assert.deepStrictEqual(yield* session.all(Tasks), [
        { key: "1", done: true },
        { key: "2", done: false }
      ])
      assert.deepStrictEqual(yield* session.latest(Notes), Option.some("b"))
    })
  )

  it.effect("are installed by calls that change them, but not by calls that read them", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      assert.deepStrictEqual(yield* session.all(Plan), [])
      assert.deepStrictEqual(yield* session.latest(Plan), Option.none())
      yield* session.install(Plan)
      assert.deepStrictEqual(yield* session.all(Plan), ["think"])
      yield* session.set(Notes, "x", "y")
      yield* session.install(Notes)
      assert.deepStrictEqual(yield* session.all(Notes), ["x", "y"])
    })
  )

  it.effect("have unique names, so that a call with another slice of the same name fails and changes nothing", () =>
    Effect.gen(function* () {
      const session = yield* Session.make({ slices: [Notes] })
      yield* session.set(Notes, "mine")
      const Other = Slice.make("Notes", Schema.Number)
      const ways = [
        session.install(Other),
        session.set(Other, 1),
        session.dispatch(Other, 1),
        Effect.scoped(session.cell(Other, () => {}))
      ]
      for (const way of ways) {
        const error = yield* Effect.flip<unknown, Session.SessionError, never>(way)
        assert.deepStrictEqual([error._tag, error.reason], ["SessionError", "duplicateSlice"])
      }
      assert.deepStrictEqual(yield* session.all(Other), [])
      assert.deepStrictEqual(yield* session.all(Notes), ["mine"])
      const error = yield* Effect.flip(Session.make({ slices: [Notes, Other] }))
      assert.strictEqual(error.reason, "duplicateSlice")
    })
  )

  it.effect("must have names that are valid as file names", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      for (const [what, name] of bad) {
        const error = yield* Effect.flip(session.install(Slice.make(name, Schema.String)))
        assert.strictEqual(error.reason, "invalid", what)
      }
    })
  )

  it.effect("change only if they handle the published event", () =>
    Effect.gen(function* () {
      const session = yield* Session.make({ slices: [Notes, Tasks, Log] })
      yield* session.dispatch(Tasks, { key: "1", done: false })
      yield* session.publish(new Done({ task: "1" }))
      yield* session.publish({ _tag: "Done", task: "no instance" })
      yield* session.publish(undefined)
      assert.deepStrictEqual(yield* session.all(Tasks), [{ key: "1", done: true }])
      assert.deepStrictEqual(yield* session.all(Log), ["done 1"])
      assert.deepStrictEqual(yield* session.all(Notes), [])
    })
  )

  it.effect("are all unchanged, and the slice is not installed, if a reducer throws", () =>
    Effect.gen(function* () {
      const session = yield* Session.make({ slices: [Log] })
      const Failing = Slice.make("Failing", Schema.String, {
        reduce: () => {
          throw new Error("the reducer's own")
        },
        on: [
          Slice.on(Done, () => {
            throw new Error("the handler's own")
          })
        ]
      })
      const first = yield* Effect.exit(session.dispatch(Failing, "x"))
      assert.isTrue(Exit.hasDies(first))
      yield* session.install(Slice.make("Failing", Schema.Number))

      const other = yield* Session.make({ slices: [Log, Failing] })
      const events = yield* heard(
        other,
        Effect.gen(function* () {
          assert.isTrue(Exit.hasDies(yield* Effect.exit(other.publish(new Done({ task: "1" })))))
        })
      )
      assert.deepStrictEqual(events, [])
      assert.deepStrictEqual(yield* other.all(Log), [])
    })
  )

  it.effect("make the call die if a reducer does not return an array, or changes the session", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const NoArray = Slice.make("NoArray", Schema.String, { reduce: () => "abc" as unknown as ReadonlyArray<string> })
      const Meddling: Slice.Slice<string> = Slice.make("Meddling", Schema.String, {
        reduce: (items) => {
          Effect.runSync(session.set(Notes, "meddled"))
          return items
        }
      })
      assert.isTrue(Exit.hasDies(yield* Effect.exit(session.dispatch(NoArray, "x"))))
      assert.isTrue(Exit.hasDies(yield* Effect.exit(session.dispatch(Meddling, "x"))))
      assert.deepStrictEqual(yield* session.all(Notes), [])
      yield* session.set(Notes, "still alive")
    })
  )

  it.effect("are isolated from the values that callers pass in or receive", () =>
    Effect.gen(function* () {
      const initial = ["first"]
      const Given = Slice.make("Given", Schema.String, {
        initial,
        reduce: (items, item) => {
          assert.throws(() => (items as Array<string>).push("from inside"))
          return handedIn.concat(item)
        }
      })
      const handedIn = ["in"]
      const tags = { a: "1" }
      const session = yield* Session.make({ slices: [Given], tags })
      initial.push("later")
      tags.a = "2"
      assert.deepStrictEqual(session.tags, { a: "1" })
      assert.deepStrictEqual(yield* session.all(Given), ["first"])
      yield* session.dispatch(Given, "x")
      const items = yield* session.all(Given)
      assert.throws(() => (items as Array<string>).push("y"))
      const snapshot = yield* session.snapshot()
      assert.throws(() => (snapshot.items(Given) as Array<string>).pop())
      assert.throws(() => Object.assign(snapshot, { snapshotId: "other" }))
      assert.throws(() => Object.assign(session, { id: "other" }))
      assert.throws(() => Object.assign(session.tags, { b: "3" }))
      yield* session.reset
      assert.deepStrictEqual(yield* session.all(Given), ["first"])

      const answered: Array<string> = []
      const Keeping = Slice.make("Keeping", Schema.String, {
        reduce: (_, item: string) => {
          answered.push(item)
          return answered
        }
      })
      yield* session.dispatch(Keeping, "a")
      answered.push("later")
      assert.deepStrictEqual(yield* session.all(Keeping), ["a"])
      assert.isFalse(Object.isFrozen(answered))
    })
  )
})

describe("upsert, append and replaceLatest", () => {
  it.prop(
    "never change their input, and upsert agrees with a model",
    [Schema.Array(Schema.Struct({ key: Schema.Literals(["a", "b", "c"]), done: Schema.Boolean }))],
    ([tasks]) => {
      const upsert = Slice.upsert((task: typeof Task.Type) => task.key)
      const byKey = new Map<string, typeof Task.Type>()
      let items: ReadonlyArray<typeof Task.Type> = []
      for (const task of tasks) {
        const before = Object.freeze([...items])
        items = upsert(before, task)
        byKey.set(task.key, task)
        assert.deepStrictEqual(Slice.append(before, task), before.concat([task]))
        assert.deepStrictEqual(Slice.replaceLatest(before, task), [task])
      }
      assert.deepStrictEqual(items, [...byKey.values()])
    }
  )
})

describe("the streams of a session", () => {
  it.effect("contain every change with its cause, and no event if nothing changed", () =>
    Effect.gen(function* () {
      const session = yield* Session.make({ slices: [Notes, Plan, Log] })
      const changes = yield* heard(
        session,
        Effect.scoped(
          Effect.gen(function* () {
            yield* session.dispatch(Notes, "a")
            yield* session.snapshot("s")
            yield* session.publish(new Done({ task: "t" }))
            yield* session.set(Plan, "p")
            const cell = yield* session.cell(Notes, () => {})
            cell.set("c")
            cell.clear()
            cell.clear()
            yield* session.rollback("s")
            yield* session.rollback("s")
            yield* session.reset
          })
        )
      )
      assert.deepStrictEqual(changes, [
        ["Notes", "dispatch", ["a"]],
        ["Log", "publish", ["done t"]],
        ["Plan", "set", ["p"]],
        ["Notes", "cell", ["c"]],
        ["Notes", "cell", []],
        ["Notes", "rollback", ["a"]],
        ["Plan", "rollback", ["think"]],
        ["Notes", "reset", []],
        ["Log", "reset", []]
      ])
    })
  )

  it.effect("buffer events for a slow reader, and begin at the subscription", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const gate = Deferred.makeUnsafe<void>()
        const fiber = yield* Effect.forkScoped(
          Stream.runCollect(
            Stream.take(
              Stream.mapEffect(session.events, (event) => Effect.as(Deferred.await(gate), event)),
              10_000
            )
          ),
          { startImmediately: true }
        )
        for (let i = 0; i < 10_000; i++) yield* session.publish(i)
        const late = yield* Effect.forkScoped(Stream.runCollect(Stream.take(session.events, 1)), { startImmediately: true })
        yield* Deferred.succeed(gate, undefined)
        assert.deepStrictEqual(
          yield* Fiber.join(fiber),
          Array.from({ length: 10_000 }, (_, i) => i)
        )
        yield* session.publish("late")
        assert.deepStrictEqual(yield* Fiber.join(late), ["late"])
      })
    )
  )
})

describe("a cell", () => {
  it.effect("is the last item of its slice, and its callback runs each time others change this item", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const told: Array<string | undefined> = []
        const cell = yield* session.cell(Notes, (latest) => void told.push(latest))
        assert.isUndefined(cell.get())
        cell.set("own")
        assert.deepStrictEqual([cell.get(), told], ["own", []])
        cell.clear()
        assert.deepStrictEqual([cell.get(), yield* session.all(Notes), told], [undefined, [], []])
        cell.set("own")
        yield* session.snapshot("s")
        yield* session.dispatch(Notes, "b")
        assert.deepStrictEqual(told, ["b"])
        yield* session.set(Notes, "x", "b")
        assert.deepStrictEqual(told, ["b"])
        yield* session.rollback("s")
        yield* session.reset
        assert.deepStrictEqual(told, ["b", "own", undefined])
        assert.deepStrictEqual(yield* session.all(Notes), [])
      })
    )
  )

  it.effect("notifies the other cells of its slice until their scope closes, and a callback may set its cell immediately", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      const scope = yield* Scope.make()
      const told: Array<string> = []
      const first = yield* Scope.provide(
        session.cell(Notes, (latest) => {
          told.push(`first ${latest}`)
          if (latest === "ping") first.set("pong")
        }),
        scope
      )
      const second = yield* Scope.provide(
        session.cell(Notes, (latest) => void told.push(`second ${latest}`)),
        scope
      )
      second.set("ping")
      assert.deepStrictEqual(told, ["first ping", "second pong"])
      assert.deepStrictEqual(yield* session.all(Notes), ["pong"])
      yield* Scope.close(scope, Exit.void)
      yield* session.set(Notes, "z")
      assert.strictEqual(told.length, 2)
    })
  )

  it.effect("whose callback throws makes the call die after the change and all other callbacks", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const session = yield* Session.make()
        const told: Array<string | undefined> = []
        yield* session.cell(Notes, () => {
          throw new Error("the holder's own")
        })
        yield* session.cell(Notes, (latest) => void told.push(latest))
        assert.isTrue(Exit.hasDies(yield* Effect.exit(session.set(Notes, "x"))))
        assert.deepStrictEqual(told, ["x"])
        assert.deepStrictEqual(yield* session.all(Notes), ["x"])
      })
    )
  )
})

describe("a snapshot of a session", () => {
  it.effect("restores state slices, keeps log slices, and resets slices that were installed later", () =>
    Effect.gen(function* () {
      const session = yield* Session.make({ slices: [Notes, Log] })
      yield* session.dispatch(Notes, "a")
      yield* session.dispatch(Log, "1")
      yield* TestClock.adjust("1 hour")
      const snapshot = yield* session.snapshot("turn-1")
      yield* session.dispatch(Notes, "b")
      yield* session.dispatch(Log, "2")
      yield* session.set(Plan, "later")
      yield* session.set(Tasks, { key: "later", done: false })
      yield* session.restore(snapshot)
      assert.deepStrictEqual(yield* session.all(Notes), ["a"])
      assert.deepStrictEqual(yield* session.all(Log), ["1", "2"])
      assert.deepStrictEqual(yield* session.all(Plan), ["think"])
      assert.deepStrictEqual(yield* session.all(Tasks), [])
      assert.deepStrictEqual(
        [snapshot.sessionId, snapshot.snapshotId, DateTime.toEpochMillis(snapshot.createdAt)],
        [session.id, "turn-1", 3_600_000]
      )
      assert.deepStrictEqual([snapshot.items(Notes), snapshot.items(Log), snapshot.items(Plan)], [["a"], [], []])
    })
  )

  it.effect("is refused if it belongs to another session, is a copy, or was forgotten or replaced", () =>
    Effect.gen(function* () {
      const session = yield* Session.make({ id: "one" })
      const twin = yield* Session.make({ id: "one" })
      yield* session.set(Notes, "now")
      const foreign = yield* twin.snapshot("s")
      const old = yield* session.snapshot("s")
      yield* session.snapshot("s")
      const forgotten = yield* session.snapshot("f")
      assert.isTrue(yield* session.forget("f"))
      assert.isFalse(yield* session.forget("f"))
      const copy = { ...(yield* session.snapshot("c")) }
      yield* session.set(Notes, "later")
      for (const snapshot of [foreign, old, forgotten, copy, undefined as unknown as Session.SessionSnapshot]) {
        assert.strictEqual((yield* Effect.flip(session.restore(snapshot))).reason, "unknown")
        assert.strictEqual((yield* Effect.flip(session.prepare(snapshot))).reason, "unknown")
      }
      for (const id of ["f", "", "..", 3 as unknown as string]) {
        assert.strictEqual((yield* Effect.flip(session.rollback(id))).reason, "unknown")
      }
      assert.deepStrictEqual(yield* session.all(Notes), ["later"])
    })
  )

  it.effect("is listed in the order of creation, and last if it replaces another snapshot", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      for (const id of ["a", "b", "c", "a"]) yield* session.snapshot(id)
      const generated = yield* session.snapshot()
      assert.match(generated.snapshotId, /^[0-9a-f-]{36}$/)
      assert.deepStrictEqual(
        (yield* session.snapshots).map(({ snapshotId }) => snapshotId),
        ["b", "c", "a", generated.snapshotId]
      )
    })
  )

  it.effect("must have a valid id", () =>
    Effect.gen(function* () {
      const session = yield* Session.make()
      for (const [what, id] of bad) {
        const error = yield* Effect.flip(session.snapshot(id))
        assert.strictEqual(error.reason, "invalid", what)
      }
      assert.deepStrictEqual(yield* session.snapshots, [])
      for (const id of ["x".repeat(200), "🦊".repeat(200), "pre:write_file:call 1", "...a", " "]) yield* session.snapshot(id)
    })
  )
})

describe("a session", () => {
  it.effect("has a validated id and validated tags, and a creation time", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("2 hours")
      const session = yield* Session.make({ id: "mine", tags: { session_id: "abc" } })
      assert.deepStrictEqual(
        [session.id, DateTime.toEpochMillis(session.createdAt), session.tags, session.parent],
        ["mine", 7_200_000, { session_id: "abc" }, undefined]
      )
      assert.match((yield* Session.make()).id, /^[0-9a-f-]{36}$/)
      for (const [what, id] of bad) {
        assert.strictEqual((yield* Effect.flip(Session.make({ id }))).reason, "invalid", what)
      }
      for (const tags of [{ a: 1 }, null, "text"] as unknown as ReadonlyArray<Record<string, string>>) {
        assert.strictEqual((yield* Effect.flip(Session.make({ tags }))).reason, "invalid")
      }
    })
  )

  it.effect("has children in order, with ids that are unique in the tree", () =>
    Effect.gen(function* () {
      const session = yield* Session.make({ id: "root", slices: [Notes] })
      yield* session.set(Notes, "mine")
      const first = yield* session.child({ id: "first", slices: [Plan] })
      const second = yield* session.child({ id: "second" })
      const third = yield* first.child({ id: "third" })
      assert.deepStrictEqual(
        (yield* session.children).map(({ id }) => id),
        ["first", "second"]
      )
      assert.deepStrictEqual([third.parent, first.parent, second.parent], [first, session, session])
      assert.deepStrictEqual(yield* first.all(Notes), [])
      assert.deepStrictEqual(yield* first.all(Plan), ["think"])
      for (const taken of ["root", "first", "second", "third"]) {
        assert.strictEqual((yield* Effect.flip(third.child({ id: taken }))).reason, "invalid")
      }
      assert.deepStrictEqual(yield* third.children, [])
      const Other = Slice.make("Notes", Schema.Number)
      assert.strictEqual((yield* Effect.flip(session.child({ id: "x", slices: [Notes, Other] }))).reason, "duplicateSlice")
      yield* session.child({ id: "x" })
    })
  )

  it.effect("is cloned with its items, and is independent of the clone", () =>
    Effect.gen(function* () {
      const parent = yield* Session.make({ tags: { session_id: "parent" } })
      const session = yield* parent.child({ id: "original", slices: [Plan], tags: { session_id: "original" } })
      yield* session.dispatch(Notes, "a")
      yield* session.dispatch(Log, "1")
      yield* session.snapshot("s")
      yield* session.child()
      const clone = yield* session.clone({ tags: { name: "clone" } })
      assert.deepStrictEqual([clone.parent, yield* clone.children, yield* clone.snapshots], [undefined, [], []])
      assert.deepStrictEqual(clone.tags, { name: "clone" })
      assert.notStrictEqual(clone.id, session.id)
      yield* session.dispatch(Notes, "b")
      yield* clone.dispatch(Notes, "c")
      assert.deepStrictEqual(
        [yield* session.all(Notes), yield* clone.all(Notes)],
        [
          ["a", "b"],
          ["a", "c"]
        ]
      )
      assert.deepStrictEqual([yield* clone.all(Log), yield* clone.all(Plan)], [["1"], ["think"]])
      yield* clone.reset
      assert.deepStrictEqual([yield* clone.all(Notes), yield* session.all(Notes)], [[], ["a", "b"]])
      assert.deepStrictEqual((yield* session.clone()).tags, {})
    })
  )

  it.effect("is provided by a layer, which makes a new session each time", () =>
    Effect.gen(function* () {
      const program = Effect.gen(function* () {
        const session = yield* Session.Session
        yield* session.dispatch(Notes, "x")
        return yield* session.all(Notes)
      })
      assert.deepStrictEqual(yield* Effect.provide(program, Session.layer({ slices: [Notes] })), ["x"])
      assert.deepStrictEqual(yield* Effect.provide(program, Session.layer()), ["x"])
      const error = yield* Effect.flip(Effect.provide(program, Session.layer({ id: ".." })))
      assert.strictEqual(error.reason, "invalid")
    })
  )
})
