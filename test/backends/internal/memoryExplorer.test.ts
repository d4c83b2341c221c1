import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as InMemory from "../../../src/backends/InMemory.ts"
import * as MemoryPort from "../../../src/backends/memory/port.ts"
import * as MemoryTree from "../../../src/backends/memory/tree.ts"
import * as Filesystem from "../../../src/filesystem/Filesystem.ts"
import { join } from "../../../src/model/FsPath.ts"
import type { FsPath } from "../../../src/model/FsPath.ts"
import * as Watchers from "../../../src/port/watchers.ts"
import { type Backend, type Child, portable } from "../../../src/port/Backend.ts"
import { type Explorer, inWalkOrder, type Visit } from "../../../src/port/explorer.ts"
import * as Session from "../../../src/workspace/Session.ts"
import { performed } from "../../performed.ts"
import { content } from "../../runtime/searched.ts"
import { runStep, Step } from "./memoryModel.ts"

interface Place extends Visit {
  readonly path: FsPath
}

const at = (path: string): Place => ({ above: undefined, segment: path, path: path as FsPath })

const explored = (port: Backend) => port.explore!<Place>(({ path }) => path, true)

const childNamed = (name: string): Child => ({ name, kind: "file", addressable: true })

interface Listed {
  readonly visit: Place
  readonly children: ReadonlyArray<Child>
}

const compareLent = Effect.fnUntraced(function* (port: Backend, explorer: Explorer<Place>, { children, visit }: Listed) {
  const lent = yield* explorer.lend!([{ visit, children }])
  for (const [index, { name }] of children.entries()) {
    const path = join(visit.path, name)
    const stat = yield* Effect.catch(port.stat(path), () => Effect.undefined)
    const read = Effect.scoped(Effect.flatMap(port.open(path), ({ read }) => read(0, 100)))
    assert.deepStrictEqual(lent[index], stat === undefined ? "gone" : stat.kind === "file" ? yield* read : "unreadable")
  }
})

/**
 * Compares the listings and contents from the explorer with those from the primitives, for the whole tree. Returns the
 * listings.
 */
const compareAll = Effect.fnUntraced(function* (port: Backend, explorer: Explorer<Place>) {
  const { caseSensitive } = port.info
  const all: Array<Listed> = []
  const pending = [at(".")]
  for (let visit = pending.pop(); visit !== undefined; visit = pending.pop()) {
    explorer.read([visit])
    const [reading] = explorer.take()
    const listed = inWalkOrder(yield* port.list(visit.path), caseSensitive)
    const children = reading!.children as typeof listed
    assert.deepStrictEqual(
      children.map(({ addressable, kind, name, sizeBytes }) => ({ name, kind, addressable, sizeBytes })),
      listed as never
    )
    yield* compareLent(port, explorer, { visit, children })
    yield* compareLent(port, explorer, { visit, children: [...children.map(({ name }) => name), "none"].map(childNamed) })
    for (const { kind, name } of children) if (kind === "directory") pending.push(at(join(visit.path, name)))
    all.push({ visit, children })
  }
  return all
})

for (const caseInsensitive of [false, true]) {
  const Moments = Arbitrary.array(
    Arbitrary.all({
      steps: Arbitrary.array(Step, { maxLength: 8 }),
      restore: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: -3, maximum: 3 })))
    }),
    { maxLength: 6 }
  )
  it.effect.prop(
    `a walk in memory sees each change, capture and restore${caseInsensitive ? ", ignoring case" : ""}`,
    [Moments],
    ([moments]) =>
      Effect.gen(function* () {
        const now = DateTime.makeUnsafe(0)
        const listener: MemoryTree.Listener = { isActive: () => false, emit: () => {} }
        const tree = MemoryTree.make({ now, caseInsensitive, listener })
        const settings = { caseInsensitive, rules: {} }
        const port = MemoryPort.makeMemoryPort(
          tree,
          Watchers.make((path) => path),
          settings
        )
        const history = MemoryPort.makeMemoryHistory(tree, settings)
        const kept: Array<MemoryTree.Captured> = []
        const explorer = yield* explored(port)
        let listings: ReadonlyArray<Listed> = []
        const compareChanged = Effect.gen(function* () {
          for (const listed of listings) yield* compareLent(port, explorer, listed)
          listings = yield* compareAll(port, explorer)
        })
        for (const { restore, steps } of moments) {
          for (const step of steps) {
            yield* Effect.ignore(runStep(port, step))
            yield* compareChanged
          }
          const captured = yield* history.capture
          kept.push(captured as MemoryTree.Captured)
          const old = kept[restore]
          if (old !== undefined && moments.length % 2 === 0) yield* history.restore(old, undefined)
          else if (old !== undefined) yield* history.restore(old, ["a" as FsPath, "b/a" as FsPath])
          yield* compareChanged
        }
        for (const captured of kept) {
          const view = history.view(captured)
          yield* compareAll(view, yield* explored(view))
        }
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 100 } }
  )
}

const edges = [
  "",
  "\n",
  "\r\n",
  "foo",
  "foo\r",
  "foo\r\nfoo",
  "\ufefffoo\nfoo\n",
  "foo\0",
  "x\n\nfoo\n",
  `${"y".repeat(70_000)}\nfoo\n`
]

