/**
 * The failures of a backend: plain data, without an operation and usually without a path.
 *
 * The service converts a fault to the `FsError` class of the same tag, with the operation and the caller's own path.
 *
 * @since 0.1.0
 */
import type { Fault } from "./FsError.ts"

export type { Fault } from "./FsError.ts"

/**
 * The fault for an entry that does not exist.
 *
 * @example
 * ```ts
 * const handlers = Request.handlers({ RemoveTree: () => Effect.fail(Fault.notFound) })
 * const fault = yield* Effect.flip(handlers({ _tag: "RemoveTree", path: FsPath.root }))
 * Fault.is(fault, "NotFound") // => true
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const notFound: Fault = Object.freeze({ _tag: "NotFound" })

/**
 * The fault for a name that is already taken.
 *
 * @category constructors
 * @since 0.1.0
 */
export const alreadyExists: Fault = Object.freeze({ _tag: "AlreadyExists" })

/**
 * The fault for an entry that is not a regular file.
 *
 * @category constructors
 * @since 0.1.0
 */
export const notAFile: Fault = Object.freeze({ _tag: "NotAFile" })

/**
 * The fault for an entry that is not a directory, or has a parent that is not a directory.
 *
 * @category constructors
 * @since 0.1.0
 */
export const notADirectory: Fault = Object.freeze({ _tag: "NotADirectory" })

/**
 * The fault for a directory that is not empty.
 *
 * @category constructors
 * @since 0.1.0
 */
export const directoryNotEmpty: Fault = Object.freeze({ _tag: "DirectoryNotEmpty" })

/**
 * The fault for a full disk or a quota that is used up.
 *
 * @category constructors
 * @since 0.1.0
 */
export const diskFull: Fault = Object.freeze({ _tag: "DiskFull" })

/**
 * Returns a fault for a path that must not be reached or changed. `FsError.AccessDenied` describes the reasons.
 *
 * @category constructors
 * @since 0.1.0
 */
export const accessDenied = (
  why: "permission" | "readOnly" | "escape" | "root" | "link" | "policy" | "busy",
  detail?: string
): Fault => ({ _tag: "AccessDenied", why, ...(detail === undefined ? {} : { detail }) })

/**
 * Returns a fault for a path that the backend cannot represent.
 *
 * @category constructors
 * @since 0.1.0
 */
export const invalidPath = (detail: string): Fault => ({ _tag: "InvalidPath", detail })

/**
 * Returns a fault for a path, or a name in it, that is longer than the backend permits.
 *
 * @category constructors
 * @since 0.1.0
 */
export const pathTooLong = (detail: string): Fault => ({ _tag: "PathTooLong", detail })

/**
 * Returns a fault for an invalid argument of the call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const invalidArgument = (argument: string, detail: string): Fault => ({ _tag: "InvalidArgument", argument, detail })

/**
 * Returns a fault for a call that exceeds a limit. `limit` is the name of the limit; `allowed` is rounded down.
 *
 * @category constructors
 * @since 0.1.0
 */
export const limitExceeded = (limit: string, allowed: number, actual: number): Fault => ({
  _tag: "LimitExceeded",
  limit,
  allowed: Math.floor(allowed),
  actual
})

/**
 * Returns a fault for a feature that the backend lacks.
 *
 * @category constructors
 * @since 0.1.0
 */
export const unsupported = (feature: string): Fault => ({ _tag: "Unsupported", feature })

/**
 * Returns a fault for a backend that cannot be reached.
 *
 * @category constructors
 * @since 0.1.0
 */
export const unavailable = (detail: string): Fault => ({ _tag: "Unavailable", detail })

/**
 * Returns a fault for an I/O error that no other tag describes. `code` is the operating system's name of the error, such as
 * `EIO`, or a similar code.
 *
 * @category constructors
 * @since 0.1.0
 */
export const ioError = (detail: string, code?: string): Fault => ({
  _tag: "IoError",
  detail,
  ...(code === undefined ? {} : { code })
})

/**
 * Tests whether a value is a fault. With `tag`, also tests whether the fault has that tag.
 *
 * @category guards
 * @since 0.1.0
 */
export const is = (value: unknown, tag?: Fault["_tag"]): value is Fault =>
  typeof value === "object" && value !== null && "_tag" in value && (tag === undefined || value._tag === tag)
