/**
 * A leaf that is killed between any two of its appends, and the leaf that follows it. Each request has its own files,
 * so its effect is visible, and its single answer must match that effect.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Entry from "../../src/journal/FileSystemEntry.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as MemoryStore from "../../src/journal/store/memoryStore.ts"
import * as Leaf from "../../src/journal/Leaf.ts"
import { capture, type Picture } from "../../src/testing/Files.ts"
import { asking, bytes, chunk, dead, memory, quiet } from "./leafBench.ts"

interface Kind {
  readonly tree: (at: string) => Record<string, string | object>
  readonly intents: (id: string) => ReadonlyArray<Entry.Efferent>
  /** The entries after the request is executed. */
  readonly done: (at: string) => Record<string, string | object>
}

const big = "0123456789".repeat(900)
const put = (correlationId: string, path: string, content: string, createMode: Entry.CreateMode) =>
  new Entry.FileWrite({ correlationId, path, createMode, content: bytes(content) })

const kinds: Record<string, Kind> = {
  create: { tree: () => ({}), intents: (id) => [put(id, `${id}/f`, "new", "create")], done: () => ({ f: "new" }) },
  overwrite: {
    tree: () => ({ f: "old" }),
    intents: (id) => [put(id, `${id}/f`, "new", "overwrite")],
    done: () => ({ f: "new" })
  },
  append: { tree: () => ({ f: "old" }), intents: (id) => [put(id, `${id}/f`, "new", "append")], done: () => ({ f: "oldnew" }) },
  appendMany: {
    tree: () => ({ f: "old" }),
    intents: (id) => [put(id, `${id}/f`, big, "appendExisting")],
    done: () => ({ f: `old${big}` })
  },
  parts: {
    tree: () => ({ f: "old" }),
    intents: (id) => [
      chunk(id, 0, "one", { path: `${id}/f`, createMode: "append" }),
      chunk(id, 3, "two"),
      chunk(id, 6, "", { isFinal: true })
    ],
    done: () => ({ f: "oldonetwo" })
  },
  remove: {
    tree: () => ({ f: "old", d: { g: "x", e: {} } }),
    intents: (id) => [new Entry.FileDelete({ correlationId: id, path: `${id}/d`, recursive: true })],
    done: () => ({ f: "old" })
  },
  move: {
    tree: () => ({ d: { g: "x" } }),
    intents: (id) => [new Entry.FileMove({ correlationId: id, path: `${id}/d`, to: `${id}/e/d` })],
    done: () => ({ e: { d: { g: "x" } } })
  },
  edit: {
    tree: () => ({ f: "a b a" }),
    intents: (id) => [new Entry.FileEdit({ correlationId: id, path: `${id}/f`, edits: [{ oldText: "b", newText: "bb" }] })],
    done: () => ({ f: "a bb a" })
  },
  mkdir: {
    tree: () => ({ f: "" }),
    intents: (id) => [new Entry.FileMakeDirectory({ correlationId: id, path: `${id}/d/e` })],
    done: () => ({ f: "", d: { e: {} } })
  },
  link: {
    tree: () => ({ f: "" }),
    intents: (id) => [new Entry.FileMakeLink({ correlationId: id, path: `${id}/l`, target: "f" })],
    done: () => ({ f: "", l: { link: "f" } })
  }
}

const names = Object.keys(kinds)
const ids = names.map((name, i) => `${name}-${i}`)
const kindOf = (id: string): Kind => kinds[id.split("-")[0]!]!

/** Returns the entries below a path as text, for comparison. */
const pictured = (picture: Picture, at: string): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(picture).flatMap(([path, entry]) =>
      path.startsWith(`${at}/`) ? [[path.slice(at.length + 1), JSON.stringify(entry)]] : []
    )
  )
const wanted = (tree: Record<string, string | object>) =>
  Effect.map(
    Effect.flatMap(memory({ tree: { at: tree as never } }), (fs) => capture(fs.port)),
    (picture) => pictured(picture, "at")
  )

type Said = "done" | "not executed" | "cannot be told"
const saidOf = (answer: Entry.Afferent): Said =>
  answer._tag !== "FileFault"
    ? "done"
    : answer.message.includes("not executed by this leaf")
      ? "cannot be told"
      : answer.message.includes("not executed")
        ? "not executed"
        : assert.fail(answer.message)

