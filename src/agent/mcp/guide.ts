import type { LimitsShape } from "../../model/Limits.ts"
import * as FsPath from "../../model/FsPath.ts"
import { whole } from "../../model/words.ts"

export const scheme = "workspace"
export const rootUri = `${scheme}:///`
export const guideName = "workspace-guide"

// A resource URI is `workspace:///` and a path below the root, with percent-encoded segments. The URI never contains a
// directory of the machine.

export const resourceTemplate = `${rootUri}{+path}`
/** The template for effect's router, in which a single colon begins a parameter. */
export const resourceRoute = `${scheme}::///*`

export const uriOf = (path: FsPath.FsPath): string => rootUri + FsPath.segments(path).map(encodeURIComponent).join("/")

export const pathOf = (uri: string): string | undefined => {
  if (!uri.startsWith(rootUri)) return undefined
  try {
    return uri.slice(rootUri.length).split("/").map(decodeURIComponent).join("/")
  } catch {
    return undefined
  }
}

export const seven = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm"]
export const extras = ["move", "copy", "mkdir", "stat", "tree", "apply_patch"]
export const snapshotTools = ["snapshot", "snapshots", "restore", "diff"]
export const four = ["list_directory", "read_file", "write_file", "delete_file"]

const alwaysOffered = new Set(["ls", "read_file", "glob", "grep", "stat", "tree", "list_directory"])

export interface EarlyTools {
  readonly names: ReadonlySet<string>
  readonly certainTool: string
}

export const earlyTools = (chosen: string, hasSnapshots: boolean): EarlyTools | undefined => {
  const all = [...seven, ...extras, ...(hasSnapshots ? snapshotTools : [])]
  const kits: Readonly<Record<string, ReadonlyArray<string>>> = { all, seven, vfs: four }
  const names = (Object.hasOwn(kits, chosen) ? kits[chosen] : undefined) ?? chosen.split(",").map((name) => name.trim())
  const certainTool = names.find((name) => alwaysOffered.has(name))
  const isKnown = Object.hasOwn(kits, chosen) || names.every((name) => all.includes(name))
  return certainTool === undefined || !isKnown ? undefined : { names: new Set(names), certainTool }
}

interface Facts {
  readonly names: ReadonlySet<string>
  readonly limits: LimitsShape
  readonly readOnly: boolean
  readonly workspace?: string | undefined
}

const changeRules = (names: ReadonlySet<string>): ReadonlyArray<string> => [
  ...(names.has("edit_file")
    ? [
        "- Change a file with edit_file, from the version that you have read; write whole files only when they are new or short."
      ]
    : []),
  ...(names.has("snapshot")
    ? [
        "- Take a snapshot before any change that you may want to undo; restore returns to it, and diff shows what has changed since."
      ]
    : []),
  ...(names.has("shell")
    ? [
        "- Run programs with shell. They run in a sandbox with these files, usually without network. Their changes are visible here at once, and only a snapshot can undo them."
      ]
    : []),
  "- Keep binary files small, and append only to logs.",
  ...(names.has("rm") || names.has("delete_file") ? ["- Delete files that you have created and no longer need."] : []),
  "- Do not copy whole repositories or generated output into this directory."
]

const sizeRule = (limits: LimitsShape): string =>
  Number.isFinite(limits.maxFileSize)
    ? `- One write has at most ${whole(limits.maxFileSize)} characters; a path at most ${whole(limits.maxPathDepth)} levels.`
    : "- The sizes of files and paths are limited only by the machine."

export const guide = ({ limits, names, readOnly, workspace }: Facts): string =>
  [
    `# ${workspace === undefined ? "The workspace" : `The workspace ${JSON.stringify(workspace)}`}`,
    "",
    readOnly
      ? "You can read the files of one directory, but change nothing."
      : "You can read and change the files of one directory.",
    "No path leads out of this directory, and you cannot mount anything into it.",
    "",
    "- Paths are relative to this directory, with forward slashes: src/main.ts.",
    "- Look before you read: list one directory or search for a pattern, and read the files that matter. Long files and lists come in parts; the last line of a part says how to get the next one.",
    ...(readOnly ? [] : changeRules(names)),
    sizeRule(limits),
    "- A failed call says what went wrong and what to do next; follow this advice first.",
    "",
    `Tools: ${[...names].join(", ")}.`,
    ""
  ].join("\n")

export const instructions = (facts: Facts): string => guide(facts).split("\n").slice(2, -3).join("\n").trim()
