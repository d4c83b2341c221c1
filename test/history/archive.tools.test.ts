import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import { fastDirectory, host } from "../backends/posixHost.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Filesystem from "../../src/filesystem/Filesystem.ts"
import * as Archive from "../../src/history/Archive.ts"
import { countFiles as countOf } from "../../src/history/tree.ts"
import { centralHeader, endRecords, localHeader } from "../../src/history/zip/records.ts"
import { read } from "../../src/history/zip/reader.ts"
import { fromBytes } from "../../src/history/zip/spool.ts"
import * as Limits from "../../src/model/Limits.ts"
import { awkwardFiles, needs, noise, plantAwkward, run, shapeOf, shapeOnDisk, withoutModes } from "./archiveTrees.ts"

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined

const scope = Effect.runSync(Scope.make())
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

/** Runs an effect once for all tests that read its result. */
const shared = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A, E> =>
  Effect.runSync(Effect.cached(Scope.provide(effect, scope)))

const memory = Effect.map(InMemory.make(), Filesystem.make)

const awkward = Effect.tap(memory, plantAwkward)

/** Writes an archive of the awkward tree into a directory of its own, and returns the shape of the tree. */
const writing = Effect.gen(function* () {
  const directory = yield* fastDirectory
  const fs = yield* awkward
  const path = join(directory, "made/for/it", "a.fs.zip")
  assert.strictEqual(yield* Archive.exportArchiveOf(fs, path), awkwardFiles)
  return { directory, path, shape: yield* shapeOf(fs) }
})

const written = shared(writing)

const imported = (path: string) =>
  Effect.gen(function* () {
    const fs = yield* memory
    yield* fs.write("was/here", "before")
    const files = yield* Archive.importArchiveOf(fs, path)
    return { files, shape: yield* shapeOf(fs), fs }
  })

describe.runIf(needs("our ZIP archives read by unzip", "unzip"))("unzip", () => {
  it.live("finds no errors in our archives and extracts the same tree, including modes and symlinks", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { directory, path, shape } = yield* written
        assert.include(run("unzip", ["-t", path]), "No errors detected")
        run("unzip", ["-q", path, "-d", join(directory, "out")])
        const { mode: _, ...out } = shapeOnDisk(join(directory, "out", "files"))
        assert.deepStrictEqual(out, shape)
      })
    )
  )

  it.live("lists the names in code point order, the manifest last", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { path } = yield* written
        const names = run("unzip", ["-Z1", path]).trimEnd().split("\n")
        assert.strictEqual(names.at(-1), "manifest.json")
        const files = names.slice(0, -1)
        const points = (text: string) => [...text].map((character) => character.codePointAt(0)!)
        const sorted = [...files].sort((a, b) => {
          const [x, y] = [points(a), points(b)]
          for (let i = 0; i < Math.min(x.length, y.length); i++) if (x[i] !== y[i]) return x[i]! - y[i]!
          return x.length - y.length
        })
        assert.deepStrictEqual(files, sorted)
      })
    )
  )
})

const reading = `
import base64, hashlib, json, stat, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    bad = z.testzip()
    out = {}
    for i in z.infolist():
        if not i.filename.startswith("files/"): continue
        mode = i.external_attr >> 16
        name = i.filename[6:].rstrip("/")
        if stat.S_ISLNK(mode): out[name] = ["symlink", None, z.read(i).decode()]
        elif i.is_dir(): out[name] = ["directory", mode & 0o777, ""]
        else: out[name] = ["file", mode & 0o777, hashlib.sha256(z.read(i)).hexdigest()]
    print(json.dumps({
        "bad": bad, "tree": out, "manifest": json.loads(z.read("manifest.json")), "flags": sorted({i.flag_bits & 0x800 for i in z.infolist()}),
        "methods": {i.filename: i.compress_type for i in z.infolist()}, "times": sorted({str(i.date_time) for i in z.infolist()})
    }))
`

