import type * as DateTime from "effect/DateTime"
import * as Schema from "effect/Schema"
import { Buffer } from "../runtime/buffer.ts"
import { WriteMode } from "../model/Entry.ts"
import { ToolInvoked } from "./ToolEvents.ts"
import type { ToolResult } from "./ToolResult.ts"

const maxArgumentCharacters = 1000

const contentParameters: ReadonlySet<string> = new Set(["code", "content", "new_string", "old_string", "patch", "stdin"])

const describeSize = (text: string): string => (text.length === 1 ? "1 character" : `${text.length} characters`)

const maxNestingDepth = 16

/** Makes a value fit for JSON, so that a log of events can be saved. */
const asJson = (value: unknown): unknown =>
  value === null || typeof value === "boolean" || Number.isFinite(value) ? value : value === undefined ? null : String(value)

const withoutContents = (value: unknown, name = "", depth = 0): unknown => {
  if (depth > maxNestingDepth) return "…"
  if (typeof value === "string")
    return contentParameters.has(name) || value.length > maxArgumentCharacters ? describeSize(value) : value
  if (ArrayBuffer.isView(value)) return `${value.byteLength} bytes`
  if (Array.isArray(value)) return value.map((item) => withoutContents(item, "", depth + 1))
  if (typeof value !== "object" || value === null) return asJson(value)
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutContents(item, key, depth + 1)]))
}

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {})

/** Finds the size of the content in a tool's answer. The four-tool kit answers with the content itself. */
const sizeOf = (value: Fields): number | undefined => {
  const { bytes_written: written, content, encoding, file, size_bytes: size } = value
  const known = [written, size, fieldsOf(file)["size_bytes"]].find((bytes) => typeof bytes === "number")
  if (known !== undefined || typeof content !== "string") return known
  return Buffer.byteLength(content, encoding === "binary" || encoding === "base64" ? "base64" : "utf8")
}

const isWriteMode = Schema.is(WriteMode)

const modeOf = ({ mode: requestedMode }: Fields, { mode: resultMode }: Fields): string | undefined =>
  typeof requestedMode === "string" ? requestedMode : isWriteMode(resultMode) ? resultMode : undefined

export const eventOf = (call: {
  readonly tool: string
  readonly callId: string
  readonly params: object
  readonly result: ToolResult<unknown>
  readonly path: string | undefined
  readonly durationMillis: number
  readonly at: DateTime.Utc
}): ToolInvoked => {
  const { path, result, ...rest } = call
  const mode = modeOf(fieldsOf(call.params), fieldsOf(result.value))
  const sizeBytes = sizeOf(fieldsOf(result.value))
  return new ToolInvoked({
    ...rest,
    params: withoutContents(call.params) as Fields,
    success: result.success,
    message: result.message,
    ...(path !== undefined && { path }),
    ...(mode !== undefined && { mode }),
    ...(sizeBytes !== undefined && { sizeBytes })
  })
}
