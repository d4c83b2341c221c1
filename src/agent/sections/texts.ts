import type { LimitsShape } from "../../model/Limits.ts"
import { formatCount as plural, formatSize as size, whole } from "../../model/words.ts"

export interface ToolNames {
  readonly look: string
  readonly read: string
  readonly write: string
  readonly change: string
  readonly remove: string
  readonly search: ReadonlyArray<string>
  readonly writesBinary: boolean
  readonly version: string
}

export const sevenKit: ToolNames = {
  look: "ls",
  read: "read_file",
  write: "write_file",
  change: "edit_file",
  remove: "rm",
  search: ["glob", "grep"],
  writesBinary: false,
  version: "if_match"
}

export const fourKit: ToolNames = {
  look: "list_directory",
  read: "read_file",
  write: "write_file",
  change: "write_file",
  remove: "delete_file",
  search: [],
  writesBinary: true,
  version: "if_version"
}

const code = (name: string): string => `\`${name}\``

const paragraphs = (...parts: ReadonlyArray<string | undefined>): string =>
  parts.filter((part) => part !== undefined && part !== "").join("\n\n")

const list = (...items: ReadonlyArray<string | undefined>): string =>
  items.flatMap((item) => (item === undefined ? [] : [`- ${item}`])).join("\n")

const finiteLimits = ({ maxFileSize, maxPathDepth, maxSegmentLength }: LimitsShape): string | undefined => {
  const bounds = [
    Number.isFinite(maxFileSize) ? `one write has at most ${whole(maxFileSize)} characters` : "",
    Number.isFinite(maxPathDepth) ? `a path at most ${whole(maxPathDepth)} names` : "",
    Number.isFinite(maxSegmentLength) ? `a name at most ${whole(maxSegmentLength)} characters` : ""
  ].filter((bound) => bound !== "")
  return bounds.length === 0 ? undefined : `Limits: ${bounds.join(", ")}.`
}

const lookRule = ({ look, search }: ToolNames): string =>
  search.length === 0
    ? `Look before you read: ${code(look)} shows one directory. List only the directories that matter.`
    : `Look before you read: ${code(look)} shows one directory, ${search.map(code).join(" and ")} find files by name and by content. Keep searches narrow.`

const changeRule = ({ change, read, version }: ToolNames): string =>
  `Get the content with ${code(read)} before you change it, and change the version that you have read: give it to ${code(change)} as ${code(version)}.`

const writeRule = ({ write, writesBinary }: ToolNames): string => {
  const binary = writesBinary
    ? "Write binary content only if the task needs it, and keep it small."
    : `Keep binary files small; ${code(write)} writes only text.`
  return `Write whole files with ${code(write)}, and keep them short. ${binary} Append only to logs.`
}

const removeRule = ({ remove }: ToolNames): string => `Remove files that you no longer need with ${code(remove)}.`

const mountsRule = "The mounted files were chosen before you began. You cannot mount other files from the machine."

const noMirroringRule = "Do not copy whole repositories or large binary files into the workspace."

const workRules = (toolNames: ToolNames, limits: LimitsShape): string =>
  list(
    mountsRule,
    lookRule(toolNames),
    changeRule(toolNames),
    writeRule(toolNames),
    removeRule(toolNames),
    [noMirroringRule, finiteLimits(limits)].filter(Boolean).join(" ")
  )

export interface Facts {
  readonly toolNames: ToolNames | undefined
  readonly limits: LimitsShape
  readonly mounted: string
}

const mountsParagraph = (mounted: string): string => (mounted === "" ? "" : `Mounted at the beginning:\n\n${mounted}`)

const startRule = ({ write }: ToolNames, mounted: string): string =>
  mounted === ""
    ? `This filesystem is empty at the beginning: create the files that you need with ${code(write)}.`
    : `At the beginning this filesystem contains only the mounted files: create other files with ${code(write)}.`

export const vfs = ({ toolNames, limits, mounted }: Facts): string =>
  paragraphs(
    "You have a filesystem of your own. It contains no files from the machine, and no path leads out of it.",
    toolNames && [list(startRule(toolNames, mounted)), workRules(toolNames, limits)].join("\n"),
    mountsParagraph(mounted)
  )

/** Describes a workspace. `directory` is its path on the machine, for agents that do not use the tools of this package. */
export const workspace = (
  { toolNames, limits, mounted }: Facts,
  directory: string | undefined,
  digest: string | undefined
): string =>
  paragraphs(
    directory === undefined
      ? "You work in a directory. Paths are relative to this directory, with forward slashes. No path leads out of it."
      : `You work in the directory ${code(directory)}. Stay inside it.`,
    toolNames && workRules(toolNames, limits),
    mountsParagraph(mounted),
    digest
  )

export const digest = (text: string, toolNames: ToolNames | undefined): string => {
  if (text !== "") return `This is known about the workspace:\n\n${text}`
  const explore =
    toolNames === undefined
      ? "list its root, read the files that introduce it (a README, a package manifest), then search for the files that matter for the task"
      : `list the root with ${code(toolNames.look)}, read the files that introduce it (a README, a package manifest) with ${code(toolNames.read)}, then look for the files that matter for the task`
  return `Nothing is known about the workspace yet. Explore it before you change anything: ${explore}.`
}

export interface SandboxProfile {
  readonly workdir: string
  readonly network: string
  readonly user: { readonly uid: number; readonly gid: number }
  readonly memoryBytes: number
  readonly cpus: number
  readonly pids: number
  readonly tmpfsBytes: number
  readonly evalLanguage: string
  readonly strategy: "overlay" | "exec"
}

const profileLines = (profile: SandboxProfile): string =>
  list(
    profile.network === "none" ? "There is no network." : `The network is ${code(profile.network)}.`,
    `Programs run as user ${profile.user.uid}:${profile.user.gid}, without privileges.`,
    `Programs have ${size(profile.memoryBytes)} of memory, ${plural(profile.cpus, "processor")} and ${plural(profile.pids, "process", "processes")} at once; ${code("/tmp")} has room for ${size(profile.tmpfsBytes)}.`,
    `A command ends after 30 seconds, or after the time that you set, at most 120 seconds. Of its output and of its errors, at most 32 KiB each are kept: the beginning and the end. ${code("eval")} ends after 5 seconds; its default language is ${profile.evalLanguage}.`,
    profile.strategy === "exec" ? "The files are deleted with the container." : "The files stay when the container ends."
  )

export const sandbox = ({ toolNames, limits, mounted }: Facts, profile: SandboxProfile): string =>
  paragraphs(
    `You have a container. Its files are at ${code(profile.workdir)}; paths for the file tools are relative to this directory. ${code("shell")} runs a program in the container, and ${code("eval")} runs a piece of code. Programs and file tools work on the same files.`,
    profileLines(profile),
    toolNames && workRules(toolNames, limits),
    mountsParagraph(mounted)
  )
