import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { spawnSync } from "node:child_process"
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, watch, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Remote from "../../src/remote/Remote.ts"
import { inMemory } from "../conformance/filesystems.ts"
import { pathOf } from "./relay.ts"
import { unixAddress } from "./transports.ts"

/** Leaves the socket of a killed process in the directory. */
const leaveStaleSocket = (path: string): void => {
  const program = `require("node:net").createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, "SIGKILL"))`
  spawnSync(process.execPath, ["-e", program])
  assert.isTrue(lstatSync(path).isSocket())
}

const answers = (address: string) =>
  Effect.provide(
    Filesystem.use((fs) => fs.exists(".")),
    Remote.layerUrl(address)
  )

describe("the Unix socket of a server", () => {
  it.live("may be used only by its owner, even with the umask 0, and is removed with the server", () =>
    Effect.gen(function* () {
      const address = yield* unixAddress
      const umask = process.umask(0)
      const scope = yield* Scope.make()
      try {
        yield* Scope.provide(Remote.listen(address), scope)
      } finally {
        process.umask(umask)
      }
      assert.strictEqual(lstatSync(pathOf(address)).mode & 0o777, 0o600)
      assert.isTrue(yield* answers(address))
      assert.strictEqual(readdirSync(dirname(pathOf(address))).length, 1)
      yield* Scope.close(scope, Exit.void)
      assert.deepStrictEqual(readdirSync(dirname(pathOf(address))), [])
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("needs no file outside its directory", () =>
    Effect.gen(function* () {
      const address = yield* unixAddress
      const top = dirname(pathOf(address))
      mkdirSync(join(top, "run"))
      const names: Array<string> = []
      const watcher = watch(top, (_, name) => void names.push(name ?? ""))
      yield* Remote.listen(`unix:${join(top, "run", "a.sock")}`)
      yield* Effect.sleep("100 millis")
      watcher.close()
      assert.deepStrictEqual(
        names.filter((name) => name !== "run"),
        []
      )
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("replaces the socket of a killed server", () =>
    Effect.gen(function* () {
      const address = yield* unixAddress
      leaveStaleSocket(pathOf(address))
      yield* Remote.listen(address)
      assert.isTrue(yield* answers(address))
      assert.strictEqual(readdirSync(dirname(pathOf(address))).length, 1)
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("is refused to a second server, and remains with the first server", () =>
    Effect.gen(function* () {
      const address = yield* unixAddress
      yield* Remote.listen(address)
      const error = yield* Effect.flip(Remote.listen(address))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "another server listens")
      assert.isTrue(yield* answers(address))
      assert.strictEqual(readdirSync(dirname(pathOf(address))).length, 1)
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("that a killed server has left goes to exactly one of several servers that start at the same time", () =>
    Effect.gen(function* () {
      const address = yield* unixAddress
      leaveStaleSocket(pathOf(address))
      const exits = yield* Effect.forEach([1, 2, 3, 4], () => Effect.exit(Remote.listen(address)), { concurrency: "unbounded" })
      assert.strictEqual(exits.filter(Exit.isSuccess).length, 1)
      assert.isTrue(yield* answers(address))
      assert.strictEqual(readdirSync(dirname(pathOf(address))).length, 1)
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("is refused if its path is too long for an address, and no file is left", () =>
    Effect.gen(function* () {
      const top = dirname(pathOf(yield* unixAddress))
      const path = join(top, "s".repeat(120 - top.length))
      const error = yield* Effect.flip(Remote.listen(`unix:${path}`))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "choose a shorter path")
      assert.deepStrictEqual(readdirSync(top), [])
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("never replaces a file that is not a socket", () =>
    Effect.gen(function* () {
      const address = yield* unixAddress
      writeFileSync(pathOf(address), "a file of the user")
      const error = yield* Effect.flip(Remote.listen(address))
      assert.include(error.message, "not a socket")
      assert.strictEqual(readFileSync(pathOf(address), "utf8"), "a file of the user")
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("is not removed by an ending server if another server has replaced it", () =>
    Effect.gen(function* () {
      const address = yield* unixAddress
      const scope = yield* Scope.make()
      yield* Scope.provide(Remote.listen(address), scope)
      // Another program removes the socket, and a second server takes the name.
      yield* Effect.sync(() => spawnSync("rm", [pathOf(address)]))
      yield* Remote.listen(address)
      yield* Scope.close(scope, Exit.void)
      assert.isTrue(existsSync(pathOf(address)))
      assert.isTrue(yield* answers(address))
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )

  it.live("makes the server fail with Unavailable if its directory does not exist or is not writable", () =>
    Effect.gen(function* () {
      const address = yield* unixAddress
      const missing = yield* Effect.flip(Remote.listen(`unix:${dirname(pathOf(address))}/missing/a.sock`))
      assert.strictEqual(missing._tag, "Unavailable")
      assert.include(missing.message, "ENOENT")
      if (process.geteuid?.() === 0) return
      chmodSync(dirname(pathOf(address)), 0o500)
      const denied = yield* Effect.flip(Remote.listen(address))
      chmodSync(dirname(pathOf(address)), 0o700)
      assert.strictEqual(denied._tag, "Unavailable")
      assert.include(denied.message, "EACCES")
    }).pipe(Effect.scoped, Effect.provide(inMemory))
  )
})
