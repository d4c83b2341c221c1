/** What the tools that change files have in common: an argument is called what the model called it. */
import { InvalidArgument } from "../../model/FsError.ts"

const names: ReadonlyMap<string, string> = new Map([
  ["oldText", "old_string"],
  ["newText", "new_string"],
  ["ifMatch", "if_match"],
  ["changes", "edits"]
])

/** Of a filesystem's argument the name on the wire. */
export const nameOf = (argument: string): string =>
  argument
    .split(".")
    .map((part) => names.get(part) ?? part)
    .join(".")

/** Leaves out what the core says is to be done: a tool has its own words for that. */
export const reworded = (detail: string): string =>
  detail.replace("; give more of the text around it so that one place is left, or ask for the first or for all of them", "")

/** The error as one of the tool. */
export const renamed = (error: InvalidArgument, tool: string): InvalidArgument =>
  new InvalidArgument({ operation: tool, path: error.path, argument: nameOf(error.argument), detail: reworded(error.detail) })
