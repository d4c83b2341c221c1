/**
 * A part of a prompt: text, tools, and perhaps the filesystem that these work on.
 *
 * @since 0.1.0
 */
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { SnapshotError } from "../history/errors.ts"
import type * as SnapshotStore from "../history/SnapshotStore.ts"
import type { FsError, Unsupported } from "../model/FsError.ts"
import type { SessionError } from "../model/sessionError.ts"
import type { MountError } from "../workspace/HostMount.ts"
import type * as Session from "../workspace/Session.ts"
import type { AnyDefinition } from "./definition.ts"

/** @since 0.1.0 */
export type SectionError = FsError | Unsupported | SnapshotError | SessionError | MountError

/** What `Prompt.render` is given. */
export type Params = Readonly<Record<string, unknown>>

/**
 * Any object of this shape is a section, and any with `filesystem` a workspace.
 *
 * @since 0.1.0
 */
export interface Section {
  /** 1 to 64 of lower case, digits, `_`, `-`, `.`, beginning with a letter; unique among its siblings. */
  readonly key: string
  readonly title: string
  /** Markdown, or what makes it at each rendering. */
  readonly template: string | ((params: Params) => Effect.Effect<string, SectionError>)
  readonly tools: ReadonlyArray<AnyDefinition>
  readonly children: ReadonlyArray<Section>
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
  readonly clone?: ((session: Session.Operations) => Effect.Effect<Section, SectionError, Scope.Scope>) | undefined
}
