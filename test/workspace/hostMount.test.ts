import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { basename, join } from "node:path"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { around } from "../../src/port/Backend.ts"
import { picture } from "../../src/testing/Files.ts"
import * as HostMount from "../../src/workspace/HostMount.ts"
import * as TemporaryNames from "../../src/runtime/temporaryNames.ts"
import { grounds, host, memory } from "../agent/changing.ts"
import { machine, pictureOf, plant, refused } from "./mounting.ts"

const project = {
  "src/main.py": "print(1)\n",
  "src/lib/a.py": "a\n",
  "src/lib/b.txt": "b\n",
  "src/.hidden": "h",
  "docs/guide.md": "# Guide\n",
  "src/empty/nothing": null
} as const

describe("a mount of a directory", () => {
  for (const [name, ground] of Object.entries(grounds)) {
    it.live(`merges with existing files, and overwrites files with equal names: ${name}`, () =>
      Effect.gen(function* () {
        const root = yield* machine(project)
        const fs = yield* ground({ "src/main.py": "old", "src/kept": "kept", other: "other" })
        const previews = yield* HostMount.hydrate(fs, [{ hostPath: "src" }], { allowedRoots: [root] })
        const files = {
          "src/main.py": "print(1)\n",
          "src/lib/a.py": "a\n",
          "src/lib/b.txt": "b\n",
          "src/.hidden": "h",
          "src/kept": "kept",
          other: "other"
        }
        assert.deepStrictEqual(yield* pictureOf(fs), picture(files))
        assert.deepStrictEqual(previews, [
          {
            source: "src",
            target: "src",
            entries: ["src/.hidden", "src/lib/a.py", "src/lib/b.txt", "src/main.py"],
            files: 4,
            bytes: 14,
            leftOut: { count: 0, entries: [] }
          }
        ])
      })
    )
  }

  it.live("is placed at its relative path, at the last name of its absolute path, or at `mountPath` if given", () =>
    Effect.gen(function* () {
      const root = yield* machine(project)
      const targets: ReadonlyArray<readonly [mount: HostMount.HostMount, files: ReadonlyArray<string>]> = [
        [{ hostPath: "src/lib" }, ["src/lib/a.py", "src/lib/b.txt"]],
        [{ hostPath: "./src//lib/" }, ["src/lib/a.py", "src/lib/b.txt"]],
        [{ hostPath: join(root, "src/lib") }, ["lib/a.py", "lib/b.txt"]],
        [{ hostPath: "src/lib", mountPath: "x/./y/" }, ["x/y/a.py", "x/y/b.txt"]],
        [{ hostPath: "src/lib", mountPath: ["x y", "z"] }, ["x y/z/a.py", "x y/z/b.txt"]],
        [{ hostPath: "src/lib", mountPath: "/" }, ["a.py", "b.txt"]],
        [{ hostPath: "src/lib", mountPath: [] }, ["a.py", "b.txt"]],
        [{ hostPath: ".", include: ["docs/**"] }, ["docs/guide.md"]],
        [{ hostPath: root, include: ["docs/**"] }, [`${basename(root)}/docs/guide.md`]],
        [{ hostPath: "docs/guide.md" }, ["docs/guide.md"]],
        [{ hostPath: join(root, "docs/guide.md") }, ["guide.md"]],
        [{ hostPath: "docs/guide.md", mountPath: "x" }, ["x/guide.md"]],
        [{ hostPath: "docs/guide.md", mountPath: "." }, ["guide.md"]]
      ]
      for (const [mount, files] of targets) {
        const fs = make(yield* InMemory.make())
        const previews = yield* HostMount.hydrate(fs, [mount], { allowedRoots: [root] })
        const found = (yield* fs.glob("**")).matches.map(({ path }) => path as string)
        assert.deepStrictEqual(found, files, JSON.stringify(mount))
        assert.deepStrictEqual(previews[0]!.entries, files)
        assert.deepStrictEqual(yield* HostMount.plan([mount], { allowedRoots: [root] }), previews)
      }
    })
  )

  it.live("copies the files that `include` matches and `exclude` does not, and ignores blank globs", () =>
    Effect.gen(function* () {
      const root = yield* machine(project)
      const cases: ReadonlyArray<readonly [Partial<HostMount.HostMount>, ReadonlyArray<string>]> = [
        [{ include: ["*.py"] }, ["lib/a.py", "main.py"]],
        [{ include: ["./*.py"] }, ["main.py"]],
        [{ include: ["*.py", " "], exclude: ["lib/"] }, ["main.py"]],
        [{ include: ["", " \t"], exclude: [""] }, [".hidden", "lib/a.py", "lib/b.txt", "main.py"]],
        [{ exclude: ["lib", "!lib/a.py"] }, [".hidden", "main.py"]],
        [{ include: ["main.py"], exclude: ["main.py"] }, []],
        [{ include: ["src/main.py"] }, []],
        [{ include: ["lib/{a,c}.py", "main.{py,md}"] }, ["lib/a.py", "main.py"]],
        [{ include: ["{**/*.txt,**/main.*}"] }, ["lib/b.txt", "main.py"]],
        [{ exclude: ["{**/*.py,**/.hidden}"] }, ["lib/b.txt"]],
        [{ exclude: ["{**/lib/**,**/.hidden}"] }, ["main.py"]]
      ]
      for (const [globs, files] of cases) {
        const fs = make(yield* InMemory.make())
        yield* HostMount.hydrate(fs, [{ hostPath: "src", mountPath: ".", ...globs }], { allowedRoots: [root] })
        assert.deepStrictEqual(
          (yield* fs.glob("**")).matches.map(({ path }) => path as string),
          files,
          JSON.stringify(globs)
        )
      }
      const [file] = yield* HostMount.plan([{ hostPath: "src/main.py", include: ["*.md"] }], { allowedRoots: [root] })
      assert.strictEqual(file!.files, 0)
    })
  )

  it.live("keeps bytes and permission bits, even of replaced files, but not the modes of directories", () =>
    Effect.gen(function* () {
      const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 256)
      const root = yield* machine({ "d/tool": "#!/bin/sh\n", "d/bytes": bytes, "d/none": "", "d/sub/x": "x" })
      Fs.chmodSync(join(root, "d/tool"), 0o755)
      Fs.chmodSync(join(root, "d/none"), 0o400)
      Fs.chmodSync(join(root, "d/sub"), 0o711)
      for (const ground of [memory, host]) {
        const fs = yield* ground({ "d/tool": "old" })
        const [made] = yield* HostMount.hydrate(fs, [{ hostPath: "d" }], { allowedRoots: [root] })
        assert.deepStrictEqual((yield* fs.readBytes("d/bytes")).content, bytes)
        assert.strictEqual((yield* fs.readBytes("d/none")).content.length, 0)
        for (const [path, mode] of [
          ["d/tool", 0o755],
          ["d/none", 0o400],
          ["d/sub", 0o755]
        ] as const) {
          assert.strictEqual((yield* fs.stat(path)).mode! & 0o777, mode, path)
        }
        assert.strictEqual(made!.bytes, 300_000 + 10 + 1)
      }
    })
  )

  it.live("writes through the links of the target as an ordinary write does", () =>
    Effect.gen(function* () {
      const root = yield* machine({ "d/a": "new", "d/b": "new" })
      const fs = make(yield* InMemory.make())
      yield* fs.write("real/a", "old")
      yield* fs.symlink("d", "real")
      yield* fs.symlink("real/b", "../elsewhere")
      yield* HostMount.hydrate(fs, [{ hostPath: "d" }], { allowedRoots: [root] })
      const files = { d: { link: "real" }, "real/a": "new", "real/b": { link: "../elsewhere" }, elsewhere: "new" }
      assert.deepStrictEqual(yield* pictureOf(fs), picture(files))
    })
  )

  it.live("skips writes in progress, but copies other files whose names look temporary", () =>
    Effect.gen(function* () {
      const own = TemporaryNames.make()
      const root = yield* machine({ [`d/${own}`]: "half", "d/.~fsa-1234.tmp": "theirs", "d/a": "a" })
      const fs = yield* host({})
      yield* HostMount.hydrate(fs, [{ hostPath: "d" }], { allowedRoots: [root] })
      TemporaryNames.forget(own)
      assert.deepStrictEqual(yield* pictureOf(fs), picture({ "d/.~fsa-1234.tmp": "theirs", "d/a": "a" }))
    })
  )

  it.live("copies large files piece by piece", () =>
    Effect.gen(function* () {
      const root = yield* machine({ small: "x".repeat(1000) })
      const size = 8 * 1024 * 1024
      Fs.truncateSync(join(root, "small"), 1000)
      Fs.writeFileSync(join(root, "large"), "")
      Fs.truncateSync(join(root, "large"), size)
      const sizes: Array<number | undefined> = []
      const fs = yield* host({})
      const port = around(fs.port, (operation, next) => {
        if (operation._tag === "Write" && operation.path.includes("/new/")) sizes.push(operation.size)
        return next
      })
      yield* HostMount.hydrate(make(port), [{ hostPath: ".", mountPath: "d" }], { allowedRoots: [root] })
      assert.sameMembers(sizes, [1000, undefined])
      assert.strictEqual((yield* fs.stat("d/large")).sizeBytes, size)
    })
  )

  it.live("of 10,000 files is deterministic, in path order", () =>
    Effect.gen(function* () {
      const name = (i: number) => `d${i % 97}/f${(i * 7919) % 10_000}`
      const root = yield* machine(Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [name(i), `${i}`])))
      const fs = make(yield* InMemory.make())
      const mounts = [{ hostPath: ".", mountPath: "m" }]
      const [made] = yield* HostMount.hydrate(fs, mounts, { allowedRoots: [root] })
      const expected = Array.from({ length: 10_000 }, (_, i) => `m/${name(i)}`).sort()
      assert.deepStrictEqual(made!.entries, expected.slice(0, 20))
      assert.strictEqual(made!.files, 10_000)
      assert.deepStrictEqual(
        (yield* fs.glob("**")).matches.map(({ path }) => path as string),
        expected
      )
      assert.strictEqual(yield* fs.readString(`m/${name(4321)}`), "4321")
      assert.deepStrictEqual(yield* HostMount.plan(mounts, { allowedRoots: [root] }), [made!])
    })
  )
})

