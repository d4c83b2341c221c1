/**
 * Exports random trees from every filesystem and imports each of them into every filesystem. Each target still contains the
 * previous tree, so the import must replace that tree.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { posix } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import { quota, subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, decorate, Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { mount } from "../../src/filesystem/Mounts.ts"
import { overlay } from "../../src/filesystem/Overlay.ts"
import * as Archive from "../../src/history/Archive.ts"
import { portable } from "../../src/port/Backend.ts"
import { capture, directory, type Entry, type Files, link, picture, plant } from "../../src/testing/Files.ts"
import * as Filesystems from "../conformance/filesystems.ts"

const [runs, trees] = process.env["FS_ALGEBRA_SOAK"] === undefined ? [1, 2] : [60, 3]

const { another, posixHost } = Filesystems

const on = <E>(layer: Layer.Layer<Filesystem, E>, change: (self: Algebra) => Effect.Effect<Algebra, unknown>) =>
  decorate(change)(layer)

const filesystems: ReadonlyArray<readonly [name: string, layer: Layer.Layer<Filesystem, unknown>]> = [
  ["memory", Filesystems.inMemory],
  ["memory that ignores case", Filesystems.caseless],
  ["memory without accelerations", on(InMemory.layer(), ({ port }) => Effect.succeed(make(portable(port))))],
  ["a host", posixHost],
  ["a host with checks on every call", Filesystems.checkedHost],
  ["a host through a link", Filesystems.linkedRoot],
  ["effect's FileSystem", Filesystems.nodeFileSystem],
  ["effect's FileSystem over our own", Filesystems.thereAndBack],
  ...Filesystems.combinators,
  ...Filesystems.passThrough,
  [
    "a subdirectory of a host",
    on(posixHost, (self) =>
      Effect.andThen(
        self.mkdir("sub"),
        Effect.suspend(() => subdirectory("sub")(self))
      )
    )
  ],
  ["a quota on a host", on(posixHost, quota({ maxBytes: 1e9, maxFiles: 1e6 }))],
  ["an overlay over a host", on(posixHost, (lower) => Effect.map(another, (upper) => overlay(upper)(lower)))],
  [
    "a host mounted in memory",
    on(posixHost, (host) =>
      Effect.gen(function* () {
        const whole = yield* mount("mounted", host)(yield* another)
        return yield* subdirectory("mounted")(whole)
      })
    )
  ]
]

const opened = (layer: Layer.Layer<Filesystem, unknown>): Effect.Effect<Algebra, unknown, Scope.Scope> =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, Filesystem))

/** Names that are distinct on every disk. */
const names = [
  "a",
  "b",
  "c c",
  "é",
  "日本",
  "😀",
  "-rf",
  ".git",
  ".gitignore",
  "%41",
  "a.b",
  "a-b",
  "'$x' *?[",
  "CON",
  "manifest.json",
  "files"
]

interface Planted {
  readonly path: string
  readonly entry: Entry
  readonly mode: number
}

const text = Schema.Literals(["", "x", "a\r\nb", "é\n", "same\n", "y".repeat(5000)])

const Plant = Schema.Struct({
  names: Schema.NonEmptyArray(Schema.Literals(names)),
  entry: Schema.TaggedUnion({
    File: { text },
    Bytes: { bytes: Schema.Array(Schema.Literals([0, 10, 65, 128, 255])) },
    Directory: {},
    Link: { target: Schema.Literals(["a", "a.b/é", "../a", "../../b", ".", "..", "./b", "nowhere", "a/../b"]) }
  }),
  mode: Schema.Literals([0o644, 0o600, 0o755, 0o700])
})

const isInside = (path: string, target: string): boolean => {
  const lead = posix.normalize(posix.join(posix.dirname(path), target))
  return lead !== ".." && !lead.startsWith("../")
}

const entryOf = ({ entry }: typeof Plant.Type): Entry => {
  switch (entry._tag) {
    case "File":
      return entry.text
    case "Bytes":
      return Uint8Array.from(entry.bytes)
    case "Directory":
      return directory
    case "Link":
      return link(entry.target)
  }
}

const planted = (wanted: ReadonlyArray<typeof Plant.Type>): ReadonlyArray<Planted> => {
  const out = new Map<string, Planted>()
  for (const one of wanted) {
    const path = one.names.slice(0, 3).join("/")
    const entry = entryOf(one)
    if (path === "" || (one.entry._tag === "Link" && !isInside(path, one.entry.target))) continue
    const clashes = [...out.values()].some(
      (other) =>
        other.path === path ||
        (path.startsWith(`${other.path}/`) && other.entry !== directory) ||
        (other.path.startsWith(`${path}/`) && entry !== directory)
    )
    if (!clashes) out.set(path, { path, entry, mode: entry === directory ? one.mode | 0o700 : one.mode })
  }
  return [...out.values()]
}

const aTree = Arbitrary.map(Arbitrary.array(Arbitrary.schema(Plant), { minLength: 10, maxLength: 20 }), planted)

const filesOf = (tree: ReadonlyArray<Planted>): Files => Object.fromEntries(tree.map(({ entry, path }) => [path, entry]))

const isLink = ({ entry }: Planted): boolean => typeof entry === "object" && "link" in entry

/** Writes the tree, with modes if the filesystem has them, and returns these modes. */
const plantAll = Effect.fnUntraced(function* (fs: Algebra, tree: ReadonlyArray<Planted>) {
  yield* plant(fs.port, filesOf(tree))
  const modes: Record<string, number> = {}
  if (fs.port.attributes === undefined) return modes
  for (const one of tree) {
    if (isLink(one)) continue
    yield* fs.setAttributes(one.path, { mode: one.mode })
    modes[one.path] = one.mode
  }
  return modes
})

const checkModes = Effect.fnUntraced(function* (fs: Algebra, modes: Readonly<Record<string, number>>, name: string) {
  if (fs.port.attributes === undefined) return
  for (const [path, mode] of Object.entries(modes)) {
    assert.strictEqual((yield* fs.stat(path)).mode, mode, `${name}: ${path}`)
  }
})

describe("export and import give the same tree", () => {
  for (const [from, source] of filesystems) {
    it.live.prop(
      `from ${from} to each of ${filesystems.length} filesystems`,
      [Arbitrary.array(aTree, { minLength: trees, maxLength: trees })],
      ([sequence]) =>
        Effect.scoped(
          Effect.gen(function* () {
            const targets = yield* Effect.forEach(filesystems, ([name, layer]) =>
              Effect.map(opened(layer), (fs) => ({ name, fs }))
            )
            for (const tree of sequence) {
              const fs = yield* opened(source)
              const modes = yield* plantAll(fs, tree)
              const expected = picture(filesOf(tree))
              const bytes = yield* Archive.exportBytesOf(fs)
              assert.deepStrictEqual(yield* capture(fs.port), expected, `${from}, after its export`)
              for (const { fs, name } of targets) {
                const files = yield* Archive.importZipOf(fs, Stream.succeed(bytes))
                assert.strictEqual(files, tree.filter(({ entry }) => entry !== directory).length, name)
                assert.deepStrictEqual(yield* capture(fs.port), expected, name)
                yield* checkModes(fs, modes, name)
              }
            }
          })
        ),
      { arbitrary: { runs } }
    )
  }
})
