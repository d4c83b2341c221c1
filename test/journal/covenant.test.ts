import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Covenant from "../../src/journal/Covenant.ts"
import { JournalError } from "../../src/journal/errors.ts"
import * as Journal from "../../src/journal/Journal.ts"

class Order extends Schema.TaggedClass<Order>("test/Order")("Order", { correlationId: Schema.String, item: Schema.String }) {}
class Bill extends Schema.TaggedClass<Bill>("test/Bill")("Bill", { correlationId: Schema.String, sum: Schema.Int }) {}
class Parcel extends Schema.TaggedClass<Parcel>("test/Parcel")("Parcel", { correlationId: Schema.String }) {}
class Sent extends Schema.TaggedClass<Sent>("test/Sent")("Sent", { correlationId: Schema.String }) {}
class Lost extends Schema.TaggedClass<Lost>("test/Lost")("Lost", { correlationId: Schema.String }) {}

type Shop = Order | Bill
type Post = Parcel | Sent | Lost

const ground = Effect.gen(function* () {
  const shop = yield* Journal.makeMemory<Shop>()
  const post = yield* Journal.makeMemory<Post>()
  const branches = [
    Covenant.branch({ name: "shop", journal: shop, produces: [Order], consumes: [Bill] }),
    Covenant.branch({ name: "post", journal: post, produces: [Sent, Lost], consumes: [Parcel] })
  ]
  return { shop, post, branches }
})

type Ground = Effect.Success<typeof ground>

const pack = Covenant.route({
  name: "pack",
  from: [Order],
  to: [Parcel],
  via: ({ entry }) => Effect.succeed([new Parcel({ correlationId: `${entry.correlationId}/parcel` })])
})

const charge = Covenant.route({
  name: "charge",
  from: [Sent],
  to: [Bill],
  via: ({ entry }) => Effect.succeed([new Bill({ correlationId: entry.correlationId, sum: 1 })])
})

const entries = <E>(journal: Journal.Scrivener<E>) =>
  Effect.map(Stream.runCollect(journal.stored()), (all) => all.map(({ entry }) => entry))

const ids = <E extends { readonly correlationId: string }>(journal: Journal.Scrivener<E>) =>
  Effect.map(entries(journal), (all) => all.map(({ correlationId }) => correlationId))

/** Waits until the journal has an entry at the position. */
const reached = <E>(journal: Journal.Scrivener<E>, position: number) =>
  Stream.runDrain(Stream.take(journal.tail(position - 1), 1))

const order = (id: string) => new Order({ correlationId: id, item: "tea" })

/** Runs the covenant until the scope ends. */
const running = <R>(options: Covenant.CovenantOptions<never, R> & Covenant.RunOptions) =>
  Effect.flatMap(Covenant.make(options), (covenant) => Effect.tap(Covenant.daemons(covenant, options), ({ start }) => start))

const problems = <E, R>(options: Covenant.CovenantOptions<E, R>) =>
  Effect.map(Effect.flip(Covenant.make(options)), (error) =>
    error.problems.map(({ reason, type }) => (type === undefined ? reason : `${reason} ${type}`))
  )

const empty = { from: [], to: [], via: () => Effect.succeed([]) } as const

