/** Tests Sftp with killed servers, cut connections, servers without extensions, full disks and interrupted calls. */
import { assert, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import { makePacket, Reader, StatusCode, Type } from "../../../src/backends/sftp/wire.ts"
import { make } from "../../../src/filesystem/Filesystem.ts"
import { laws, suite } from "../../../src/testing/index.ts"
import { directory } from "../../conformance/filesystems.ts"
import { isSoak } from "../../runs.ts"
import { type Between, type Packet, passing, statusOf, through, without } from "./between.ts"
import { cases, hidden, newTree, oldTree, plantTree, treeOf } from "./operations.ts"
import { describeSftp, freshOn, openPiped, pipe, type Piped } from "./servers.ts"

/** The requests that start a session. They belong to no call, so their loss changes nothing. */
const housekeeping: ReadonlySet<number> = new Set([Type.init])

/** Loses the connection at the n-th packet after `arm`, once. */
const losing = (nth: number, fate: "request" | "answer") => {
  let left = Number.POSITIVE_INFINITY
  let wasLost = false
  const next = (type: number) => {
    if (housekeeping.has(type) || --left > 0 || wasLost) return "pass" as const
    wasLost = true
    return "cut" as const
  }
  const between: Between = {
    onRequest: ({ type }) => (fate === "request" ? next(type) : "pass"),
    onAnswer: ({ type }) => (fate === "answer" && type !== Type.version ? next(type) : "pass")
  }
  return { between, arm: () => void (left = nth), wasLost: () => wasLost }
}

/** More packets than any of the calls needs. */
const maxPackets = 60

describeSftp("Sftp on a server that is killed and restarted", () => {
  for (const one of cases) {
    // A lost request differs from a lost answer only for a change.
    for (const fate of one.isSafe && !isSoak ? (["answer"] as const) : (["request", "answer"] as const)) {
      it.live(`${one.name} leaves the old or the new tree, no matter which ${fate} is lost`, () =>
        Effect.gen(function* () {
          const before = yield* oldTree
          const after = yield* newTree(one)
          let nth = 1
          for (; nth < maxPackets; nth++) {
            const root = yield* directory
            plantTree(root)
            const isDone = yield* Effect.gen(function* () {
              const { arm, between, wasLost } = losing(nth, fate)
              const fs = make(yield* openPiped(root, {}, {}, through(pipe(), between)))
              arm()
              const result = yield* Effect.result(one.run(fs))
              // A later call shows that the connection is open again. Its listings remove the leftovers.
              yield* fs.walk(".").pipe(Stream.runDrain)
              yield* fs.exists("b.txt")
              const found = treeOf(root)
              const at = `packet ${nth}: ${JSON.stringify(result).slice(0, 300)}`
              assert.deepStrictEqual(hidden(found), [], at)
              if (result._tag === "Success") assert.deepStrictEqual(found, after, at)
              else {
                assert.isFalse(one.isSafe, at)
                assert.strictEqual((result.failure as { readonly _tag: string })._tag, "Unavailable", at)
                if (JSON.stringify(found) !== JSON.stringify(after)) assert.deepStrictEqual(found, before, at)
              }
              return !wasLost()
            }).pipe(Effect.scoped)
            if (isDone) break
          }
          assert.isAbove(nth, 2)
          assert.isBelow(nth, maxPackets)
        }).pipe(Effect.scoped)
      )
    }
  }

  it.live("a change whose outcome is unknown fails, and the message says that it may have been made", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const between = passing()
      const fs = make(yield* openPiped(root, {}, {}, through(pipe(), between)))
      let mkdir: number | undefined
      between.onRequest = ({ id, type }) => {
        if (type === Type.mkdir) mkdir = id
        return "pass"
      }
      between.onAnswer = ({ id }) => (id === mkdir ? "cut" : "pass")
      const error = yield* Effect.flip(fs.mkdir("d"))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "before you repeat it, check whether it was made")
      assert.isTrue(Fs.existsSync(join(root, "d")))
    }).pipe(Effect.scoped)
  )

  it.live("a read from an open file fails with ESTALE, and the file can be opened again", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.writeFileSync(join(root, "a"), "content")
      let child: Piped["child"] | undefined
      const port = yield* openPiped(
        root,
        {},
        {},
        pipe((piped) => void (child = piped.child))
      )
      const path = (yield* port.list("." as never))[0]!.name as never
      const handle = yield* port.open(path)
      child!.kill("SIGKILL")
      const fault = yield* Effect.flip(handle.read(0, 7))
      assert.deepInclude(fault, { _tag: "IoError", code: "ESTALE" })
      const again = yield* port.open(path)
      assert.strictEqual(Buffer.from(yield* again.read(0, 7)).toString(), "content")
    }).pipe(Effect.scoped)
  )

  it.live("a call fails with Unavailable if the server cannot be reached again, and a later call succeeds", () =>
    Effect.gen(function* () {
      const root = yield* directory
      let child: Piped["child"] | undefined
      let isAway = false
      const dial = Effect.suspend(() =>
        isAway
          ? Effect.fail({ fault: { _tag: "Unavailable", detail: "away" } as const, isFinal: false })
          : pipe((piped) => void (child = piped.child))
      )
      const fs = make(yield* openPiped(root, {}, { timings: { attempts: 2, pauseMillis: 1 } }, dial))
      isAway = true
      child!.kill("SIGKILL")
      assert.strictEqual((yield* Effect.flip(fs.write("a", "x")))._tag, "Unavailable")
      isAway = false
      yield* fs.write("a", "y")
      assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), "y")
    }).pipe(Effect.scoped)
  )

  it.live("a call fails with Unavailable if the server stops answering", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const between = passing()
      const fs = make(yield* openPiped(root, {}, { timings: { answerMillis: 200, attempts: 1 } }, through(pipe(), between)))
      between.onAnswer = () => new Promise(() => {})
      const error = yield* Effect.flip(fs.mkdir("d"))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "did not answer")
      between.onAnswer = () => "pass"
      assert.deepStrictEqual(yield* fs.list("."), [])
    }).pipe(Effect.scoped)
  )

  it.live("a read over a slow network may take longer than the timeout of one answer", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const bytes = Buffer.alloc(2 * 1024 * 1024, 7)
      Fs.writeFileSync(join(root, "a"), bytes)
      const between = passing()
      const fs = make(yield* openPiped(root, {}, { timings: { answerMillis: 200 } }, through(pipe(), between)))
      between.onAnswer = ({ type }) =>
        type === Type.data ? new Promise((resolve) => setTimeout(() => resolve("pass"), 150)) : "pass"
      const { content: read } = yield* fs.readBytes("a")
      assert.isTrue(bytes.equals(read))
    }).pipe(Effect.scoped)
  )

  it.live("every call fails with Unavailable after the layer is closed", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const fs = yield* Effect.scoped(Effect.map(openPiped(root), make))
      assert.strictEqual((yield* Effect.flip(fs.list(".")))._tag, "Unavailable")
    }).pipe(Effect.scoped)
  )
})