describe("several mounts", () => {
  const tree = { "one/same": "1", "one/d/x": "1", "two/same": "2", "two/other": "2", "three/d": "3", "four/same/y": "4" }

  it.live("are merged, and a later mount replaces files of an earlier mount", () =>
    Effect.gen(function* () {
      const root = yield* machine(tree)
      const to = (...names: ReadonlyArray<string>) => names.map((hostPath) => ({ hostPath, mountPath: "m" }))
      for (const [mounts, same] of [
        [to("one", "two"), "2"],
        [to("two", "one"), "1"],
        [to("two", "one", "two"), "2"]
      ] as const) {
        const fs = make(yield* InMemory.make())
        yield* HostMount.hydrate(fs, mounts, { allowedRoots: [root] })
        assert.deepStrictEqual(yield* pictureOf(fs), picture({ "m/same": same, "m/d/x": "1", "m/other": "2" }))
      }
    })
  )

  it.live("fail if one has a file where another has a directory", () =>
    Effect.gen(function* () {
      const root = yield* machine(tree)
      const fs = make(yield* InMemory.make())
      const to = (...names: ReadonlyArray<string>) => names.map((hostPath) => ({ hostPath, mountPath: "m" }))
      const over = yield* refused(fs, to("one", "three"), [root])
      assert.deepInclude({ ...over }, { _tag: "NotAFile", operation: "hydrate", path: "m/d" })
      const under = yield* refused(fs, to("one", "four"), [root])
      assert.deepInclude({ ...under }, { _tag: "NotADirectory", operation: "hydrate", path: "m/same/y" })
    })
  )

  it.live("have sources that are searched for in each allowed root in order", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* machine({ "a/x": "1" }), yield* machine({ "a/x": "2", "b/x": "2" })]
      const fs = make(yield* InMemory.make())
      yield* HostMount.hydrate(fs, [{ hostPath: "a" }, { hostPath: "b" }], { allowedRoots: [one, two] })
      assert.deepStrictEqual(yield* pictureOf(fs), picture({ "a/x": "1", "b/x": "2" }))
    })
  )

  it.live("copy nothing if one of them fails", () =>
    Effect.gen(function* () {
      const root = yield* machine(tree)
      const fs = yield* host({ "one/same": "old" })
      const error = yield* refused(fs, [{ hostPath: "one" }, { hostPath: "two", maxBytes: 1 }], [root])
      assert.deepInclude({ ...error }, { _tag: "MountError", hostPath: "two", reason: "budget" })
    })
  )
})

