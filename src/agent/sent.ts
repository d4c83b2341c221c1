/**
 * An MCP server with structured content sends the value of a result too. Some clients show a model nothing else, so the value
 * includes the message, and both count against the budget.
 */
import * as Context from "effect/Context"
import { splitsPair } from "./text/lines.ts"

/** True to send the value of a result as structured content. */
export const Structured: Context.Reference<boolean> = Context.Reference("fs-algebra/Structured", { defaultValue: () => false })

export type Json = { readonly [key: string]: unknown }

export const withMessage = (message: string, value: Json): Json => ({ message, ...value })

/** Returns the text that counts against the budget. */
export const sentText =
  (isStructured: boolean) =>
  (message: string, value: () => object): string =>
    isStructured ? JSON.stringify(withMessage(message, value() as Json)) : message

/** Cuts a text to its longest beginning that fits, measured as JSON. */
const cutText = (text: string, maxLength: number): string => {
  if (text.length <= maxLength && JSON.stringify(text).length <= maxLength) return text
  let [low, high] = [0, Math.min(text.length, maxLength)]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (JSON.stringify(text.slice(0, middle)).length <= maxLength) low = middle
    else high = middle - 1
  }
  return text.slice(0, splitsPair(text, low) ? low - 1 : low)
}

const cutList = (list: ReadonlyArray<unknown>, maxLength: number): ReadonlyArray<unknown> => {
  const kept: Array<unknown> = []
  let length = 2
  for (const item of list) {
    const short = cut(item, maxLength)
    length += JSON.stringify(short).length + 1
    if (length > maxLength) break
    kept.push(short)
  }
  return kept.length === list.length && kept.every((item, index) => item === list[index]) ? list : kept
}

/** Shortens every text and list in a value to a length in characters of JSON. Returns the value itself if nothing is longer. */
const cut = (value: unknown, maxLength: number): unknown => {
  if (typeof value === "string") return cutText(value, maxLength)
  if (Array.isArray(value)) return cutList(value, maxLength)
  if (typeof value !== "object" || value === null) return value
  const entries = Object.entries(value).map(([key, item]) => [key, cut(item, maxLength)] as const)
  return entries.every(([key, item]) => item === (value as Json)[key]) ? value : Object.fromEntries(entries)
}

/**
 * Shortens the texts and lists of an object evenly until it fits. Names the shortened fields in `cut`. Tools with pages already
 * fit; this serves the others.
 */
export const shortenToFit = (value: Json, fits: (text: string) => boolean): Json => {
  const whole = JSON.stringify(value)
  if (fits(whole)) return value
  const shortened = (maxLength: number): Json => {
    const short = cut(value, maxLength) as Json
    return { ...short, cut: Object.keys(value).filter((key) => short[key] !== value[key]) }
  }
  let [low, high] = [2, whole.length]
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (fits(JSON.stringify(shortened(middle)))) low = middle
    else high = middle - 1
  }
  return shortened(low)
}
