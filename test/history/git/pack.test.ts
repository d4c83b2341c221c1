import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { createCipheriv, createHash, randomBytes } from "node:crypto"
import * as Fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { emptyTreeId, encodeCommit, encodeName, encodeTree, type TreeEntry } from "../../../src/history/git/codec.ts"
import { idOf } from "../../../src/history/git/objects.ts"
import * as PackIndex from "../../../src/history/git/packIndex.ts"
import { open, type PackWriter } from "../../../src/history/git/packWriter.ts"
import { hasGit, saysNoGit } from "../../differential/engines.ts"

const temporary = Effect.acquireRelease(
  Effect.sync(() => Fs.mkdtempSync(join(tmpdir(), "fs-algebra-pack-"))),
  (directory) => Effect.sync(() => Fs.rmSync(directory, { recursive: true, force: true }))
)

const git = (directory: string, args: ReadonlyArray<string>, input?: Buffer | string): Buffer => {
  const { status, stderr, stdout } = spawnSync("git", ["--git-dir", directory, ...args], {
    input,
    maxBuffer: 2 ** 30,
    env: { PATH: process.env["PATH"], HOME: directory, LC_ALL: "C", GIT_CONFIG_NOSYSTEM: "1" }
  })
  assert.strictEqual(status, 0, `git ${args.join(" ")}: ${stderr}`)
  return stdout
}

/** Creates a bare repository. */
const store = Effect.tap(temporary, (directory) => Effect.sync(() => git(directory, ["init", "--quiet", "--bare"])))
const packsOf = (directory: string) => join(directory, "objects/pack")

const fsck = (directory: string) => {
  const { status, stderr, stdout } = spawnSync("git", ["--git-dir", directory, "fsck", "--full", "--strict", "--no-dangling"], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"], LC_ALL: "C" }
  })
  const said = (stdout + stderr).split("\n").filter((line) => line !== "" && !line.startsWith("notice: "))
  assert.deepStrictEqual({ status, said }, { status: 0, said: [] })
}

/** Reads the objects with one git process. */
const readBack = (directory: string, ids: ReadonlyArray<string>): ReadonlyMap<string, Buffer> => {
  const all = git(directory, ["cat-file", "--batch"], ids.join("\n") + "\n")
  const out = new Map<string, Buffer>()
  for (let at = 0; at < all.length;) {
    const end = all.indexOf(10, at)
    const [id, , size] = all.toString("latin1", at, end).split(" ")
    out.set(id!, all.subarray(end + 1, end + 1 + Number(size)))
    at = end + 2 + Number(size)
  }
  return out
}

const parts = (bytes: Uint8Array, size: number) =>
  Stream.fromIterable(
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
  )

/** Returns incompressible bytes, the same for the same seed. */
const noise = (size: number, seed = "seed") => {
  const cipher = createCipheriv("aes-128-ctr", createHash("md5").update(seed).digest(), Buffer.alloc(16))
  return cipher.update(Buffer.alloc(size))
}
const prose = (size: number) => Buffer.from("Lorem ipsum dolor sit amet, \r\n\t".repeat(size / 30 + 1)).subarray(0, size)

