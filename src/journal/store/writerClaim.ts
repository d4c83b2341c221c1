/** Ensures that only one process writes a journal, by entries in a directory beside the file. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Fs, randomBytes, randomInt } from "../../runtime/node.ts"
import * as ProcessLock from "../../runtime/processLock.ts"
import { JournalError } from "../errors.ts"
import { attempt } from "./systemCalls.ts"

const operation = "Journal.open"

/** The number of attempts when two writers collide, and the longest pause between attempts in milliseconds. */
const [maxAttempts, maxPauseMillis] = [5, 50] as const

/** The lock of a journal's writers. Another copy of this module in the same process counts as another writer. */
const lock = ProcessLock.make({
  leaseMillis: 60_000,
  refreshMillis: 15_000,
  nameOf: (owner) => `${owner}${randomBytes(6).toString("hex")}`,
  pattern: /^(([0-9a-z-]+)\.[0-9a-f]{12})[0-9a-f]{12}$/,
  directoryMode: 0o777
})

const linkedDirectoryError = new JournalError({
  operation,
  reason: "invalid",
  detail: "the directory by which its writers know each other, the name of the journal with .lock, is a link"
})

const claimOnce = (directory: string): ProcessLock.Held | undefined => {
  if (Fs.lstatSync(directory, { throwIfNoEntry: false })?.isSymbolicLink() === true) throw linkedDirectoryError
  const ownEntries = lock.add(directory, "")
  let isMine = false
  try {
    isMine = lock.others(directory, ownEntries).length === 0
  } finally {
    if (!isMine) lock.remove(ownEntries)
  }
  return isMine ? ownEntries : undefined
}

const busyError = new JournalError({
  operation,
  reason: "busy",
  detail: "it is being written already, by this process or another"
})

const claimWithRetries = (directory: string, attemptsLeft: number): Effect.Effect<ProcessLock.Held, JournalError> =>
  Effect.flatMap(
    attempt(operation, () => claimOnce(directory)),
    (ownEntries) => {
      if (ownEntries !== undefined) return Effect.succeed(ownEntries)
      if (attemptsLeft === 1) return Effect.fail(busyError)
      return Effect.andThen(ProcessLock.pause(1 + randomInt(maxPauseMillis)), claimWithRetries(directory, attemptsLeft - 1))
    }
  )

/** Claims the file for this process until the scope closes. Fails with `busy`. */
export const claimFile = (path: string): Effect.Effect<void, JournalError, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(claimWithRetries(`${path}.lock`, maxAttempts), (ownEntries) =>
      Effect.sync(() => lock.remove(ownEntries))
    )
  )
