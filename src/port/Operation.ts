/**
 * Primitive operations as data. On a backend without `perform` and `explore`, the engine runs only these operations, so an
 * observer of them sees every step of a call.
 *
 * @since 0.1.0
 */
import type { FsPath } from "../model/FsPath.ts"

/**
 * A call of a primitive operation or of an optional capability.
 *
 * @category models
 * @since 0.1.0
 */
export type Operation =
  | { readonly _tag: "Stat"; readonly path: FsPath }
  | { readonly _tag: "List"; readonly path: FsPath }
  | { readonly _tag: "Open"; readonly path: FsPath }
  | {
      readonly _tag: "Write"
      readonly path: FsPath
      readonly mode: "create" | "replace" | "append"
      /** The number of bytes; absent for a stream, which can run only once. */
      readonly size?: number
    }
  | { readonly _tag: "MakeDirectory"; readonly path: FsPath }
  | { readonly _tag: "Remove"; readonly path: FsPath }
  | { readonly _tag: "Rename"; readonly path: FsPath; readonly to: FsPath; readonly replace: boolean }
  | { readonly _tag: "ReadLink"; readonly path: FsPath }
  | { readonly _tag: "MakeLink"; readonly path: FsPath; readonly target: string }
  | { readonly _tag: "SetAttributes"; readonly path: FsPath }
  | { readonly _tag: "Watch"; readonly path: FsPath }

/**
 * The kinds of access that permissions distinguish.
 *
 * @since 0.1.0
 */
export type Action = "read" | "write" | "delete"

/**
 * Returns the permission that an operation needs for its `path`. A `Rename` also needs `write` for `to`.
 *
 * @example
 * ```ts
 * Operation.action({ _tag: "Remove", path: FsPath.root }) // => "delete"
 * Operation.isMutation({ _tag: "Stat", path: FsPath.root }) // => false
 * ```
 * @category getters
 * @since 0.1.0
 */
export const action = (operation: Operation): Action => {
  switch (operation._tag) {
    case "Stat":
    case "List":
    case "Open":
    case "ReadLink":
    case "Watch":
      return "read"
    case "Remove":
    case "Rename":
      return "delete"
    case "Write":
    case "MakeDirectory":
    case "MakeLink":
    case "SetAttributes":
      return "write"
  }
}

/**
 * Tests whether an operation can change anything.
 *
 * @category guards
 * @since 0.1.0
 */
export const isMutation = (operation: Operation): boolean => action(operation) !== "read"

/**
 * A call of the service as data. The call runs primitive operations as its steps.
 *
 * @since 0.1.0
 */
export interface Call {
  readonly operation: string
  /** The path as the caller wrote it. */
  readonly path: string
}
