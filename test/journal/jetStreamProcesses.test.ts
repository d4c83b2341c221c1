/** A journal on a server with several processes, of which some are killed. */
import { afterAll, assert, beforeAll, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Fs from "node:fs"
import { join } from "node:path"
import * as Branch from "../../src/journal/Branch.ts"
import { type FileFault, FileWrite, type FileWritten, isTerminal } from "../../src/journal/FileSystemEntry.ts"
import * as JetStream from "../../src/journal/JetStream.ts"
import * as Journal from "../../src/journal/Journal.ts"
import { type Child, clean, start } from "../durability/children.ts"
import { inMemory } from "../scratch.ts"
import { describeNats, type Server, startCluster, startServer } from "./nats.ts"
import type { Orders } from "./natsChild.ts"

const isSoak = process.env["FS_ALGEBRA_SOAK"] === "1"
const kills = isSoak ? 200 : 4

const cache = join(inMemory(), "compiled")
const program = (): Child => start("../journal/natsChild.ts", cache, false)
const child = (orders: Orders, started = program()): Child => {
  started.say(orders)
  return started
}
/** Kills the process, which must not have ended by itself. */
const killed = async (victim: Child): Promise<void> => {
  victim.process.kill("SIGKILL")
  const { errors, signal } = await victim.ended
  assert.strictEqual(signal, "SIGKILL", errors)
}
/** Waits until the process has printed `count` characters after its first one. */
const heard = (victim: Child, count: number) =>
  Effect.promise(async () => {
    await victim.dots(count)
    if (victim.process.exitCode !== null) assert.fail((await victim.ended).errors)
  })
/** Dies when the process ends. */
const lives = (victim: Child) =>
  Effect.flatMap(
    Effect.promise(() => victim.ended),
    ({ errors }) => Effect.die(new Error(`it ended by itself: ${errors}`))
  )
const finished = (victim: Child) =>
  Effect.promise(async () => {
    victim.process.stdin.end()
    assert.strictEqual((await victim.ended).errors, "")
  })

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index)
const idOf = ({ entry }: Journal.Recorded<Journal.Entry>) => ("correlationId" in entry ? entry.correlationId : "")
const count = (text: string, part: string): number => text.split(part).length - 1

afterAll(clean)

