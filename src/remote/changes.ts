/**
 * Runs each change once for its id, so that a client that has lost the answer can send the change again.
 *
 * A change that has begun is completed even if the connection of its client is lost. Only `cancel` and the end of the server
 * interrupt it.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import { type FsError, InvalidArgument, Unavailable } from "../model/FsError.ts"
import { elapsedMillis, elapsedOf } from "../runtime/elapsed.ts"
import { hasher } from "../runtime/hash.ts"
import { rememberedMillis } from "./protocol.ts"

/** The maximum number of answers that the server remembers. Beyond this number, the server forgets the oldest answers. */
const maxRemembered = 100_000

/** The maximum number of characters in all long answers together, such as the diffs of edits. */
const maxCharacters = 32 * 1024 * 1024

/** The minimum number of characters of a long answer. */
const longAnswer = 1024

export interface Change {
  /** The digest of the request. */
  readonly request: string | undefined
  /** The time when the change ended or, while it runs, when it started. Ended changes are in the order of this time. */
  at: number
  fiber: Fiber.Fiber<unknown, unknown> | undefined
  exit: Exit.Exit<unknown, unknown> | undefined
  characters: number
}

export interface Changes {
  /**
   * Runs the change, or returns the answer of the change with the same id. Fails if the id belongs to another request, or if
   * the answer was long and has been forgotten.
   */
  readonly run: <A, E>(id: string, change: Effect.Effect<A, E>) => Effect.Effect<A, E | InvalidArgument | Unavailable>
  readonly cancel: (id: string) => Effect.Effect<void>
  readonly size: () => { readonly changes: number; readonly characters: number }
}

/** The digest of the request that a handler answers. */
const CurrentRequest: Context.Reference<string | undefined> = Context.Reference<string | undefined>(
  "fs-algebra/remote/CurrentRequest",
  { defaultValue: () => undefined }
)

const digestOf = (tag: string, payload: object): string => {
  const hash = hasher()
  const json = JSON.stringify([tag, payload], (_, value: unknown) => {
    if (!(value instanceof Uint8Array)) return value
    hash.update(value)
    return value.length
  })
  hash.update(new TextEncoder().encode(json))
  return hash.digest()
}

/** Runs each change with the digest of its request, so that `run` recognizes a different request with the same id. */
export const withRequests = <Handlers extends object>(handlers: Handlers): Handlers =>
  Object.fromEntries(
    Object.entries(handlers as Record<string, (payload: object, options: never) => never>).map(([tag, handle]) => [
      tag,
      (payload: object, options: never) =>
        "id" in payload
          ? Effect.suspend(() => Effect.provideService(handle(payload, options), CurrentRequest, digestOf(tag, payload)))
          : handle(payload, options)
    ])
  ) as Handlers

/** Returns the number of characters of the texts in an answer. */
const charactersOf = (exit: Exit.Exit<unknown, unknown>): number => {
  const value = Exit.isSuccess(exit) ? exit.value : Cause.squash(exit.cause)
  let characters = 0
  if (typeof value === "object" && value !== null) {
    for (const text of Object.values(value)) if (typeof text === "string") characters += text.length
  }
  return characters
}

/** The value of `request` for a change that was cancelled before it began. */
const cancelled = "cancelled"

const forgotten = Exit.fail(
  new Unavailable({
    operation: "change",
    path: "",
    detail: "the change has ended, but the server no longer has its answer; read the file to see the result"
  })
)

/** Wraps a change with an id. `request` is the digest of its request. */
export interface Around {
  <A, E>(id: string, request: string, change: Effect.Effect<A, E>): Effect.Effect<A, E | FsError>
}

/** The changes with long answers, the oldest first. */
export interface LongAnswers {
  readonly changes: Set<Change>
  characters: number
}

export const makeLongAnswers = (): LongAnswers => ({ changes: new Set(), characters: 0 })

/**
 * Returns the changes of a server. The scope interrupts all of them when it closes. Servers with the same long answers remember
 * at most `maxCharacters` together.
 */
export const make = (scope: Scope.Scope, around?: Around, long: LongAnswers = makeLongAnswers()): Changes => {
  const changes = new Map<string, Change>()

  const dropAnswer = (change: Change): void => {
    if (long.changes.delete(change)) long.characters -= change.characters
  }

  const forget = (now: number): void => {
    for (const [id, change] of changes) {
      if (changes.size <= maxRemembered && now - change.at < rememberedMillis) return
      // A running change is never forgotten, because a repetition would then run it twice.
      if (change.exit !== undefined) {
        dropAnswer(change)
        changes.delete(id)
      }
    }
  }

  const end = (id: string, change: Change, exit: Exit.Exit<unknown, unknown>, now: number): void => {
    // Remember the answer of a long change from its end, so that its client has the full time to ask for the answer again.
    changes.delete(id)
    changes.set(id, change)
    change.at = now
    change.exit = exit
    change.fiber = undefined
    change.characters = charactersOf(exit)
    if (change.characters < longAnswer) return
    long.changes.add(change)
    long.characters += change.characters
    for (const oldest of long.changes) {
      if (long.characters <= maxCharacters) return
      oldest.exit = forgotten
      dropAnswer(oldest)
    }
  }

  return {
    size: () => ({ changes: changes.size, characters: long.characters }),
    run: <A, E>(id: string, change: Effect.Effect<A, E>) =>
      Effect.flatMap(elapsedMillis, (now) =>
        Effect.withFiber((caller): Effect.Effect<A, E | InvalidArgument | Unavailable> => {
          forget(now)
          const clock = caller.getRef(Clock.Clock)
          const request = caller.getRef(CurrentRequest)
          const known = changes.get(id)
          if (known !== undefined && known.request !== request && known.request !== cancelled) {
            return Effect.fail(
              new InvalidArgument({
                operation: "change",
                path: "",
                argument: "id",
                detail: "another change has this id; use a new id for each change"
              })
            )
          }
          if (known?.exit !== undefined) return known.exit as Exit.Exit<A, E>
          if (known?.fiber !== undefined) return Fiber.join(known.fiber) as Effect.Effect<A, E>
          const wrapped =
            around === undefined || request === undefined
              ? change
              : (around(id, request, change) as Effect.Effect<A, E | InvalidArgument | Unavailable>)
          return Effect.flatMap(Effect.forkIn(wrapped, scope), (fiber) => {
            const record: Change = { request, fiber, exit: undefined, at: now, characters: 0 }
            changes.set(id, record)
            // A synchronous change may have ended already.
            fiber.addObserver((exit) => end(id, record, exit, elapsedOf(clock)))
            return Fiber.join(fiber)
          })
        })
      ),
    cancel: (id) =>
      Effect.flatMap(elapsedMillis, (now) => {
        forget(now)
        const known = changes.get(id)
        if (known?.fiber !== undefined) return Effect.asVoid(Fiber.interrupt(known.fiber))
        if (known === undefined) {
          changes.set(id, { request: cancelled, fiber: undefined, exit: Exit.interrupt(), at: now, characters: 0 })
        }
        return Effect.void
      })
  }
}
