import { listed } from "../../model/words.ts"
import { type Refused, refused } from "../definition.ts"
import { nameDistance } from "../../engine/nearestPaths.ts"
import type { Section, SectionError } from "../Section.ts"

const maxSuggestions = 3
const maxNameLength = 100

/** Shortens a tool name for a message; a model may send any text as a name. */
export const shownName = (name: string): string =>
  name.length > maxNameLength ? `${name.slice(0, maxNameLength).toWellFormed()}…` : name.toWellFormed()

export const noSuchTool = (name: string, known: ReadonlyArray<string>): Refused => {
  const near = known
    .map((candidate) => ({ candidate, distance: nameDistance(name, candidate) }))
    .filter(({ distance }) => distance < Number.POSITIVE_INFINITY)
    .sort((a, b) => a.distance - b.distance)
    .slice(0, maxSuggestions)
    .map(({ candidate }) => candidate)
  const advice =
    known.length === 0
      ? "No tools are offered; answer without calling any."
      : near.length > 0
        ? `Did you mean ${listed(near, "or")}?`
        : `Call one of these: ${listed(known)}.`
  return refused(`There is no tool ${JSON.stringify(shownName(name))}.`, advice)
}

export const wrongSession: Refused = refused(
  "The call belongs to another session than the tool, so nothing was done.",
  "Call the tools of your own session."
)

export const runIsOver: Refused = refused(
  "The run that this call belongs to has ended.",
  "Call no more tools; answer with what you know."
)

export const budgetIsSpent = (limit: number): Refused =>
  refused(`The budget of ${limit} for tool results is used up.`, "Call no more tools; answer with what you know.")

export const callIsUnderWay = (callId: string): Refused =>
  refused(
    `A call of this tool with the id ${JSON.stringify(shownName(callId))} is still running.`,
    "Wait until it has ended, or call with another id."
  )

export const noFilesystemInPrompt: Refused = refused(
  "No filesystem available.",
  "Go on without files; the prompt must have a section with a filesystem for this tool."
)

/** Leaves out the reason: it may name directories of the machine, and belongs in the log. */
export const filesystemNotReady = ({ title }: Pick<Section, "title">, { _tag }: SectionError): Refused =>
  refused(
    `The filesystem of ${JSON.stringify(title)} could not be prepared (${_tag}).`,
    "Try once more; if that does not help, go on without it and tell the user."
  )
