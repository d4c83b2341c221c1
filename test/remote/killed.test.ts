import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Remote from "../../src/remote/Remote.ts"
import { directory, serve } from "../cli/served.ts"
import { runs } from "../runs.ts"

const old = "old\n".repeat(100_000)
const fresh = "new\n".repeat(150_000)
const fileNames = Array.from({ length: 40 }, (_, index) => `${index}.txt`)

const connect = (url: string) =>
  Effect.flatMap(Layer.build(Remote.layerUrl(url, { timeout: "1 second" })), (context) =>
    Effect.provideContext(Filesystem, context)
  )

interface Case {
  readonly prepare: (fs: Algebra) => Effect.Effect<unknown, unknown>
  readonly change: (fs: Algebra) => Effect.Effect<unknown, unknown>
  /** Returns the state, which must be one of `before` and `after`. */
  readonly state: (fs: Algebra) => Effect.Effect<unknown, unknown>
  readonly before: unknown
  readonly after: unknown
  /** True if other states between both are permitted, as for the removal of a tree. */
  readonly isGradual?: boolean
}

const text = (path: string) => (fs: Algebra) => Effect.orElseSucceed(fs.readString(path), () => "absent")
const exists = (path: string) => (fs: Algebra) => fs.exists(path)
const putOld = (path: string) => (fs: Algebra) => fs.write(path, old)
const nothing = () => Effect.void
const namesIn = (path: string) => (fs: Algebra) =>
  Effect.orElseSucceed(
    Effect.map(fs.list(path), (entries) => entries.length),
    () => 0
  )
const putTree = (path: string) => (fs: Algebra) =>
  Effect.forEach(fileNames, (name) => fs.write(`${path}/${name}`, name), { concurrency: 8, discard: true })

const bytes = new TextEncoder().encode(fresh)
const chunks = Array.from({ length: 6 }, (_, index) =>
  bytes.subarray((index * bytes.length) / 6, ((index + 1) * bytes.length) / 6)
)

const cases: Readonly<Record<string, Case>> = {
  create: {
    prepare: nothing,
    change: (fs) => fs.write("c.txt", fresh, { mode: "create" }),
    state: text("c.txt"),
    before: "absent",
    after: fresh
  },
  replace: {
    prepare: putOld("r.txt"),
    change: (fs) => fs.write("r.txt", fresh),
    state: text("r.txt"),
    before: old,
    after: fresh
  },
  small: {
    prepare: (fs) => fs.write("s.txt", "old"),
    change: (fs) => fs.write("s.txt", "new"),
    state: text("s.txt"),
    before: "old",
    after: "new"
  },
  append: {
    prepare: putOld("a.txt"),
    change: (fs) => fs.write("a.txt", fresh, { mode: "append" }),
    state: text("a.txt"),
    before: old,
    after: old + fresh
  },
  edit: {
    prepare: (fs) => fs.write("e.txt", `first\n${old}`),
    change: (fs) => fs.edit("e.txt", { oldText: "first", newText: "second" }),
    state: text("e.txt"),
    before: `first\n${old}`,
    after: `second\n${old}`
  },
  sink: {
    prepare: putOld("k.txt"),
    change: (fs) => Stream.run(Stream.fromIterable(chunks), fs.sink("k.txt")),
    state: text("k.txt"),
    before: old,
    after: fresh
  },
  delete: { prepare: putOld("d.txt"), change: (fs) => fs.delete("d.txt"), state: text("d.txt"), before: old, after: "absent" },
  deleteTree: {
    prepare: putTree("tree"),
    change: (fs) => fs.delete("tree", { recursive: true }),
    state: namesIn("tree"),
    before: fileNames.length,
    after: 0,
    isGradual: true
  },
  mkdir: { prepare: nothing, change: (fs) => fs.mkdir("m/n/o"), state: exists("m/n/o"), before: false, after: true },
  copy: {
    prepare: putOld("from.txt"),
    change: (fs) => fs.copy("from.txt", "to.txt"),
    state: text("to.txt"),
    before: "absent",
    after: old
  },
  copyTree: {
    prepare: putTree("source"),
    change: (fs) => fs.copy("source", "target"),
    state: namesIn("target"),
    before: 0,
    after: fileNames.length,
    isGradual: true
  },
  move: {
    prepare: putOld("here.txt"),
    change: (fs) => fs.move("here.txt", "there.txt"),
    state: (fs) => Effect.all([fs.exists("here.txt"), fs.exists("there.txt")]),
    before: [true, false],
    after: [false, true]
  },
  moveTree: {
    prepare: putTree("home"),
    change: (fs) => fs.move("home", "away"),
    state: (fs) => Effect.all([namesIn("home")(fs), namesIn("away")(fs)]),
    before: [fileNames.length, 0],
    after: [0, fileNames.length]
  },
  symlink: {
    prepare: nothing,
    change: (fs) => fs.symlink("link", "r.txt"),
    state: (fs) => Effect.orElseSucceed(fs.readLink("link"), () => "absent"),
    before: "absent",
    after: "r.txt"
  },
  setAttributes: {
    prepare: (fs) => Effect.andThen(fs.write("mode.txt", ""), fs.setAttributes("mode.txt", { mode: 0o600 })),
    change: (fs) => fs.setAttributes("mode.txt", { mode: 0o640 }),
    state: (fs) => Effect.map(fs.stat("mode.txt"), ({ mode }) => mode! & 0o777),
    before: 0o600,
    after: 0o640
  }
}

