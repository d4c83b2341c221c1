/**
 * The rules by which Win32 reads a path and NTFS makes 8.3 names. They are written from Microsoft's documentation,
 * independently of the library's own rules, so that tests can compare both.
 */

/** A path as Windows reads it: a volume and the names below it, as the disk gets them. */
export interface Reading {
  /** `C:` or `\\server\share`, in upper case. */
  readonly volume: string
  readonly names: ReadonlyArray<string>
  /** The way in which Windows read the path differently: as a device, as a stream, or with a name trimmed. */
  readonly misread: "device" | "stream" | "trimmed" | undefined
  /** True if the path is longer than Windows allows without the prefix `\\?\`, which it does not have. */
  readonly tooLong: boolean
}

/** MAX_PATH without the final NUL. */
const maxPlain = 259

const upper = (unit: string): string => {
  const upper = unit.toUpperCase()
  return upper.length === 1 && upper.toLowerCase() === unit ? upper : unit
}

/**
 * Converts to upper case per UTF-16 unit, only where the conversion is reversible. Measured: ß and SS, ſ and s, ς and Σ, 𐐀 and
 * 𐐨 differ; é and É are equal.
 */
export const upcase = (name: string): string => {
  let out = ""
  for (let at = 0; at < name.length; at++) out += upper(name[at]!)
  return out
}

const devices = new Set([
  ..."CON PRN AUX NUL CONIN$ CONOUT$ CLOCK$".split(" "),
  ...["COM", "LPT"].flatMap((port) => [..."123456789¹²³"].map((digit) => port + digit))
])

const isDevice = (name: string): boolean => {
  let stem = name.split(/[.:]/)[0]!
  while (stem.endsWith(" ")) stem = stem.slice(0, -1)
  return devices.has(stem.toUpperCase())
}

const trimmed = (name: string): string => {
  let end = name.length
  while (end > 0 && (name[end - 1] === "." || name[end - 1] === " ")) end--
  return name.slice(0, end)
}

const volumeOf = (path: string): readonly [volume: string, rest: string] => {
  const drive = /^([a-z]:)\\(.*)$/is.exec(path)
  if (drive !== null) return [drive[1]!.toUpperCase(), drive[2]!]
  const share = /^(\\\\[^\\]+\\[^\\]+)(?:\\(.*))?$/s.exec(path)
  if (share !== null) return [upcase(share[1]!), share[2] ?? ""]
  throw new Error(`a path that is not absolute reached the disk: ${JSON.stringify(path)}`)
}

/** Reads a path with `\\?\`. Keeps its names unchanged, but recognises separators and streams. */
const verbatim = (path: string): Reading => {
  const plain = path.slice(4)
  const [volume, rest] = volumeOf(/^unc\\/i.test(plain) ? `\\\\${plain.slice(4)}` : plain)
  const names = rest.split("\\")
  if (names.at(-1) === "") names.pop()
  return { volume, names, misread: names.some((name) => name.includes(":")) ? "stream" : undefined, tooLong: false }
}

/** Reads a path without the prefix as Win32 does: trims names and recognises devices. */
const plain = (path: string): Reading => {
  const [volume, rest] = volumeOf(path.replaceAll("/", "\\"))
  const names: Array<string> = []
  let misread: Reading["misread"]
  for (const name of rest.split("\\")) {
    if (name === "" || name === ".") continue
    if (name === "..") {
      names.pop()
      continue
    }
    if (isDevice(name)) misread = "device"
    else if (name.includes(":")) misread ??= "stream"
    else if (trimmed(name) !== name) misread ??= "trimmed"
    names.push(trimmed(name))
  }
  return { volume, names, misread, tooLong: path.length > maxPlain }
}

export const read = (path: string): Reading => (path.startsWith("\\\\?\\") ? verbatim(path) : plain(path))

/** Tests whether NTFS accepts the name. A colon is accepted here, because it names a stream. */
export const isName = (name: string): boolean =>
  name !== "" && name !== "." && name !== ".." && name.length <= 255 && !/[<>"/\\|?*\u0000-\u001f]/.test(name)

const legalShort = /^[^. +,;=[\]]{1,8}(\.[^. +,;=[\]]{1,3})?$/

/**
 * Returns the 8.3 name of a longer name: six characters, a tilde, and a number that is free in the directory. Returns
 * `undefined` for names that are short themselves.
 */
export const shortName = (name: string, isTaken: (short: string) => boolean): string | undefined => {
  if (legalShort.test(name)) return undefined
  const kept = upcase(name)
    .replace(/^\.+/, "")
    .replaceAll(" ", "")
    .replace(/[+,;=[\]]/g, "_")
  const dot = kept.lastIndexOf(".")
  const base = (dot === -1 ? kept : kept.slice(0, dot)).replaceAll(".", "")
  const extension = dot === -1 ? "" : kept.slice(dot + 1, dot + 4)
  for (let number = 1; ; number++) {
    const tail = `~${number}`
    const short = base.slice(0, Math.min(6, 8 - tail.length)) + tail + (extension === "" ? "" : `.${extension}`)
    if (!isTaken(short)) return short
  }
}
