/**
 * Shell functions that process many paths in one request, with only a few processes.
 *
 * A path is `.` or begins with `./`, and no component before the last may be a symlink. The output is delimited by
 * sequences that no name and no content can contain.
 *
 * Unusual cases are omitted from an answer. The caller requests them one by one and learns the reason.
 */

export const bulkScript = `
# Calls $1 with the arguments in the input. They are not read as a line, which costs a system call per byte.
bulk_taken() {
  bulk_input=$(take 2>/dev/null) || _broken=1
  I=0
  [ -z "$_broken" ] && eval "$1 $bulk_input"
}

# Tests whether all components before the last are directories and not symlinks.
bulk_way() {
  [ "x\${1%/*}" = "x$bulk_known" ] && return 0
  bulk_rest=$1
  bulk_at=
  while :; do
    case $bulk_rest in
      */*) ;;
      *) break ;;
    esac
    bulk_at=$bulk_at\${bulk_rest%%/*}
    bulk_rest=\${bulk_rest#*/}
    [ -d "$bulk_at" ] && [ ! -L "$bulk_at" ] || return 1
    bulk_at=$bulk_at/
  done
  bulk_known=\${1%/*}
}

# Lists directories. The first line has a digit per directory, 1 if it is listed. The entries follow, each with its mode in
# hexadecimal, its size and its path, and ended by two slashes and a newline, which no path contains.
bulk_lists() {
  bulk_known=. bulk_list= bulk_said= bulk_place=0
  for bulk_path do
    bulk_place=$((bulk_place + 1))
    if bulk_way "$bulk_path" && [ -d "$bulk_path" ] && [ ! -L "$bulk_path" ] && [ -r "$bulk_path" ] && [ -x "$bulk_path" ]; then
      bulk_said=\${bulk_said}1
      bulk_list="$bulk_list \\"\\\${$bulk_place}\\""
    else
      bulk_said=\${bulk_said}0
    fi
  done
  printf '%s\\n' "$bulk_said"
  [ -z "$bulk_list" ] || eval "find $bulk_list -mindepth 1 -maxdepth 1 -exec stat -c '%f %s %n//' {} +"
}

# Reads files of at most $1 bytes each. Reads only so many that the answer has at most $2 bytes, even if the files grow meanwhile.
# First, a line per file has its argument number and its stat. A line with the number of the first file left for another request,
# or 0, follows. Then come the contents as head prints them, each after a line with the unpredictable mark $3 and the path.
# head reads one byte more than the size of the largest file, so that a file that has grown is detected.
bulk_files() {
  bulk_each=$1 bulk_all=$2 bulk_mark=$3
  shift 3
  bulk_known=. bulk_list= bulk_places= bulk_place=0
  for bulk_path do
    bulk_place=$((bulk_place + 1))
    if bulk_way "$bulk_path" && [ -f "$bulk_path" ] && [ ! -L "$bulk_path" ] && [ -r "$bulk_path" ]; then
      bulk_list="$bulk_list \\"\\\${$bulk_place}\\""
      bulk_places="$bulk_places $bulk_place"
    fi
  done
  bulk_stats=
  # A file that has disappeared meanwhile has no line, so the other lines cannot be assigned to files.
  [ -z "$bulk_list" ] || bulk_stats=$(eval "stat -c \\"\\$F\\" $bulk_list") || bulk_places=
  bulk_list= bulk_count=0 bulk_largest=0 bulk_left=0
  for bulk_place in $bulk_places; do
    bulk_stat=\${bulk_stats%%"$N"*}
    bulk_stats=\${bulk_stats#*"$N"}
    bulk_size=\${bulk_stat%% *}
    [ "$bulk_size" -le "$bulk_each" ] || continue
    [ "$bulk_size" -le "$bulk_largest" ] || bulk_largest=$bulk_size
    bulk_count=$((bulk_count + 1))
    if [ $((bulk_count * bulk_largest)) -gt "$bulk_all" ]; then
      bulk_left=$bulk_place
      break
    fi
    bulk_most=$bulk_largest
    printf '%s %s\\n' "$bulk_place" "$bulk_stat"
    bulk_list="$bulk_list \\"\\$bulk_mark\\\${$bulk_place}\\""
  done
  printf '%s\\n' "$bulk_left"
  [ -z "$bulk_list" ] || eval "head -c $((bulk_most + 1)) /dev/null $bulk_list"
}

# Creates directories, then files with the mode $1. The umask $2 gives this mode, except for bits that chmod adds if $3 is not empty.
# Three arguments per entry follow: its path; its size, or d for a directory; the printf format of its content, or its mode.
# Prints a digit per entry, 1 if it was created, and a second line with the numbers of incomplete files, which are removed.
bulk_make() {
  bulk_said= bulk_list= bulk_places= bulk_place=4
  umask "$2"
  set -C
  while [ "$bulk_place" -le $# ]; do
    eval "bulk_path=\\\${$bulk_place} bulk_size=\\\${$((bulk_place + 1))} bulk_text=\\\${$((bulk_place + 2))}"
    bulk_made=0 bulk_known=.
    if bulk_way "$bulk_path" && [ ! -e "$bulk_path" ] && [ ! -L "$bulk_path" ]; then
      if [ "$bulk_size" = d ]; then
        mkdir -m "$bulk_text" -- "$bulk_path" && bulk_made=1
      else
        # The assignment distinguishes a file that could not be opened from a file that could not be written.
        { bulk_made=1; printf "$bulk_text"; } >"$bulk_path"
        [ "$bulk_made" = 0 ] || bulk_list="$bulk_list \\"\\\${$bulk_place}\\"" bulk_places="$bulk_places $bulk_place"
      fi
    fi
    bulk_said=$bulk_said$bulk_made
    bulk_place=$((bulk_place + 3))
  done
  set +C
  umask 022
  printf '%s\\n' "$bulk_said"
  bulk_stats=
  if [ -n "$bulk_list" ]; then
    [ -z "$3" ] || eval "chmod $1 $bulk_list"
    # If a file has disappeared meanwhile, the lines cannot be assigned to files.
    bulk_stats=$(eval "stat -c '%s %a' $bulk_list") || bulk_stats=
  fi
  bulk_list=
  for bulk_place in $bulk_places; do
    bulk_stat=\${bulk_stats%%"$N"*}
    bulk_stats=\${bulk_stats#*"$N"}
    eval "bulk_size=\\\${$((bulk_place + 1))}"
    [ "$bulk_stat" = "$bulk_size $1" ] && continue
    printf '%s ' "$bulk_place"
    bulk_list="$bulk_list \\"\\\${$bulk_place}\\""
  done
  echo
  [ -z "$bulk_list" ] || eval "rm -f -- $bulk_list"
}

# Prints the components of a path down to the first that is not a directory: their number, a line of stat for each, an empty line,
# and the target of the last one if it is a symlink.
bulk_look() {
  bulk_rest=\${1#.}
  bulk_at=.
  set -- .
  while [ -n "$bulk_rest" ] && [ -d "$bulk_at" ] && [ ! -L "$bulk_at" ]; do
    bulk_rest=\${bulk_rest#/}
    bulk_at=$bulk_at/\${bulk_rest%%/*}
    set -- "$@" "$bulk_at"
    case $bulk_rest in
      */*) bulk_rest=/\${bulk_rest#*/} ;;
      *) bulk_rest= ;;
    esac
  done
  printf '%s\\n' $#
  stat -c "$F" "$@"
  printf '\\n'
  [ ! -L "$bulk_at" ] || readlink -n "$bulk_at"
}
`
