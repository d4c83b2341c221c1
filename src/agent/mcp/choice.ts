import * as Effect from "effect/Effect"
import type { AnyDefinition } from "../definition.ts"
import { extras, four, sandboxTools, seven, snapshotTools } from "../tools.ts"

export type ToolChoice = "all" | "seven" | "vfs" | ReadonlyArray<string>

/** Lists the tools that names may select. A name in both kits means the tool of the larger kit. */
const selectableTools = (): ReadonlyArray<AnyDefinition> => [...seven, ...extras, ...snapshotTools, ...sandboxTools]

export const selectableNames = (): ReadonlyArray<string> => selectableTools().map(({ name }) => name)

export const toolNamed = (name: string): AnyDefinition | undefined => selectableTools().find((tool) => tool.name === name)

export const isSnapshotTool = (tool: AnyDefinition): boolean => snapshotTools.includes(tool)
export const isSandboxTool = (tool: AnyDefinition): boolean => sandboxTools.includes(tool)

const toolsOfKit = (chosen: ToolChoice): ReadonlyArray<AnyDefinition> => {
  if (chosen === "all") return selectableTools()
  if (chosen === "seven") return seven
  if (chosen === "vfs") return four
  return selectableTools().filter(({ name }) => chosen.includes(name))
}

/** Chooses the tools. Dies for an unknown name, because that is a programming error. */
export const chooseTools = (
  chosen: ToolChoice,
  {
    hasSandbox,
    hasSnapshots,
    readOnly
  }: { readonly hasSandbox: boolean; readonly hasSnapshots: boolean; readonly readOnly: boolean }
): Effect.Effect<ReadonlyArray<AnyDefinition>> =>
  Effect.sync(() => {
    const unknown = typeof chosen === "string" ? undefined : chosen.find((name) => !selectableNames().includes(name))
    if (unknown !== undefined) throw new Error(`there is no tool ${JSON.stringify(unknown)}`)
    const usable = (tool: AnyDefinition) =>
      (hasSnapshots || !isSnapshotTool(tool)) && (hasSandbox || !isSandboxTool(tool)) && (!readOnly || tool.does === "reads")
    return toolsOfKit(chosen).filter(usable)
  })
