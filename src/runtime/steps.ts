/**
 * Runs long computations in steps, for content of unknown size.
 *
 * A computation is a generator that yields the amount of work done, and its runner decides when other fibers run. So
 * the event loop is never blocked for long, and an interruption takes effect between two slices. For small content the
 * same generator can run without a pause.
 */
import * as Effect from "effect/Effect"
import { type Steps, unitsPerSlice } from "./units.ts"

export { maxUnitsPerStep, runAtOnce, type Steps, unitsPerItem } from "./units.ts"

export const runInSlices = <A>(steps: () => Steps<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const running = steps()
    const next: Effect.Effect<A> = Effect.suspend(() => {
      for (let unitsSpent = 0; unitsSpent < unitsPerSlice;) {
        const { done, value } = running.next()
        if (done === true) return Effect.succeed(value)
        unitsSpent += value
      }
      return Effect.andThen(Effect.yieldNow, next)
    })
    return next
  })

/**
 * A builder for text. The builder joins pieces in groups, because joining a million pieces at the end would block for too long.
 */
export class TextBuilder {
  #some: Array<string> = []
  #joined: Array<string> = []
  #length = 0

  get length(): number {
    return this.#length
  }

  add(piece: string): void {
    this.#length += piece.length
    if (this.#some.push(piece) < 1024) return
    this.#joined.push(this.#some.join(""))
    this.#some = []
  }

  take(): string {
    const text = [...this.#joined, ...this.#some].join("")
    this.#some = []
    this.#joined = []
    this.#length = 0
    return text
  }
}
