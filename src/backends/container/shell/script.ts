/** The script of the shell that serves a container's files: the loop that answers requests, and the functions that it calls. */

/**
 * The shell functions of the port, one for each primitive operation. The comment above `statFormat` states their rules.
 * All functions except `root` are called through `inside`, which gets the root of the paths.
 */
const primitives = `
_root=
_pins=
trap '[ -z "$_pins" ] || { kill -9 $_pins; wait $_pins; } 2>/dev/null' 0

# Prints the real path of a directory, and its device and inode.
root() {
  if cd -P -- "$1" 2>/dev/null; then
    _root=
    pwd -P
    stat -c '%d:%i' .
  elif [ -d "$1" ]; then
    return 25
  elif [ -e "$1" ]; then
    return 22
  else
    return 21
  fi
}

# Runs the following command in the root $1, which has the device and inode $2. No other function leaves the root, so the
# directory changes only if the root differs from the last one. Each call checks that the path still leads to the root.
inside() {
  if [ "$1" != "$_root" ]; then
    _root=
    cd -P -- "$1" 2>/dev/null && [ "$(stat -c '%d:%i' .)" = "$2" ] || return 20
    _root=$1
  fi
  [ "$1" -ef . ] || return 20
  shift 2
  "$@"
}

# Tests whether all components before the last are directories.
way() {
  _w=.
  _r=\${1#./}
  while :; do
    case $_r in
      */*) ;;
      *) return 0 ;;
    esac
    _v=$_w
    _w=$_w/\${_r%%/*}
    _r=\${_r#*/}
    if [ -L "$_w" ]; then
      return 22
    elif [ -d "$_w" ]; then
      :
    elif [ -e "$_w" ]; then
      return 22
    elif [ -x "$_v" ]; then
      return 21
    else
      return 25
    fi
  done
}

# Tests whether the entry exists and may be inspected.
there() {
  [ -e "$1" ] || [ -L "$1" ] || absent "$1"
}

absent() {
  [ -x "\${1%/*}" ] || return 25
  return 21
}

# Tests whether the entry exists, for a read. Below a file or a symlink, nothing exists.
seek() {
  way "$1" && there "$1" && return 0
  _e=$?
  [ "$_e" != 22 ] || return 21
  return "$_e"
}

# Tests for a readable file. Other entries are never opened, because opening a device may block or have an effect.
seekfile() {
  seek "$1" || return
  [ -f "$1" ] && [ ! -L "$1" ] || return 23
  [ -r "$1" ] || return 25
}

look() {
  seek "$1" && stat -c "$F" "$1"
}

# Prints the stat of the file that is open as descriptor 4. Uses its name if there is no /proc.
opened() {
  stat -L -c "$1" /proc/self/fd/4 2>/dev/null || stat -c "$1" "$2"
}

# Prints the stat of a file, and its content if the content has at most $2 bytes.
load() {
  seekfile "$1" || return
  {
    _t=$(opened "$F" "$1") || return
    printf '%s\\n' "$_t"
    _z=\${_t%% *}
    [ "$_z" = 0 ] || [ "$_z" -gt "$2" ] || head -c "$_z" <&4
  } 4<"$1"
}

# Sets $_b to the start time of the process $1, in ticks since the machine started. With the pid, it identifies the process.
born() {
  IFS= read -r _b <"/proc/$1/stat" || return
  set -- \${_b##*) }
  _b=\${20}
} 2>/dev/null

# Keeps a file open in a process. Prints its pid and start time, then the stat of the file.
pin() {
  seekfile "$1" || return
  {
    sleep 2147483647 </dev/null >/dev/null 2>&1 3<&- &
    _p=$!
    _pins="$_pins $_p"
    born "$_p" || return
    printf '%s %s ' "$_p" "$_b"
    stat -L -c "$F" "/proc/$_p/fd/4"
  } 4<"$1"
}

# Prints $4 bytes from $3 on of the file that the process $1, started at $2, keeps open.
piece() {
  born "$1" && [ "$_b" = "$2" ] || return 26
  dd if="/proc/$1/fd/4" bs=65536 skip="$3" count="$4" iflag=skip_bytes,count_bytes,fullblock
}

unpin() {
  kill -9 "$1"
  wait "$1" 2>/dev/null
  _q=
  for _p in $_pins; do
    [ "$_p" = "$1" ] || _q="$_q $_p"
  done
  _pins=$_q
  return 0
}

# Prints mode, size, modification time and name of each entry of a directory, ended by two slashes and a newline.
list() {
  seek "$1" || return
  [ -d "$1" ] && [ ! -L "$1" ] || return 22
  [ -r "$1" ] && [ -x "$1" ] || return 25
  (cd -P -- "$1" 2>/dev/null || exit 21; exec find . -mindepth 1 -maxdepth 1 -exec stat -c '%f %s %Y %n//' {} +)
}

# Prints the names of a directory, each after the letter of its kind: d, f, or o for other.
names() {
  (cd -P -- "$1" 2>/dev/null || exit 21; exec find . -mindepth 1 -maxdepth 1 \\( -type d -exec printf 'd%s//\\n' {} + \\) -o \\( -type f -exec printf 'f%s//\\n' {} + \\) -o -exec printf 'o%s//\\n' {} +)
}

readlink_() {
  seek "$1" || return
  [ -L "$1" ] || return 27
  readlink -n -- "$1"
}

# Tests whether $1 can be written in the mode $2.
target() {
  way "$1" || return
  if [ -e "$1" ] || [ -L "$1" ]; then
    [ "$2" != create ] || return 24
    [ -f "$1" ] && [ ! -L "$1" ] || return 23
  else
    [ -x "\${1%/*}" ] || return 25
  fi
}

octal() {
  _o=$(($1 / 512))$(($1 / 64 % 8))$(($1 / 8 % 8))$(($1 % 8))
}

# Writes the input to the new file $2, to be published as $1. $2 is never more accessible than the file that it replaces.
stage() {
  target "$1" "$3" || return
  if [ -e "$1" ]; then
    _m=$(stat -c '%a' -- "$1") || return
    octal "$((~0$_m & 0666))"
    umask "$_o"
  fi
  set -C
  take >"$2"
  _e=$?
  set +C
  umask 022
  [ "$_e" = 0 ] || rm -f -- "$2"
  return "$_e"
}

# Appends the input to a staged file.
more() {
  [ -f "$1" ] && [ ! -L "$1" ] || return 26
  take >>"$1"
}

discard() {
  rm -f -- "$1"
}

# Copies owner, group and permission bits of $1 to $2, and sets $_t to the stat of $2. A refused owner or group is ignored.
inherit() {
  _t=$(stat -c "$F" -- "$1" "$2") || return
  _f=\${_t%%"$N"*}
  _t=\${_t#*"$N"}
  _own=\${_f#* * }
  _own=\${_own%% *}
  _new=\${_t#* * }
  _m=\${_f#* }
  _m=\${_m%% *}
  _x=\${_t#* }
  [ "$_m $_own" = "\${_x%% *} \${_new%% *}" ] && return 0
  [ "$_own" = "\${_new%% *}" ] || chown "$_own" "$2" 2>/dev/null || chown ":\${_own#*:}" "$2" 2>/dev/null
  octal "$((0$_m & 0777))"
  chmod "$_o" "$2" && _t=$(stat -c "$F" -- "$2")
}

# Gives $2 the name $1, which must be free. Without hard links, an empty file reserves the name first.
name() {
  ln -T -- "$2" "$1" && { rm -f -- "$2"; return 0; }
  [ ! -e "$1" ] && [ ! -L "$1" ] || return 24
  (set -C && : >"$1") || return
  mv -f -T -- "$2" "$1" || { _e=$?; rm -f -- "$1"; return "$_e"; }
}

# Publishes the staged file $2 of $4 bytes as $1 in the mode $3, and prints its stat.
publish() {
  target "$1" "$3" || return
  if [ "$3" = append ] && [ -e "$1" ]; then
    graft "$1" "$2"
    return
  fi
  if [ -e "$1" ]; then
    inherit "$1" "$2" || return
  else
    _t=$(stat -c "$F" -- "$2") || return
  fi
  [ "\${_t%% *}" = "$4" ] || return 26
  if [ "$3" = replace ]; then
    mv -f -T -- "$2" "$1" || return
  else
    name "$1" "$2" || return
  fi
  printf '%s' "$_t"
}

# Stages and publishes a file in one request.
put() {
  stage "$1" "$2" "$3" || return
  publish "$1" "$2" "$3" "$4" && return 0
  _e=$?
  rm -f -- "$2"
  return "$_e"
}

# Undoes a failed append.
cutback() {
  if [ -z "$2" ]; then
    rm -f -- "$1"
  else
    truncate -s "$2" "$1"
  fi
  return "$_e"
}

# Appends the staged file $2 to $1.
graft() {
  _b=$(stat -c '%s' "$1") || return
  cat "$2" >>"$1" || { _e=$?; cutback "$1" "$_b"; return; }
  rm -f -- "$2"
  stat -c "$F" "$1"
}

append() {
  target "$1" append || return
  _b=
  [ ! -e "$1" ] || _b=$(stat -c '%s' "$1") || return
  take >>"$1" || { _e=$?; cutback "$1" "$_b"; return; }
  stat -c "$F" "$1"
}

# Tests whether the parent directory exists and has no entry with the name.
free() {
  way "$1" || return
  [ ! -e "$1" ] && [ ! -L "$1" ] || return 24
  [ -x "\${1%/*}" ] || return 25
}

mkdir_() {
  free "$1" && mkdir -- "$1"
}

symlink() {
  free "$1" && ln -s -T -- "$2" "$1"
}

remove() {
  seek "$1" || return
  if [ -d "$1" ] && [ ! -L "$1" ]; then
    rmdir -- "$1"
  else
    rm -f -- "$1"
  fi
}

# Removes a tree. Prints one character per directory, a newline, and one character per other entry.
rmtree() {
  seek "$1" || return
  find "$1" -type d -exec printf '%.0sd' {} +
  echo
  find "$1" ! -type d -exec printf '%.0sf' {} +
  rm -rf -- "$1"
}

# Renames $1 to $2, and replaces an existing $2 if $3 is 1.
rename() {
  seek "$1" || return
  _d=
  if [ -d "$1" ] && [ ! -L "$1" ]; then
    _d=1
  fi
  if [ "$1" = "$2" ]; then
    [ "$3" = 1 ] && return 0
    return 24
  fi
  case $_d$2 in
    1"$1"/*) return 28 ;;
  esac
  way "$2" || return
  _x=
  if [ -e "$2" ] || [ -L "$2" ]; then
    [ "$3" = 1 ] || return 24
    if [ -d "$2" ] && [ ! -L "$2" ]; then
      [ -n "$_d" ] || return 23
    else
      [ -z "$_d" ] || return 22
    fi
    _x=$2
  fi
  _t=$(stat -c '%d %i' -- "$1" "\${2%/*}" \${_x:+"$_x"}) || return
  _f=\${_t%%"$N"*}
  _t=\${_t#*"$N"}
  [ "\${_f% *}" = "\${_t%% *}" ] || return 29
  if [ -z "$_x" ]; then
    mv -n -T -- "$1" "$2" || return
    { [ -e "$1" ] || [ -L "$1" ]; } && return 24
    return 0
  fi
  # A system rename between two names of one file does nothing.
  if [ "$_f" = "\${_t#*"$N"}" ]; then
    rm -f -- "$1"
    return
  fi
  mv -f -T -- "$1" "$2" && return 0
  _e=$?
  # The mv of busybox treats a symlink to a directory as a directory.
  [ -L "$2" ] && [ -d "$2" ] || return "$_e"
  rm -f -- "$2" && mv -n -T -- "$1" "$2"
}

chmod_() {
  seek "$1" || return
  [ ! -L "$1" ] || return 31
  if [ -d "$1" ]; then
    # Other bits, such as the sticky bit, stay.
    _m=$(stat -c '%a' -- "$1") || return
    octal "$((0$_m & 07000 | 0$2))"
    chmod "$_o" "$1"
  else
    chmod "$2" "$1"
  fi
}

# Sets the modification time, in seconds since 1970.
touch_() {
  seek "$1" && touch -c -h -m -d "@$2" "$1"
}
`

