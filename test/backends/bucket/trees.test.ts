/** Tests batches of deletions, and copies within the store. */
import { assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Http from "node:http"
import { make } from "../../../src/filesystem/Filesystem.ts"
import { portable } from "../../../src/port/Backend.ts"
import type { BucketOptions, Tuning } from "../../../src/backends/bucket/open.ts"
import { type Fate, proxyTo, type Request } from "./proxy.ts"
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

/** A bucket behind a proxy that notes the requests. */
const ground = (server: typeof moto, options: Partial<BucketOptions> = {}, tuning: Tuning = {}) =>
  Effect.gen(function* () {
    const direct = yield* Effect.promise(server)
    const proxy = yield* proxyTo(direct.endpoint)
    const prefix = freshPrefix()
    const at = { ...direct, endpoint: proxy.endpoint }
    const port = yield* openAt(
      at,
      { ...options, prefix },
      { ...tuning, timings: { attempts: 4, pauseMillis: 1, ...tuning.timings } }
    )
    const requests: Array<Request> = []
    const decide = (fate: (request: Request) => Fate): void => {
      proxy.fate = (request) => {
        requests.push(request)
        return fate(request)
      }
    }
    decide(() => "pass")
    const putAll = (keys: ReadonlyArray<string>) =>
      Effect.forEach(keys, (key) => Effect.promise(() => putForeign(direct, prefix + key, "x")), { concurrency: 16 })
    return {
      direct,
      prefix,
      port,
      fs: make(port),
      requests,
      decide,
      putAll,
      keys: Effect.promise(() => keysBelow(direct, prefix)),
      other: make(yield* openAt(direct, { ...options, prefix }, tuning))
    }
  })

const isBatch = ({ method, url }: Request): boolean => method === "POST" && url.includes("?delete=")
const isCopy = ({ headers }: Request): boolean => headers["x-amz-copy-source"] !== undefined
const isProbe = ({ url }: Request): boolean => url.includes(".fs-algebra-probe-")

const numbered = (count: number) => Array.from({ length: count }, (_, nth) => `tree/${nth % 7}/${nth}.txt`)

/** moto does not store keys with line breaks. */
const oddOn = (name: string) => (name === "moto" ? odd.filter((key) => !key.includes("\n")) : odd)

const odd = [
  "tree/",
  "tree/empty/",
  "tree/ü &<>\"'+%2f",
  "tree/a",
  "tree/a/b",
  "tree/sub//c",
  "tree/control \u0001",
  "tree/line\nbreak",
  "tree/ lead",
  "tree/trail ",
  "tree/x/"
]

const kept = ["other/tree", "tree-2/a", "tree.txt", "tree2"]

/** Stores an object whose key `fetch` would rewrite. */
const putRaw = ({ bucket, endpoint }: { readonly bucket: string; readonly endpoint: string }, key: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(endpoint)
    const headers = { authorization: "AWS4-HMAC-SHA256 Credential=TESTKEY/20260101/us-east-1/s3/aws4_request" }
    Http.request({ hostname, port, method: "PUT", path: `/${bucket}/${key}`, headers }, (answer) => {
      answer
        .resume()
        .on("end", () => (answer.statusCode === 200 ? resolve() : reject(new Error(`status ${answer.statusCode}`))))
    })
      .on("error", reject)
      .end("x")
  })

const MiB = 1024 * 1024

const content = (size: number): Uint8Array => Uint8Array.from({ length: size }, (_, nth) => (nth * 31 + (nth >> 8)) & 255)