describeSftp("Sftp on a connection that is lost during the rename of a written file", () => {
  const isCall = ({ bytes, type }: Packet, extension: string) => type === Type.extended && bytes.includes(extension)

  it.live("a replacement fails with Unavailable if its temporary file is gone and the target is still the old file", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.writeFileSync(join(root, "a"), "old\n")
      const between = passing()
      const fs = make(yield* openPiped(root, {}, {}, through(pipe(), between)))
      between.onRequest = (packet) => {
        if (!isCall(packet, "posix-rename@")) return "pass"
        // The server starts again with an older state of the disk.
        for (const name of hidden(treeOf(root))) Fs.rmSync(join(root, name))
        return "cut"
      }
      const error = yield* Effect.flip(fs.write("a", "new content\n"))
      assert.strictEqual(error._tag, "Unavailable")
      assert.include(error.message, "check whether it was made")
      assert.deepStrictEqual(treeOf(root), { a: "old\n" })
    }).pipe(Effect.scoped)
  )

  for (const fate of ["request", "answer"] as const) {
    it.live(`a create without hard links is completed, no matter which ${fate} is lost`, () =>
      Effect.gen(function* () {
        for (let nth = 1; nth < maxPackets; nth++) {
          const root = yield* directory
          const { arm, between, wasLost } = losing(nth, fate)
          const { onAnswer } = without(["hardlink@openssh.com"])
          const dial = through(pipe(), {
            onRequest: between.onRequest,
            onAnswer: (packet) => (packet.type === Type.version ? onAnswer(packet) : between.onAnswer(packet))
          })
          yield* Effect.scoped(
            Effect.gen(function* () {
              const fs = make(yield* openPiped(root, {}, {}, dial))
              arm()
              yield* fs.write("new.txt", "content\n", { mode: "create" })
              yield* fs.walk(".").pipe(Stream.runDrain)
              yield* fs.exists("new.txt")
            })
          )
          assert.deepStrictEqual(treeOf(root), { "new.txt": "content\n" }, `packet ${nth}`)
          assert.strictEqual(Fs.statSync(join(root, "new.txt")).mode & 0o600, 0o600)
          if (!wasLost()) return assert.isAbove(nth, 6)
        }
        assert.fail("the create needs more packets than expected")
      }).pipe(Effect.scoped)
    )
  }

  it.live("an empty file of another program is not replaced by a repeated create without hard links", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const { onAnswer } = without(["hardlink@openssh.com"])
      let isLost = false
      const dial = through(pipe(), {
        onRequest: (packet) => {
          if (isLost || packet.type !== Type.open || !packet.bytes.includes("/new.txt")) return "pass"
          isLost = true
          Fs.writeFileSync(join(root, "new.txt"), "")
          return "cut"
        },
        onAnswer
      })
      const fs = make(yield* openPiped(root, {}, {}, dial))
      const error = yield* Effect.flip(fs.write("new.txt", "content\n", { mode: "create" }))
      assert.strictEqual(error._tag, "AlreadyExists")
      // The server answers in order, so it has removed the temporary file before it answers this call.
      yield* fs.exists("new.txt")
      assert.deepStrictEqual(treeOf(root), { "new.txt": "" })
    }).pipe(Effect.scoped)
  )

  for (const lostSet of [1, 2]) {
    it.live(`a repeated create keeps the modification time if the answer to its setstat request ${lostSet} is lost`, () =>
      Effect.gen(function* () {
        const root = yield* directory
        let id: number | undefined
        let time = 0
        let sets = 0
        const fs = make(
          yield* openPiped(
            root,
            {},
            {},
            through(pipe(), {
              onRequest: (packet) => {
                if (time === 0 && isCall(packet, "hardlink@")) {
                  time = Fs.statSync(join(root, hidden(treeOf(root))[0]!)).mtimeMs
                  Fs.utimesSync(join(root, hidden(treeOf(root))[0]!), Math.floor(time / 1000), Math.floor(time / 1000))
                  ;({ id } = packet)
                } else if (time !== 0 && packet.type === Type.setstat && ++sets === lostSet) ({ id } = packet)
                return "pass"
              },
              onAnswer: (packet) => {
                if (packet.id !== id || time === 0) return "pass"
                id = undefined
                return "cut"
              }
            })
          )
        )
        yield* fs.write("new.txt", "content\n", { mode: "create" })
        assert.isAbove(sets, lostSet)
        assert.strictEqual(Math.floor(Fs.statSync(join(root, "new.txt")).mtimeMs / 1000), Math.floor(time / 1000))
      }).pipe(Effect.scoped)
    )
  }
})

