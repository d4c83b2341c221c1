/**
 * The shell's side of a session: a loop that answers requests, and one function for each operation of the port.
 *
 * It is POSIX shell with common tools only (coreutils and findutils of GNU, or busybox). Tests in the shell itself (`[
 * -d … ]`) start no process. So conditions are checked before a tool runs, and messages of tools matter only for other
 * failures.
 *
 * Rules for all functions:
 * - A path is `.`, or begins with `./` and contains no `.`, `..` or empty components. It is always quoted. In output,
 *   `//` ends a path, because no path contains it.
 * - No component before the last may be a symlink; the tools must not follow the last one.
 * - `I`, `K`, `N`, `F`, `_l`, `_n`, `_s` and `_broken` belong to the loop. `$N` is a newline, `$F` the format of
 *   `stat`.
 * - A function reads the input of a request with `take`, once, and not in a subshell, because the loop would not
 *   notice. After `$(take)`, it must set `I=0`.
 * - The status is one of `faults.ts`. Any other status except 0 means that a tool failed, and its message gives the
 *   reason.
 */
import { primitives } from "./primitives.ts"

/** The stat format, parsed in `stat.ts`: bytes, permission bits in octal, owner, mode in hexadecimal, times. */
export const statFormat = "%s %a %u:%g %f %Y %W %y/%w"

/** Added to the status of a shell's last answer, after which the shell ends. */
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

# Prints the input of the request. If an unknown part of it was read, the shell must end.
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
 * Returns the program for `sh -c`, with additional functions.
 *
 * The first line of its input is the key with which each request begins. A request continues with its number, the size
 * of its input in bytes, and the call. The loop ends with its input, or when the input is no longer trustworthy.
 */
export const program = (...functions: ReadonlyArray<string>): string => [beginning, primitives, ...functions, loop].join("")
