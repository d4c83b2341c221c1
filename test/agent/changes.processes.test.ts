import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import * as Fs from "node:fs"
import { dirname, join } from "node:path"
import { isDeepStrictEqual } from "node:util"
import { fileURLToPath } from "node:url"
import { applyChanges, type FileChange, recoverChanges } from "../../src/agent/changes.ts"
import * as PosixHost from "../../src/backends/PosixHost.ts"
import { make } from "../../src/filesystem/Filesystem.ts"
import { around } from "../../src/port/Backend.ts"
import { after, before, change } from "./changesKilled.ts"
import { bytesOf, directory, p, versionOf } from "./changing.ts"

const soak = process.env["FS_ALGEBRA_SOAK"] !== undefined

const plant = (root: string): void => {
  for (const [path, text] of Object.entries(before)) {
    Fs.mkdirSync(dirname(join(root, path)), { recursive: true })
    Fs.writeFileSync(join(root, path), text)
  }
}

/** Returns the files and every hidden leftover, but no other directories. */
const look = (root: string): Record<string, string> =>
  Object.fromEntries(
    Fs.readdirSync(root, { recursive: true, encoding: "utf8" })
      .filter((path) => path.includes(".~fsa-") || Fs.statSync(join(root, path)).isFile())
      .map((path) => [path, Fs.statSync(join(root, path)).isFile() ? Fs.readFileSync(join(root, path), "utf8") : "directory"])
  )

const script = fileURLToPath(new URL("changesKilled.ts", import.meta.url))

const killed = (root: string, cache: string, call: number): Effect.Effect<string | null> =>
  Effect.promise(
    () =>
      new Promise((resolve) =>
        spawn(process.execPath, [script, root, String(call)], {
          stdio: "ignore",
          env: { ...process.env, NODE_COMPILE_CACHE: cache }
        }).once("close", (_, signal) => resolve(signal))
      )
  )

/** Finishes or undoes the changes of dead processes; listing a directory removes their claims. */
const recovered = (root: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const fs = make(yield* PosixHost.make({ root }))
      yield* recoverChanges(fs)
      yield* Stream.runDrain(fs.walk())
    })
  )

describe("a change of several files", () => {
  it.live("is completed or undone by the next process if its process is killed", () =>
    Effect.gen(function* () {
      const calls = yield* Effect.scoped(
        Effect.flatMap(directory, (root) => {
          plant(root)
          return change(root, 0)
        })
      )
      const cache = yield* directory
      const kills = soak ? calls : 5
      const at = Array.from({ length: kills }, (_, i) => Math.floor(((i + 0.5) * calls) / kills) + 1)
      const outcomes = yield* Effect.forEach(
        at,
        (call) =>
          Effect.scoped(
            Effect.gen(function* () {
              const root = yield* directory
              plant(root)
              assert.strictEqual(yield* killed(root, cache, call), "SIGKILL")
              const left = look(root)
              yield* recovered(root)
              const found = look(root)
              return {
                isUnfinished: !isDeepStrictEqual(left, before),
                became: isDeepStrictEqual(found, before)
                  ? "old"
                  : isDeepStrictEqual(found, after)
                    ? "new"
                    : `at ${call}: ${JSON.stringify(found)}`
              }
            })
          ),
        { concurrency: 2 }
      )
      assert.deepStrictEqual([...new Set(outcomes.map(({ became }) => became))].sort(), ["new", "old"])
      assert.isAbove(outcomes.filter(({ isUnfinished }) => isUnfinished).length, kills / 2)
    })
  )

  it.live(
    "waits for a process that has claimed one of the files, and fails with Conflict if that process changed the file",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          const root = yield* directory
          plant(root)
          // Two backends stand for two processes: they share nothing but the directory.
          const [one, other] = [yield* PosixHost.make({ root }), yield* PosixHost.make({ root })]
          const looked = yield* Deferred.make<void>()
          const watched = around(one, (operation, next) =>
            operation._tag === "Stat" && operation.path === "gone"
              ? Effect.andThen(Deferred.succeed(looked, undefined), next)
              : next
          )
          const changes: ReadonlyArray<FileChange> = [
            { path: p("a.txt"), before: versionOf("a\n"), after: bytesOf("A\n") },
            { path: p("gone"), before: versionOf("gone"), after: null }
          ]
          const theirs = Effect.gen(function* () {
            const ours = yield* Effect.forkChild(applyChanges(make(watched), changes))
            yield* Deferred.await(looked)
            // A caller that does not wait would finish in this time.
            for (let i = 0; i < 1000; i++) yield* Effect.yieldNow
            yield* other.write<never, never>(p("a.txt"), bytesOf("theirs"), "replace")
            return ours
          })
          const ours = yield* other.locks!.claim!(p("a.txt"), theirs)
          const failed = yield* Effect.flip(Fiber.join(ours))
          assert.deepInclude({ ...failed }, { _tag: "Conflict", path: "a.txt", actual: versionOf("theirs") })
          assert.deepStrictEqual(look(root), { ...before, "a.txt": "theirs" })
        })
      )
  )
})
