import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { readOnly, subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import type { Info } from "../../src/port/Backend.ts"
import { directory, seen } from "./escapes/grounds.ts"

const secret = "secret, inside\n"

interface Ground {
  readonly fs: Algebra
  readonly root: string
  readonly outside: string
}

/**
 * Plants `f` and `d/f`, a file that has another name outside, with a link `l` to it, and `twin` and `d/twin`, one file inside.
 */
const planted = (hardlinks?: "allow" | "reject", isBelow = false): Effect.Effect<Ground, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const top = yield* directory
    const root = `${top}/root`
    const outside = `${top}/outside`
    for (const path of [root, outside, `${root}/d`]) Fs.mkdirSync(path)
    Fs.writeFileSync(`${outside}/secret`, secret, { mode: 0o644 })
    Fs.linkSync(`${outside}/secret`, `${root}/f`)
    Fs.linkSync(`${outside}/secret`, `${root}/d/f`)
    Fs.symlinkSync("d/f", `${root}/l`)
    Fs.writeFileSync(`${root}/twin`, "twin, inside\n")
    Fs.linkSync(`${root}/twin`, `${root}/d/twin`)
    Fs.writeFileSync(`${root}/own`, "own, inside\n")
    const port = yield* PosixHost.make({ root: isBelow ? top : root, ...(hardlinks !== undefined && { hardlinks }) })
    return { fs: isBelow ? yield* subdirectory("root")(make(port)) : make(port), root, outside }
  })

type Call = (fs: Algebra, path: string) => Effect.Effect<unknown, unknown>

const utf8 = (text: string): Uint8Array => new TextEncoder().encode(text)
const touched = DateTime.makeUnsafe(981_173_106_000)

/** The calls that would show the content of the file, or change it under its other name. */
const refused: Readonly<Record<string, Call>> = {
  read: (fs, path) => fs.read(path),
  readString: (fs, path) => fs.readString(path),
  readBytes: (fs, path) => fs.readBytes(path),
  "readBytes of a part": (fs, path) => fs.readBytes(path, { offset: 2, limit: 2 }),
  version: (fs, path) => fs.version(path),
  stream: (fs, path) => Stream.runCollect(fs.stream(path)),
  lines: (fs, path) => Stream.runCollect(fs.lines(path)),
  edit: (fs, path) => fs.edit(path, { oldText: "inside", newText: "x" }),
  "a dry edit": (fs, path) => fs.edit(path, { oldText: "inside", newText: "x" }, { dryRun: true }),
  append: (fs, path) => fs.write(path, "more", { mode: "append" }),
  "append, with its version": (fs, path) => fs.write(path, "more", { mode: "append", version: true }),
  appendExisting: (fs, path) => fs.writeBytes(path, utf8("more"), { mode: "appendExisting" }),
  "append by a sink": (fs, path) => Stream.run(Stream.make(utf8("more")), fs.sink(path, { mode: "append" })),
  "a change of the mode": (fs, path) => fs.setAttributes(path, { mode: 0o666 }),
  "a change of the time": (fs, path) => fs.setAttributes(path, { modifiedAt: touched })
}

/** The calls that create a new file of the name, and keep the old file for its other names. */
const splitting: Readonly<Record<string, Call>> = {
  overwrite: (fs, path) => fs.write(path, "mine"),
  replace: (fs, path) => fs.writeBytes(path, utf8("mine"), { mode: "replace" }),
  sink: (fs, path) => Stream.run(Stream.make(utf8("mi"), utf8("ne")), fs.sink(path)),
  "a copy over it": (fs, path) => Effect.andThen(fs.write("source", "mine"), fs.copy("source", path, { overwrite: true })),
  "a move over it": (fs, path) => Effect.andThen(fs.write("source", "mine"), fs.move("source", path, { overwrite: true }))
}

const outsideOf = ({ outside }: Ground): unknown => {
  const { ino, mode, mtimeMs, size } = Fs.lstatSync(`${outside}/secret`)
  return { ino, mode, mtimeMs, size, content: Fs.readFileSync(`${outside}/secret`, "utf8") }
}

/** Returns everything inside except the times of directories, which a staged file changes. */
const standing = ({ root }: Ground): unknown =>
  Object.entries(seen(root)).map(([path, { mode, rest, what }]) => [path, mode, what, what === "/" ? "" : rest])

