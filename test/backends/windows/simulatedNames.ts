/**
 * How Win32 reads a path, and how NTFS names a file a second time. Written from Microsoft's documentation, apart from what the library
 * says of names, so that the one can be held against the other.
 */

/** Where a path leads: names below a volume, as the disk itself takes them. */
export interface Reading {
  /** `C:` or `\\server\share`, in upper case. */
  readonly volume: string
  readonly names: ReadonlyArray<string>
  /** The path was not taken for what it says: a device, a stream, a name without its end. */
  readonly misread: "device" | "stream" | "trimmed" | undefined
  /** The path has no `\\?\`, and is longer than is read without. */
  readonly tooLong: boolean
}

/** MAX_PATH, less the NUL at the end. */
const maxPlain = 259

const upper = (unit: string): string => {
  const upper = unit.toUpperCase()
  return upper.length === 1 && upper.toLowerCase() === unit ? upper : unit
}

/** Per UTF-16 unit, and only where there is a way back; measured: ß and SS, ſ and s, ς and Σ, 𐐀 and 𐐨 are two, é and É are one. */
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
  throw new Error(`a path that is not absolute came to the disk: ${JSON.stringify(path)}`)
}

/** With `\\?\` a path is taken as it stands, but for what the disk itself knows: its separator, and streams. */
const verbatim = (path: string): Reading => {
  const plain = path.slice(4)
  const [volume, rest] = volumeOf(/^unc\\/i.test(plain) ? `\\\\${plain.slice(4)}` : plain)
  const names = rest.split("\\")
  if (names.at(-1) === "") names.pop()
  return { volume, names, misread: names.some((name) => name.includes(":")) ? "stream" : undefined, tooLong: false }
}

/** Without it Win32 makes of the path what it thinks was meant. */
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

/** Whether NTFS takes the name at all. A colon is another matter: it names a stream. */
export const isName = (name: string): boolean =>
  name !== "" && name !== "." && name !== ".." && name.length <= 255 && !/[<>"/\\|?*\u0000-\u001f]/.test(name)

const legalShort = /^[^. +,;=[\]]{1,8}(\.[^. +,;=[\]]{1,3})?$/

/**
 * The 8.3 name beside a longer one: six characters of it, a tilde, a number that nothing else in the directory has. `undefined` for
 * names that are short themselves.
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