describeSftp("a replacement of a file of another group over SFTP", () => {
  const otherGroup = 54_321

  /** Pretends that the file `a` has another group, and answers each change of an owner as told. */
  const withGroup = (isAccepted: (nth: number) => boolean) =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.writeFileSync(join(root, "a"), "old")
      Fs.chmodSync(join(root, "a"), 0o664)
      const owners: Array<readonly [number, number]> = []
      const looks = new Set<number>()
      const modes: Array<number> = []
      const between: Between = {
        onRequest: ({ bytes, id, type }) => {
          const reader = new Reader(bytes.subarray(5))
          if (type === Type.lstat && reader.bytes().toString().endsWith("/a")) looks.add(id)
          if (type === Type.write) {
            for (const name of hidden(treeOf(root))) modes.push(Fs.statSync(join(root, name)).mode & 0o777)
          }
          if (type !== Type.fsetstat) return "pass"
          const handle = reader.bytes()
          if ((reader.u32() & 2) === 0) return "pass"
          owners.push([reader.u32(), reader.u32()])
          const replaced = isAccepted(owners.length)
            ? makePacket(Type.fsetstat, id, [handle, {}])
            : makePacket(Type.remove, id, ["/missing"])
          return replaced.subarray(4)
        },
        onAnswer: ({ bytes, id, type }) => {
          if (type !== Type.attrs || !looks.has(id)) return "pass"
          const changed = Buffer.from(bytes)
          changed.writeUInt32BE(otherGroup, 5 + 4 + 8 + 4)
          return changed
        }
      }
      const fs = make(yield* openPiped(root, {}, {}, through(pipe(), between)))
      yield* fs.write("a", "new")
      assert.strictEqual(Fs.readFileSync(join(root, "a"), "utf8"), "new")
      assert.deepStrictEqual(modes, [0o600], "no group reads the content before the file has its group")
      return { owners, mode: Fs.statSync(join(root, "a")).mode & 0o777 }
    })

  it.live("keeps the group if the server refuses only the owner", () =>
    Effect.gen(function* () {
      const { mode, owners } = yield* withGroup((nth) => nth === 2)
      assert.deepStrictEqual(owners, [
        [process.getuid!(), otherGroup],
        [process.getuid!(), otherGroup]
      ])
      assert.strictEqual(mode, 0o664)
    }).pipe(Effect.scoped)
  )

  it.live("gives no group access if the server refuses the group", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* withGroup(() => false)).mode, 0o604)
    }).pipe(Effect.scoped)
  )
})