const between = (minimum: number, maximum: number) => Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))
const oneOf = <const A>(values: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.map(between(0, values.length - 1), (i) => values[i]!)

if (!hasGit) saysNoGit("packs that git reads")

describe.runIf(hasGit)("packs that git reads", () => {
  const sizes = [
    0, 1, 15, 16, 17, 95, 96, 97, 255, 256, 511, 512, 513, 2047, 2048, 2049, 8191, 8192, 8193, 32768, 32769, 65535, 65537,
    1048575, 1048577
  ]

  it.live("return every object byte for byte", () =>
    Effect.gen(function* () {
      const directory = yield* store
      const writer = yield* open(packsOf(directory))
      const bodies = new Map<string, Buffer>()
      for (const size of [...sizes, 3_000_000]) {
        for (const body of [noise(size), prose(size), Buffer.alloc(size)]) bodies.set(writer.add("blob", body), body)
        const streamed = Buffer.concat([prose(Math.floor(size / 2)), noise(Math.ceil(size / 2), "streamed")])
        bodies.set(yield* writer.addStream(size, parts(streamed, 70_001)), streamed)
        bodies.set(yield* writer.addStream(size, parts(noise(size, "alone"), 1_000_000)), noise(size, "alone"))
      }
      const name = yield* writer.finish
      assert.match(name!, /^pack-[0-9a-f]{40}$/)
      fsck(directory)
      const back = readBack(directory, [...bodies.keys()])
      for (const [id, body] of bodies) assert.isTrue(back.get(id)?.equals(body), `${id} of ${body.length} bytes`)
      const verified = git(directory, ["verify-pack", "-v", join(packsOf(directory), `${name}.idx`)]).toString()
      assert.include(verified, `non delta: ${bodies.size} objects`)
    }).pipe(Effect.scoped)
  )

  it.live("have the same index that git would make, even with 64-bit offsets", () =>
    Effect.gen(function* () {
      const directory = yield* store
      for (const wideFrom of [undefined, 0x8000, 29]) {
        const writer = yield* open(packsOf(directory), { wideFrom })
        for (let i = 0; i < 2000; i++) writer.add("blob", Buffer.from(`${wideFrom} ${i} ${"x".repeat(i % 300)}`))
        const pack = join(packsOf(directory), `${yield* writer.finish}`)
        const version = wideFrom === undefined ? "2" : `2,0x${(wideFrom - 1).toString(16)}`
        git(directory, [
          "index-pack",
          "--strict",
          `--index-version=${version}`,
          "-o",
          join(directory, "their.idx"),
          `${pack}.pack`
        ])
        assert.isTrue(Fs.readFileSync(`${pack}.idx`).equals(Fs.readFileSync(join(directory, "their.idx"))))
        Fs.unlinkSync(join(directory, "their.idx"))
        const ids = git(directory, ["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"])
          .toString()
          .trim()
          .split("\n")
        const index = yield* PackIndex.open(packsOf(directory))
        assert.isTrue(ids.every(index.has))
      }
      fsck(directory)
    }).pipe(Effect.scoped)
  )

  const pieces = [
    "a",
    "b",
    "-",
    ".",
    "é",
    "😀",
    " ",
    "\\",
    ":",
    "\u200c",
    ".git",
    "git~1",
    ".gitmodules",
    "%fs-algebra%",
    "modes",
    "\u2028"
  ] as const
  const segment = Arbitrary.map(Arbitrary.array(oneOf(pieces), { minLength: 1, maxLength: 3 }), (parts) => {
    const name = parts.join("")
    return name === "." || name === ".." ? "\0ff0a" : name
  })
  const mode = oneOf([undefined, 0o644, 0o755, 0o600, 0o700, 0, 0o777, 0o555])
  const content = oneOf(["", "a\r\n", "[core]\n\tpath = x", "*.txt filter=x", "x".repeat(5000), noise(300).toString("latin1")])
  type Made = { readonly kind: "file" | "symlink"; readonly mode: number | undefined; readonly text: string } | Directory
  interface Directory {
    readonly kind: "directory"
    readonly mode: number | undefined
    readonly entries: ReadonlyMap<string, Made>
  }
  const leaf = Arbitrary.map(Arbitrary.all([oneOf(["file", "file", "symlink"]), mode, content]), ([kind, mode, text]): Made =>
    kind === "file" ? { kind, mode, text } : { kind, mode: undefined, text: text || "../elsewhere" }
  )
  const directoryOf = (child: Arbitrary.Arbitrary<Made>): Arbitrary.Arbitrary<Directory> =>
    Arbitrary.map(Arbitrary.all([mode, Arbitrary.array(Arbitrary.all([segment, child]), { maxLength: 6 })]), ([mode, all]) => ({
      kind: "directory",
      mode,
      entries: new Map(all)
    }))
  const level = (child: Arbitrary.Arbitrary<Made>): Arbitrary.Arbitrary<Made> =>
    Arbitrary.flatMap(oneOf([leaf, directoryOf(child)]), (choice: Arbitrary.Arbitrary<Made>) => choice)
  const tree = directoryOf(level(level(leaf)))

  /** Adds a directory to the pack, and records the lines that `git ls-tree -r -t -z` must print. */
  const put = (writer: PackWriter, { entries, mode }: Directory, way: Buffer, expected: Map<string, string>): string => {
    const out = new Map<string, TreeEntry>()
    let needsModes = mode !== undefined && mode !== 0o755
    for (const [name, made] of entries) {
      const path = Buffer.concat([way, encodeName(name)])
      const id =
        made.kind === "directory"
          ? put(writer, made, Buffer.concat([path, Buffer.from("/")]), expected)
          : writer.add("blob", Buffer.from(made.text))
      out.set(
        name,
        made.kind === "file" && made.mode !== undefined ? { kind: "file", mode: made.mode, id } : { kind: made.kind, id }
      )
      const isProgram = made.kind === "file" && made.mode !== undefined && (made.mode & 0o100) !== 0
      needsModes ||= made.kind === "file" && made.mode !== undefined && made.mode !== 0o644 && made.mode !== 0o755
      const gitMode = { file: isProgram ? "100755 blob" : "100644 blob", symlink: "120000 blob", directory: "040000 tree" }
      expected.set(path.toString("latin1"), `${gitMode[made.kind]} ${id}`)
    }
    const { body, modes } = encodeTree(out, mode)
    assert.strictEqual(modes !== undefined, needsModes)
    if (modes !== undefined) {
      const id = writer.add("blob", modes)
      expected.set(`${way.toString("latin1")}%fs-algebra%modes`, `100644 blob ${id}`)
    }
    return writer.add("tree", body)
  }

  it.live.prop(
    "contain trees with every unusual name, mode, symlink and empty directory",
    [tree],
    ([tree]) =>
      Effect.gen(function* () {
        const directory = yield* store
        const writer = yield* open(packsOf(directory), { isDurable: false })
        const expected = new Map<string, string>()
        const top = put(writer, tree, Buffer.alloc(0), expected)
        const id = writer.add("commit", encodeCommit({ tree: top, createdAt: 1_700_000_000_001, message: "all of it" }))
        yield* writer.finish
        git(directory, ["update-ref", "refs/snapshots/one", id])
        fsck(directory)
        const listed = git(directory, ["ls-tree", "-r", "-t", "-z", "refs/snapshots/one"]).toString("latin1")
        const lines = listed
          .split("\0")
          .slice(0, -1)
          .map((line) => line.split("\t") as [string, string])
        assert.deepStrictEqual(
          lines.map(([what, path]) => `${path} ${what}`).sort(),
          [...expected].map(([path, what]) => `${path} ${what}`).sort()
        )
        assert.include(
          git(directory, ["log", "--format=%an %at %s", "refs/snapshots/one"]).toString(),
          "fs-algebra 1700000000 all of it"
        )
      }).pipe(Effect.scoped),
    { arbitrary: { runs: 40 } }
  )

  it.live("of two concurrent writers with common objects disturb neither each other nor git", () =>
    Effect.gen(function* () {
      const directory = yield* store
      const [a, b] = [yield* open(packsOf(directory)), yield* open(packsOf(directory))]
      const ids: Array<string> = []
      for (let i = 0; i < 300; i++) {
        ids.push(a.add("blob", Buffer.from(`a${i % 200}`)), b.add("blob", Buffer.from(`${i % 2 ? "a" : "b"}${i}`)))
        if (i % 100 === 0)
          assert.strictEqual(git(directory, ["cat-file", "--batch-all-objects", "--batch-check"]).toString(), "")
      }
      fsck(directory)
      yield* Effect.all([a.finish, b.finish], { concurrency: 2 })
      fsck(directory)
      assert.strictEqual(readBack(directory, [...new Set(ids)]).size, new Set(ids).size)
    }).pipe(Effect.scoped)
  )

  it.live("of the same content exist once", () =>
    Effect.gen(function* () {
      const directory = yield* store
      const names: Array<string | undefined> = []
      for (let i = 0; i < 2; i++) {
        const writer = yield* open(packsOf(directory))
        writer.add("blob", Buffer.from("same"))
        names.push(yield* writer.finish)
      }
      assert.strictEqual(names[0], names[1])
      assert.deepStrictEqual(Fs.readdirSync(packsOf(directory)).sort(), [`${names[0]}.idx`, `${names[0]}.pack`])
      fsck(directory)
    }).pipe(Effect.scoped)
  )

  it.live("of a killed writer are removed by git prune", () =>
    Effect.gen(function* () {
      const directory = yield* store
      const source = fileURLToPath(new URL("../../../src/history/git/packWriter.ts", import.meta.url))
      const program = `
        import * as Effect from "effect/Effect"
        import { open } from ${JSON.stringify(source)}
        const writer = await Effect.runPromise(open(${JSON.stringify(packsOf(directory))}))
        for (let i = 0; i < 30; i++) writer.add("blob", Buffer.alloc(100_000, String(i)))
        process.stdout.write("ready")
        setInterval(() => {}, 1000)`
      const child = spawn(process.execPath, ["--input-type=module-typescript", "--eval", program], {
        cwd: fileURLToPath(new URL("../../..", import.meta.url)),
        stdio: ["ignore", "pipe", "inherit"]
      })
      yield* Effect.promise(() => new Promise((resolve) => child.stdout.once("data", resolve)))
      child.kill("SIGKILL")
      yield* Effect.promise(() => new Promise((resolve) => child.once("exit", resolve)))
      assert.strictEqual(Fs.readdirSync(packsOf(directory)).length, 1)
      fsck(directory)
      git(directory, ["prune", "--expire=now"])
      assert.deepStrictEqual(Fs.readdirSync(packsOf(directory)), [])
    }).pipe(Effect.scoped)
  )
})

describe("packs", () => {
  const filled = Effect.fnUntraced(function* (writer: PackWriter) {
    for (let i = 0; i < 50; i++) writer.add("blob", Buffer.from(`content ${i}`))
    yield* writer.addStream(2_000_000, parts(noise(2_000_000), 65_536))
  })
  /** The name of a pack that was written without a failure or an interruption. */
  const usual = Effect.scoped(
    Effect.flatMap(temporary, (directory) =>
      Effect.flatMap(open(directory), (writer) => Effect.andThen(filled(writer), writer.finish))
    )
  )

  it.live("assign the same ids as git to objects of every size", () =>
    Effect.gen(function* () {
      const writer = yield* open(yield* temporary)
      for (const size of [0, 10, 32_767, 32_768, 32_769, 200_000]) {
        const body = noise(size)
        const expected = createHash("sha1").update(`blob ${size}\0`).update(body).digest("hex")
        assert.strictEqual(idOf("blob", body), expected)
        assert.strictEqual(writer.add("blob", body), expected)
        assert.strictEqual(yield* writer.addStream(size, parts(body, 999)), expected)
        assert.isTrue(writer.has(expected))
      }
      assert.strictEqual(idOf("tree", Buffer.alloc(0)), emptyTreeId)
      yield* writer.discard
    }).pipe(Effect.scoped)
  )

  it.live("are read-only, as are their indexes", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const writer = yield* open(directory)
      writer.add("blob", Buffer.from("a"))
      const name = yield* writer.finish
      for (const end of ["pack", "idx"]) assert.strictEqual(Fs.statSync(join(directory, `${name}.${end}`)).mode & 0o777, 0o444)
    }).pipe(Effect.scoped)
  )

  it.live("without objects leave no file", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      assert.isUndefined(yield* (yield* open(directory)).finish)
      assert.deepStrictEqual(Fs.readdirSync(directory), [])
    }).pipe(Effect.scoped)
  )

  it.live("that are abandoned leave no file", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const writer = yield* open(directory)
      yield* filled(writer)
      const written = Fs.readdirSync(directory).reduce((sum, name) => sum + Fs.statSync(join(directory, name)).size, 0)
      assert.isAbove(written, 500_000)
      yield* writer.discard
      yield* writer.discard
      assert.deepStrictEqual(Fs.readdirSync(directory), [])
    }).pipe(Effect.scoped)
  )

  it.live.each([
    [
      "too few bytes",
      3_000_000,
      parts(noise(2_999_999, "other"), 65_536),
      { _tag: "SizeMismatch", expected: 3_000_000, actual: 2_999_999 }
    ],
    [
      "too many bytes",
      3_000_000,
      parts(noise(3_000_001, "other"), 100_000),
      { _tag: "SizeMismatch", expected: 3_000_000, actual: 3_000_001 }
    ],
    ["no bytes", 1, Stream.empty, { _tag: "SizeMismatch", expected: 1, actual: 0 }],
    ["bytes for a size of 0", 0, parts(noise(5), 5), { _tag: "SizeMismatch", expected: 0, actual: 5 }],
    ["bytes that fails", 3_000_000, Stream.concat(parts(noise(2_000_000, "other"), 65_536), Stream.fail("gone")), "gone"]
  ] as const)("are unchanged by a stream of %s", ([, size, stream, expected]) =>
    Effect.gen(function* () {
      const writer = yield* open(yield* temporary)
      assert.deepStrictEqual(yield* Effect.flip(writer.addStream<string, never>(size, stream)), expected)
      yield* filled(writer)
      assert.deepStrictEqual(yield* Effect.flip(writer.addStream<string, never>(size, stream)), expected)
      assert.strictEqual(yield* writer.finish, yield* usual)
    }).pipe(Effect.scoped)
  )

  it.live("are unchanged by an interrupted stream", () =>
    Effect.gen(function* () {
      const writer = yield* open(yield* temporary)
      const started = yield* Latch.make()
      const endless = Stream.concat(
        parts(noise(2_500_000, "other"), 65_536),
        Stream.fromEffect(Effect.andThen(started.open, Effect.never))
      )
      const fiber = yield* Effect.forkChild(writer.addStream(5_000_000, endless))
      yield* started.await
      yield* Fiber.interrupt(fiber)
      yield* filled(writer)
      assert.strictEqual(yield* writer.finish, yield* usual)
    }).pipe(Effect.scoped)
  )

  it.live("contain one copy of content that is added and streamed concurrently", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const writer = yield* open(directory)
      const body = noise(2_000_000)
      const all = yield* Effect.all(
        [1, 2, 3].map((n) => writer.addStream(body.length, parts(body, n * 100_000))),
        { concurrency: 3 }
      )
      for (const id of all) assert.strictEqual(writer.add("blob", body), id)
      yield* writer.finish
      const index = yield* PackIndex.open(directory)
      assert.isTrue(index.has(all[0]!))
      // The last entry of the fan-out table is the number of objects.
      const written = Fs.readdirSync(directory).find((name) => name.endsWith(".idx"))
      assert.strictEqual(Fs.readFileSync(join(directory, written!)).readUInt32BE(8 + 255 * 4), 1)
      const pack = Fs.readdirSync(directory).find((name) => name.endsWith(".pack"))
      assert.isBelow(Fs.statSync(join(directory, pack!)).size, 2_100_000)
    }).pipe(Effect.scoped)
  )

  it.live.skipIf(!hasGit)("accept objects and streams while a stream is running", () =>
    Effect.gen(function* () {
      const directory = yield* store
      const writer = yield* open(packsOf(directory))
      const bodies = new Map<string, Buffer>()
      const add = (body: Buffer) => bodies.set(writer.add("blob", body), body)
      const big = [1, 2, 3].map((n) => Buffer.concat([prose(700_000), noise(2_000_000, `big ${n}`)]))
      const withOthers = (body: Buffer, n: number) =>
        Stream.tap(parts(body, 50_000), (part) => Effect.sync(() => add(noise(20_000, `${n} ${part.byteOffset} ${part[0]}`))))
      const ids = yield* Effect.all(
        big.map((body, n) => writer.addStream(body.length, withOthers(body, n))),
        { concurrency: 3 }
      )
      ids.forEach((id, i) => bodies.set(id, big[i]!))
      yield* writer.finish
      fsck(directory)
      assert.deepStrictEqual(
        Fs.readdirSync(packsOf(directory)).filter((name) => name.startsWith("tmp_")),
        []
      )
      const back = readBack(directory, [...bodies.keys()])
      for (const [id, body] of bodies) assert.isTrue(back.get(id)?.equals(body))
    }).pipe(Effect.scoped)
  )

  it.live("that are interrupted while they finish are written whole or not at all", () =>
    Effect.gen(function* () {
      const seen = new Set<number>()
      for (let turns = 0; turns < 30; turns++) {
        const directory = yield* temporary
        const writer = yield* open(directory)
        yield* filled(writer)
        const fiber = yield* Effect.forkChild(writer.finish, { startImmediately: true })
        for (let i = 0; i < turns; i++) yield* Effect.yieldNow
        yield* Fiber.interrupt(fiber)
        const files = Fs.readdirSync(directory)
        seen.add(files.length)
        if (files.length > 0) {
          const name = yield* usual
          assert.deepStrictEqual(files.sort(), [`${name}.idx`, `${name}.pack`])
        }
      }
      assert.isTrue(seen.has(0))
    }).pipe(Effect.scoped)
  )

  it.live("whose index cannot be moved into place leave no file", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const blocked = `${yield* usual}.idx`
      Fs.mkdirSync(join(directory, blocked))
      const writer = yield* open(directory)
      yield* filled(writer)
      const fault = yield* Effect.flip(writer.finish)
      assert.strictEqual(fault.reason, "io")
      assert.deepStrictEqual(Fs.readdirSync(directory), [blocked])
    }).pipe(Effect.scoped)
  )

  it.live("cannot be opened in a missing directory", () =>
    Effect.gen(function* () {
      const fault = yield* Effect.flip(open(join(yield* temporary, "none")))
      assert.deepStrictEqual({ ...fault, detail: "" }, { _tag: "StoreFault", reason: "io", detail: "" })
      assert.include(fault.detail, "ENOENT")
    }).pipe(Effect.scoped)
  )
})

