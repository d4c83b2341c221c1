import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { quota } from "../../filesystem/Decorator.ts"
import { type Algebra, type Edit, make, type Precondition } from "../../filesystem/Filesystem.ts"
import type { WriteMode } from "../../model/Entry.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { portable } from "../../port/Backend.ts"
import { performing, type Tag } from "../../port/Request.ts"
import { capture, directory, type Files } from "../Files.ts"
import { type Law, noted } from "../Law.ts"
import { expectSameSides, expectTree, lawForms, onBothSides, plantFiles, withFaults } from "../chapter.ts"
import { equal, holds } from "../expect.ts"
import { encodeUtf8, writeThroughSink } from "../operations.ts"

// These laws require that an accelerated change has the result, the fault and the tree of the change without acceleration.

const wholeChanges = lawForms("acceleration", "accelerations", "write", "delete")

const files: Files = {
  "text.txt": "one\r\ntwo\nthree two",
  "binary.bin": Uint8Array.of(0, 255, 1),
  empty: "",
  "d/e/f": "deep",
  "d/none": directory,
  none: directory
}

const paths = ["text.txt", "binary.bin", "empty", "d", "none", "d/e/f", "d/e/new", "far/away/new", "text.txt/below", "missing"]

type Outcome = Effect.Effect<unknown, { readonly _tag: string }>

type Call = (fs: Algebra, base: string) => Outcome

const outcome = (call: Outcome, base: string): Effect.Effect<string> =>
  Effect.match(call, {
    onSuccess: (value) => JSON.stringify(value ?? null).replaceAll(`${base}/`, ""),
    onFailure: (error) => `failed ${JSON.stringify(error)}`.replaceAll(`${base}/`, "")
  })

/** The number of calls between two comparisons of the whole tree. */
const callsPerComparison = 10

const sameResultLaw = (tag: Tag, what: string, calls: () => ReadonlyArray<readonly [what: string, call: Call]>): Law =>
  wholeChanges("architecture: accelerations").law(
    `${what} has the same result in one step and in several steps`,
    function* (fs) {
      if (performing(fs.port, tag) === undefined) return
      const slow = make(portable(fs.port))
      yield* plantFiles(fs, onBothSides(files))
      const all = calls()
      for (const [index, [what, call]] of all.entries()) {
        yield* equal(yield* outcome(call(fs, "fast"), "fast"), yield* outcome(call(slow, "slow"), "slow"), what)
        if (index % callsPerComparison > 0 && index < all.length - 1) continue
        yield* expectSameSides(fs, `the tree after ${what}`)
      }
    }
  )

const modes: ReadonlyArray<WriteMode> = ["create", "overwrite", "append", "replace", "appendExisting"]

const versionOf = (fs: Algebra, path: string): Effect.Effect<Precondition> =>
  Effect.map(
    Effect.orElseSucceed(fs.version(path), () => "none"),
    (ifMatch) => ({ ifMatch })
  )

const conditions: ReadonlyArray<readonly [what: string, of: (fs: Algebra, path: string) => Effect.Effect<Precondition>]> = [
  ["", () => Effect.succeed({})],
  [" with ifMatch null", () => Effect.succeed({ ifMatch: null })],
  [" with a stale ifMatch", () => Effect.succeed({ ifMatch: "0".repeat(64) })],
  [" with the current version as ifMatch", versionOf]
]

const writes = (
  mode: WriteMode,
  put: (fs: Algebra, path: string, content: string, options: NonNullable<Parameters<Algebra["write"]>[2]>) => Outcome
) =>
  paths.flatMap((path) =>
    (mode === "create" ? conditions.slice(0, 1) : conditions).flatMap(([when, of]) =>
      [false, true].map((createParents) => {
        const content = `${mode} ${createParents}`
        const call: Call = (fs, base) =>
          Effect.flatMap(of(fs, `${base}/${path}`), (condition) =>
            put(fs, `${base}/${path}`, content, { mode, createParents, version: createParents, ...condition })
          )
        return [`${content} to ${path}${when}`, call] as const
      })
    )
  )