const errorOf = (
  call: Effect.Effect<unknown, unknown>
): Effect.Effect<{ readonly _tag: string; readonly why?: string }, unknown> =>
  Effect.map(Effect.flip(call), (error) => error as { readonly _tag: string; readonly why?: string })

for (const [name, isBelow] of [
  ["PosixHost", false],
  ["a directory of a PosixHost", true]
] as const) {
  describe(`hardlinks: "reject" on ${name}:`, () => {
    for (const [operation, call] of Object.entries(refused)) {
      it.live(`${operation} is refused by each name and through a link, and changes nothing`, () =>
        Effect.gen(function* () {
          const ground = yield* planted("reject", isBelow)
          const before = [standing(ground), outsideOf(ground)]
          for (const path of ["f", "d/f", "twin", "d/twin", "l"]) {
            const { _tag, why } = yield* errorOf(call(ground.fs, path))
            assert.deepStrictEqual({ _tag, why }, { _tag: "AccessDenied", why: "link" }, path)
          }
          assert.deepStrictEqual([standing(ground), outsideOf(ground)], before)
          yield* call(ground.fs, "own")
        }).pipe(Effect.scoped)
      )
    }

    for (const [operation, call] of Object.entries(splitting)) {
      it.live(`${operation} creates a separate file, and the other names keep the old file`, () =>
        Effect.gen(function* () {
          const ground = yield* planted("reject", isBelow)
          const before = outsideOf(ground)
          yield* call(ground.fs, "f")
          assert.strictEqual(Fs.readFileSync(`${ground.root}/f`, "utf8"), "mine")
          assert.strictEqual(Fs.readFileSync(`${ground.root}/d/f`, "utf8"), secret)
          assert.deepStrictEqual(outsideOf(ground), before)
          assert.strictEqual(Fs.lstatSync(`${ground.outside}/secret`).nlink, 2)
          assert.strictEqual(yield* ground.fs.readString("f"), "mine")
        }).pipe(Effect.scoped)
      )
    }

    it.live("a precondition fails, and its error does not contain the version of the file", () =>
      Effect.gen(function* () {
        const ground = yield* planted("reject", isBelow)
        const before = outsideOf(ground)
        for (const call of [
          ground.fs.write("f", "x", { ifMatch: "0".repeat(64) }),
          ground.fs.write("f", "x", { ifMatch: "0".repeat(64), mode: "append" }),
          ground.fs.delete("f", { ifMatch: "0".repeat(64) })
        ]) {
          const error = yield* Effect.flip(call as Effect.Effect<unknown, { readonly _tag: string; readonly actual?: string }>)
          assert.strictEqual(error._tag, "Conflict")
          assert.isUndefined(error.actual)
        }
        assert.deepStrictEqual(outsideOf(ground), before)
      }).pipe(Effect.scoped)
    )

    it.live("delete and move affect only the name, and the other names keep the file", () =>
      Effect.gen(function* () {
        const ground = yield* planted("reject", isBelow)
        const before = outsideOf(ground)
        yield* ground.fs.move("f", "g")
        assert.strictEqual(Fs.lstatSync(`${ground.root}/g`).nlink, 3)
        yield* ground.fs.delete("g")
        yield* ground.fs.delete("d", { recursive: true })
        assert.strictEqual(Fs.lstatSync(`${ground.outside}/secret`).nlink, 1)
        assert.deepStrictEqual(outsideOf(ground), before)
      }).pipe(Effect.scoped)
    )

    it.live("a copy of a file with several names, or of a tree with such a file, is refused and leaves nothing", () =>
      Effect.gen(function* () {
        const ground = yield* planted("reject", isBelow)
        for (const path of ["f", "d"]) {
          const { _tag, why } = yield* errorOf(ground.fs.copy(path, "copied"))
          assert.deepStrictEqual({ _tag, why }, { _tag: "AccessDenied", why: "link" }, path)
          assert.isFalse(Fs.existsSync(`${ground.root}/copied`))
        }
      }).pipe(Effect.scoped)
    )

    it.live("files with several names appear in stat, exists and glob; a grep counts them as unreadable", () =>
      Effect.gen(function* () {
        const { fs } = yield* planted("reject", isBelow)
        assert.deepInclude(yield* fs.stat("f"), { kind: "file", sizeBytes: secret.length })
        assert.isTrue(yield* fs.exists("f"))
        assert.deepStrictEqual(
          (yield* fs.glob("**")).matches.map(({ path }) => path as string),
          ["d/f", "d/twin", "f", "own", "twin"]
        )
        const { matches, skipped } = yield* fs.grep("inside")
        assert.deepStrictEqual(
          matches.map(({ path }) => path as string),
          ["own"]
        )
        assert.deepStrictEqual([...skipped.unreadablePaths] as Array<string>, ["d/f", "d/twin", "f", "twin"])
      }).pipe(Effect.scoped)
    )
  })
}

