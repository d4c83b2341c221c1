import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type * as Session from "../../workspace/Session.ts"
import type { Section, SectionError } from "../Section.ts"

export interface Placed<R> {
  readonly section: Section<R>
  /** The depth; 0 for the sections of the prompt itself. */
  readonly depth: number
}

/** Lists all sections, each before its children. */
export const all = <R>(sections: ReadonlyArray<Section<R>>, depth = 0): ReadonlyArray<Placed<R>> =>
  sections.flatMap((section) => [{ section, depth }, ...all(section.children, depth + 1)])

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

const cloned = <R>(section: Section<R>, session: Session.Operations): Effect.Effect<Section<R>, SectionError, Scope.Scope> =>
  section.clone === undefined
    ? Effect.map(clonedEach(section.children, session), (children) =>
        children.every((child, index) => child === section.children[index]) ? section : withChildren(section, children)
      )
    : section.clone(session)

export const clonedEach = <R>(
  sections: ReadonlyArray<Section<R>>,
  session: Session.Operations
): Effect.Effect<ReadonlyArray<Section<R>>, SectionError, Scope.Scope> =>
  Effect.forEach(sections, (section) => cloned(section, session))

/** Runs an effect whose resources are released with the scope, or at once if the effect fails. */
export const allOrNothing = <A, E, R>(make: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | Scope.Scope> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const own = yield* Scope.fork(yield* Effect.scope)
      return yield* restore(Scope.provide(make, own)).pipe(Effect.onError((cause) => Scope.close(own, Exit.failCause(cause))))
    })
  )
