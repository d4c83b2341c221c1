import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Path from "effect/Path"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import * as FsKeyValueStore from "../../src/adapters/KeyValueStore.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import * as Platform from "../../src/filesystem/Platform.ts"
import * as InMemory from "../../src/backends/InMemory.ts"

type Store = KeyValueStore.KeyValueStore

const ours = (options?: Parameters<typeof InMemory.layer>[0]) =>
  Layer.provideMerge(FsKeyValueStore.layer({ directory: "values" }), InMemory.layer(options ?? {}))

const onStore = <A, E>(
  use: (store: Store) => Effect.Effect<A, E, Filesystem>,
  options?: Parameters<typeof InMemory.layer>[0]
) => Effect.provide(Effect.flatMap(KeyValueStore.KeyValueStore, use), ours(options))

type Command =
  | { readonly _tag: "set"; readonly key: string; readonly value: string }
  | { readonly _tag: "get" | "getUint8Array" | "remove" | "has" | "modify" | "clearPrefix"; readonly key: string }
  | { readonly _tag: "keys" | "size" | "isEmpty" | "clear" }

const oneOf = <const A>(values: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.schema(Schema.Literals(values as never)) as never

const keys = ["a", "A", "ab", "a/b", "%61", "é", "É", " ", "con", "a.b", "..a", "😀"]

const command: Arbitrary.Arbitrary<Command> = Arbitrary.all({
  _tag: oneOf([
    "set",
    "set",
    "get",
    "getUint8Array",
    "remove",
    "has",
    "modify",
    "clearPrefix",
    "keys",
    "size",
    "isEmpty",
    "clear"
  ]),
  key: oneOf(keys),
  value: oneOf(["", "one", "zwölf\n"])
}) as Arbitrary.Arbitrary<Command>

const run = (store: Store, command: Command): Effect.Effect<unknown, unknown> => {
  switch (command._tag) {
    case "set":
      return Effect.asVoid(store.set(command.key, command.value))
    case "modify":
      return store.modify(command.key, (text) => `${text}!`)
    case "remove":
    case "clearPrefix":
      return Effect.asVoid(store[command._tag](command.key))
    case "clear":
      return Effect.asVoid(store.clear)
    case "get":
    case "getUint8Array":
    case "has":
      return store[command._tag](command.key) as Effect.Effect<unknown, unknown>
    case "keys":
      return Effect.map(store.keys, (keys) => keys.toSorted())
    default:
      return store[command._tag]
  }
}

describe("KeyValueStore", () => {
  for (const caseInsensitive of [false, true]) {
    it.effect.prop(
      `has the results of effect's store in memory for a random program, with caseInsensitive: ${caseInsensitive}`,
      [Arbitrary.array(command, { maxLength: 30 })],
      ([program]) =>
        Effect.gen(function* () {
          const expected = yield* Effect.provide(KeyValueStore.KeyValueStore, KeyValueStore.layerMemory)
          yield* onStore(
            Effect.fnUntraced(function* (store) {
              for (const command of program) {
                assert.deepStrictEqual(yield* run(store, command), yield* run(expected, command), JSON.stringify(command))
              }
            }),
            { caseInsensitive }
          )
        }),
      { arbitrary: { runs: 100, size: 30 } }
    )
  }

  it.effect("reads and writes the directory of effect's layerFileSystem", () =>
    onStore((store) =>
      Effect.gen(function* () {
        yield* store.set("a/b ü", "ours")
        const theirs = yield* Effect.provide(
          KeyValueStore.KeyValueStore,
          KeyValueStore.layerFileSystem("/values").pipe(Layer.provide(Path.layer), Layer.provide(Platform.toFileSystem))
        )
        assert.strictEqual(yield* theirs.get("a/b ü"), "ours")
        yield* theirs.set("b", "theirs")
        assert.strictEqual(yield* store.get("b"), "theirs")
      })
    )
  )

  it.effect("keeps bytes that are not text, and refuses to read them as text", () =>
    onStore((store) =>
      Effect.gen(function* () {
        const bytes = Uint8Array.of(0xff, 0, 0x80)
        yield* store.set("k", bytes)
        assert.deepStrictEqual(yield* store.getUint8Array("k"), bytes)
        const error = yield* Effect.flip(store.get("k"))
        assert.strictEqual(error._tag, "KeyValueStoreError")
        assert.strictEqual(error.key, "k")
      })
    )
  )

  for (const key of ["", ".", "..", "\ud800", "x".repeat(300)]) {
    it.effect(`fails with KeyValueStoreError for the key ${JSON.stringify(key.slice(0, 20))}`, () =>
      onStore((store) =>
        Effect.gen(function* () {
          for (const call of [
            store.get(key),
            store.set(key, "x"),
            store.has(key),
            store.remove(key),
            store.modify(key, String)
          ]) {
            assert.strictEqual(
              (yield* Effect.flip(call as Effect.Effect<unknown, { readonly _tag: string }>))._tag,
              "KeyValueStoreError"
            )
          }
          assert.deepStrictEqual(yield* store.keys, [])
        })
      )
    )
  }

  it.effect("fails with KeyValueStoreError when the encoded key is the name of a temporary file", () =>
    onStore((store) =>
      Effect.gen(function* () {
        assert.strictEqual((yield* Effect.flip(store.set(".~fsa-0.tmp", "x")))._tag, "KeyValueStoreError")
        assert.strictEqual(yield* store.get(".~fsa-0.tmp"), undefined)
      })
    )
  )

  it.effect("counts and removes only its own keys, not the files and directories of other programs", () =>
    onStore((store) =>
      Effect.gen(function* () {
        const fs = yield* Filesystem
        yield* fs.write("values/%zz", "not a key")
        yield* fs.mkdir("values/directory")
        yield* store.remove("directory")
        yield* store.set("k", "v")
        assert.deepStrictEqual(yield* store.keys, ["k"])
        assert.strictEqual(yield* store.has("directory"), false)
        yield* store.clear
        assert.strictEqual(yield* store.size, 0)
        assert.deepStrictEqual(
          (yield* fs.list("values")).map(({ name }) => name),
          ["%zz", "directory"]
        )
      })
    )
  )

  it.effect("loses no increment when 20 fibers modify one key", () =>
    onStore((store) =>
      Effect.gen(function* () {
        yield* store.set("n", "0")
        const fibers = yield* Effect.forEach(Array.from({ length: 20 }), () =>
          Effect.forkChild(Effect.forEach(Array.from({ length: 5 }), () => store.modify("n", (n) => String(Number(n) + 1))))
        )
        yield* Effect.forEach(fibers, Fiber.join)
        assert.strictEqual(yield* store.get("n"), "100")
      })
    )
  )

  it.effect("modify keeps a byte order mark, and refuses bytes that are not text", () =>
    onStore((store) =>
      Effect.gen(function* () {
        yield* store.set("marked", "\uFEFFx")
        assert.strictEqual(yield* store.modify("marked", (text) => `${text}y`), "\uFEFFxy")
        assert.strictEqual(yield* store.get("marked"), "\uFEFFxy")
        const bytes = Uint8Array.of(0xff, 0xfe, 0x41)
        yield* store.set("bytes", bytes)
        const error = yield* Effect.flip(store.modify("bytes", (text) => `${text}y`))
        assert.deepStrictEqual([error._tag, error.method], ["KeyValueStoreError", "modify"])
        assert.deepStrictEqual(yield* store.getUint8Array("bytes"), bytes)
      })
    )
  )

  it.effect("set fails if the backend reports that a parent is missing", () =>
    Effect.gen(function* () {
      const port = yield* InMemory.make()
      const store = yield* Effect.provide(
        Effect.service(KeyValueStore.KeyValueStore),
        Layer.provide(
          FsKeyValueStore.layer({ directory: "values" }),
          Layer.succeed(Filesystem, make({ ...port, perform: undefined, write: () => Effect.fail({ _tag: "NotFound" }) }))
        )
      )
      assert.strictEqual((yield* Effect.flip(store.set("k", "v"))).method, "set")
      assert.strictEqual(yield* store.get("k"), undefined)
    })
  )

  it.effect("serves effect's schema store", () =>
    onStore((store) =>
      Effect.gen(function* () {
        const people = KeyValueStore.toSchemaStore(store, Schema.Struct({ age: Schema.Int }))
        yield* people.set("ada", { age: 36 })
        assert.deepStrictEqual(
          yield* Effect.map(people.get("ada"), (ada) => JSON.stringify(ada)).pipe(Effect.map((text) => text.includes("36"))),
          true
        )
        assert.strictEqual(yield* store.get("ada"), '{"age":36}')
      })
    )
  )

  it.effect("fails with the error of the filesystem if the directory is a file", () =>
    Effect.gen(function* () {
      const made = Effect.provide(KeyValueStore.KeyValueStore, FsKeyValueStore.layer({ directory: "f" }))
      const error = yield* Effect.flip(Effect.provide(made, InMemory.layer({ tree: { f: "x" } })))
      assert.strictEqual(error._tag, "AlreadyExists")
    })
  )
})
