import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as Session from "../../workspace/Session.ts"
import type { Section, SectionError } from "../Section.ts"

export interface SectionAtDepth<R> {
  readonly section: Section<R>
  /** The depth; 0 for the sections of the prompt itself. */
  readonly depth: number
}

/** Lists all sections, each before its children. */
export const flatten = <R>(sections: ReadonlyArray<Section<R>>, depth = 0): ReadonlyArray<SectionAtDepth<R>> =>
  sections.flatMap((section) => [{ section, depth }, ...flatten(section.children, depth + 1)])

/** Returns the section with other children. Reads only known fields, because any object may be a section. */
const withChildren = <R>(section: Section<R>, children: ReadonlyArray<Section<R>>): Section<R> => {
  const { template } = section
  return {
    key: section.key,
    title: section.title,
    template: typeof template === "string" ? template : (params) => template.call(section, params),
    tools: section.tools,
    children,
    acceptsOverrides: section.acceptsOverrides,
    session: section.session,
    toolsElsewhere: section.toolsElsewhere,
    filesystem: section.filesystem,
    snapshots: section.snapshots,
    services: section.services
  }
}

const cloneSection = <R>(
  section: Section<R>,
  session: Session.Operations
): Effect.Effect<Section<R>, SectionError, Scope.Scope> =>
  section.clone === undefined
    ? Effect.map(cloneSections(section.children, session), (children) =>
        children.every((child, index) => child === section.children[index]) ? section : withChildren(section, children)
      )
    : section.clone(session)

export const cloneSections = <R>(
  sections: ReadonlyArray<Section<R>>,
  session: Session.Operations
): Effect.Effect<ReadonlyArray<Section<R>>, SectionError, Scope.Scope> =>
  Effect.forEach(sections, (section) => cloneSection(section, session))

/** Runs an effect whose resources are released with the scope, or at once if the effect fails. */
export const releaseOnFailure = <A, E, R>(make: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const resourceScope = yield* Scope.fork(yield* Effect.scope)
      return yield* restore(Scope.provide(make, resourceScope)).pipe(
        Effect.onError((cause) => Scope.close(resourceScope, Exit.failCause(cause)))
      )
    })
  )
