/**
 * Chooses the filesystem of a section's tools: the section's own, or else the one of the prompt's workspace. A tool gets the
 * services of both sections, so that snapshot tools keep the files that file tools change.
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
  readonly placeOf: (section: Section<unknown>) => Section<unknown> | undefined
  readonly of: (section: Section<unknown>) => Effect.Effect<Ground>
}

const servicesOf = (section: Section<unknown> | undefined): Effect.Effect<Context.Context<never>, SectionError> =>
  section?.services ?? Effect.succeed(Context.empty())

/**
 * Makes the sources of one run. `workspace` is the first section of the prompt that has a filesystem. All memories belong to
 * `session`.
 */
export const make = (workspace: Section<unknown> | undefined, session: object): Grounds => {
  const memories = new WeakMap<Algebra, Memory.Memory>()
  // Each filesystem has its own memory, because the same path is a different file on each.
  const memoryOf = (filesystem: Algebra): Memory.Memory => {
    const known = memories.get(filesystem) ?? Memory.make(session)
    memories.set(filesystem, known)
    return known
  }
  const recovered = new WeakSet<Algebra>()
  // Finish the interrupted changes of a killed process before any tool sees the files.
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
