/**
 * Heads in a key-value bucket. The key is the name of the workspace as hexadecimal UTF-8. A deleted head leaves a marker, so the
 * revisions of a key continue.
 *
 * A write names the revision that it replaces, and has an id. If the answer is lost, the write is sent again. The server
 * recognizes the ids of writes of the last two minutes. After a restart of the server, the message that replaced the revision
 * shows which write succeeded. For this check, the bucket keeps old revisions.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { randomBytes } from "../../../runtime/node.ts"
import { StoreError } from "../../errors.ts"
import type { Operations } from "../../HeadStore.ts"
import * as Heads from "../heads.ts"
import * as Wakes from "../wakes.ts"
import { type Bucket, messagesOf, refusedAs, type StoreConnection, wrongLastSequence } from "./buckets.ts"
import { isRefusal } from "./connection.ts"

/** The number of revisions of each head that the bucket keeps. */
const history = 16
const maxTries = 10
const listConcurrency = 16
/** The time between two reads of a head, in case the server does not deliver a change. */
const checkTime = "5 seconds"
const followPause = "1 second"

const operationHeader = "KV-Operation"
const deletions: ReadonlySet<string> = new Set(["DEL", "PURGE"])
const idHeader = "Nats-Msg-Id"
/** The revision that a write replaced. */
const previousHeader = "Fs-Algebra-Previous"

export const bucketOf = (name: string): Bucket => ({
  stream: `KV_${name}`,
  subjects: [`$KV.${name}.>`],
  description: "heads of fs-algebra, version 1",
  history
})

interface Found {
  readonly text: string | undefined
  readonly revision: number
}

export const make = (connection: StoreConnection, name: string): Operations => {
  const { jetstream, manager, packages } = connection
  const { stream } = bucketOf(name)
  const prefix = `$KV.${name}.`
  const subjectOf = (workspace: string): string => prefix + Heads.toHex(workspace)
  const workspaceOf = (subject: string): string => Heads.nameOf(subject.slice(prefix.length))

  /** Reads from the leader of the stream, because other servers may not have the last head yet. */
  const read = (what: string, workspace: string): Effect.Effect<Found, StoreError> =>
    Effect.map(
      connection.ask(what, () => manager.streams.getMessage(stream, { last_by_subj: subjectOf(workspace) })),
      (message) => {
        if (message === null) return { text: undefined, revision: 0 }
        const isDeleted = deletions.has(message.header?.get(operationHeader) ?? "")
        return { text: isDeleted ? undefined : new TextDecoder().decode(message.data), revision: message.seq }
      }
    )

  /**
   * Returns whether the write with the id replaced the revision, or `undefined` if the server no longer has the revision's
   * successor.
   */
  const hasReplaced = (what: string, workspace: string, revision: number, id: string) => {
    const query = { seq: revision + 1, next_by_subj: subjectOf(workspace) }
    return Effect.map(
      connection.ask(what, () => manager.streams.getMessage(stream, query)),
      (message) => {
        if (message?.header?.get(idHeader) === id) return true
        return message?.header?.get(previousHeader) === String(revision) ? false : undefined
      }
    )
  }

  /** Replaces a revision. Returns false if another write has replaced it. */
  const write = (what: string, workspace: string, revision: number, next: string | undefined) => {
    const id = randomBytes(16).toString("hex")
    let sent = 0
    const publish = () => {
      sent++
      const headers = packages.transport.headers()
      headers.set(previousHeader, String(revision))
      if (next === undefined) headers.set(operationHeader, "DEL")
      return jetstream.publish(subjectOf(workspace), next ?? "", {
        headers,
        msgID: id,
        expect: { lastSubjectSequence: revision }
      })
    }
    return connection.call(what, publish).pipe(
      Effect.as(true),
      Effect.catchIf(
        (error) => isRefusal(error) && error.code === wrongLastSequence,
        () => {
          // A write that was sent once and refused was not stored. If the write was sent again, the first attempt may have been
          // stored.
          if (sent === 1) return Effect.succeed(false)
          return Effect.flatMap(hasReplaced(what, workspace, revision, id), (answer) =>
            answer === undefined
              ? Effect.fail(
                  new StoreError({
                    reason: "unavailable",
                    detail: `${what}: the connection was lost, and it is unknown whether the head was replaced; read the head again`
                  })
                )
              : Effect.succeed(answer)
          )
        }
      ),
      refusedAs(what)
    )
  }

  const wakes = Wakes.make(() => {
    const fiber = Effect.runFork(follow)
    return () => fiber.interruptUnsafe()
  })

  const consume = connection.ask("changes", async () => {
    const consumer = await jetstream.consumers.getPushConsumer(stream, {
      deliver_policy: "new",
      headers_only: true,
      filter_subjects: `${prefix}>`
    })
    const messages = await consumer.consume({ callback: ({ subject }) => wakes.wake(workspaceOf(subject)) })
    return { consumer, messages }
  })
  /** Wakes the readers of changes until the connection is lost. */
  const followOnce = Effect.gen(function* () {
    const epoch = connection.epoch()
    yield* Effect.acquireRelease(consume, ({ consumer, messages }) =>
      Effect.andThen(
        Effect.sync(() => messages.stop()),
        // The server later removes an unused consumer by itself.
        Effect.ignore(connection.sendOnce("changes", () => consumer.delete()))
      )
    )
    wakes.wakeAll()
    const isOver = (): boolean => connection.epoch() !== epoch || connection.endError() !== undefined
    yield* Effect.whileLoop({
      while: () => !isOver(),
      body: () => connection.changes.wait(isOver),
      step: () => {}
    })
  })
  const follow: Effect.Effect<void> = Effect.whileLoop({
    while: () => connection.endError() === undefined,
    body: () => Effect.catch(Effect.scoped(followOnce), () => Effect.sleep(followPause)),
    step: () => {}
  })

  return Heads.make({
    read: (workspace) => Effect.map(read("get of a head", workspace), ({ text }) => text),
    swap: (workspace, expected, next) =>
      Effect.gen(function* () {
        const what = next === undefined ? "delete of a head" : "compareAndSet"
        for (let tries = 0; tries < maxTries; tries++) {
          const { revision, text } = yield* read(what, workspace)
          if (text !== expected) return false
          // If the write was refused, read the head again, because it may be as expected.
          if (yield* write(what, workspace, revision, next)) return true
        }
        const detail = `${what}: the head changed ${maxTries} times and back; try again later`
        return yield* new StoreError({ reason: "unavailable", detail })
      }),
    list: Stream.suspend(() => {
      const seen = new Set<string>()
      return messagesOf(connection, "list of the heads", { stream, filter: `${prefix}>`, isWithoutBody: true }).pipe(
        Stream.map(({ subject }) => workspaceOf(subject)),
        Stream.filter((workspace) => Heads.isWorkspaceName(workspace) && !seen.has(workspace) && seen.add(workspace).size > 0),
        Stream.mapEffect(
          (workspace) => Effect.map(read("list of the heads", workspace), ({ text }) => (text === undefined ? "" : workspace)),
          { concurrency: listConcurrency }
        )
      )
    }),
    wakes: (workspace) => Stream.merge(wakes.stream(workspace), Stream.tick(checkTime))
  })
}
