const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/**
 * Escapes a name that no path can express. The result is readable and unique. Each invalid byte and each ASCII control
 * character becomes `\x` and two hexadecimal digits: the byte 0xFF becomes `\xff`. A backslash is doubled.
 */
export const escapeName = (name: Buffer): string => {
  let out = ""
  for (let at = 0; at < name.length;) {
    const lead = name[at]!
    const length = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4
    const character = lead < 32 || lead === 127 ? undefined : decode(name.subarray(at, at + length))
    out += character === undefined ? `\\x${lead.toString(16).padStart(2, "0")}` : character === "\\" ? "\\\\" : character
    at += character === undefined ? 1 : length
  }
  return out
}

const decode = (bytes: Buffer): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}
