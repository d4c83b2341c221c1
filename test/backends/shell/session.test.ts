import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { createHash, randomBytes } from "node:crypto"
import * as Fs from "node:fs"
import { join } from "node:path"
import type * as Session from "../../../src/backends/container/shell/session.ts"
import { makeSession } from "../../../src/backends/container/shell/session.ts"
import { dash, directory, type Kind, missing, shells, start } from "./shells.ts"

const functions = `
say() { printf '%s' "$*"; }
sayOneByOne() { printf '<%s>' "$@"; }
complain() { printf '%s' "$1" >&2; return 3; }
number() { echo $$; }
keep() { take >"$1"; }
show() { cat "$1"; }
ignore() { :; }
zeros() { head -c "$1" /dev/zero; }
die() { echo "the end" >&2; kill -9 $$; }
dieOnce() { if [ -e "$1" ]; then echo again; else : >"$1"; kill -9 $$; fi; }
babble() { (until [ -e "$1" ]; do :; done; echo gossip; : >"$1.done") & }
block() { : >"$1"; until [ -e "$2" ]; do :; done; echo "$3" >>"$4"; }
note() { echo "$1" >>"$2"; }
cannot() { take >/nowhere/at/all; }
`

const ask = (session: Session.Session, call: string, ...args: ReadonlyArray<string | Uint8Array>) =>
  session.request({ call, arguments: args, repeats: true })
const change = (session: Session.Session, call: string, ...args: ReadonlyArray<string>) =>
  session.request({ call, arguments: args, repeats: false })
const give = (session: Session.Session, call: string, input: Uint8Array, ...args: ReadonlyArray<string>) =>
  session.request({ call, arguments: args, input, repeats: false })

const sessionOf = (kind: Kind, options?: Session.Options) => makeSession(start(kind, { functions }), options)

const text = (reply: Session.Reply) => reply.output.toString()

/** Waits for a file without a timer. */
const until = (path: string): Effect.Effect<void> =>
  Effect.suspend(() =>
    Fs.existsSync(path)
      ? Effect.void
      : Effect.andThen(
          Effect.promise(() => tick()),
          until(path)
        )
  )
const tick = () => new Promise<void>((resume) => setImmediate(resume))

const descriptors = () => Fs.readdirSync("/proc/self/fd").length

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0)
    return Fs.readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]![0] !== "Z"
  } catch {
    return false
  }
}