// The shell's side of a session: a loop that answers requests, and one function for each operation of the port.
//
// The shell's side is POSIX shell with common tools only (coreutils and findutils of GNU, or busybox). Tests in the shell itself
// (`[ -d … ]`) start no process. So conditions are checked before a tool runs, and messages of tools matter only for other
// failures.
//
// Rules for all functions:
// - A path is `.`, or begins with `./` and contains no `.`, `..` or empty components. A path is always quoted. In
// output, `//` ends a path, because no path contains it.
// - No component before the last may be a symlink; the tools must not follow a symlink at the last component.
// - `I`, `K`, `N`, `F`, `_l`, `_n`, `_s` and `_broken` belong to the loop. `$N` is a newline, `$F` the format of `stat`.
// - A function reads the input of a request with `take`, at most once. `take` sets `I` and `_broken`, which a subshell would
// lose. So after `$(take)` the function sets `I=0`, and `_broken=1` if `take` failed.
// - The status is one of `faultsByStatus` in `shellRoot.ts`. Any other status except 0 means that a tool failed, and its
// message gives the reason.

/** The stat format, parsed in `shellRoot.ts`: bytes, permission bits in octal, owner, mode in hexadecimal, times. */
const statFormat = "%s %a %u:%g %f %Y %W %y/%w"