/** Directories of files with awkward contents: byte order marks, no last line feed, invalid and binary bytes. */
const tree: InMemory.Tree = {
  edges: Object.fromEntries(edges.map((text, i) => [`e${i}`, text])),
  ...Object.fromEntries(
    Array.from({ length: 12 }, (_, directory) => [
      `d${directory}`,
      Object.fromEntries(
        Array.from({ length: 40 }, (_, file) => {
          const seed = directory * 40 + file
          return [`f${file}.txt`, content(seed, (seed * seed * 7) % 3000)]
        })
      )
    ])
  ),
  link: { link: "edges" },
  large: "foo bar\n".repeat(60_000)
}

describe("grep in memory", () => {
  const patterns = [
    "foo",
    "fo+",
    "bar$",
    "^import .* from",
    "return",
    "[fx]oo?",
    "a|b",
    "\u00e9t\u00e9",
    "nowhere",
    "foo\\s+bar"
  ]
  const options: ReadonlyArray<Filesystem.GrepOptions> = [
    {},
    { ignoreCase: true },
    { maxMatches: 7, context: 1 },
    { maxMatches: 100_000, maxFileSize: 2000 },
    { multiline: true, maxMatches: 100_000 }
  ]

  it.effect("gives the same matches, skipped files and cursors as the engine's own search", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree })
      const [fast, derived] = [Filesystem.make(port), Filesystem.make(portable(port))]
      for (const pattern of patterns) {
        for (const option of options) {
          const one = yield* fast.grep(pattern, option)
          assert.deepStrictEqual(one, yield* derived.grep(pattern, option), `${pattern} ${JSON.stringify(option)}`)
          if (one.next === undefined) continue
          const after = { ...option, after: one.next }
          assert.deepStrictEqual(yield* fast.grep(pattern, after), yield* derived.grep(pattern, after))
        }
      }
    })
  )

  it.effect("names the file on which a pattern takes too long, after the matches of earlier files", () =>
    Effect.gen(function* () {
      const earlier = Object.fromEntries(Array.from({ length: 50 }, (_, i) => [`a${i}`, "aab\n"]))
      const fs = Filesystem.make(yield* InMemory.make({ tree: { ...earlier, hostile: `${"a".repeat(40)}\n`, z: "aab\n" } }))
      const found: Array<string> = []
      const all = Stream.runForEach(fs.grepStream("^(a+)+b$"), ({ path }) => Effect.sync(() => found.push(path)))
      const error = yield* Effect.flip(all)
      assert.deepStrictEqual([error._tag, (error as { readonly path?: string }).path], ["Timeout", "hostile"])
      assert.strictEqual(found.length, 50)
    })
  )
})

describe("glob in memory", () => {
  it.effect("continues if its consumer removes a listed directory, and a later grep finds the remaining files", () =>
    Effect.gen(function* () {
      const fs = Filesystem.make(yield* InMemory.make({ tree: { a: "foo\n", b: "foo\n", c: { d: "foo\n" } } }))
      const found: Array<string> = []
      yield* Stream.runForEach(fs.globStream("**"), ({ path }) =>
        Effect.andThen(
          Effect.sync(() => found.push(path)),
          path === "a" ? fs.delete("c", { recursive: true }) : Effect.void
        )
      )
      assert.deepStrictEqual(found.slice(0, 2), ["a", "b"])
      assert.deepStrictEqual((yield* fs.grep("foo")).matches.length, 2)
    })
  )
})

describe("a file that was read whole", () => {
  it.effect("keeps the version of the bytes that were read, even if the file is replaced afterwards", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make({ tree: { a: "old" } })
      const read = performed(port, { _tag: "Read", path: "a" as FsPath, maxBytes: 100 })
      const [whole, other] = [yield* read, yield* read]
      const expected = yield* other!.version!
      yield* port.write<never, never>("a" as FsPath, new TextEncoder().encode("new"), "replace")
      assert.strictEqual(new TextDecoder().decode(whole!.bytes), "old")
      assert.strictEqual(yield* whole!.version!, expected)
    })
  )
})

describe("a filesystem of a session that has ended", () => {
  it.effect("refuses walks and searches like every other call", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const session = yield* Session.make()
      const port = yield* Scope.provide(InMemory.makeSession(session, { tree: { a: "foo\n" } }), scope)
      const fs = Filesystem.make(port)
      assert.strictEqual((yield* fs.grep("foo")).matches.length, 1)
      const explorer = yield* explored(port)
      yield* Scope.close(scope, Exit.void)
      const refused = yield* Effect.flip(port.list("." as FsPath))
      explorer.read([at(".")])
      assert.deepStrictEqual(explorer.take()[0]!.children, refused as never)
      assert.deepStrictEqual(yield* Effect.flip(explorer.lend!([{ visit: at("."), children: [childNamed("a")] }])), refused)
      assert.strictEqual((yield* Effect.flip(fs.grep("foo")))._tag, "Unavailable")
      assert.strictEqual((yield* Effect.flip(fs.glob("**")))._tag, "Unavailable")
    }).pipe(Effect.scoped)
  )
})
