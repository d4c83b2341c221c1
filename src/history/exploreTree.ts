/** Reads all directories of a tree with many concurrent reads. */
import * as Effect from "effect/Effect"
import type { DirectoryReading, Explorer, Visit } from "../port/explorer.ts"

export interface Step extends Visit {
  readonly above: Step | undefined
  /** The number of subdirectories that must still be read. */
  unread: number
}

/**
 * Calls `enter` for each directory, in any order. `enter` calls `add` for each subdirectory to read, or `stop` to end the walk.
 *
 * A directory is opened relative to the descriptor of its parent. The descriptor stays open until all subdirectories are read.
 */
export const exploreTree = Effect.fnUntraced(function* <S extends Step, E>(
  explorer: Explorer<S>,
  top: S,
  enter: (reading: DirectoryReading<S>, add: (step: S) => void, stop: () => void) => Effect.Effect<void, E>
): Effect.fn.Return<void, E> {
  const pendingSteps = [top]
  let requestedCount = 0
  let isStopped = false
  const stop = (): void => {
    isStopped = true
  }
  const add = (step: S): void => {
    pendingSteps.push(step)
    if (step.above !== undefined) step.above.unread++
  }
  const release = ({ above }: S): void => {
    if (above !== undefined && --above.unread === 0) explorer.release(above as S)
  }
  while (pendingSteps.length > 0 || requestedCount > 0) {
    const room = Math.min(explorer.availableReads(), pendingSteps.length)
    if (room > 0) {
      requestedCount += room
      explorer.read(pendingSteps.splice(-room).reverse())
    }
    const readings = explorer.take()
    for (const reading of readings) {
      const { visit } = reading
      requestedCount--
      release(visit)
      yield* enter(reading, add, stop)
      if (isStopped) return
      if (visit.unread > 0) explorer.keepOpen(visit)
    }
    if (readings.length === 0 && room === 0) yield* explorer.waitForReading
  }
})