for (const [name, describeServer, server] of [
  ["moto", describeMoto, moto],
  ["radosgw", describeRadosgw, radosgw]
] as const) {
  describeServer(`Bucket on ${name}`, () => {
    it.live("deletes the objects of a directory in batches, and no object outside of it", () =>
      Effect.gen(function* () {
        const { fs, keys, putAll, requests } = yield* ground(server, {}, { sizes: { batch: 40 } })
        yield* putAll([...numbered(100), ...kept])
        assert.deepStrictEqual(yield* fs.delete("tree", { recursive: true }), { deleted: 100, directories: 8 })
        assert.deepStrictEqual(yield* keys, kept)
        assert.strictEqual(requests.filter(isBatch).length, 3)
        assert.strictEqual(requests.filter(({ method }) => method === "DELETE").length, 0)
      }).pipe(Effect.scoped)
    )

    it.live("deletes every key below a directory, and returns the same counts as a deletion of one object at a time", () =>
      Effect.gen(function* () {
        const { fs, keys, other, port, putAll } = yield* ground(server)
        const odd = oddOn(name)
        yield* putAll([...odd, ...kept])
        const singly = yield* make(portable(port)).delete("tree", { recursive: true })
        assert.deepStrictEqual(yield* keys, kept)
        yield* putAll(odd)
        assert.deepStrictEqual(yield* fs.delete("tree", { recursive: true }), singly)
        assert.deepStrictEqual(yield* keys, kept)
        assert.isFalse(yield* other.exists("tree"))
      }).pipe(Effect.scoped)
    )

    it.live("keeps the parent of a deleted directory, and does not create the parent of a missing directory", () =>
      Effect.gen(function* () {
        const { fs, keys, port, putAll } = yield* ground(server)
        yield* putAll(["above/tree/a", "above/tree/b"])
        yield* fs.delete("above/tree", { recursive: true })
        assert.deepStrictEqual(yield* keys, ["above/"])
        const gone = port.perform!({ _tag: "RemoveTree", path: "none/tree" as never })
        assert.deepStrictEqual(yield* Effect.flip(gone), { _tag: "NotFound" })
        yield* putAll(["file"])
        const file = port.perform!({ _tag: "RemoveTree", path: "file" as never })
        assert.deepStrictEqual(yield* Effect.flip(file), { _tag: "NotADirectory" })
        assert.deepStrictEqual(yield* keys, ["above/", "file"])
      }).pipe(Effect.scoped)
    )

    it.live("copies and moves a large file within the store, with its type and its mode", () =>
      Effect.gen(function* () {
        const { decide, direct, fs, prefix, requests } = yield* ground(server, { metadata: true, conditional: false })
        const bytes = content(3 * MiB)
        yield* Effect.promise(() =>
          aws.fetch(urlOf(direct, `${prefix}from.bin`), {
            method: "PUT",
            body: bytes,
            headers: { "content-type": "image/png", "x-amz-meta-owner": "them", "x-amz-meta-fs-algebra-mode": "700" }
          })
        )
        decide(() => "pass")
        assert.deepStrictEqual(yield* fs.copy("from.bin", "new/copy.bin"), { files: 1, directories: 0, bytes: bytes.length })
        yield* fs.move("from.bin", "moved.bin")
        assert.strictEqual(requests.filter((request) => isCopy(request) && !isProbe(request)).length, 2)
        assert.strictEqual(requests.filter(({ method, url }) => method === "GET" && url.endsWith(".bin")).length, 0)
        for (const path of ["new/copy.bin", "moved.bin"]) {
          assert.deepStrictEqual((yield* fs.readBytes(path)).content, bytes)
          assert.strictEqual((yield* fs.stat(path)).mode, 0o700)
          const { headers } = yield* Effect.promise(() => aws.fetch(urlOf(direct, prefix + path), { method: "HEAD" }))
          assert.strictEqual(headers.get("content-type"), "image/png")
          assert.strictEqual(headers.get("x-amz-meta-owner"), "them")
        }
        assert.isFalse(yield* fs.exists("from.bin"))
      }).pipe(Effect.scoped)
    )

    it.live(
      "copies under the same conditions as a write: a new file replaces nothing, and a replaced file keeps its mode",
      () =>
        Effect.gen(function* () {
          const { fs, keys, other } = yield* ground(server, { metadata: true })
          const bytes = content(9 * MiB)
          yield* other.writeBytes("from", bytes)
          yield* other.write("taken", "theirs")
          yield* other.setAttributes("taken", { mode: 0o640 })
          assert.strictEqual((yield* Effect.flip(fs.copy("from", "taken")))._tag, "AlreadyExists")
          assert.strictEqual(yield* other.readString("taken"), "theirs")
          yield* fs.copy("from", "taken", { overwrite: true })
          assert.deepStrictEqual((yield* other.readBytes("taken")).content, bytes)
          assert.strictEqual((yield* other.stat("taken")).mode, 0o640)
          assert.strictEqual((yield* Effect.flip(fs.copy("from", "taken/below")))._tag, "NotADirectory")
          assert.strictEqual((yield* Effect.flip(fs.copy("none", "b")))._tag, "NotFound")
          assert.deepStrictEqual(yield* keys, ["from", "taken"])
        }).pipe(Effect.scoped)
    )

    it.live(
      "copies a large object in ranges if the store checks the source of each range, and through this program otherwise",
      () =>
        Effect.gen(function* () {
          const bytes = content(11 * MiB)
          for (const isChecking of [true, false]) {
            const { decide, fs, other, requests } = yield* ground(server, { conditional: false }, { sizes: { copy: 5 * MiB } })
            // Neither server checks the source of a range, so the proxy refuses the tag that no object has.
            const isOtherTag = ({ headers }: Request) => /"0{32}"/.test(String(headers["x-amz-copy-source-if-match"]))
            decide((request) => (isChecking && isOtherTag(request) ? "failed" : "pass"))
            yield* other.writeBytes("from", bytes)
            yield* fs.copy("from", "to")
            assert.deepStrictEqual((yield* other.readBytes("to")).content, bytes)
            const ranges = requests.filter(({ headers }) => headers["x-amz-copy-source-range"] !== undefined)
            const downloads = requests.filter(({ method, url }) => method === "GET" && url.endsWith("/from"))
            assert.strictEqual(ranges.length, isChecking ? 3 : 0)
            assert.strictEqual(downloads.length === 0, isChecking)
          }
        }).pipe(Effect.scoped)
    )

    it.live("leaves no copy and no upload if a range is refused because the source changed", () =>
      Effect.gen(function* () {
        const { decide, fs, keys, other, requests } = yield* ground(
          server,
          { conditional: false },
          { sizes: { copy: 5 * MiB } }
        )
        yield* other.writeBytes("from", content(11 * MiB))
        decide((request) => {
          const isOtherTag = /"0{32}"/.test(String(request.headers["x-amz-copy-source-if-match"]))
          return isOtherTag || request.headers["x-amz-copy-source-range"]?.includes("5242880-") === true ? "failed" : "pass"
        })
        const error = yield* Effect.flip(fs.move("from", "to"))
        assert.deepInclude<object>(error, { _tag: "IoError", code: "ESTALE" })
        assert.deepStrictEqual(yield* keys, ["from"])
        const aborted = requests.filter(({ method, url }) => method === "DELETE" && url.includes("/to?uploadId="))
        assert.strictEqual(aborted.length, 1)
      }).pipe(Effect.scoped)
    )
  })
}

