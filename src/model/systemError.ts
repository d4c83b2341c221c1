/**
 * Recognizes system errors of every realm.
 *
 * A test runner, a frame or a `node:vm` context may have its own globals. Errors of `node:fs` belong to the realm of
 * Node, and `instanceof` does not recognize them there.
 */

/** An error that Node, Bun or Deno creates for an error code of the system. */
export interface SystemError extends Error {
  readonly code: string
  readonly errno?: number
  readonly syscall?: string
}

/** Tests whether the value is an Error of any realm. */
export const isError = (value: unknown): value is Error =>
  value instanceof Error || Object.prototype.toString.call(value) === "[object Error]"

/** Tests whether the value is an Error with a text as `code`. */
export const isSystemError = (value: unknown): value is SystemError =>
  isError(value) && "code" in value && typeof value.code === "string"

/** Returns the error's code, or `undefined` if it has none. */
export const codeOf = (error: unknown): string | undefined => (isSystemError(error) ? error.code : undefined)
