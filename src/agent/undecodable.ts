/**
 * Describes what is wrong with arguments: each parameter by name, the expected type, and one correct call. The value sent is
 * described by its kind alone, so that a long argument is not repeated.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import type { AnyDefinition } from "./definition.ts"
import { listed } from "../model/words.ts"
import { nameDistance } from "../engine/nearestPaths.ts"
import { documentOf, parameterFor } from "./spellings.ts"

const maxFaults = 8
const maxNameLength = 60

/** Names from other tool suites that resemble a parameter but mean something else. */
const similarNames: Readonly<Record<string, ReadonlyArray<string>>> = {
  path: ["uri"],
  content: ["code_edit"],
  ignore_case: ["case_sensitive"],
  limit: ["lines"],
  offset: ["start", "skip"],
  max_matches: ["top", "n"]
}

const suggestedName = (name: string, known: ReadonlyArray<string>): string | undefined => {
  if (name.length > maxNameLength) return undefined
  const alias =
    parameterFor(name, known) ??
    known.find((candidate) => Object.hasOwn(similarNames, candidate) && similarNames[candidate]!.includes(name))
  if (alias !== undefined) return alias
  const word = name.toLowerCase()
  const [nearest] = known
    .map((candidate) => ({ candidate, distance: nameDistance(word, candidate) }))
    .filter(({ distance }) => distance < Number.POSITIVE_INFINITY)
    .sort((a, b) => a.distance - b.distance)
  return nearest?.candidate
}

const describeSent = (value: unknown): string =>
  (typeof value === "string" && value.length <= maxNameLength) || typeof value === "number" || typeof value === "boolean"
    ? JSON.stringify(value)
    : kindOf(value)

const kindOf = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "a list"
  const kind = typeof value
  return kind === "object" || kind === "undefined" ? (kind === "object" ? "an object" : "nothing") : `a ${kind}`
}

const quoted = (name: string): string => JSON.stringify(name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name)

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const valueAt = (input: unknown, path: ReadonlyArray<PropertyKey>): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null && Object.hasOwn(value, key)
        ? (value as Record<PropertyKey, unknown>)[key]
        : undefined,
    input
  )

/** Returns the place of an argument, such as `edits[0].old_string`. */
const argumentPath = (path: ReadonlyArray<PropertyKey>): string =>
  cutName(
    path.map((key, index) => (typeof key === "number" ? `[${key}]` : index === 0 ? String(key) : `.${String(key)}`)).join("")
  )

const cutName = (name: string): string => (name.length > 2 * maxNameLength ? `${name.slice(0, 2 * maxNameLength)}…` : name)

const kinds: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  boolean: "a boolean",
  array: "a list",
  object: "an object"
}

const describeType = (expected: string): string =>
  listed(
    expected.split(" | ").map((part) => (Object.hasOwn(kinds, part) ? kinds[part]! : part)),
    "or"
  )

const missingMark = "\u0000missing"
const unexpectedMark = "\u0000unexpected"

/** Formats the issues of the schema with the expected type as message, without the value sent. */
const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) =>
    issue._tag === "MissingKey"
      ? missingMark
      : issue._tag === "UnexpectedKey"
        ? unexpectedMark
        : SchemaIssue.defaultLeafHook(issue)
})

const namesAt = (definition: AnyDefinition<unknown>, path: ReadonlyArray<PropertyKey>): ReadonlyArray<string> => {
  const document = documentOf(definition)
  const resolved = (node: unknown): Readonly<Record<string, unknown>> => {
    const ref = isRecord(node) ? node["$ref"] : undefined
    const found = typeof ref === "string" ? document.definitions[ref.split("/").at(-1)!] : node
    return isRecord(found) ? found : {}
  }
  const inside = path.reduce<Readonly<Record<string, unknown>>>((node, key) => {
    const { items, properties } = node
    return resolved(
      typeof key === "number"
        ? items
        : isRecord(properties) && Object.hasOwn(properties, key)
          ? properties[String(key)]
          : undefined
    )
  }, resolved(document.schema))
  return Object.keys(isRecord(inside["properties"]) ? inside["properties"] : {})
}

const faultsOf = (definition: AnyDefinition<unknown>, input: unknown, error: Schema.SchemaError) => {
  const { issues } = issuesOf(error.issue)
  const out = new Map<string, string>()
  let more = 0
  const keys = (path: ReadonlyArray<unknown>) =>
    path.map((key) => (isRecord(key) ? (key["key"] as PropertyKey) : (key as PropertyKey)))
  for (const { message, path: raw = [] } of issues) {
    const path = keys(raw)
    const place = argumentPath(path)
    const before = out.get(place)
    if (before === undefined && out.size === maxFaults) more++
    else out.set(place, faultOf(definition, valueAt(input, path), { message, path, place }, before))
  }
  return { all: [...out.values()], more }
}

interface Issue {
  readonly message: string
  readonly path: ReadonlyArray<PropertyKey>
  readonly place: string
}

const faultOf = (
  definition: AnyDefinition<unknown>,
  value: unknown,
  { message, path, place }: Issue,
  before: string | undefined
): string => {
  if (message === missingMark) return `${JSON.stringify(place)} is missing`
  if (message === unexpectedMark) {
    const known = namesAt(definition, path.slice(0, -1))
    const instead = suggestedName(String(path.at(-1)), known)
    const hint = instead === undefined ? `; it takes ${listed(known)}` : `; did you mean ${JSON.stringify(instead)}?`
    return `${quoted(String(path.at(-1)))} is not a parameter${hint}`
  }
  if (path.length === 1 && namesAt(definition, []).length === 0)
    return `${quoted(place)} is not a parameter; the tool takes none`
  const expected = cutName(describeType(message.replace(/^Expected /, "").replace(/, got [^]*$/, "")))
  return before === undefined
    ? `${JSON.stringify(place)} must be ${expected}, and was ${describeSent(value)}`
    : before.replace(/, and was/, `, or ${expected}, and was`)
}

const exampleOf = ({ examples, name }: AnyDefinition<unknown>): string => {
  const example = JSON.stringify(examples[0])
  return `Send a JSON object such as ${example} to ${name}.`
}

const isJsonObject = (text: string): boolean =>
  text.length < 10_000_000 &&
  Result.getOrElse(
    Result.try(() => isRecord(JSON.parse(text))),
    () => false
  )

export const describeDecodeError = (definition: AnyDefinition<unknown>, input: unknown, error: Schema.SchemaError): string => {
  const { name } = definition
  if (typeof input === "string") {
    const what = isJsonObject(input) ? "as a string that holds JSON" : "as a string"
    return `The arguments of ${name} were sent ${what}, not as an object. ${exampleOf(definition)}`
  }
  if (!isRecord(input)) return `The arguments of ${name} must be an object, and were ${kindOf(input)}. ${exampleOf(definition)}`
  const { all, more } = faultsOf(definition, input, error)
  const rest = more > 0 ? `; and ${more} more` : ""
  return `${name} cannot take these arguments: ${all.join("; ")}${rest}. ${exampleOf(definition)}`
}
