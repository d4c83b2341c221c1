/** Random calls on sessions, compared with a simple model that copies all state at every step. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Slice from "../../src/model/Slice.ts"
import * as Session from "../../src/workspace/Session.ts"
import { isSoak, runs } from "../runs.ts"

type Item = { readonly key: string; readonly n: number }
const Item = Schema.Struct({ key: Schema.String, n: Schema.Number })
const Ping = Schema.Struct({ ping: Schema.Number })

/** The rules of each slice for the model; the real slices use the library's reducers. */
interface Rule {
  readonly slice: Slice.Slice<Item>
  readonly log: boolean
  readonly initial: ReadonlyArray<Item>
  readonly dispatch: (items: Array<Item>, item: Item) => Array<Item>
  readonly ping?: (items: Array<Item>, n: number) => Array<Item>
}

const seed: ReadonlyArray<Item> = [{ key: "seed", n: 0 }]

const rules: ReadonlyArray<Rule> = [
  { slice: Slice.make("list", Item), log: false, initial: [], dispatch: (items, item) => [...items, item] },
  {
    slice: Slice.make("one", Item, { reduce: Slice.replaceLatest, initial: seed }),
    log: false,
    initial: seed,
    dispatch: (_, item) => [item]
  },
  {
    slice: Slice.make("table", Item, {
      reduce: Slice.upsert((item) => item.key),
      on: [Slice.on(Ping, (items, { ping }) => items.filter(({ n }) => n !== ping))]
    }),
    log: false,
    initial: [],
    dispatch: (items, item) => {
      const at = items.findIndex(({ key }) => key === item.key)
      if (at === -1) items.push(item)
      else items[at] = item
      return items
    },
    ping: (items, ping) => items.filter(({ n }) => n !== ping)
  },
  {
    slice: Slice.make("log", Item, {
      policy: "log",
      on: [Slice.on(Ping, (items, { ping }) => [...items, { key: "ping", n: ping }])]
    }),
    log: true,
    initial: [],
    dispatch: (items, item) => [...items, item],
    ping: (items, n) => [...items, { key: "ping", n }]
  }
]

/** A different slice with the same name as another one. */
const stranger = Slice.make("list", Item)

type Model = {
  readonly id: string
  slices: Map<string, Array<Item>>
  snapshots: Map<string, Map<string, Array<Item>>>
  readonly children: Array<string>
}

const copy = (slices: Map<string, Array<Item>>): Map<string, Array<Item>> =>
  new Map([...slices].map(([name, items]) => [name, items.map((item) => ({ ...item }))]))

const ruleOf = (name: string): Rule => rules.find(({ slice }) => slice.name === name)!

const Small = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3 }))
const Command = Schema.Struct({
  do: Schema.Literals([
    "install",
    "dispatch",
    "dispatch",
    "set",
    "publish",
    "cell",
    "snapshot",
    "snapshot",
    "rollback",
    "rollback",
    "restore",
    "forget",
    "reset",
    "clone",
    "child",
    "stranger"
  ]),
  which: Small,
  slice: Small,
  id: Schema.Literals(["s", "t"]),
  n: Small,
  items: Schema.Array(Small).check(Schema.isMaxLength(3))
})

const itemOf = (n: number): Item => ({ key: `k${n % 2}`, n })

