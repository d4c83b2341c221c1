/**
 * The search of contents that somebody has read already: on this thread where an expression is known to be quick, else by the workers,
 * with a budget of time for each file. A regular expression cannot be interrupted, but the thread that runs it can be ended.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Query } from "../model/search.ts"
import { inlineSearcher, shared } from "./crew.ts"
import { type FileFound, searched } from "./packed.ts"

export interface Matched {
  readonly found: FileFound
  /** What was searched, where the query wants it and something was found. */
  readonly text?: string | undefined
}

/** For each content in order; or which of them took too long or broke the engine. */
export type Answer =
  | ReadonlyArray<Matched>
  | { readonly _tag: "Overrun"; readonly index: number }
  | { readonly _tag: "Failed"; readonly index: number; readonly detail: string }

export interface Matching {
  /** On this thread. `from` is the line to start at in the first. */
  readonly here: (query: Query, contents: ReadonlyArray<Uint8Array>, from: number) => ReadonlyArray<Matched>
  /** By the workers. */
  readonly away: (query: Query, contents: ReadonlyArray<Uint8Array>, from: number) => Effect.Effect<Answer>
}

/** Asks a crew and waits; a question that nobody waits for any more is withdrawn, and its end waited for. */
export const asked = <A>(ask: (done: (answer: A) => void, over: () => void) => () => void): Effect.Effect<A> =>
  Effect.callback<A>((resume) => {
    let isOver = false
    let ended: (() => void) | undefined
    const withdraw = ask(
      (answer) => resume(Effect.succeed(answer)),
      () => {
        isOver = true
        ended?.()
      }
    )
    return Effect.callback<void>((resume) => {
      withdraw()
      if (isOver) resume(Effect.void)
      else ended = () => resume(Effect.void)
    })
  })

const standard: Matching = {
  here: (query, contents, from) => {
    const search = inlineSearcher().begin(query, { contents, from })
    while (search.next());
    return searched(search.answer())
  },
  away: (query, contents, from) =>
    Effect.scoped(
      Effect.flatMap(shared, (crew) =>
        Effect.map(
          asked<Parameters<Parameters<typeof crew.search>[3]>[0]>((done, over) =>
            crew.search(query, { contents, from }, query.budget, done, over)
          ),
          (answer): Answer => ("_tag" in answer ? answer : searched(answer))
        )
      )
    )
}

/** Where contents are searched. Replaceable. */
export const Matching: Context.Reference<Matching> = Context.Reference<Matching>("fs-algebra/Matching", {
  defaultValue: () => standard
})
