/**
 * Type tests that work across realms.
 *
 * A test runner, a frame or a `node:vm` context has its own globals, so `instanceof` does not recognize the errors of
 * `node:fs` or a foreign Uint8Array.
 */

export interface SystemError extends Error {
  readonly code: string
  readonly errno?: number
  readonly syscall?: string
}

export const isError = (value: unknown): value is Error =>
  value instanceof Error || Object.prototype.toString.call(value) === "[object Error]"

export const isSystemError = (value: unknown): value is SystemError =>
  isError(value) && "code" in value && typeof value.code === "string"

export const codeOf = (error: unknown): string | undefined => (isSystemError(error) ? error.code : undefined)

const typedArrayTagOf = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)!.get!

/**
 * Tests whether the value is a Uint8Array of any realm, a Buffer included. Other objects cannot fake the internal tag
 * that this test reads.
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
