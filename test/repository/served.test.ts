/** A server of all workspaces of a store, without a network. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { MaxOpsBeforeYield } from "effect/Scheduler"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { readOnly } from "../../src/filesystem/Decorator.ts"
import { instanceHeader, lineageHeader, nameOf, splitUrl, urlOf, workspaceHeader } from "../../src/remote/choice.ts"
import type { Info } from "../../src/remote/protocol.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Served from "../../src/repository/served.ts"
import { jumpingClock } from "../jumpingClock.ts"
import { memory, open, type StoreServices, tapped } from "./tapped.ts"

type Failure = { readonly _tag: string; readonly message: string }
type Call = (payload: object, request: object) => Effect.Effect<unknown, Failure, Scope.Scope>

/** Returns a client that sends requests for a workspace. */
const serving = (stores: StoreServices, options: Partial<Served.Options> = {}) =>
  Effect.map(
    Effect.provideContext(Served.make({ author: "server", confine: (fs) => fs, ...options }), stores),
    (answers) =>
      (workspace: string | undefined, headers: Readonly<Record<string, string>> = {}) => {
        const chosen = workspace === undefined ? {} : { [workspaceHeader]: encodeURIComponent(workspace) }
        const call = (tag: string, payload: object) =>
          Effect.scoped(
            (answers as unknown as Record<string, Call>)[tag]!(payload, { headers: { ...chosen, ...headers }, client: {} })
          )
        return {
          open: (path: string, handle: string) =>
            Effect.flatMap(
              Stream.toPull(
                (answers as unknown as Record<string, (payload: object, request: object) => Stream.Stream<unknown, Failure>>)[
                  "port.open"
                ]!({ path, handle }, { headers: { ...chosen, ...headers }, client: {} })
              ),
              (pull) => pull
            ) as Effect.Effect<unknown, Failure, Scope.Scope>,
          readAt: (handle: string) => call("port.readAt", { handle, offset: 0, length: 100 }),
          read: (path: string) => call("readString", { path }) as Effect.Effect<string, Failure>,
          write: (path: string, content: string) => call("write", { id: `${path} ${content}`, path, content }),
          info: call("port.info", {}) as Effect.Effect<Info, Failure>
        }
      }
  )

const filled = (stores: StoreServices, ...names: ReadonlyArray<string>) =>
  Effect.forEach(names, (workspace) =>
    Effect.scoped(Effect.flatMap(open(stores, { workspace }), ({ fs }) => fs.write("name", workspace)))
  )

const remove = (stores: StoreServices, workspace: string) =>
  Effect.gen(function* () {
    const heads = Context.get(stores, HeadStore)
    assert.isTrue(yield* heads.delete(workspace, (yield* heads.get(workspace))!))
  })

/** Waits until workspaces that are closed in the background are closed. */
const settled = (isSettled: () => boolean) =>
  Effect.gen(function* () {
    for (let turns = 0; turns < 1000 && !isSettled(); turns++) yield* Effect.yieldNow
  })

const refusal = (use: Effect.Effect<unknown, Failure>, part: string) =>
  Effect.map(Effect.flip(use), (error) => {
    assert.strictEqual(error._tag, "Unavailable")
    assert.include(error.message, part)
  })

