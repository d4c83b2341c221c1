import { decode } from "../../engine/text.ts"
import { Buffer } from "../../runtime/buffer.ts"

export interface MediaType {
  readonly type: string
  readonly name: string
}

/** A piece of a signature: bytes in hexadecimal at an offset. */
type Piece = readonly [offset: number, hex: string]

const signatures: ReadonlyArray<readonly [type: string, name: string, ...pieces: ReadonlyArray<Piece>]> = [
  ["image/png", "PNG image", [0, "89504e470d0a1a0a"]],
  ["image/jpeg", "JPEG image", [0, "ffd8ff"]],
  ["image/gif", "GIF image", [0, "474946383761"]],
  ["image/gif", "GIF image", [0, "474946383961"]],
  ["image/webp", "WebP image", [0, "52494646"], [8, "57454250"]],
  ["image/avif", "AVIF image", [4, "6674797061766966"]],
  ["image/heic", "HEIC image", [4, "6674797068656963"]],
  ["image/tiff", "TIFF image", [0, "49492a00"]],
  ["image/tiff", "TIFF image", [0, "4d4d002a"]],
  ["image/vnd.microsoft.icon", "icon", [0, "00000100"]],
  ["application/pdf", "PDF document", [0, "255044462d"]],
  ["application/zip", "ZIP archive", [0, "504b0304"]],
  ["application/zip", "ZIP archive", [0, "504b0506"]],
  ["application/gzip", "gzip archive", [0, "1f8b08"]],
  ["application/x-bzip2", "bzip2 archive", [0, "425a68"], [4, "314159265359"]],
  ["application/x-xz", "xz archive", [0, "fd377a585a00"]],
  ["application/zstd", "Zstandard archive", [0, "28b52ffd"]],
  ["application/x-7z-compressed", "7z archive", [0, "377abcaf271c"]],
  ["application/vnd.rar", "RAR archive", [0, "526172211a07"]],
  ["application/x-tar", "tar archive", [257, "7573746172"]],
  ["application/wasm", "WebAssembly module", [0, "0061736d"]],
  ["application/x-elf", "ELF program or library", [0, "7f454c46"]],
  ["application/x-mach-binary", "Mach-O program or library", [0, "cffaedfe"]],
  ["application/vnd.sqlite3", "SQLite database", [0, "53514c69746520666f726d6174203300"]],
  ["application/java-vm", "Java class", [0, "cafebabe0000"]],
  ["font/woff2", "WOFF2 font", [0, "774f4632"]],
  ["font/woff", "WOFF font", [0, "774f4646"]],
  ["font/ttf", "TrueType font", [0, "0001000000"]],
  ["font/otf", "OpenType font", [0, "4f54544f"]],
  ["audio/mpeg", "MP3 audio", [0, "494433"]],
  ["audio/wav", "WAV audio", [0, "52494646"], [8, "57415645"]],
  ["audio/flac", "FLAC audio", [0, "664c6143"]],
  ["audio/ogg", "Ogg media", [0, "4f676753"]],
  ["video/mp4", "MP4 video", [4, "66747970"]],
  ["video/webm", "Matroska or WebM video", [0, "1a45dfa3"]]
]

const hasPiece =
  (bytes: Uint8Array) =>
  ([offset, hex]: Piece): boolean => {
    for (let i = 0; i < hex.length / 2; i++) {
      if (bytes[offset + i] !== Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16)) return false
    }
    return true
  }

export const mediaTypeOf = (bytes: Uint8Array): MediaType | undefined => {
  const found = signatures.find(([, , ...pieces]) => pieces.every(hasPiece(bytes)))
  return found === undefined ? undefined : { type: found[0], name: found[1] }
}

const imageTypes: ReadonlySet<string> = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"])

export const isViewable = (type: string): boolean => imageTypes.has(type)

const texts: ReadonlyMap<string, string> = new Map(
  Object.entries({
    css: "text/css",
    csv: "text/csv",
    htm: "text/html",
    html: "text/html",
    js: "text/javascript",
    json: "application/json",
    md: "text/markdown",
    mjs: "text/javascript",
    svg: "image/svg+xml",
    toml: "application/toml",
    xml: "application/xml",
    yaml: "application/yaml",
    yml: "application/yaml"
  })
)

export const mediaTypeOfName = (name: string, content: Uint8Array, isText: boolean): string =>
  isText
    ? (texts.get(/\.([^.]+)$/.exec(name)?.[1]?.toLowerCase() ?? "") ?? "text/plain")
    : (mediaTypeOf(content)?.type ?? "application/octet-stream")

/** Returns the text of a file, or `undefined` if the file has a NUL byte or is not UTF-8. */
export const textOf = (bytes: Uint8Array): string | undefined => {
  const text = bytes.includes(0) ? undefined : decode(bytes)
  return typeof text === "string" ? text : undefined
}

export const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64")
