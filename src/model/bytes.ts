/**
 * Type tests that work across realms. A test runner, a frame or a `node:vm` context has its own Uint8Array, on which
 * `instanceof` fails.
 */

const typedArrayTagOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)!.get!

/**
 * Tests whether the value is a Uint8Array of any realm, a Buffer included. No other object can fake the internal tag.
 */
export const isBytes = (value: unknown): value is Uint8Array =>
  value instanceof Uint8Array || typedArrayTagOf.call(value) === "Uint8Array"

const regExpSourceOf = Object.getOwnPropertyDescriptor(RegExp.prototype, "source")!.get!

export const isRegExp = (value: unknown): value is RegExp => {
  if (value instanceof RegExp) return true
  if (typeof value !== "object" || value === null || typeof (value as { readonly exec?: unknown }).exec !== "function")
    return false
  try {
    regExpSourceOf.call(value)
    return true
  } catch {
    return false
  }
}
