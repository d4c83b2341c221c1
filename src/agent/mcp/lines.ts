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
      readonly cancels?: string | number | undefined
    }
  | { readonly _tag: "Bad"; readonly answer: string }

/** The largest line: six times the largest write, because JSON may escape each character, and some room. */
export const maxLineBytes = 48 * 1024 * 1024

const newline = 10

type Id = string | number | null

/** The deepest allowed nesting. No valid message is deeper, and recursion over a deeper one could overflow the stack. */
const deepest = 200

const isTooDeep = (value: unknown): boolean => {
  let level: ReadonlyArray<unknown> = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > deepest) return true
    level = level.flatMap((item) => (typeof item === "object" && item !== null ? Object.values(item as object) : []))
  }
  return false
}

export const bad = (code: number, message: string, id: Id = null) => ({
  _tag: "Bad" as const,
  answer: `${JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } })}\n`
})

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isId = (value: unknown): value is string | number => typeof value === "string" || typeof value === "number"

/** Checks a message against JSON-RPC. The method and its parameters are checked later. */
const wrongWith = (message: Readonly<Record<string, unknown>>): string | undefined => {
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
  if (parsed === undefined) return bad(-32700, "Parse error: a line must be one JSON-RPC message")
  const { value } = parsed
  if (isTooDeep(value)) return bad(-32600, `Invalid Request: it is nested deeper than ${deepest} levels`, idOf(value))
  // The version of the protocol decides whether batches are allowed; their items are always checked here.
  const wrong = Array.isArray(value)
    ? value.map((item: unknown) => (isRecord(item) ? wrongWith(item) : "it is not an object")).find((why) => why !== undefined)
    : isRecord(value)
      ? wrongWith(value)
      : "it is not an object"
  if (wrong !== undefined) {
    return bad(-32600, `Invalid Request: ${wrong}`, idOf(value))
  }
  const method = isRecord(value) && typeof value["method"] === "string" ? value["method"] : undefined
  const isRequest = !isRecord(value) || (method !== undefined && "id" in value)
  const ids = (Array.isArray(value) ? (value as ReadonlyArray<unknown>) : [value]).flatMap(requestId)
  return { _tag: "Message", text: `${text}\n`, bytes, method, isRequest, ids, cancels: cancelledBy(value) }
}

const decoder = new TextDecoder("utf-8", { fatal: true })

const decoded = (bytes: Uint8Array): string | undefined => {
  try {
    return decoder.decode(bytes)
  } catch {
    return undefined
  }
}

export const make = (max: number = maxLineBytes): Lines => {
  let parts: Array<Uint8Array> = []
  let size = 0
  const keep = (part: Uint8Array): void => {
    size += part.length
    if (size > max) parts = []
    else if (part.length > 0) parts.push(part)
  }
  const end = (): Line | undefined => {
    const [ended, bytes] = [parts, size]
    parts = []
    size = 0
    if (bytes > max) return bad(-32600, `Invalid Request: a message has at most ${max} bytes`)
    const text = decoded(ended.length === 1 ? ended[0]! : Buffer.concat(ended))?.trim()
    if (text === undefined) return bad(-32700, "Parse error: a message must be UTF-8")
    return text === "" ? undefined : lineOf(text, bytes)
  }
  return {
    push: (chunk) => {
      const lines: Array<Line> = []
      let from = 0
      for (let at = chunk.indexOf(newline); at !== -1; at = chunk.indexOf(newline, from)) {
        keep(chunk.subarray(from, at))
        from = at + 1
        const line = end()
        if (line !== undefined) lines.push(line)
      }
      keep(chunk.subarray(from))
      return lines
    }
  }
}
