/**
 * A process that works on one file together with others. It prints a line when it is ready and waits for a line. Then it runs
 * its task on all fibers at once, and prints a report as one line of JSON.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { createHash } from "node:crypto"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import type { Report, Step, Task, Way } from "./workers.ts"

const task = JSON.parse(process.argv[2]!) as Task

interface Reached {
  readonly fs: Algebra
  readonly at: (name: string) => string
}

const host = (root: string) => Effect.map(PosixHost.make({ root }), make)

const mounted = (root: string, caseInsensitive: boolean) =>
  Effect.gen(function* () {
    const outer = make(yield* InMemory.make({ caseInsensitive }))
    return yield* mount("m", yield* host(root))(outer)
  })

const ways: Record<Way, (root: string) => Effect.Effect<Reached, unknown, Scope.Scope>> = {
  host: (root) => Effect.map(host(root), (fs) => ({ fs, at: (name) => `shared/${name}` })),
  below: (root) => Effect.map(host(`${root}/shared`), (fs) => ({ fs, at: (name) => name })),
  subdirectory: (root) => Effect.map(Effect.flatMap(host(root), subdirectory("shared")), (fs) => ({ fs, at: (name) => name })),
  mount: (root) => Effect.map(mounted(root, false), (fs) => ({ fs, at: (name) => `m/shared/${name}` })),
  caseless: (root) => Effect.map(mounted(root, true), (fs) => ({ fs, at: (name) => `M/SHARED/${name.toUpperCase()}` }))
}

const versionOf = (text: string): string => createHash("sha256").update(text).digest("hex")

const won: Array<Step> = []
let conflicts = 0

type Attempt = Effect.Effect<Step | undefined, unknown>

const orConflict = (attempt: Effect.Effect<Step, { readonly _tag: string }>): Attempt =>
  Effect.catch(attempt, (error) => (error._tag === "Conflict" ? Effect.succeed(undefined) : Effect.fail(error)))

/** Repeats the attempt until it has succeeded `rounds` times. */
const persistently = (attempt: () => Attempt, rounds: number): Effect.Effect<void, unknown> =>
  Effect.gen(function* () {
    for (let left = rounds; left > 0;) {
      const step = yield* attempt()
      if (step === undefined) {
        conflicts++
        yield* Effect.delay(Effect.void, Math.random() * 20)
      } else {
        won.push(step)
        left--
      }
    }
  })

const append = { mode: "append" } as const

/** Adds one line to the text that was read, with each of the calls that take a precondition. */
const extensions: ReadonlyArray<
  (fs: Algebra, path: string, text: string, line: string) => Effect.Effect<unknown, { readonly _tag: string }>
> = [
  (fs, path, text, line) => fs.write(path, text + line, { ifMatch: versionOf(text) }),
  (fs, path, text, line) => fs.writeBytes(path, Buffer.from(text + line), { ifMatch: versionOf(text), mode: "replace" }),
  (fs, path, text, line) => fs.write(path, line, { ...append, ifMatch: versionOf(text) }),
  (fs, path, text, line) => fs.write(path, line, { ...append, ifMatch: versionOf(text), version: true }),
  (fs, path, text, line) => Stream.run(Stream.make(Buffer.from(text + line)), fs.sink(path, { ifMatch: versionOf(text) })),
  (fs, path, text, line) =>
    Stream.run(Stream.make(Buffer.from(line)), fs.sink(path, { mode: "appendExisting", ifMatch: versionOf(text) })),
  (fs, path, text, line) => fs.edit(path, { oldText: text, newText: text + line }, { ifMatch: versionOf(text) })
]

const tasks: Record<Task["what"], (reached: Reached, fiber: number) => Effect.Effect<void, unknown>> = {
  extend: ({ at, fs }, fiber) => {
    let count = 0
    return persistently(
      () =>
        orConflict(
          Effect.gen(function* () {
            const text = yield* fs.readString(at("log"))
            const line = `${task.name} ${fiber} ${count}\n`
            yield* extensions[(fiber + count) % extensions.length]!(fs, at("log"), text, line)
            count++
            return [versionOf(text), versionOf(text + line)] as const
          }) as Effect.Effect<Step, { readonly _tag: string }>
        ),
      task.rounds
    )
  },
  edit: ({ at, fs }, fiber) =>
    Effect.forEach(
      Array.from({ length: task.rounds }, (_, round) => `${task.name} ${fiber} ${round}\n`),
      (line) => fs.edit(at("log"), { oldText: "end\n", newText: `${line}end\n` }),
      { discard: true }
    ),
  create: ({ at, fs }, fiber) =>
    Effect.forEach(
      Array.from({ length: task.rounds }, (_, round) => `new${round}`),
      (name) => {
        const text = `${task.name} ${fiber}`
        const options = fiber % 2 === 0 ? { ifMatch: null } : { ...append, ifMatch: null }
        return Effect.match(fs.write(at(name), text, options), {
          onSuccess: () => void won.push([name, text]),
          onFailure: (error) => {
            if (error._tag !== "Conflict") throw error
            conflicts++
          }
        })
      },
      { discard: true }
    ),
  recreate: ({ at, fs }, fiber) => {
    let count = 0
    const path = at("file")
    return persistently(
      () =>
        orConflict(
          Effect.gen(function* () {
            const is = `${task.name} ${fiber} ${count}`
            const was = yield* Effect.catchTag(fs.readString(path), "NotFound", () => Effect.succeed(null))
            const ifMatch = was === null ? null : versionOf(was)
            const removes = was !== null && (fiber + count) % 3 === 0
            if (removes) yield* fs.delete(path, { ifMatch })
            else yield* fs.write(path, is, { ifMatch })
            count++
            return [was, removes ? null : is] as const
          }) as Effect.Effect<Step, { readonly _tag: string }>
        ),
      task.rounds
    )
  }
}

const told: Effect.Effect<void> = Effect.callback((resume) => {
  process.stdin.once("data", () => resume(Effect.void))
  process.stdout.write("ready\n")
})

const program = Effect.gen(function* () {
  const reached = yield* ways[task.way](task.root)
  yield* told
  const fibers = Array.from({ length: task.fibers }, (_, fiber) => tasks[task.what](reached, fiber))
  yield* Effect.all(fibers, { concurrency: "unbounded", discard: true })
  process.stdout.write(`${JSON.stringify({ won, conflicts } satisfies Report)}\n`)
  process.stdin.destroy()
})

void Effect.runPromise(Effect.scoped(program))