/** The number that is added to the status of a shell's last answer, after which the shell ends. */
export const lastAnswer = 500

const beginning = `
exec 3<&0 </dev/null
LC_ALL=C TZ=UTC0
PATH=\${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
export LC_ALL TZ PATH
unset CDPATH
umask 022
N='
'
F='${statFormat}'
IFS= read -r K <&3 || exit 0
_broken=

# Prints the input of the request. If only a part of the input could be read, the shell must end.
take() {
  _i=$I
  I=0
  [ "$_i" = 0 ] && return 0
  dd bs="$_i" count=1 iflag=fullblock <&3 && return 0
  _i=$?
  _broken=1
  return "$_i"
}

# Tests whether the required tools exist.
greet() {
  dd bs=1 count=0 iflag=fullblock </dev/null && stat -c '%f' / && find / -maxdepth 0 -exec stat -c '%f' {} + && [ / -ef /. ]
} >/dev/null
`

const loop = `
while IFS= read -r _l <&3; do
  case $_l in
    "$K "*) ;;
    *) exit 70 ;;
  esac
  _l=\${_l#* }
  _n=\${_l%% *}
  _l=\${_l#* }
  I=\${_l%% *}
  eval "\${_l#* }"
  _s=$?
  [ "$I" = 0 ] || take >/dev/null
  [ -z "$_broken" ] || _s=$((_s + ${lastAnswer}))
  printf '\\n%s %s %s\\n' "$K" "$_n" "$_s" >&2
  printf '\\n%s %s %s\\n' "$K" "$_n" "$_s"
  [ -z "$_broken" ] || exit 70
done
`