const edits: ReadonlyArray<readonly [what: string, edits: ReadonlyArray<Edit>]> = [
  ["with one match", [{ oldText: "one", newText: "1" }]],
  ["with two matches", [{ oldText: "two", newText: "2" }]],
  ["with match all", [{ oldText: "two", newText: "2", match: "all" }]],
  [
    "in two places",
    [
      { oldText: "three", newText: "3" },
      { oldText: "deep", newText: "shallow" }
    ]
  ],
  ["without a match", [{ oldText: "nowhere", newText: "" }]]
]

const editCalls: ReadonlyArray<readonly [string, Call]> = paths.flatMap((path) =>
  edits.flatMap(([which, all]) =>
    conditions.map(([when, of], index) => {
      const version = index % 2 === 0
      const call: Call = (fs, base) =>
        Effect.flatMap(of(fs, `${base}/${path}`), (condition) => fs.edit(`${base}/${path}`, all, { version, ...condition }))
      return [`an edit of ${path} ${which}${when}`, call] as const
    })
  )
)

const deleteCalls: ReadonlyArray<readonly [string, Call]> = (["ignore", "fail"] as const).flatMap((missing) =>
  [false, true].flatMap((recursive) =>
    [...conditions].reverse().flatMap(([when, of]) =>
      [...paths, "missing/below"].map((path) => {
        const call: Call = (fs, base) =>
          Effect.flatMap(of(fs, `${base}/${path}`), (condition) =>
            fs.delete(`${base}/${path}`, { recursive, missing, ...condition })
          )
        return [`deleting ${path}${when}, missing: ${missing}, recursive: ${recursive}`, call] as const
      })
    )
  )
)

const mkdirCalls: ReadonlyArray<readonly [string, Call]> = [false, true].flatMap((parents) =>
  [false, true].flatMap((existOk) =>
    [...paths, "empty/below", "."].map((path) => {
      const call: Call = (fs, base) => fs.mkdir(`${base}/${path}`, { parents, existOk })
      return [`making ${path}, parents: ${parents}, existOk: ${existOk}`, call] as const
    })
  )
)

const moveCalls: ReadonlyArray<readonly [string, Call]> = [false, true].flatMap((overwrite) =>
  [...paths].reverse().flatMap((from) =>
    [...paths, "d/e/f/below", "none/here"].map((to) => {
      const call: Call = (fs, base) => fs.move(`${base}/${from}`, `${base}/${to}`, { overwrite })
      return [`moving ${from} to ${to}, overwrite: ${overwrite}`, call] as const
    })
  )
)

export const wholeChangeLaws: ReadonlyArray<Law> = [
  ...modes.flatMap((mode) => [
    sameResultLaw("Write", `a write in mode ${mode}`, () =>
      writes(mode, (fs, path, content, options) => fs.write(path, content, options))
    ),
    sameResultLaw("Write", `a sink in mode ${mode}`, () =>
      writes(mode, (fs, path, content, options) => writeThroughSink(fs, path, [content], options))
    )
  ]),
  sameResultLaw("Edit", "an edit", () => editCalls),
  sameResultLaw("Remove", "a delete", () => deleteCalls),
  sameResultLaw("MakeDirectory", "a mkdir", () => mkdirCalls),
  sameResultLaw("Move", "a move", () => moveCalls)
]

const writing = lawForms("service", "write")
const moving = lawForms("service", "write", "delete")

const numbers = Array.from({ length: 20 }, (_, i) => i)

const runConcurrently = <A, E>(calls: ReadonlyArray<Effect.Effect<A, E>>) => Effect.all(calls, { concurrency: "unbounded" })

const outcomes = <A, E extends { readonly _tag: string }>(calls: ReadonlyArray<Effect.Effect<A, E>>) =>
  runConcurrently(
    calls.map((call) => Effect.match(call, { onSuccess: () => "success", onFailure: (error): string => error._tag }))
  )

const oneSuccess = (tag: string): ReadonlyArray<string> => ["success", ...numbers.slice(1).map(() => tag)].sort()