/**
 * Runs the first leaf until it is killed at this append, and then the second leaf. Returns the number of appends of the
 * first leaf.
 */
const crashing = Effect.fnUntraced(function* (kill: number, resume: "reads" | "all", extended: boolean, isBefore: boolean) {
  const tree = Object.fromEntries(ids.map((id) => [id, kindOf(id).tree(id)]))
  const fs = yield* memory({ tree: tree as never })
  const store = MemoryStore.make<Journal.Entry>()
  const front = Journal.make(store)
  let appends = 0
  const hangs = <A, E>(append: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.suspend(() => {
      const n = ++appends
      if (n < kill) return append
      return n === kill && !isBefore ? Effect.andThen(append, Effect.never) : Effect.never
    })
  const dying = Journal.make<Journal.Entry>({ ...store, append: (entries, at) => hangs(store.append(entries, at)) })
  const intents = ids.filter((id) => extended || !/^(move|edit|mkdir|link)/.test(id)).flatMap((id) => kindOf(id).intents(id))
  const asked = intents.filter((entry) => entry._tag !== "FileWriteChunk" || entry.isFinal).map((entry) => entry.correlationId)
  const half = Math.floor(intents.length / 2)
  yield* front.appendAll(intents.slice(0, half))
  // The scope of the first leaf is not closed, because a killed process runs no finalizers.
  const scope = yield* Scope.make()
  const first = yield* Leaf.make(fs, { name: "leaf", extended, resume }).pipe(
    Effect.provideService(Journal.Journal, dying),
    Effect.provideService(Scope.Scope, scope)
  )
  yield* Effect.forkDetach(Effect.exit(first.start), { startImmediately: true })
  yield* quiet
  yield* front.appendAll(intents.slice(half))
  yield* quiet
  yield* quiet
  const left = yield* Stream.runCollect(front.stored())
  const second = Journal.make({ ...MemoryStore.make<Journal.Entry>(), contents: store.contents })
  for (const { entry } of left) {
    yield* second.append(
      "instance" in entry ? Object.assign(Object.create(Object.getPrototypeOf(entry)), entry, { instance: dead() }) : entry
    )
  }
  yield* Effect.scoped(
    Effect.gen(function* () {
      const leaf = yield* Effect.provideService(Leaf.make(fs, { name: "leaf", extended, resume }), Journal.Journal, second)
      yield* leaf.start
      const answers = yield* asking(second).told(asked)
      const picture = yield* capture(fs.port)
      for (const [i, id] of asked.entries()) {
        const what = `${id}, killed ${isBefore ? "before" : "after"} append ${kill}, ${resume}, ${extended ? "" : "not "}extended`
        const ends = answers[i]!.filter(Entry.isTerminal)
        assert.lengthOf(ends, 1, what)
        const [was, is] = [yield* wanted(kindOf(id).tree(id)), yield* wanted(kindOf(id).done(id))]
        const now = pictured(picture, id)
        const said = saidOf(ends[0]!)
        if (said === "cannot be told") {
          assert.isFalse(extended, `${what}: ${JSON.stringify(ends[0])}`)
          assert.include([JSON.stringify(was), JSON.stringify(is)], JSON.stringify(now), what)
        } else assert.deepStrictEqual(now, said === "done" ? is : was, `${what}: ${JSON.stringify(ends[0])}`)
        if (resume === "all" && extended) assert.strictEqual(said, "done", what)
      }
    })
  )
  yield* Scope.close(scope, Exit.void).pipe(Effect.forkDetach)
  return appends
})

describe("a leaf that is killed between any two appends", () => {
  for (const extended of [true, false]) {
    for (const resume of ["reads", "all"] as const) {
      it.live(`is followed by a leaf whose answers are true (resume: ${resume}, ${extended ? "" : "not "}extended)`, () =>
        Effect.gen(function* () {
          const appends = yield* crashing(Number.POSITIVE_INFINITY, resume, extended, true)
          for (let kill = 1; kill <= appends + 1; kill++) {
            yield* crashing(kill, resume, extended, true)
            yield* crashing(kill, resume, extended, false)
          }
        })
      )
    }
  }
})
