/**
 * Mutual exclusion of transactions on one tree, across all processes of this installation.
 *
 * A transaction must not see the intermediate state of another. Each process creates a record of its own before it
 * looks for others. So of two that start at once, at least one sees the other and gives way.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { randomInt } from "../../runtime/node.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import { pause } from "../../runtime/processLock.ts"
import * as Transactions from "../../runtime/transactions.ts"

/**
 * Milliseconds: the least pause between two checks, the longest wait, and the longest wait for a process of unknown
 * state.
 */
const [between, patience, shortPatience] = [10, 120_000, 2_000] as const

/** Milliseconds after which a turn of a process of unknown state has expired. */
const staleAfter = 60 * 60 * 1000

/** The turns that this fiber holds; they do not exclude it. */
const Held: Context.Reference<ReadonlySet<string>> = Context.Reference<ReadonlySet<string>>("fs-algebra/exchange/Held", {
  defaultValue: () => new Set()
})

const busy: Fault = { _tag: "AccessDenied", path: FsPath.root, why: "busy" }

const unknown = ({ file, header }: Transactions.Entry): Fault => ({
  _tag: "Unavailable",
  path: FsPath.root,
  detail:
    `process ${header.owner}, of which nothing can be told from here, has not ended a change of this directory; ` +
    `where it has ended, remove ${JSON.stringify(file)}`
})

const unkept: Fault = {
  _tag: "Unavailable",
  path: FsPath.root,
  detail:
    "the record of this change cannot be kept, so nothing was changed; this user needs a private directory, " +
    "in XDG_STATE_HOME, ~/.local/state or the temporary directory, and space on its disk"
}

const enter = (id: string, roots: ReadonlyArray<Transactions.Root>): Effect.Effect<void, Fault> =>
  Effect.try({
    try: () => {
      const draft = Transactions.draft(id, Transactions.ownHeader("", roots), false)
      if (draft === undefined) throw new Error("there is no private directory")
      draft.publish("turn")
    },
    catch: (cause) => ({ ...unkept, cause })
  })

/**
 * Removes the turn. If the removal fails, the turn is marked as abandoned, so that it blocks nobody and the next
 * process removes it.
 */
const leave = (id: string): Effect.Effect<void> =>
  Effect.try(() => Transactions.drop(id, "turn")).pipe(
    Effect.retry({ times: 2 }),
    Effect.catch(() => Effect.sync(() => void Transactions.abandoned.add(id))),
    Effect.ensuring(Effect.sync(() => void Transactions.inUse.delete(id)))
  )

/** Returns the first record that blocks these roots. Removes turns of dead processes. */
const other = Effect.fnUntraced(function* (
  own: string,
  held: ReadonlySet<string>,
  roots: ReadonlyArray<Transactions.Root>
): Effect.fn.Return<{ readonly entry: Transactions.Entry; readonly isKnown: boolean } | undefined, Fault> {
  const now = yield* Clock.currentTimeMillis
  for (const entry of (yield* Transactions.list(now)).entries) {
    if (entry.id === own || held.has(entry.id)) continue
    if (!entry.header.roots.some((one) => roots.some((root) => Transactions.isRelated(one, root)))) continue
    const isAlive = Transactions.isAlive(entry)
    if (isAlive === true) return { entry, isKnown: true }
    const isTurn = entry.state === "turn"
    if (isAlive === undefined && !(isTurn && now - entry.modified > staleAfter)) return { entry, isKnown: false }
    // A dead turn that cannot be removed blocks nobody, and the next process tries again.
    if (isTurn) yield* Effect.ignore(Effect.try(() => Transactions.dropFile(entry.file)))
  }
  return undefined
})

/**
 * Runs the effect while no other transaction changes this tree, a part of it, or a tree around it. Without files on
 * disk, no lock is needed.
 *
 * Fails with AccessDenied `busy` if another process takes too long, and with Unavailable if the state of its process is
 * unknown.
 */
export const taking = <A, E, R>(port: Backend, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> => {
  const roots = port.hostRoots?.all ?? []
  return roots.length === 0 ? effect : takingRoots(roots, effect)
}

export const takingRoots = <A, E, R>(
  hostRoots: ReadonlyArray<Transactions.Root>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E | Fault, R> => {
  const roots = hostRoots.map(({ device, inode, path }) => ({ path, device, inode }))
  const attempt = (waited: number): Effect.Effect<A, E | Fault, R> => {
    const id = Transactions.makeId()
    const tried: Effect.Effect<{ readonly value: A } | { readonly fault: Fault; readonly most: number }, E | Fault, R> =
      Effect.acquireUseRelease(
        Effect.onError(
          Effect.suspend(() => {
            Transactions.inUse.add(id)
            return enter(id, roots)
          }),
          () => leave(id)
        ),
        () =>
          Effect.gen(function* () {
            const held = yield* Held
            const found = yield* other(id, held, roots)
            if (found === undefined) {
              return { value: yield* Effect.provideService(effect, Held, new Set([...held, id])) }
            }
            return found.isKnown ? { fault: busy, most: patience } : { fault: unknown(found.entry), most: shortPatience }
          }),
        () => leave(id)
      )
    return Effect.flatMap(tried, (done) => {
      if ("value" in done) return Effect.succeed(done.value)
      if (waited > done.most) return Effect.fail(done.fault)
      const wait = between + randomInt(Math.min(500, between + waited))
      return Effect.andThen(pause(wait), attempt(waited + wait))
    })
  }
  return Effect.suspend(() => attempt(0))
}
