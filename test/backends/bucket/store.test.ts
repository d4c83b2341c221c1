/** Tests the objects that Bucket stores, and how it handles keys of other programs that it would not store itself. */
import { assert, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { make } from "../../../src/filesystem/Filesystem.ts"
import type { FsPath } from "../../../src/model/FsPath.ts"
import {
  aws,
  describeMoto,
  describeRadosgw,
  freshPrefix,
  keysBelow,
  moto,
  openAt,
  putForeign,
  radosgw,
  urlOf
} from "./servers.ts"

const MiB = 1024 * 1024

for (const [name, describeServer, server] of [
  ["moto", describeMoto, moto],
  ["radosgw", describeRadosgw, radosgw]
] as const) {
  describeServer(`Bucket on ${name}`, () => {
    const ground = Effect.gen(function* () {
      const at = yield* Effect.promise(server)
      const prefix = freshPrefix()
      const port = yield* openAt(at, { prefix })
      return {
        at,
        prefix,
        port,
        fs: make(port),
        keys: Effect.promise(() => keysBelow(at, prefix)),
        foreign: (key: string, body = "theirs") => Effect.promise(() => putForeign(at, prefix + key, body))
      }
    })

    it.live("stores each file as one object, and an empty directory as a marker", () =>
      Effect.gen(function* () {
        const { at, fs, keys, prefix } = yield* ground
        yield* fs.write("docs/ü +&=?#'()*!.md", "text")
        yield* fs.mkdir("empty")
        assert.deepStrictEqual(
          (yield* keys).filter((key) => !key.endsWith("/")),
          ["docs/ü +&=?#'()*!.md"]
        )
        const answer = yield* Effect.promise(() => aws.fetch(urlOf(at, `${prefix}docs/ü +&=?#'()*!.md`)))
        assert.strictEqual(yield* Effect.promise(() => answer.text()), "text")
        assert.include(yield* keys, "empty/")
      })
    )

    it.live("leaves no object of its test of conditional writes", () =>
      Effect.gen(function* () {
        const { keys } = yield* ground
        assert.deepStrictEqual(yield* keys, [])
      })
    )

    it.live("keeps modes, times and links as metadata if `metadata` is true, and lists links as files if it is false", () =>
      Effect.gen(function* () {
        const { at, fs, prefix } = yield* ground
        const kept = make(yield* openAt(at, { prefix, metadata: true }))
        const modifiedAt = DateTime.makeUnsafe(1_600_000_000_123)
        yield* kept.write("run", "x")
        yield* kept.mkdir("private")
        yield* kept.symlink("private/ü ln", "../run")
        yield* kept.setAttributes("run", { mode: 0o755, modifiedAt })
        yield* kept.setAttributes("private", { mode: 0o700 })
        const { headers } = yield* Effect.promise(() => aws.fetch(urlOf(at, `${prefix}run`), { method: "HEAD" }))
        assert.strictEqual(headers.get("x-amz-meta-fs-algebra-mode"), "755")
        assert.strictEqual(headers.get("x-amz-meta-fs-algebra-mtime"), "1600000000123")
        const again = make(yield* openAt(at, { prefix, metadata: true }))
        assert.deepInclude(yield* again.stat("run"), { mode: 0o755, modifiedAt, kind: "file" })
        assert.deepInclude(yield* again.stat("private"), { mode: 0o700, kind: "directory" })
        assert.strictEqual(yield* again.readString("private/ü ln"), "x")
        assert.deepStrictEqual(
          (yield* again.list("private")).map(({ kind, sizeBytes }) => ({ kind, sizeBytes })),
          [{ kind: "symlink", sizeBytes: 6 }]
        )
        assert.strictEqual((yield* fs.stat("private/ü ln")).kind, "file")
        assert.match(yield* fs.readString("private/ü ln"), /^fs-algebra symlink to \.\.%2Frun\n+$/)
        assert.strictEqual((yield* Effect.flip(fs.readLink("private/ü ln")))._tag, "Unsupported")
      })
    )

    it.live("treats an object with invalid metadata as a file without metadata", () =>
      Effect.gen(function* () {
        const { at, prefix } = yield* ground
        const kept = make(yield* openAt(at, { prefix, metadata: true }))
        const forged = [
          { mode: "99", mtime: "soon", link: "%zz" },
          { mode: "-1", mtime: "9".repeat(16), link: "" },
          { mode: "77777", mtime: "1e3", link: "a%00b" },
          { mode: "0x1ff", mtime: "", link: "%ED%A0%80" }
        ]
        for (const [index, metadata] of forged.entries()) {
          const headers = Object.fromEntries(
            Object.entries(metadata).map(([name, value]) => [`x-amz-meta-fs-algebra-${name}`, value])
          )
          const body = "x".repeat(1067)
          const { status } = yield* Effect.promise(() =>
            aws.fetch(urlOf(at, `${prefix}f${index}`), { method: "PUT", body, headers })
          )
          assert.strictEqual(status, 200)
          const stat = yield* kept.stat(`f${index}`)
          assert.deepInclude(stat, { kind: "file", mode: 0o644, sizeBytes: 1067 })
          assert.isAbove(DateTime.toEpochMillis(stat.modifiedAt!), Date.now() - 86_400_000)
        }
        assert.deepStrictEqual(new Set((yield* kept.list()).map(({ kind }) => kind)), new Set(["file"]))
      })
    )

    it.live("refuses a link whose target is too long for metadata", () =>
      Effect.gen(function* () {
        const at = yield* Effect.promise(server)
        const kept = make(yield* openAt(at, { prefix: freshPrefix(), metadata: true }))
        assert.strictEqual((yield* Effect.flip(kept.symlink("ln", "ü".repeat(300))))._tag, "PathTooLong")
        assert.deepStrictEqual(yield* kept.list(), [])
      })
    )

    it.live("changes the mode of a file and keeps its content, its type and the metadata of other programs", () =>
      Effect.gen(function* () {
        const at = yield* Effect.promise(server)
        for (const append of [10, 100]) {
          const prefix = freshPrefix()
          const kept = make(yield* openAt(at, { prefix, metadata: true }, { sizes: { append } }))
          const headers = { "content-type": "image/png", "cache-control": "no-store", "x-amz-meta-owner": "anna" }
          yield* Effect.promise(() =>
            aws.fetch(urlOf(at, `${prefix}dot.png`), { method: "PUT", body: "x".repeat(11), headers })
          )
          yield* kept.setAttributes("dot.png", { mode: 0o600 })
          yield* kept.copy("dot.png", "copy.png")
          const answer = yield* Effect.promise(() => aws.fetch(urlOf(at, `${prefix}dot.png`)))
          for (const [name, value] of Object.entries(headers)) assert.strictEqual(answer.headers.get(name), value)
          assert.strictEqual(yield* Effect.promise(() => answer.text()), "x".repeat(11))
          assert.deepInclude(yield* kept.stat("copy.png"), { mode: 0o600, sizeBytes: 11 })
        }
      })
    )

    it.live("treats an object with the metadata of a link but a different size as a file in every call", () =>
      Effect.gen(function* () {
        const at = yield* Effect.promise(server)
        const prefix = freshPrefix()
        const kept = make(yield* openAt(at, { prefix, metadata: true }))
        const headers = { "x-amz-meta-fs-algebra-link": "target" }
        yield* Effect.promise(() => aws.fetch(urlOf(at, `${prefix}odd`), { method: "PUT", body: "hit", headers }))
        assert.strictEqual((yield* kept.lstat("odd")).kind, "file")
        assert.strictEqual((yield* kept.list())[0]?.kind, "file")
        assert.strictEqual((yield* kept.grep("hit")).matches.length, 1)
      })
    )

    it.live("fails a long stream with EAGAIN if the mode changes meanwhile, and keeps the old content", () =>
      Effect.gen(function* () {
        const at = yield* Effect.promise(server)
        const prefix = freshPrefix()
        const [one, other] = [
          make(yield* openAt(at, { prefix, metadata: true })),
          make(yield* openAt(at, { prefix, metadata: true }))
        ]
        yield* one.write("f", "old")
        const chunks = Stream.concat(
          Stream.make(new Uint8Array(9 * MiB)),
          Stream.fromEffectDrain(Effect.orDie(other.setAttributes("f", { mode: 0o600 })))
        )
        const refused = yield* Effect.flip(Stream.run(chunks, one.sink("f")))
        assert.deepInclude(refused, { _tag: "IoError", code: "EAGAIN" })
        assert.strictEqual(yield* one.readString("f"), "old")
        assert.strictEqual((yield* one.stat("f")).mode, 0o600)
      })
    )

    it.live("keeps a directory of another program when its last file is deleted", () =>
      Effect.gen(function* () {
        const { foreign, fs, keys } = yield* ground
        yield* foreign("d/e/f")
        yield* fs.delete("d/e/f")
        assert.deepStrictEqual(yield* fs.list("d/e"), [])
        assert.deepStrictEqual(yield* keys, ["d/e/"])
      })
    )

    it.live("treats `a` as a file if other programs store `a` and `a/b`, and counts the other objects as skipped", () =>
      Effect.gen(function* () {
        const { foreign, fs, keys } = yield* ground
        yield* foreign("d/a")
        yield* foreign("d/a/b")
        assert.strictEqual((yield* fs.stat("d/a")).kind, "file")
        assert.deepStrictEqual(
          (yield* fs.list("d")).map(({ addressable, kind, name }) => [name, kind, addressable]),
          [
            ["a", "file", true],
            ["a\\x2f", "directory", false]
          ]
        )
        assert.strictEqual((yield* Effect.flip(fs.list("d/a")))._tag, "NotADirectory")
        assert.strictEqual((yield* fs.glob("**")).skipped.unreadable > 0, true)
        assert.deepStrictEqual(yield* fs.delete("d", { recursive: true }), { deleted: 2, directories: 2 })
        assert.deepStrictEqual(yield* keys, [])
      })
    )

    it.live("lists keys that no path can express as not addressable, and removes them with their directory", () =>
      Effect.gen(function* () {
        const { foreign, fs, keys } = yield* ground
        for (const key of ["d//x", "d/new\u0001line", "d/plain"]) yield* foreign(key)
        assert.deepStrictEqual(
          (yield* fs.list("d")).map(({ addressable, name }) => [name, addressable]),
          [
            ["\\x2f", false],
            ["new\\x01line", false],
            ["plain", true]
          ]
        )
        yield* fs.delete("d", { recursive: true })
        assert.deepStrictEqual(yield* keys, [])
      })
    )

    it.live(
      "lists directories with more entries than a page of the store",
      () =>
        Effect.gen(function* () {
          const { foreign, fs } = yield* ground
          const names = Array.from({ length: 1005 }, (_, nth) => `f${String(nth).padStart(4, "0")}`)
          yield* Effect.forEach(names, (name) => foreign(`d/${name}`, ""), { concurrency: 16, discard: true })
          assert.deepStrictEqual(
            (yield* fs.list("d")).map(({ name }) => name),
            names
          )
        }),
      120_000
    )

    it.live(
      "writes a stream of 17 MiB, reads the same bytes, and replaces them with ifMatch",
      () =>
        Effect.gen(function* () {
          const { fs } = yield* ground
          const chunks = Array.from({ length: 35 }, (_, nth) => new Uint8Array(MiB / 2 + nth).fill(nth))
          const written = yield* Stream.run(Stream.fromIterable(chunks), fs.sink("d/big"))
          const total = chunks.reduce((sum, { length }) => sum + length, 0)
          assert.strictEqual(written.bytesWritten, total)
          const { version } = yield* fs.readBytes("d/big", { limit: 1, version: true })
          let at = 0
          const all = new Uint8Array(total)
          yield* Stream.runForEach(fs.stream("d/big"), (part) => Effect.sync(() => (all.set(part, at), (at += part.length))))
          assert.strictEqual(at, total)
          assert.isTrue(Buffer.concat(chunks).equals(all))
          yield* fs.write("d/big", "small", { ifMatch: version })
          assert.strictEqual(yield* fs.readString("d/big"), "small")
        }),
      120_000
    )

    it.live("fails the read of a large file with ESTALE if the object is replaced, and never mixes bytes of both", () =>
      Effect.gen(function* () {
        const { foreign, port } = yield* ground
        yield* foreign("big", "a".repeat(3 * MiB))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const handle = yield* port.open("big" as FsPath)
            assert.strictEqual((yield* handle.read(2 * MiB, 4)).length, 4)
            yield* foreign("big", "b".repeat(3 * MiB))
            const fault = yield* Effect.flip(handle.read(2 * MiB, 4))
            assert.deepStrictEqual([fault._tag, fault["code"]], ["IoError", "ESTALE"])
          })
        )
      })
    )

    it.live("a read-only layer writes nothing, not even to test conditions", () =>
      Effect.gen(function* () {
        const { at, prefix } = yield* ground
        const fs = make(yield* openAt(at, { prefix, readOnly: true }))
        const error = yield* Effect.flip(fs.write("a", "x"))
        assert.strictEqual(error._tag, "AccessDenied")
        assert.deepStrictEqual(yield* fs.list("."), [])
      })
    )
  })
}

describeRadosgw("Bucket with wrong credentials", () => {
  it.live("fails with Unavailable, and the error does not contain the secret", () =>
    Effect.gen(function* () {
      const at = yield* Effect.promise(radosgw)
      const error = yield* Effect.flip(
        openAt(at, { prefix: "x", credentials: { accessKeyId: "TESTKEY", secretAccessKey: Redacted.make("WRONGSECRET") } })
      )
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "check the credentials and the region")
      assert.notInclude(JSON.stringify(error), "WRONGSECRET")
    })
  )
})
