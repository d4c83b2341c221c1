/**
 * Names of members that every JavaScript object has (`constructor`, `__proto__`, …), from files, models, users or other
 * data. None of these names may be lost, or be taken for an entry of a lookup table.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { systemError } from "effect/PlatformError"
import * as Fs from "node:fs"
import { join } from "node:path"
import { define } from "../../src/agent/definition.ts"
import { toolArgumentName } from "../../src/agent/toolPath.ts"
import { earlyTools } from "../../src/agent/mcp/guide.ts"
import * as Memory from "../../src/agent/memory.ts"
import { invokeUnknown } from "../../src/agent/dispatch.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { faultOf } from "../../src/runtime/host.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { type Algebra, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Platform from "../../src/filesystem/Platform.ts"
import { fromPlatform } from "../../src/filesystem/platform/errors.ts"
import * as Archive from "../../src/history/Archive.ts"
import * as Outside from "../../src/history/zip/hostFile.ts"
import * as Snapshots from "../../src/history/Snapshots.ts"
import * as Covenant from "../../src/journal/Covenant.ts"
import * as Journal from "../../src/journal/Journal.ts"
import * as Slice from "../../src/model/Slice.ts"
import { capture, picture } from "../../src/testing/Files.ts"
import * as Session from "../../src/workspace/Session.ts"
import { fastDirectory } from "../backends/posixHost.ts"
import { shell } from "../cli/terminal.ts"

const names = Object.getOwnPropertyNames(Object.prototype)

const memory = Effect.map(InMemory.make(), make)
const host = Effect.flatMap(fastDirectory, (root) => Effect.map(Effect.orDie(PosixHost.make({ root })), make))

const grounds: ReadonlyArray<readonly [string, () => Effect.Effect<Algebra, never, any>]> = [
  ["memory", () => memory],
  ["a host", () => host]
]

/** A file and a directory of each name, each directory with a file of its own name. */
const planted = Object.fromEntries([
  ...names.map((name) => [`d/${name}`, name] as const),
  ...names.map((name) => [`${name}/${name}`, `in ${name}`] as const)
])

const plantAll = (fs: Algebra) =>
  Effect.forEach(Object.entries(planted), ([path, text]) => fs.write(path, text), { discard: true })