/**
 * Returns the program for `sh -c`, with the given shell functions added.
 *
 * The first line of the program's input is the key with which each request begins. After the key, a request has its number,
 * the size of its input in bytes, and the call. The loop ends when the input ends or can no longer be trusted.
 */
export const program = (...functions: ReadonlyArray<string>): string => [beginning, primitives, ...functions, loop].join("")

// Shell functions that process many paths in one request, with only a few processes.
//
// A path is `.` or begins with `./`, and no component before the last may be a symlink. The output is delimited by
// sequences that no name and no content can contain.
//
// Unusual cases are omitted from an answer. The caller then requests these cases one by one, and gets the reason.

export const bulkScript = `
# Calls $1 with the arguments in the input. Reading them as a line would cost a system call per byte.
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

# Creates directories, and files with the mode $1. The umask $2 gives this mode, except for bits that chmod adds if $3 is not empty.
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

# Lists a tree, parents first: mode in hexadecimal, links, size and path of each entry, ended by two slashes and a newline.
# The list is cut after $2 bytes.
bulk_survey() {
  seek "$1" || return
  [ -d "$1" ] && [ ! -L "$1" ] || return 22
  find "$1" -exec stat -c '%f %h %s %n//' {} + | head -c "$2"
}

# Prints the target of each symlink in a tree, with a newline.
bulk_targets() {
  seek "$1" && find "$1" -type l -exec readlink {} \\;
}

# Copies files and symlinks of one directory into the directory $1.
bulk_copy() {
  bulk_known=.
  bulk_way "$1/." && bulk_way "$2" || return 22
  bulk_into=$1
  shift
  umask 0
  cp -R -P -- "$@" "$bulk_into/"
  set -- $?
  umask 022
  return "$1"
}

# Removes an unfinished copy of a tree, even if the modes of its directories forbid changes.
bulk_discard() {
  seek "$1" || return 0
  chmod -R u+rwx -- "$1"
  rm -rf -- "$1"
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
