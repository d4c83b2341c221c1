import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as InMemory from "../../src/backends/InMemory.ts"
import { type Algebra, decorate, Filesystem, make, versioning } from "../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import { agreement, agrees } from "../../src/testing/Agreement.ts"
import * as Arbitraries from "../../src/testing/Arbitraries.ts"
import { adversarial, faulty, type Planned } from "../../src/testing/Faults.ts"
import { capture, directory, type Files, link, picture, plant } from "../../src/testing/Files.ts"
import { type Law, verdict } from "../../src/testing/Law.ts"
import { laws } from "../../src/testing/Laws.ts"
import * as MockFilesystem from "../../src/testing/MockFilesystem.ts"
import { policyLaws } from "../../src/testing/Policies.ts"
import { decorated, inMemory } from "./filesystems.ts"

const memory = Effect.map(InMemory.make(), make)

const named = (name: string): Law => {
  const law = laws.find((law) => law.name === name)
  assert.isDefined(law, name)
  return law!
}

describe("the laws of the kit", () => {
  it("are more than 200, each with a unique name and a reference", () => {
    const all = [...laws, ...policyLaws.map(({ law }) => law)]
    assert.isAbove(all.length, 200)
    assert.strictEqual(new Set(all.map(({ name }) => name)).size, all.length)
    for (const { name, ref } of all) assert.isTrue(name.length > 0 && ref.length > 0, name)
  })

  it("include a law for each known regression", () => {
    const regressions: ReadonlyArray<readonly [what: string, law: string]> = [
      ["a file written below a file", "a write in mode overwrite below a file is NotADirectory"],
      ["a file over a directory", "a write in mode overwrite on a directory is NotAFile"],
      ["a file copied over a directory", "copy of a file over an empty directory is NotAFile"],
      ["mkdir through a file", "mkdir through a file is NotADirectory, and nothing changes"],
      ["a link to outside met by glob and grep", "globs and greps skip links that lead out of the root"],
      ["delete of a link", "delete removes the link lf and leaves its target"],
      ["recursive delete on a linked directory", "a recursive delete of a link to a directory removes the link"],
      ["../up.txt", "a path that climbs above the root is InvalidPath in every call except exists"],
      ["NUL", "a path with NUL is InvalidPath in every call except exists"],
      ["leading and trailing spaces", "spaces at either end of a name are kept"],
      ["a\\r\\nb\\r\\n read as a\\r\\nb", "a page of a CRLF file omits the last CRLF"],
      ["FF, NEL, U+2028", "VT, FF, NEL, U+2028 and U+2029 do not end a line"],
      ["**/*.py", "in glob, **/*.py finds files in the root"],
      ["s/*.py", "in glob, s/*.py does not find s/t/c.py"],
      ["17 segments", "with maxPathDepth 16, a path of 17 segments is PathTooLong in every call except exists"],
      ["the order of a-b.txt, a.txt, a/b.txt", "globs are in path order"],
      ["a lone surrogate", "text with a lone surrogate is InvalidArgument and writes nothing"],
      ["a full disk", "a change that fails on a full disk keeps the old file"],
      ["a mode of 0755", "a mode of 0755 survives overwriting"],
      ["temporary files", "a write in progress is hidden"],
      ["a FIFO", "every call that opens a FIFO fails with NotAFile instead of waiting"],
      ["the root", "the root is never deleted"]
    ]
    for (const [, law] of regressions) named(law)
  })

  it.live("report the expected and the actual value and the call", () =>
    Effect.gen(function* () {
      const broken = decorated((self: Algebra) => ({
        ...self,
        stat: (path) => Effect.map(self.stat(path), (stat) => ({ ...stat, sizeBytes: 7 }))
      }))
      const found = yield* Effect.provide(verdict(named("a file's stat has its size in bytes")), broken)
      assert.strictEqual(found._tag, "Broken")
      if (found._tag !== "Broken") return
      assert.include(found.error.expected, '"sizeBytes":2')
      assert.include(found.error.actual, '"sizeBytes":7')
      assert.deepStrictEqual(found.error.calls, ['stat("a/f")'])
      for (const part of [
        "a file's stat has its size in bytes (S0-08)",
        'operation: stat("a/f")',
        '"sizeBytes":2',
        '"sizeBytes":7',
        'stat("a/f")'
      ]) {
        assert.include(found.error.message, part)
      }
    })
  )

  it.live("do not apply to a backend without the needed ability, and name the ability", () =>
    Effect.gen(function* () {
      const linkless = decorated(({ port }) => make({ ...port, links: undefined }))
      assert.deepStrictEqual(yield* Effect.provide(verdict(named("readLink of a missing path is NotFound")), linkless), {
        _tag: "NotApplicable",
        missing: ["links"]
      })
    })
  )

  it.live("count as broken if they never end", () =>
    Effect.gen(function* () {
      const hanging = decorated((self) => ({ ...self, version: () => Effect.never }))
      const law = named("an empty file has a version")
      const { LawTimeout } = yield* Effect.promise(() => import("../../src/testing/Law.ts"))
      const found = yield* verdict(law).pipe(Effect.provide(hanging), Effect.provideService(LawTimeout, "10 millis"))
      assert.strictEqual(found._tag, "Broken")
    })
  )

  it.live("count as broken if they die", () =>
    Effect.gen(function* () {
      const dying = decorated((self) => ({ ...self, version: () => Effect.die(new Error("a defect")) }))
      const found = yield* Effect.provide(verdict(named("an empty file has a version")), dying)
      assert.strictEqual(found._tag, "Broken")
    })
  )
})

