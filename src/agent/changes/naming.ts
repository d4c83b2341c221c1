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

/** Of the core's words for what is to be done, those of the tool. */
export const reworded = (detail: string): string =>
  detail.replace("or ask for the first or for all of them", "or set replace_all to change them all")

/** The error as one of the tool. */
export const renamed = (error: InvalidArgument, tool: string): InvalidArgument =>
  new InvalidArgument({ operation: tool, path: error.path, argument: nameOf(error.argument), detail: reworded(error.detail) })
