/**
 * Builds the command lines of the container engines, which no shell parses.
 *
 * podman, docker and nerdctl accept the same options with a few exceptions. If an option is given twice, the last one
 * counts, so the caller's options follow ours.
 */
import type { Owner } from "../confined.ts"
import type { Plan } from "./options.ts"
import { keeper, marker, wrapper } from "./script.ts"

export const label = "fs-algebra"

/** Tells later processes whether the owning process still runs. */
export const ownerLabel = "fs-algebra.owner"

const shell = "/bin/sh"

export interface Identity {
  readonly name: string
  readonly owner: string
  /** Absent if no disk is shared. */
  readonly directory?: string | undefined
}

const list = (...fields: ReadonlyArray<string | false>): string => fields.filter((field) => field !== false).join(",")

const bindMount = (source: string, target: string, readOnly: boolean): ReadonlyArray<string> => [
  "--mount",
  list("type=bind", `src=${source}`, `dst=${target}`, readOnly && "readonly")
]

/**
 * Returns the arguments for a workspace inside the container.
 *
 * A volume without a name is removed with its container. docker creates volumes owned by root and cannot change that.
 * So there the workspace is in memory, limited to half of it. docker also needs `exec` to run programs from it.
 */
const ownWorkspace = ({ engine, memoryBytes, user, workdir }: Plan): ReadonlyArray<string> =>
  engine === "podman"
    ? ["--mount", list("type=volume", `dst=${workdir}`, "U=true")]
    : [
        "--tmpfs",
        `${workdir}:${list("rw", "exec", `size=${Math.ceil(memoryBytes / 2)}`, "mode=0755", `uid=${user.uid}`, `gid=${user.gid}`)}`
      ]

const variables = (environment: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Object.entries(environment).flatMap(([name, value]) => ["--env", `${name}=${value}`])

const imageOf = ({ image }: Plan): ReadonlyArray<string> =>
  typeof image === "string" ? ["--pull", "missing", image] : ["--rootfs", `${image.rootfs}:O`]

/** Turns the log off. Some versions of nerdctl have no `none` driver, so there the log is small. */
const logOptions = ({ engine }: Plan): ReadonlyArray<string> =>
  engine === "nerdctl"
    ? ["--log-driver", "json-file", "--log-opt", "max-size=1m", "--log-opt", "max-file=1"]
    : ["--log-driver", "none"]

/** Starts a container, which runs until its input ends. A log of the output would fill the engine's disk. */
export const run = (plan: Plan, { directory, name, owner }: Identity): ReadonlyArray<string> => [
  "run",
  "--rm",
  "--interactive",
  "--name",
  name,
  "--label",
  `${label}=1`,
  "--label",
  `${ownerLabel}=${owner}`,
  ...logOptions(plan),
  "--stop-timeout",
  "0",
  "--network",
  plan.network,
  "--user",
  `${plan.user.uid}:${plan.user.gid}`,
  ...(plan.mapsUser ? ["--userns", `keep-id:uid=${plan.user.uid},gid=${plan.user.gid}`] : []),
  "--memory",
  String(plan.memoryBytes),
  "--memory-swap",
  String(plan.memoryBytes),
  "--cpus",
  String(plan.cpus),
  "--pids-limit",
  String(plan.pids),
  "--cap-drop",
  plan.engine === "podman" ? "all" : "ALL",
  "--security-opt",
  "no-new-privileges",
  "--tmpfs",
  `/tmp:${list("rw", "exec", `size=${plan.tmpfsBytes}`, "mode=1777")}`,
  ...(directory === undefined ? ownWorkspace(plan) : bindMount(directory, plan.workdir, plan.isReadOnly)),
  ...plan.mounts.flatMap(({ readOnly, source, target }) => bindMount(source, target, readOnly)),
  "--workdir",
  plan.workdir,
  ...variables({ ...plan.environment, [marker]: "keeper" }),
  ...plan.runArguments,
  "--entrypoint",
  shell,
  ...imageOf(plan),
  "-c",
  keeper
]

export interface Execution {
  readonly name: string
  readonly mark: string
  readonly directory: string
  readonly command: ReadonlyArray<string>
  readonly environment?: Readonly<Record<string, string>> | undefined
  readonly hasInput: boolean
}

const execArguments = (
  name: string,
  hasInput: boolean,
  environment: Readonly<Record<string, string>>
): ReadonlyArray<string> => ["exec", ...(hasInput ? ["--interactive"] : []), ...variables(environment), name, shell, "-c"]

export const exec = ({ command, directory, environment, hasInput, mark, name }: Execution): ReadonlyArray<string> => [
  ...execArguments(name, hasInput, { ...environment, [marker]: mark }),
  wrapper,
  "sh",
  directory,
  hasInput ? "fed" : "",
  ...command
]

export const session = (name: string, script: string, mark = "session"): ReadonlyArray<string> => [
  ...execArguments(name, true, { [marker]: mark }),
  script
]

export const probe = (name: string): ReadonlyArray<string> => [
  ...execArguments(name, false, { [marker]: "probe" }),
  "if [ -w . ]; then echo ready; else echo foreign; fi"
]

export const inspectVolume = (name: string, workdir: string): ReadonlyArray<string> => [
  "inspect",
  "--format",
  `{{range .Mounts}}{{if eq .Destination ${JSON.stringify(workdir)}}}{{.Source}}{{end}}{{end}}`,
  name
]

/**
 * Changes the owner of a volume. With rootless podman, `unshare` is needed, because user numbers differ from the
 * host's.
 */
export const changeVolumeOwner = ({ uid, gid }: Owner, path: string): ReadonlyArray<string> => [
  "unshare",
  "chown",
  `${uid}:${gid}`,
  path
]

export const version: ReadonlyArray<string> = ["--version"]

export const remove = (name: string): ReadonlyArray<string> => ["rm", "--force", "--volumes", name]

export const listContainers: ReadonlyArray<string> = ["ps", "--all", "--filter", `label=${label}=1`, "--format", "{{.Names}}"]

export const parseNames = (output: string): ReadonlyArray<string> =>
  output.split("\n").filter((name) => /^fs-algebra-[0-9a-f]+$/.test(name))

/**
 * Prints one label of one container, quoted.
 *
 * An image can bring labels with any text and line breaks, so a listing of all labels could be forged.
 */
export const inspectOwner = (name: string): ReadonlyArray<string> => [
  "inspect",
  "--type",
  "container",
  "--format",
  `{{printf "%q" (index .Config.Labels "${ownerLabel}")}}`,
  name
]

export const owner = (output: string): string | undefined => /^"([0-9a-z-]+)"\s*$/.exec(output)?.[1]
