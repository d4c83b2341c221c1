/**
 * Writes to one path happen one after another, in order of arrival, while other paths go on. A request takes its own paths
 * exclusively and every directory above them shared, so that removing or moving a directory waits for the writers below it, and
 * taking the root excludes everything. All paths of a request are taken at once, which is why two requests cannot deadlock.
 */
import * as Effect from "effect/Effect"
import { fold, type FsPath, parent, root } from "../model/FsPath.ts"

export interface Locks {
  /** Runs `effect` while `paths` are held exclusively. Interruption while waiting gives the place in the queue back. */
  readonly exclusive: <A, E, R>(paths: ReadonlyArray<FsPath>, effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

interface Hold {
  shared: number
  exclusive: boolean
}

interface Request {
  readonly exclusive: ReadonlyArray<FsPath>
  readonly shared: ReadonlyArray<FsPath>
  resume: (() => void) | undefined
}

const above = (path: FsPath, out: Array<FsPath>): void => {
  for (let at = path; at !== root;) {
    at = parent(at)
    if (!out.includes(at)) out.push(at)
  }
}

export const make = (options?: { readonly caseSensitive?: boolean | undefined }): Locks => {
  const held = new Map<FsPath, Hold>()
  const waiting: Array<Request> = []
  const folds = options?.caseSensitive === false

  const request = (paths: ReadonlyArray<FsPath>): Request => {
    const exclusive: Array<FsPath> = []
    for (const path of paths) {
      const key = folds ? fold(path) : path
      if (!exclusive.includes(key)) exclusive.push(key)
    }
    const shared: Array<FsPath> = []
    for (const path of exclusive) above(path, shared)
    return { exclusive, shared: shared.filter((path) => !exclusive.includes(path)), resume: undefined }
  }
  const free = (self: Request): boolean => {
    for (const path of self.exclusive) if (held.has(path)) return false
    for (const path of self.shared) if (held.get(path)?.exclusive === true) return false
    return true
  }
  const conflicts = (self: Request, that: Request): boolean =>
    self.exclusive.some((path) => that.exclusive.includes(path) || that.shared.includes(path)) ||
    self.shared.some((path) => that.exclusive.includes(path))
  const take = (self: Request): void => {
    for (const path of self.exclusive) held.set(path, { shared: 0, exclusive: true })
    for (const path of self.shared) {
      const hold = held.get(path)
      if (hold === undefined) held.set(path, { shared: 1, exclusive: false })
      else hold.shared++
    }
  }
  const wake = (): void => {
    for (let i = 0; i < waiting.length;) {
      const next = waiting[i]!
      if (!free(next) || waiting.slice(0, i).some((earlier) => conflicts(earlier, next))) {
        i++
        continue
      }
      waiting.splice(i, 1)
      take(next)
      next.resume!()
    }
  }
  const release = (self: Request): void => {
    for (const path of self.exclusive) held.delete(path)
    for (const path of self.shared) {
      const hold = held.get(path)!
      if (--hold.shared === 0) held.delete(path)
    }
    if (waiting.length > 0) wake()
  }
  const wait = (self: Request): Effect.Effect<void> =>
    Effect.callback<void>((resume) => {
      let granted = false
      self.resume = () => {
        granted = true
        resume(Effect.void)
      }
      waiting.push(self)
      return Effect.sync(() => {
        if (granted) release(self)
        else {
          waiting.splice(waiting.indexOf(self), 1)
          wake()
        }
      })
    })

  return {
    exclusive: (paths, effect) =>
      Effect.uninterruptibleMask((restore) => {
        const self = request(paths)
        const run = Effect.ensuring(
          restore(effect),
          Effect.sync(() => release(self))
        )
        if (free(self) && !waiting.some((earlier) => conflicts(earlier, self))) {
          take(self)
          return run
        }
        return Effect.flatMap(restore(wait(self)), () => run)
      })
  }
}