describe.runIf(needs("ZIP archives of Python, and ours in Python", "python3"))("Python's zipfile", () => {
  it.effect("reads the same tree, the manifest, the flags and the compression methods from our archives", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { path, shape } = yield* writing
        const found = JSON.parse(run("python3", ["-c", reading, path]))
        assert.isNull(found.bad)
        assert.deepStrictEqual(
          found.tree,
          Object.fromEntries(
            Object.entries(shape).map(([name, [kind, mode, content]]) => [name, [kind, mode ?? null, content]])
          )
        )
        assert.deepStrictEqual(found.flags, [0x800])
        assert.deepStrictEqual(found.times, ["(1980, 1, 1, 0, 0, 0)"])
        const { created_at, file_count, total_bytes, version } = found.manifest
        assert.deepStrictEqual([version, created_at, file_count], ["1", "1970-01-01T00:00:00.000+00:00", awkwardFiles])
        const sizes = run("python3", [
          "-c",
          `import sys,zipfile; print(sum(i.file_size for i in zipfile.ZipFile(sys.argv[1]).infolist() if i.filename.startswith("files/")))`,
          path
        ])
        assert.strictEqual(total_bytes, Number(sizes))
        assert.strictEqual(found.methods["files/large/packable"], 8)
        assert.strictEqual(found.methods["files/one"], 0)
        assert.strictEqual(found.methods["files/large/noise"], 0)
        assert.strictEqual(found.methods["files/large/limit"], 0)
      })
    )
  )

  const script = `
import json, os, stat, sys, zipfile
path, variant = sys.argv[1], sys.argv[2]
files = {"files/src/main.py": b"print('hi')\\n" * 500, "files/empty": b"", "files/日本/é.txt": "ü".encode(), "files/zeros": bytes(3_000_000)}
class Unseekable:
    def __init__(self, f): self.f = f
    def write(self, b): return self.f.write(b)
    def flush(self): self.f.flush()
manifest = json.dumps({"version": "1", "created_at": "2024-05-06T07:08:09.123456+02:00", "file_count": len(files), "total_bytes": sum(map(len, files.values()))})
method = zipfile.ZIP_STORED if variant == "stored" else zipfile.ZIP_DEFLATED
with open(path, "wb") as f:
    with zipfile.ZipFile(Unseekable(f) if variant == "streamed" else f, "w", method) as z:
        if variant == "first": z.writestr("manifest.json", manifest)
        if variant == "comment": z.comment = b"a comment"
        for name, content in files.items():
            if variant == "zip64":
                with z.open(name, "w", force_zip64=True) as e: e.write(content)
            elif variant == "levels":
                z.writestr(name, content, compresslevel=9)
            else:
                z.writestr(name, content)
        if variant != "first": z.writestr("manifest.json", manifest)
`
  for (const [variant, title] of Object.entries({
    stored: "stored",
    deflated: "deflated",
    levels: "with the highest level of compression",
    zip64: "with 64-bit fields",
    streamed: "written to a stream",
    first: "with the manifest first",
    comment: "with a comment"
  })) {
    it.effect(`writes archives that an import accepts: ${title}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const path = join(yield* fastDirectory, "python.zip")
          run("python3", ["-c", script, path, variant])
          const { files, fs, shape } = yield* imported(path)
          assert.strictEqual(files, 4)
          assert.deepStrictEqual(
            Object.keys(shape).sort(),
            ["empty", "src", "src/main.py", "zeros", "日本", "日本/é.txt"].sort()
          )
          assert.strictEqual(yield* fs.readString("src/main.py"), "print('hi')\n".repeat(500))
          assert.strictEqual(yield* fs.readString("日本/é.txt"), "ü")
          assert.isTrue(Buffer.concat(yield* Stream.runCollect(fs.stream("zeros"))).equals(Buffer.alloc(3_000_000)))
          // Python stores a mode, but no file type with it.
          assert.strictEqual(shape["empty"]![1], 0o644)
        })
      )
    )
  }

  it.effect.runIf(soak)("reads our archives of more than 65,535 entries, and so does an import", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const fs = yield* memory
        for (let i = 0; i < 66_000; i++) yield* fs.write(`d${i % 300}/${i}`, "")
        const path = join(yield* fastDirectory, "many.zip")
        assert.strictEqual(yield* Archive.exportArchiveOf(fs, path), 66_000)
        const count =
          "import sys,zipfile; z = zipfile.ZipFile(sys.argv[1]); print(len(z.infolist()), z.infolist()[-1].filename)"
        assert.strictEqual(run("python3", ["-c", count, path]), "66301 manifest.json\n")
        const limits = { ...Limits.standard, maxArchiveEntries: 66_300 }
        const found = yield* read(fromBytes(new Uint8Array(Fs.readFileSync(path))), { limits, policy: undefined })
        assert.deepStrictEqual(countOf(found.tree), { files: 66_000, bytes: 0 })
      })
    )
  )

  it.effect("reads the 64-bit fields of our large archives", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const path = join(yield* fastDirectory, "sparse.zip")
        const entry = (name: string, size: number, offset: number) => ({
          name: Buffer.from(name),
          method: 0,
          mode: 0o100644,
          isDirectory: false,
          hasDescriptor: false,
          mayNeed64Bits: size > 2 ** 32,
          offset,
          crc: 0,
          packed: size,
          size
        })
        // Only the headers of these five gibibytes are on the disk.
        const large = entry("files/large", 5 * 2 ** 30, 0)
        const first = localHeader(large, 0x21_0000)
        const small = entry("files/small", 0, first.length + large.size)
        const second = localHeader(small, 0x21_0000)
        const central = Buffer.concat([centralHeader(large, 0x21_0000), centralHeader(small, 0x21_0000)])
        const offset = small.offset + second.length
        const file = Fs.openSync(path, "w")
        Fs.writeSync(file, first, 0, first.length, 0)
        Fs.writeSync(file, second, 0, second.length, small.offset)
        const tail = Buffer.concat([central, endRecords(2, central.length, offset)])
        Fs.writeSync(file, tail, 0, tail.length, offset)
        Fs.closeSync(file)
        const found = run("python3", [
          "-c",
          `import sys,zipfile
z = zipfile.ZipFile(sys.argv[1])
print([(i.filename, i.file_size, i.compress_size, i.header_offset) for i in z.infolist()])
print(z.read("files/small"), len(z.open("files/large").read(100)))`,
          path
        ])
        assert.strictEqual(
          found,
          `[('files/large', ${large.size}, ${large.size}, 0), ('files/small', 0, 0, ${small.offset})]\nb'' 100\n`
        )
        const error = yield* Effect.flip(Archive.importArchiveOf(yield* memory, path))
        assert.strictEqual(error._tag === "ArchiveError" ? error.reason : error, "tooLarge")
      })
    )
  )
})

describe.runIf(needs("ZIP archives of Info-ZIP", "zip", "python3"))("Info-ZIP's zip", () => {
  const prepared = shared(
    Effect.gen(function* () {
      const directory = yield* fastDirectory
      const fs = yield* awkward
      const path = join(directory, "ours.zip")
      yield* Archive.exportArchiveOf(fs, path)
      run("python3", [
        "-c",
        `import os,sys,zipfile
z = zipfile.ZipFile(sys.argv[1])
for i in z.infolist():
    mode = i.external_attr >> 16
    at = os.path.join(sys.argv[2], i.filename)
    os.makedirs(os.path.dirname(at), exist_ok=True)
    if mode & 0o170000 == 0o120000: os.symlink(z.read(i).decode(), at); continue
    if i.is_dir(): os.makedirs(at, exist_ok=True)
    else: open(at, "wb").write(z.read(i))
for i in reversed(z.infolist()):
    if (i.external_attr >> 28) != 10: os.chmod(os.path.join(sys.argv[2], i.filename), i.external_attr >> 16 & 0o777)`,
        path,
        join(directory, "tree")
      ])
      // Info-ZIP marks names as UTF-8 only under a UTF-8 locale; without the mark the names would be read in another
      // encoding.
      Fs.rmSync(join(directory, "tree/files/日本"), { recursive: true })
      Fs.rmSync(join(directory, "tree/files/links/日本"))
      Fs.rmSync(join(directory, "tree/files/e\u0301"))
      const tree = join(directory, "tree")
      const expected = shapeOnDisk(join(tree, "files"))
      const files = Object.values(expected).filter(([kind]) => kind !== "directory").length
      const bytes = Number(
        run("python3", [
          "-c",
          `import os,sys
print(sum(os.lstat(os.path.join(d, f)).st_size for d, ds, fs in os.walk(sys.argv[1]) for f in fs + [x for x in ds if os.path.islink(os.path.join(d, x))]))`,
          join(tree, "files")
        ])
      )
      Fs.writeFileSync(
        join(tree, "manifest.json"),
        JSON.stringify({ version: "1", created_at: "2024-01-01T00:00:00Z", file_count: files, total_bytes: bytes })
      )
      return { directory, expected, files, tree }
    })
  )

  for (const [title, flags] of [
    ["with its default options", []],
    ["stored", ["-0"]],
    ["with 64-bit fields", ["-fz"]],
    ["without extra fields", ["-X"]],
    ["without entries for directories", ["-D"]]
  ] as ReadonlyArray<readonly [string, ReadonlyArray<string>]>) {
    it.live(`writes archives that an import accepts: ${title}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { directory, expected, files, tree } = yield* prepared
          const path = join(directory, `infozip${flags.join("")}.zip`)
          run("zip", ["-q", "-r", "-y", ...flags, path, "files", "manifest.json"], { cwd: tree })
          const found = yield* imported(path)
          assert.strictEqual(found.files, files)
          if (title.startsWith("without entries")) {
            const { nothing: _n, "nothing/in": _i, "nothing/in/here": _h, ...rest } = withoutModes(expected)
            assert.deepStrictEqual(withoutModes(found.shape), rest)
          } else assert.deepStrictEqual(found.shape, expected)
        })
      )
    )
  }

  it.live("writes encrypted archives that an import refuses", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const directory = yield* fastDirectory
        Fs.mkdirSync(join(directory, "files"))
        Fs.writeFileSync(join(directory, "files/secret"), noise(100))
        run("zip", ["-q", "-r", "-P", "password", "secret.zip", "files"], { cwd: directory })
        const error = yield* Effect.flip(Archive.importArchiveOf(yield* memory, join(directory, "secret.zip")))
        assert.strictEqual(error._tag === "ArchiveError" ? error.reason : error, "encrypted")
      })
    )
  )
})

