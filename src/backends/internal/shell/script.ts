/**
 * The shell's side of a session: a loop that answers requests, and a function for each thing that the port asks for, in POSIX shell
 * with nothing but the usual tools (coreutils and findutils of GNU, or busybox). What the shell can see by itself (`[ -d … ]`) costs
 * no process, so everything is looked at before a tool is run, and the tools' own words are needed only for what cannot be seen.
 *
 * The rules of the functions, which hold for those that are added to them:
 *
 * - A path is `.`, or begins with `./` and has neither `.`, `..` nor empty components. It is always quoted, and what a tool prints of it
 *   is told by its end: `//` is in no path.
 * - Nothing on the way to a path may be a link; the tools are told not to follow the last one.
 * - `I`, `K`, `N`, `F`, `_l`, `_n`, `_s`, `_broken` belong to the loop; `$N` is a newline, `$F` what `stat` is asked for.
 * - What is sent along with a request is taken by `take`, once, and not in a subshell, since the loop would not know: after
 *   `$(take)` comes `I=0`.
 * - The status says what is wrong in the terms of `faults.ts`; any other than these and 0 tells that a tool has failed, and its words
 *   say why.
 */
import { primitives } from "./primitives.ts"

/** Bytes, permission bits in octal, owner, mode in hexadecimal, times; `stat.ts` reads it. */
export const statFormat = "%s %a %u:%g %f %Y %W %y/%w"

/** Added to the status of a shell's last answer, after which it ends. */
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

# What has been sent along. When it cannot be told how much of that was taken, the shell has to end.
take() {
  _i=$I
  I=0
  [ "$_i" = 0 ] && return 0
  dd bs="$_i" count=1 iflag=fullblock <&3 && return 0
  _i=$?
  _broken=1
  return "$_i"
}

# Whether everything is there that is needed.
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
 * What runs behind `sh -c`, with more functions than those of the port. The first line of its input is the key, with which each request
 * begins; then come its number, how many bytes follow the line, and the call. The loop ends with its input, or where the input cannot
 * be trusted any more.
 */
export const program = (...functions: ReadonlyArray<string>): string => [beginning, primitives, ...functions, loop].join("")
