import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import { isBytes } from "../model/realms.ts"

/** A failed assertion. `Law.make` and the laws of stores add the title and the calls of the law. */
export class Broken extends Error {
  readonly expected: string
  readonly actual: string
  constructor(expected: string, actual: string) {
    super(`expected ${expected}, actual ${actual}`)
    this.expected = expected
    this.actual = actual
  }
}

const maxShownCharacters = 2000

const shorten = (text: string): string =>
  text.length > maxShownCharacters ? `${text.slice(0, maxShownCharacters)}… (${text.length} characters)` : text

const replacer = (_: string, value: unknown): unknown =>
  isBytes(value)
    ? `bytes ${Array.from(value.subarray(0, 64), (byte) => byte.toString(16).padStart(2, "0")).join("")}${value.length > 64 ? `… (${value.length})` : ""}`
    : typeof value === "string" && value.length > 200
      ? `${value.slice(0, 200)}… (${value.length} characters)`
      : typeof value === "bigint" || typeof value === "symbol"
        ? value.toString()
        : typeof value === "number" && !Number.isFinite(value)
          ? value.toString()
          : value

export const show = (value: unknown): string => {
  if (typeof value === "function") return "…"
  if (value instanceof RegExp) return String(value)
  if (Effect.isEffect(value) && !(value instanceof Error)) return "an effect"
  if (value instanceof Error) {
    return "_tag" in value ? shorten(`${String(value._tag)}: ${value.message}`) : shorten(value.stack ?? String(value))
  }
  return shorten(JSON.stringify(value, replacer) ?? String(value))
}

const fail = (expected: string, actual: string): Effect.Effect<never, Broken> => Effect.fail(new Broken(expected, actual))

/**
 * Tests structural equality. Compares arrays without `Equal`, because `Equal` first hashes both values, which is slow for long
 * arrays.
 */
const isEqual = (a: unknown, b: unknown): boolean => {
  if (isBytes(a) && isBytes(b)) return a.length === b.length && a.every((byte, i) => byte === b[i])
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((item, i) => isEqual(item, b[i]))
  return Equal.equals(a, b)
}

/** Checks the structural equality of plain values. `what` names the value in the failure. */
export const equal = <A>(actual: A, expected: A, what = ""): Effect.Effect<void, Broken> =>
  isEqual(actual, expected) ? Effect.void : fail(what === "" ? show(expected) : `${what}: ${show(expected)}`, show(actual))

/** Checks only the expected fields. The value `undefined` requires that a field is absent or `undefined`. */
export const has = <A extends object>(
  actual: A,
  expected: { readonly [K in keyof A]?: A[K] | undefined },
  what = ""
): Effect.Effect<void, Broken> => {
  const actualFields = Object.fromEntries(Object.keys(expected).map((key) => [key, actual[key as keyof A]]))
  return equal<object>(actualFields, { ...expected }, what)
}

export const holds = (condition: boolean, what: string, actual?: unknown): Effect.Effect<void, Broken> =>
  condition ? Effect.void : fail(what, actual === undefined ? "the condition is false" : show(actual))

interface Tagged {
  readonly _tag: string
}

type Of<E, Tag> = E extends { readonly _tag: infer T } ? (T extends Tag ? E : never) : never

/** Runs an effect that must fail with one of the tags and the given fields. Returns the failure. */
export const fails = <A, E extends Tagged, R, const Tag extends E["_tag"]>(
  effect: Effect.Effect<A, E, R>,
  tag: Tag | ReadonlyArray<Tag>,
  fields?: { readonly [field: string]: unknown }
): Effect.Effect<Of<E, Tag>, Broken, R> => {
  const tags: ReadonlyArray<string> = typeof tag === "string" ? [tag] : tag
  const expectedText = `failure ${tags.join(" or ")}${fields === undefined ? "" : ` ${show(fields)}`}`
  return Effect.matchEffect(effect, {
    onSuccess: (value) => fail(expectedText, `success ${show(value)}`),
    onFailure: (error): Effect.Effect<Of<E, Tag>, Broken> => {
      const isExpected =
        tags.includes(error._tag) &&
        Object.entries(fields ?? {}).every(([key, value]) => Equal.equals((error as Record<string, unknown>)[key], value))
      return isExpected ? Effect.succeed(error as Of<E, Tag>) : fail(expectedText, `failure ${describe(error)}`)
    }
  })
}

const describe = (error: Tagged): string => `${error._tag} ${shorten(JSON.stringify({ ...error, _tag: undefined }, replacer))}`