const batchFates: ReadonlyArray<readonly [string, ReadonlyArray<Fate>]> = [
  ["the store is busy", ["busy", "busy"]],
  ["the answer is lost", ["lose"]],
  ["the connection ends", ["refuse", "cut"]],
  ["half of the batch is refused for now", ["half SlowDown", "half InternalError"]],
  ["the store does not know batches", ["unknown"]],
  ["the store forgets the batch", ["forget"]]
]

describeMoto("a batch of deletions", () => {
  for (const [what, fates] of batchFates) {
    it.live(`deletes everything if ${what}`, () =>
      Effect.gen(function* () {
        const { decide, fs, keys, putAll } = yield* ground(moto)
        yield* putAll([...numbered(30), ...kept])
        let nth = 0
        decide((request) => (isBatch(request) ? (fates[nth++] ?? "pass") : "pass"))
        assert.deepStrictEqual(yield* fs.delete("tree", { recursive: true }), { deleted: 30, directories: 8 })
        assert.deepStrictEqual(yield* keys, kept)
        assert.isAtLeast(nth, fates.length)
      }).pipe(Effect.scoped)
    )
  }

  it.live("is repeated only with the objects that were refused", () =>
    Effect.gen(function* () {
      const { decide, fs, putAll, requests } = yield* ground(moto)
      yield* putAll(numbered(30))
      let nth = 0
      decide((request) => (isBatch(request) && nth++ === 0 ? "half SlowDown" : "pass"))
      yield* fs.delete("tree", { recursive: true })
      const sizes = requests.filter(isBatch).map(({ body }) => body!.match(/<Object>/g)!.length)
      assert.deepStrictEqual(sizes, [30, 15])
    }).pipe(Effect.scoped)
  )

  it.live("fails with the path of an object that the store refuses, and the next deletion removes the rest", () =>
    Effect.gen(function* () {
      const { decide, fs, keys, putAll } = yield* ground(moto)
      yield* putAll([...numbered(30), ...kept])
      decide((request) => (isBatch(request) ? "half AccessDenied" : "pass"))
      const error = yield* Effect.flip(fs.delete("tree", { recursive: true }))
      assert.deepInclude(error, { _tag: "AccessDenied", why: "permission" })
      assert.match(error.path, /^tree\/\d\/\d+\.txt$/)
      const left = yield* keys
      assert.strictEqual(left.length, 15 + kept.length)
      assert.include(left, error.path)
      decide(() => "pass")
      yield* fs.delete("tree", { recursive: true })
      assert.deepStrictEqual(yield* keys, kept)
    }).pipe(Effect.scoped)
  )

  it.live("deletes no object that a store lists from outside the directory", () =>
    Effect.gen(function* () {
      const { decide, fs, keys, putAll } = yield* ground(moto)
      yield* putAll([...numbered(5), ...kept])
      decide(({ method, url }) => (method === "GET" && url.includes("tree%2F") ? "wide" : "pass"))
      const error = yield* Effect.flip(fs.delete("tree", { recursive: true }))
      assert.deepInclude<object>(error, { _tag: "IoError", code: "EPROTO" })
      assert.includeMembers([...(yield* keys)], kept)
    }).pipe(Effect.scoped)
  )

  it.live("deletes keys with the segments . and .., no matter how many are in one request", () =>
    Effect.gen(function* () {
      for (const all of [["tree/../a"], ["tree/a", "tree/./b"], ["tree/a", "tree/b", "tree/x/.."]]) {
        const { direct, fs, keys, prefix, putAll } = yield* ground(moto, {}, { sizes: { batch: 2 } })
        yield* putAll(kept)
        for (const key of all) yield* Effect.promise(() => putRaw(direct, prefix + key))
        assert.strictEqual((yield* fs.delete("tree", { recursive: true })).deleted, all.length)
        assert.deepStrictEqual(yield* keys, kept)
      }
    }).pipe(Effect.scoped)
  )

  it.live("treats an error in an answer with status 200 like the status of that error", () =>
    Effect.gen(function* () {
      const { decide, fs, keys, putAll, requests } = yield* ground(moto)
      yield* putAll([...numbered(5), ...kept])
      decide((request) => (isBatch(request) ? "late AccessDenied" : "pass"))
      yield* fs.delete("tree", { recursive: true })
      assert.deepStrictEqual(yield* keys, kept)
      assert.strictEqual(requests.filter(isBatch).length, 1)
      yield* putAll(numbered(5))
      decide((request) => (isBatch(request) ? "late SlowDown" : "pass"))
      assert.strictEqual((yield* Effect.flip(fs.delete("tree", { recursive: true })))._tag, "Unavailable")
      let nth = 0
      decide((request) => (isBatch(request) && nth++ < 2 ? "late InternalError" : "pass"))
      yield* fs.delete("tree", { recursive: true })
      assert.deepStrictEqual(yield* keys, kept)
    }).pipe(Effect.scoped)
  )

  it.live("fails with Unavailable if the store stays busy, and keeps the objects that it did not delete", () =>
    Effect.gen(function* () {
      const { decide, fs, keys, putAll } = yield* ground(moto)
      yield* putAll([...numbered(30), ...kept])
      for (const fate of ["busy", "half SlowDown"] as const) {
        decide((request) => (isBatch(request) ? fate : "pass"))
        const error = yield* Effect.flip(fs.delete("tree", { recursive: true }))
        assert.strictEqual(error._tag, "Unavailable")
        assert.includeMembers([...(yield* keys)], kept)
      }
      assert.isAbove((yield* keys).length, kept.length)
    }).pipe(Effect.scoped)
  )
})

