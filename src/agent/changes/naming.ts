/** What the tools that change files have in common: an argument is called what the model called it. */
import { InvalidArgument } from "../../model/FsError.ts"

const names: Readonly<Record<string, string>> = {
  oldText: "old_string",
  newText: "new_string",
  ifMatch: "if_match",
  changes: "edits"
}

/** Of a filesystem's argument the name on the wire. */
export const nameOf = (argument: string): string =>
  argument
    .split(".")
    .map((part) => names[part] ?? part)
    .join(".")

/** The error as one of the tool. */
export const renamed = (error: InvalidArgument, tool: string): InvalidArgument =>
  new InvalidArgument({ operation: tool, path: error.path, argument: nameOf(error.argument), detail: error.detail })
