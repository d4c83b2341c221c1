/**
 * What runs inside, in nothing but the words of a POSIX shell itself: a container may have no other program, and one that is full of
 * processes has no room for another.
 */

/** The variable by which everything that a command has started is known, since processes hand on what they were given. */
export const marker = "FS_ALGEBRA_EXEC"

/**
 * The first process of a container. It waits for its child, and so for every process that has lost its parent, which would otherwise
 * stay as a dead entry among the processes allowed. Its child does what our side asks for on standard input, and at the end of that,
 * which comes when our side has ended too, however that came, both end and the container with them. A command that kills whatever it
 * may kills the child, which then is made anew; the first process of a container cannot be killed from within.
 *
 * A request is a line `NONCE MARK SINCE FIRST`, the answer `NONCE COUNT REFUSED`: how many processes were just killed, and how often
 * the container was refused a process since it began. Those of a mark go, and those of none that started not before SINCE, in the
 * system's ticks, since who empties the environment has no mark; those whose parent is outside are the engine's own, about to become a
 * command, but for the command itself, which is FIRST. First all are stopped, then killed: what is stopped starts nothing new. With the
 * mark `alive` nothing is killed, and COUNT is 1 where the process FIRST that started at SINCE still runs.
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
 * Around a command: says on standard error that it goes, since when, and as which process, before it becomes the command, so that whatever the command
 * says or answers cannot be taken for the engine's. A program that is not there is the shell's 127.
 *
 * Its arguments are the directory, `fed` where there is input, and the command. Input is read to its end whatever the command takes of
 * it: podman drops the output of what leaves its input unread.
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