const tarReading = `
import hashlib, json, sys, tarfile
out = {}
with tarfile.open(sys.argv[1]) as t:
    for i in t:
        if i.issym(): out[i.name] = ["symlink", None, i.linkname]
        elif i.isdir(): out[i.name] = ["directory", i.mode, ""]
        else: out[i.name] = ["file", i.mode, hashlib.sha256(t.extractfile(i).read()).hexdigest()]
    print(json.dumps(out))
`

describe.runIf(needs("tar archives of others, and ours elsewhere", "tar", "python3"))("tar:", () => {
  const made = shared(
    Effect.gen(function* () {
      const directory = yield* fastDirectory
      const fs = yield* awkward
      yield* fs.write(`${"long name ".repeat(12)}/${"x".repeat(200)}`, "long")
      yield* fs.symlink("links/long", `../${"long name ".repeat(12)}/${"x".repeat(200)}`)
      const path = join(directory, "ours.tar")
      Fs.writeFileSync(path, Buffer.concat(yield* Stream.runCollect(Archive.exportTarOf(fs))))
      const out = join(directory, "out")
      Fs.mkdirSync(out)
      run("tar", ["-xpf", path, "-C", out])
      return { directory, out, path, shape: yield* shapeOf(fs) }
    })
  )

  /** A copy of the tree with a hard link. The import turns the link into a separate file. */
  const linked = shared(
    Effect.gen(function* () {
      const { directory, out } = yield* made
      const both = join(directory, "both")
      run("cp", ["-a", out, both])
      Fs.linkSync(join(both, "one"), join(both, "zz another one"))
      return { both, directory, shape: shapeOnDisk(both) }
    })
  )

  it.live("GNU tar extracts the same tree from our archives, including modes and symlinks", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { out, shape } = yield* made
        assert.deepStrictEqual(shapeOnDisk(out), shape)
      })
    )
  )

  it.effect("Python's tarfile reads the same tree from our archives", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { path, shape } = yield* made
        assert.deepStrictEqual(
          JSON.parse(run("python3", ["-c", tarReading, path])),
          Object.fromEntries(
            Object.entries(shape).map(([name, [kind, mode, content]]) => [name, [kind, mode ?? null, content]])
          )
        )
      })
    )
  )

  for (const flags of [
    ["--format=gnu"],
    ["--format=posix"],
    ["--format=posix", "--numeric-owner", "--sort=name"],
    ["--format=gnu", "-z"],
    ["--format=posix", "-z"]
  ]) {
    it.live(`an import gives the same tree that GNU tar wrote: ${flags.join(" ")}`, () =>
      Effect.scoped(
        Effect.gen(function* () {
          const { both, directory, shape } = yield* linked
          const theirs = join(directory, `theirs${flags.join("")}`)
          run("tar", ["-c", ...flags, "-f", theirs, "-C", both, "."])
          const fs = yield* memory
          yield* fs.write("was/here", "before")
          const files = yield* Archive.importTarOf(fs, Stream.succeed(new Uint8Array(Fs.readFileSync(theirs))))
          assert.strictEqual(files, awkwardFiles + 3)
          assert.deepStrictEqual(yield* shapeOf(fs), shape)
        })
      )
    )
  }

  it.live("a host imports an archive from Python's tarfile whose entry names do not begin with ./", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { directory, out } = yield* made
        run("python3", [
          "-c",
          `import os,sys,tarfile
with tarfile.open(sys.argv[1], "w:gz") as t:
    for name in sorted(os.listdir(sys.argv[2])): t.add(os.path.join(sys.argv[2], name), name)`,
          join(directory, "theirs"),
          out
        ])
        const { port, root } = yield* host()
        const bytes = new Uint8Array(Fs.readFileSync(join(directory, "theirs")))
        yield* Archive.importTarOf(Filesystem.make(port), Stream.fromIterable([bytes.subarray(0, 1), bytes.subarray(1)]))
        assert.deepStrictEqual(shapeOnDisk(root), shapeOnDisk(out))
      })
    )
  )
})
