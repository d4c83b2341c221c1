/**
 * A part of a prompt: text, tools, and perhaps the filesystem that these work on.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { SnapshotError } from "../history/errors.ts"
import type * as SnapshotStore from "../history/SnapshotStore.ts"
import type { FsError, Unsupported } from "../model/FsError.ts"
import type { SessionError } from "../model/sessionError.ts"
import type { MountError } from "../workspace/HostMount.ts"
import type * as Session from "../workspace/Session.ts"
import type { AnyDefinition, Requirements as ToolRequirements } from "./definition.ts"
import * as Digest from "./sections/digest.ts"
import * as Texts from "./sections/texts.ts"
import type { ToolContext } from "./ToolContext.ts"

export type {
  /** @since 0.1.0 */
  Workspace
} from "./sections/assemble.ts"
export {
  /** @since 0.1.0 */
  type FilesystemOptions,
  /** @since 0.1.0 */
  FilesystemSection
} from "./sections/custom.ts"
export {
  /** @since 0.1.0 */
  WorkspaceDigest
} from "./sections/digest.ts"
export {
  /** @since 0.1.0 */
  type PodmanOptions,
  /** @since 0.1.0 */
  type PodmanSandboxOptions,
  /** @since 0.1.0 */
  PodmanSandboxSection,
  /** @since 0.1.0 */
  PodmanSection
} from "./sections/podman.ts"
export {
  /** @since 0.1.0 */
  type VfsOptions,
  /** @since 0.1.0 */
  VfsSection,
  /** @since 0.1.0 */
  type VfsToolsOptions,
  /** @since 0.1.0 */
  VfsToolsSection
} from "./sections/vfs.ts"
export {
  /** @since 0.1.0 */
  type WorkspaceOptions,
  /** @since 0.1.0 */
  WorkspaceSection
} from "./sections/workspace.ts"

/**
 * What the making of a section can fail with.
 *
 * @since 0.1.0
 */
export type SectionError = FsError | Unsupported | SnapshotError | SessionError | MountError

/**
 * What `Prompt.render` is given.
 *
 * @since 0.1.0
 */
export type Params = Readonly<Record<string, unknown>>

/**
 * The services that every call of a tool of a prompt has.
 *
 * @since 0.1.0
 */
export type Given = Filesystem | ToolContext

/**
 * Any object of this shape is a section, and any with `filesystem` a workspace. `R` is the services that its tools, and those of the
 * sections below it, need and that it does not provide itself.
 *
 * @since 0.1.0
 */
export interface Section<out R = never> {
  /** 1 to 64 of lower case, digits, `_`, `-`, `.`, beginning with a letter; unique among its siblings. */
  readonly key: string
  readonly title: string
  /** Markdown, or what makes it at each rendering. */
  readonly template: string | ((params: Params) => Effect.Effect<string, SectionError>)
  readonly tools: ReadonlyArray<AnyDefinition<R | Given>>
  readonly children: ReadonlyArray<Section<R>>
  /** Whether a prompt may say other descriptions of its tools. */
  readonly acceptsOverrides: boolean
  /** Whose it is: in a run of another session its tools refuse. */
  readonly session?: Session.Operations | undefined
  /** Made at first use and kept until the section's scope ends; always the same one. */
  readonly filesystem?: Effect.Effect<Algebra, SectionError> | undefined
  /** Over the same filesystem, made at first use. */
  readonly snapshots?: Effect.Effect<SnapshotStore.Operations, SectionError> | undefined
  /** What else its tools get from the context, such as Sandbox and Snapshots. */
  readonly services?: Effect.Effect<Context.Context<never>, SectionError> | undefined
  /** The same section for another session. @default itself */
  readonly clone?: ((session: Session.Operations) => Effect.Effect<Section<R>, SectionError, Scope.Scope>) | undefined
}

/**
 * The services that the tools of a section need and that the section does not provide.
 *
 * @since 0.1.0
 */
export type Requirements<S extends Section<unknown>> = S extends Section<infer R> ? Exclude<R, Given> : never

/**
 * The services that a section needs which has tools `T`, sections `C` below it, and services `P` for its own tools.
 *
 * @since 0.1.0
 */
export type Needed<T extends AnyDefinition<unknown>, C extends Section<unknown>, P> =
  | Exclude<ToolRequirements<T>, P | Given>
  | Requirements<C>

type Defaulted = "tools" | "children" | "acceptsOverrides" | "services" | "clone"

/**
 * What a section is made of: tools `T`, sections `C` below it, and services `P` for its tools.
 *
 * @since 0.1.0
 */
export interface Options<
  T extends AnyDefinition<unknown> = AnyDefinition,
  C extends Section<unknown> = Section,
  P = never
> extends Omit<Section, Defaulted> {
  /** @default none */
  readonly tools?: ReadonlyArray<T> | undefined
  /** @default none */
  readonly children?: ReadonlyArray<C> | undefined
  /** @default false */
  readonly acceptsOverrides?: boolean | undefined
  /** Further services that its tools get from the context, such as Sandbox and Snapshots. @default nothing */
  readonly services?: Effect.Effect<Context.Context<P>, SectionError> | undefined
  /** The same section for another session. @default itself */
  readonly clone?:
    | ((session: Session.Operations) => Effect.Effect<Section<Needed<T, C, P>>, SectionError, Scope.Scope>)
    | undefined
}

/**
 * A section of one's own; with `filesystem` it is a workspace. What cannot be one, a prompt refuses.
 *
 * @since 0.1.0
 */
export const make = <T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section, P = never>(
  options: Options<T, C, P>
): Section<Needed<T, C, P>> => {
  const section: Section<unknown> = {
    ...options,
    tools: Object.freeze([...(options.tools ?? [])]),
    children: Object.freeze([...(options.children ?? [])]),
    acceptsOverrides: options.acceptsOverrides ?? false
  }
  return Object.freeze(section) as Section<Needed<T, C, P>>
}

/**
 * What a section of text is made of.
 *
 * @since 0.1.0
 */
export interface MarkdownOptions<
  T extends AnyDefinition<unknown> = AnyDefinition,
  C extends Section<unknown> = Section,
  P = never
> extends Omit<Options<T, C, P>, "key"> {
  /** Needed where the title has no Latin letters. @default the title in lower case, with "-" between its words */
  readonly key?: string | undefined
}

const keyOf = (title: string): string =>
  String(title)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^[0-9-]+|-+$/g, "")
    .slice(0, 64)

/**
 * Text, and perhaps tools.
 *
 * @since 0.1.0
 */
export const MarkdownSection = <
  T extends AnyDefinition<unknown> = AnyDefinition,
  C extends Section<unknown> = Section,
  P = never
>(
  options: MarkdownOptions<T, C, P>
): Section<Needed<T, C, P>> => make<T, C, P>({ ...options, key: options.key ?? keyOf(options.title) })

/**
 * Where the digest is, and of which section.
 *
 * @since 0.1.0
 */
export interface DigestOptions {
  readonly session: Session.Operations
  /** The key of the section that it is of. @default "workspace" */
  readonly section?: string | undefined
}

/**
 * What the session knows of a workspace, as a section of its own. The WorkspaceSection beside it needs `digest: false`, or it says the
 * same.
 *
 * @since 0.1.0
 */
export const WorkspaceDigestSection = ({ section = "workspace", session }: DigestOptions): Section =>
  make({
    key: "workspace-digest",
    title: "Workspace Digest",
    template: () => Effect.map(Digest.textOf(session, section), (text) => Texts.digest(text, undefined)),
    clone: (session) => Effect.succeed(WorkspaceDigestSection({ section, session }))
  })