export const concurrencyLaws: ReadonlyArray<Law> = [
  writing("C-42").law("concurrent appends are all kept without mixing their bytes", function* (fs) {
    yield* runConcurrently(numbers.map((n) => fs.write("log", `${n}`.repeat(50) + "\n", { mode: "append" })))
    const lines = (yield* fs.readString("log")).trimEnd().split("\n")
    yield* equal([...lines].sort(), numbers.map((n) => `${n}`.repeat(50)).sort())
  }),
  writing("C-42").law("exactly one of several concurrent creates of a file succeeds", function* (fs) {
    const seen = yield* outcomes(numbers.map((n) => fs.write("p/a", `${n}`, { mode: "create" })))
    yield* equal([...seen].sort(), oneSuccess("AlreadyExists"))
    yield* expectTree(fs, { "p/a": `${seen.indexOf("success")}` })
  }),
  writing("C-42, C-50", { a: "old" }).law(
    "exactly one of several concurrent writes with the same precondition succeeds",
    function* (fs) {
      const ifMatch = yield* fs.version("a")
      const seen = yield* outcomes(numbers.map((n) => fs.write("a", `${n}`, { ifMatch })))
      yield* equal([...seen].sort(), oneSuccess("Conflict"))
      yield* expectTree(fs, { a: `${seen.indexOf("success")}` })
    }
  ),
  writing("C-42", { a: numbers.map((n) => `<${n}>`).join("") }).law("concurrent edits are all kept", function* (fs) {
    yield* runConcurrently(numbers.map((n) => fs.edit("a", { oldText: `<${n}>`, newText: `[${n}]` })))
    yield* expectTree(fs, { a: numbers.map((n) => `[${n}]`).join("") })
  }),
  writing("C-42").law("concurrent mkdirs of one directory all succeed", function* (fs) {
    yield* runConcurrently(numbers.map(() => fs.mkdir("a/b/c")))
    yield* expectTree(fs, { "a/b/c": directory })
  }),
  writing("C-42").law("exactly one of several concurrent mkdirs with existOk false succeeds", function* (fs) {
    const seen = yield* outcomes(numbers.map(() => fs.mkdir("a/b", { existOk: false })))
    yield* equal([...seen].sort(), oneSuccess("AlreadyExists"))
  }),
  writing("C-42").law("concurrent writes into one new directory all succeed", function* (fs) {
    yield* runConcurrently(numbers.map((n) => fs.write(`p/q/${n}`, `${n}`)))
    yield* expectTree(fs, Object.fromEntries(numbers.map((n) => [`p/q/${n}`, `${n}`])))
  }),
  writing("C-13, C-42").law("a failing write never removes a directory that another write needs", function* (fs) {
    const seen = yield* outcomes(numbers.map((n) => fs.write("p/q/a", "x", { mode: n % 2 === 0 ? "create" : "overwrite" })))
    yield* holds(seen.includes("success"), "a write that succeeded", seen)
    yield* expectTree(fs, { "p/q/a": "x" })
  }),
  writing("C-42, C-49").law("a reader gets the content of one write, never a mixture of two writes", function* (fs) {
    yield* fs.write("a", "0".repeat(100_000))
    const write = (n: number) => fs.write("a", `${n % 10}`.repeat(100_000 - (n % 7)))
    const read = Effect.flatMap(fs.readString("a"), (text) =>
      holds(text === (text[0] ?? "").repeat(text.length) && text.length > 99_000, "one write's content", text)
    )
    yield* runConcurrently(numbers.flatMap((n): ReadonlyArray<Effect.Effect<unknown, unknown>> => [write(n), read]))
  }),
  writing("C-42").law("writes to one path happen in the order of arrival", function* (fs) {
    yield* fs.write("a", "")
    const fibers = yield* Effect.forEach(numbers, (n) =>
      Effect.forkChild(fs.write("a", `${n},`, { mode: "append" }), { startImmediately: true })
    )
    yield* Effect.forEach(fibers, Fiber.join)
    yield* expectTree(fs, { a: numbers.map((n) => `${n},`).join("") })
  }),
  writing("C-42", { a: numbers.map((n) => `<${n}>`).join("") }).law(
    "concurrent edits through two filesystems over one port are all kept",
    function* (fs) {
      const other = noted(fs, make(portable(fs.port)))
      yield* runConcurrently(numbers.map((n) => (n % 2 === 0 ? fs : other).edit("a", { oldText: `<${n}>`, newText: `[${n}]` })))
      yield* expectTree(fs, { a: numbers.map((n) => `[${n}]`).join("") })
    }
  ),
  moving("C-42", { "a/x": "1", "b/y": "2" }).law("concurrent moves in opposite directions do not deadlock", function* (fs) {
    yield* outcomes(numbers.map((n) => (n % 2 === 0 ? fs.move("a/x", "b/x") : fs.move("b/x", "a/x"))))
    const places = yield* Effect.all([fs.exists("a/x"), fs.exists("b/x")])
    yield* equal(places.filter((there) => there).length, 1)
    yield* equal(yield* fs.readString("b/y"), "2")
  }),
  moving("C-42", { "d/a": "1" }).law("deleting a tree and writing into the tree do not deadlock", function* (fs) {
    const seen = yield* outcomes<unknown, { readonly _tag: string }>(
      numbers.map((n) => (n % 5 === 0 ? fs.delete("d", { recursive: true, missing: "ignore" }) : fs.write(`d/${n}`, "x")))
    )
    yield* holds(
      seen.every((tag) => tag === "success" || tag === "NotFound" || tag === "DirectoryNotEmpty"),
      "success, NotFound or DirectoryNotEmpty",
      seen
    )
    yield* fs.write("d/last", "x")
    yield* equal(yield* fs.readString("d/last"), "x")
  }),
  writing("C-42", { a: "old" }).law("an interrupted call does not block the calls that wait for it", function* (fs) {
    const slow = yield* withFaults(fs, { operation: "Write", path: "a", nth: 1, fault: "hang" })
    const holder = yield* Effect.forkChild(slow.write("a", "1"), { startImmediately: true })
    const waiting = yield* Effect.forkChild(slow.write("a", "2"), { startImmediately: true })
    const last = yield* Effect.forkChild(slow.write("a", "3"), { startImmediately: true })
    yield* Fiber.interrupt(waiting)
    yield* Fiber.interrupt(holder)
    yield* Fiber.join(last)
    yield* expectTree(fs, { a: "3" })
  }),
  writing("C-42", { "a/x": "old", "b/x": "old" }).law("calls on other paths proceed while one path is locked", function* (fs) {
    const slow = yield* withFaults(fs, { operation: "Write", path: "a/x", fault: "hang" })
    const holder = yield* Effect.forkChild(slow.write("a/x", "1"), { startImmediately: true })
    yield* fs.write("b/x", "2")
    yield* fs.write("a/y", "3")
    yield* equal(yield* fs.readString("a/x"), "old")
    yield* Fiber.interrupt(holder)
    yield* expectTree(fs, { "a/x": "old", "b/x": "2", "a/y": "3" })
  })
]

