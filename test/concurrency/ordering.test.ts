/**
 * The order of concurrent calls in one program (C-42), as properties. Calls on overlapping paths run one after another in the
 * order of their start. Other calls run meanwhile, and reads never wait.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { type FsPath, isWithin } from "../../src/model/FsPath.ts"
import { capture } from "../../src/testing/Files.ts"
import { scoped } from "./workers.ts"

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined
const runs = (count: number) => ({ arbitrary: { runs: soak ? 20 * count : count }, timeout: (soak ? 30 : 5) * 60_000 })

type Make = Effect.Effect<Algebra, unknown, Scope.Scope>

const inMemory: Make = Effect.map(InMemory.make(), make)
const posixHost: Make = Effect.flatMap(scoped, (root) => Effect.map(PosixHost.make({ root }), make))
const mounted = (outer: Make, inner: Make): Make =>
  Effect.flatMap(outer, (fs) => Effect.flatMap(inner, (other) => mount("a", other)(fs)))

/** Each filesystem, with one that runs the same calls sequentially as the oracle. */
const filesystems: ReadonlyArray<readonly [name: string, make: Make, oracle: Make]> = [
  ["InMemory", inMemory, inMemory],
  ["PosixHost", posixHost, inMemory],
  [
    "a subdirectory of PosixHost",
    Effect.flatMap(posixHost, (fs) => Effect.andThen(fs.mkdir("s"), subdirectory("s")(fs))),
    inMemory
  ],
  ["PosixHost mounted on InMemory", mounted(inMemory, posixHost), mounted(inMemory, inMemory)]
]

const Path = Schema.Literals(["a", "b", "a/x", "a/y", "b/x", "b/y", "b/x/z"])

const Command = Schema.Union([
  Schema.Struct({
    call: Schema.Literals(["write", "append", "create", "replace", "edit", "mkdir", "delete", "deleteTree"]),
    path: Path
  }),
  Schema.Struct({ call: Schema.Literals(["move", "moveOver"]), path: Path, to: Path })
])
type Command = typeof Command.Type

const Program = Schema.Array(Command).check(Schema.isMinLength(2), Schema.isMaxLength(14))

/** Runs a command. `n` makes the written text unique. */
const run = (fs: Algebra, command: Command, n: number): Effect.Effect<unknown, { readonly _tag: string }> => {
  const { path } = command
  switch (command.call) {
    case "write":
      return fs.write(path, `(${n})`)
    case "append":
      return fs.write(path, `(${n})`, { mode: "append" })
    case "create":
      return fs.write(path, `(${n})`, { ifMatch: null })
    case "replace":
      return fs.write(path, `(${n})`, { mode: "replace" })
    case "edit":
      return fs.edit(path, { oldText: "(", newText: `[${n}](` }, {})
    case "mkdir":
      return fs.mkdir(path)
    case "delete":
      return fs.delete(path)
    case "deleteTree":
      return fs.delete(path, { recursive: true, missing: "ignore" })
    case "move":
      return fs.move(path, command.to)
    case "moveOver":
      return fs.move(path, command.to, { overwrite: true })
  }
}

/**
 * Drops moves from one side of a mount to the other. Such a move locks one side after the other, so that another call may run
 * in between.
 */
const onOneSide = (name: string, program: ReadonlyArray<Command>): ReadonlyArray<Command> =>
  name.includes("mounted")
    ? program.filter((command) => !("to" in command) || command.path.startsWith("a") === command.to.startsWith("a"))
    : program

const outcome = (effect: Effect.Effect<unknown, { readonly _tag: string }>): Effect.Effect<string> =>
  Effect.match(effect, { onSuccess: () => "success", onFailure: (error) => error._tag })

const start = <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.forkChild(effect, { startImmediately: true })

const begin = Effect.fnUntraced(function* (make: Make) {
  const fs = yield* make
  yield* fs.write("b/x", "(b)")
  return fs
})