for (const kind of shells) {
  const lacks = missing(kind)
  describe.skipIf(lacks !== undefined)(`a session with ${kind.name}${lacks === undefined ? "" : `: ${lacks}`}`, () => {
    const live = (name: string, body: () => Effect.fn.Return<void, unknown, Scope.Scope>) =>
      it.live(name, () => Effect.gen(body) as Effect.Effect<void, unknown, Scope.Scope>)

    live("passes arguments of all bytes but NUL unchanged", function* () {
      const session = yield* sessionOf(kind)
      const all = Uint8Array.from({ length: 255 }, (_, i) => i + 1)
      assert.deepStrictEqual((yield* ask(session, "say", all)).output, Buffer.from(all))
      const around = [...all].flatMap((byte) =>
        [
          [byte],
          [byte, byte],
          [0x5c, byte],
          [byte, 0x5c],
          [0x27, byte, 0x27],
          [0x0a, byte, 0x0a],
          [1, byte, 0x7f],
          [0x24, 0x28, byte]
        ].map((bytes) => Buffer.from(bytes))
      )
      for (let from = 0; from < around.length; from += 100) {
        const some = around.slice(from, from + 100)
        const reply = yield* ask(session, "sayOneByOne", ...some, "")
        const expected = [...some, Buffer.alloc(0)].flatMap((bytes) => [Buffer.from("<"), bytes, Buffer.from(">")])
        assert.deepStrictEqual(reply.output, Buffer.concat(expected))
      }
    })

    live("passes arguments with shell syntax unchanged", function* () {
      const session = yield* sessionOf(kind)
      for (const argument of [
        "$(echo x)",
        "`echo x`",
        "$HOME",
        "*",
        "~",
        "a;b|c&d",
        "-n",
        "--",
        "\\",
        "'\"'\"",
        "é€😀",
        "#",
        "!!",
        "\t x  y "
      ]) {
        assert.strictEqual(text(yield* ask(session, "sayOneByOne", argument)), `<${argument}>`)
      }
    })

    live("transfers megabytes of any bytes in both directions", function* () {
      const session = yield* sessionOf(kind)
      const at = join(yield* directory, "f")
      for (const size of [0, 1, 4095, 65_536, 65_537, 1024 * 1024]) {
        const bytes = randomBytes(size)
        assert.strictEqual((yield* give(session, "keep", bytes, at)).status, 0)
        assert.deepStrictEqual(Fs.readFileSync(at), bytes, `${size} bytes in`)
        const reply = yield* ask(session, "show", at)
        assert.isTrue(reply.output.equals(bytes), `${size} bytes out`)
      }
      const large = randomBytes(20_000_000)
      Fs.writeFileSync(at, large)
      assert.strictEqual(
        createHash("sha256")
          .update((yield* ask(session, "show", at)).output)
          .digest("hex"),
        createHash("sha256").update(large).digest("hex")
      )
    })

    live("returns output that looks like an end mark unchanged", function* () {
      const session = yield* sessionOf(kind)
      const tricky = "\n0123456789abcdef 1 0\n\n\n0123456789abcdef 1 "
      assert.strictEqual(text(yield* ask(session, "say", tricky)), tricky)
      for (let length = 65_500; length < 65_540; length++) {
        assert.strictEqual((yield* ask(session, "zeros", String(length))).output.length, length)
      }
    })

    live("returns the status and the standard error of each request separately", function* () {
      const session = yield* sessionOf(kind)
      const replies = yield* Effect.all(
        [ask(session, "complain", "one"), ask(session, "say", "x"), ask(session, "complain", "two\n")],
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        replies.map(({ errors, output, status }) => [status, String(output), errors]),
        [
          [3, "", "one"],
          [0, "x", ""],
          [3, "", "two\n"]
        ]
      )
      assert.strictEqual((yield* ask(session, "no-such-function")).status, 127)
    })

    live("skips input that a function does not read", function* () {
      const session = yield* sessionOf(kind)
      yield* give(session, "ignore", Buffer.from("echo this is no command\n".repeat(10_000)))
      assert.strictEqual(text(yield* ask(session, "say", "next")), "next")
      assert.notStrictEqual((yield* give(session, "cannot", randomBytes(100_000))).status, 0)
      assert.strictEqual(text(yield* ask(session, "say", "next")), "next")
    })

    live("serves concurrent callers in order", function* () {
      const session = yield* sessionOf(kind)
      const order: Array<number> = []
      yield* Effect.forEach(
        Array.from({ length: 200 }, (_, i) => i),
        (i) =>
          Effect.map(ask(session, "say", String(i)), (reply) => {
            assert.strictEqual(text(reply), String(i))
            order.push(i)
          }),
        { concurrency: "unbounded" }
      )
      assert.deepStrictEqual(
        order,
        Array.from({ length: 200 }, (_, i) => i)
      )
    })

    live("repeats a read with another shell after a kill, and reports a change as Unavailable", function* () {
      const session = yield* sessionOf(kind)
      const at = join(yield* directory, "tried")
      const first = text(yield* ask(session, "number"))
      assert.strictEqual(text(yield* ask(session, "dieOnce", at)), "again\n")
      const second = text(yield* ask(session, "number"))
      assert.notStrictEqual(second, first)
      const fault = yield* Effect.flip(change(session, "die"))
      assert.strictEqual(fault._tag, "Unavailable")
      assert.include(fault["detail"], "ended during a request")
      assert.include(fault["detail"], "the end")
      assert.notStrictEqual(text(yield* ask(session, "number")), second)
    })

    live("gives up a request that ends every shell", function* () {
      const session = yield* sessionOf(kind)
      assert.strictEqual((yield* Effect.flip(ask(session, "die")))._tag, "Unavailable")
      assert.strictEqual(text(yield* ask(session, "say", "still here")), "still here")
    })

    live("replaces a shell that was killed between requests", function* () {
      const session = yield* sessionOf(kind)
      const first = Number(text(yield* ask(session, "number")))
      process.kill(first, "SIGKILL")
      const second = Number(text(yield* ask(session, "number")))
      assert.notStrictEqual(second, first)
    })

    live("replaces a shell that writes output between requests", function* () {
      const session = yield* sessionOf(kind)
      const go = join(yield* directory, "go")
      const first = text(yield* ask(session, "number"))
      yield* ask(session, "babble", go)
      Fs.writeFileSync(go, "")
      yield* until(`${go}.done`)
      // The output is read in the next iterations of the event loop.
      for (let turns = 50; turns > 0; turns--) yield* Effect.promise(tick)
      assert.notStrictEqual(text(yield* ask(session, "number")), first)
      assert.strictEqual(text(yield* ask(session, "say", "well")), "well")
    })

    live("fails for an answer above its memory limit", function* () {
      const session = yield* sessionOf(kind, { maxAnswerBytes: 1_000_000 })
      assert.strictEqual((yield* ask(session, "zeros", "999000")).output.length, 999_000)
      const fault = yield* Effect.flip(ask(session, "zeros", "50000000"))
      assert.strictEqual(fault._tag, "IoError")
      assert.strictEqual(text(yield* ask(session, "say", "well")), "well")
    })

    live("releases an interrupted caller of a read immediately, and drops the answer", function* () {
      const session = yield* sessionOf(kind)
      const root = yield* directory
      const [begun, go, log] = [join(root, "begun"), join(root, "go"), join(root, "log")]
      const fiber = yield* Effect.forkChild(ask(session, "block", begun, go, "x", log), { startImmediately: true })
      yield* until(begun)
      const next = yield* Effect.forkChild(ask(session, "say", "next"), { startImmediately: true })
      yield* Fiber.interrupt(fiber)
      assert.isFalse(Fs.existsSync(log))
      Fs.writeFileSync(go, "")
      assert.strictEqual(text(yield* Fiber.join(next)), "next")
    })

    live("holds an interrupted caller until a change that was sent is complete", function* () {
      const session = yield* sessionOf(kind)
      const root = yield* directory
      const [begun, go, log] = [join(root, "begun"), join(root, "go"), join(root, "log")]
      const fiber = yield* Effect.forkChild(change(session, "block", begun, go, "x", log), { startImmediately: true })
      yield* until(begun)
      const left = yield* Deferred.make<boolean>()
      yield* Effect.forkChild(
        Effect.flatMap(Fiber.interrupt(fiber), () => Deferred.succeed(left, Fs.existsSync(log))),
        { startImmediately: true }
      )
      yield* Effect.promise(tick)
      Fs.writeFileSync(go, "")
      assert.isTrue(yield* Deferred.await(left))
    })

    live("does not send a request that is interrupted while it waits", function* () {
      const session = yield* sessionOf(kind)
      const root = yield* directory
      const [begun, go, log] = [join(root, "begun"), join(root, "go"), join(root, "log")]
      const first = yield* Effect.forkChild(change(session, "block", begun, go, "first", log), { startImmediately: true })
      yield* until(begun)
      const second = yield* Effect.forkChild(change(session, "note", "second", log), { startImmediately: true })
      const third = yield* Effect.forkChild(change(session, "note", "third", log), { startImmediately: true })
      yield* Fiber.interrupt(second)
      Fs.writeFileSync(go, "")
      yield* Fiber.join(first)
      yield* Fiber.join(third)
      assert.strictEqual(Fs.readFileSync(log, "utf8"), "first\nthird\n")
    })

    live("ends with its scope, and leaves neither processes nor descriptors", function* () {
      const before = descriptors()
      const scope = yield* Scope.make()
      const session = yield* Scope.provide(sessionOf(kind), scope)
      const root = yield* directory
      const large = join(root, "large")
      Fs.writeFileSync(large, "")
      const first = Number(text(yield* ask(session, "number")))
      const [, found] = text(yield* ask(session, "root", root)).split("\n")
      const pinned = Number(text(yield* ask(session, "inside", root, found!, "pin", "./large")).split(" ")[0])
      assert.isTrue(isAlive(first) && isAlive(pinned))
      yield* Scope.close(scope, Exit.void)
      assert.isFalse(isAlive(first))
      assert.isFalse(isAlive(pinned))
      assert.isAtMost(descriptors(), before)
      const fault = yield* Effect.flip(ask(session, "number"))
      assert.strictEqual(fault._tag, "Unavailable")
      assert.include(fault["detail"], "closed")
    })

    live("fails the current and the waiting requests when it is closed", function* () {
      const scope = yield* Scope.make()
      const session = yield* Scope.provide(sessionOf(kind), scope)
      const root = yield* directory
      const begun = join(root, "begun")
      const first = yield* Effect.forkChild(Effect.flip(ask(session, "block", begun, join(root, "never"), "x", "x")), {
        startImmediately: true
      })
      yield* until(begun)
      const second = yield* Effect.forkChild(Effect.flip(ask(session, "say", "x")), { startImmediately: true })
      yield* Scope.close(scope, Exit.void)
      for (const fiber of [first, second]) assert.include((yield* Fiber.join(fiber))["detail"], "closed")
    })
  })
}