const singleCalls = [
  ["overwrite", (fs) => fs.write("p/a", "new")],
  ["overwrite of a file", (fs) => fs.write("d/f", "new")],
  ["create", (fs) => fs.write("p/q/a", "new", { mode: "create" })],
  ["append", (fs) => fs.write("d/f", "new", { mode: "append" })],
  ["edit", (fs) => fs.edit("d/f", { oldText: "old", newText: "new" })],
  ["delete", (fs) => fs.delete("d/f")],
  ["mkdir", (fs) => fs.mkdir("p/q/r")],
  ["copy", (fs) => fs.copy("d/f", "p/q/copy")],
  ["copy over a file", (fs) => fs.copy("d/f", "other", { overwrite: true })],
  ["move", (fs) => fs.move("d/f", "p/q/moved")],
  ["copy of a tree", (fs) => fs.copy("d", "p/d")]
] as ReadonlyArray<readonly [string, (fs: Algebra) => Effect.Effect<unknown, unknown>]>

const initialTree = { "d/f": "old", "d/e/g": "x", other: "y" }

const changeSteps = ["Write", "MakeDirectory", "Remove", "Rename"] as const

/** Tests whether a rename to another directory fails, so that a move must copy. Leaves the tree unchanged. */
const copiesAcrossDirectories = (fs: Algebra): Effect.Effect<boolean, unknown> => {
  const [from, to] = ["d/f", "d/e/probe"] as [FsPath, FsPath]
  return Effect.matchEffect(fs.port.rename(from, to, { replace: false }), {
    onSuccess: () => Effect.as(fs.port.rename(to, from, { replace: false }), false),
    onFailure: () => Effect.succeed(true)
  })
}

