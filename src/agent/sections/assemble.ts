import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { InvalidArgument } from "../../model/FsError.ts"
import { root } from "../../model/FsPath.ts"
import type * as Session from "../../workspace/Session.ts"
import type { AnyDefinition } from "../definition.ts"
import type { Needed, Params, Section, SectionError } from "../Section.ts"
import { withOverride, type Overrides, overrideFault } from "./check.ts"
import type { HeldFilesystem, SharedFilesystem } from "./holder.ts"
import * as Tree from "./tree.ts"

/** The options that sections with a filesystem share. `T` is the type of your own tools, `C` of the children. */
export interface CommonOptions<T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section> {
  /** The session that owns the section; in another session its tools refuse calls. @default any session */
  readonly session?: Session.Operations | undefined
  /**
   * The absolute directory where `snapshots` keeps its archives; they stay there.
   * @default a temporary directory, removed with the filesystem
   */
  readonly snapshotDirectory?: string | undefined
  /** True to include `snapshot`, `snapshots`, `restore` and `diff`. @default false */
  readonly snapshotTools?: boolean | undefined
  /** Tools of your own, beside those of the section. @default none */
  readonly tools?: ReadonlyArray<T> | undefined
  /** @default none */
  readonly children?: ReadonlyArray<C> | undefined
  /** True if `overrides` here and the prompt may replace the descriptions of its tools. @default false */
  readonly acceptsOverrides?: boolean | undefined
  /** Descriptions that replace those of tools, by tool name. Needs `acceptsOverrides`. @default none */
  readonly overrides?: Overrides | undefined
}

export const invalid = (argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation: "Section", path: root, argument, detail })

type AnyCommonOptions = CommonOptions<AnyDefinition<unknown>, Section<unknown>>

const toolsOf = Effect.fnUntraced(function* (own: ReadonlyArray<AnyDefinition<unknown>>, options: AnyCommonOptions) {
  const { acceptsOverrides = false, overrides = {}, snapshotTools = false } = options
  const { snapshotTools: extraTools } = snapshotTools
    ? yield* Effect.promise(() => import("../tools.ts"))
    : { snapshotTools: [] as ReadonlyArray<AnyDefinition> }
  const tools = [...own, ...extraTools, ...(options.tools ?? [])]
  for (const name of Object.keys(overrides)) {
    const why = overrideFault({ acceptsOverrides, tools }, name, overrides)
    if (why !== undefined) return yield* Effect.fail(invalid("overrides", why))
  }
  return tools.map((tool) => withOverride(tool, overrides) ?? tool)
})

export interface SectionParts<R> {
  readonly key: string
  readonly title: string
  readonly tools: ReadonlyArray<AnyDefinition<unknown>>
  /** @default false */
  readonly toolsElsewhere?: boolean | undefined
  readonly sharedFilesystem: SharedFilesystem
  readonly text: (heldFilesystem: HeldFilesystem, params: Params) => Effect.Effect<string, SectionError>
  readonly clone: Workspace<R>["clone"]
}

/**
 * A section with a filesystem, its snapshots, and the services that its tools need.
 *
 * @since 0.1.0
 */
export interface Workspace<out R = never> extends Section<R> {
  readonly filesystem: NonNullable<Section["filesystem"]>
  readonly snapshots: NonNullable<Section["snapshots"]>
  readonly services: NonNullable<Section["services"]>
  readonly clone: (session: Session.Operations) => Effect.Effect<Workspace<R>, SectionError, Scope.Scope>
}

/** Assembles the section. `P` is the services that the holder provides to the section's own tools. */
export const assemble = Effect.fnUntraced(function* <T extends AnyDefinition<unknown>, C extends Section<unknown>, P>(
  parts: SectionParts<Needed<T, C, P>>,
  options: CommonOptions<T, C>
): Effect.fn.Return<Workspace<Needed<T, C, P>>, SectionError, Scope.Scope> {
  const tools = yield* toolsOf(parts.tools, options)
  const heldFilesystem = yield* parts.sharedFilesystem
  const section: Workspace<unknown> = {
    key: parts.key,
    title: parts.title,
    template: (params: Params) => parts.text(heldFilesystem, params),
    tools: Object.freeze(tools),
    children: Object.freeze([...(options.children ?? [])]),
    acceptsOverrides: options.acceptsOverrides ?? false,
    session: options.session,
    toolsElsewhere: parts.toolsElsewhere ?? false,
    filesystem: Effect.map(heldFilesystem.opened, ({ filesystem }) => filesystem),
    snapshots: heldFilesystem.snapshots,
    services: heldFilesystem.services,
    clone: parts.clone
  }
  return Object.freeze(section) as Workspace<Needed<T, C, P>>
})

export const forSession = <O extends Pick<AnyCommonOptions, "children" | "session">>(
  options: O,
  session: Session.Operations
): Effect.Effect<O, SectionError, Scope.Scope> =>
  Effect.map(Tree.cloneSections(options.children ?? [], session), (children) => ({ ...options, session, children }))
