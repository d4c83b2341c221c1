/** Regression tests of a security review of the debug view. */
import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { connect } from "node:net"
import { dirname, join } from "node:path"
import * as Dump from "../../src/debug/Dump.ts"
import * as Server from "../../src/debug/Server.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { directory, dump, filesystem, listening, served } from "./ground.ts"

describe("a directory of dumps", () => {
  it.live("is shown without links that are circular or dangling", () =>
    Effect.gen(function* () {
      const place = directory()
      yield* dump(place, { name: "good" })
      Fs.symlinkSync("circle.jsonl", join(place, "circle.jsonl"))
      Fs.symlinkSync("nothing", join(place, "nothing.jsonl"))
      Fs.symlinkSync("round.fs.zip", join(place, "round.fs.zip"))
      Fs.symlinkSync("good.fs.zip", join(place, "good.fs.zip"))
      assert.deepStrictEqual(
        (yield* Dump.list(place)).map(({ has_archive, path }) => [path, has_archive]),
        [["good.jsonl", false]]
      )
      const { get } = yield* served({ source: { dump: place } })
      assert.strictEqual((yield* get("/api/meta")).body.title, "good")
    }).pipe(Effect.scoped)
  )
})

describe("an unreadable archive", () => {
  it.live("is reported as unreadable, not as empty or unchanged", () =>
    Effect.gen(function* () {
      const place = directory()
      yield* dump(place, { name: "other", files: { a: "a" } })
      const bad = yield* dump(place, { name: "bad", files: { a: "a" } })
      Fs.writeFileSync(join(dirname(bad), "bad.fs.zip"), "no archive")
      const { get } = yield* served({ source: { dump: bad } })
      for (const path of ["meta", "file?path=a", "diff?with=other.jsonl"]) {
        const { body, status } = yield* get(`/api/filesystem/${path}`)
        assert.deepStrictEqual([status, body.error], [422, "Unreadable"], path)
      }
    }).pipe(Effect.scoped)
  )
})

describe("the type of a text", () => {
  it.live("is named after its extension, and extensions named like members of Object.prototype are unknown", () =>
    Effect.gen(function* () {
      const names = {
        "a.TSX": "TypeScript with JSX",
        "b.py": "Python",
        "c.md": "Markdown",
        "d.constructor": "text",
        ".py/e": "text",
        notes: "text"
      }
      const tree = Object.fromEntries(
        Object.keys(names).map((name) => [name.split("/")[0]!, name === ".py/e" ? { e: "x" } : "x"])
      )
      const { get } = yield* served({ source: { filesystem: yield* filesystem(tree) } })
      for (const [path, name] of Object.entries(names)) {
        assert.strictEqual((yield* get(`/api/filesystem/file?path=${path}`)).body.media_name, name, path)
      }
    }).pipe(Effect.scoped)
  )
})

describe("a request", () => {
  it.live("from another site is refused, except for a link to the page", () =>
    Effect.gen(function* () {
      const { get } = yield* served({ source: { filesystem: yield* filesystem({ a: "a" }) } })
      const status = (path: string, site: string, mode: string, method = "GET") =>
        Effect.map(get(path, { method, headers: { "sec-fetch-site": site, "sec-fetch-mode": mode } }), ({ status }) => status)
      for (const site of ["cross-site", "same-site"]) {
        assert.strictEqual(yield* status("/api/filesystem/tree", site, "no-cors"), 403)
        assert.strictEqual(yield* status("/api/filesystem/tree", site, "navigate"), 403)
        assert.strictEqual(yield* status("/api/reload", site, "cors", "POST"), 403)
        assert.strictEqual(yield* status("/app.js", site, "no-cors"), 403)
        assert.strictEqual(yield* status("/", site, "navigate"), 200)
      }
      for (const site of ["same-origin", "none"]) assert.strictEqual(yield* status("/api/meta", site, "cors"), 200)
    }).pipe(Effect.scoped)
  )

  it.live("with a body of the wrong type is answered with an error in JSON", () =>
    Effect.gen(function* () {
      const { get } = yield* served({ source: { filesystem: yield* filesystem({ a: "a" }) } })
      const { body, status } = yield* get("/api/switch", {
        method: "POST",
        raw: "path=a",
        headers: { "content-type": "application/x-www-form-urlencoded" }
      })
      assert.deepStrictEqual([status, body?.error], [415, "BadRequest"])
    }).pipe(Effect.scoped)
  )
})

describe("many listeners", () => {
  it.live("share one watch", () =>
    Effect.gen(function* () {
      const { port: plain } = yield* filesystem({ a: "a" })
      const begun = yield* Deferred.make<void>()
      let watchers = 0
      const watch = () =>
        Stream.concat(
          Stream.drain(
            Stream.fromEffect(
              Effect.andThen(
                Effect.sync(() => watchers++),
                Deferred.succeed(begun, undefined)
              )
            )
          ),
          Stream.never
        )
      const { port } = yield* served({ source: { filesystem: make({ ...plain, watch } as never) } })
      for (let i = 0; i < 8; i++) {
        const next = yield* listening(port)
        yield* Effect.promise(next)
      }
      yield* Deferred.await(begun)
      // A second watch would have begun with its listener, and all listeners have been answered.
      yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/api/meta`))
      assert.strictEqual(watchers, 1)
    }).pipe(Effect.scoped)
  )
})

describe("a server that closes", () => {
  it.live("ends the live streams, and does not wait for incomplete requests", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make()
      const source = { filesystem: yield* filesystem({ a: "a" }) }
      const { port } = yield* Scope.provide(Effect.orDie(Server.serve({ source })), scope)
      const answer = yield* Effect.promise(() => fetch(`http://127.0.0.1:${port}/api/live`))
      const slow = connect(port, "127.0.0.1")
      slow.on("error", () => undefined)
      yield* Effect.promise(() => new Promise((done) => slow.write(`GET / HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\n`, done)))
      yield* Scope.close(scope, Exit.void)
      // The stream ends normally and is not torn.
      assert.include(yield* Effect.promise(() => answer.text()), "event: beat")
      slow.destroy()
    })
  )
})
