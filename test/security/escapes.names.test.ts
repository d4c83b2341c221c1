/**
 * Names that no path can express: bytes that are not UTF-8, and control characters. The tests create them by `node:fs` from
 * bytes. The library shows them, skips them in searches, removes them with their directory, and never confuses them with
 * others.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { subdirectory } from "../../src/filesystem/Decorator.ts"
import { type Algebra, make } from "../../src/filesystem/Filesystem.ts"
import { directory } from "./escapes/grounds.ts"

const bytes = (...parts: ReadonlyArray<string | number>): Buffer =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from([part]))))

/** The names on disk and their shown forms: a byte that cannot be shown becomes `\xff`, and a backslash is doubled. */
const inexpressible: ReadonlyArray<readonly [name: Buffer, shown: string]> = [
  [bytes("bad", 0xff), "bad\\xff"],
  [bytes("bad", 0xfe), "bad\\xfe"],
  [bytes("bad", 0xff, 0xfe), "bad\\xff\\xfe"],
  [bytes(0xff), "\\xff"],
  [bytes("a", 0xff, "b\\c"), "a\\xffb\\\\c"],
  // The beginning of U+FFFD, overlong forms of a slash and two dots, half of a surrogate pair, and a value beyond Unicode.
  [bytes(0xef, 0xbf), "\\xef\\xbf"],
  [bytes("..", 0xc0, 0xaf, "etc"), "..\\xc0\\xafetc"],
  [bytes(0xc0, 0xae, 0xc0, 0xae), "\\xc0\\xae\\xc0\\xae"],
  [bytes(0xed, 0xa0, 0x80), "\\xed\\xa0\\x80"],
  [bytes(0xf5, 0x80, 0x80, 0x80), "\\xf5\\x80\\x80\\x80"],
  [bytes("line\nbreak"), "line\\x0abreak"],
  [bytes("tab\t"), "tab\\x09"],
  [bytes("\u007f"), "\\x7f"],
  [bytes("\u001b[2J"), "\\x1b[2J"],
  [bytes("é\u0001ü", 0xfc), "é\\x01ü\\xfc"]
]

const ordinary = ["\ufffd", "bad\ufffd", "bad\\xff", "\\xff", "line\\x0abreak", "badÿ", "é\u0085", "\u2028", "\u202ebad"]

const at = (directory: string, name: Buffer | string): Buffer =>
  Buffer.concat([Buffer.from(`${directory}/`), Buffer.from(name as string)])

/** Returns the name in hexadecimal as the file's content, so that a confusion shows. */
const contentOf = (name: Buffer | string): string => `inside ${Buffer.from(name as string).toString("hex")}\n`

const fill = (where: string): void => {
  for (const [name] of inexpressible) Fs.writeFileSync(at(where, name), contentOf(name))
  for (const name of ordinary) Fs.writeFileSync(at(where, name), contentOf(name))
}

const onDisk = (top: string | Buffer, out: Record<string, string> = {}, path = ""): Record<string, string> => {
  for (const entry of Fs.readdirSync(top, { withFileTypes: true, encoding: "buffer" })) {
    const host = Buffer.concat([Buffer.from(top as string), Buffer.from("/"), entry.name])
    const key = `${path}/${entry.name.toString("hex")}`
    out[key] = entry.isDirectory() ? "/" : entry.isFile() ? Fs.readFileSync(host, "utf8") : "another"
    if (entry.isDirectory()) onDisk(host, out, key)
  }
  return out
}

interface Ground {
  readonly fs: Algebra
  readonly root: string
}

const odd = bytes("odd", 0xff)

/** Plants a directory `d` with every name, and beside it a directory with a name that no path can express. */
const planted = (
  open: (top: string) => Effect.Effect<Algebra, unknown, Scope.Scope>
): Effect.Effect<Ground, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const top = yield* directory
    const root = `${top}/root`
    Fs.mkdirSync(`${root}/d`, { recursive: true })
    Fs.mkdirSync(at(root, odd))
    fill(`${root}/d`)
    Fs.writeFileSync(Buffer.concat([at(root, odd), Buffer.from("/plain")]), "inside the odd one\n")
    return { fs: yield* open(top), root }
  })