describe("lookups by names from outside:", () => {
  it("the tested names include __proto__ and methods of Object.prototype", () => {
    assert.includeMembers(names, ["constructor", "toString", "hasOwnProperty", "__proto__", "valueOf"])
  })

  for (const [ground, made] of grounds) {
    describe(`property names of Object.prototype, on ${ground},`, () => {
      it.live("are ordinary names of files and directories", () =>
        Effect.gen(function* () {
          const fs = yield* made()
          yield* plantAll(fs)
          assert.deepStrictEqual(yield* capture(fs.port), picture(planted))
          assert.strictEqual(Object.keys(yield* capture(fs.port)).length, 3 * names.length + 1)
          for (const name of names) {
            assert.strictEqual(yield* fs.readString(`${name}/${name}`), `in ${name}`)
            const { matches } = yield* fs.glob(`${name}/*`)
            assert.deepStrictEqual(
              matches.map(({ path }) => path as string),
              [`${name}/${name}`]
            )
            assert.strictEqual((yield* fs.grep(`in ${name}$`)).matches.length, 1)
            yield* fs.move(`d/${name}`, `e/${name}`)
            assert.strictEqual(yield* fs.readString(`e/${name}`), name)
            yield* fs.delete(name, { recursive: true })
            assert.isFalse(yield* fs.exists(name))
          }
        }).pipe(Effect.scoped)
      )

      it.live("in brackets of a .gitignore are not character classes, and hide nothing from a search", () =>
        Effect.gen(function* () {
          const fs = yield* made()
          const rules = names.map((name) => `[[:${name}:]]\nx[[:${name}:]a]`).join("\n")
          yield* fs.write(".gitignore", `${rules}\n[[:digit:]]\n`)
          for (const name of ["a", "7", "xa", "c"]) yield* fs.write(`d/${name}`, "text")
          const { matches } = yield* fs.glob("d/*", { gitignore: true })
          assert.deepStrictEqual(
            matches.map(({ path }) => path as string),
            ["d/a", "d/c", "d/xa"]
          )
          assert.strictEqual((yield* fs.grep("text", { gitignore: true })).matches.length, 3)
        }).pipe(Effect.scoped)
      )

      it.live("survive archives and snapshots", () =>
        Effect.gen(function* () {
          const fs = yield* made()
          yield* plantAll(fs)
          for (const [write, read] of [
            [Archive.exportZipOf, Archive.importZipOf],
            [Archive.exportTarOf, Archive.importTarOf]
          ] as const) {
            const other = yield* memory
            yield* read(other, write(fs))
            assert.deepStrictEqual(yield* capture(other.port), picture(planted))
          }
          const layer = Snapshots.layerArchive.pipe(Layer.provide(Layer.succeed(Filesystem, fs)))
          const snapshots = Context.get(yield* Layer.build(layer), Snapshots.Snapshots)
          const first = yield* snapshots.snapshot({ tag: "__proto__" })
          for (const name of names) yield* fs.write(`d/${name}`, "changed")
          const changes = yield* snapshots.diff(first)
          assert.strictEqual(changes.length, names.length)
          yield* snapshots.restore(first)
          assert.deepStrictEqual(yield* capture(fs.port), picture(planted))
        }).pipe(Effect.scoped)
      )
    })
  }

  it.live("property names of Object.prototype are not names of toolkits, of tools of the MCP server, or of encodings", () =>
    Effect.gen(function* () {
      const { run } = yield* shell({ "a.txt": "a\n", ".gitignore": "[[:constructor:]]\n" })
      for (const name of names) {
        assert.isUndefined(earlyTools(name, true), name)
        const { code, err } = yield* run(["mcp", "--tools", name], { input: "", stateDirectory: "/nowhere" })
        assert.strictEqual(code, 2, name)
        assert.include(err, JSON.stringify(name))
        assert.strictEqual((yield* run(["cat", "a.txt", "--encoding", name])).code, 2, name)
      }
      const clientInfo = { name: "t", version: "1" }
      const call = (id: string, name: string, input: unknown) => ({
        id,
        method: "tools/call",
        params: { name, arguments: input }
      })
      const messages = [
        { id: "init", method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo } },
        ...names.map((name) => call(`tool ${name}`, name, {})),
        ...names.map((name) => call(`encoding ${name}`, "read_file", { path: "a.txt", encoding: name })),
        ...names.map((name) => call(`argument ${name}`, "read_file", JSON.parse(`{"path":"a.txt","${name}":{}}`))),
        call("glob", "glob", { pattern: "**" }),
        call("grep", "grep", { pattern: "a" })
      ]
      const input = messages.map((message) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`).join("")
      const { out } = yield* run(["mcp", "--structured"], { input, directory: "/projects/one", stateDirectory: "/nowhere" })
      const answers = new Map(
        out
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => JSON.parse(line) as { id: string; result?: any; error?: { code: number } })
          .map((answer) => [answer.id, answer])
      )
      for (const name of names) {
        assert.strictEqual(answers.get(`tool ${name}`)?.error?.code, -32_602, name)
        assert.isTrue(answers.get(`encoding ${name}`)?.result?.isError, name)
        assert.isTrue(answers.get(`argument ${name}`)?.result?.isError, name)
      }
      assert.deepStrictEqual(
        answers.get("glob")?.result.structuredContent.matches.map(({ path }: { path: string }) => path),
        [".gitignore", "a.txt"]
      )
      assert.isFalse(answers.get("grep")?.result.isError)
    })
  )

  it.effect("property names of Object.prototype are not names of glob dialects", () =>
    Effect.gen(function* () {
      const fs = yield* memory
      for (const name of names) {
        const error = yield* Effect.flip(fs.glob("*", { dialect: name as "path" }))
        assert.strictEqual(error._tag, "InvalidArgument")
      }
    })
  )

  it.effect(
    "property names of Object.prototype, except __proto__, can be parameters of a tool, and the tool explains wrong arguments",
    () =>
      Effect.gen(function* () {
        for (const name of names.filter((name) => name !== "__proto__")) {
          const tool = define({
            name: "odd",
            description: "Takes an odd parameter.",
            parameters: Schema.Struct({ [name]: Schema.Struct({ inner: Schema.String }) }),
            value: Schema.Struct({}),
            does: "reads",
            idempotent: true,
            examples: [{ [name]: { inner: "a" } } as never],
            handle: () => Effect.die("not asked")
          } as never)
          for (const input of [{ [name]: { inner: "a" }, find: 1 }, { [name]: { inner: 1, valueOf: 2 } }, { other: 1 }]) {
            const { message, success } = yield* Effect.provideService(
              invokeUnknown(tool, input, { memory: Memory.make() }) as Effect.Effect<any>,
              Filesystem,
              yield* memory
            )
            assert.isFalse(success)
            assert.include(message, "odd cannot take these arguments", name)
          }
        }
      })
  )

  it("property names of Object.prototype are treated as unknown error codes and arguments", () => {
    for (const name of names) {
      const error = Object.assign(new Error("odd"), { code: name })
      assert.strictEqual(faultOf(error, undefined, name)._tag, "IoError")
      assert.strictEqual(Outside.faultOf(error)._tag, "IoError")
      const platform = systemError({ _tag: "Unknown", module: "FileSystem", method: "open", cause: error })
      assert.strictEqual(fromPlatform(platform)._tag, "IoError")
      assert.strictEqual(toolArgumentName(`edits.${name}`), `edits.${name}`)
    }
  })

  it.effect("property names of Object.prototype are not flags of a FileSystem", () =>
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      for (const name of names) {
        const options = { flag: name as FileSystem.OpenFlag }
        const failed = yield* Effect.exit(Effect.scoped(files.open("a", options)))
        assert.strictEqual(failed._tag, "Failure")
        assert.strictEqual((yield* Effect.exit(files.writeFileString("a", "a", options)))._tag, "Failure")
      }
      assert.isFalse(yield* files.exists("a"))
    }).pipe(Effect.provide(Platform.toFileSystem.pipe(Layer.provide(Layer.effect(Filesystem, memory)))))
  )

  it.live("property names of Object.prototype can name sessions, slices and tags, before and after a dump", () =>
    Effect.gen(function* () {
      const top = yield* fastDirectory
      const slices = names.map((name) => Slice.make(name, Schema.String))
      const tags = JSON.parse(`{${names.map((name) => `${JSON.stringify(name)}:"tag"`).join(",")},"session_id":"s"}`)
      const session = yield* Session.make({ id: "constructor", slices, tags })
      for (const slice of slices) yield* session.set(slice, `value of ${slice.name}`)
      const path = yield* Session.dumpSessionTree(session, top)
      const { session: loaded } = yield* Session.loadSessionTree(path!, { slices })
      for (const slice of slices) assert.deepStrictEqual(yield* loaded.all(slice), [`value of ${slice.name}`])
      assert.deepStrictEqual(Object.keys(loaded.tags).sort(), [...names, "session_id"].sort())
      assert.isTrue(Fs.existsSync(join(top, "s.jsonl")))
    }).pipe(Effect.scoped)
  )

  class Asked extends Schema.TaggedClass<Asked>("test/Asked")("Asked", { correlationId: Schema.String }) {}
  class Given extends Schema.TaggedClass<Given>("test/Given")("Given", { correlationId: Schema.String }) {}

  it.live(
    "property names of Object.prototype can be correlation ids in a covenant, and none counts as answered in advance",
    () =>
      Effect.gen(function* () {
        for (const name of names) {
          const [from, to] = [yield* Journal.makeMemory<Asked>(), yield* Journal.makeMemory<Given>()]
          const options = {
            branches: [
              Covenant.branch({ name, journal: from, produces: [Asked], consumes: [] }),
              Covenant.branch({ name: "other", journal: to, produces: [], consumes: [Given] })
            ],
            routes: [
              Covenant.route({
                name: "route",
                from: [Asked],
                to: [Given],
                via: ({ entry }) => Effect.succeed([new Given({ correlationId: entry.correlationId })])
              })
            ]
          }
          yield* from.append(new Asked({ correlationId: name }))
          const covenant = yield* Covenant.make(options)
          const { start } = yield* Covenant.daemons(covenant)
          yield* start
          yield* Stream.runDrain(Stream.take(to.tail(0), 1))
        }
      }).pipe(Effect.provide(Journal.layerMemory), Effect.scoped)
  )
})
