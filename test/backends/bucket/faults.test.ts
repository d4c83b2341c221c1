/** Tests Bucket with a failing network, with other programs that write, and with stores that refuse requests. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type Algebra, make } from "../../../src/filesystem/Filesystem.ts"
import { jumpingClock } from "../../jumpingClock.ts"
import { answering, type Fate, proxyTo, type Proxy } from "./proxy.ts"
import { describeMoto, describeRadosgw, freshPrefix, keysBelow, moto, openAt, radosgw, type Server } from "./servers.ts"

const timings = { attempts: 5, requestMillis: 30_000, pauseMillis: 1 }

const through = (server: () => Promise<Server>) =>
  Effect.gen(function* () {
    const direct = yield* Effect.promise(server)
    const proxy = yield* proxyTo(direct.endpoint)
    const prefix = freshPrefix()
    const open = (tuning = {}) =>
      Effect.map(openAt({ ...direct, endpoint: proxy.endpoint }, { prefix }, { timings: { ...timings, ...tuning } }), make)
    return { direct, proxy, prefix, open, fs: yield* open(), other: make(yield* openAt(direct, { prefix })) }
  })

/** Gives the attempts of each request that `matches` the given fates, in order. Further attempts pass. */
const eachOnce = (proxy: Proxy, fates: ReadonlyArray<Fate>, matches: (method: string) => boolean = () => true): void => {
  const seen = new Map<string, number>()
  proxy.fate = ({ headers, method, url }) => {
    if (!matches(method)) return "pass"
    const key = `${method} ${url} ${headers["x-amz-meta-fs-algebra-write"] ?? ""} ${headers["range"] ?? ""}`
    const nth = seen.get(key) ?? 0
    seen.set(key, nth + 1)
    return fates[nth] ?? "pass"
  }
}

/** Calls several operations, and returns the resulting files. */
const work = (fs: Algebra) =>
  Effect.gen(function* () {
    yield* fs.mkdir("d/empty", { parents: true })
    yield* fs.write("d/a", "one", { mode: "create" })
    yield* fs.write("d/a", "two")
    yield* fs.write("d/a", "+", { mode: "append" })
    yield* fs.copy("d/a", "e/b")
    yield* fs.move("e/b", "c")
    yield* fs.delete("e")
    return [yield* fs.readString("d/a"), yield* fs.readString("c"), (yield* fs.list("d")).map(({ name }) => name)]
  })

const result = ["two+", "two+", ["a", "empty"]]

