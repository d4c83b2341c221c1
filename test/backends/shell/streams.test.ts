import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Port from "../../../src/backends/container/shell/port.ts"
import { makeSession, type Request, type Session } from "../../../src/backends/container/shell/session.ts"
import { make } from "../../../src/filesystem/Filesystem.ts"
import { p } from "../posixHost.ts"
import { directory, type Kind, missing, shells, start } from "./shells.ts"

const MiB = 1024 * 1024

const ground = (kind: Kind, functions = "") =>
  Effect.gen(function* () {
    const root = yield* directory
    const session = yield* makeSession(start(kind, { functions }))
    const asked: Array<Request> = []
    const counting: Session = {
      request: (request) =>
        Effect.suspend(() => {
          asked.push(request)
          return session.request(request)
        })
    }
    const port = yield* Port.make({ session: counting, root, name: "Container" })
    const count = (call: string): number => asked.filter(({ arguments: args }) => args[2] === call).length
    return { root, port, fs: make(port), asked, count }
  })

const content = Buffer.alloc(18 * MiB + 4321, "0123456789abcdef-")

const hashOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")

for (const kind of shells) {
  const lacks = missing(kind)
  if (lacks !== undefined) {
    describe.skip(lacks)
    continue
  }
  describe(`a large file by ${kind.name}`, () => {
    it.live("is written and read in few requests, for any sizes of chunks", () =>
      Effect.gen(function* () {
        const { count, fs, root } = yield* ground(kind)
        const parts: Array<Uint8Array> = []
        for (let at = 0, turn = 0; at < content.length; turn++) {
          const part = content.subarray(at, at + [1, 5 * MiB, 0, 777_777][turn % 4]!)
          parts.push(part)
          at += part.length
        }
        yield* Stream.run(Stream.fromIterable(parts), fs.sink("large"))
        assert.isAtMost(count("more"), 6)
        assert.strictEqual(hashOf(Fs.readFileSync(join(root, "large"))), hashOf(content))
        for (const chunkSize of [64 * 1024, 100_001]) {
          const hash = createHash("sha256")
          yield* Stream.runForEach(fs.stream("large", { chunkSize }), (bytes) => Effect.sync(() => void hash.update(bytes)))
          assert.strictEqual(hash.digest("hex"), hashOf(content))
        }
        assert.isAtMost(count("piece"), 14)
      })
    )

    it.live("is fetched at most one piece ahead of its reader", () =>
      Effect.gen(function* () {
        const { count, port, root } = yield* ground(kind)
        Fs.writeFileSync(join(root, "large"), content)
        const handle = yield* port.open(p("large"))
        yield* handle.read(0, MiB)
        assert.strictEqual(count("piece"), 1)
        yield* handle.read(MiB, MiB)
        yield* Effect.sleep(50)
        assert.strictEqual(count("piece"), 3)
        const first = yield* handle.read(2 * MiB, 10)
        first.fill(0)
        assert.isTrue(content.subarray(2 * MiB, 2 * MiB + 10).equals(yield* handle.read(2 * MiB, 10)))
        assert.strictEqual(count("piece"), 3)
      }).pipe(Effect.scoped)
    )

    it.live("cannot be read through a process that has the reused pid of the process that held it open", () =>
      Effect.gen(function* () {
        const { asked, port, root } = yield* ground(kind, "born() { _b=7; [ ! -e other ] || _b=8; }")
        Fs.writeFileSync(join(root, "large"), content)
        const handle = yield* port.open(p("large"))
        yield* handle.read(0, 10)
        Fs.writeFileSync(join(root, "other"), "")
        assert.include(String(JSON.stringify(yield* Effect.flip(handle.read(100, 10)))), "another process changed the file")
        assert.isTrue(asked.some(({ arguments: args }) => args[2] === "piece"))
      }).pipe(Effect.scoped)
    )

    it.live("cannot be read after the process that held it open was killed", () =>
      Effect.gen(function* () {
        const { asked, port, root } = yield* ground(kind)
        Fs.writeFileSync(join(root, "large"), content)
        const handle = yield* port.open(p("large"))
        yield* handle.read(0, 10)
        const holder = String(asked.find(({ arguments: args }) => args[2] === "piece")?.arguments[3])
        execFileSync("kill", ["-9", holder])
        // The signal is delivered some time after `kill` has returned. A process that has ended has no descriptors.
        while (Fs.existsSync(`/proc/${holder}/fd/0`)) yield* Effect.sleep(5)
        yield* Effect.flip(handle.read(100, 10))
      }).pipe(Effect.scoped)
    )

    it.live("of an endless stream ends at the first block that cannot be written, and leaves nothing behind", () =>
      Effect.gen(function* () {
        const { fs, root } = yield* ground(kind, 'more() { echo "dd: error writing: No space left on device" >&2; return 1; }')
        let produced = 0
        const endless = Stream.forever(
          Stream.fromEffect(
            Effect.sync(() => {
              produced++
              return content.subarray(0, MiB)
            })
          )
        )
        const { _tag } = yield* Effect.flip(Stream.run(endless, fs.sink("large")))
        assert.strictEqual(_tag, "DiskFull")
        assert.isAtMost(produced, 40)
        assert.deepStrictEqual(Fs.readdirSync(root), [])
      })
    )

    it.live("keeps its old content, and leaves nothing else, when a write is interrupted between blocks", () =>
      Effect.gen(function* () {
        const { count, fs, root } = yield* ground(kind)
        Fs.writeFileSync(join(root, "large"), "old")
        const slow = Stream.concat(Stream.fromIterable([content]), Stream.never)
        const writing = yield* Effect.forkChild(Stream.run(slow, fs.sink("large")))
        while (count("more") < 2) yield* Effect.sleep(5)
        yield* Fiber.interrupt(writing)
        assert.deepStrictEqual(Fs.readdirSync(root), ["large"])
        assert.strictEqual(Fs.readFileSync(join(root, "large"), "utf8"), "old")
      })
    )
  })
}
