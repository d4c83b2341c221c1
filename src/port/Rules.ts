/**
 * The permissions of a layer.
 *
 * The engine checks the permissions (`Rules`) before it changes anything. A guard at the port (`enforce`) checks them
 * again, so that no caller and no combinator can bypass them.
 *
 * @since 0.1.0
 */
import { accessDenied } from "../model/Fault.ts"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import type { FsPath, PathPolicy } from "../model/FsPath.ts"
import type { Backend, Rules } from "./Backend.ts"
import * as Request from "./Request.ts"

/**
 * The options that every backend's layer accepts.
 *
 * @since 0.1.0
 */
export interface CommonOptions {
  /** True to forbid writing and deleting. @default false */
  readonly readOnly?: boolean | undefined
  /** @default true */
  readonly allowWrite?: boolean | undefined
  /**
   * False to forbid deleting. Overwriting stays permitted. Moving needs permission to write and to delete.
   * @default true
   */
  readonly allowDelete?: boolean | undefined
  /** @default "standard" */
  readonly policy?: PathPolicy | undefined
}

/**
 * Converts options to rules.
 *
 * @example
 * ```ts
 * Rules.isReadOnly(Rules.fromOptions({ readOnly: true })) // => true
 * Rules.isReadOnly(Rules.fromOptions({ allowDelete: false })) // => false
 * ```
 * @category constructors
 * @since 0.1.0
 */
export const fromOptions = (options?: CommonOptions): Rules => {
  const write = options?.readOnly !== true && options?.allowWrite !== false
  const remove = options?.readOnly !== true && options?.allowDelete !== false
  return {
    permits: write && remove ? undefined : (action) => (action === "write" ? write : remove),
    policy: options?.policy
  }
}

/**
 * Tests whether nothing can be changed anywhere: neither writing nor deleting is permitted.
 *
 * @category guards
 * @since 0.1.0
 */
export const isReadOnly = (rules: Rules): boolean =>
  rules.permits !== undefined && !rules.permits("write") && !rules.permits("delete")

/**
 * True while the engine removes the entries that a failed call has created, or moves entries aside in a transaction.
 *
 * The removal needs no permission to delete. Otherwise a layer that permits only writing could not guarantee that a
 * failed write leaves nothing behind.
 *
 * @since 0.1.0
 */
export const TakingBack: Context.Reference<boolean> = Context.Reference<boolean>("fs-algebra/TakingBack", {
  defaultValue: () => false
})

/**
 * True while a tree is restored. Empty directories of the tree must stay, even on a backend that removes directories
 * that become empty.
 *
 * @since 0.1.0
 */
export const BringingBack: Context.Reference<boolean> = Context.Reference<boolean>("fs-algebra/BringingBack", {
  defaultValue: () => false
})

const denied: Effect.Effect<never, Fault> = Effect.fail(accessDenied("readOnly"))

const guarded = new Set<Request.Tag>([...Request.reading, "RemoveTree"])

/**
 * Returns the backend with a guard that fails with AccessDenied `readOnly` for everything that its rules do not permit.
 *
 * A rename needs "delete" for the old name and "write" for the new name.
 *
 * @category combinators
 * @since 0.1.0
 */
export const enforce = (self: Backend): Backend => {
  const { attributes, links } = self
  const permits = self.rules?.permits
  if (permits === undefined) return self
  const requirePermission = <A, E, R>(
    action: "write" | "delete",
    path: FsPath,
    effect: () => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | Fault, R> =>
    Effect.withFiber((fiber): Effect.Effect<A, E | Fault, R> =>
      permits(action, path) || (action === "delete" && fiber.getRef(TakingBack)) ? effect() : denied
    )
  return {
    ...self,
    write: (path, bytes, mode, how) => requirePermission("write", path, () => self.write(path, bytes, mode, how)),
    makeDirectory: (path) => requirePermission("write", path, () => self.makeDirectory(path)),
    remove: (path) => requirePermission("delete", path, () => self.remove(path)),
    rename: (from, to, options) =>
      requirePermission("delete", from, () => requirePermission("write", to, () => self.rename(from, to, options))),
    links: links && { ...links, make: (path, target) => requirePermission("write", path, () => links.make(path, target)) },
    attributes: attributes && { set: (path, values) => requirePermission("write", path, () => attributes.set(path, values)) },
    // Other changes need several permissions, so the engine makes them step by step with primitive operations.
    perform: Request.override(Request.only(self.perform, guarded), (perform) => ({
      RemoveTree: (request) => requirePermission("delete", request.path, () => perform(request))
    }))
  }
}