describe("a session whose shell does not work", () => {
  it.live("fails with the error of the start, and starts again for the next request", () =>
    Effect.gen(function* () {
      let starts = 0
      const refused = { _tag: "Unavailable", detail: "no engine" } as const
      const session = yield* makeSession(Effect.suspend(() => Effect.fail((starts++, refused))))
      for (const tries of [1, 2]) {
        assert.deepStrictEqual(yield* Effect.flip(ask(session, "say")), refused)
        assert.strictEqual(starts, tries)
      }
    })
  )

  it.live("reports the standard error of a shell that ends immediately", () =>
    Effect.gen(function* () {
      const ended = Effect.succeed<Session.Shell>({
        stdin: (yield* start(dash)).stdin,
        stdout: Stream.empty,
        stderr: Stream.make(Buffer.from("Error: no such container\n"))
      })
      const fault = yield* Effect.flip(ask(yield* makeSession(ended), "say"))
      assert.strictEqual(fault._tag, "Unavailable")
      assert.include(fault["detail"], "no such container")
    })
  )

  it.live("names the missing tool", () =>
    Effect.gen(function* () {
      const bare = start({ ...dash, command: ["/bin/dash"], path: "/nowhere" })
      const fault = yield* Effect.flip(ask(yield* makeSession(bare), "say"))
      assert.strictEqual(fault._tag, "Unavailable")
      assert.include(fault["detail"], "dd")
    })
  )
})
