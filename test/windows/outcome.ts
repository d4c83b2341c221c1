/** What has come of a law, as a line that one Node writes and another reads. */
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
  /** The filesystem, or what else it is a part of. */
  readonly of: string
  readonly name: string
  /** `Begun` stands where nothing came of it: the program has ended. */
  readonly verdict: "Begun" | "Held" | "NotApplicable" | "Broken"
  /** The abilities that are missing, or how it broke. */
  readonly detail: string
}

/** What a run is to do. */
export interface Job {
  /** Of those in conformance.entry.ts. */
  readonly parts: ReadonlyArray<string>
  /** Is made, for its own use. */
  readonly directory: string
  readonly programs: number
  readonly seed: number
  /** The file of the outcomes. */
  readonly out: string
  /** The process that waits for them. */
  readonly parent: number
}

/** Whatever goes wrong is a broken law, also when the filesystem cannot be built. */
export const judge = async (of: string, law: Law, layer: Layer.Layer<Filesystem, unknown>): Promise<Outcome> => {
  const exit = await Effect.runPromiseExit(Effect.provide(verdict(law), layer))
  if (Exit.isFailure(exit)) return { of, name: law.name, verdict: "Broken", detail: Cause.pretty(exit.cause) }
  const found = exit.value
  const detail = found._tag === "Held" ? "" : found._tag === "Broken" ? found.error.message : found.missing.join(", ")
  return { of, name: law.name, verdict: found._tag, detail }
}

/** Of a check that is no law. */
export const judgeCheck = async (of: string, name: string, check: Effect.Effect<unknown, unknown>): Promise<Outcome> => {
  const exit = await Effect.runPromiseExit(check)
  return Exit.isSuccess(exit)
    ? { of, name, verdict: "Held", detail: "" }
    : { of, name, verdict: "Broken", detail: Cause.pretty(exit.cause) }
}

/** What the laws may ask of the filesystem, in alphabetical order. */
export const abilitiesOf = <E>(layer: Layer.Layer<Filesystem, E>): Effect.Effect<ReadonlyArray<string>, E> =>
  Effect.provide(
    Effect.map(Effect.all([Filesystem, Bench]), ([fs, bench]) => [...abilities(fs, bench)].sort()),
    layer
  )

/** A digest of the programs that a seed stands for, where there are no links. */
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

/** The last that was said of each, by `of` and name. A line that was cut off by the end of the program is none. */
export const read = (text: string): ReadonlyMap<string, Outcome> => {
  const found = new Map<string, Outcome>()
  for (const line of text.split("\n").slice(0, -1)) {
    const outcome = JSON.parse(line) as Outcome
    found.set(key(outcome.of, outcome.name), outcome)
  }
  return found
}

export const key = (of: string, name: string): string => `${of}: ${name}`
