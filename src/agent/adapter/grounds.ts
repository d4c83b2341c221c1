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
import { mergeContexts } from "../policy/core.ts"
import type { Section, SectionError } from "../Section.ts"
import { noFilesystemInPrompt, filesystemNotReady } from "./refusals.ts"

export interface ToolSources {
  readonly sectionWithFilesystem: (section: Section<unknown>) => Section<unknown> | undefined
  readonly sourceOf: (section: Section<unknown>) => Effect.Effect<Ground>
}

const servicesOf = (section: Section<unknown> | undefined): Effect.Effect<Context.Context<never>, SectionError> =>
  section?.services ?? Effect.succeed(Context.empty())

/**
 * Makes the sources of one run. `workspace` is the first section of the prompt that has a filesystem. All memories belong to
 * `session`.
 */
export const make = (workspace: Section<unknown> | undefined, session: object): ToolSources => {
  const memories = new WeakMap<Algebra, Memory.Memory>()
  // Each filesystem has its own memory, because the same path is a different file on each.
  const memoryOf = (filesystem: Algebra): Memory.Memory => {
    const known = memories.get(filesystem) ?? Memory.make(session)
    memories.set(filesystem, known)
    return known
  }
  const recoveredFilesystems = new WeakSet<Algebra>()
  // Finish the interrupted changes of a killed process before any tool sees the files.
  const recoverOnce = (filesystem: Algebra): Effect.Effect<Algebra> =>
    recoveredFilesystems.has(filesystem)
      ? Effect.succeed(filesystem)
      : Effect.as(
          Effect.tap(recoverChanges(filesystem), () => Effect.sync(() => recoveredFilesystems.add(filesystem))),
          filesystem
        )

  const sectionWithFilesystem = (section: Section<unknown>): Section<unknown> | undefined =>
    section.filesystem === undefined ? workspace : section

  const sourceOf = Effect.fnUntraced(function* (section: Section<unknown>): Effect.fn.Return<Ground> {
    const surroundingContext = yield* Effect.context<never>()
    const owner = sectionWithFilesystem(section)
    const made = Effect.gen(function* () {
      const filesystem = owner?.filesystem === undefined ? undefined : yield* recoverOnce(yield* owner.filesystem)
      const services = mergeContexts(yield* servicesOf(owner), yield* servicesOf(section))
      return {
        filesystem,
        missing: noFilesystemInPrompt,
        memory: filesystem && memoryOf(filesystem),
        services: mergeContexts(surroundingContext, services)
      } satisfies Ground
    })
    return yield* Effect.catch(made, (error) =>
      Effect.as(Effect.logWarning(`fs-algebra: ${(owner ?? section).key}: ${error.message}`), {
        filesystem: undefined,
        missing: filesystemNotReady(owner ?? section, error),
        services: surroundingContext
      })
    )
  })
  return { sectionWithFilesystem, sourceOf }
}