const World = Effect.fnUntraced(function* () {
  const sessions: Array<Session.Operations> = [yield* Session.make({ id: "0" })]
  const models: Array<Model> = [{ id: "0", slices: new Map(), snapshots: new Map(), children: [] }]
  /** Every snapshot taken so far, with the index of its session. */
  const old: Array<{ readonly snapshot: Session.SessionSnapshot; readonly of: number }> = []

  const install = (model: Model, { initial, slice }: Rule): Array<Item> => {
    if (!model.slices.has(slice.name)) model.slices.set(slice.name, [...initial])
    return model.slices.get(slice.name)!
  }
  const back = (model: Model, id: string): void => {
    const then = copy(model.snapshots.get(id)!)
    for (const name of model.slices.keys()) {
      const rule = ruleOf(name)
      if (!rule.log) model.slices.set(name, then.get(name) ?? [...rule.initial])
    }
  }
  const step = Effect.fnUntraced(function* (command: typeof Command.Type) {
    const at = command.which % sessions.length
    const [session, model] = [sessions[at]!, models[at]!]
    const rule = rules[command.slice]!
    const item = itemOf(command.n)
    switch (command.do) {
      case "install":
        install(model, rule)
        return yield* session.install(rule.slice)
      case "dispatch":
        model.slices.set(rule.slice.name, rule.dispatch(install(model, rule), item))
        return yield* session.dispatch(rule.slice, item)
      case "set":
        install(model, rule)
        model.slices.set(rule.slice.name, command.items.map(itemOf))
        return yield* session.set(rule.slice, ...command.items.map(itemOf))
      case "publish":
        for (const [name, items] of model.slices) {
          const ping = ruleOf(name).ping
          if (ping !== undefined) model.slices.set(name, ping(items, command.n))
        }
        return yield* session.publish({ ping: command.n })
      case "cell":
        install(model, rule)
        model.slices.set(rule.slice.name, [item])
        return yield* Effect.scoped(
          Effect.map(
            session.cell(rule.slice, () => assert.fail("told of its own")),
            (cell) => cell.set(item)
          )
        )
      case "snapshot":
        model.snapshots.delete(command.id)
        model.snapshots.set(command.id, copy(new Map([...model.slices].filter(([name]) => !ruleOf(name).log))))
        old.push({ snapshot: yield* session.snapshot(command.id), of: at })
        return
      case "rollback": {
        const outcome = yield* Effect.result(session.rollback(command.id))
        assert.strictEqual(outcome._tag, model.snapshots.has(command.id) ? "Success" : "Failure")
        if (model.snapshots.has(command.id)) back(model, command.id)
        return
      }
      case "restore": {
        const chosen = old[command.n * 3 + command.slice]
        if (chosen === undefined) return
        const { snapshotId } = chosen.snapshot
        const isNewest = old.findLast(({ of, snapshot }) => of === at && snapshot.snapshotId === snapshotId) === chosen
        const isKnown = isNewest && model.snapshots.has(snapshotId)
        const outcome = yield* Effect.result(session.restore(chosen.snapshot))
        assert.strictEqual(outcome._tag, isKnown ? "Success" : "Failure")
        if (isKnown) back(model, snapshotId)
        return
      }
      case "forget":
        assert.strictEqual(yield* session.forget(command.id), model.snapshots.delete(command.id))
        return
      case "reset":
        for (const name of model.slices.keys()) model.slices.set(name, [...ruleOf(name).initial])
        return yield* session.reset
      case "clone": {
        if (sessions.length > 4) return
        const id = String(sessions.length)
        sessions.push(yield* session.clone({ id }))
        models.push({ id, slices: copy(model.slices), snapshots: new Map(), children: [] })
        return
      }
      case "child": {
        if (sessions.length > 4) return
        const id = String(sessions.length)
        sessions.push(yield* session.child({ id, slices: [rule.slice] }))
        models.push({ id, slices: new Map([[rule.slice.name, [...rule.initial]]]), snapshots: new Map(), children: [] })
        model.children.push(id)
        return
      }
      case "stranger": {
        const isTaken = model.slices.has("list")
        const outcome = isTaken ? yield* Effect.result(session.dispatch(stranger, item)) : undefined
        if (isTaken) assert.strictEqual(outcome?._tag, "Failure")
        return
      }
    }
  })
  const check = Effect.fnUntraced(function* () {
    for (const [at, session] of sessions.entries()) {
      const model = models[at]!
      for (const { slice } of rules) {
        assert.deepStrictEqual(yield* session.all(slice), model.slices.get(slice.name) ?? [], `${model.id} ${slice.name}`)
      }
      assert.deepStrictEqual(
        (yield* session.snapshots).map(({ snapshotId }) => snapshotId),
        [...model.snapshots.keys()]
      )
      for (const snapshot of yield* session.snapshots) {
        const then = model.snapshots.get(snapshot.snapshotId)!
        for (const { slice } of rules) assert.deepStrictEqual(snapshot.items(slice), then.get(slice.name) ?? [])
      }
      assert.deepStrictEqual(
        (yield* session.children).map(({ id }) => id),
        model.children
      )
    }
  })
  return { step, check, sessions }
})

/** Follows the changes of a session and returns the last items of each slice. */
const following = Effect.fnUntraced(function* (session: Session.Operations) {
  const last = new Map<string, ReadonlyArray<unknown>>()
  const End = Slice.make("End", Schema.Number)
  const ended = Deferred.makeUnsafe<void>()
  yield* Effect.forkScoped(
    Stream.runForEach(session.changes, ({ items, slice }) =>
      slice === "End"
        ? Deferred.succeed(ended, undefined)
        : Effect.sync(() => {
            assert.notStrictEqual(last.get(slice), items)
            last.set(slice, items)
          })
    ),
    { startImmediately: true }
  )
  return Effect.as(Effect.andThen(session.dispatch(End, 1), Deferred.await(ended)), last)
})

describe("random calls of sessions", () => {
  it.effect.prop(
    "leave sessions in the state of a simple model, and `changes` reports every change",
    [Schema.Array(Command).check(Schema.isMinLength(20), Schema.isMaxLength(60))],
    ([commands]) =>
      Effect.scoped(
        Effect.gen(function* () {
          const world = yield* World()
          const first = world.sessions[0]!
          const told = yield* following(first)
          for (const command of commands) {
            yield* world.step(command)
            yield* world.check()
          }
          const last = yield* told
          for (const { initial, slice } of rules) {
            const items = yield* first.all(slice)
            const isUntouched = !last.has(slice.name)
            assert.deepStrictEqual(last.get(slice.name) ?? (items.length === 0 ? [] : initial), items)
            if (isUntouched) assert.isAtMost(items.length, initial.length)
          }
        })
      ),
    { arbitrary: { runs: isSoak ? 20_000 : runs(400) } }
  )
})
