/** Runners in processes of their own, which are killed and stopped while clients work. */
import { afterAll, assert, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { existsSync } from "node:fs"
import { join } from "node:path"
import { type Algebra, Filesystem } from "../../src/filesystem/Filesystem.ts"
import type { BackendError, FsError } from "../../src/model/FsError.ts"
import { HeadStore } from "../../src/repository/HeadStore.ts"
import * as Repository from "../../src/repository/Repository.ts"
import * as Stores from "../../src/repository/Stores.ts"
import * as Workspaces from "../../src/repository/Workspaces.ts"
import { clean, scratch } from "../durability/children.ts"
import { isSoak } from "../runs.ts"
import { clientOf, type Runner, startRunner } from "./runners.ts"
import { postgresClient } from "./stores/places.ts"
import { describePostgres, server } from "./stores/postgres.ts"

interface Written {
  readonly workspace: string
  readonly text: string
  readonly isAppended: boolean
  readonly isAcknowledged: boolean
}

const workspaces = Array.from({ length: isSoak ? 1000 : 100 }, (_, i) => `workspace ${i}`)
const clients = isSoak ? 20 : 8

/** Writes files and appends lines until `isOver`, and notes what was answered. */
const work = (
  client: number,
  prefix: string,
  open: (workspace: string) => Effect.Effect<Algebra, FsError>,
  isOver: () => boolean
) =>
  Effect.gen(function* () {
    const all: Array<Written> = []
    for (let n = 0; !isOver(); n++) {
      const workspace = `${prefix}${workspaces[(n * 7 + client * 13) % workspaces.length]!}`
      const text = `${client}-${n}`
      const isAppended = n % 2 === 0
      const change = Effect.flatMap(open(workspace), (fs): Effect.Effect<unknown, FsError> =>
        isAppended ? fs.write("log.txt", `${text}\n`, { mode: "append" }) : fs.write(`${text}.txt`, text)
      )
      const isAcknowledged = yield* Effect.matchEffect(change, {
        onSuccess: () => Effect.succeed(true),
        // Every other failure is a defect of the product, and fails the test.
        onFailure: (error) => (error._tag === "Unavailable" ? Effect.succeed(false) : Effect.fail(error))
      })
      all.push({ workspace, text, isAppended, isAcknowledged })
    }
    return all
  })

const check = (written: ReadonlyArray<Written>) =>
  Effect.gen(function* () {
    const wrong: Array<string> = []
    const checkOne = ([workspace, changes]: readonly [string, ReadonlyArray<Written>]) =>
      Effect.gen(function* () {
        const context = yield* Layer.build(Layer.fresh(Repository.layer({ workspace })))
        const fs = yield* Effect.provideContext(Filesystem, context)
        const log = yield* Effect.orElseSucceed(fs.readString("log.txt"), () => "")
        const lines = Map.groupBy(log.split("\n"), (line) => line)
        for (const { isAcknowledged, isAppended, text } of changes) {
          if (isAppended) {
            const count = lines.get(text)?.length ?? 0
            if (count > 1) wrong.push(`${workspace}: ${text} was appended ${count} times`)
            if (isAcknowledged && count === 0) wrong.push(`${workspace}: the line ${text} is lost`)
          } else {
            const content = yield* Effect.orElseSucceed(fs.readString(`${text}.txt`), () => undefined)
            if (content === undefined ? isAcknowledged : content !== text) wrong.push(`${workspace}: the file ${text} is lost`)
          }
        }
        yield* Repository.verify(workspace)
      }).pipe(Effect.scoped)
    yield* Effect.forEach(
      Map.groupBy(written, ({ workspace }) => workspace),
      checkOne,
      { concurrency: 8 }
    )
    return wrong
  })

/** Lets clients work while `trouble` runs, and checks the workspaces afterwards. */
const survive = (prefix: string, trouble: (runners: ReadonlyArray<Runner>) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const { url } = yield* Effect.promise(server)
    const runners = yield* Effect.forEach([0, 1, 2], () => startRunner(url, join(scratch(), "died")), {
      concurrency: "unbounded"
    })
    const context = yield* Layer.build(clientOf(url))
    const stores = yield* Layer.build(Stores.layerSql().pipe(Layer.provide(postgresClient(url))))

    const opened = new Map<string, Effect.Effect<Algebra, BackendError>>()
    const open = (workspace: string) =>
      Effect.suspend(() => {
        const found = opened.get(workspace)
        if (found !== undefined) return found
        return Effect.tap(Effect.provideContext(Workspaces.client(workspace, { timeout: "15 seconds" }), context), (fs) =>
          Effect.sync(() => opened.set(workspace, Effect.succeed(fs)))
        )
      }) as Effect.Effect<Algebra, FsError, never>

    const heads = yield* Effect.provideContext(HeadStore, stores)
    const sequences: Array<number> = []
    const watch = Stream.runForEach(heads.changes(`${prefix}${workspaces[0]!}`), ({ sequence }) =>
      Effect.sync(() => sequences.push(sequence))
    )
    yield* Effect.forkScoped(watch)

    let isOver = false
    const done = yield* Deferred.make<void>()
    yield* Effect.forkScoped(
      Effect.ensuring(
        trouble(runners),
        Effect.suspend(() => {
          isOver = true
          return Deferred.succeed(done, undefined)
        })
      )
    )
    const start = Date.now()
    const written = (yield* Effect.forEach(
      Array.from({ length: clients }, (_, client) => client),
      (client) => work(client, prefix, open, () => isOver),
      { concurrency: "unbounded" }
    )).flat()
    yield* Deferred.await(done)
    const acknowledged = written.filter(({ isAcknowledged }) => isAcknowledged).length
    yield* Effect.log(`${acknowledged} of ${written.length} changes were answered in ${Date.now() - start} ms`)
    assert.deepStrictEqual(yield* Effect.provideContext(Effect.scoped(check(written)), stores), [])
    assert.isAbove(acknowledged, clients)
    assert.deepStrictEqual(
      sequences,
      [...new Set(sequences)].sort((a, b) => a - b)
    )
  }).pipe(Effect.scoped) as Effect.Effect<void, unknown>

