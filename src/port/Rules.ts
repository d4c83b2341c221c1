/**
 * What a layer's options permit, in the one form that the engine reads before it looks at anything (`Rules`), and the guard that
 * refuses the same at the port, where no caller and no combinator can go past it.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Fault } from "../model/FsError.ts"
import type { FsPath, PathPolicy } from "../model/FsPath.ts"
import { type Backend, looking, type Rules } from "./Backend.ts"

/**
 * What every backend's layer takes.
 *
 * @since 0.1.0
 */
export interface CommonOptions {
  /** Neither write nor delete. @default false */
  readonly readOnly?: boolean | undefined
  /** @default true */
  readonly allowWrite?: boolean | undefined
  /** Overwriting stays allowed where deleting is not; moving needs both. @default true */
  readonly allowDelete?: boolean | undefined
  /** @default "standard" */
  readonly policy?: PathPolicy | undefined
}

/**
 * The rules that a layer's options stand for.
 *
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
 * Whether nothing can be changed anywhere: neither writing nor deleting is permitted.
 *
 * @since 0.1.0
 */
export const isReadOnly = (rules: Rules): boolean =>
  rules.permits !== undefined && !rules.permits("write") && !rules.permits("delete")

/**
 * Set by the engine around the steps by which a call that fails takes back what it has made itself: they need no permission to
 * delete, or a layer that permits writing alone could not keep its promise that a failed write leaves nothing behind.
 *
 * @since 0.1.0
 */
export const TakingBack: Context.Reference<boolean> = Context.Reference<boolean>("fs-algebra/TakingBack", {
  defaultValue: () => false
})

/**
 * Set around the steps by which a tree becomes what was captured of one: directories of it that are empty stay, also where one that is
 * left empty goes otherwise.
 *
 * @since 0.1.0
 */
export const BringingBack: Context.Reference<boolean> = Context.Reference<boolean>("fs-algebra/BringingBack", {
  defaultValue: () => false
})

const denied: Effect.Effect<never, Fault> = Effect.fail({ _tag: "AccessDenied", why: "readOnly" })

/**
 * The backend, refusing what its own rules do not permit with AccessDenied `readOnly`, before it is asked. A rename needs "delete"
 * for the name that goes and "write" for the one that comes.
 *
 * @since 0.1.0
 */
export const enforce = (self: Backend): Backend => {
  const { accelerations, attributes, links } = self
  const permits = self.rules?.permits
  if (permits === undefined) return self
  const needs = <A, E, R>(
    action: "write" | "delete",
    path: FsPath,
    effect: () => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E | Fault, R> =>
    Effect.withFiber((fiber): Effect.Effect<A, E | Fault, R> =>
      permits(action, path) || (action === "delete" && fiber.getRef(TakingBack)) ? effect() : denied
    )
  const removeTree = accelerations?.removeTree
  return {
    ...self,
    write: (path, bytes, mode, how) => needs("write", path, () => self.write(path, bytes, mode, how)),
    makeDirectory: (path) => needs("write", path, () => self.makeDirectory(path)),
    remove: (path) => needs("delete", path, () => self.remove(path)),
    rename: (from, to, options) => needs("delete", from, () => needs("write", to, () => self.rename(from, to, options))),
    links: links && { ...links, make: (path, target) => needs("write", path, () => links.make(path, target)) },
    attributes: attributes && { set: (path, values) => needs("write", path, () => attributes.set(path, values)) },
    // Whole changes are made of several, each of which is to be permitted, and go step by step.
    accelerations: accelerations && {
      ...looking(accelerations),
      ...(removeTree && { removeTree: (path: FsPath) => needs("delete", path, () => removeTree(path)) })
    }
  }
}
