/**
 * Collects the timed items in the logs of sessions, mainly calls of tools, in the order of time. Items without a time come
 * last.
 */
import * as DateTime from "effect/DateTime"
import * as Option from "effect/Option"
import { log } from "../../agent/ToolEvents.ts"
import type { SavedSession } from "../../workspace/session/saved.ts"
import type { Event } from "../model.ts"

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}

const textIn = (fields: Fields, name: string): string | undefined =>
  typeof fields[name] === "string" ? fields[name] : undefined

const countIn = (fields: Fields, name: string): number | undefined =>
  Number.isSafeInteger(fields[name]) && (fields[name] as number) >= 0 ? (fields[name] as number) : undefined

const times = ["at", "timestamp", "time", "createdAt", "created_at"]

/** Reads a time: ISO 8601, or milliseconds since 1970. */
const millisOf = (value: unknown): number | undefined => {
  if (typeof value !== "string" && typeof value !== "number") return undefined
  return Option.getOrUndefined(Option.map(DateTime.make(value), DateTime.toEpochMillis))
}

const timeOf = (fields: Fields): number | undefined =>
  times.map((name) => millisOf(fields[name])).find((millis) => millis !== undefined)

const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

type Draft = Omit<Event, "index"> & { readonly millis: number | undefined }

type OptionalFields<A> = { -readonly [K in keyof A]?: A[K] | undefined }

const withoutUndefined = <A extends object>(fields: OptionalFields<A>): A =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as A

type Call = Pick<Event, "call_id" | "success" | "message" | "path" | "mode" | "size_bytes" | "duration_millis">

const callOf = (fields: Fields): Call =>
  withoutUndefined<Call>({
    call_id: textIn(fields, "callId"),
    success: typeof fields["success"] === "boolean" ? fields["success"] : undefined,
    message: textIn(fields, "message"),
    path: textIn(fields, "path"),
    mode: textIn(fields, "mode"),
    size_bytes: countIn(fields, "sizeBytes"),
    duration_millis: Number.isFinite(fields["durationMillis"]) ? (fields["durationMillis"] as number) : undefined
  })

const eventOf = (session: string, slice: string, item: unknown): Draft | undefined => {
  const fields = fieldsOf(item)
  const millis = timeOf(fields)
  const isCall = slice === log.name && typeof fields["tool"] === "string"
  if (!isCall && millis === undefined) return undefined
  return {
    session_id: session,
    slice,
    at: millis === undefined ? null : iso(millis),
    name: isCall ? (fields["tool"] as string) : (textIn(fields, "_tag") ?? textIn(fields, "type") ?? slice),
    ...(isCall ? callOf(fields) : undefined),
    item,
    millis
  }
}

export const eventsOf = (sessions: ReadonlyArray<SavedSession>): ReadonlyArray<Event> => {
  const drafts: Array<Draft> = []
  for (const { sessionId, slices } of sessions) {
    for (const { items, name, policy } of slices) {
      if (policy !== "log") continue
      for (const item of items) {
        const event = eventOf(sessionId, name, item)
        if (event !== undefined) drafts.push(event)
      }
    }
  }
  drafts.sort((a, b) => (a.millis ?? Infinity) - (b.millis ?? Infinity) || 0)
  return drafts.map(({ millis: _, ...event }, index) => ({ index, ...event }))
}