describe('hardlinks: "allow", and the default', () => {
  for (const hardlinks of ["allow", undefined] as const) {
    it.live(`${hardlinks ?? "by default"}: a file with several names is an ordinary file`, () =>
      Effect.gen(function* () {
        const { fs, outside, root } = yield* planted(hardlinks)
        for (const [operation, call] of Object.entries(refused)) {
          assert.strictEqual((yield* Effect.result(call(fs, "twin")))._tag, "Success", operation)
          Fs.rmSync(`${root}/twin`)
          Fs.writeFileSync(`${root}/twin`, "twin, inside\n")
          Fs.rmSync(`${root}/d/twin`)
          Fs.linkSync(`${root}/twin`, `${root}/d/twin`)
        }
        // A change in place shows under every name, which "reject" prevents.
        assert.strictEqual(yield* fs.readString("f"), secret)
        yield* fs.write("f", "more", { mode: "append" })
        yield* fs.setAttributes("f", { mode: 0o600 })
        assert.strictEqual(Fs.readFileSync(`${outside}/secret`, "utf8"), `${secret}more`)
        assert.strictEqual(Fs.lstatSync(`${outside}/secret`).mode & 0o777, 0o600)
        // A replacement is atomic, and therefore splits the names too.
        yield* fs.write("f", "mine")
        assert.strictEqual(Fs.readFileSync(`${outside}/secret`, "utf8"), `${secret}more`)
        assert.strictEqual(Fs.readFileSync(`${root}/f`, "utf8"), "mine")
      }).pipe(Effect.scoped)
    )
  }
})

type Level = Info["confinement"]

const levels: ReadonlyArray<Level> = ["race-free", "race-free-open", "best-effort"]

const given = (options: Partial<PosixHost.PosixHostOptions>) =>
  Effect.gen(function* () {
    const root = yield* directory
    return yield* Effect.result(Effect.map(PosixHost.make({ root, ...options }), ({ info }) => info.confinement))
  })

const levelHere = Effect.map(given({}), (result) => (result._tag === "Success" ? result.success : undefined))

describe("requireConfinement", () => {
  it.live("names levels, and the confinement of a host is one of them", () =>
    Effect.gen(function* () {
      assert.include(levels, yield* levelHere)
    }).pipe(Effect.scoped)
  )

  it.live("succeeds for the level of this machine and for weaker levels", () =>
    Effect.gen(function* () {
      const level = (yield* levelHere)!
      for (const required of levels.slice(levels.indexOf(level))) {
        const result = yield* given({ requireConfinement: required })
        assert.strictEqual(result._tag === "Success" ? result.success : result.failure._tag, level, required)
      }
    }).pipe(Effect.scoped)
  )

  it.live("fails with Unsupported for a stronger level than the machine has, and names the level", () =>
    Effect.gen(function* () {
      const level = (yield* levelHere)!
      const stronger = [...levels.slice(0, levels.indexOf(level)), "virtual" as const, "total" as Level]
      for (const required of stronger) {
        const root = `${yield* directory}/new`
        const error = yield* Effect.flip(
          Effect.scoped(PosixHost.make({ root, createRoot: true, requireConfinement: required }))
        )
        assert.strictEqual(error._tag, "Unsupported", required)
        assert.include(error.message, required)
        assert.isFalse(Fs.existsSync(root), "nothing is created when the level is not available")
      }
    }).pipe(Effect.scoped)
  )

  it.live("applies to derived filesystems too, which have the confinement of their source", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.mkdirSync(`${root}/d`)
      const fs = make(yield* PosixHost.make({ root }))
      const { confinement } = fs.port.info
      assert.strictEqual((yield* subdirectory("d")(fs)).port.info.confinement, confinement)
      assert.strictEqual(readOnly(fs).port.info.confinement, confinement)
    }).pipe(Effect.scoped)
  )
})
