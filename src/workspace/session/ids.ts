/** An id must be usable as a file name, and must not be a path. */
import * as Effect from "effect/Effect"
import { whyNoName } from "../../model/fileName.ts"
import { codePoints } from "../../model/FsPath.ts"
import { SessionError } from "../../model/sessionError.ts"

/** The largest number of characters, each of which may have several bytes. */
const longestId = 200

export const whyUnfit = (id: string): string | undefined => {
  const why = whyNoName(id)
  if (why !== undefined) return why
  return codePoints(id) > longestId ? `it has more than ${longestId} characters` : undefined
}

/** Shows an id in a message, shortened. Also accepts values that are not strings. */
export const shown = (id: string): string =>
  typeof id === "string" ? JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id) : `what is of type ${typeof id}`

export const invalid = (operation: string, detail: string): SessionError =>
  new SessionError({ operation, reason: "invalid", detail })

export const checkId = (operation: string, what: string, id: string): Effect.Effect<void, SessionError> => {
  const why = whyUnfit(id)
  return why === undefined ? Effect.void : Effect.fail(invalid(operation, `${shown(id)} cannot be the id of a ${what}: ${why}`))
}
