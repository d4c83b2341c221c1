/** What bounds a command that a person has typed. */
import { standard } from "../model/Limits.ts"

/** A person's own machine is the only limit of what they write and list; patterns keep their budget. */
export const limits = {
  ...standard,
  maxFileSize: Number.POSITIVE_INFINITY,
  maxListEntries: Number.POSITIVE_INFINITY,
  maxGlobMatches: Number.POSITIVE_INFINITY,
  maxGrepMatches: Number.POSITIVE_INFINITY
}
