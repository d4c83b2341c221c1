/**
 * Builds the command lines of the container engines. No shell parses a command line.
 *
 * podman, docker and nerdctl accept the same options with a few exceptions. If an option is given twice, the last value
 * applies. So the caller's options follow those of this library.
 */
import type { Owner } from "../posix/place.ts"
import type { Plan } from "./options.ts"

// The scripts that run inside the container. The scripts use only built-in commands of a POSIX shell, and `cat` for the input
// of a command. A container may have no other program, or no room for another process.

/** The environment variable that marks every process of a command. Child processes inherit this variable. */
const marker = "FS_ALGEBRA_EXEC"

/**
 * The script of the first process of a container, the keeper.
 *
 * The keeper waits for its child, and also reaps orphaned processes, which would otherwise count towards the process
 * limit. The child serves requests from standard input. When the input ends, both processes and the container end. The
 * input also ends when the process of this library ends.
 *
 * If a command kills the child, the child is started again. A command cannot kill the first process of a container.
 *
 * A request is a line `NONCE MARK SINCE FIRST`. The answer is `NONCE COUNT REFUSED`. COUNT is the number of processes
 * that were killed. REFUSED is the number of times that the container has reached its process limit.
 *
 * Processes with the mark MARK are killed. Processes without any mark are killed if they started at SINCE (in clock
 * ticks) or later, because a program may clear its environment. A process whose parent is outside the container belongs
 * to the engine and is about to become a command. The keeper does not kill such a process, unless it is the command
 * itself, which has the pid FIRST.
 *
 * All processes are first stopped and then killed, because a stopped process starts no others. With the mark `alive`,
 * nothing is killed, and COUNT is 1 if the process FIRST, started at SINCE, still runs.
 */
export const keeper = `LC_ALL=C
export LC_ALL
exec 2>/dev/null
fields() {
  state=$1
  parent=$2
  started=\${20-}
}
look() {
  stat=
  while IFS= read -r line; do stat=$line; done <$1/stat
  fields \${stat##*) }
  mark=none
  while IFS= read -r line || [ -n "$line" ]; do
    case $line in
      *${marker}="$2"*) mark=same ;;
      *${marker}=*) [ $mark = same ] || mark=other ;;
    esac
  done <$1/environ
}
pass() {
  count=0
  for place in /proc/[0-9]*; do
    process=\${place#/proc/}
    [ $process != 1 ] && [ $process != "$self" ] || continue
    look $place "$2"
    case $1$state in *Z | *X | STOPT | STOPt | STOP | KILL) continue ;; esac
    case $mark in
      same) ;;
      none)
        [ -n "$3" ] && [ $started -ge $3 ] || continue
        [ $parent != 0 ] || [ $process.$started = "$4.$3" ] || continue
        ;;
      *) continue ;;
    esac
    kill -s $1 $process && count=$((count + 1))
  done
}
alive() {
  count=0
  state=
  started=
  look "/proc/$2" none
  case $state in Z | X | '') return ;; esac
  [ "$started" = "$1" ] && count=1
}
refused() {
  refused=0
  for place in /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events; do
    [ -r $place ] || continue
    while read -r word number; do [ "$word" != max ] || refused=$number; done <$place
    return
  done
}
serve() {
  read -r self line </proc/self/stat
  echo ready
  while read -r nonce name since first; do
    if [ "$name" = alive ]; then alive "$since" "$first"
    else
      tries=0
      while pass STOP "$name" "$since" "$first" && [ $count -gt 0 ] && [ $tries -lt 100 ]; do tries=$((tries + 1)); done
      pass KILL "$name" "$since" "$first"
    fi
    refused
    echo "$nonce $count $refused"
  done
  exit 0
}
while (serve); [ $? -gt 128 ]; do :; done`

/**
 * The wrapper of a command.
 *
 * Before the wrapper executes the command, it prints a line with the start time and the pid to standard error. So output
 * and exit codes of the engine cannot be mistaken for those of the command. If the program is missing, the exit code is
 * 127, as in a shell.
 *
 * The arguments of the wrapper are the directory, `fed` if there is input, and the command. The input is always read to
 * its end, because podman drops the output of a command that leaves input unread.
 */
export const wrapper = `fields() { since=\${20-}; }
mark=$${marker}
goes() {
  stat=
  while IFS= read -r line; do stat=$line; done </proc/self/stat
  fields \${stat##*) }
  echo "$mark goes $since \${stat%% *}" >&2
}
cd "$1" 2>/dev/null || { echo "$mark stays" >&2; exit 126; }
fed=$2
shift 2
case $1 in -*) goes; echo "sh: $1: not found" >&2; exit 127 ;; esac
[ "$fed" ] || { goes; exec "$@"; }
{ cat 2>/dev/null; cat >/dev/null; } | { goes; exec "$@"; }`

const label = "fs-algebra"

/** The label with the identity of the owning process. Later processes use this label to test whether the owner still runs. */
const ownerLabel = "fs-algebra.owner"

const shell = "/bin/sh"

interface Identity {
  readonly name: string
  readonly owner: string
  /** The host directory to mount at the workdir. Absent if no disk is shared. */
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
 * With podman, the workspace is a volume without a name, which is removed with its container. docker creates volumes owned by
 * root and cannot change the owner. So with docker and nerdctl, the workspace is a tmpfs of at most half the memory. The tmpfs
 * needs the option `exec`, so that programs can be run from it.
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

/**
 * Returns the options that turn the log off. Some versions of nerdctl have no log driver `none`, so nerdctl keeps a
 * small log instead.
 */
const logOptions = ({ engine }: Plan): ReadonlyArray<string> =>
  engine === "nerdctl"
    ? ["--log-driver", "json-file", "--log-opt", "max-size=1m", "--log-opt", "max-file=1"]
    : ["--log-driver", "none"]

/**
 * Returns the arguments that start a container, which runs until its input ends. The log is off or limited, because the log
 * would fill the engine's disk.
 */
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

interface Execution {
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
 * Returns the arguments that change the owner of a volume. Rootless podman needs `unshare`, because its user ids differ
 * from those of the host.
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
 * Returns the arguments that print one label of one container, quoted.
 *
 * An image can define labels with any text and line breaks, so a listing of all labels could be forged.
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
