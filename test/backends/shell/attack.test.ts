import { assert, describe, it } from "@effect/vitest"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Session from "../../../src/backends/container/shell/session.ts"
import { makeSession } from "../../../src/backends/container/shell/session.ts"
import * as Port from "../../../src/backends/container/shell/port.ts"
import { toStat } from "../../../src/backends/container/shell/shellRoot.ts"
import type { Backend } from "../../../src/port/Backend.ts"
import { p } from "../posixHost.ts"
import { dash, directory, missing, shells, start } from "./shells.ts"

const silence = 8000

const turn = Effect.promise(() => new Promise<void>((resolve) => setImmediate(resolve)))

const until = (isSo: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (isSo() ? Effect.void : Effect.andThen(turn, until(isSo))))

/** Lets the time of the test pass as long as an effect runs. */
const whileTimePasses = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.raceFirst(effect, Effect.forever(Effect.andThen(turn, TestClock.adjust(silence / 8))))

describe("an answer of a shell", () => {
  const end = (more: string) => Buffer.from(`said\nkey 1 0\n${more}`)

  it("on standard error ends at its end mark, whatever follows", () => {
    const errors = Session.make(100, false)
    errors.begin("key 1")
    assert.deepStrictEqual(errors.take(end("more\n")), { bytes: Buffer.from("said"), status: 0 })
  })

  it("on standard output is refused if anything follows its end mark", () => {
    const output = Session.make(100, true)
    output.begin("key 1")
    assert.strictEqual(output.take(end("more\n")), "unasked")
  })
})

describe("the output of stat", () => {
  const line = (modified: string, rest = "") => `1 644 0:0 81a4 ${modified} 0 x.000/y${rest}`

  it("with a time that no date can represent gives the last or the first date", () => {
    for (const [seconds, millis] of [
      ["99999999999999", 8.64e15],
      ["-99999999999999", -8.64e15],
      ["9".repeat(200), 8.64e15]
    ] as const) {
      const { modifiedAt } = toStat(p("a"), line(seconds))!
      assert.isTrue(modifiedAt !== undefined && DateTime.isDateTime(modifiedAt))
      assert.strictEqual(modifiedAt!.epochMilliseconds, millis)
    }
  })

  it("is rejected when it is longer than any real output of stat", () => {
    assert.isDefined(toStat(p("a"), line("1", " ".repeat(20))))
    // A search through this line takes hours.
    assert.isUndefined(toStat(p("a"), `${line("1", " ".repeat(2_000_000))}/`))
  })
})