describe("the target of a link", () => {
  const tree = {
    "root/d/file": "f",
    "root/d/to-file": ["file"],
    "root/d/to-dir": ["../e"],
    "root/d/absolute": [""],
    "root/d/out": ["../../secret"],
    "root/d/out-dir": ["../../rooted"],
    "root/d/nowhere": ["missing"],
    "root/d/self": ["self"],
    "root/d/up": ["."],
    "root/e/in-e": "e",
    "root/e/back": ["../d"],
    secret: "secret",
    "rooted/secret": "secret"
  } as const

  const withAbsolute = Effect.gen(function* () {
    const { "root/d/absolute": _, ...others } = tree
    const top = yield* machine(others)
    plant(top, { "root/d/absolute": [join(top, "root/e/in-e")] })
    return join(top, "root")
  })

  it.live("is skipped and reported by default", () =>
    Effect.gen(function* () {
      const root = yield* withAbsolute
      const fs = make(yield* InMemory.make())
      const [made] = yield* HostMount.hydrate(fs, [{ hostPath: "d" }], { allowedRoots: [root] })
      assert.deepStrictEqual(yield* pictureOf(fs), picture({ "d/file": "f" }))
      const names = ["absolute", "nowhere", "out", "out-dir", "self", "to-dir", "to-file", "up"]
      assert.deepStrictEqual(made!.leftOut, { count: 8, entries: names.map((path) => ({ path, why: "link" as const })) })
      const [some] = yield* HostMount.plan([{ hostPath: "d", include: ["to-*"] }], { allowedRoots: [root] })
      assert.strictEqual(some!.leftOut.count, 2)
    })
  )

  it.live("is copied with followSymlinks if it is in the root, and loops are skipped", () =>
    Effect.gen(function* () {
      const root = yield* withAbsolute
      const fs = make(yield* InMemory.make())
      const [made] = yield* HostMount.hydrate(fs, [{ hostPath: "d", followSymlinks: true }], { allowedRoots: [root] })
      const files = { "d/file": "f", "d/to-file": "f", "d/absolute": "e", "d/to-dir/in-e": "e" }
      assert.deepStrictEqual(yield* pictureOf(fs), picture(files))
      assert.deepStrictEqual(made!.leftOut.entries, [
        { path: "nowhere", why: "dangling" },
        { path: "out", why: "outside" },
        { path: "out-dir", why: "outside" },
        { path: "self", why: "dangling" },
        { path: "to-dir/back", why: "loop" },
        { path: "up", why: "loop" }
      ])
    })
  )

  it.live("is refused if links lead to the same file by 2^40 paths", () =>
    Effect.gen(function* () {
      // Each level has two links to the next, which makes 2^40 paths to one file.
      const levels = Array.from({ length: 40 }, (_, i) => [
        [`l${i}/a`, [`../l${i + 1}`]],
        [`l${i}/b`, [`../l${i + 1}`]]
      ]).flat()
      const root = yield* machine({ ...Object.fromEntries(levels), "l40/file": "" })
      const fs = make(yield* InMemory.make())
      const error = yield* refused(fs, [{ hostPath: "l0", followSymlinks: true }], [root])
      assert.deepInclude({ ...error }, { _tag: "MountError", reason: "budget" })
    })
  )
})