const grounds: ReadonlyArray<readonly [string, Effect.Effect<Ground, unknown, Scope.Scope>]> = [
  ["PosixHost", planted((top) => Effect.map(PosixHost.make({ root: `${top}/root` }), make))],
  [
    "a directory of a PosixHost",
    planted((top) => Effect.flatMap(PosixHost.make({ root: top }), (port) => subdirectory("root")(make(port))))
  ]
]

const spellings = ([name, shown]: (typeof inexpressible)[number]): ReadonlyArray<string> => [
  shown,
  name.toString("utf8"),
  name.toString("latin1"),
  `\0${name.toString("hex")}`,
  [...name].map((byte) => `%${byte.toString(16).padStart(2, "0")}`).join("")
]

for (const [name, ground] of grounds) {
  describe(`names that no path can express, on ${name}`, () => {
    it.live("are listed escaped and distinct, as not addressable", () =>
      Effect.gen(function* () {
        const { fs } = yield* ground
        const entries = yield* fs.list("d")
        const shown = entries.filter(({ addressable }) => !addressable).map(({ name }) => name)
        assert.deepStrictEqual([...shown].sort(), inexpressible.map(([, shown]) => shown).sort())
        assert.strictEqual(new Set(shown).size, shown.length)
        assert.deepStrictEqual(
          entries
            .filter(({ addressable }) => addressable)
            .map(({ name }) => name)
            .sort(),
          [...ordinary].sort()
        )
        for (const entry of entries) assert.deepInclude(entry, { kind: "file", isFile: true, path: `d/${entry.name}` as never })
        for (const entry of entries.filter(({ addressable }) => !addressable)) {
          const [raw] = inexpressible.find(([, shown]) => shown === entry.name)!
          assert.strictEqual(entry.sizeBytes, contentOf(raw).length, entry.name)
        }
      }).pipe(Effect.scoped)
    )

    it.live("leave ordinary files beside them readable", () =>
      Effect.gen(function* () {
        const { fs } = yield* ground
        for (const name of ordinary) assert.strictEqual(yield* fs.readString(`d/${name}`), contentOf(name))
      }).pipe(Effect.scoped)
    )

    it.live("cannot be reached by any path", () =>
      Effect.gen(function* () {
        const { fs, root } = yield* ground
        const before = onDisk(root)
        const known = new Set(ordinary)
        for (const row of inexpressible) {
          for (const spelling of spellings(row)) {
            if (known.has(spelling) || spelling.includes("/")) continue
            const path = `d/${spelling}`
            assert.isFalse(yield* fs.exists(path), JSON.stringify(path))
            for (const call of [
              fs.stat(path),
              fs.readBytes(path),
              fs.write(path, "x", { mode: "replace" }),
              fs.write(path, "x", { mode: "appendExisting" }),
              fs.edit(path, { oldText: "inside", newText: "x" }),
              fs.delete(path),
              fs.move(path, "moved"),
              fs.copy(path, "copied"),
              fs.setAttributes(path, { mode: 0o600 })
            ]) {
              const { _tag } = yield* Effect.flip(call as Effect.Effect<unknown, { readonly _tag: string }>)
              assert.include(["NotFound", "InvalidPath"], _tag, JSON.stringify(path))
            }
          }
        }
        assert.deepStrictEqual(onDisk(root), before)
      }).pipe(Effect.scoped)
    )

    it.live("are not touched by a write to a similar path, which creates another file", () =>
      Effect.gen(function* () {
        const { fs, root } = yield* ground
        const before = onDisk(root)
        const written = new Map<string, string>()
        for (const row of inexpressible) {
          for (const spelling of spellings(row)) {
            const made = yield* Effect.result(fs.write(`d/${spelling}`, "new", { createParents: false, mode: "create" }))
            if (made._tag === "Success")
              written.set(`/${Buffer.from("d").toString("hex")}/${Buffer.from(spelling).toString("hex")}`, "new")
            else assert.include(["InvalidPath", "AlreadyExists", "NotFound"], made.failure._tag)
          }
        }
        assert.isAbove(written.size, 20)
        assert.deepStrictEqual(onDisk(root), { ...before, ...Object.fromEntries(written) })
      }).pipe(Effect.scoped)
    )

    it.live("appear in a walk with the entries below them, and are skipped and counted by a search", () =>
      Effect.gen(function* () {
        const { fs } = yield* ground
        const walked = yield* Stream.runCollect(fs.walk())
        const unaddressable = walked.filter(({ addressable }) => !addressable).map(({ path }) => path)
        const shown = inexpressible.map(([, shown]) => `d/${shown}`)
        assert.deepStrictEqual([...unaddressable].sort(), ["odd\\xff", "odd\\xff/plain", ...shown].sort())
        const glob = yield* fs.glob("**")
        const grep = yield* fs.grep("inside")
        const expected = ordinary.map((name) => `d/${name}`).sort()
        for (const found of [glob, grep]) {
          assert.deepStrictEqual(found.matches.map(({ path }) => path as string).sort(), expected)
          assert.strictEqual(found.skipped.unreadable, inexpressible.length + 1)
          assert.deepStrictEqual([...found.skipped.unreadablePaths].sort(), ["odd\\xff", ...shown].sort() as Array<never>)
        }
        const both = yield* fs.glob(["bad\ufffd", "\ufffd", "*xff*"])
        assert.deepStrictEqual(
          both.matches.map(({ path }) => path as string).sort(),
          ["d/\\xff", "d/bad\\xff", "d/bad\ufffd", "d/\ufffd"].sort()
        )
      }).pipe(Effect.scoped)
    )

    it.live("cannot be the base of a call", () =>
      Effect.gen(function* () {
        const { fs } = yield* ground
        for (const path of ["odd\\xff", "odd\ufffd", "oddÿ", "odd\\xff/plain", "odd\ufffd/plain"]) {
          assert.strictEqual((yield* Effect.flip(fs.list(path)))._tag, "NotFound")
          assert.strictEqual((yield* Effect.flip(fs.readString(path)))._tag, "NotFound")
          assert.strictEqual((yield* Effect.flip(fs.glob("**", { path })))._tag, "NotFound")
        }
      }).pipe(Effect.scoped)
    )

    it.live("make their directory count as not empty, and are removed with it", () =>
      Effect.gen(function* () {
        const { fs, root } = yield* ground
        assert.strictEqual((yield* Effect.flip(fs.delete("d")))._tag, "DirectoryNotEmpty")
        Fs.renameSync(at(root, odd), Buffer.concat([Buffer.from(`${root}/d/`), odd]))
        assert.deepStrictEqual(yield* fs.delete("d", { recursive: true }), {
          deleted: inexpressible.length + ordinary.length + 1,
          directories: 2
        })
        assert.deepStrictEqual(onDisk(root), {})
      }).pipe(Effect.scoped)
    )

    it.live("are copied and moved with their tree, byte for byte", () =>
      Effect.gen(function* () {
        const { fs, root } = yield* ground
        Fs.renameSync(at(root, odd), Buffer.concat([Buffer.from(`${root}/d/`), odd]))
        const before = onDisk(`${root}/d`)
        yield* fs.copy("d", "copied")
        assert.deepStrictEqual(onDisk(`${root}/copied`), before)
        yield* fs.move("d", "moved")
        assert.deepStrictEqual(onDisk(`${root}/moved`), before)
        assert.isFalse(Fs.existsSync(`${root}/d`))
      }).pipe(Effect.scoped)
    )

    it.live("in the text of a link make the link dangling; it is listed and can be removed", () =>
      Effect.gen(function* () {
        const { fs, root } = yield* ground
        Fs.symlinkSync(at("d", bytes("bad", 0xff)), `${root}/l`)
        Fs.symlinkSync(bytes("..", 0xff), `${root}/d/l`)
        for (const path of ["l", "d/l", "l/x"]) {
          assert.strictEqual((yield* Effect.flip(fs.stat(path)))._tag, "InvalidPath")
          assert.strictEqual((yield* Effect.flip(fs.readString(path)))._tag, "InvalidPath")
          assert.strictEqual((yield* Effect.flip(fs.write(path, "x")))._tag, "InvalidPath")
          assert.isFalse(yield* fs.exists(path))
        }
        assert.strictEqual((yield* Effect.flip(fs.readLink("l")))._tag, "InvalidPath")
        const entries = yield* fs.list()
        assert.deepInclude(entries.find(({ name }) => name === "l") ?? {}, { kind: "symlink", addressable: true })
        assert.deepStrictEqual(yield* fs.delete("l"), { deleted: 1, directories: 0 })
        assert.strictEqual(onDisk(root)[`/64/${bytes("bad", 0xff).toString("hex")}`], contentOf(bytes("bad", 0xff)))
      }).pipe(Effect.scoped)
    )
  })
}