export const atomicityLaws: ReadonlyArray<Law> = [
  ...singleCalls.flatMap(([what, call]) => [
    moving("C-13, C-55", initialTree).law(`${what} that fails at any step changes nothing`, function* (fs) {
      for (let nth = 1; nth < 50; nth++) {
        const broken = yield* withFaults(fs, { operation: changeSteps, nth, fault: { _tag: "DiskFull" } })
        const exit = yield* Effect.exit(call(broken))
        if (Exit.isSuccess(exit)) return yield* holds(nth > 1, "at least one step that could fail")
        yield* expectTree(fs, initialTree)
      }
    }),
    moving("C-13, C-55", initialTree).law(`${what} that is interrupted at any step changes nothing`, function* (fs) {
      for (let nth = 1; nth < 50; nth++) {
        const broken = yield* withFaults(fs, { operation: changeSteps, nth, fault: "hang" })
        const fiber = yield* Effect.forkChild(call(broken), { startImmediately: true })
        const hung = yield* Effect.raceFirst(Effect.as(broken.hung, true), Effect.as(Fiber.await(fiber), false))
        if (!hung) return yield* holds(nth > 1, "at least one step that could hang")
        yield* Fiber.interrupt(fiber)
        yield* expectTree(fs, initialTree)
      }
    })
  ]),
  moving("C-51, C-55", initialTree).law("a move of a tree that fails at any step loses no file", function* (fs) {
    const copies = yield* copiesAcrossDirectories(fs)
    for (let nth = 1; nth < 50; nth++) {
      const broken = yield* withFaults(fs, { operation: changeSteps, nth, fault: { _tag: "DiskFull" } })
      const exit = yield* Effect.exit(broken.move("d", "p/d"))
      if (Exit.isSuccess(exit)) return yield* holds(nth > 1, "at least one step that could fail")
      if (!copies) {
        yield* expectTree(fs, initialTree)
        continue
      }
      const found = yield* capture(fs.port)
      for (const [path, content] of [
        ["f", "old"],
        ["e/g", "x"]
      ] as const) {
        const kept = [found[`d/${path}`], found[`p/d/${path}`]].includes(`file ${JSON.stringify(content)}`)
        yield* holds(kept, `the complete file ${path} at the old or the new path`, found)
      }
      yield* Effect.forEach(["d", "p", "other"], (path) => fs.delete(path, { recursive: true, missing: "ignore" }))
      yield* plantFiles(fs, initialTree)
    }
  }),
  writing("C-22, C-23", { a: "old", d: directory }).law("a full disk is reported as DiskFull", function* (fs) {
    const full = yield* withFaults(fs, { operation: ["Write", "MakeDirectory"], fault: { _tag: "DiskFull" } })
    const seen = yield* outcomes<unknown, { readonly _tag: string }>([
      full.write("a", "new"),
      full.writeBytes("p/q", encodeUtf8("new")),
      full.edit("a", { oldText: "old", newText: "new" }),
      full.mkdir("e"),
      full.copy("a", "b"),
      full.copy("d", "e"),
      writeThroughSink(full, "a", ["new"])
    ])
    yield* equal(
      seen,
      Array.from(seen, () => "DiskFull")
    )
    yield* expectTree(fs, { a: "old", d: directory })
  }),
  writing("behaviours: regressions", { a: "old" }).law("a change that fails on a full disk keeps the old file", function* (fs) {
    const small = noted(fs, yield* quota({ maxBytes: 5 })(fs))
    const seen = yield* outcomes<unknown, { readonly _tag: string }>([
      small.write("a", "too long"),
      small.writeBytes("a", encodeUtf8("new"), { mode: "append" }),
      small.edit("a", { oldText: "old", newText: "longer" }),
      small.write("p/q", "new"),
      writeThroughSink(small, "a", ["too", "long"]),
      small.copy("a", "b")
    ])
    yield* equal(
      seen,
      Array.from(seen, () => "DiskFull")
    )
    yield* expectTree(fs, { a: "old" })
    yield* small.write("a", "newer")
    yield* expectTree(fs, { a: "newer" })
  })
]
