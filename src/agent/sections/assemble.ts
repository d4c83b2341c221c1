/** A section from what it works on, what it says and which tools it has. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { InvalidArgument } from "../../model/FsError.ts"
import { root } from "../../model/FsPath.ts"
import type * as Session from "../../workspace/Session.ts"
import type { AnyDefinition } from "../definition.ts"
import type { Needed, Params, Section, SectionError } from "../Section.ts"
import { overridden, type Overrides, whyNotOverridden } from "./check.ts"
import type { Held, Holder } from "./holder.ts"
import * as Tree from "./tree.ts"

/** `T` is the type of the tools of one's own, `C` of the sections below. */
export interface Common<T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section> {
  /** Whose the section is: with another session its tools refuse to work. @default anybody's */
  readonly session?: Session.Operations | undefined
  /**
   * Absolute: where `snapshots` keeps its archives, which stay there. @default a temporary directory, which goes with the filesystem
   */
  readonly snapshotDirectory?: string | undefined
  /** Also `snapshot`, `snapshots`, `restore` and `diff`. @default false */
  readonly snapshotTools?: boolean | undefined
  /** Tools of one's own, beside those of the section. @default none */
  readonly tools?: ReadonlyArray<T> | undefined
  /** @default none */
  readonly children?: ReadonlyArray<C> | undefined
  /** Whether descriptions of its tools can be said here, and by the prompt. @default false */
  readonly acceptsOverrides?: boolean | undefined
  /** Descriptions of tools, by their names. Needs `acceptsOverrides`. @default none */
  readonly overrides?: Overrides | undefined
}

export const invalid = (argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation: "Section", path: root, argument, detail })

type AnyCommon = Common<AnyDefinition<unknown>, Section<unknown>>

/** With the descriptions that are in force. */
const toolsOf = Effect.fnUntraced(function* (own: ReadonlyArray<AnyDefinition<unknown>>, options: AnyCommon) {
  const { acceptsOverrides = false, overrides = {}, snapshotTools = false } = options
  const { snapshotTools: more } = snapshotTools
    ? yield* Effect.promise(() => import("../tools.ts"))
    : { snapshotTools: [] as ReadonlyArray<AnyDefinition> }
  const tools = [...own, ...more, ...(options.tools ?? [])]
  for (const name of Object.keys(overrides)) {
    const why = whyNotOverridden({ acceptsOverrides, tools }, name, overrides)
    if (why !== undefined) return yield* Effect.fail(invalid("overrides", why))
  }
  return tools.map((tool) => overridden(tool, overrides) ?? tool)
})

export interface Parts<R> {
  readonly key: string
  readonly title: string
  readonly tools: ReadonlyArray<AnyDefinition<unknown>>
  readonly holder: Holder
  readonly text: (held: Held, params: Params) => Effect.Effect<string, SectionError>
  readonly clone: Workspace<R>["clone"]
}

/**
 * A section that has a filesystem, with snapshots of it and what else its tools need.
 *
 * @since 0.1.0
 */
export interface Workspace<out R = never> extends Section<R> {
  readonly filesystem: NonNullable<Section["filesystem"]>
  readonly snapshots: NonNullable<Section["snapshots"]>
  readonly services: NonNullable<Section["services"]>
  readonly clone: (session: Session.Operations) => Effect.Effect<Workspace<R>, SectionError, Scope.Scope>
}

/** `P` is the services that the holder has for the section's own tools. */
export const assemble = Effect.fnUntraced(function* <T extends AnyDefinition<unknown>, C extends Section<unknown>, P>(
  parts: Parts<Needed<T, C, P>>,
  options: Common<T, C>
): Effect.fn.Return<Workspace<Needed<T, C, P>>, SectionError, Scope.Scope> {
  const tools = yield* toolsOf(parts.tools, options)
  const held = yield* parts.holder
  const section: Workspace<unknown> = {
    key: parts.key,
    title: parts.title,
    template: (params: Params) => parts.text(held, params),
    tools: Object.freeze(tools),
    children: Object.freeze([...(options.children ?? [])]),
    acceptsOverrides: options.acceptsOverrides ?? false,
    session: options.session,
    filesystem: Effect.map(held.opened, ({ filesystem }) => filesystem),
    snapshots: held.snapshots,
    services: held.services,
    clone: parts.clone
  }
  return Object.freeze(section) as Workspace<Needed<T, C, P>>
})

/** The options of a clone: for the other session, with the children cloned too. */
export const forSession = <O extends Pick<AnyCommon, "children" | "session">>(
  options: O,
  session: Session.Operations
): Effect.Effect<O, SectionError, Scope.Scope> =>
  Effect.map(Tree.clonedEach(options.children ?? [], session), (children) => ({ ...options, session, children }))
