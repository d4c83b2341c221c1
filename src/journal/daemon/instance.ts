/**
 * A run of a daemon by a name that no other run has. It begins with the process, so that who takes its place on the same machine knows
 * whether it is still there, and need not wait for one that was killed.
 */
import { randomBytes } from "../../runtime/node.ts"
import * as Identity from "../../runtime/processIdentity.ts"

/** Those of this process that run. */
const running = new Set<string>()

export const make = (): string => `${Identity.self()}.${randomBytes(8).toString("hex")}`

/** It runs in this process, until what this answers is called. */
export const enter = (instance: string): (() => void) => {
  running.add(instance)
  return () => void running.delete(instance)
}

/**
 * Whether the run is over; `undefined` where that cannot be told: of another machine's, and of another process that goes on, perhaps
 * without it.
 */
export const isOver = (instance: string): boolean | undefined => {
  const at = instance.indexOf(".")
  if (at === -1) return undefined
  const process = instance.slice(0, at)
  if (process === Identity.self()) return !running.has(instance)
  return Identity.isDead(process) === true ? true : undefined
}
