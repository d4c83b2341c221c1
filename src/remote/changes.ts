/**
 * Runs each change once for its id, so that a client that has lost the answer can send the change again.
 *
 * A change that has begun ends even if the connection of its client is lost. Only `cancel` interrupts it.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"

/** The time for which the server remembers an answer. */
const rememberedMillis = 5 * 60_000

const maxRemembered = 20_000

interface Change {
  readonly fiber: Fiber.Fiber<unknown, unknown> | undefined
  exit: Exit.Exit<unknown, unknown> | undefined
  readonly startedAt: number
}

export interface Changes {
  /** Runs the change, or returns the answer of the change with the same id. */
  readonly run: <A, E>(id: string, change: Effect.Effect<A, E>) => Effect.Effect<A, E>
  readonly cancel: (id: string) => Effect.Effect<void>
}

/** Returns the changes of a server. The scope interrupts all of them when it closes. */
export const make = (scope: Scope.Scope): Changes => {
  const changes = new Map<string, Change>()

  const forget = (now: number): void => {
    for (const [id, { exit, startedAt }] of changes) {
      if (changes.size <= maxRemembered && now - startedAt < rememberedMillis) return
      // A running change is never forgotten: its repetition would run it twice.
      if (exit !== undefined) changes.delete(id)
    }
  }

  return {
    run: <A, E>(id: string, change: Effect.Effect<A, E>) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        forget(now)
        const known = changes.get(id)
        if (known?.exit !== undefined) return known.exit as Exit.Exit<A, E>
        if (known?.fiber !== undefined) return Fiber.join(known.fiber) as Effect.Effect<A, E>
        return Effect.flatMap(Effect.forkIn(change, scope), (fiber) => {
          // A change without a pause may have ended already.
          const record: Change = { fiber, exit: undefined, startedAt: now }
          changes.set(id, record)
          fiber.addObserver((exit) => (record.exit = exit))
          return Fiber.join(fiber)
        })
      }),
    cancel: (id) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const known = changes.get(id)
        if (known?.fiber !== undefined)
          return known.exit === undefined ? Effect.asVoid(Fiber.interrupt(known.fiber)) : Effect.void
        if (known === undefined) changes.set(id, { fiber: undefined, exit: Exit.interrupt(), startedAt: now })
        return Effect.void
      })
  }
}
