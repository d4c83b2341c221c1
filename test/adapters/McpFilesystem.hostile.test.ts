/** Tests servers that answer wrongly, exit or never exit: calls fail with typed errors, and no process is left. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Fs from "node:fs"
import { join } from "node:path"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import type { FsError } from "../../src/model/FsError.ts"
import { hostile, newDirectory, overStdio } from "./mcpServers.ts"

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Runs a program on a hostile server. Checks that the server's processes have ended afterwards. */
const withServer = async <A>(
  mode: string,
  program: Effect.Effect<A, FsError, Filesystem>,
  timeout = "1 second"
): Promise<Exit.Exit<A, FsError>> => {
  const pidFile = join(newDirectory(), "pids")
  const layer = overStdio(hostile(mode, pidFile), { timeout: timeout as "1 second", maxFileBytes: 1024 * 1024 })
  const exit = await Effect.runPromiseExit(Effect.provide(program, layer))
  const pids = Fs.readFileSync(pidFile, "utf8").trim().split("\n").map(Number)
  for (let i = 0; i < 40 && pids.some(isAlive); i++) await new Promise((resolve) => setTimeout(resolve, 50))
  assert.deepStrictEqual(pids.filter(isAlive), [], "no process is left after the scope has closed")
  return exit
}

const tagOf = (exit: Exit.Exit<unknown, FsError>): string =>
  Exit.match(exit, {
    onSuccess: () => "success",
    onFailure: (cause) => {
      const [reason] = cause.reasons
      if (reason?._tag !== "Fail") return `${reason?._tag}`
      const { error } = reason
      return error._tag === "IoError" ? `IoError ${error.code}` : error._tag
    }
  })

const calls: ReadonlyArray<readonly [string, Effect.Effect<unknown, FsError, Filesystem>]> = [
  ["stat", Filesystem.use((fs) => fs.stat("file"))],
  ["list", Filesystem.use((fs) => fs.list())],
  ["readString", Filesystem.use((fs) => fs.readString("file"))],
  ["write", Filesystem.use((fs) => fs.write("file", "new"))],
  ["mkdir", Filesystem.use((fs) => fs.mkdir("d"))],
  ["move", Filesystem.use((fs) => fs.move("file", "other"))]
]

/** Runs all calls on one server, and returns the distinct outcomes. */
const outcomes = async (mode: string): Promise<ReadonlyArray<string>> => {
  const exits = await withServer(
    mode,
    Effect.forEach(calls, ([, call]) => Effect.exit(call)),
    mode === "a huge answer" ? "20 seconds" : "1 second"
  )
  assert.isTrue(Exit.isSuccess(exits), tagOf(exits))
  return Exit.isSuccess(exits) ? [...new Set(exits.value.map(tagOf))] : []
}

describe("a hostile MCP server", () => {
  const expected: Readonly<Record<string, string>> = {
    "wrong types": "IoError EPROTO",
    "a number as text": "IoError EPROTO",
    "no content": "IoError EPROTO",
    "an error without text": "IoError EPROTO",
    "other text": "IoError EPROTO",
    "negative sizes": "IoError EPROTO",
    "sizes beyond 2^53": "IoError EPROTO",
    "protocol errors": "IoError EPROTO",
    "no JSON": "IoError EPROTO",
    "no answer": "Unavailable",
    "an answer to another request": "Unavailable",
    "messages without an end": "Unavailable",
    "a line without an end": "IoError EMSGSIZE",
    "a huge answer": "IoError EMSGSIZE",
    "an early exit": "Unavailable",
    "an exit within an answer": "Unavailable"
  }
  for (const [mode, tag] of Object.entries(expected)) {
    it(`each call on a server with ${mode} fails with ${tag}`, { timeout: 60_000 }, async () => {
      assert.deepStrictEqual(await outcomes(mode), [tag])
    })
  }

  it("a name that climbs out of the root is refused", { timeout: 30_000 }, async () => {
    const exit = await withServer(
      "names that climb",
      Filesystem.use((fs) => fs.list())
    )
    assert.strictEqual(tagOf(exit), "IoError EPROTO")
  })

  it("a write fails if the server reports success but has not written", { timeout: 30_000 }, async () => {
    const exit = await withServer(
      "none",
      Filesystem.use((fs) => Effect.all([Effect.exit(fs.write("file", "longer than before")), fs.readString("file")]))
    )
    assert.isTrue(Exit.isSuccess(exit))
    if (!Exit.isSuccess(exit)) return
    assert.strictEqual(tagOf(exit.value[0]), "IoError undefined")
    assert.strictEqual(exit.value[1], "hello")
  })

  it("a write to a new file fails if the server always reports that the file exists", { timeout: 30_000 }, async () => {
    const outcome = (mode: "create" | "overwrite" | "append") =>
      withServer(
        "targets that always exist",
        Filesystem.use((fs) => fs.write("new", "x", { mode }))
      )
    assert.strictEqual(tagOf(await outcome("create")), "AlreadyExists")
    for (const mode of ["overwrite", "append"] as const) assert.strictEqual(tagOf(await outcome(mode)), "IoError undefined")
  })

  const openings: ReadonlyArray<readonly [mode: string, title: string, tag: string]> = [
    ["no start", "that never answers the first request", "Unavailable"],
    ["no tools", "that has no tools", "Unsupported"],
    ["no real paths", "whose errors state no real path", "Unsupported"],
    ["another root", "whose errors state a path outside the root", "AccessDenied"]
  ]
  for (const [mode, title, tag] of openings) {
    it(`a filesystem on a server ${title} cannot be opened, and the error is ${tag}`, { timeout: 30_000 }, async () => {
      assert.strictEqual(
        tagOf(
          await withServer(
            mode,
            Filesystem.use(() => Effect.void)
          )
        ),
        tag
      )
    })
  }

  it("an interrupted read does not wait for the server", { timeout: 30_000 }, async () => {
    const exit = await withServer(
      "no answer",
      Effect.gen(function* () {
        const fs = yield* Filesystem
        const fiber = yield* Effect.forkChild(fs.readString("file"), { startImmediately: true })
        yield* Effect.sleep("50 millis")
        yield* Fiber.interrupt(fiber)
        assert.isTrue(Exit.hasInterrupts(yield* Fiber.await(fiber)))
      }),
      // A call that waits for the server exceeds the timeout of the test.
      "60 seconds"
    )
    assert.strictEqual(tagOf(exit), "success")
  })

  it("a server that ignores SIGTERM is killed, with its child processes", { timeout: 60_000 }, async () => {
    assert.strictEqual(tagOf(await withServer("stubborn", calls[0]![1])), "Unavailable")
  })
})
