/** Runs the programs of src/guides/recipes.md, each under the name of its export. */
import { assert } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { Filesystem, InMemory } from "../../src/index.ts"

type Service = Filesystem.Filesystem

type Load = <Module>(name: string) => Promise<Module>

const run = <A, E>(program: Effect.Effect<A, E, Service>, tree: InMemory.Tree = {}) =>
  Effect.runPromise(Effect.provide(program, InMemory.layer({ tree })))

const bytes = (...texts: ReadonlyArray<string>) => Stream.fromIterable(texts.map((text) => new TextEncoder().encode(text)))

interface Config {
  readonly host: string
  readonly port: number
}

type Tagged = { readonly _tag: string }

export const recipes = (load: Load, scratch: () => string): Readonly<Record<string, () => Promise<void>>> => ({
  loadConfig: async () => {
    const { loadConfig, updateConfig } = await load<{
      loadConfig: (path: string) => Effect.Effect<Config, Tagged, Service>
      updateConfig: (path: string, change: (config: Config) => Config) => Effect.Effect<Config, Tagged, Service>
    }>("loadConfig")
    const tree = { "good.json": '{"host":"a","port":1}', "bad.json": '{"host":"a","port":"x"}', "torn.json": '{"host"' }
    assert.deepStrictEqual(await run(loadConfig("none.json"), tree), { host: "localhost", port: 8080 })
    assert.deepStrictEqual(await run(loadConfig("good.json"), tree), { host: "a", port: 1 })
    for (const path of ["bad.json", "torn.json"]) {
      const error: object = await run(Effect.flip(loadConfig(path)), tree)
      assert.deepInclude(error, { _tag: "ConfigInvalid", path })
    }
    const updated = Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      const raced = {
        ...fs,
        readString: (path: string) => Effect.andThen(fs.write(path, '{"host":"theirs","port":3}'), fs.readString(path))
      }
      const change = updateConfig("good.json", (config) => ({ ...config, port: 2 }))
      yield* change
      const text = yield* fs.readString("good.json")
      const conflict = yield* Effect.flip(Effect.provideService(change, Filesystem.Filesystem, raced))
      return [JSON.parse(text), conflict._tag, JSON.parse(yield* fs.readString("good.json"))]
    })
    assert.deepStrictEqual(await run(updated, tree), [{ host: "a", port: 2 }, "Conflict", { host: "theirs", port: 3 }])
  },
  cached: async () => {
    const { cached, clearCache } = await load<{
      cached: (path: string, compute: (content: string) => Effect.Effect<string>) => Effect.Effect<string, unknown, Service>
      clearCache: Effect.Effect<unknown, unknown, Service>
    }>("cached")
    let computed = 0
    const shout = cached("a.txt", (content) => Effect.sync(() => `${content.toUpperCase()} ${++computed}`))
    const answers = Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      const first = [yield* shout, yield* shout]
      yield* fs.write("a.txt", "two\n")
      const second = [yield* shout, yield* shout]
      yield* clearCache
      yield* clearCache
      return [...first, ...second, yield* shout]
    })
    assert.deepStrictEqual(await run(answers, { "a.txt": "one" }), ["ONE 1", "ONE 1", "TWO\n 2", "TWO\n 2", "TWO\n 3"])
  },
  upload: async () => {
    type Upload = (
      name: string,
      bytes: Stream.Stream<Uint8Array>,
      maxBytes: number
    ) => Effect.Effect<{ readonly bytesWritten: number }, Tagged, Service>
    const { upload } = await load<{ upload: Upload }>("upload")
    const all = Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      const { bytesWritten } = yield* upload("a.txt", bytes("one", "two"), 6)
      const refused = yield* Effect.forEach(
        [upload("b.txt", bytes("one", "two"), 5), upload("a.txt", bytes("x"), 5), upload("../config.json", bytes("x"), 5)],
        (one) => Effect.map(Effect.flip(one), ({ _tag }) => _tag)
      )
      const { matches } = yield* fs.glob("**")
      return { bytesWritten, refused, files: matches.map(({ path }) => path), text: yield* fs.readString("uploads/a.txt") }
    })
    assert.deepStrictEqual(await run(all, { "config.json": "" }), {
      bytesWritten: 6,
      refused: ["LimitExceeded", "AlreadyExists", "InvalidPath"],
      files: ["config.json", "uploads/a.txt"],
      text: "onetwo"
    })
  },
  temporary: async () => {
    const { temporary } = await load<{ temporary: Layer.Layer<Service, unknown> }>("temporary")
    const root = await Effect.runPromise(
      Effect.gen(function* () {
        const fs = yield* Filesystem.Filesystem
        yield* fs.write("a.txt", "one")
        assert.strictEqual(readFileSync(join(fs.root, "a.txt"), "utf8"), "one")
        return fs.root
      }).pipe(Effect.provide(temporary))
    )
    assert.isFalse(existsSync(root))
  },
  scratchDirectory: async () => {
    const { scratchDirectory } = await load<{
      scratchDirectory: Effect.Effect<Filesystem.Algebra, unknown, Service | Scope.Scope>
    }>("scratchDirectory")
    const used = (end: Effect.Effect<void, string>) =>
      Effect.gen(function* () {
        const fs = yield* Filesystem.Filesystem
        const exit = yield* Effect.exit(
          Effect.scoped(
            Effect.gen(function* () {
              yield* (yield* scratchDirectory).write("a.txt", "one")
              yield* end
              return (yield* fs.glob("tmp/*/a.txt")).matches.length
            })
          )
        )
        return [Exit.isSuccess(exit) ? exit.value : "failed", (yield* fs.list("tmp")).length]
      })
    assert.deepStrictEqual(await run(used(Effect.void)), [1, 0])
    assert.deepStrictEqual(await run(used(Effect.fail("no"))), ["failed", 0])
  },
  watchFile: async () => {
    const { watchFile } = await load<{
      watchFile: (directory: string, name: string) => Stream.Stream<string | undefined, Tagged, Service>
    }>("watchFile")
    const texts: Array<string | undefined> = []
    const watched = Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      // Changes the files after each text, so that the stream ends without a fixed wait.
      const next = (text: string | undefined): Effect.Effect<unknown, Tagged> => {
        texts.push(text)
        if (text === "one") return fs.write("etc/a.txt", "two")
        return text === "two" ? fs.delete("etc/a.txt") : fs.delete("etc", { recursive: true })
      }
      return (yield* Effect.flip(Stream.runForEach(watchFile("etc", "a.txt"), next)))._tag
    })
    assert.strictEqual(await run(watched, { etc: { "a.txt": "one" } }), "NotFound")
    assert.deepStrictEqual(texts, ["one", "two", undefined])
  },
  mergeDirectories: async () => {
    const { mergeDirectories } = await load<{
      mergeDirectories: (from: string, to: string) => Effect.Effect<void, Tagged, Service>
    }>("mergeDirectories")
    const merged = Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      const refused = yield* Effect.flip(fs.copy("from", "to"))
      const full = yield* Effect.flip(fs.copy("from", "to", { overwrite: true }))
      yield* mergeDirectories("./from/", "to")
      const { matches } = yield* fs.glob("to/**")
      return [refused._tag, full._tag, yield* fs.readString("to/a.txt"), ...matches.map(({ path }) => path)]
    })
    const tree = { from: { "a.txt": "new", sub: { "b.txt": "" } }, to: { "a.txt": "old", "c.txt": "" } }
    const paths = ["to/a.txt", "to/c.txt", "to/sub/b.txt"]
    assert.deepStrictEqual(await run(merged, tree), ["AlreadyExists", "DirectoryNotEmpty", "new", ...paths])
  },
  oldOnNew: async () => {
    const { newOnOld, oldOnNew } = await load<{
      oldOnNew: Effect.Effect<string, unknown>
      newOnOld: (root: string) => Effect.Effect<ReadonlyArray<string>, unknown>
    }>("oldOnNew")
    assert.strictEqual(await Effect.runPromise(oldOnNew), "from effect\n")
    const root = scratch()
    assert.deepStrictEqual(await Effect.runPromise(newOnOld(root)), ["notes.md"])
    assert.strictEqual(readFileSync(join(root, "notes.md"), "utf8"), "from fs-algebra\n")
  }
})
