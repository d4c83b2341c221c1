/**
 * Errors of the system, of any realm. Where a test runner, a frame or a `node:vm` context has globals of its own, what `node:fs` throws is
 * an Error of the realm of Node: `instanceof` takes it for something else.
 */

/** An error that Node, Bun or Deno made of a code of the system. */
export interface SystemError extends Error {
  readonly code: string
  readonly errno?: number
  readonly syscall?: string
}

/** Returns whether the value is an Error of any realm. */
export const isError = (value: unknown): value is Error =>
  value instanceof Error || Object.prototype.toString.call(value) === "[object Error]"

/** Returns whether the value is an Error with a code. */
export const isSystemError = (value: unknown): value is SystemError =>
  isError(value) && "code" in value && typeof value.code === "string"

/** Returns the error's code, or `undefined` where it has none. */
export const codeOf = (error: unknown): string | undefined => (isSystemError(error) ? error.code : undefined)
