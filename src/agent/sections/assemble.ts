/** A section from what it works on, what it says and which tools it has. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { InvalidArgument } from "../../model/FsError.ts"
import { root } from "../../model/FsPath.ts"
import type * as Session from "../../workspace/Session.ts"
import type { AnyDefinition } from "../definition.ts"
import type { Params, Section, SectionError } from "../Section.ts"
import { overridden, type Overrides, whyNotOverridden } from "./check.ts"
import type { Held, Holder } from "./holder.ts"
import * as Tree from "./tree.ts"

export interface Common {
  /** Whose the section is: with another session its tools refuse to work. @default anybody's */
  readonly session?: Session.Operations | undefined
  /**
   * Absolute: where `snapshots` keeps its archives, which stay there. @default a temporary directory, which goes with the filesystem
   */
  readonly snapshotDirectory?: string | undefined
  /** Also `snapshot`, `snapshots`, `restore` and `diff`. @default false */
  readonly snapshotTools?: boolean | undefined
  /** Tools of one's own, beside those of the section. @default none */
  readonly tools?: ReadonlyArray<AnyDefinition> | undefined
  /** @default none */
  readonly children?: ReadonlyArray<Section> | undefined
  /** Whether descriptions of its tools can be said here, and by the prompt. @default false */
  readonly acceptsOverrides?: boolean | undefined
  /** Descriptions of tools, by their names. Needs `acceptsOverrides`. @default none */
  readonly overrides?: Overrides | undefined
}

export const invalid = (argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation: "Section", path: root, argument, detail })

/** With the descriptions that are in force. */
const toolsOf = Effect.fnUntraced(function* (own: ReadonlyArray<AnyDefinition>, options: Common) {
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

export interface Parts {
  readonly key: string
  readonly title: string
  readonly tools: ReadonlyArray<AnyDefinition>
  readonly holder: Holder
  readonly text: (held: Held, params: Params) => Effect.Effect<string, SectionError>
  readonly clone: Workspace["clone"]
}

/**
 * A section that has a filesystem, with snapshots of it and what else its tools need.
 *
 * @since 0.1.0
 */
export interface Workspace extends Section {
  readonly filesystem: NonNullable<Section["filesystem"]>
  readonly snapshots: NonNullable<Section["snapshots"]>
  readonly services: NonNullable<Section["services"]>
  readonly clone: (session: Session.Operations) => Effect.Effect<Workspace, SectionError, Scope.Scope>
}

export const assemble = Effect.fnUntraced(function* (
  parts: Parts,
  options: Common
): Effect.fn.Return<Workspace, SectionError, Scope.Scope> {
  const tools = yield* toolsOf(parts.tools, options)
  const held = yield* parts.holder
  return Object.freeze({
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
  })
})

/** The options of a clone: for the other session, with the children cloned too. */
export const forSession = <O extends Pick<Common, "children" | "session">>(
  options: O,
  session: Session.Operations
): Effect.Effect<O, SectionError, Scope.Scope> =>
  Effect.map(Tree.clonedEach(options.children ?? [], session), (children) => ({ ...options, session, children }))