describe("the fingerprint of mounts", () => {
  it("is equal for equal mounts in different notations", () => {
    const plain: HostMount.HostMount = { hostPath: "src", mountPath: "x", include: ["*.py"] }
    const written: HostMount.HostMount = {
      followSymlinks: false,
      maxBytes: Number.POSITIVE_INFINITY,
      exclude: [" "],
      include: ["*.py", ""],
      mountPath: ["x"],
      hostPath: "src"
    }
    assert.match(HostMount.fingerprint([plain]), /^[0-9a-f]{16}$/)
    assert.strictEqual(HostMount.fingerprint([plain]), HostMount.fingerprint([written]))
    // The first 16 digits of the SHA-256 of "[]", for an empty list of mounts.
    assert.strictEqual(HostMount.fingerprint([]), "4f53cda18c2baa0c")
  })

  it("differs for different mounts, and depends on their order", () => {
    const mounts: ReadonlyArray<ReadonlyArray<HostMount.HostMount>> = [
      [],
      [{ hostPath: "a" }],
      [{ hostPath: "b" }],
      [{ hostPath: "a" }, { hostPath: "b" }],
      [{ hostPath: "b" }, { hostPath: "a" }],
      [{ hostPath: "a", mountPath: "a" }],
      [{ hostPath: "a", mountPath: "" }],
      [{ hostPath: "a", mountPath: "a/b" }],
      [{ hostPath: "a", maxBytes: 0 }],
      [{ hostPath: "a", followSymlinks: true }],
      [{ hostPath: "a", include: ["x"] }],
      [{ hostPath: "a", exclude: ["x"] }],
      [{ hostPath: "a", exclude: ["x", "!x"] }],
      [{ hostPath: "a", exclude: ["!x", "x"] }],
      [{ hostPath: "" }]
    ]
    assert.strictEqual(new Set(mounts.map(HostMount.fingerprint)).size, mounts.length)
  })
})

