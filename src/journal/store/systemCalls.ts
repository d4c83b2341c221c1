/** Runs system calls and converts their errors to JournalErrors, without paths on the host. */
import * as Effect from "effect/Effect"
import { isSystemError } from "../../model/realms.ts"
import * as Host from "../../runtime/host.ts"
import { getSystemErrorMessage } from "../../runtime/node.ts"
import { JournalError } from "../errors.ts"

/** Returns a system error as a JournalError. Throws other errors, because they are bugs of this program. */
export const ioError = (operation: string, error: unknown): JournalError => {
  if (error instanceof JournalError) return error
  if (!isSystemError(error)) throw error
  const { code, errno } = error
  const message = errno === undefined || errno >= 0 ? "the operating system reported an error" : getSystemErrorMessage(errno)
  return new JournalError({ operation, reason: "io", detail: `${code}: ${message}` })
}

export const attempt = <A>(operation: string, run: () => A): Effect.Effect<A, JournalError> =>
  Effect.try({ try: run, catch: (error) => ioError(operation, error) })

export const sync = (operation: string, descriptor: number): Effect.Effect<void, JournalError> =>
  Host.sync(descriptor, (error) => ioError(operation, error))

export const syncDirectory = (operation: string, directory: string): Effect.Effect<void, JournalError> =>
  Host.syncDirectory(directory, (error) => ioError(operation, error))