describe("trees of files", () => {
  const tree: Files = { "d/a": "text", "d/b": Uint8Array.of(0xff), e: directory, l: link("d/a") }

  it.live("are captured as they were planted", () =>
    Effect.gen(function* () {
      const fs = yield* memory
      yield* plant(fs.port, tree)
      assert.deepStrictEqual(yield* capture(fs.port), picture(tree))
      assert.deepStrictEqual(yield* capture(fs.port), {
        d: "directory",
        "d/a": 'file "text"',
        "d/b": "bytes ff",
        e: "directory",
        l: "link -> d/a"
      })
    })
  )

  it.live.prop("from the kit's generator can be planted", [Arbitraries.files], ([files]) =>
    Effect.gen(function* () {
      const fs = yield* memory
      yield* plant(fs.port, files)
      assert.deepStrictEqual(yield* capture(fs.port), picture(files))
    })
  )

  it.live.prop("can have every name that the kit generates", [Arbitraries.name], ([name]) =>
    Effect.gen(function* () {
      const fs = yield* memory
      yield* fs.write(`d/${name}`, name)
      assert.deepStrictEqual(
        (yield* fs.list("d")).map((entry) => entry.name),
        [name]
      )
    })
  )
})

describe("agreement with the model", () => {
  it.live("reports a counterexample of at most three commands for a wrong filesystem", () =>
    Effect.gen(function* () {
      const wrong = decorated((self) => ({
        ...self,
        write: versioning((path, content, options) =>
          self.write(path, content, options?.mode === "append" ? { ...options, mode: "overwrite" } : options)
        )
      }))
      const error = yield* Effect.flip(agreement(wrong, { runs: 500, seed: 1 }))
      assert.isAtMost(error.program.length, 3, error.message)
      assert.include(error.message, "model:")
      assert.include(error.message, error.program[0]!)
    })
  )

  it.live("reports the calls up to a defect of the filesystem, and the defect", () =>
    Effect.gen(function* () {
      const dying = decorated((self) => ({ ...self, mkdir: () => Effect.die(new TypeError("no such function")) }))
      const error = yield* Effect.flip(agreement(dying, { runs: 500, seed: 1 }))
      assert.strictEqual(error._tag, "Disagreement")
      assert.match(error.program.at(-1)!, /^mkdir /)
      assert.isAtMost(error.program.length, 3, error.message)
      assert.include(error.actual, "TypeError: no such function")
    })
  )

  it.live("detects a change to the tree even if no call's answer shows the change", () =>
    Effect.gen(function* () {
      const wrong = decorated((self) => ({
        ...self,
        mkdir: (path, options) =>
          Effect.tap(self.mkdir(path, options), () => Effect.ignore(self.port.makeDirectory("extra" as FsPath)))
      }))
      const error = yield* Effect.flip(
        Effect.provide(agrees([{ _tag: "Mkdir", path: "a", parents: true, existOk: true }]), wrong, { local: true })
      )
      assert.include(error.actual, "extra")
    })
  )

  it.live("generates programs whose calls often succeed and often fail", () =>
    Effect.gen(function* () {
      const programs = yield* Arbitrary.sampleEffect(Arbitraries.program({ links: "any" }), { count: 50, size: 40, seed: 1 })
      const { empty, step } = yield* Effect.promise(() => import("../../src/testing/Model.ts"))
      const outcomes = programs.flatMap((program) => {
        let model = empty()
        return program.map((command) => {
          const next = step(model, command)
          model = next.model
          return next.outcome.tag
        })
      })
      const share = outcomes.filter((tag) => tag === "success").length / outcomes.length
      assert.isAbove(share, 0.25)
      assert.isBelow(share, 0.75)
      const tags = [
        "NotFound",
        "AlreadyExists",
        "NotAFile",
        "NotADirectory",
        "DirectoryNotEmpty",
        "InvalidArgument",
        "InvalidPath",
        "Conflict"
      ]
      for (const tag of [...tags, "AccessDenied root", "AccessDenied escape"]) assert.include(outcomes, tag)
    })
  )
})