const pause = (seconds: number) => Effect.sleep(Duration.seconds(seconds))

afterAll(clean)

describePostgres("three runners on Postgres", () => {
  it.live(
    "make a change once, and answer it, if the first runner dies between commit and answer",
    () =>
      Effect.gen(function* () {
        const { url } = yield* Effect.promise(server)
        const flag = join(scratch(), "died")
        yield* Effect.forEach([0, 1, 2], () => startRunner(url, flag), { concurrency: "unbounded" })
        const context = yield* Layer.build(clientOf(url))
        const fs = yield* Effect.provideContext(Workspaces.client("doomed"), context)
        yield* fs.write("other.txt", "other")
        const written = yield* fs.write("log.txt", "line\n", { mode: "append" })
        assert.isTrue(existsSync(flag))
        assert.strictEqual(written.bytesWritten, 5)
        assert.strictEqual(yield* fs.readString("log.txt"), "line\n")
        yield* fs.write("log.txt", "next\n", { mode: "append" })
        assert.strictEqual(yield* fs.readString("log.txt"), "line\nnext\n")
      }).pipe(Effect.scoped) as Effect.Effect<void, unknown>,
    90_000
  )

  it.live(
    "lose no confirmed change and make none twice when runners are killed",
    () =>
      survive("killed ", (runners) =>
        Effect.gen(function* () {
          for (let round = 0; round < (isSoak ? 30 : 2); round++) {
            yield* pause(isSoak ? 5 : 3)
            const runner = runners[round % 3]!
            yield* runner.kill
            yield* pause(isSoak ? 5 : 6)
            yield* runner.start
          }
          yield* pause(2)
        })
      ),
    isSoak ? 600_000 : 90_000
  )

  it.live(
    "lose no confirmed change and make none twice when a runner is paused beyond its lease",
    () =>
      survive("stopped ", ([, runner]) =>
        Effect.gen(function* () {
          yield* pause(3)
          yield* runner!.signal("SIGSTOP")
          yield* pause(12)
          yield* runner!.signal("SIGCONT")
          yield* pause(4)
        })
      ),
    90_000
  )
})
