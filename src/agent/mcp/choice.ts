/** Which tools a server offers: a kit or names, without those that nobody could use here. */
import * as Effect from "effect/Effect"
import type { AnyDefinition } from "../definition.ts"
import { extras, four, sandboxTools, seven, snapshotTools } from "../tools.ts"

export type Chosen = "all" | "seven" | "vfs" | ReadonlyArray<string>

/** A name that is here in both kits is that of the larger. */
const known = (): ReadonlyArray<AnyDefinition> => [...seven, ...extras, ...snapshotTools, ...sandboxTools]

export const names = (): ReadonlyArray<string> => known().map(({ name }) => name)

/** The tool that the list of names means by this one. */
export const toolOf = (name: string): AnyDefinition | undefined => known().find((tool) => tool.name === name)

export const isOfSnapshots = (tool: AnyDefinition): boolean => snapshotTools.includes(tool)
export const isOfSandbox = (tool: AnyDefinition): boolean => sandboxTools.includes(tool)

const kit = (chosen: Chosen): ReadonlyArray<AnyDefinition> => {
  if (chosen === "all") return known()
  if (chosen === "seven") return seven
  if (chosen === "vfs") return four
  return known().filter(({ name }) => chosen.includes(name))
}

/** Dies for a name that no tool has: that is a mistake of the programmer. */
export const choose = (
  chosen: Chosen,
  {
    hasSandbox,
    hasSnapshots,
    readOnly
  }: { readonly hasSandbox: boolean; readonly hasSnapshots: boolean; readonly readOnly: boolean }
): Effect.Effect<ReadonlyArray<AnyDefinition>> =>
  Effect.sync(() => {
    const unknown = typeof chosen === "string" ? undefined : chosen.find((name) => !names().includes(name))
    if (unknown !== undefined) throw new Error(`there is no tool ${JSON.stringify(unknown)}`)
    const usable = (tool: AnyDefinition) =>
      (hasSnapshots || !isOfSnapshots(tool)) && (hasSandbox || !isOfSandbox(tool)) && (!readOnly || tool.does === "reads")
    return kit(chosen).filter(usable)
  })
