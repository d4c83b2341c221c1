import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpStaticFiles from "../../src/adapters/HttpStaticFiles.ts"
import * as InMemory from "../../src/backends/InMemory.ts"
import { Filesystem, make } from "../../src/filesystem/Filesystem.ts"
import { sha256 } from "../../src/runtime/hash.ts"

const text = "0123456789"
const etag = `"${sha256(new TextEncoder().encode(text))}"`
const large = "x".repeat(3_000_000)
const tree = {
  site: {
    "index.html": "<p>hello",
    "digits.txt": text,
    "large.bin": large,
    empty: "",
    sub: { "index.html": "sub" },
    odd: { "index.html": { "a.txt": "" } },
    "größe 1%.txt": "umlaut"
  },
  "secret.txt": "secret"
}

/** Runs requests against the handler of a router with the files of `site`. */
const serving = <A>(
  use: (get: (path: string, headers?: Record<string, string>, method?: string) => Effect.Effect<Response>) => Effect.Effect<A>,
  options?: HttpStaticFiles.Options
) =>
  Effect.gen(function* () {
    const fs = make(yield* InMemory.make({ tree }))
    yield* fs.symlink("site/inside", "digits.txt")
    yield* fs.symlink("site/outside", "../secret.txt")
    const files = HttpStaticFiles.layer({ root: "site", ...options }).pipe(Layer.provide(Layer.succeed(Filesystem, fs)))
    const { dispose, handler } = HttpRouter.toWebHandler(files, { disableLogger: true })
    const get = (path: string, headers: Record<string, string> = {}, method = "GET") =>
      Effect.promise(() => handler(new Request(`http://localhost${path}`, { headers, method })))
    return yield* Effect.ensuring(
      use(get),
      Effect.promise(() => dispose())
    )
  })

const bodyOf = (response: Response) => Effect.promise(() => response.text())

