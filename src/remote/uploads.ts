/**
 * Stages writes. A client sends the content in pieces, and publishes the file at the end.
 *
 * The backend stages the content as for a local stream, and waits in `commit` until the client publishes. If the client
 * disappears before that, the write is interrupted, and the file keeps its old content.
 */
import type * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FileStat } from "../model/Entry.ts"
import { invalidArgument, limitExceeded, unavailable } from "../model/Fault.ts"
import type { Fault } from "../model/FsError.ts"
import type { Backend } from "../port/Backend.ts"

/** The maximum number of pieces that wait for the backend. The client waits while the queue is full. */
const maxQueuedPieces = 4

interface Upload {
  readonly queue: Queue.Queue<Uint8Array, Cause.Done>
  /** Succeeds when the backend has staged the content. */
  readonly staged: Deferred.Deferred<void, Fault>
  readonly publish: Deferred.Deferred<void>
  readonly done: Deferred.Deferred<FileStat, Fault>
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  readonly maxBytes: number
  bytes: number
  next: number
  isPublishing: boolean
}

const lost: Fault = unavailable(
  "the connection was lost while the file was written, and the file keeps its old content; try again"
)

export interface Uploads {
  /** Begins a write. If the write is not published before the scope closes, it is interrupted. */
  readonly begin: (
    upload: string,
    write: (bytes: Stream.Stream<Uint8Array>, how: Parameters<Backend["write"]>[3]) => Effect.Effect<FileStat, Fault>,
    maxBytes: number
  ) => Effect.Effect<void, Fault, Scope.Scope>
  readonly chunk: (upload: string, index: number, bytes: Uint8Array) => Effect.Effect<void, Fault>
  /** Ends the content, and waits until it is staged. */
  readonly end: (upload: string) => Effect.Effect<void, Fault>
  readonly publish: (upload: string) => Effect.Effect<FileStat, Fault>
  /** Interrupts a write that is not being published, and waits until it has ended. */
  readonly abort: (upload: string) => Effect.Effect<void>
}

export const make = (scope: Scope.Scope): Uploads => {
  const uploads = new Map<string, Upload>()

  const find = (id: string): Effect.Effect<Upload, Fault> => {
    const upload = uploads.get(id)
    return upload === undefined ? Effect.fail(lost) : Effect.succeed(upload)
  }

  const abort: Uploads["abort"] = (id) =>
    Effect.suspend(() => {
      const upload = uploads.get(id)
      return upload?.fiber === undefined || upload.isPublishing ? Effect.void : Effect.asVoid(Fiber.interrupt(upload.fiber))
    })

  const begin: Uploads["begin"] = (id, write, maxBytes) =>
    Effect.uninterruptible(
      Effect.gen(function* () {
        if (uploads.has(id)) return yield* Effect.fail(invalidArgument("upload", "another write has this id"))
        const upload: Upload = {
          queue: yield* Queue.bounded<Uint8Array, Cause.Done>(maxQueuedPieces),
          staged: yield* Deferred.make<void, Fault>(),
          publish: yield* Deferred.make<void>(),
          done: yield* Deferred.make<FileStat, Fault>(),
          fiber: undefined,
          maxBytes,
          bytes: 0,
          next: 0,
          isPublishing: false
        }
        uploads.set(id, upload)
        const commit = <A, E, R>(publish: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
          Effect.andThen(Effect.andThen(Deferred.succeed(upload.staged, undefined), Deferred.await(upload.publish)), publish)
        const run = Effect.onExit(write(Stream.fromQueue(upload.queue), { commit }), (exit) => {
          const ended = Exit.hasInterrupts(exit) ? Exit.fail(lost) : exit
          return Effect.andThen(Deferred.done(upload.done, ended), Deferred.done(upload.staged, Exit.asVoid(ended)))
        })
        upload.fiber = yield* Effect.forkIn(Effect.interruptible(run), scope)
        yield* Effect.addFinalizer(() =>
          Effect.andThen(
            abort(id),
            Effect.sync(() => uploads.delete(id))
          )
        )
      })
    )

  return {
    begin,
    abort,
    chunk: (id, index, bytes) =>
      Effect.flatMap(find(id), (upload) => {
        if (index !== upload.next) return Effect.fail(invalidArgument("index", "the pieces of a write must be in order"))
        upload.next++
        upload.bytes += bytes.length
        if (upload.bytes > upload.maxBytes) {
          return Effect.fail(limitExceeded("maxStreamBytes", upload.maxBytes, upload.bytes))
        }
        const failed = Effect.asVoid(Deferred.await(upload.done))
        return Effect.raceFirst(Effect.asVoid(Queue.offer(upload.queue, bytes)), failed)
      }),
    end: (id) => Effect.flatMap(find(id), ({ queue, staged }) => Effect.andThen(Queue.end(queue), Deferred.await(staged))),
    publish: (id) =>
      Effect.flatMap(find(id), (upload) => {
        upload.isPublishing = true
        const published = Effect.andThen(Deferred.succeed(upload.publish, undefined), Deferred.await(upload.done))
        // A client that interrupts its call waits for this interruption, so the content is never published later.
        return Effect.onInterrupt(published, () => (upload.fiber === undefined ? Effect.void : Fiber.interrupt(upload.fiber)))
      })
  }
}
