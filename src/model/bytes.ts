/**
 * Bytes of any realm. A test runner, a frame or a `node:vm` context has a Uint8Array of its own, and `TextEncoder` or a file of the host may
 * give one of another: `instanceof` takes that for something else.
 */

const typeOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)!.get!

/** Returns whether the value is a Uint8Array of any realm, a Buffer included. No other object can pretend to be one. */
export const isBytes = (value: unknown): value is Uint8Array =>
  value instanceof Uint8Array || typeOf.call(value) === "Uint8Array"

const sourceOf = Object.getOwnPropertyDescriptor(RegExp.prototype, "source")!.get!

/** Returns whether the value is a regular expression of any realm. */
export const isRegExp = (value: unknown): value is RegExp => {
  if (value instanceof RegExp) return true
  if (typeof value !== "object" || value === null || typeof (value as { readonly exec?: unknown }).exec !== "function")
    return false
  try {
    sourceOf.call(value)
    return true
  } catch {
    return false
  }
}
