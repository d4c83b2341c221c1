import * as Arbitrary from "effect/Arbitrary"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import { createHash } from "node:crypto"
import { Filesystem } from "../../src/filesystem/Filesystem.ts"
import * as Arbitraries from "../../src/testing/Arbitraries.ts"
import { abilities, Bench, type Law, verdict } from "../../src/testing/Law.ts"
import { print } from "../../src/testing/Model.ts"

export interface Outcome {
  readonly of: string
  readonly name: string
  /** The verdict. `Begun` means that the program ended before the outcome. */
  readonly verdict: "Begun" | "Held" | "NotApplicable" | "Broken"
  /** The missing abilities, or the failure. */
  readonly detail: string
}

export interface Job {
  readonly parts: ReadonlyArray<string>
  /** The directory of the run, which the run creates. */
  readonly directory: string
  readonly programs: number
  readonly seed: number
  readonly out: string
  readonly parent: number
}

/** Runs a law. Every failure counts as a broken law, also when the filesystem cannot be built. */
export const judge = async (of: string, law: Law, layer: Layer.Layer<Filesystem, unknown>): Promise<Outcome> => {
  const exit = await Effect.runPromiseExit(Effect.provide(verdict(law), layer))
  if (Exit.isFailure(exit)) return { of, name: law.name, verdict: "Broken", detail: Cause.pretty(exit.cause) }
  const found = exit.value
  const detail = found._tag === "Held" ? "" : found._tag === "Broken" ? found.error.message : found.missing.join(", ")
  return { of, name: law.name, verdict: found._tag, detail }
}

export const judgeCheck = async (of: string, name: string, check: Effect.Effect<unknown, unknown>): Promise<Outcome> => {
  const exit = await Effect.runPromiseExit(check)
  return Exit.isSuccess(exit)
    ? { of, name, verdict: "Held", detail: "" }
    : { of, name, verdict: "Broken", detail: Cause.pretty(exit.cause) }
}

/** Returns the abilities of the filesystem that the laws may need, in alphabetical order. */
export const abilitiesOf = <E>(layer: Layer.Layer<Filesystem, E>): Effect.Effect<ReadonlyArray<string>, E> =>
  Effect.provide(
    Effect.map(Effect.all([Filesystem, Bench]), ([fs, bench]) => [...abilities(fs, bench)].sort()),
    layer
  )

/** Returns a digest of the programs that a seed generates without links. */
export const drawn = async (runs: number, seed: number): Promise<string> => {
  const hash = createHash("sha256")
  await Effect.runPromise(
    Arbitrary.checkEffect(
      Arbitraries.program({ links: "none" }),
      (program) => Effect.sync(() => Boolean(hash.update(`${program.map(print).join("\n")}\n\n`))),
      { runs, size: 40, seed }
    )
  )
  return hash.digest("hex")
}

/**
 * Reads the last outcome of each `of` and name. Ignores a last line without a line feed, which the end of the program truncated.
 */
export const read = (text: string): ReadonlyMap<string, Outcome> => {
  const found = new Map<string, Outcome>()
  for (const line of text.split("\n").slice(0, -1)) {
    const outcome = JSON.parse(line) as Outcome
    found.set(key(outcome.of, outcome.name), outcome)
  }
  return found
}

export const key = (of: string, name: string): string => `${of}: ${name}`
