/** Encodes content for the four tools: text unchanged, other bytes as base64. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Buffer } from "../../../runtime/buffer.ts"
import { decode } from "../../../engine/text.ts"
import type { Algebra } from "../../../filesystem/Filesystem.ts"
import type { NotText, ReadBytesError } from "../../../model/FsError.ts"
import type { FsPath } from "../../../model/FsPath.ts"
import { base64 } from "../../text/bytes.ts"

export const Encoding = Schema.Literals(["utf-8", "binary"])
export type Encoding = typeof Encoding.Type

export interface Content {
  readonly encoding: Encoding
  readonly content: string
  readonly text?: string
}

/** Decodes bytes. As in this library's searches, content with a NUL is binary. */
export const contentOf = (bytes: Uint8Array): Content => {
  const text = bytes.includes(0) ? undefined : decode(bytes)
  return typeof text === "string" ? { encoding: "utf-8", content: text, text } : { encoding: "binary", content: base64(bytes) }
}

const base64Pattern = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?$/

/** Decodes base64 with or without line breaks; `undefined` if it is invalid. */
export const bytesOf = (text: string): Uint8Array | undefined => {
  const compactText = text.replace(/[ \t\r\n]/g, "")
  return base64Pattern.test(compactText) ? Buffer.from(compactText, "base64") : undefined
}

const sniffedBytes = 64 * 1024

/** Drops the last character, which may be cut in the middle. */
const withoutLastCharacter = (bytes: Uint8Array): Uint8Array => {
  let end = bytes.length
  while (end > bytes.length - 4 && end > 0 && (bytes[end - 1]! & 0xc0) === 0x80) end--
  return bytes.subarray(0, Math.max(0, end - 1))
}

/** Detects the encoding from the beginning of a file, so that an append to a large file does not read all of it. */
export const encodingAt = (fs: Algebra, path: FsPath): Effect.Effect<Encoding, ReadBytesError | NotText> =>
  Effect.map(
    fs.readBytes(path, { limit: sniffedBytes }),
    ({ content, truncated }) => contentOf(truncated ? withoutLastCharacter(content) : content).encoding
  )
