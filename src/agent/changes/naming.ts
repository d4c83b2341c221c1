import { InvalidArgument } from "../../model/FsError.ts"

const wireNames: ReadonlyMap<string, string> = new Map([
  ["oldText", "old_string"],
  ["newText", "new_string"],
  ["ifMatch", "if_match"],
  ["maxMatches", "max_matches"],
  ["changes", "edits"]
])

/** Returns the name that a tool gives to an argument of the filesystem. */
export const toolArgumentName = (argument: string): string =>
  argument
    .split(".")
    .map((part) => wireNames.get(part) ?? part)
    .join(".")

/** Removes the core's advice from a detail, because the tools give their own. */
export const withoutCoreAdvice = (detail: string): string =>
  detail.replace("; give more of the surrounding text so that it occurs only once, or ask for the first or for all of them", "")

export const withToolNames = (error: InvalidArgument, tool: string): InvalidArgument =>
  new InvalidArgument({
    operation: tool,
    path: error.path,
    argument: toolArgumentName(error.argument),
    detail: withoutCoreAdvice(error.detail)
  })