describe("a server of workspaces", () => {
  it.live("answers each request with the workspace that it names", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const names = ["team", "Team", "ä/b ? & # %", "../team", "\u202eteam"]
      yield* filled(stores, ...names)
      const client = yield* serving(stores)
      for (const name of names) {
        assert.strictEqual(yield* client(name).read("name"), name)
        yield* client(name).write("mine", `of ${name}`)
        assert.strictEqual((yield* client(name).info).workspace, name)
      }
      for (const name of names) {
        const { fs } = yield* open(stores, { workspace: name })
        assert.strictEqual(yield* fs.readString("mine"), `of ${name}`)
      }
      assert.strictEqual((yield* Context.get(stores, HeadStore).get("team"))!.author, "server")
    })
  )

  it.live("refuses requests without a name, and with names that are unknown or ill-formed, and creates nothing", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* filled(stores, "team")
      const client = yield* serving(stores)
      yield* refusal(client(undefined).read("name"), "has named none")
      yield* refusal(client("teem").read("name"), "there is no workspace")
      yield* refusal(client("teem").write("a", "a"), "there is no workspace")
      for (const name of ["", "a\0b", "a\nb", "x".repeat(257)]) {
        yield* refusal(client(name).read("name"), "cannot be the name of a workspace")
      }
      yield* refusal(client(undefined, { [workspaceHeader]: "%zz" }).read("name"), "not valid percent-encoding")
      assert.isUndefined(yield* Context.get(stores, HeadStore).get("teem"))
    })
  )

  it.effect("refuses a deleted workspace, and the old clients of a workspace that was made again", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* filled(stores, "team", "other")
      const client = yield* serving(stores)
      const { lineage } = yield* client("team").info
      const old = client("team", { [lineageHeader]: lineage! })
      assert.strictEqual(yield* old.read("name"), "team")
      yield* remove(stores, "team")
      yield* refusal(old.write("a", "a"), "deleted")
      yield* TestClock.adjust("1100 millis")
      yield* refusal(old.read("name"), "there is no workspace")
      yield* filled(stores, "team")
      yield* refusal(old.read("name"), "made again")
      yield* refusal(old.write("a", "a"), "made again")
      assert.strictEqual(yield* client("team").read("name"), "team")
      assert.notStrictEqual((yield* client("team").info).lineage, lineage)
      assert.strictEqual(yield* client("other").read("name"), "other")
    })
  )

  it.live("answers for other workspaces while the store hangs for one, which is refused after a timeout", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* filled(stores, "hung", "team")
      const heads = Context.get(stores, HeadStore)
      let isHung = true
      const get: typeof heads.get = (name) => (name === "hung" && isHung ? Effect.never : heads.get(name))
      const client = yield* serving(Context.add(stores, HeadStore, { ...heads, get }), {
        openTimeout: "100 millis",
        maxOpen: 2
      })
      const waiting = yield* Effect.forkChild(refusal(client("hung").read("name"), "does not answer in time"))
      assert.strictEqual(yield* client("team").read("name"), "team")
      yield* client("team").write("a", "a")
      yield* Fiber.join(waiting)
      isHung = false
      assert.strictEqual(yield* client("hung").read("name"), "hung")
    })
  )

  it.effect("closes workspaces without requests, beginning with the least recently used", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const names = Array.from({ length: 30 }, (_, i) => `w${i}`)
      yield* filled(stores, ...names)
      const heads = Context.get(stores, HeadStore)
      const live = new Set<string>()
      const counted = Context.add(stores, HeadStore, {
        ...heads,
        changes: (name) =>
          Stream.ensuring(
            Stream.unwrap(Effect.sync(() => (live.add(name), heads.changes(name)))),
            Effect.sync(() => live.delete(name))
          )
      })
      const client = yield* serving(counted, { maxOpen: 3, idle: "5 minutes" })
      for (const name of names) {
        assert.strictEqual(yield* client(name).read("name"), name)
        yield* client("w0").read("name")
      }
      yield* settled(() => live.size === 3)
      assert.deepStrictEqual([...live].sort(), ["w0", "w28", "w29"])
      yield* TestClock.adjust("4 minutes")
      yield* client("w28").read("name")
      yield* TestClock.adjust("3 minutes")
      yield* settled(() => live.size === 1)
      assert.deepStrictEqual([...live], ["w28"])
      yield* TestClock.adjust("10 minutes")
      yield* settled(() => live.size === 0)
      assert.strictEqual(yield* client("w28").read("name"), "w28")
    })
  )

  it.live("refuses a further workspace while the maximum number of open workspaces is in use", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* filled(stores, "one", "two")
      const [isReading, gate] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let isArmed = false
      const slow = tapped(stores, (step, call) => {
        if (step !== "compareAndSet" || !isArmed) return call
        return Effect.andThen(Effect.andThen(Deferred.succeed(isReading, undefined), Deferred.await(gate)), call)
      })
      const client = yield* serving(slow, { maxOpen: 1 })
      yield* client("one").read("name")
      isArmed = true
      const writing = yield* Effect.forkChild(client("one").write("a", "a"))
      yield* Deferred.await(isReading)
      yield* refusal(client("two").read("name"), "as many workspaces in use")
      yield* Deferred.succeed(gate, undefined)
      yield* Fiber.join(writing)
      assert.strictEqual(yield* client("two").read("name"), "two")
      assert.strictEqual(yield* client("one").read("a"), "a")
    })
  )

  it.live("opens a workspace once, no matter how the fibers of its first requests interleave", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      const names = ["a", "b", "c", "d"]
      yield* filled(stores, ...names)
      const heads = Context.get(stores, HeadStore)
      const live = new Map<string, number>()
      const add = (name: string, more: number) => Effect.sync(() => void live.set(name, (live.get(name) ?? 0) + more))
      const counted = Context.add(stores, HeadStore, {
        ...heads,
        changes: (name) => Stream.ensuring(Stream.unwrap(Effect.as(add(name, 1), heads.changes(name))), add(name, -1))
      })
      for (let budget = 10; budget < 30; budget++) {
        const client = yield* serving(counted, { maxOpen: 4 })
        const requests = [...names, ...names, ...names].map((name) =>
          Effect.map(client(name).read("name"), (text) => [name, text])
        )
        const read = yield* Effect.provideService(Effect.all(requests, { concurrency: 12 }), MaxOpsBeforeYield, budget)
        for (const [name, text] of read) assert.strictEqual(text, name)
        yield* settled(() => [...live.values()].every((count) => count === budget - 9))
        assert.deepStrictEqual(
          [...live],
          names.map((name) => [name, budget - 9]),
          `a budget of ${budget}`
        )
      }
    })
  )

  it.live("keeps the handles of each workspace apart, and limits the handles of all workspaces together", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* filled(stores, "one", "two")
      const client = yield* serving(stores)
      yield* client("one").open("name", "h")
      yield* refusal(client("two").readAt("h"), "the connection was lost")
      yield* client("two").open("name", "h")
      const texts = yield* Effect.forEach(["one", "two"], (name) => client(name).readAt("h"))
      assert.deepStrictEqual(
        texts.map((bytes) => new TextDecoder().decode(bytes as Uint8Array)),
        ["one", "two"]
      )
      for (let i = 2; i < 1000; i++) yield* client(i % 2 === 0 ? "one" : "two").open("name", `h${i}`)
      yield* refusal(Effect.scoped(client("one").open("name", "more")), "holds too many files")
      yield* refusal(Effect.scoped(client("two").open("name", "more")), "holds too many files")
    }).pipe(Effect.scoped)
  )

  it.effect("refuses a repetition of a change after it closed the workspace, because it may have made the change", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* filled(stores, "one", "two")
      const client = yield* serving(stores, { maxOpen: 1 })
      const { instance } = yield* client("one").info
      const again = client("one", { [instanceHeader]: instance })
      yield* again.write("a", "a")
      yield* again.write("a", "a")
      yield* client("two").read("name")
      yield* refusal(again.write("a", "a"), "does not know whether it made the change")
      assert.strictEqual(yield* client("one").read("a"), "a")
    })
  )

  it.effect("keeps the instance of a workspace after the wall clock of the server was set to another hour", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* filled(stores, "one")
      const testClock = yield* Clock.Clock
      const { clock, jump } = yield* jumpingClock
      yield* Effect.gen(function* () {
        const client = yield* serving(stores, { idle: "5 minutes" })
        for (const hours of [1, -2]) {
          const { instance } = yield* client("one").info
          const again = client("one", { [instanceHeader]: instance })
          yield* again.write("a", "a")
          jump(hours * 3_600_000)
          // The server looks for workspaces without requests meanwhile.
          yield* Effect.provideService(TestClock.adjust("2 minutes"), Clock.Clock, testClock)
          yield* again.write("a", "a")
        }
      }).pipe(Effect.provideService(Clock.Clock, clock))
    })
  )

  it.live("applies `confine` to each workspace", () =>
    Effect.gen(function* () {
      const stores = yield* memory
      yield* filled(stores, "one", "two")
      const client = yield* serving(stores, { confine: readOnly })
      for (const name of ["one", "two"]) {
        assert.strictEqual(yield* client(name).read("name"), name)
        assert.strictEqual((yield* Effect.flip(client(name).write("a", "a")))._tag, "AccessDenied")
      }
    })
  )
})

describe("the address of a workspace of a server", () => {
  it("is divided into the address of the server and the name", () => {
    for (const url of ["unix:/run/a b?.sock", "http://host:1/prefix", "ws://[::1]:1"]) {
      assert.deepStrictEqual(splitUrl(url), { url, workspace: undefined })
      for (const workspace of ["team", "a?workspace=b", "ä/b#%", ""]) {
        assert.deepStrictEqual(splitUrl(urlOf(url, workspace)), { url, workspace })
      }
    }
    assert.isUndefined(splitUrl("unix:a?workspace=%zz"))
    assert.isUndefined(nameOf("%"))
    // A name that no header can carry.
    assert.isUndefined(splitUrl("unix:a?workspace=\ud800"))
  })
})
