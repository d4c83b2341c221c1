/** The parts of a write that all backends share. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Fault } from "../model/FsError.ts"
import type { Commit } from "../port/Backend.ts"
import { concatenate } from "../runtime/buffer.ts"

export type Mode = "create" | "replace" | "append"

export type Content<E, R> = Uint8Array | Stream.Stream<Uint8Array, E, R>

/** Runs the step that publishes a file inside the caller's `commit`, if there is one. */
export const runCommit = <A, E, R>(
  commit: Commit | undefined,
  publishing: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => (commit === undefined ? publishing : commit(publishing))

/** Collects a stream in memory. Fails with `tooLarge` if the stream has more than `maxBytes` bytes. */
export const collect = <E, R>(
  stream: Stream.Stream<Uint8Array, E, R>,
  maxBytes: number,
  tooLarge: Fault
): Effect.Effect<Uint8Array, Fault | E, R> =>
  Effect.suspend(() => {
    const parts: Array<Uint8Array> = []
    let length = 0
    const all = Stream.runForEach(stream, (part): Effect.Effect<void, Fault> => {
      length += part.length
      parts.push(part.slice())
      return length > maxBytes ? Effect.fail(tooLarge) : Effect.void
    })
    return Effect.map(all, () => concatenate(parts))
  })