const maxDelayMillis = 500

describe("a server process that is killed", () => {
  it.live(
    "leaves every file old or new, and loses no change that it has confirmed",
    () =>
      Effect.gen(function* () {
        const outcomes = { old: 0, new: 0, between: 0, acknowledged: 0 }
        for (let round = 0; round < runs(20); round++) {
          yield* Effect.scoped(
            Effect.gen(function* () {
              const cwd = yield* directory({ "files/r.txt": "" })
              const args = ["--root", "files", "--listen", "unix:a.sock"]
              const server = yield* serve(args, { cwd })
              const scope = yield* Scope.make()
              const fs = yield* Scope.provide(connect(server.url), scope)
              yield* Effect.forEach(Object.values(cases), ({ prepare }) => prepare(fs), { discard: true })
              const written: Array<number> = []
              const writer = yield* Effect.forkChild(
                Effect.exit(
                  Effect.forEach(
                    Array.from({ length: 10_000 }, (_, index) => index),
                    (index) => Effect.tap(fs.write(`log/${index}`, String(index)), () => Effect.sync(() => written.push(index)))
                  )
                )
              )
              const changing = yield* Effect.forkChild(
                Effect.forEach(Object.values(cases), ({ change }) => Effect.exit(change(fs)), { concurrency: "unbounded" })
              )
              yield* Effect.sleep(Math.random() * maxDelayMillis)
              server.child.kill("SIGKILL")
              yield* Effect.promise(() => server.ended)
              const exits = yield* Fiber.join(changing)
              yield* Fiber.join(writer)
              yield* Scope.close(scope, Exit.void)

              const again = yield* connect((yield* serve(args, { cwd })).url)
              for (const [index, [name, { after, before, isGradual, state }]] of Object.entries(cases).entries()) {
                const found = yield* state(again)
                const is = (expected: unknown) => JSON.stringify(found) === JSON.stringify(expected)
                const exit = exits[index]!
                if (Exit.isSuccess(exit)) {
                  outcomes.acknowledged++
                  assert.isTrue(is(after), `${name} was acknowledged`)
                } else if (is(before)) outcomes.old++
                else if (is(after)) outcomes.new++
                else {
                  outcomes.between++
                  assert.isTrue(isGradual === true, `${name} is neither old nor new: ${JSON.stringify(found).slice(0, 200)}`)
                }
              }
              for (const index of written) assert.strictEqual(yield* again.readString(`log/${index}`), String(index))
            })
          )
        }
        assert.isAbove(outcomes.old + outcomes.new + outcomes.between, 0)
        assert.isAbove(outcomes.acknowledged, 0)
      }),
    600_000
  )
})