describeNats("a journal on JetStream with several processes", () => {
  let server: Server
  beforeAll(async () => {
    server = await startServer()
  })

  let names = 0
  const fresh = () => ({ servers: server.url, name: `processes-${++names}` })
  const directory = (): string => Fs.mkdtempSync(join(inMemory(), "leaf-"))

  it.live("keeps every confirmed append at its position without gaps, even after the appending process is killed", () =>
    Effect.gen(function* () {
      const place = fresh()
      const children = ["a", "b"].map((who) => child({ ...place, task: "append", who, count: who === "b" ? 100_000 : 90 }))
      yield* Effect.forEach(children, (one) => heard(one, 400))
      yield* Effect.promise(() => killed(children[1]!))
      const journal = yield* JetStream.make(Journal.Entry, place)
      while (!children[0]!.said().endsWith("done\n")) yield* heard(children[0]!, children[0]!.said().length + 1)
      const found = yield* Stream.runCollect(journal.stored())
      assert.deepStrictEqual(
        found.map(({ position }) => position),
        numbers(1, found.length)
      )
      const ids = found.map(idOf)
      assert.strictEqual(new Set(ids).size, ids.length)
      for (const one of children) {
        const answers = one.said().split("\n").slice(0, -1)
        for (const [position, id] of answers.filter((line) => line !== "done").map((line) => line.split(" "))) {
          assert.strictEqual(ids[Number(position) - 1], id)
        }
      }
      for (const [index, id] of ids.entries()) {
        if (!id.endsWith("-a")) continue
        assert.deepStrictEqual(ids.slice(index + 1, index + 3), [id.replace("-a", "-b"), id.replace("-a", "-c")])
      }
      assert.strictEqual(ids.filter((id) => id.startsWith("a")).length, 3 * (60 + 30 * 3))
      yield* finished(children[0]!)
      assert.strictEqual(yield* journal.append(found[0]!.entry), found.length + 1)
    }).pipe(Effect.scoped)
  )

  it.live("serves callers in two processes with a leaf in a third", () =>
    Effect.gen(function* () {
      const place = fresh()
      const root = directory()
      const started = [program(), program()]
      const leaf = child({ ...place, task: "leaf", directory: root })
      // A request that precedes the first leaf is not executed.
      yield* heard(leaf, 7)
      const callers = ["a", "b"].map((who, index) => child({ ...place, task: "call", who, count: 25 }, started[index]))
      for (const caller of callers) {
        yield* heard(caller, 5)
        yield* finished(caller)
        assert.strictEqual(caller.said(), "done\n")
      }
      const lines = Fs.readFileSync(join(root, "lines"), "utf8").split("\n").slice(0, -1)
      for (const who of ["a", "b"]) {
        assert.deepStrictEqual(
          lines.filter((line) => line.startsWith(who)),
          numbers(1, 25).map((n) => `${who} ${n}`)
        )
      }
      assert.strictEqual(lines.length, 50)
      yield* finished(leaf)
    }).pipe(Effect.scoped)
  )

  it.live(
    `repeats no write and loses no confirmed write if the leaf is killed and replaced ${kills} times`,
    () =>
      Effect.gen(function* () {
        const place = fresh()
        const root = directory()
        const journal = yield* JetStream.make(Journal.Entry, place)
        const branch = yield* Effect.provideService(
          Branch.makeRequests({ extended: true, timeout: "1 minute" }),
          Journal.Journal,
          journal
        )
        const answers = new Map<string, FileWritten | FileFault>()
        let isOver = false
        const caller = (who: string): Effect.Effect<void, unknown, Scope.Scope> =>
          Effect.gen(function* () {
            for (let n = 1; ; n++) {
              if (isOver) return
              const id = `<${who}${n}>`
              const content = new TextEncoder().encode(`${id}\n`)
              const write = new FileWrite({ correlationId: id, path: `file-${who}`, content, createMode: "append" })
              answers.set(id, yield* branch.request(write))
            }
          })
        let leaf = child({ ...place, task: "leaf", directory: root })
        const callers = yield* Effect.forEach(["a", "b", "c"], (who) => Effect.forkChild(caller(who)))
        let next = program()
        for (const kill of numbers(1, kills)) {
          const reached = answers.size + 3 + ((kill * 7) % 11)
          const answered = journal.waitFor(yield* journal.last, (_): _ is Journal.Entry => answers.size >= reached)
          yield* Effect.raceFirst(answered, lives(leaf))
          yield* Effect.promise(() => killed(leaf))
          leaf = child({ ...place, task: "leaf", directory: root }, next)
          next = program()
        }
        yield* journal.waitFor(yield* journal.last, (entry): entry is FileWritten => entry._tag === "FileWritten")
        isOver = true
        yield* Effect.forEach(callers, Fiber.join)
        yield* finished(leaf)
        yield* Effect.promise(() => killed(next))

        const terminal = new Map<string, number>()
        yield* Stream.runForEach(journal.stored(), ({ entry }) =>
          Effect.sync(() => {
            if (isTerminal(entry)) terminal.set(entry.correlationId, (terminal.get(entry.correlationId) ?? 0) + 1)
          })
        )
        const files = ["a", "b", "c"].map((who) => Fs.readFileSync(join(root, `file-${who}`), "utf8")).join("")
        let lines = 0
        for (const [id, answer] of answers) {
          assert.strictEqual(terminal.get(id), 1, id)
          const found = count(files, `${id}\n`)
          lines += found
          if (answer._tag === "FileWritten") assert.strictEqual(found, 1, id)
          else assert.isTrue(answer.message.includes("not executed") ? found === 0 : found <= 1, `${id}: ${answer.message}`)
        }
        assert.strictEqual(terminal.size, answers.size)
        assert.strictEqual(files.split("\n").length - 1, lines)
        assert.isAbove([...answers.values()].filter(({ _tag }) => _tag === "FileWritten").length, kills)
      }).pipe(Effect.scoped),
    isSoak ? 3_600_000 : 120_000
  )

  if (isSoak) {
    it.live(
      "on three servers loses no confirmed append while one server after another is killed",
      () =>
        Effect.gen(function* () {
          const servers = yield* Effect.promise(() => startCluster(3))
          const options = { servers: servers.map(({ url }) => url), name: "cluster", replicas: 3 }
          const [journal, reader] = yield* Effect.all([
            JetStream.make(Journal.Entry, options),
            JetStream.make(Journal.Entry, options)
          ])
          const tail = yield* Effect.forkChild(Stream.runCollect(Stream.take(reader.tail(), 3_000)))
          const append = yield* Effect.forkChild(
            Effect.forEach(
              numbers(1, 3_000),
              (n) => {
                const content = Uint8Array.of(n)
                return journal.append(new FileWrite({ correlationId: String(n), path: "/a", content, createMode: "append" }))
              },
              { concurrency: 2 }
            )
          )
          for (const round of numbers(1, 12)) {
            const any = (_: Journal.Entry): _ is Journal.Entry => true
            yield* reader.waitFor(round * 200, any)
            const victim = servers[round % 3]!
            yield* Effect.promise(victim.kill)
            yield* reader.waitFor(round * 200 + 100, any)
            yield* Effect.promise(victim.start)
          }
          const positions = yield* Fiber.join(append)
          const seen = yield* Fiber.join(tail)
          assert.deepStrictEqual(
            seen.map(({ position }) => position),
            numbers(1, 3_000)
          )
          for (const [index, position] of positions.entries()) assert.strictEqual(idOf(seen[position - 1]!), String(index + 1))
        }).pipe(Effect.scoped),
      600_000
    )
  }
})
