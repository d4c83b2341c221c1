import { standard } from "../model/Limits.ts"

/** The limits: none on what a person writes and lists on their own machine; patterns keep their budget. */
export const limits = {
  ...standard,
  maxFileSize: Number.POSITIVE_INFINITY,
  maxListEntries: Number.POSITIVE_INFINITY,
  maxGlobMatches: Number.POSITIVE_INFINITY,
  maxGrepMatches: Number.POSITIVE_INFINITY
}
