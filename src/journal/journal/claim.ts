/** Ensures that only one process writes a journal, by entries in a directory beside the file. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs, randomBytes, randomInt } from "../../runtime/node.ts"
import * as ProcessLock from "../../runtime/processLock.ts"
import { JournalError } from "../errors.ts"
import { attempt } from "./system.ts"

const operation = "Journal.open"

/** The number of attempts when two writers collide, and the longest pause between attempts in milliseconds. */
const [tries, pauses] = [5, 50] as const

/** The lock of a journal's writers. Another copy of this module in the same process counts as another writer. */
const lock = ProcessLock.make({
  lease: 60_000,
  refreshed: 15_000,
  nameOf: (owner) => `${owner}${randomBytes(6).toString("hex")}`,
  pattern: /^(([0-9a-z-]+)\.[0-9a-f]{12})[0-9a-f]{12}$/,
  directoryMode: 0o777
})

const linked = new JournalError({
  operation,
  reason: "invalid",
  detail: "the directory by which its writers know each other, the name of the journal with .lock, is a link"
})

const claimOnce = (directory: string): ProcessLock.Held | undefined => {
  if (Fs.lstatSync(directory, { throwIfNoEntry: false })?.isSymbolicLink() === true) throw linked
  const held = lock.add(directory, "")
  let isMine = false
  try {
    isMine = lock.others(directory, held).length === 0
  } finally {
    if (!isMine) lock.remove(held)
  }
  return isMine ? held : undefined
}

const busy = new JournalError({ operation, reason: "busy", detail: "it is being written already, by this process or another" })

const claimSoon = (directory: string, left: number): Effect.Effect<ProcessLock.Held, JournalError> =>
  Effect.flatMap(
    attempt(operation, () => claimOnce(directory)),
    (held) => {
      if (held !== undefined) return Effect.succeed(held)
      if (left === 1) return Effect.fail(busy)
      return Effect.andThen(ProcessLock.pause(1 + randomInt(pauses)), claimSoon(directory, left - 1))
    }
  )

/** Claims the file for this process until the scope closes. Fails with `busy`. */
export const claim = (path: string): Effect.Effect<void, JournalError, Scope.Scope> =>
  Effect.asVoid(Effect.acquireRelease(claimSoon(`${path}.lock`, tries), (held) => Effect.sync(() => lock.remove(held))))
