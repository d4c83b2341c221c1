/** The names of the kits, for code that needs them before the tools are loaded. */
export const seven = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm"]
export const extras = ["move", "copy", "mkdir", "stat", "tree", "apply_patch"]
export const snapshotTools = ["snapshot", "snapshots", "restore", "diff"]
export const four = ["list_directory", "read_file", "write_file", "delete_file"]

const alwaysOffered = new Set(["ls", "read_file", "glob", "grep", "stat", "tree", "list_directory"])

export interface EarlyTools {
  readonly names: ReadonlySet<string>
  readonly certainTool: string
}

/** Returns the chosen names, or `undefined` if the tools must be loaded to know them. */
export const earlyTools = (chosen: string, hasSnapshots: boolean): EarlyTools | undefined => {
  const all = [...seven, ...extras, ...(hasSnapshots ? snapshotTools : [])]
  const kits: Readonly<Record<string, ReadonlyArray<string>>> = { all, seven, vfs: four }
  const names = (Object.hasOwn(kits, chosen) ? kits[chosen] : undefined) ?? chosen.split(",").map((name) => name.trim())
  const certainTool = names.find((name) => alwaysOffered.has(name))
  const isKnown = Object.hasOwn(kits, chosen) || names.every((name) => all.includes(name))
  return certainTool === undefined || !isKnown ? undefined : { names: new Set(names), certainTool }
}
