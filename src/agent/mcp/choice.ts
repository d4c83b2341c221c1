import * as Effect from "effect/Effect"
import type { AnyDefinition } from "../definition.ts"
import { extras, four, sandboxTools, seven, snapshotTools } from "../tools.ts"

export type Chosen = "all" | "seven" | "vfs" | ReadonlyArray<string>

/** Lists the tools that names may select. A name in both kits means the tool of the larger kit. */
const known = (): ReadonlyArray<AnyDefinition> => [...seven, ...extras, ...snapshotTools, ...sandboxTools]

export const names = (): ReadonlyArray<string> => known().map(({ name }) => name)

export const toolOf = (name: string): AnyDefinition | undefined => known().find((tool) => tool.name === name)

export const isOfSnapshots = (tool: AnyDefinition): boolean => snapshotTools.includes(tool)
export const isOfSandbox = (tool: AnyDefinition): boolean => sandboxTools.includes(tool)

const kit = (chosen: Chosen): ReadonlyArray<AnyDefinition> => {
  if (chosen === "all") return known()
  if (chosen === "seven") return seven
  if (chosen === "vfs") return four
  return known().filter(({ name }) => chosen.includes(name))
}

/** Chooses the tools. Dies for an unknown name, because that is a programming error. */
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