describe("the check of a covenant", () => {
  it.effect("accepts a covenant in which every type is routed or terminal", () =>
    Effect.gen(function* () {
      const { branches } = yield* ground
      yield* Covenant.make({ branches, routes: [pack, charge], terminal: [Lost] })
    })
  )

  const cases: ReadonlyArray<
    readonly [claim: string, make: (ground: Ground) => Covenant.CovenantOptions, expected: ReadonlyArray<string>]
  > = [
    [
      "a produced type without a route must be terminal",
      ({ branches }) => ({ branches, routes: [pack, charge] }),
      ["unrouted Lost"]
    ],
    [
      "a consumed type must be produced",
      ({ branches }) => ({ branches, routes: [pack], terminal: [Lost, Sent] }),
      ["unproduced Bill"]
    ],
    [
      "a source has one route",
      ({ branches }) => ({
        branches,
        routes: [pack, charge, Covenant.route({ ...empty, name: "again", from: [Sent], to: [Bill] })],
        terminal: [Lost]
      }),
      ["routedTwice Sent"]
    ],
    [
      "a routed type is not terminal",
      ({ branches }) => ({ branches, routes: [pack, charge], terminal: [Lost, Sent] }),
      ["terminalRouted Sent"]
    ],
    [
      "a terminal type must be produced",
      ({ branches }) => ({ branches, routes: [pack, charge], terminal: [Lost, Bill] }),
      ["unknownTerminal Bill"]
    ],
    [
      "a routed type must be produced",
      ({ branches }) => ({
        branches,
        routes: [pack, charge, Covenant.route({ ...empty, name: "back", from: [Bill], to: [Parcel] })],
        terminal: [Lost]
      }),
      ["unknownSource Bill"]
    ],
    [
      "a routed result must be consumed",
      ({ branches }) => ({
        branches,
        routes: [pack, charge, Covenant.route({ ...empty, name: "lose", from: [Lost], to: [Order] })]
      }),
      ["unknownTarget Order"]
    ],
    [
      "a type has one producer and one consumer",
      ({ branches, shop }) => ({
        branches: [...branches, Covenant.branch({ name: "stall", journal: shop, produces: [Order], consumes: [Bill] })],
        routes: [pack, charge],
        terminal: [Lost]
      }),
      ["ambiguousType Order", "ambiguousType Bill"]
    ],
    [
      "a route reads one journal",
      ({ branches }) => ({
        branches,
        routes: [Covenant.route({ ...empty, name: "both", from: [Order, Sent], to: [Parcel, Bill] })],
        terminal: [Lost]
      }),
      ["scatteredRoute"]
    ],
    [
      "a route has sources and targets",
      ({ branches }) => ({
        branches,
        routes: [pack, charge, Covenant.route({ ...empty, name: "idle" })],
        terminal: [Lost]
      }),
      ["emptyRoute", "emptyRoute"]
    ],
    [
      "names are used once",
      ({ branches, post }) => ({
        branches: [...branches, Covenant.branch({ name: "post", journal: post, produces: [], consumes: [] })],
        routes: [pack, Covenant.route({ ...empty, name: "pack", from: [Sent], to: [Bill] })],
        terminal: [Lost]
      }),
      ["duplicateName", "duplicateName"]
    ]
  ]
  it.effect.each(cases)("reports a violation of the rule: %s", ([, make, expected]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* problems(make(yield* ground)), expected)
    })
  )

  it.effect("reports all problems together in its message", () =>
    Effect.gen(function* () {
      const { branches } = yield* ground
      const error = yield* Effect.flip(Covenant.make({ branches, routes: [pack] }))
      assert.deepStrictEqual(
        error.problems.map(({ reason, type }) => [reason, type]),
        [
          ["unrouted", "Sent"],
          ["unrouted", "Lost"],
          ["unproduced", "Bill"]
        ]
      )
      for (const said of ["Sent", "Lost", "Bill", '"post"', '"shop"']) assert.include(error.message, said)
    })
  )
})

