import type { FileContent } from "../../model.ts"

const endingOf = (path: string): string => /\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? ""

const imageTypes: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  avif: "image/avif",
  svg: "image/svg+xml",
  bmp: "image/bmp",
  ico: "image/x-icon"
}
const shownImages = new Set([...Object.values(imageTypes), "image/vnd.microsoft.icon"])

/**
 * Returns the media type of an image that a browser can show, or `undefined` for other files. The bytes determine the type or,
 * for SVG and for unknown formats, the name.
 */
export const imageTypeOf = ({ media_type, path }: FileContent): string | undefined => {
  if (shownImages.has(media_type)) return media_type
  const ending = endingOf(path)
  const named = Object.hasOwn(imageTypes, ending) ? imageTypes[ending] : undefined
  return media_type === "application/octet-stream" || named === "image/svg+xml" ? named : undefined
}

export type Form = "markdown" | "json" | "table" | "image" | "text" | "binary" | "link" | "empty"

export const formOf = (file: FileContent): Form => {
  const ending = endingOf(file.path)
  if (file.kind === "symlink") return "link"
  if (file.size_bytes === 0) return "empty"
  if (imageTypeOf(file) !== undefined) return "image"
  if (file.kind === "binary") return "binary"
  if (/^(?:md|markdown|mdown|mkd)$/.test(ending)) return "markdown"
  if (
    /^(?:json|jsonc|json5|webmanifest|geojson|ipynb|map)$/.test(ending) ||
    /^application\/(?:.*\+)?json$/.test(file.media_type)
  ) {
    return "json"
  }
  if (/^(?:csv|tsv)$/.test(ending)) return "table"
  return "text"
}

export const bytesOf = ({ content, encoding }: FileContent): Uint8Array<ArrayBuffer> => {
  if (content === null) return new Uint8Array()
  if (encoding === "utf-8") return new TextEncoder().encode(content)
  const binary = atob(content)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return bytes
}

/** Formats bytes in the style of `hexdump -C`: offsets, hexadecimal digits and ASCII. */
export const hexOf = (bytes: Uint8Array): string => {
  const lines: Array<string> = []
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)]
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0"))
    const text = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("")
    const left = hex.slice(0, 8).join(" ").padEnd(23)
    const right = hex.slice(8).join(" ").padEnd(23)
    lines.push(`${at.toString(16).padStart(8, "0")}  ${left}  ${right}  ${text}`)
  }
  return lines.join("\n")
}
