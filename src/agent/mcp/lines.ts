/**
 * Splits standard input into messages, one per line. A line that is no message, or too long, is answered here and not passed
 * on, because the server must survive any input.
 */

export interface Lines {
  readonly push: (chunk: Uint8Array) => ReadonlyArray<Line>
}

export type Line =
  | {
      readonly _tag: "Message"
      readonly text: string
      readonly bytes: number
      readonly method: string | undefined
      /** True if the message expects an answer; a batch may expect one. */
      readonly isRequest: boolean
      readonly ids: ReadonlyArray<string | number>
      readonly cancelledId?: string | number | undefined
    }
  | { readonly _tag: "Bad"; readonly answer: string }

/** The largest line: six times the largest write, because JSON may escape each character, and some room. */
export const maxLineBytes = 48 * 1024 * 1024

const newlineByte = 10

type Id = string | number | null

/** The deepest allowed nesting. No valid message is deeper, and recursion over a deeper one could overflow the stack. */
const maxNestingDepth = 200

const isTooDeep = (value: unknown): boolean => {
  let level: ReadonlyArray<unknown> = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxNestingDepth) return true
    level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item as object) : []))
  }
  return false
}

export const badLine = (code: number, message: string, id: Id = null) => ({
  _tag: "Bad" as const,
  answer: `${JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } })}\n`
})

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isId = (value: unknown): value is string | number => typeof value === "string" || typeof value === "number"

/** Checks a message against JSON-RPC. The method and its parameters are checked later. */
const protocolFault = (message: Readonly<Record<string, unknown>>): string | undefined => {
  const { id, jsonrpc, method, params } = message
  if (jsonrpc !== "2.0") return 'jsonrpc must be "2.0"'
  if (method === undefined) {
    return "result" in message !== "error" in message && (isId(id) || id === null) ? undefined : "the method is missing"
  }
  if (typeof method !== "string") return "method must be a string"
  if ("id" in message && !isId(id)) return "id must be a string or a number"
  if (params !== undefined && (typeof params !== "object" || params === null)) return "params must be an object"
  return undefined
}

const parse = (text: string): { readonly value: unknown } | undefined => {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const idOf = (value: unknown): Id => (isRecord(value) && isId(value["id"]) ? value["id"] : null)

const requestId = (value: unknown): ReadonlyArray<string | number> =>
  isRecord(value) && typeof value["method"] === "string" && isId(value["id"]) ? [value["id"]] : []

const cancelledBy = (value: unknown): string | number | undefined => {
  if (!isRecord(value) || value["method"] !== "notifications/cancelled" || !isRecord(value["params"])) return undefined
  const id = value["params"]["requestId"]
  return isId(id) ? id : undefined
}

const lineOf = (text: string, bytes: number): Line => {
  const parsed = parse(text)
  if (parsed === undefined) return badLine(-32700, "Parse error: a line must be one JSON-RPC message")
  const { value } = parsed
  if (isTooDeep(value))
    return badLine(-32600, `Invalid Request: it is nested deeper than ${maxNestingDepth} levels`, idOf(value))
  // The version of the protocol decides whether batches are allowed; their items are always checked here.
  const fault = Array.isArray(value)
    ? value
        .map((item: unknown) => (isRecord(item) ? protocolFault(item) : "it is not an object"))
        .find((why) => why !== undefined)
    : isRecord(value)
      ? protocolFault(value)
      : "it is not an object"
  if (fault !== undefined) {
    return badLine(-32600, `Invalid Request: ${fault}`, idOf(value))
  }
  const method = isRecord(value) && typeof value["method"] === "string" ? value["method"] : undefined
  const isRequest = !isRecord(value) || (method !== undefined && "id" in value)
  const ids = (Array.isArray(value) ? (value as ReadonlyArray<unknown>) : [value]).flatMap(requestId)
  return { _tag: "Message", text: `${text}\n`, bytes, method, isRequest, ids, cancelledId: cancelledBy(value) }
}

const decoder = new TextDecoder("utf-8", { fatal: true })

const decoded = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

export const make = (maxBytes: number = maxLineBytes): Lines => {
  let parts: Array<Uint8Array> = []
  let lineBytes = 0
  const addPart = (part: Uint8Array): void => {
    lineBytes += part.length
    if (lineBytes > maxBytes) parts = []
    else if (part.length > 0) parts.push(part)
  }
  const endLine = (): Line | undefined => {
    const [lineParts, bytes] = [parts, lineBytes]
    parts = []
    lineBytes = 0
    if (bytes > maxBytes) return badLine(-32600, `Invalid Request: a message has at most ${maxBytes} bytes`)
    const text = decoded(lineParts.length === 1 ? lineParts[0]! : Buffer.concat(lineParts))?.trim()
    if (text === undefined) return badLine(-32700, "Parse error: a message must be UTF-8")
    return text === "" ? undefined : lineOf(text, bytes)
  }
  return {
    push: (chunk) => {
      const lines: Array<Line> = []
      let from = 0
      for (let at = chunk.indexOf(newlineByte); at !== -1; at = chunk.indexOf(newlineByte, from)) {
        addPart(chunk.subarray(from, at))
        from = at + 1
        const line = endLine()
        if (line !== undefined) lines.push(line)
      }
      addPart(chunk.subarray(from))
      return lines
    }
  }
}
