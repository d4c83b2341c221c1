/**
 * A part of a prompt: text, tools, and optionally the filesystem that the tools work on.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Session from "../workspace/Session.ts"
import type { AnyDefinition } from "./definition.ts"
import type { Needed, Section, SectionError } from "./model.ts"
import * as Digest from "./sections/workspace.ts"
import * as Texts from "./sections/texts.ts"

export type { Given, Needed, Params, Requirements, Section, SectionError } from "./model.ts"
export type { Workspace } from "./sections/assemble.ts"
export { type FilesystemOptions, FilesystemSection } from "./sections/workspace.ts"
export { WorkspaceDigest } from "./sections/workspace.ts"
export {
  /**
   * The tools of `VfsToolsSection`: `list_directory`, `read_file`, `write_file`, `delete_file`. A prompt cannot have both these
   * tools and `sevenTools`, because some of their names are the same.
   *
   * @since 0.1.0
   */
  four as fourTools,
  /**
   * The tools `shell` and `eval`. The section of a container has these tools in addition to `sevenTools`. These tools need a
   * Sandbox, which the
   * `layer` of a FilesystemSection can provide.
   *
   * @since 0.1.0
   */
  sandboxTools,
  /**
   * The tools of most sections: `ls`, `read_file`, `write_file`, `edit_file`, `glob`, `grep`, `rm`.
   *
   * @since 0.1.0
   */
  seven as sevenTools
} from "./kits.ts"
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
export { type WorkspaceOptions, WorkspaceSection } from "./sections/workspace.ts"

type Defaulted = "tools" | "children" | "acceptsOverrides" | "services" | "clone"

/**
 * The options of a section: tools `T`, children `C`, and services `P` for its tools.
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
  /** Further services for the tools of the section, such as Sandbox and Snapshots. @default nothing */
  readonly services?: Effect.Effect<Context.Context<P>, SectionError> | undefined
  /** Returns an equivalent section for another session. @default the section, with its children cloned */
  readonly clone?:
    | ((session: Session.Operations) => Effect.Effect<Section<Needed<T, C, P>>, SectionError, Scope.Scope>)
    | undefined
}

/**
 * Makes a custom section. A section with a `filesystem` is a workspace. `Prompt.make` refuses an invalid section.
 *
 * @category constructors
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
 * The options of a section of text.
 *
 * @since 0.1.0
 */
export interface MarkdownOptions<
  T extends AnyDefinition<unknown> = AnyDefinition,
  C extends Section<unknown> = Section,
  P = never
> extends Omit<Options<T, C, P>, "key"> {
  /**
   * The key, which is required if the title has no Latin letters. @default the title in lower case, with "-" between its words
   */
  readonly key?: string | undefined
}

const keyOf = (title: string): string =>
  String(title)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^[0-9-]+|-+$/g, "")
    .slice(0, 64)

/**
 * Makes a section of text, optionally with tools.
 *
 * @example
 * ```ts
 * const task = Section.MarkdownSection({ title: "Your Task", template: "Shorten the guide." })
 * task.key // => "your-task"
 * ```
 * @category constructors
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
 * The options of a digest: the session that stores it, and the key of the section that it describes.
 *
 * @since 0.1.0
 */
export interface DigestOptions {
  readonly session: Session.Operations
  /** The key of the section that the digest describes. @default "workspace" */
  readonly section?: string | undefined
}

/**
 * Makes a section that shows a workspace digest, which is a summary stored in the session. Set `digest: false` on the
 * WorkspaceSection of the same prompt; otherwise both sections show the digest.
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
