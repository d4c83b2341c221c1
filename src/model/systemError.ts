/**
 * Recognizes system errors of every realm.
 *
 * A test runner, a frame or a `node:vm` context may have its own globals. Errors of `node:fs` belong to the realm of
 * Node, and `instanceof` does not recognize them there.
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
