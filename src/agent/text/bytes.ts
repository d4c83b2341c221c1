/**
 * A window of bytes as base64. Windows are cut between groups of three bytes, so that they can be joined before or after
 * decoding.
 */
import { Buffer } from "../../runtime/buffer.ts"
import { countFitting, type PageBudget } from "./fit.ts"
import { plural } from "./words.ts"

export interface BytesWindow {
  readonly path: string
  readonly content: Uint8Array
  /** The offset of the window in the file, in bytes from 0. */
  readonly offset: number
  /** The size of the whole file. */
  readonly sizeBytes: number
}

export interface BytesPage {
  readonly message: string
  readonly value: {
    readonly content: string
    readonly offset: number
    readonly limit: number
    readonly size_bytes: number
    readonly truncated: boolean
    readonly next?: number
  }
}

const bytesPerGroup = 3

export const base64 = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("base64")

export const bytesPage = (
  { content, offset, path, sizeBytes }: BytesWindow,
  requestedOffset: number,
  settings: PageBudget
): BytesPage => {
  const encoded = base64(content)
  const lengthOf = (groups: number): number => Math.min(bytesPerGroup * groups, content.length)
  const footer = (length: number): string => {
    const range = `${plural(length, "byte")} from offset ${offset}, of ${sizeBytes}`
    const next = offset + length
    return next < sizeBytes ? `${range}; continue with encoding="base64", offset=${next}` : range
  }
  const render = (groups: number): string => `${encoded.slice(0, 4 * groups)}\n${footer(lengthOf(groups))}`
  const valueOf = (groups: number): BytesPage["value"] => {
    const length = lengthOf(groups)
    const next = offset + length
    return {
      content: encoded.slice(0, 4 * groups),
      offset,
      limit: length,
      size_bytes: sizeBytes,
      truncated: next < sizeBytes,
      ...(next < sizeBytes ? { next } : {})
    }
  }
  const sentText = (groups: number): string => settings.sent(render(groups), () => valueOf(groups))
  const groups = countFitting(Math.ceil(content.length / bytesPerGroup), sentText, settings)
  const emptyMessage =
    sizeBytes === 0
      ? `${path} is empty`
      : `no bytes from offset ${requestedOffset} on: ${path} has ${plural(sizeBytes, "byte")}`
  return { message: lengthOf(groups) === 0 ? emptyMessage : render(groups), value: valueOf(groups) }
}
