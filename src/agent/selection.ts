/** Chooses the tools that a server or an adapter offers, by the name of a kit or by the names of tools. */
import * as Effect from "effect/Effect"
import type { Options } from "./McpServer.ts"
import type { AnyDefinition } from "./definition.ts"
import { extras, four, sandboxTools, seven, snapshotTools } from "./tools.ts"

type ToolChoice = NonNullable<Options["tools"]>

/**
 * Lists the tools that can be selected by name. The four-tool kit (`vfs`) is not among them, so `read_file` and `write_file`
 * select the tools of the seven-tool kit.
 */
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