describe("a running covenant", () => {
  it.effect("routes stored and new entries in order, and each entry once", () =>
    Effect.gen(function* () {
      const { branches, post, shop } = yield* ground
      yield* shop.appendAll(["1", "2", "3"].map(order))
      yield* running({ branches, routes: [pack, charge], terminal: [Lost] })
      yield* reached(post, 3)
      yield* shop.append(order("4"))
      yield* reached(post, 4)
      assert.deepStrictEqual(yield* ids(post), ["1/parcel", "2/parcel", "3/parcel", "4/parcel"])
      yield* post.append(new Lost({ correlationId: "2/parcel" }))
      yield* post.append(new Sent({ correlationId: "1/parcel" }))
      yield* reached(shop, 5)
      assert.deepStrictEqual((yield* entries(shop)).slice(4), [new Bill({ correlationId: "1/parcel", sum: 1 })])
    }).pipe(Effect.provide(Journal.layerMemory))
  )

  it.effect("routes nothing twice after a restart, and routes entries that arrived meanwhile", () =>
    Effect.gen(function* () {
      const { branches, post, shop } = yield* ground
      const options = { branches, routes: [pack, charge], terminal: [Lost] }
      yield* shop.appendAll(["1", "2"].map(order))
      yield* Effect.scoped(Effect.andThen(running(options), reached(post, 2)))
      // Entries that come while the covenant is stopped.
      yield* shop.append(order("3"))
      yield* post.append(new Sent({ correlationId: "1/parcel" }))
      yield* Effect.scoped(Effect.andThen(running(options), Effect.andThen(reached(post, 4), reached(shop, 4))))
      yield* shop.append(order("4"))
      yield* Effect.scoped(Effect.andThen(running(options), reached(post, 5)))
      assert.deepStrictEqual(yield* ids(post), ["1/parcel", "2/parcel", "1/parcel", "3/parcel", "4/parcel"])
      assert.deepStrictEqual(yield* ids(shop), ["1", "2", "3", "1/parcel", "4"])
    }).pipe(Effect.provide(Journal.layerMemory))
  )

  it.effect("appends after a restart only those results of a route that are missing", () =>
    Effect.gen(function* () {
      const { post, shop } = yield* ground
      const both = Covenant.route({
        name: "both",
        from: [Order],
        to: [Bill, Parcel],
        via: ({ entry: { correlationId } }) =>
          Effect.succeed([new Bill({ correlationId, sum: 1 }), new Parcel({ correlationId })])
      })
      let broken = true
      const breaking: Journal.Scrivener<Post> = {
        ...post,
        appendAll: (added) =>
          broken
            ? Effect.fail(new JournalError({ operation: "append", reason: "io", detail: "no space" }))
            : post.appendAll(added)
      }
      const options = {
        branches: [
          Covenant.branch({ name: "shop", journal: shop, produces: [Order], consumes: [Bill] }),
          Covenant.branch({ name: "post", journal: breaking, produces: [], consumes: [Parcel] })
        ],
        routes: [both]
      }
      yield* shop.append(order("1"))
      const { daemons } = yield* running(options)
      yield* daemons[0]!.awaitStatus("Completed")
      assert.deepStrictEqual([yield* ids(shop), yield* ids(post)], [["1", "1"], []])
      broken = false
      yield* running(options)
      yield* shop.append(order("2"))
      yield* reached(post, 2)
      assert.deepStrictEqual(
        [yield* ids(shop), yield* ids(post)],
        [
          ["1", "1", "2", "2"],
          ["1", "2"]
        ]
      )
    }).pipe(Effect.provide(Journal.layerMemory))
  )

  it.effect("ignores entries before its start position", () =>
    Effect.gen(function* () {
      const { branches, post, shop } = yield* ground
      yield* shop.appendAll(["1", "2", "3"].map(order))
      yield* running({ branches, routes: [pack, charge], terminal: [Lost], after: { shop: 2 } })
      yield* shop.append(order("4"))
      yield* reached(post, 2)
      assert.deepStrictEqual(yield* ids(post), ["3/parcel", "4/parcel"])
    }).pipe(Effect.provide(Journal.layerMemory))
  )

  const failing = (via: (id: string) => Effect.Effect<ReadonlyArray<Parcel>, Error>) =>
    Effect.gen(function* () {
      const { branches, post, shop } = yield* ground
      const journal = yield* Journal.Journal
      const route = Covenant.route({ name: "pack", from: [Order], to: [Parcel], via: ({ entry }) => via(entry.correlationId) })
      yield* shop.appendAll(["1", "2", "3"].map(order))
      const covenant = yield* Covenant.make<Error>({ branches, routes: [route, charge], terminal: [Lost] })
      const { daemons, start } = yield* Covenant.daemons(covenant, { name: "trade" })
      yield* start
      const [packing, charging] = daemons
      yield* packing!.awaitStatus("Completed")
      const failure = yield* packing!.failure
      assert.strictEqual(yield* charging!.status, "Running")
      const said = (yield* Stream.runCollect(journal.stored())).flatMap(({ entry }) =>
        entry._tag === "DaemonChanged" && entry.daemon === "trade/pack" ? [[entry.status, entry.failure]] : []
      )
      return { failure, said, routed: yield* ids(post) }
    })

  it.effect("stops a route that fails, and reports the position of the entry", () =>
    Effect.gen(function* () {
      const { failure, routed, said } = yield* failing((id) =>
        id === "2" ? Effect.fail(new Error("no paper")) : Effect.succeed([new Parcel({ correlationId: id })])
      )
      assert.deepStrictEqual(routed, ["1"])
      const detail = 'the route "pack" stopped at entry 2: no paper'
      assert.include(failure?.message, detail)
      assert.deepStrictEqual(said, [
        ["Running", undefined],
        ["Completed", detail]
      ])
    }).pipe(Effect.provide(Journal.layerMemory))
  )

  it.effect("stops a route that dies or returns a type that it does not declare", () =>
    Effect.gen(function* () {
      const defect = yield* failing(() => {
        throw new Error("a slip")
      })
      assert.deepStrictEqual(defect.routed, [])
      assert.include(defect.failure?.message, "a slip")
      const stray = yield* failing((correlationId) => Effect.succeed([new Sent({ correlationId }) as never]))
      assert.deepStrictEqual(stray.routed, [])
      assert.include(stray.failure?.message, "Sent, which is not a declared target of the route")
    }).pipe(Effect.provide(Journal.layerMemory))
  )

  it.effect("that is interrupted during a route appends no result of the route, and repeats the route later", () =>
    Effect.gen(function* () {
      const { branches, post, shop } = yield* ground
      const begun = yield* Deferred.make<void>()
      const stuck = Covenant.route({
        name: "pack",
        from: [Order],
        to: [Parcel],
        via: () => Effect.andThen(Deferred.succeed(begun, undefined), Effect.never)
      })
      yield* shop.append(order("1"))
      const { shutdown } = yield* running({ branches, routes: [stuck, charge], terminal: [Lost] })
      yield* Deferred.await(begun)
      yield* shutdown
      assert.deepStrictEqual(yield* ids(post), [])
      yield* running({ branches, routes: [pack, charge], terminal: [Lost] })
      yield* reached(post, 1)
      assert.deepStrictEqual(yield* ids(post), ["1/parcel"])
    }).pipe(Effect.provide(Journal.layerMemory))
  )

  it.effect("as a layer stops when the layer closes", () =>
    Effect.gen(function* () {
      const { branches, post, shop } = yield* ground
      yield* shop.append(order("1"))
      const layer = Covenant.layer({ branches, routes: [pack, charge], terminal: [Lost], name: "trade" })
      yield* Effect.provide(reached(post, 1), layer)
      yield* shop.append(order("2"))
      const journal = yield* Journal.Journal
      const changes = (yield* entries(journal)).flatMap((entry) =>
        entry._tag === "DaemonChanged" ? [`${entry.daemon} ${entry.status}`] : []
      )
      assert.sameMembers(changes, [
        "trade/pack Running",
        "trade/charge Running",
        "trade/pack Completed",
        "trade/charge Completed"
      ])
      assert.deepStrictEqual(yield* ids(post), ["1/parcel"])
    }).pipe(Effect.provide(Journal.layerMemory))
  )
})