for (const kind of shells) {
  const lacks = missing(kind)
  describe.skipIf(lacks !== undefined)(`${kind.name} under attack${lacks === undefined ? "" : `: ${lacks}`}`, () => {
    const live = (
      name: string,
      functions: string,
      body: (port: Backend, at: string) => Effect.fn.Return<void, unknown, Scope.Scope>
    ) =>
      it.live(name, () =>
        Effect.scoped(
          Effect.gen(function* () {
            const at = yield* directory
            const session = yield* makeSession(start(kind, { functions }))
            const port = yield* Port.make({ session, root: at, name: "Shell" })
            yield* Effect.gen(() => body(port, at))
          })
        )
      )

    for (const name of ["..", ".", "../../etc/passwd", "a/b"]) {
      live(
        `rejects the listed name ${name}, which would lead to another directory when joined to a path`,
        `list() { printf '%s//\\n' '81a4 0 0 ./${name}'; }`,
        function* (port) {
          const { _tag } = yield* Effect.flip(port.list(p(".")))
          assert.strictEqual(_tag, "IoError")
        }
      )
    }

    live("stats a file whose time is out of the range of dates", "", function* (port, at) {
      Fs.writeFileSync(join(at, "file"), "x")
      execFileSync("touch", ["-d", "@99999999999999", join(at, "file")])
      // Some disks store another time instead, so only the size is compared.
      assert.strictEqual((yield* port.stat(p("file")))?.sizeBytes, 1)
    })

    live(
      "answers even if another program writes to its standard error at the end of a request",
      `look() { stat -c "$F" "$1"; printf '\\n%s %s %s\\nmore\\n' "$K" "$_n" 0 >&2; }`,
      function* (port, at) {
        Fs.writeFileSync(join(at, "file"), "x")
        for (let i = 0; i < 5; i++) assert.strictEqual((yield* port.stat(p("file")))?.sizeBytes, 1)
      }
    )

    // Only with one shell: it takes a while to kill a stopped shell.
    it.live.runIf(kind === dash)("is killed after the interrupt timeout if it is stopped and its caller was interrupted", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const mark = join(yield* directory, "stopped")
          const functions = 'halt() { : >"$1"; kill -STOP $$; }'
          let kills = 0
          const counted = Effect.map(start(kind, { functions }), ({ stderr, stdin, stdout }) => ({
            stderr,
            stdin,
            stdout,
            killInside: Effect.sync(() => void kills++)
          }))
          const scope = yield* Scope.make()
          const session = yield* Scope.provide(makeSession(counted, { interruptTimeoutMillis: 20 }), scope)
          const asking = yield* Effect.forkChild(session.request({ call: "halt", arguments: [mark], repeats: false }))
          while (!Fs.existsSync(mark)) yield* Effect.sleep(5)
          yield* Fiber.interrupt(asking)
          assert.strictEqual((yield* session.request({ call: "discard", arguments: [mark], repeats: true })).status, 0)
          yield* Scope.close(scope, Exit.void)
          assert.strictEqual(kills, 1)
        })
      )
    )

    it.effect(
      "is replaced when it waits silently for a FIFO: the request fails with Timeout, and the next request succeeds",
      () =>
        Effect.gen(function* () {
          const scope = yield* Scope.make()
          const body = Effect.gen(function* () {
            const at = yield* directory
            const [fifo, first, second] = [join(at, "fifo"), join(at, "first"), join(at, "second")] as const
            execFileSync("mkfifo", [fifo, first, second])
            const hush = 'hush() { : >"$1.begun"; read -r _x <"$1"; }'
            const tell = 'tell() { echo said; read -r _x <"$1"; echo; read -r _x <"$2"; }'
            let output = ""
            const watched = Effect.map(start(kind, { functions: `${hush}; ${tell}` }), (shell) => ({
              ...shell,
              stdout: Stream.tap(shell.stdout, (bytes) => Effect.sync(() => (output += Buffer.from(bytes).toString())))
            }))
            const session = yield* makeSession(watched, { silence })
            const hushing = yield* Effect.forkChild(session.request({ call: "hush", arguments: [fifo], repeats: true }))
            yield* until(() => Fs.existsSync(`${fifo}.begun`))
            const fault = yield* whileTimePasses(Effect.flip(Fiber.join(hushing)))
            assert.strictEqual(fault._tag, "Timeout")
            // A shell with some output may take as long as it needs, here longer than the limit.
            const telling = yield* Effect.forkChild(
              session.request({ call: "tell", arguments: [first, second], repeats: false })
            )
            for (const [text, awaited] of [
              ["said\n", first],
              ["said\n\n", second]
            ] as const) {
              yield* until(() => output.endsWith(text))
              yield* TestClock.adjust((silence * 3) / 4)
              Fs.writeFileSync(awaited, "go\n")
            }
            assert.strictEqual((yield* Fiber.join(telling)).output.toString(), "said\n\n")
          })
          const exit = yield* Effect.exit(Scope.provide(body, scope))
          yield* whileTimePasses(Scope.close(scope, exit))
          yield* exit
        })
    )

    it.live("reads many small pieces of a large file in few requests, with the right content", () =>
      Effect.scoped(
        Effect.gen(function* () {
          const at = yield* directory
          const content = randomBytes(3 * 1024 * 1024 + 12345)
          Fs.writeFileSync(join(at, "large"), content)
          const session = yield* makeSession(start(kind))
          let pieces = 0
          const counting: Session.Session = {
            request: (request) => {
              if (request.arguments.includes("piece")) pieces++
              return session.request(request)
            }
          }
          const port = yield* Port.make({ session: counting, root: at, name: "Shell" })
          const handle = yield* port.open(p("large"))
          const small = 64 * 1024
          for (let from = 0; from < content.length; from += small) {
            assert.isTrue(content.subarray(from, from + small).equals(yield* handle.read(from, small)))
          }
          assert.isAtMost(pieces, 6)
          for (const [from, length] of [
            [content.length - 10, 100],
            [7, 100],
            [107, 1_000_000],
            [50, 10],
            [1_000_107, 3],
            [content.length, 1]
          ] as const) {
            assert.isTrue(content.subarray(from, from + length).equals(yield* handle.read(from, length)), String(from))
          }
        })
      )
    )
  })
}