describeMoto("Bucket behind a failing network", () => {
  for (const fates of [["busy", "busy", "busy", "busy"], ["refuse"], ["lose"], ["cut"], ["lose", "busy", "refuse"]] as const) {
    it.live(
      `every operation takes effect once, even if the first attempts of each request fail with: ${fates.join(", ")}`,
      () =>
        Effect.gen(function* () {
          const { fs, other, proxy } = yield* through(moto)
          eachOnce(proxy, fates)
          assert.deepStrictEqual<unknown>(yield* work(fs), result)
          assert.deepStrictEqual<unknown>(
            [yield* other.readString("d/a"), yield* other.readString("c"), (yield* other.list("d")).map(({ name }) => name)],
            result
          )
        }).pipe(Effect.scoped),
      120_000
    )
  }

  it.live(
    "a create whose answer is lost does not mistake another program's file for its own",
    () =>
      Effect.gen(function* () {
        const { fs, other, proxy } = yield* through(moto)
        yield* other.write("theirs", "same")
        eachOnce(proxy, ["lose"], (method) => method === "PUT")
        yield* fs.write("mine", "same", { mode: "create" })
        assert.strictEqual((yield* Effect.flip(fs.write("theirs", "same", { mode: "create" })))._tag, "AlreadyExists")
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "a call fails with Unavailable and changes nothing if the store answers each attempt with 503",
    () =>
      Effect.gen(function* () {
        const { direct, fs, prefix, proxy } = yield* through(moto)
        yield* fs.write("a", "old")
        proxy.fate = () => "busy"
        const error = yield* Effect.flip(fs.write("a", "new"))
        assert.strictEqual(error._tag, "Unavailable")
        assert.match(error.message, /answered 503( SlowDown)? to each attempt; the store is overloaded, try again later/)
        proxy.fate = () => "pass"
        assert.strictEqual(yield* fs.readString("a"), "old")
        assert.deepStrictEqual(yield* Effect.promise(() => keysBelow(direct, prefix)), ["a"])
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "a call fails with Timeout if the store does not answer, and the next call succeeds",
    () =>
      Effect.gen(function* () {
        const { open, other, proxy } = yield* through(moto)
        yield* other.write("a", "old")
        const fs = yield* open({ attempts: 2, requestMillis: 5000 })
        proxy.fate = () => "hang"
        assert.strictEqual((yield* Effect.flip(fs.readString("a")))._tag, "Timeout")
        proxy.fate = () => "pass"
        assert.strictEqual(yield* fs.readString("a"), "old")
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "a stream that fails leaves no object, and its upload is aborted",
    () =>
      Effect.gen(function* () {
        const { direct, fs, prefix, proxy } = yield* through(moto)
        let aborts = 0
        proxy.fate = ({ method, url }) => {
          if (method === "DELETE" && url.includes("uploadId=")) aborts++
          return "pass"
        }
        const chunk = new Uint8Array(1024 * 1024).fill(1)
        const failing = Stream.concat(
          Stream.fromIterable(Array.from({ length: 9 }, () => chunk)),
          Stream.fail("cable" as const)
        )
        assert.strictEqual(yield* Effect.flip(Stream.run(failing, fs.sink("big"))), "cable")
        assert.deepStrictEqual(yield* Effect.promise(() => keysBelow(direct, prefix)), [])
        assert.strictEqual(aborts, 1)
      }).pipe(Effect.scoped),
    120_000
  )

  it.live(
    "a store that ignores conditions is refused, and accepted with conditional: false",
    () =>
      Effect.gen(function* () {
        const { direct, prefix, proxy } = yield* through(moto)
        proxy.fate = () => "strip"
        const error = yield* Effect.flip(openAt({ ...direct, endpoint: proxy.endpoint }, { prefix }))
        assert.strictEqual(error._tag, "Unavailable")
        assert.include(error.message, "the store ignores the condition If-None-Match of a write")
        assert.include(error.message, "conditional: false")
        assert.deepStrictEqual(yield* Effect.promise(() => keysBelow(direct, prefix)), [])
        const port = yield* openAt({ ...direct, endpoint: proxy.endpoint }, { prefix, conditional: false })
        assert.include(port.info.bestEffort?.[0], "writes are sent without conditions")
        yield* make(port).write("a", "x")
        assert.strictEqual(yield* make(port).readString("a"), "x")
      }).pipe(Effect.scoped),
    120_000
  )
})

// On radosgw, because the tests let moto answer only one request at a time.
describeRadosgw("Buckets of several programs", () => {
  it.live(
    "appends of several programs are all kept",
    () =>
      Effect.gen(function* () {
        const at = yield* Effect.promise(radosgw)
        const prefix = freshPrefix()
        const programs = yield* Effect.all(Array.from({ length: 4 }, () => Effect.map(openAt(at, { prefix }), make)))
        yield* Effect.forEach(
          programs,
          (fs, program) =>
            Effect.forEach([0, 1, 2], (nth) => fs.write("log", `${program}.${nth}\n`, { mode: "append" }), { discard: true }),
          { concurrency: "unbounded", discard: true }
        )
        const lines = (yield* programs[0]!.readString("log")).trim().split("\n")
        assert.deepStrictEqual(
          lines.sort(),
          programs.flatMap((_, program) => [0, 1, 2].map((nth) => `${program}.${nth}`))
        )
      }),
    120_000
  )

  it.live(
    "of several writes with one precondition, exactly one succeeds",
    () =>
      Effect.gen(function* () {
        const at = yield* Effect.promise(radosgw)
        const prefix = freshPrefix()
        const programs = yield* Effect.all(Array.from({ length: 6 }, () => Effect.map(openAt(at, { prefix }), make)))
        const { version } = yield* programs[0]!.write("a", "old", { version: true })
        const results = yield* Effect.forEach(
          programs,
          (fs, nth) => Effect.result(fs.write("a", `new ${nth}`, { ifMatch: version })),
          { concurrency: "unbounded" }
        )
        const won = results.flatMap((result, nth) => (result._tag === "Success" ? [nth] : []))
        assert.strictEqual(won.length, 1)
        for (const result of results) if (result._tag === "Failure") assert.strictEqual(result.failure._tag, "Conflict")
        assert.strictEqual(yield* programs[0]!.readString("a"), `new ${won[0]}`)
      }),
    120_000
  )

  it.live(
    "of several creates of one file, exactly one succeeds",
    () =>
      Effect.gen(function* () {
        const at = yield* Effect.promise(radosgw)
        const prefix = freshPrefix()
        const programs = yield* Effect.all(Array.from({ length: 6 }, () => Effect.map(openAt(at, { prefix }), make)))
        const results = yield* Effect.forEach(programs, (fs) => Effect.result(fs.write("a", "same", { mode: "create" })), {
          concurrency: "unbounded"
        })
        assert.strictEqual(results.filter((result) => result._tag === "Success").length, 1)
      }),
    120_000
  )
})
describeRadosgw("Bucket and the clock", () => {
  it.live(
    "requests succeed although the clock of this machine is an hour wrong",
    () =>
      Effect.gen(function* () {
        const at = yield* Effect.promise(radosgw)
        const clock = yield* Clock.Clock
        const early: Clock.Clock = Object.create(clock, {
          currentTimeMillis: { value: Effect.map(clock.currentTimeMillis, (now) => now - 3_600_000) },
          currentTimeMillisUnsafe: { value: () => clock.currentTimeMillisUnsafe() - 3_600_000 }
        })
        const written = Effect.gen(function* () {
          const fs = make(yield* openAt(at, { prefix: freshPrefix() }))
          yield* fs.write("a", "x")
          return yield* fs.readString("a")
        })
        assert.strictEqual(yield* Effect.provideService(written, Clock.Clock, early), "x")
      }),
    120_000
  )
})

describeRadosgw("Bucket and a clock that is set", () => {
  it.live(
    "requests succeed each time the clock of this machine jumps",
    () =>
      Effect.gen(function* () {
        const at = yield* Effect.promise(radosgw)
        const { clock, jump } = yield* jumpingClock
        yield* Effect.gen(function* () {
          const fs = make(yield* openAt(at, { prefix: freshPrefix() }))
          for (const hours of [-1, 1, 2, -5]) {
            jump(hours * 3_600_000)
            yield* fs.write("a", `${hours}\n`, { mode: "append" })
          }
          assert.strictEqual(yield* fs.readString("a"), "-1\n1\n2\n-5\n")
        }).pipe(Effect.provideService(Clock.Clock, clock))
      }),
    120_000
  )
})

const refusals: ReadonlyArray<
  readonly [status: number, code: string, headers: Record<string, string>, tag: string, text: string]
> = [
  [301, "PermanentRedirect", { "x-amz-bucket-region": "eu-west-3" }, "Unavailable", 'give region: "eu-west-3"'],
  [400, "AuthorizationHeaderMalformed", {}, "Unavailable", "give the region of the bucket"],
  [400, "InvalidArgument", {}, "IoError", "the store answered 400 InvalidArgument"],
  [403, "AccessDenied", {}, "Unavailable", "give the credentials a policy that permits the request"],
  [403, "SignatureDoesNotMatch", {}, "Unavailable", "check the credentials and the region"],
  [403, "InvalidAccessKeyId", {}, "Unavailable", "check the credentials and the region"],
  [404, "NoSuchBucket", {}, "Unavailable", 'the bucket "tests" does not exist'],
  [405, "MethodNotAllowed", {}, "IoError", "the store does not offer this request"],
  [429, "TooManyRequests", {}, "Unavailable", "the store is overloaded, try again later"],
  [500, "InternalError", {}, "Unavailable", "the store answered 500 InternalError"],
  [501, "NotImplemented", {}, "IoError", "the store does not offer this request"],
  [503, "SlowDown", {}, "Unavailable", "the store is overloaded, try again later"],
  [418, "", {}, "IoError", "the store answered 418"]
]

describe("Bucket.make", () => {
  for (const [status, code, headers, tag, text] of refusals) {
    it.live(`fails with ${tag} for the status ${status} ${code}, and the message contains: ${text}`, () =>
      Effect.gen(function* () {
        const server = yield* Effect.acquireRelease(
          Effect.promise(() =>
            answering(() => ({ status, headers, body: `<Error><Code>${code}</Code><Message>no</Message></Error>` }))
          ),
          ({ close }) => Effect.promise(close)
        )
        const error = yield* Effect.flip(
          openAt({ endpoint: server.endpoint, bucket: "tests" }, { prefix: "" }, { timings: { attempts: 2, pauseMillis: 1 } })
        )
        assert.strictEqual(error._tag, tag)
        assert.include(error.message, text)
        assert.notInclude(JSON.stringify(error), "TESTSECRET")
      }).pipe(Effect.scoped)
    )
  }

  it.live("fails with Unavailable if nobody listens at the endpoint", () =>
    Effect.gen(function* () {
      const server = yield* Effect.promise(() => answering(() => ({ status: 200 })))
      yield* Effect.promise(server.close)
      const error = yield* Effect.flip(
        openAt({ endpoint: server.endpoint, bucket: "tests" }, { prefix: "" }, { timings: { attempts: 2, pauseMillis: 1 } })
      )
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "does not answer (ECONNREFUSED); check the endpoint and the network")
    })
  )

  it.live("follows no redirect, so that no request reaches another server", () =>
    Effect.gen(function* () {
      const elsewhere = yield* Effect.promise(() => answering(() => ({ status: 200 })))
      const server = yield* Effect.promise(() =>
        answering(() => ({ status: 307, headers: { location: `${elsewhere.endpoint}/tests` } }))
      )
      const error = yield* Effect.flip(openAt({ endpoint: server.endpoint, bucket: "tests" }, { prefix: "" }))
      assert.strictEqual(error._tag, "Unavailable")
      assert.deepStrictEqual(elsewhere.requests, [])
      yield* Effect.promise(() => Promise.all([server.close(), elsewhere.close()]))
    })
  )

  for (const [what, body] of [
    ["that is not XML", "gibberish"],
    ["that is another document", "<Other/>"],
    [
      "with a size that is not a number",
      "<ListBucketResult><Contents><Key>a</Key><Size>x</Size></Contents></ListBucketResult>"
    ],
    ["with a document type", '<!DOCTYPE a [<!ENTITY b "c">]><ListBucketResult><Name>&b;</Name></ListBucketResult>']
  ] as const) {
    it.live(`fails with IoError for a listing ${what}`, () =>
      Effect.gen(function* () {
        const server = yield* Effect.promise(() => answering(() => ({ status: 200, body })))
        const error = yield* Effect.flip(openAt({ endpoint: server.endpoint, bucket: "tests" }, { prefix: "" }))
        yield* Effect.promise(server.close)
        assert.strictEqual(error._tag, "IoError")
      })
    )
  }

  for (const [argument, options] of [
    ["metadata", { metadata: "yes" as never }],
    ["bucket", { bucket: "a/b" }],
    ["endpoint", { endpoint: "ftp://host" }],
    ["endpoint", { endpoint: "http://user:secret@host" }],
    ["prefix", { prefix: "a/../b" }]
  ] as const) {
    it.effect(`refuses ${JSON.stringify(options)} with InvalidArgument`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(
          openAt({ endpoint: "http://127.0.0.1:9", bucket: "tests" }, { prefix: "", ...options })
        )
        assert.deepStrictEqual([error._tag, (error as { readonly argument?: string }).argument], ["InvalidArgument", argument])
        assert.notInclude(JSON.stringify(error), "secret")
      })
    )
  }
})

describe("a listing of Bucket", () => {
  it.live("fails with IoError if its next page is the same page again", () =>
    Effect.gen(function* () {
      let pages = 0
      const server = yield* Effect.acquireRelease(
        Effect.promise(() =>
          answering(() => {
            const isTruncated = ++pages < 20
            const file = "<Contents><Key>a</Key><Size>1</Size><ETag>1</ETag></Contents>"
            const next = `<IsTruncated>${isTruncated}</IsTruncated><NextContinuationToken>here</NextContinuationToken>`
            return { status: 200, body: `<ListBucketResult>${file}${next}</ListBucketResult>` }
          })
        ),
        ({ close }) => Effect.promise(close)
      )
      const options = { prefix: "", allowWrite: false, allowDelete: false }
      const fs = make(yield* openAt({ endpoint: server.endpoint, bucket: "tests" }, options))
      pages = 0
      assert.deepInclude<object>(yield* Effect.flip(fs.list()), { _tag: "IoError", code: "EPROTO" })
      assert.strictEqual(pages, 2)
    }).pipe(Effect.scoped)
  )
})
