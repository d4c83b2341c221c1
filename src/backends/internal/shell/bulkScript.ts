/**
 * Shell functions that process many paths in one request.
 *
 * Each function starts only a few processes, however many paths it gets. A path is `.` or begins with `./`, and no
 * component before the last may be a symlink. The output is delimited by sequences that no name and no content can
 * contain.
 *
 * Unusual cases are omitted from an answer. The caller requests them one by one and learns the reason.
 */

export const bulkScript = `
# Calls $1 with the arguments that come as input: to read a line costs the shell a call of the system for each byte.
bulk_taken() {
  bulk_input=$(take 2>/dev/null) || _broken=1
  I=0
  [ -z "$_broken" ] && eval "$1 $bulk_input"
}

# Whether all components before the last are directories, and none of them a link.
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

# Lists directories. First a line with a digit for each, 1 for one that is listed. Then what is in these: of each entry the mode in
# hexadecimal, the size and the path, behind which two slashes and a newline stand, as they cannot in a path.
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

# Reads files of at most $1 bytes each: so many of them that, whatever becomes of them meanwhile, no more than $2 bytes are answered.
# First a line for each that is read, with its place among the arguments and what stat says of it, and one with the place of the first
# that is left for another time, or 0. Then the contents as head says them, each behind a line with $3, which nobody can foresee, and
# the path; a byte more of each than the largest holds, so that one that has grown is seen to be another.
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
  # Of one that has gone meanwhile there is no line, and which of them belongs to which cannot be told.
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

# Makes new directories, then files with the mode $1, which a umask of $2 leaves but for the bits that chmod adds where $3 is not empty.
# Then come three arguments for each entry: its path; its size, or d for a directory; what printf makes its content of, or its mode.
# Says a digit for each, 1 for one that was made, and in a second line the places of those that were not whole, and are removed.
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
        # The assignment tells a file that could not be opened from one that could not be filled.
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
    # Where one has gone meanwhile, which line belongs to which cannot be told.
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

# What stands at each component of a path, down to the first that is no directory: how many there were to look at, a line of stat for
# each, an empty line, and the text of the last of them where that is a link.
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
