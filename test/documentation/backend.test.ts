/**
 * Checks the guide to writing a backend. Its example is a file of this repository that is compiled, linted and tested
 * against every law. Other tests check the statements of the guide.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { mkdtempSync, rmSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { Archive, type Backend, Filesystem, type FsError, type FsPath, InMemory } from "../../src/index.ts"
import { plant } from "../../src/testing/Files.ts"
import { policySuite } from "../../src/testing/index.ts"
import * as Sqlite from "../examples/sqlite.ts"
import { inMemory } from "../scratch.ts"
import { fencesOf, guide, table, textOf } from "./markdown.ts"

const file = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(inMemory(), "sqlite-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true }))
).pipe(Effect.map((directory) => join(directory, "files.db")))

/** The laws of the options need files that exist before the options apply. */
policySuite("SQLite", ({ symlinks, ...options }, files) =>
  symlinks === undefined
    ? Layer.unwrap(
        Effect.gen(function* () {
          const path = yield* file
          yield* Effect.flatMap(Filesystem.Filesystem, (fs) => plant(fs.port, files)).pipe(
            Effect.provide(Sqlite.layer({ file: path }))
          )
          return Sqlite.layer({ file: path, ...options })
        })
      )
    : undefined
)

const inMemoryDatabase = Effect.provide(Sqlite.layer({ file: ":memory:" }))

const text = textOf(guide("backend"))

/** Returns a file of this repository as a user of the package would write it. */
const published = (file: string): string =>
  textOf(file)
    .replaceAll(/"(?:\.\.\/)+src\/index\.ts"/g, '"fs-algebra"')
    .replaceAll(/"(?:\.\.\/)+src\/testing\/index\.ts"/g, '"fs-algebra/testing"')

/** The optional members of a backend. A missing or an extra name does not compile. */
const optional: { readonly [Key in keyof Backend.Backend as undefined extends Backend.Backend[Key] ? Key : never]-?: true } = {
  explore: true,
  perform: true,
  attributes: true,
  calls: true,
  history: true,
  hostRoots: true,
  links: true,
  locks: true,
  rules: true,
  watch: true
}

/** The optional members of `links` that a reader needs. */
const ofLinks: ReadonlyArray<`links.${keyof Backend.Links}`> = ["links.relative"]

describe("the guide to writing a backend", () => {
  it("shows the example backend and its test suite exactly as they are in this repository", () => {
    const programs = fencesOf(guide("backend")).filter(({ language }) => language === "ts")
    assert.deepStrictEqual(
      programs.map(({ body }) => body),
      [published("test/examples/sqlite.ts"), published("test/examples/sqlite.test.ts")]
    )
  })

  it("names the seven operations and the optional members of a port", () => {
    const names = (first: string) =>
      table(text, first)
        .map(([name]) => name!.slice(1, -1))
        .sort()
    const seven: Record<Exclude<keyof Backend.Backend, "info" | keyof typeof optional>, true> = {
      list: true,
      makeDirectory: true,
      open: true,
      remove: true,
      rename: true,
      stat: true,
      write: true
    }
    assert.deepStrictEqual(names("operation"), Object.keys(seven).sort())
    const members = [...Object.keys(optional), ...ofLinks]
    assert.deepStrictEqual(names("member"), members.sort())
  })

  it.effect("is right about the calls that fail with Unsupported without links, attributes and watching", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      yield* fs.write("a.txt", "a")
      const calls = [
        fs.symlink("b.txt", "a.txt"),
        fs.readLink("a.txt"),
        fs.setAttributes("a.txt", { mode: 0o600 }),
        Stream.runDrain(fs.watch())
      ]
      for (const call of calls)
        assert.strictEqual((yield* Effect.flip(call as Effect.Effect<unknown, FsError.Unsupported>))._tag, "Unsupported")
    }).pipe(inMemoryDatabase)
  )

  it.effect("is right that only an archive with links requires a filesystem with links", () =>
    Effect.gen(function* () {
      const packed = (tree: InMemory.Tree) =>
        Effect.map(InMemory.make({ tree }), (backend) => Archive.exportZipOf(Filesystem.make(backend)))
      const fs = yield* Filesystem.Filesystem
      yield* Effect.flip(Archive.importZip(yield* packed({ "a.txt": "a", "b.txt": { link: "a.txt" } })))
      assert.isFalse(yield* fs.exists("a.txt"))
      yield* Archive.importZip(yield* packed({ d: { "a.txt": "a" } }))
      assert.strictEqual(yield* fs.readString("d/a.txt"), "a")
    }).pipe(inMemoryDatabase)
  )

  it.live("has an example that keeps its files in a database, which several processes may share", () =>
    Effect.gen(function* () {
      const path = yield* file
      const open = <A, E>(use: (fs: Filesystem.Algebra) => Effect.Effect<A, E>) =>
        Effect.provide(Effect.flatMap(Filesystem.Filesystem, use), Sqlite.layer({ file: path }), { local: true })
      yield* open((fs) => fs.write("notes/a.txt", "one\0\n"))
      const text = yield* open((fs) =>
        Effect.andThen(
          open((other) => other.write("notes/a.txt", "two\n", { mode: "append" })),
          fs.readString("notes/a.txt")
        )
      )
      assert.strictEqual(text, "one\0\ntwo\n")
      const rows = new DatabaseSync(path, { readOnly: true }).prepare("SELECT name FROM entry ORDER BY id").all()
      assert.deepStrictEqual(
        rows.map((row) => row["name"]),
        ["", "notes", "a.txt"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("has an example that fails as busy, without a change, while another process changes the database", () =>
    Effect.gen(function* () {
      const path = yield* file
      const other = new DatabaseSync(path)
      yield* Effect.flatMap(Layer.build(Sqlite.layer({ file: path })), (context) =>
        Effect.gen(function* () {
          const fs = yield* Filesystem.Filesystem
          other.exec("BEGIN IMMEDIATE")
          const error = yield* Effect.flip(fs.write("a.txt", "a"))
          assert.deepStrictEqual([error._tag, (error as { readonly why?: string }).why], ["AccessDenied", "busy"])
          assert.isFalse(yield* fs.exists("a.txt"))
          other.exec("COMMIT")
          yield* fs.write("a.txt", "a")
        }).pipe(Effect.provide(context))
      )
      other.close()
    }).pipe(Effect.scoped)
  )

  it.live("has an example that dies on its own bugs", () =>
    Effect.gen(function* () {
      const fs = yield* Filesystem.Filesystem
      const exit = yield* Effect.exit(fs.port.write<never, never>("a" as FsPath.FsPath, {} as Uint8Array, "create"))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause))
    }).pipe(inMemoryDatabase)
  )

  it.effect("has an example that fails as Unavailable, without the path, if the database cannot be opened", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Effect.provide(Filesystem.Filesystem, Sqlite.layer({ file: "/no/where/files.db" })))
      assert.strictEqual(error._tag, "Unavailable")
      assert.notInclude(error.message, "/no/where")
    })
  )
})