describe("the rendered preview of a mount", () => {
  it.live("names ten entries and counts the others", () =>
    Effect.gen(function* () {
      const many = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`many/f${String(i).padStart(2, "0")}`, "xy"]))
      const root = yield* machine({ ...many, "one/a`b": "x", "one/l": ["x"], "none/d": null })
      const mounts = [{ hostPath: "many", mountPath: "m" }, { hostPath: "one" }, { hostPath: "none" }]
      const names = Array.from({ length: 10 }, (_, i) => `  - \`m/f0${i}\``)
      assert.strictEqual(
        HostMount.render(yield* HostMount.plan(mounts, { allowedRoots: [root] })),
        [
          "- `many` → `m`: 12 files, 24 bytes",
          ...names,
          "  - +2 more",
          "- `one` → `one`: 1 file, 1 byte; 1 entry left out",
          "  - `` one/a`b ``",
          "- `none` → `none`: 0 files, 0 bytes"
        ].join("\n")
      )
      assert.strictEqual(HostMount.render([]), "")
    })
  )
})

describe("a mount into the directory of its source", () => {
  it.live("copies only the files that existed before", () =>
    Effect.gen(function* () {
      const root = yield* machine({ a: "a", "d/b": "b" })
      const fs = make(yield* PosixHost.make({ root }))
      yield* HostMount.hydrate(fs, [{ hostPath: ".", mountPath: "d/copy" }], { allowedRoots: [root] })
      assert.deepStrictEqual(yield* pictureOf(fs), picture({ a: "a", "d/b": "b", "d/copy/a": "a", "d/copy/d/b": "b" }))
    })
  )
})

describe("an excluded file", () => {
  it.live("is not copied under the name of a link to it", () =>
    Effect.gen(function* () {
      const root = yield* machine({
        "src/conf/.env": "",
        "src/conf/open.txt": "",
        "src/conf/secret/key": "",
        "src/a.txt": "",
        "beside/.env": "",
        "beside/b.txt": "",
        "src/links/notes.txt": ["../conf/.env"],
        "src/links/key": ["../conf/secret/key"],
        "src/links/secrets": ["../conf/secret"],
        "src/links/conf": ["../conf"],
        "src/links/fine.txt": ["../a.txt"],
        "src/links/beside": ["../../beside"]
      })
      const mount = { hostPath: "src", mountPath: "/", exclude: [".env", "conf/secret"], followSymlinks: true }
      const [preview] = yield* HostMount.plan([mount], { allowedRoots: [root] })
      assert.deepStrictEqual(preview!.entries, [
        "a.txt",
        "conf/open.txt",
        "links/beside/b.txt",
        "links/conf/open.txt",
        "links/fine.txt"
      ])
    })
  )
})
