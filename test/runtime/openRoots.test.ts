import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as OpenRoots from "../../src/runtime/openRoots.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { directory } from "../backends/posixHost.ts"

/** Makes the directory `app`, neighbours with a common prefix, and links. */
const ground = Effect.map(directory, (top) => {
  for (const name of ["app/inner", "app-old", "other"]) Fs.mkdirSync(join(top, name), { recursive: true })
  Fs.symlinkSync(join(top, "app"), join(top, "link"))
  Fs.symlinkSync(join(top, "other"), join(top, "app/out"))
  Fs.symlinkSync(join(top, "nowhere"), join(top, "dangling"))
  Fs.symlinkSync("loop", join(top, "loop"))
  return top
})

describe("resolveAllowed with an allowed directory", () => {
  it.effect("admits itself and every path below it, through links too, whether or not the path exists", () =>
    Effect.gen(function* () {
      const top = yield* ground
      const app = join(top, "app")
      for (const [path, real] of [
        ["app", "app"],
        ["app/", "app"],
        ["app/inner", "app/inner"],
        ["app/./inner//", "app/inner"],
        ["app/new/deeper", "app/new/deeper"],
        ["link/inner/new", "app/inner/new"],
        ["link", "app"]
      ] as const) {
        assert.strictEqual(OpenRoots.resolveAllowed(`${top}/${path}`, [app]), join(top, real), path)
        assert.strictEqual(
          OpenRoots.resolveAllowed(`${top}/${path}`, [join(top, "other"), join(top, "link")]),
          join(top, real),
          path
        )
      }
      assert.strictEqual(OpenRoots.resolveAllowed("/etc", ["/"]), Fs.realpathSync("/etc"))
    })
  )

  it.effect("admits no path that only begins with the same letters, leads out, or cannot be resolved", () =>
    Effect.gen(function* () {
      const top = yield* ground
      for (const path of [
        "app-old",
        "app-old/new",
        "ap",
        "other",
        "app/out",
        "app/out/new",
        "app/../other",
        "app/inner/..",
        "dangling",
        "dangling/new",
        "loop/new",
        "."
      ]) {
        assert.isUndefined(OpenRoots.resolveAllowed(`${top}/${path}`, [join(top, "app")]), path)
      }
      for (const path of ["app", "", "./app", "\0"])
        assert.isUndefined(OpenRoots.resolveAllowed(path, ["/"]), JSON.stringify(path))
      assert.isUndefined(OpenRoots.resolveAllowed(join(top, "app"), []))
    })
  )
})

describe("a directory that must be outside of every workspace", () => {
  it.effect("is rejected if it is inside the root of an open filesystem", () =>
    Effect.gen(function* () {
      const top = yield* ground
      const store = join(top, "app/inner/store")
      assert.isUndefined(OpenRoots.reachabilityFault("gitDir", store))
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* PosixHost.make({ root: join(top, "link") })
          yield* Effect.scoped(PosixHost.make({ root: join(top, "app") }))
          for (const inside of [store, join(top, "app"), join(top, "link/x"), join(top, "app/out/store")]) {
            assert.deepInclude(OpenRoots.reachabilityFault("gitDir", inside), { _tag: "InvalidArgument", argument: "gitDir" })
          }
          for (const beside of ["app-old", "other/store", "new"]) {
            assert.isUndefined(OpenRoots.reachabilityFault("gitDir", join(top, beside)), beside)
          }
          assert.isDefined(OpenRoots.reachabilityFault("gitDir", "relative"))
        })
      )
      assert.isUndefined(OpenRoots.reachabilityFault("gitDir", store))
    })
  )
})

describe("a registered store", () => {
  it.effect("cannot be opened as a root while it is in use, nor can a directory in it", () =>
    Effect.gen(function* () {
      const top = yield* ground
      const inside = ["app", "app/inner", "link/inner", "app/../app/inner"]
      const opened = (path: string, createRoot = false) =>
        Effect.result(Effect.scoped(PosixHost.make({ root: `${top}/${path}`, createRoot })))
      const isRefused = (path: string, createRoot?: boolean) =>
        Effect.map(opened(path, createRoot), (result) => {
          if (Result.isSuccess(result)) return false
          assert.deepInclude(result.failure, { _tag: "AccessDenied", why: "policy" }, path)
          return true
        })
      const close = OpenRoots.registerStore(join(top, "link"))
      const closeAgain = OpenRoots.registerStore(join(top, "app"))
      for (const unregister of [close, closeAgain]) {
        for (const path of inside) assert.isTrue(yield* isRefused(path), path)
        assert.isTrue(yield* isRefused("app/new/root", true))
        assert.isFalse(Fs.existsSync(join(top, "app/new")), "nothing is made in a store")
        for (const path of ["app-old", "other", "."]) assert.isFalse(yield* isRefused(path), path)
        unregister()
        unregister()
      }
      for (const path of inside) assert.isFalse(yield* isRefused(path), path)
    })
  )
})