describe("planned faults", () => {
  const full = { _tag: "DiskFull" } as const
  const withPlan = (...plan: ReadonlyArray<Planned>) => Effect.map(memory, faulty(plan))

  it.live("occur at the planned call and at no other", () =>
    Effect.gen(function* () {
      const fs = yield* withPlan({ operation: "Write", path: /^a/, nth: 2, fault: full })
      yield* fs.write("a1", "1")
      yield* fs.write("b", "2")
      assert.strictEqual((yield* Effect.flip(fs.write("a2", "3")))._tag, "DiskFull")
      yield* fs.write("a2", "4")
      assert.deepStrictEqual(
        fs.happened.filter(({ operation }) => operation === "Write"),
        [
          { operation: "Write", path: "a1" },
          { operation: "Write", path: "b" },
          { operation: "Write", path: "a2", fault: full },
          { operation: "Write", path: "a2" }
        ]
      )
    })
  )

  it.live("prevent the effect of a call if they occur before it, and keep the effect if they occur after it", () =>
    Effect.gen(function* () {
      const before = yield* withPlan({ operation: "Write", fault: full })
      yield* Effect.flip(before.write("a", "x"))
      assert.deepStrictEqual(yield* capture(before.port), {})
      const inner = yield* memory
      const after = faulty([{ operation: "Write", when: "after", fault: full }])(inner)
      yield* Effect.flip(after.write("a", "x"))
      assert.deepStrictEqual(yield* capture(inner.port), picture({ a: "x" }))
    })
  )

  it.live("can occur in reads of an open file", () =>
    Effect.gen(function* () {
      const fs = yield* withPlan({ operation: "Read", nth: 2, fault: { _tag: "IoError", detail: "planned" } })
      yield* fs.write("a", "x".repeat(2_000_000))
      const error = yield* Effect.flip(Stream.runDrain(fs.stream("a")))
      assert.strictEqual(error._tag, "IoError")
    })
  )

  it.live("can make an operation hang until it is interrupted, or die", () =>
    Effect.gen(function* () {
      const fs = yield* withPlan(
        { operation: "Write", path: "a", fault: "hang" },
        { operation: "Write", path: "b", fault: "die" }
      )
      const fiber = yield* Effect.forkChild(fs.write("a", "x"))
      yield* fs.hung
      yield* Fiber.interrupt(fiber)
      assert.isTrue(Exit.hasDies(yield* Effect.exit(fs.write("b", "x"))))
      assert.deepStrictEqual(yield* capture(fs.port), {})
    })
  )
})

describe("an adversarial filesystem", () => {
  it.live("reverses lists, returns short reads, and copies a file in a move between directories", () =>
    Effect.gen(function* () {
      const fs = adversarial(yield* memory)
      yield* plant(fs.port, { "d/a": "12", "d/b": "", e: directory })
      const root = "d" as FsPath
      assert.deepStrictEqual(
        (yield* fs.port.list(root)).map(({ name }) => name),
        ["b", "a"]
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const handle = yield* fs.port.open("d/a" as FsPath)
          assert.deepStrictEqual(yield* handle.read(0, 2), Uint8Array.of(0x31))
        })
      )
      const crossing = yield* Effect.flip(fs.port.rename("d/a" as FsPath, "e/a" as FsPath, { replace: false }))
      assert.deepStrictEqual([crossing._tag, crossing["code"]], ["IoError", "EXDEV"])
      yield* fs.move("d/a", "e/a")
      assert.deepStrictEqual(yield* capture(fs.port), picture({ "d/b": "", "e/a": "12" }))
    })
  )
})