const canMount = (() => {
  const at = Fs.mkdtempSync(join(tmpdir(), "fs-algebra-mount-"))
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", at], { stdio: "ignore" })
    execFileSync("umount", [at])
    return true
  } catch {
    return false
  } finally {
    Fs.rmdirSync(at)
  }
})()

describe.skipIf(!canMount)("packs on a disk of four megabytes (skipped where nothing can be mounted)", () => {
  const disk = Effect.flatMap(temporary, (at) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        execFileSync("mount", ["-t", "tmpfs", "-o", "size=4m", "tmpfs", at])
        return at
      }),
      () => Effect.sync(() => execFileSync("umount", [at]))
    )
  )
  const isFull = (fault: unknown): boolean =>
    typeof fault === "object" &&
    fault !== null &&
    "detail" in fault &&
    String(fault.detail).includes("the disk is full (ENOSPC)")

  it.live("that becomes full while objects are added fail at the next stream and at the end, and leave no file", () =>
    Effect.gen(function* () {
      const directory = yield* disk
      const writer = yield* open(directory)
      for (let i = 0; i < 60; i++) assert.match(writer.add("blob", randomBytes(100_000)), /^[0-9a-f]{40}$/)
      assert.isTrue(isFull(yield* Effect.flip(writer.addStream(1, parts(Buffer.from("a"), 1)))))
      const fault = yield* Effect.flip(writer.finish)
      assert.strictEqual(fault.reason, "io")
      assert.isTrue(isFull(fault))
      assert.deepStrictEqual(Fs.readdirSync(directory), [])
    }).pipe(Effect.scoped)
  )

  it.live("that becomes full during a stream keep their other objects", () =>
    Effect.gen(function* () {
      const directory = yield* disk
      const writer = yield* open(directory)
      const id = writer.add("blob", Buffer.from("kept"))
      assert.isTrue(isFull(yield* Effect.flip(writer.addStream(6_000_000, parts(noise(6_000_000), 100_000)))))
      yield* writer.finish
      assert.isTrue((yield* PackIndex.open(directory)).has(id))
    }).pipe(Effect.scoped)
  )

  it.live("that becomes full while they finish leave no file", () =>
    Effect.gen(function* () {
      const directory = yield* disk
      const writer = yield* open(directory)
      // With tiny objects the index is larger than the pack and does not fit.
      for (let i = 0; i < 30_000; i++) writer.add("blob", Buffer.from(String(i)))
      Fs.writeFileSync(join(directory, "other"), Buffer.alloc(3_000_000))
      assert.isTrue(isFull(yield* Effect.flip(writer.finish)))
      assert.deepStrictEqual(Fs.readdirSync(directory), ["other"])
    }).pipe(Effect.scoped)
  )
})