describeSftp("an interrupted call of Sftp", () => {
  const descriptors = (pid: number): number => Fs.readdirSync(`/proc/${pid}/fd`).length

  for (const { name, run } of cases) {
    it.live(`${name} leaves no descriptor and no temporary file on the server, after any answer`, () =>
      Effect.gen(function* () {
        const root = yield* directory
        for (let nth = 1; nth < maxPackets; nth++) {
          Fs.rmSync(root, { recursive: true })
          Fs.mkdirSync(root)
          plantTree(root)
          const isDone = yield* Effect.gen(function* () {
            const between = passing()
            let pid = 0
            const dial = pipe(({ child }) => void (pid = child.pid!))
            const fs = make(yield* openPiped(root, {}, {}, through(dial, between)))
            // The answer to this call comes after the close of the directory that opening has listed.
            yield* fs.exists("b.txt")
            const baseline = descriptors(pid)
            const reached = yield* Deferred.make<void>()
            let release: () => void = () => {}
            let isReleased = false
            let left = nth
            between.onAnswer = () => {
              // The call may end before an answer to its last requests, for which nobody waits.
              if (isReleased || --left !== 0) return "pass"
              Deferred.doneUnsafe(reached, Effect.void)
              return new Promise((resolve) => void (release = () => resolve("pass")))
            }
            const fiber = yield* Effect.forkChild(run(fs))
            const wasReached = yield* Effect.raceFirst(
              Effect.as(Deferred.await(reached), true),
              Effect.as(Fiber.await(fiber), false)
            )
            const interrupted = yield* Effect.forkChild(Fiber.interrupt(fiber))
            yield* Effect.yieldNow
            isReleased = true
            release()
            yield* Fiber.join(interrupted)
            // The server answers in order, so its work for the interrupted call is done afterwards.
            yield* fs.exists("b.txt")
            yield* fs.exists("b.txt")
            assert.strictEqual(descriptors(pid), baseline, `answer ${nth}`)
            assert.deepStrictEqual(hidden(treeOf(root)), [], `answer ${nth}`)
            return !wasReached
          }).pipe(Effect.scoped)
          if (isDone) return
        }
        assert.fail("the call needs more answers than expected")
      }).pipe(Effect.scoped)
    )
  }
})

