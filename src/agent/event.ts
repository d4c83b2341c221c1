/** The event of a call: everything but contents. */
import type * as DateTime from "effect/DateTime"
import { ToolInvoked } from "./ToolEvents.ts"
import type { ToolResult } from "./ToolResult.ts"

const maxCharacters = 1000

const withoutContents = (value: unknown): unknown => {
  if (typeof value === "string") return value.length > maxCharacters ? `${value.length} characters` : value
  if (Array.isArray(value)) return value.map(withoutContents)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutContents(item)]))
}

const sizeOf = (value: unknown): number | undefined => {
  if (typeof value !== "object" || value === null) return undefined
  const { bytes_written: written, size_bytes: size } = value as Readonly<Record<string, unknown>>
  return typeof written === "number" ? written : typeof size === "number" ? size : undefined
}

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
  const mode = (call.params as Readonly<Record<string, unknown>>)["mode"]
  const sizeBytes = sizeOf(result.value)
  return new ToolInvoked({
    ...rest,
    params: withoutContents(call.params) as Record<string, unknown>,
    success: result.success,
    message: result.message,
    ...(path !== undefined && { path }),
    ...(typeof mode === "string" && { mode }),
    ...(sizeBytes !== undefined && { sizeBytes })
  })
}