describeRadosgw("a copy within the store", () => {
  const bytes = content(9 * MiB)
  /** With these sizes, the store itself copies files of more than 10,000 bytes. */
  const small = { sizes: { firstRead: 1_000, part: 10_000 } }

  for (const fates of [["busy"], ["refuse"], ["lose"], ["cut"], ["lose", "busy", "cut"]] as const) {
    it.live(`is made once, even if its first attempts fail with: ${fates.join(", ")}`, () =>
      Effect.gen(function* () {
        const { decide, fs, keys, other } = yield* ground(radosgw, {}, small)
        yield* other.writeBytes("from", bytes.subarray(0, 10_000))
        yield* other.writeBytes("from", bytes.subarray(10_000, 15_000), { mode: "append" })
        let nth = 0
        decide((request) => (isCopy(request) && !isProbe(request) ? (fates[nth++] ?? "pass") : "pass"))
        yield* fs.copy("from", "to")
        assert.deepStrictEqual((yield* other.readBytes("to")).content, bytes.slice(0, 15_000))
        yield* fs.move("to", "moved")
        assert.deepStrictEqual((yield* other.readBytes("moved")).content, bytes.slice(0, 15_000))
        assert.deepStrictEqual(yield* keys, ["from", "moved"])
        assert.isAtLeast(nth, fates.length + 1)
      }).pipe(Effect.scoped)
    )
  }

  it.live("passes the content through this program if the store cannot copy", () =>
    Effect.gen(function* () {
      const { decide, fs, other } = yield* ground(radosgw)
      yield* other.writeBytes("from", bytes)
      for (const fate of ["probed", "copied"]) {
        decide((request) => (isCopy(request) && isProbe(request) === (fate === "probed") ? "unknown" : "pass"))
        yield* fs.copy("from", fate)
        assert.deepStrictEqual((yield* other.readBytes(fate)).content, bytes)
      }
    }).pipe(Effect.scoped)
  )

  for (const [size, limits] of [
    ["whole", {}],
    ["in ranges", { sizes: { copy: 5 * MiB } }]
  ] as const) {
    /** radosgw does not check the source of a range, so the proxy answers instead. */
    const fateOf = (request: Request, fate: Fate): Fate =>
      /^"?0{32}/.test(String(request.headers["x-amz-copy-source-if-match"])) ? "failed" : fate

    const usesRanges = (requests: ReadonlyArray<Request>): boolean =>
      requests.some(({ headers }) => headers["x-amz-copy-source-range"] !== undefined)

    it.live(`is repeated if the store answers 200 with a temporary error (${size})`, () =>
      Effect.gen(function* () {
        const { decide, fs, keys, other, requests } = yield* ground(radosgw, {}, limits)
        yield* other.writeBytes("from", bytes)
        let nth = 0
        decide((request) =>
          fateOf(request, isCopy(request) && !isProbe(request) && nth++ === 0 ? "late InternalError" : "pass")
        )
        yield* fs.copy("from", "to")
        assert.deepStrictEqual((yield* other.readBytes("to")).content, bytes)
        assert.strictEqual(usesRanges(requests), size === "in ranges")
        const downloads = requests.filter(({ method, url }) => method === "GET" && url.endsWith("/from"))
        assert.deepStrictEqual(downloads, [])
        decide((request) => (isCopy(request) ? "late AccessDenied" : "pass"))
        yield* fs.copy("from", "by content")
        assert.deepStrictEqual((yield* other.readBytes("by content")).content, bytes)
        decide((request) => (isCopy(request) ? "late SlowDown" : "pass"))
        assert.strictEqual((yield* Effect.flip(fs.copy("from", "none")))._tag, "Unavailable")
        assert.deepStrictEqual(yield* keys, ["by content", "from", "to"])
      }).pipe(Effect.scoped)
    )

    it.live(`fails with ESTALE and the source's path if the source is deleted meanwhile (${size})`, () =>
      Effect.gen(function* () {
        const { decide, fs, keys, other, requests } = yield* ground(radosgw, {}, limits)
        yield* other.writeBytes("from", bytes)
        yield* other.writeBytes("kept", bytes)
        decide((request) => fateOf(request, "pass"))
        yield* fs.copy("from", "first")
        assert.strictEqual(usesRanges(requests), size === "in ranges")
        let isGone = false
        decide((request) => {
          if (isCopy(request)) isGone = true
          return isGone && (isCopy(request) || request.url.endsWith("/from")) ? "gone" : "pass"
        })
        for (const to of ["to", "kept"]) {
          isGone = false
          const error = yield* Effect.flip(fs.copy("from", to, { overwrite: true }))
          assert.deepInclude<object>(error, { _tag: "IoError", code: "ESTALE", path: "from" })
        }
        assert.deepStrictEqual(yield* keys, ["first", "from", "kept"])
        assert.deepStrictEqual((yield* other.readBytes("kept")).content, bytes)
      }).pipe(Effect.scoped)
    )
  }

  it.live.each([{ copy: 5 * MiB }, { quickCopy: 5 * MiB }])(
    "in ranges ends at once if it is interrupted, and its upload is removed: %o",
    (sizes) =>
      Effect.gen(function* () {
        const { decide, fs, keys, other, requests } = yield* ground(radosgw, {}, { sizes })
        yield* other.writeBytes("from", bytes)
        const isHeld = yield* Deferred.make<void>()
        decide((request) => {
          if (/^"?0{32}/.test(String(request.headers["x-amz-copy-source-if-match"]))) return "failed"
          if (!isCopy(request) || isProbe(request)) return "pass"
          Deferred.doneUnsafe(isHeld, Effect.void)
          return "hang"
        })
        const copying = yield* Effect.forkChild(fs.copy("from", "to"))
        yield* Deferred.await(isHeld)
        yield* Fiber.interrupt(copying)
        assert.isTrue(requests.some(({ method, url }) => method === "DELETE" && url.includes("/to?uploadId=")))
        assert.deepStrictEqual(yield* keys, ["from"])
      }).pipe(Effect.scoped)
  )

  it.live("over a file in one request ends at once if it is interrupted, and the file is the old or the new one", () =>
    Effect.gen(function* () {
      const { decide, fs, keys, other } = yield* ground(radosgw, {}, { sizes: { quickCopy: 64 * MiB } })
      yield* other.writeBytes("from", bytes)
      yield* other.writeBytes("to", bytes.subarray(0, 100))
      for (const fate of ["hang", "lose"] as const) {
        const isHeld = yield* Deferred.make<void>()
        decide((request) => {
          if (!isCopy(request) || isProbe(request)) return "pass"
          Deferred.doneUnsafe(isHeld, Effect.void)
          return fate
        })
        const copying = yield* Effect.forkChild(fs.copy("from", "to", { overwrite: true }))
        yield* Deferred.await(isHeld)
        yield* Fiber.interrupt(copying)
        const { content } = yield* other.readBytes("to")
        assert.isTrue([bytes, bytes.subarray(0, 100)].some((one) => Buffer.compare(one, content) === 0))
        assert.deepStrictEqual(yield* keys, ["from", "to"])
      }
    }).pipe(Effect.scoped)
  )

  it.live("is removed if the source of a move cannot be deleted, and the source is kept", () =>
    Effect.gen(function* () {
      const { decide, fs, keys, other } = yield* ground(radosgw, {}, small)
      yield* other.writeBytes("from", bytes)
      yield* other.writeBytes("taken", bytes.subarray(0, 100))
      decide(({ method, url }) => (method === "DELETE" && url.endsWith("/from") ? "unknown" : "pass"))
      for (const to of ["to", "taken"]) {
        assert.strictEqual((yield* Effect.flip(fs.move("from", to, { overwrite: true }))).path, "from")
      }
      assert.deepStrictEqual(yield* keys, ["from", "taken"])
      assert.deepStrictEqual((yield* other.readBytes("from")).content, bytes)
    }).pipe(Effect.scoped)
  )

  it.live("fails with ESTALE if the store reports that the source was replaced, and leaves no copy", () =>
    Effect.gen(function* () {
      const { decide, direct, fs, keys, prefix } = yield* ground(
        radosgw,
        {},
        { ...small, timings: { attempts: 60, pauseMillis: 5 } }
      )
      yield* Effect.promise(() => putForeign(direct, `${prefix}from`, "old".repeat(5_000)))
      yield* fs.copy("from", "first")
      let replaced: "no" | "started" | "done" = "no"
      decide((request) => {
        if (!isCopy(request)) return "pass"
        if (replaced === "no") void putForeign(direct, `${prefix}from`, "new").then(() => (replaced = "done"))
        replaced = replaced === "done" ? "done" : "started"
        return replaced === "done" ? "failed" : "busy"
      })
      const error = yield* Effect.flip(fs.move("from", "to"))
      assert.deepInclude<object>(error, { _tag: "IoError", code: "ESTALE" })
      assert.deepStrictEqual(yield* keys, ["first", "from"])
      assert.strictEqual(yield* fs.readString("from"), "new")
    }).pipe(Effect.scoped)
  )

  it.live("has the version of its own content, even if the store copies an object that replaced the source", () =>
    Effect.gen(function* () {
      const { decide, direct, fs, other, prefix } = yield* ground(
        radosgw,
        {},
        {
          ...small,
          timings: { attempts: 60, pauseMillis: 5 }
        }
      )
      const source = (text: string) => Effect.promise(() => putForeign(direct, `${prefix}from`, text))
      yield* source("old".repeat(5_000))
      const version = yield* fs.version("from")
      yield* fs.copy("from", "same")
      assert.strictEqual(yield* fs.version("same"), version)
      let replaced: "no" | "started" | "done" = "no"
      decide((request) => {
        if (!isCopy(request) || replaced === "done") return "pass"
        if (replaced === "no") void putForeign(direct, `${prefix}from`, "new".repeat(4_000)).then(() => (replaced = "done"))
        replaced = "started"
        return "busy"
      })
      const result = yield* Effect.exit(fs.copy("from", "to"))
      if (result._tag === "Success") {
        assert.strictEqual(result.value.bytes, 12_000)
        assert.strictEqual(yield* other.readString("to"), "new".repeat(4_000))
        assert.strictEqual(yield* fs.version("to"), yield* other.version("to"))
      } else assert.isFalse(yield* other.exists("to"))
    }).pipe(Effect.scoped)
  )
})
