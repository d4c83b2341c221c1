/**
 * Where the tools of a section work: on its own filesystem, else on the prompt's. What else they find is the section's, and before
 * that, of the one whose filesystem it is, so that tools for snapshots keep the very files that the others change.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { recoverChanges } from "../changes/apply.ts"
import type { Ground } from "../dispatch.ts"
import * as Memory from "../memory.ts"
import { together } from "../policy/core.ts"
import type { Section, SectionError } from "../Section.ts"
import { noFiles, notReady } from "./refusals.ts"

export interface Grounds {
  /** The section whose filesystem a tool of this one gets, if any. */
  readonly placeOf: (section: Section<unknown>) => Section<unknown> | undefined
  readonly of: (section: Section<unknown>) => Effect.Effect<Ground>
}

const servicesOf = (section: Section<unknown> | undefined): Effect.Effect<Context.Context<never>, SectionError> =>
  section?.services ?? Effect.succeed(Context.empty())

/** `workspace` is the first section of the prompt that has a filesystem; `session` is told by the memories of all. */
export const make = (workspace: Section<unknown> | undefined, session: object): Grounds => {
  const memories = new WeakMap<Algebra, Memory.Memory>()
  // A path is another file on another filesystem.
  const memoryOf = (filesystem: Algebra): Memory.Memory => {
    const known = memories.get(filesystem) ?? Memory.make(session)
    memories.set(filesystem, known)
    return known
  }
  const recovered = new WeakSet<Algebra>()
  // What a killed process has left half done is seen by nobody.
  const sound = (filesystem: Algebra): Effect.Effect<Algebra> =>
    recovered.has(filesystem)
      ? Effect.succeed(filesystem)
      : Effect.as(
          Effect.tap(recoverChanges(filesystem), () => Effect.sync(() => recovered.add(filesystem))),
          filesystem
        )

  const placeOf = (section: Section<unknown>): Section<unknown> | undefined =>
    section.filesystem === undefined ? workspace : section

  const of = Effect.fnUntraced(function* (section: Section<unknown>): Effect.fn.Return<Ground> {
    const around = yield* Effect.context<never>()
    const place = placeOf(section)
    const made = Effect.gen(function* () {
      const filesystem = place?.filesystem === undefined ? undefined : yield* sound(yield* place.filesystem)
      const services = together(yield* servicesOf(place), yield* servicesOf(section))
      return {
        filesystem,
        missing: noFiles,
        memory: filesystem && memoryOf(filesystem),
        services: together(around, services)
      } satisfies Ground
    })
    return yield* Effect.catch(made, (error) =>
      Effect.as(Effect.logWarning(`fs-algebra: ${(place ?? section).key}: ${error.message}`), {
        filesystem: undefined,
        missing: notReady(place ?? section, error),
        services: around
      })
    )
  })
  return { placeOf, of }
}
