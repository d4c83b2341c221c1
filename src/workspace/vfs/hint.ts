/** Detects whether a file's bytes are text while they pass. Text is UTF-8 without NUL. */
import { isUtf8 } from "../../runtime/node.ts"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"

export type EncodingHint = "utf-8" | "binary"

export interface Sniffer {
  readonly push: (bytes: Uint8Array) => void
  readonly sizeBytes: () => number
  readonly hint: () => EncodingHint
}

const incompleteTailLength = (bytes: Uint8Array): number => {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back]!
    if ((byte & 0xc0) === 0x80) continue
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return length > back ? back : 0
  }
  return 0
}

export const makeSniffer = (): Sniffer => {
  let rest: Uint8Array = new Uint8Array(0)
  let size = 0
  let isText = true
  return {
    push: (bytes) => {
      size += bytes.length
      if (!isText) return
      const all = rest.length === 0 ? bytes : Buffer.concat([rest, bytes])
      const end = all.length - incompleteTailLength(all)
      isText = !bytes.includes(0) && isUtf8(all.subarray(0, end))
      rest = all.slice(end)
    },
    sizeBytes: () => size,
    hint: () => (isText && rest.length === 0 ? "utf-8" : "binary")
  }
}

export const passThrough = <E, R>(
  content: Uint8Array | Stream.Stream<Uint8Array, E, R>,
  { push }: Sniffer
): Uint8Array | Stream.Stream<Uint8Array, E, R> => {
  if (isBytes(content)) {
    push(content)
    return content
  }
  return Stream.map(content, (bytes) => {
    push(bytes)
    return bytes
  })
}

/** Returns the encoding of a file after an append. `before` is `undefined` for a file of unknown encoding. */
export const encodingAfterAppend = (before: string | null | undefined, appended: EncodingHint): string | null =>
  before === undefined || before === null ? null : before === "utf-8" ? appended : before
