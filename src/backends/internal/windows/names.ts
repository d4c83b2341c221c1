/**
 * Names that Windows cannot have, or reads as something else than they say. The table is one for every disk and version: newer ones are
 * more lenient in part (`NUL.txt`), but a name that means a device on some machine is no name to keep a file under.
 */
import type { Fault } from "../../../model/FsError.ts"

const invalid = (detail: string): Fault => ({ _tag: "InvalidPath", detail })

/** Up to its first dot or colon, and without the spaces before that: what is behind makes no difference to the device. */
const stem = /^[^.:]*?(?= *(?:[.:]|$))/

const device = /^(?:con|prn|aux|nul|com[1-9¹²³]|lpt[1-9¹²³]|conin\$|conout\$|clock\$)$/i

const forbidden = /[<>"/\\|?*\u0000-\u001f]/

/** The form of names that Windows gives to files by itself beside their own: `PROGRA~1.TXT`. */
const short = /^(?=[^.]{1,8}(?:\.|$))[^.]{1,6}~[0-9]{1,6}(?:\.[^.]{1,3})?$/

const maxUnits = 255

/**
 * Why Windows cannot have this name, or would not take it for itself. A name of the short form is refused where a caller gives it,
 * because it may be another name of a file that rules know by its own; a file that really has such a name is therefore listed as not
 * addressable, as other names are that no path can say. `shortNames: "take"` is for paths that the program itself gives.
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