describe("HttpStaticFiles", () => {
  it.effect("serves a file with its type, size and the ETag of its content", () =>
    serving((get) =>
      Effect.gen(function* () {
        const response = yield* get("/digits.txt")
        assert.strictEqual(response.status, 200)
        assert.strictEqual(response.headers.get("content-type"), "text/plain; charset=utf-8")
        assert.strictEqual(response.headers.get("content-length"), "10")
        assert.strictEqual(response.headers.get("etag"), etag)
        assert.isNotNull(response.headers.get("last-modified"))
        assert.strictEqual(yield* bodyOf(response), text)
      })
    )
  )

  for (const [path, status, body] of [
    ["/", 200, "<p>hello"],
    ["/sub/", 200, "sub"],
    ["/odd/", 404, undefined],
    ["/gr%C3%B6%C3%9Fe%201%25.txt", 200, "umlaut"],
    ["/empty", 200, ""],
    ["/large.bin", 200, large],
    ["/digits.txt?v=1", 200, text],
    ["/missing", 404, undefined],
    ["/../secret.txt", 404, undefined],
    ["/..%2fsecret.txt", 404, undefined],
    ["/%2e%2e/secret.txt", 404, undefined],
    ["/outside", 404, undefined],
    ["/inside", 200, text],
    ["/%zz", 404, undefined],
    ["/digits.txt%00", 404, undefined],
    ["/digits.txt/x", 404, undefined]
  ] as const) {
    it.effect(`answers ${path} with the status ${status}`, () =>
      serving((get) =>
        Effect.gen(function* () {
          const response = yield* get(path)
          const found = yield* bodyOf(response)
          assert.notInclude(found, "secret")
          assert.strictEqual(response.status, status)
          if (body !== undefined) assert.strictEqual(found, body)
        })
      )
    )
  }

  it.effect("serves files with the extension constructor or __proto__ as application/octet-stream", () =>
    Effect.gen(function* () {
      const fs = make(yield* InMemory.make({ tree: { "x.constructor": "x", "x.__proto__": "x" } }))
      const files = HttpStaticFiles.layer().pipe(Layer.provide(Layer.succeed(Filesystem, fs)))
      const { dispose, handler } = HttpRouter.toWebHandler(files, { disableLogger: true })
      for (const name of ["x.constructor", "x.__proto__"]) {
        const response = yield* Effect.promise(() => handler(new Request(`http://localhost/${name}`)))
        assert.strictEqual(response.headers.get("content-type"), "application/octet-stream", name)
      }
      yield* Effect.promise(() => dispose())
    })
  )

  for (const [range, status, body, contentRange] of [
    ["bytes=0-3", 206, "0123", "bytes 0-3/10"],
    ["bytes=7-", 206, "789", "bytes 7-9/10"],
    ["bytes=-2", 206, "89", "bytes 8-9/10"],
    ["bytes=5-100", 206, "56789", "bytes 5-9/10"],
    ["bytes=10-", 416, "", "bytes */10"],
    ["bytes=3-1", 416, "", "bytes */10"],
    ["lines=1-2", 200, text, null],
    ["bytes=0-1,3-4", 200, text, null]
  ] as const) {
    it.effect(`answers the range ${range} with the status ${status}`, () =>
      serving((get) =>
        Effect.gen(function* () {
          const response = yield* get("/digits.txt", { range })
          assert.strictEqual(response.status, status)
          assert.strictEqual(yield* bodyOf(response), body)
          assert.strictEqual(response.headers.get("content-range"), contentRange)
        })
      )
    )
  }

  it.effect("serves a range of a large file", () =>
    serving((get) =>
      Effect.gen(function* () {
        const response = yield* get("/large.bin", { range: "bytes=2999998-" })
        assert.strictEqual(response.status, 206)
        assert.strictEqual(yield* bodyOf(response), "xx")
      })
    )
  )

  for (const [headers, status] of [
    [{ "if-none-match": etag }, 304],
    [{ "if-none-match": '"other"' }, 200],
    [{ "if-none-match": "*" }, 304],
    [{ "if-match": etag }, 200],
    [{ "if-match": '"other"' }, 412],
    [{ "if-modified-since": "Fri, 01 Jan 2100 00:00:00 GMT" }, 304],
    [{ range: "bytes=0-3", "if-range": etag }, 206],
    [{ range: "bytes=0-3", "if-range": '"other"' }, 200]
  ] as ReadonlyArray<readonly [Record<string, string>, number]>) {
    it.effect(`answers ${JSON.stringify(headers).replaceAll(etag.slice(1, -1), "the ETag")} with the status ${status}`, () =>
      serving((get) => Effect.map(get("/digits.txt", headers), (response) => assert.strictEqual(response.status, status)))
    )
  }

  it.effect("changes the ETag when the content changes within one millisecond to content of the same size", () =>
    Effect.gen(function* () {
      const fs = make(yield* InMemory.make({ tree: { f: "one" } }))
      const { dispose, handler } = HttpRouter.toWebHandler(
        HttpStaticFiles.layer().pipe(Layer.provide(Layer.succeed(Filesystem, fs))),
        { disableLogger: true }
      )
      const tag = Effect.map(
        Effect.promise(() => handler(new Request("http://localhost/f"))),
        (response) => response.headers.get("etag")
      )
      const first = yield* tag
      yield* fs.write("f", "two")
      assert.notStrictEqual(yield* tag, first)
      yield* Effect.promise(() => dispose())
    })
  )

  it.effect("answers 404 to a name that no file can have", () =>
    serving((get) =>
      Effect.gen(function* () {
        assert.strictEqual((yield* get(`/${"a".repeat(300)}`)).status, 404)
        assert.strictEqual((yield* get(`/${"a/".repeat(3000)}`)).status, 404)
      })
    )
  )

  it.effect(
    "serves files below a prefix, sends Cache-Control, and serves the index for missing pages with the option spa",
    () =>
      serving(
        (get) =>
          Effect.gen(function* () {
            const page = yield* get("/app/some/page", { accept: "text/html" })
            assert.strictEqual(yield* bodyOf(page), "<p>hello")
            assert.strictEqual(page.headers.get("cache-control"), "no-cache")
            assert.strictEqual(yield* bodyOf(yield* get("/app/digits.txt")), text)
            assert.strictEqual((yield* get("/digits.txt")).status, 404)
          }),
        { prefix: "/app", spa: true, cacheControl: "no-cache" }
      )
  )
})
