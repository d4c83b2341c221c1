/** Operations on a workspace in a store, each with a count of the calls of the store. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import { BlobStore } from "../../src/repository/BlobStore.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import type { StoreServices } from "../../src/testing/StoreLaws.ts"
import { open, type Opened } from "./tapped.ts"

type Services = Context.Context<StoreServices>

/** Returns a service with a function around each call that returns an effect, and around the start of each listing. */
const around = <A extends object>(service: A, tap: <B, E>(call: Effect.Effect<B, E>) => Effect.Effect<B, E>): A =>
  Object.fromEntries(
    Reflect.ownKeys(service).map((key) => {
      const member: unknown = Reflect.get(service, key)
      if (Stream.isStream(member)) return [key, Stream.unwrap(Effect.as(tap(Effect.void), member))]
      if (typeof member !== "function") return [key, member]
      return [
        key,
        (...args: ReadonlyArray<unknown>) => {
          const answer: unknown = Reflect.apply(member, service, args)
          return Effect.isEffect(answer) ? tap(answer as Effect.Effect<unknown, unknown>) : answer
        }
      ]
    })
  ) as A

export type Moment = "before" | "during" | "after"
export const moments: ReadonlyArray<Moment> = ["before", "during", "after"]

/** Returns the stores, and runs `act` at the nth call after `arm`. `calls` returns the number of these calls. */
const counted = (stores: Services, nth: number, moment: Moment, act: Effect.Effect<void>) => {
  let calls = 0
  let isArmed = false
  const tap = <B, E>(call: Effect.Effect<B, E>): Effect.Effect<B, E> =>
    Effect.suspend(() => {
      if (!isArmed || ++calls !== nth) return call
      if (moment === "before") return Effect.andThen(act, call)
      if (moment === "after") return Effect.tap(call, () => act)
      const turn = Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
      return Effect.flatMap(Effect.forkDetach(call, { startImmediately: true }), () =>
        Effect.andThen(Effect.andThen(turn, act), Effect.never)
      )
    })
  return {
    arm: () => void (isArmed = true),
    calls: () => calls,
    stores: Context.make(BlobStore, around(Context.get(stores, BlobStore), tap)).pipe(
      Context.add(HeadStore, around(Context.get(stores, HeadStore), tap))
    ) as Services
  }
}

const large = Array.from({ length: 20_000 }, (_, n) => `line ${n}\n`).join("")

/** Makes the files that the operations change. */
export const prepare = ({ fs, snapshots }: Opened): Effect.Effect<unknown, unknown> =>
  Effect.gen(function* () {
    yield* fs.write("d/large", large.slice(0, 50_000))
    yield* fs.write("d/small", "old")
    yield* snapshots.snapshot({ tag: "first" })
    yield* fs.write("log", "1\n")
  })

const inRepository = <A, E>({ fs }: Opened, effect: Effect.Effect<A, E, Filesystem>) =>
  Effect.provideService(Repository.transaction(effect), Filesystem, fs)

type Run = (opened: Opened, stores: Services, workspace: string) => Effect.Effect<unknown, unknown>

const operations: Readonly<Record<string, Run>> = {
  "write of a small file": ({ fs }) => fs.write("new", "x"),
  "write of a large file": ({ fs }) => fs.write("d/large", large),
  append: ({ fs }) => fs.write("log", "2\n", { mode: "append" }),
  move: ({ fs }) => fs.move("d", "e"),
  "delete of a directory": ({ fs }) => fs.delete("d", { recursive: true }),
  transaction: (opened) =>
    inRepository(opened, Effect.andThen(opened.fs.write("t", large.slice(7)), opened.fs.write("d/t", "2"))),
  snapshot: ({ snapshots }) => snapshots.snapshot({ tag: "second" }),
  restore: ({ snapshots }) => Effect.flatMap(snapshots.list, (all) => snapshots.restore(all[0]!)),
  fork: (_, stores, workspace) => Effect.provide(Repository.fork(workspace, `${workspace} fork`), stores),
  collect: ({ fs }, stores) =>
    Effect.andThen(fs.delete("d", { recursive: true }), Effect.provide(Repository.collect({ grace: "0 millis" }), stores))
}

export const names: ReadonlyArray<string> = ["creation of the workspace", ...Object.keys(operations)]

/**
 * Runs an operation, with `act` at the nth call of the stores. Returns the number of calls. The calls that open the workspace count
 * only if the operation creates it.
 */
export const perform = (
  name: string,
  plain: Services,
  workspace: string,
  nth: number,
  moment: Moment,
  act: Effect.Effect<void>
) =>
  Effect.gen(function* () {
    const { arm, calls, stores } = counted(plain, nth, moment, act)
    const operation = operations[name]
    if (operation === undefined) arm()
    const opened = yield* open(stores, { workspace })
    arm()
    if (operation !== undefined) yield* operation(opened, stores, workspace)
    return calls()
  })