describe("MockFilesystem", () => {
  it.live("records each call with its path, options and arguments", () =>
    Effect.gen(function* () {
      const mock = yield* MockFilesystem.make()
      yield* mock.filesystem.write("a", "x", { mode: "create" })
      yield* mock.filesystem.read("a")
      yield* Effect.flip(mock.filesystem.readString("missing"))
      assert.deepStrictEqual(mock.calls, [
        { operation: "write", path: "a", options: { mode: "create" }, arguments: ["a", "x", { mode: "create" }] },
        { operation: "read", path: "a", options: undefined, arguments: ["a"] },
        { operation: "readString", path: "missing", options: undefined, arguments: ["missing"] }
      ])
      assert.deepStrictEqual(
        mock.callsOf("write").map(({ path }) => path),
        ["a"]
      )
      yield* mock.forget
      assert.deepStrictEqual(mock.calls, [])
    })
  )

  it.live("returns the fixed answers, and otherwise behaves like a filesystem in memory", () =>
    Effect.gen(function* () {
      const mock = yield* MockFilesystem.make({
        tree: { real: "from memory" },
        answers: { readString: (path) => Effect.succeed(`canned ${path}`) }
      })
      assert.strictEqual(yield* mock.filesystem.readString("anything"), "canned anything")
      assert.strictEqual((yield* mock.filesystem.read("real")).content, "from memory")
    })
  )

  it.live('with otherwise "fail", fails with Unavailable if a call has no fixed answer', () =>
    Effect.gen(function* () {
      const mock = yield* MockFilesystem.make({ otherwise: "fail", answers: { exists: () => Effect.succeed(true) } })
      const { filesystem } = mock
      assert.isTrue(yield* filesystem.exists("a"))
      const errors = [
        yield* Effect.flip(filesystem.write("a", "x")),
        yield* Effect.flip(Stream.runCollect(filesystem.walk("a"))),
        yield* Effect.flip(Stream.run(Stream.make(new Uint8Array(1)), filesystem.sink("a")))
      ]
      assert.deepStrictEqual(
        errors.map(({ _tag, operation, path }) => [_tag, operation, path]),
        [
          ["Unavailable", "write", "a"],
          ["Unavailable", "walk", "a"],
          ["Unavailable", "sink", "a"]
        ]
      )
    })
  )

  it.live("is provided together with its record of calls", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem
      yield* fs.mkdir("d")
      const { calls } = yield* MockFilesystem.MockFilesystem
      assert.deepStrictEqual(
        calls.map(({ operation, path }) => `${operation} ${path}`),
        ["mkdir d"]
      )
    }).pipe(Effect.provide(MockFilesystem.layer()))
  )
})

describe("without @effect/vitest", () => {
  it("the test kit loads and runs a law, and a suite fails with the name of the missing package", () => {
    const index = new URL("../../src/testing/index.ts", import.meta.url).href
    const script = `
      import { registerHooks } from "node:module"
      registerHooks({ resolve: (specifier, context, next) => {
        if (specifier.includes("vitest")) throw new Error("it is not installed")
        return next(specifier, context)
      } })
      const Effect = await import("effect/Effect")
      const { Law, laws, suite } = await import(${JSON.stringify(index)})
      const { layer } = await import(${JSON.stringify(new URL("../../src/backends/InMemory.ts", import.meta.url).href)})
      const found = await Effect.runPromise(Effect.provide(Law.verdict(laws[0]), layer()))
      let said = "nothing"
      try { suite("x", layer()) } catch (error) { said = error.message }
      process.stdout.write(JSON.stringify([found._tag, said]))`
    const output = execFileSync(process.execPath, ["--no-warnings", "--input-type=module", "-e", script], {
      cwd: fileURLToPath(new URL("../..", import.meta.url)),
      encoding: "utf8"
    })
    const [tag, said] = JSON.parse(output) as [string, string]
    assert.strictEqual(tag, "Held")
    assert.include(said, "@effect/vitest")
  })
})

it.live("a decorated layer provides a filesystem", () =>
  Effect.gen(function* () {
    const fs = yield* Filesystem
    yield* fs.write("a", "x")
    assert.strictEqual(yield* fs.readString("a"), "x")
  }).pipe(Effect.provide(decorate(adversarial)(inMemory)))
)
