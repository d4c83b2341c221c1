/** Makes temporary names of other processes, and forged names. */
import { execFileSync } from "node:child_process"
import { randomBytes } from "node:crypto"
import * as Installation from "../../src/runtime/installation.ts"
import * as Identity from "../../src/runtime/processIdentity.ts"

export const dead = (): string => {
  const pid = execFileSync("sh", ["-c", "echo $$"], { encoding: "utf8" }).trim()
  return `${Identity.self().split("-")[0]}-${Number(pid).toString(36)}-1`
}

/** The identity of a process that cannot be looked up here. */
export const elsewhere = "elsewhere-1-1"

/** Returns a temporary name with a valid signature of this installation. */
export const signed = (owner: string, kind?: string): string => {
  const text = `.~fsa-${kind === undefined ? "" : `${kind}-`}${owner}-${randomBytes(9).toString("hex")}`
  return `${text}-${Installation.signName(text)}.tmp`
}

/** Returns a temporary name with an invalid signature. */
export const forged = (owner: string, kind?: string): string =>
  signed(owner, kind).replace(/[0-9a-f]{32}\.tmp$/, `${randomBytes(16).toString("hex")}.tmp`)