describeSftp("Sftp on a server without extensions", () => {
  const bare = (options = {}) => freshOn((root) => openPiped(root, options, {}, through(pipe(), without("all"))))

  suite("Sftp, with unsafeReplace", bare({ unsafeReplace: true }), {
    laws: laws.filter(({ needs }, index) => !needs.includes("links") && (isSoak || index % 20 === 0)),
    programs: 0
  })

  it.live("does not replace a file, and the error names the missing extension", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const port = yield* openPiped(root, {}, {}, through(pipe(), without("all")))
      const fs = make(port)
      yield* fs.write("a", "one", { mode: "create" })
      yield* fs.write("b", "two", { mode: "create" })
      const changes = [Effect.asVoid(fs.write("a", "three")), Effect.asVoid(fs.move("b", "a", { overwrite: true }))]
      for (const change of changes) {
        const error = yield* Effect.flip<void, { readonly _tag: string; readonly message: string }, never>(change)
        assert.strictEqual(error._tag, "Unsupported")
        assert.include(error.message, "posix-rename@openssh.com")
        assert.include(error.message, "unsafeReplace: true")
      }
      assert.strictEqual((yield* Effect.flip(fs.symlink("l", "a")))._tag, "Unsupported")
      assert.deepStrictEqual(treeOf(root), { a: "one", b: "two" })
    }).pipe(Effect.scoped)
  )

  it.live("creates a file only once if the server has no hard links", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const one = yield* openPiped(root, {}, {}, through(pipe(), without(["hardlink@openssh.com"])))
      assert.include(one.info.bestEffort?.join(), "creation")
      const all = yield* Effect.forEach(
        Array.from({ length: 8 }, (_, nth) => nth),
        (nth) => Effect.result(make(one).write("a", `${nth}`, { mode: "create" })),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(all.filter(({ _tag }) => _tag === "Success").length, 1)
      // The server answers in order, so it has removed the temporary file before it answers this call.
      yield* make(one).exists("a")
      assert.deepStrictEqual(Object.keys(treeOf(root)), ["a"])
    }).pipe(Effect.scoped)
  )
})

describeSftp("Sftp on a server that refuses", () => {
  it.live("a write to a full disk fails with DiskFull and keeps the old file", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.writeFileSync(join(root, "a"), "old")
      const between = passing()
      const fs = make(yield* openPiped(root, {}, {}, through(pipe(), between)))
      const writes = new Set<number>()
      const questions = new Set<number>()
      between.onRequest = ({ bytes, id, type }) => {
        if (type === Type.write) writes.add(id)
        if (type === Type.extended && bytes.includes("statvfs@")) questions.add(id)
        return "pass"
      }
      between.onAnswer = ({ bytes, id }) => {
        if (writes.has(id)) return statusOf(id, StatusCode.failure)
        if (!questions.has(id)) return "pass"
        const full = Buffer.from(bytes)
        // The fifth number of the answer is the number of available blocks.
        full.writeBigUInt64BE(0n, 5 + 4 * 8)
        return full
      }
      assert.strictEqual((yield* Effect.flip(fs.write("a", "new")))._tag, "DiskFull")
      // The server answers in order, so it has removed the temporary file before it answers this call.
      yield* fs.exists("a")
      assert.deepStrictEqual(treeOf(root), { a: "old" })
    }).pipe(Effect.scoped)
  )

  it.live("a refusal without a reason becomes an IoError with the server's message, without control characters", () =>
    Effect.gen(function* () {
      const root = yield* directory
      const between = passing()
      const fs = make(yield* openPiped(root, {}, {}, through(pipe(), between)))
      const made = new Set<number>()
      between.onRequest = ({ id, type }) => {
        if (type !== Type.mkdir) return "pass"
        made.add(id)
        return "pass"
      }
      between.onAnswer = ({ id }) => {
        if (!made.has(id)) return "pass"
        Fs.rmdirSync(join(root, "d"))
        const words = Buffer.from("dis\u001b[31mk\ngone")
        const answer = Buffer.concat([statusOf(id, StatusCode.failure).subarray(0, 9), Buffer.alloc(4), words, Buffer.alloc(4)])
        answer.writeUInt32BE(words.length, 9)
        return answer
      }
      const error = yield* Effect.flip(fs.mkdir("d"))
      assert.strictEqual(error._tag, "IoError")
      assert.include(error.message, 'the server answered "dis [31mk gone"')
    }).pipe(Effect.scoped)
  )
})