describe.each(filesystems)("%s", (name, make, oracle) => {
  it.live.prop(
    "gives concurrent calls the results of the same calls one after another, in the order of their start",
    [Program],
    ([all]) =>
      Effect.gen(function* () {
        const program = onOneSide(name, all)
        const fs = yield* begin(make)
        const gate = yield* Deferred.make<void>()
        // Hold the lock of the root until all calls have started, so that each call waits for the calls before it.
        const first = yield* start(fs.port.locks!.exclusive(["." as FsPath], Deferred.await(gate)))
        const fibers = []
        for (const [n, command] of program.entries()) fibers.push(yield* start(outcome(run(fs, command, n))))
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(first)
        const actual = yield* Effect.forEach(fibers, (fiber) => Fiber.join(fiber))
        const other = yield* begin(oracle)
        const expected = []
        for (const [n, command] of program.entries()) expected.push(yield* outcome(run(other, command, n)))
        assert.deepStrictEqual([actual, yield* capture(fs.port)], [expected, yield* capture(other.port)])
      }).pipe(Effect.scoped),
    runs(60)
  )

  it.live.prop(
    "runs calls on other paths while a path is locked, and calls on overlapping paths wait",
    [Path, Program],
    ([held, all]) =>
      Effect.gen(function* () {
        const program = onOneSide(name, all)
        const fs = yield* begin(make)
        const gate = yield* Deferred.make<void>()
        const first = yield* start(fs.port.locks!.exclusive([held as FsPath], Deferred.await(gate)))
        const taken: Array<FsPath> = [held as FsPath]
        const overlap = (self: FsPath, that: FsPath): boolean => isWithin(self, that) || isWithin(that, self)
        const waiting = []
        for (const [n, command] of program.entries()) {
          const paths = ("to" in command ? [command.path, command.to] : [command.path]).map((path) => path as FsPath)
          // A call with invalid paths waits for nothing.
          if (paths.length === 2 && (isWithin(paths[0]!, paths[1]!) || paths[1] === "a")) continue
          if (paths.some((path) => taken.some((other) => overlap(path, other)))) {
            waiting.push(yield* start(outcome(run(fs, command, n))))
            taken.push(...paths)
          } else yield* outcome(run(fs, command, n))
          // Reads never wait.
          for (const path of paths) yield* outcome(fs.readString(path))
          yield* fs.list(".")
        }
        for (const fiber of waiting) assert.isUndefined(fiber.pollUnsafe())
        yield* Deferred.succeed(gate, undefined)
        yield* Fiber.join(first)
        yield* Fiber.joinAll(waiting)
      }).pipe(Effect.scoped),
    runs(40)
  )

  const Sizes = Schema.Array(Schema.Literals([0, 1, 1000, 70_000, 300_000, 1_500_000])).check(
    Schema.isMinLength(1),
    Schema.isMaxLength(6)
  )
  const patterns = Arbitrary.schema(Sizes)

  it.live.prop(
    "lets a reader see only complete versions, in the order of the writes",
    [patterns],
    ([sizes]) =>
      Effect.gen(function* () {
        const fs = yield* begin(make)
        const text = (n: number): string => String(n).repeat(sizes[n - 1] ?? 3)
        yield* fs.write("b/f", text(0))
        const states = new Map(Array.from({ length: sizes.length + 1 }, (_, n) => [text(n), n] as const))
        const done = yield* Deferred.make<void>()
        const reader = Effect.gen(function* () {
          let last = ""
          while (!(yield* Deferred.isDone(done))) {
            const seen = yield* fs.readString("b/f")
            assert.isTrue(states.has(seen), `${seen.length} characters: ${[...new Set(seen)].join()}`)
            // Several writers may write an empty text.
            if (seen !== "" && last !== "") assert.isAtLeast(states.get(seen)!, states.get(last)!)
            if (seen !== "") last = seen
            yield* Effect.yieldNow
          }
        })
        const readers = [yield* start(reader), yield* start(reader), yield* start(reader)]
        const writers = []
        for (const n of sizes.keys()) writers.push(yield* start(fs.write("b/f", text(n + 1))))
        yield* Fiber.joinAll(writers)
        yield* Deferred.succeed(done, undefined)
        yield* Fiber.joinAll(readers)
        assert.strictEqual(yield* fs.readString("b/f"), text(sizes.length))
      }).pipe(Effect.scoped),
    runs(15)
  )
})
