/**
 * Unique ids of daemon runs. An id begins with the identity of its process, so a successor on the same machine detects a killed
 * process at once.
 */
import { randomBytes } from "../../runtime/node.ts"
import * as Identity from "../../runtime/processIdentity.ts"

const activeRuns = new Set<string>()

export const make = (): string => `${Identity.self()}.${randomBytes(8).toString("hex")}`

export const markActive = (instance: string): (() => void) => {
  activeRuns.add(instance)
  return () => void activeRuns.delete(instance)
}

/**
 * Tests whether the run is over. Returns `undefined` if this is unknown: for a run on another machine, and for a living process, whose run
 * may have ended.
 */
export const hasEnded = (instance: string): boolean | undefined => {
  const at = instance.indexOf(".")
  if (at === -1) return undefined
  const process = instance.slice(0, at)
  if (process === Identity.self()) return !activeRuns.has(instance)
  return Identity.isDead(process) === true ? true : undefined
}
