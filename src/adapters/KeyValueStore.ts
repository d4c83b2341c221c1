/**
 * Provides effect's KeyValueStore in a directory of the current Filesystem.
 *
 * Each key is a file. The name of the file is the key, percent-encoded as in effect's `KeyValueStore.layerFileSystem`. So each of
 * the two layers can read a directory of the other. The exception is a case-insensitive filesystem, on which this layer also
 * percent-encodes upper-case letters.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as KeyValueStore from "effect/persistence/KeyValueStore"
import { Filesystem } from "../filesystem/Filesystem.ts"
import type { Conflict, FsError } from "../model/FsError.ts"
import type { AdapterSupport } from "./support.ts"

type Method = "get" | "getUint8Array" | "set" | "remove" | "clear" | "size" | "keys" | "modify" | "modifyUint8Array" | "has"

const failure = (method: Method, key: string | undefined, message: string, cause?: unknown) =>
  new KeyValueStore.KeyValueStoreError({
    method,
    message,
    ...(key !== undefined && { key }),
    ...(cause !== undefined && { cause })
  })

const encode = (key: string, caseSensitive: boolean): string | undefined => {
  if (key === "" || key === "." || key === ".." || !key.isWellFormed()) return undefined
  const name = encodeURIComponent(key)
  return caseSensitive
    ? name
    : name.replaceAll(/%..|[A-Z]/g, (part) => (part.length > 1 ? part : `%${part.charCodeAt(0).toString(16)}`))
}

const decode = (name: string): string | undefined => {
  try {
    return decodeURIComponent(name)
  } catch {
    return undefined
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** Applies a function on text to bytes. Fails if the bytes are not UTF-8. */
const changeText = (key: string, f: (text: string) => string) => (bytes: Uint8Array) =>
  Effect.map(
    Effect.try({
      try: () => decoder.decode(bytes),
      catch: () => failure("modify", key, `cannot modify the key ${JSON.stringify(key)}: its value is not UTF-8 text`)
    }),
    (text) => encoder.encode(f(text))
  )

const make = Effect.fnUntraced(function* (directory: string) {
  const fs = yield* Filesystem
  const { caseSensitive } = fs.port.info
  yield* fs.mkdir(directory)

  /** Runs a call on the path of a key. Returns `undefined` if the file does not exist, but fails for `set`. */
  const onPath = <A, E extends FsError | KeyValueStore.KeyValueStoreError>(
    method: Method,
    key: string,
    call: (path: string) => Effect.Effect<A, E>
  ): Effect.Effect<A | undefined, KeyValueStore.KeyValueStoreError> => {
    const name = encode(key, caseSensitive)
    if (name === undefined) return Effect.fail(failure(method, key, `the key ${JSON.stringify(key)} is not valid`))
    return Effect.catch(
      call(`${directory}/${name}`),
      (error: FsError | KeyValueStore.KeyValueStoreError): Effect.Effect<undefined, KeyValueStore.KeyValueStoreError> => {
        if (error._tag === "NotFound" && method !== "set") return Effect.undefined
        if (error._tag === "KeyValueStoreError") return Effect.fail(error)
        return Effect.fail(failure(method, key, `cannot ${method} the key ${JSON.stringify(key)}: ${error.message}`, error))
      }
    )
  }

  /** Replaces a value. If another writer replaces it at the same time, reads the new value and starts again. */
  const modify = (path: string, f: (value: Uint8Array) => Effect.Effect<Uint8Array, KeyValueStore.KeyValueStoreError>) =>
    Effect.gen(function* () {
      const { content, version } = yield* fs.readBytes(path, { version: true })
      const next = yield* f(content)
      yield* fs.writeBytes(path, next, { ifMatch: version })
      return next
    }).pipe(Effect.retry({ while: (error): error is Conflict => error._tag === "Conflict" }))

  const keys = Effect.mapBoth(fs.list(directory), {
    onSuccess: (entries) =>
      entries.flatMap(({ isFile, name }) => {
        const key = isFile ? decode(name) : undefined
        return key !== undefined && encode(key, caseSensitive) === name ? [key] : []
      }),
    onFailure: (error) => failure("keys", undefined, `cannot list the keys: ${error.message}`, error)
  })

  /** Removes the file of a key. A directory of the same name is not a key. */
  const remove = (key: string) =>
    Effect.asVoid(
      onPath("remove", key, (path) =>
        Effect.flatMap(fs.lstat(path), ({ isDirectory }) =>
          isDirectory ? Effect.void : Effect.asVoid(fs.delete(path, { missing: "ignore" }))
        )
      )
    )

  return KeyValueStore.make({
    get: (key) => onPath("get", key, (path) => fs.readString(path)),
    getUint8Array: (key) => onPath("getUint8Array", key, (path) => Effect.map(fs.readBytes(path), ({ content }) => content)),
    set: (key, value) =>
      Effect.asVoid(
        onPath("set", key, (path) => (typeof value === "string" ? fs.write(path, value) : fs.writeBytes(path, value)))
      ),
    remove,
    clear: Effect.flatMap(keys, Effect.forEach(remove, { discard: true })),
    size: Effect.map(keys, ({ length }) => length),
    keys,
    has: (key) =>
      Effect.map(
        onPath("has", key, (path) => fs.stat(path)),
        (stat) => stat?.isFile === true
      ),
    modify: (key, f) =>
      Effect.map(
        onPath("modify", key, (path) => modify(path, changeText(key, f))),
        (bytes) => bytes && decoder.decode(bytes)
      ),
    modifyUint8Array: (key, f) =>
      onPath("modifyUint8Array", key, (path) => modify(path, (bytes) => Effect.sync(() => f(bytes))))
  })
})

/**
 * Provides effect's KeyValueStore. The directory is created if it is missing.
 *
 * A value is replaced in one step. `modify` never overwrites the change of another writer. `clear` and `clearPrefix` remove
 * the keys one after another.
 *
 * @example
 * ```ts
 * import * as KeyValueStore from "effect/persistence/KeyValueStore"
 * import * as FsKeyValueStore from "fs-algebra/adapters/KeyValueStore"
 * const program = Effect.gen(function* () {
 *   const store = yield* KeyValueStore.KeyValueStore
 *   yield* store.set("theme", "dark")
 *   return yield* store.get("theme")
 * })
 * const layer = FsKeyValueStore.layer({ directory: "settings" }).pipe(Layer.provide(InMemory.layer()))
 * yield* Effect.provide(program, layer) // => "dark"
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: { readonly directory: string }): Layer.Layer<KeyValueStore.KeyValueStore, FsError, Filesystem> =>
  Layer.effect(KeyValueStore.KeyValueStore, make(options.directory))

/**
 * The tested version of the package, and its features that the adapter supports or does not support.
 *
 * @category models
 * @since 0.1.0
 */
export const support: AdapterSupport = {
  name: "KeyValueStore",
  package: "effect",
  version: "4.1.0",
  maps: ["the whole KeyValueStore, with an atomic modify", "the directories of KeyValueStore.layerFileSystem"],
  missing: ["keys whose encoded name is longer than the filesystem allows", 'the keys "", "." and ".."']
}
