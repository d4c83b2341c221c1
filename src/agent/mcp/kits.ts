/** The names of the kits, for who must know them before the tools themselves are loaded; the tools say the same. */
export const seven = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm"]
export const extras = ["move", "copy", "mkdir", "stat", "tree", "apply_patch"]
export const snapshotTools = ["snapshot", "snapshots", "restore", "diff"]
export const four = ["list_directory", "read_file", "write_file", "delete_file"]

/** These change nothing, and are offered in any case. */
const always = new Set(["ls", "read_file", "glob", "grep", "stat", "tree", "list_directory"])

export interface Early {
  readonly names: ReadonlySet<string>
  /** One of those that are offered whatever else is so. */
  readonly certain: string
}

/** `undefined` where it takes the tools themselves to tell. */
export const early = (chosen: string, hasSnapshots: boolean): Early | undefined => {
  const all = [...seven, ...extras, ...(hasSnapshots ? snapshotTools : [])]
  const kits: Readonly<Record<string, ReadonlyArray<string>>> = { all, seven, vfs: four }
  const names = (Object.hasOwn(kits, chosen) ? kits[chosen] : undefined) ?? chosen.split(",").map((name) => name.trim())
  const certain = names.find((name) => always.has(name))
  const isKnown = Object.hasOwn(kits, chosen) || names.every((name) => all.includes(name))
  return certain === undefined || !isKnown ? undefined : { names: new Set(names), certain }
}
