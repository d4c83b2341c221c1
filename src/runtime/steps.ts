/**
 * Long computations in steps. A computation over content of a stranger is a generator that yields how much work it has done, so that
 * the one who runs it decides when other fibers get their turn: the event loop is never held for long, and an interruption is met
 * between two slices. The same generator runs to its end at once where the content is known to be small.
 */
import * as Effect from "effect/Effect"

/** A computation that pauses at each yield. It yields the units of work since the pause before; one unit is about one character compared. */
export type Steps<A> = Generator<number, A, void>

/** The units of work after which a computation must have paused. */
export const stride = 2 ** 14

/** The units of work done before other fibers run: a few milliseconds. */
export const slice = 2 ** 18

/** The work of handling one line, match or list element, in units. */
export const perItem = 16

/** Runs the computation, and lets other fibers run after each slice. Begins when the effect is run. */
export const inSlices = <A>(steps: () => Steps<A>): Effect.Effect<A> =>
  Effect.suspend(() => {
    const running = steps()
    const next: Effect.Effect<A> = Effect.suspend(() => {
      for (let spent = 0; spent < slice;) {
        const { done, value } = running.next()
        if (done === true) return Effect.succeed(value)
        spent += value
      }
      return Effect.andThen(Effect.yieldNow, next)
    })
    return next
  })

/** Runs the computation to its end, without a pause. */
export const atOnce = <A>(steps: Steps<A>): A => {
  for (;;) {
    const { done, value } = steps.next()
    if (done === true) return value
  }
}

/** Collects pieces of text. Joining a million pieces at the end would take as long as all work before. */
export class TextBuilder {
  #some: Array<string> = []
  #joined: Array<string> = []
  #length = 0

  /** UTF-16 units so far. */
  get length(): number {
    return this.#length
  }

  add(piece: string): void {
    this.#length += piece.length
    if (this.#some.push(piece) < 1024) return
    this.#joined.push(this.#some.join(""))
    this.#some = []
  }

  /** Answers the text and begins anew. */
  take(): string {
    const text = [...this.#joined, ...this.#some].join("")
    this.#some = []
    this.#joined = []
    this.#length = 0
    return text
  }
}
