/** The rules for ids. An id must be usable as a file name, so it must not be a path. */
import * as Effect from "effect/Effect"
import { whyInvalidFileName } from "../../model/fileName.ts"
import { codePoints } from "../../model/FsPath.ts"
import { SessionError } from "../../model/sessionError.ts"

/** The largest number of characters of an id. A character may have several bytes. */
const maxIdLength = 200

export const idFault = (id: string): string | undefined => {
  const fault = whyInvalidFileName(id)
  if (fault !== undefined) return fault
  return codePoints(id) > maxIdLength ? `the text has more than ${maxIdLength} characters` : undefined
}

/** Returns an id for a message, shortened and quoted. Also accepts values that are not strings. */
export const quoteId = (id: string): string =>
  typeof id === "string" ? JSON.stringify(id.length > 80 ? `${id.slice(0, 80)}…` : id) : `a value of type ${typeof id}`

export const invalid = (operation: string, detail: string): SessionError =>
  new SessionError({ operation, reason: "invalid", detail })

export const checkId = (operation: string, kind: string, id: string): Effect.Effect<void, SessionError> => {
  const fault = idFault(id)
  return fault === undefined
    ? Effect.void
    : Effect.fail(invalid(operation, `${quoteId(id)} cannot be the id of a ${kind}: ${fault}`))
}
