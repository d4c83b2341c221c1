/** Runs the laws of one filesystem in a child process, one for each message of the parent. */
import * as Effect from "effect/Effect"
import { setImmediate } from "node:timers/promises"
import { agreement } from "../../src/testing/Agreement.ts"
import { laws } from "../../src/testing/Laws.ts"
import { LawTimeout, verdict } from "../../src/testing/Law.ts"
import { randomPrograms } from "./chapters.ts"
import type { Asked, Outcome } from "./score.ts"
import type { Subject } from "./subjects.ts"

const [, , module = "", name = "", timeout = "10"] = process.argv
await import("../sameRuns.ts")
const { subjects } = (await import(module)) as { readonly subjects: ReadonlyArray<Subject> }
const subject = subjects.find((subject) => subject.name === name)
if (subject === undefined) throw new Error(`There is no filesystem ${name}.`)

const ofRandomPrograms = (): Promise<Outcome> =>
  Effect.runPromise(
    Effect.match(agreement(subject.layer, { runs: randomPrograms.runs, seed: 1 }), {
      onFailure: (error): Outcome => ({ _tag: "Broken", why: String(error instanceof Error ? error.message : error) }),
      onSuccess: (): Outcome => ({ _tag: "Held" })
    })
  )

const outcomeOf = async (law: string): Promise<Outcome> => {
  if (law === randomPrograms.name) return ofRandomPrograms()
  const found = await Effect.runPromise(
    verdict(laws.find(({ name }) => name === law)!).pipe(
      Effect.provideService(LawTimeout, `${Number(timeout)} seconds`),
      Effect.provide(subject.layer, { local: true })
    )
  )
  return found._tag === "Broken"
    ? { _tag: "Broken", why: found.error.message }
    : found._tag === "Held"
      ? { _tag: "Held" }
      : { _tag: "NotApplicable", missing: found.missing }
}

// A package that rejects a promise without a handler, or throws in a timer, breaks the law and not the run.
let strayed: string | undefined
process.on("uncaughtException", (error) => {
  strayed ??= String(error instanceof Error ? error.stack : error)
})
process.on("message", ({ law }: Asked) => {
  strayed = undefined
  void outcomeOf(law)
    .catch((error: unknown): Outcome => ({ _tag: "Broken", why: String(error) }))
    // Work that the package does after its last answer counts for this law.
    .then((outcome) => setImmediate(outcome))
    .then((outcome) =>
      process.send!(strayed !== undefined && outcome._tag === "Held" ? { _tag: "Broken", why: strayed } : outcome)
    )
})
process.send!("ready")