describeSftp("Sftp and leftovers", () => {
  const foreign = `.~fsa-${"a".repeat(13)}-1-1-${"0".repeat(18)}-${"f".repeat(32)}.tmp`

  it.live("a temporary file of another machine is removed after a day", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.mkdirSync(join(root, "d"))
      for (const folder of [".", "d"]) Fs.writeFileSync(join(root, folder, foreign), "half")
      const fs = make(yield* openPiped(root))
      assert.strictEqual((yield* fs.list(".")).length, 2)
      assert.strictEqual((yield* Effect.flip(fs.delete("d")))._tag, "DirectoryNotEmpty")
      const yesterday = new Date(Date.now() - 25 * 60 * 60 * 1000)
      yield* fs.write("own", "x")
      yield* fs.delete("own")
      for (const folder of [".", "d"]) Fs.utimesSync(join(root, folder, foreign), yesterday, yesterday)
      assert.deepStrictEqual(
        (yield* fs.list(".")).map(({ name }) => name),
        ["d"]
      )
      yield* fs.delete("d")
      assert.deepStrictEqual(treeOf(root), {})
    }).pipe(Effect.scoped)
  )

  it.live("a temporary file of another machine is kept even if the clock of this machine is wrong", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.writeFileSync(join(root, foreign), "half")
      const fs = make(yield* openPiped(root))
      const clock = yield* Clock.Clock
      const inTwoDays = () => Date.now() + 48 * 60 * 60 * 1000
      const ahead: Clock.Clock = Object.assign(Object.create(clock), {
        currentTimeMillis: Effect.sync(inTwoDays),
        currentTimeMillisUnsafe: inTwoDays
      })
      yield* Effect.provideService(fs.list("."), Clock.Clock, ahead)
      yield* fs.write("own", "x")
      assert.strictEqual((yield* Effect.provideService(fs.list("."), Clock.Clock, ahead)).length, 2)
      yield* fs.exists("own")
      assert.isTrue(Fs.existsSync(join(root, foreign)))
      // A layer that does not know the server's time does not remove old temporary files either.
      Fs.utimesSync(join(root, foreign), 1, 1)
      const other = make(yield* openPiped(root))
      assert.strictEqual((yield* other.list(".")).length, 2)
    }).pipe(Effect.scoped)
  )

  it.live("a layer that may not delete removes no leftovers", () =>
    Effect.gen(function* () {
      const root = yield* directory
      Fs.writeFileSync(join(root, foreign), "half")
      Fs.utimesSync(join(root, foreign), 1, 1)
      const fs = make(yield* openPiped(root, { allowDelete: false }))
      // After a write, the layer knows the server's time.
      yield* fs.write("own", "x")
      assert.strictEqual((yield* fs.list(".")).length, 2)
      yield* fs.exists("own")
      assert.isTrue(Fs.existsSync(join(root, foreign)))
    }).pipe(Effect.scoped)
  )
})
