/**
 * Checks names that Windows cannot have or would reinterpret.
 *
 * The rules are the same for every disk and version. Newer versions allow more (`NUL.txt`), but a name that is a device
 * on some machine is unsafe for a file.
 */
import type { Fault } from "../../../model/FsError.ts"

const invalid = (detail: string): Fault => ({ _tag: "InvalidPath", detail })

/** The part that decides whether a name is a device: up to the first dot or colon, without spaces before that. */
const stem = /^[^.:]*?(?= *(?:[.:]|$))/

const device = /^(?:con|prn|aux|nul|com[1-9¹²³]|lpt[1-9¹²³]|conin\$|conout\$|clock\$)$/i

const forbidden = /[<>"/\\|?*\u0000-\u001f]/

/** Windows assigns such short names to files in addition: `PROGRA~1.TXT`. */
const short = /^(?=[^.]{1,8}(?:\.|$))[^.]{1,6}~[0-9]{1,6}(?:\.[^.]{1,3})?$/

const maxUnits = 255

/**
 * Returns the reason why Windows cannot have this name or would reinterpret it.
 *
 * A short name from a caller is refused, because it may be a second name of a file that rules know by its long name. So
 * a file whose real name has this form is listed as not addressable. `shortNames: "take"` is for paths that the program
 * itself gives.
 */
export const nameFault = (name: string, shortNames: "refuse" | "take" = "refuse"): Fault | undefined => {
  if (name === "") return invalid("it has an empty name")
  if (!name.isWellFormed()) return invalid("it contains a lone surrogate, which no file name can hold")
  if (device.test(stem.exec(name)![0])) return invalid("a name in it is one that Windows keeps for a device")
  if (name.includes(":")) return invalid("a name in it has a colon, with which Windows names a stream of a file, or a drive")
  if (forbidden.test(name)) return invalid("a name in it has a character that Windows does not take")
  if (name.endsWith(".") || name.endsWith(" "))
    return invalid("a name in it ends in a dot or a space, which Windows leaves away")
  if (name.length > maxUnits) {
    return { _tag: "PathTooLong", detail: `a name in it has more than ${maxUnits} UTF-16 units, which Windows does not take` }
  }
  return shortNames === "refuse" && short.test(name)
    ? invalid("a name in it has the form of the short names that Windows gives to files beside their own")
    : undefined
}
