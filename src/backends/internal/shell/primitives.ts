/**
 * The shell functions of the port, one for each primitive, with the rules of `script.ts`. All except `root` are called
 * through `inside`, which gets the root of the paths.
 */
export const primitives = `
_root=
_pins=
trap '[ -z "$_pins" ] || { kill -9 $_pins; wait $_pins; } 2>/dev/null' 0

# Where a directory really is, and what it is known by.
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

# Calls what follows where the paths are those below the root $1, which is known by $2. Nobody else leaves
# the root, so it need be found only when it is another than last time; that its path still leads there is looked at each time.
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

# Whether everything above the last name is a directory.
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

# Whether something is there, and may be seen.
there() {
  [ -e "$1" ] || [ -L "$1" ] || absent "$1"
}

absent() {
  [ -x "\${1%/*}" ] || return 25
  return 21
}

# The same for those who look: below a file or a link there is nothing.
seek() {
  way "$1" && there "$1" && return 0
  _e=$?
  [ "$_e" != 22 ] || return 21
  return "$_e"
}

# A file to read. What is none is never opened, since that may hang or act.
seekfile() {
  seek "$1" || return
  [ -f "$1" ] && [ ! -L "$1" ] || return 23
  [ -r "$1" ] || return 25
}

look() {
  seek "$1" && stat -c "$F" "$1"
}

# Of the file that is open as 4. Without /proc by its name.
opened() {
  stat -L -c "$1" /proc/self/fd/4 2>/dev/null || stat -c "$1" "$2"
}

# What stat says of a file, and what is in it when that is at most $2 bytes.
load() {
  seekfile "$1" || return
  {
    _t=$(opened "$F" "$1") || return
    printf '%s\\n' "$_t"
    _z=\${_t%% *}
    [ "$_z" = 0 ] || [ "$_z" -gt "$2" ] || head -c "$_z" <&4
  } 4<"$1"
}

# Keeps a file open, in a process whose number it says first, then what the file is known by, then what stat says.
pin() {
  seekfile "$1" || return
  {
    sleep 2147483647 </dev/null >/dev/null 2>&1 3<&- &
    _p=$!
    _pins="$_pins $_p"
    printf '%s ' "$_p"
    stat -L -c "%d:%i $F" "/proc/$_p/fd/4"
  } 4<"$1"
}

# $4 bytes from $3 on of what the process $1 holds open and is known by $2.
piece() {
  [ "$(stat -L -c '%d:%i' "/proc/$1/fd/4")" = "$2" ] || return 26
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

# Kinds, sizes, times of change and names of everything in a directory; two slashes and a newline end each.
list() {
  seek "$1" || return
  [ -d "$1" ] && [ ! -L "$1" ] || return 22
  [ -r "$1" ] && [ -x "$1" ] || return 25
  (cd -P -- "$1" 2>/dev/null || exit 21; exec find . -mindepth 1 -maxdepth 1 -exec stat -c '%f %s %Y %n//' {} +)
}

# Names of everything in a directory, each after a letter for what it is: d, f, or o for all else.
names() {
  (cd -P -- "$1" 2>/dev/null || exit 21; exec find . -mindepth 1 -maxdepth 1 \\( -type d -exec printf 'd%s//\\n' {} + \\) -o \\( -type f -exec printf 'f%s//\\n' {} + \\) -o -exec printf 'o%s//\\n' {} +)
}

readlink_() {
  seek "$1" || return
  [ -L "$1" ] || return 27
  readlink -n -- "$1"
}

# Whether $1 can be written in mode $2.
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

# A new file $2 of what has been sent along, to become $1; never more open than the one that it will replace.
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

# More of it.
more() {
  [ -f "$1" ] && [ ! -L "$1" ] || return 26
  take >>"$1"
}

discard() {
  rm -f -- "$1"
}

# Owner and permission bits of $1 for $2, the bits last, since a change of owner may take some away; the stat of $2 is then $_t.
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

# Gives $2 the name $1, which must be free. Where there are no second names the name is taken first, by an empty file.
name() {
  ln -T -- "$2" "$1" && { rm -f -- "$2"; return 0; }
  [ ! -e "$1" ] && [ ! -L "$1" ] || return 24
  (set -C && : >"$1") || return
  mv -f -T -- "$2" "$1" || { _e=$?; rm -f -- "$1"; return "$_e"; }
}

# $1 is now what was staged as $2, of $4 bytes; says what stat does.
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

# Both at once.
put() {
  stage "$1" "$2" "$3" || return
  publish "$1" "$2" "$3" "$4" && return 0
  _e=$?
  rm -f -- "$2"
  return "$_e"
}

# Takes away what a failed append has left.
cutback() {
  if [ -z "$2" ]; then
    rm -f -- "$1"
  else
    truncate -s "$2" "$1"
  fi
  return "$_e"
}

# What was staged as $2 to the end of $1.
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

# Whether the name is free, in a directory that is there.
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

# Removes a tree; says with a character for each how many directories there were, and after a newline how many others.
rmtree() {
  seek "$1" || return
  find "$1" -type d -exec printf '%.0sd' {} +
  echo
  find "$1" ! -type d -exec printf '%.0sf' {} +
  rm -rf -- "$1"
}

# $3: whether what is at $2 is replaced.
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
  # Between two names of one file the system's rename does nothing.
  if [ "$_f" = "\${_t#*"$N"}" ]; then
    rm -f -- "$1"
    return
  fi
  mv -f -T -- "$1" "$2" && return 0
  _e=$?
  # The mv of busybox takes a link to a directory for one.
  [ -L "$2" ] && [ -d "$2" ] || return "$_e"
  rm -f -- "$2" && mv -n -T -- "$1" "$2"
}

chmod_() {
  seek "$1" || return
  [ ! -L "$1" ] || return 31
  if [ -d "$1" ]; then
    # Its other bits stay, such as the sticky one.
    _m=$(stat -c '%a' -- "$1") || return
    octal "$((0$_m & 07000 | 0$2))"
    chmod "$_o" "$1"
  else
    chmod "$2" "$1"
  fi
}

# Seconds since 1970.
touch_() {
  seek "$1" && touch -c -h -m -d "@$2" "$1"
}
`
