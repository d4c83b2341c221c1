/**
 * What an engine is told, as its arguments, without a shell anywhere: podman, docker and nerdctl understand the same but for a few words.
 * The order counts where an option is given twice, so what the caller adds stands behind ours.
 */
import type { Owner } from "../confined.ts"
import type { Plan } from "./options.ts"
import { keeper, marker, wrapper } from "./script.ts"

export const label = "fs-algebra"

/** Of the process that the container is for, so that whoever comes later knows whether it still lives. */
export const ownerLabel = "fs-algebra.owner"

const shell = "/bin/sh"

export interface Identity {
  readonly name: string
  readonly owner: string
  /** The host's directory that is the workspace; none where no disk is shared. */
  readonly directory?: string | undefined
}

const list = (...fields: ReadonlyArray<string | false>): string => fields.filter((field) => field !== false).join(",")

const bind = (source: string, target: string, readOnly: boolean): ReadonlyArray<string> => [
  "--mount",
  list("type=bind", `src=${source}`, `dst=${target}`, readOnly && "readonly")
]

/**
 * A volume without a name goes with its container. docker has it owned by root and cannot give it away, so there it is memory, of
 * which it may take half; docker would let no program run from it, unless told.
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

/** Keeps no log. Some versions of nerdctl have no driver for that, so its log is small. */
const noLog = ({ engine }: Plan): ReadonlyArray<string> =>
  engine === "nerdctl"
    ? ["--log-driver", "json-file", "--log-opt", "max-size=1m", "--log-opt", "max-file=1"]
    : ["--log-driver", "none"]

/** Starts a container that lives as long as its input. Nothing that is said in it is kept by the engine, which would fill its disk. */
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
  ...noLog(plan),
  "--stop-timeout",
  "0",
  "--network",
  plan.network,
  "--user",
  `${plan.user.uid}:${plan.user.gid}`,
  ...(plan.keepsId ? ["--userns", `keep-id:uid=${plan.user.uid},gid=${plan.user.gid}`] : []),
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
  ...(directory === undefined ? ownWorkspace(plan) : bind(directory, plan.workdir, plan.isReadOnly)),
  ...plan.mounts.flatMap(({ readOnly, source, target }) => bind(source, target, readOnly)),
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
  /** What all that it starts can be known by. */
  readonly mark: string
  /** Absolute, inside. */
  readonly directory: string
  readonly command: ReadonlyArray<string>
  readonly environment?: Readonly<Record<string, string>> | undefined
  readonly hasInput: boolean
}

const inside = (name: string, hasInput: boolean, environment: Readonly<Record<string, string>>): ReadonlyArray<string> => [
  "exec",
  ...(hasInput ? ["--interactive"] : []),
  ...variables(environment),
  name,
  shell,
  "-c"
]

/** Runs a command in a container that runs. */
export const exec = ({ command, directory, environment, hasInput, mark, name }: Execution): ReadonlyArray<string> => [
  ...inside(name, hasInput, { ...environment, [marker]: mark }),
  wrapper,
  "sh",
  directory,
  hasInput ? "fed" : "",
  ...command
]

/** A shell of ours with its input, which runs `script`. `mark`: what all that it starts can be known by. */
export const session = (name: string, script: string, mark = "session"): ReadonlyArray<string> => [
  ...inside(name, true, { [marker]: mark }),
  script
]

/** What must answer before the container counts as ready: whether its user may write in its workspace. */
export const probe = (name: string): ReadonlyArray<string> => [
  ...inside(name, false, { [marker]: "probe" }),
  "if [ -w . ]; then echo ready; else echo foreign; fi"
]

/** Where on the host the volume lies that is the workspace. */
export const whereIs = (name: string, workdir: string): ReadonlyArray<string> => [
  "inspect",
  "--format",
  `{{range .Mounts}}{{if eq .Destination ${JSON.stringify(workdir)}}}{{.Source}}{{end}}{{end}}`,
  name
]

/** As the root of podman without root, to whom the host's numbers are others. */
export const chown = ({ uid, gid }: Owner, path: string): ReadonlyArray<string> => ["unshare", "chown", `${uid}:${gid}`, path]

export const version: ReadonlyArray<string> = ["--version"]

/** With its volumes, whether it runs or not. */
export const remove = (name: string): ReadonlyArray<string> => ["rm", "--force", "--volumes", name]

/** Lists the names of the containers that carry our label, one a line. */
export const listing: ReadonlyArray<string> = ["ps", "--all", "--filter", `label=${label}=1`, "--format", "{{.Names}}"]

/** Only these names can be those of our containers. */
export const listed = (output: string): ReadonlyArray<string> =>
  output.split("\n").filter((name) => /^fs-algebra-[0-9a-f]+$/.test(name))

/**
 * Asks for one label of one container, quoted. An image brings labels too, with any text and line breaks in them, so a listing of all
 * labels could not be told apart from a forged one.
 */
export const ownerOf = (name: string): ReadonlyArray<string> => [
  "inspect",
  "--type",
  "container",
  "--format",
  `{{printf "%q" (index .Config.Labels "${ownerLabel}")}}`,
  name
]

/** Returns the identity of the process that the container is for, or `undefined` where the label holds none. */
export const owner = (output: string): string | undefined => /^"([0-9a-z-]+)"\s*$/.exec(output)?.[1]
