/**
 * The scripts that run inside the container. They use only built-in commands of a POSIX shell, because a container may
 * have no other program, or no room for another process.
 */

/** Marks every process that a command starts. Child processes inherit the variable. */
export const marker = "FS_ALGEBRA_EXEC"

/**
 * The first process of a container.
 *
 * It waits for its child, and also reaps orphaned processes, which would otherwise count towards the process limit. The
 * child serves requests from standard input. When the input ends, which the end of our side also causes, both processes
 * and the container end.
 *
 * A command may kill the child, which is then started again. It cannot kill the first process of a container.
 *
 * A request is a line `NONCE MARK SINCE FIRST`. The answer is `NONCE COUNT REFUSED`: the number of processes just
 * killed, and how often the container was refused a process so far.
 *
 * Processes with the mark are killed. Those without any mark are killed if they started at SINCE (in clock ticks) or
 * later, because a program may clear its environment. A process whose parent is outside belongs to the engine and is
 * about to become a command. It is spared, except for the command itself, which is FIRST.
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
 * Before it becomes the command, it prints to standard error that the command starts, with start time and pid. So
 * output and exit codes of the command cannot be mistaken for the engine's. A missing program gives the shell's exit
 * code 127.
 *
 * Its arguments are the directory, `fed` if there is input, and the command. The input is always read to its end,
 * because podman drops the output of a command that leaves input unread.
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