describe("indexes of packs", () => {
  const write = Effect.fnUntraced(function* (directory: string, names: ReadonlyArray<string>) {
    const writer = yield* open(directory, { isDurable: false })
    const ids = names.map((name) => writer.add("blob", Buffer.from(name)))
    return { ids, file: join(directory, `${yield* writer.finish}`) }
  })
  const range = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`)
  const idsOf = (names: ReadonlyArray<string>) =>
    names.map((name) => createHash("sha1").update(`blob ${name.length}\0${name}`).digest("hex"))

  it.live("list all objects of all packs and no others", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      for (const prefix of ["a", "b", "c"]) yield* write(directory, range(prefix, 3000))
      const index = yield* PackIndex.open(directory)
      assert.lengthOf(index.packs(), 3)
      for (const prefix of ["c", "a", "b"]) assert.isTrue(idsOf(range(prefix, 3000)).every(index.has))
      assert.isFalse(idsOf(range("d", 9000)).some(index.has))
      // The first comparison looks only at the beginning of an id.
      for (const id of idsOf(range("a", 100)))
        for (const digit of ["0", "f"]) assert.isFalse(index.has(id.slice(0, 8) + digit.repeat(32)))
      for (const id of ["", "x", "0".repeat(40), "f".repeat(40), "f".repeat(41), idsOf(["a1"])[0]!.toUpperCase()])
        assert.isFalse(index.has(id))
    }).pipe(Effect.scoped)
  )

  it.live("notice added and removed packs when they are refreshed", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const index = yield* PackIndex.open(directory)
      assert.deepStrictEqual(index.packs(), [])
      const { file, ids } = yield* write(directory, ["a"])
      assert.isFalse(index.has(ids[0]!))
      yield* index.refresh
      assert.isTrue(index.has(ids[0]!))
      // An index without its pack does not count.
      Fs.unlinkSync(`${file}.pack`)
      yield* index.refresh
      assert.isFalse(index.has(ids[0]!))
    }).pipe(Effect.scoped)
  )

  it.live("ignore an index that is a dangling link", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const { ids } = yield* write(directory, ["a"])
      Fs.symlinkSync("nowhere", join(directory, "pack-x.idx"))
      Fs.writeFileSync(join(directory, "pack-x.pack"), "")
      assert.isTrue((yield* PackIndex.open(directory)).has(ids[0]!))
    }).pipe(Effect.scoped)
  )

  /** Recomputes the checksum, as an attacker would. */
  const resealed = (bytes: Buffer): Buffer => {
    createHash("sha1")
      .update(bytes.subarray(0, -20))
      .digest()
      .copy(bytes, bytes.length - 20)
    return bytes
  }
  const damages: ReadonlyArray<[string, (bytes: Buffer) => Buffer]> = [
    ["is empty", () => Buffer.alloc(0)],
    ["is truncated", (bytes) => bytes.subarray(0, -1)],
    ["is truncated to its beginning", (bytes) => bytes.subarray(0, 500)],
    ["has additional bytes", (bytes) => Buffer.concat([bytes, Buffer.alloc(8)])],
    ["is of another version", (bytes) => Buffer.concat([bytes.subarray(0, 7), Buffer.from([3]), bytes.subarray(8)])],
    ["is not an index", () => noise(5000)],
    ["counts too many objects", (bytes) => (bytes.writeUInt32BE(0xffffffff, 8 + 255 * 4), resealed(bytes))],
    ["counts too few objects", (bytes) => (bytes.writeUInt32BE(1, 8 + 255 * 4), resealed(bytes))],
    ["has decreasing counts", (bytes) => (bytes.writeUInt32BE(100_000, 8), resealed(bytes))]
  ]
  it.live.each(damages)("fail as corrupt, with the path of the index, when an index %s", ([, damage]) =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const { file } = yield* write(directory, range("a", 500))
      Fs.chmodSync(`${file}.idx`, 0o600)
      Fs.writeFileSync(`${file}.idx`, damage(Fs.readFileSync(`${file}.idx`)))
      const fault = yield* Effect.flip(PackIndex.open(directory))
      assert.strictEqual(fault.reason, "corrupt")
      assert.include(fault.detail, `${file}.idx`)
    }).pipe(Effect.scoped)
  )

  it.live.prop(
    "fail as corrupt when an index has any wrong byte",
    [between(0, 1032 + 28 * 20 + 39), between(1, 255)],
    ([at, change]) =>
      Effect.gen(function* () {
        const directory = yield* temporary
        const { file } = yield* write(directory, range("a", 20))
        const bytes = Fs.readFileSync(`${file}.idx`)
        bytes[at]! ^= change
        Fs.chmodSync(`${file}.idx`, 0o600)
        Fs.writeFileSync(`${file}.idx`, bytes)
        assert.strictEqual((yield* Effect.flip(PackIndex.open(directory))).reason, "corrupt")
      }).pipe(Effect.scoped)
  )

  it.live("fail as unavailable in a missing directory", () =>
    Effect.gen(function* () {
      const fault = yield* Effect.flip(PackIndex.open(join(yield* temporary, "none")))
      assert.strictEqual(fault.reason, "unavailable")
    }).pipe(Effect.scoped)
  )
})
