/** The types that sections, prompts, adapters and the context of a tool share. They refer to one another, so one file holds them. */
import * as Context from "effect/Context"
import type * as DateTime from "effect/DateTime"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type * as Tool from "effect/ai/Tool"
import type { Algebra, Filesystem } from "../filesystem/Filesystem.ts"
import type { SnapshotError } from "../history/errors.ts"
import type * as SnapshotStore from "../history/SnapshotStore.ts"
import type { FsError, Unsupported } from "../model/FsError.ts"
import type { SessionError } from "../model/sessionError.ts"
import type * as Checkpoint from "../workspace/Checkpoint.ts"
import type { MountError } from "../workspace/HostMount.ts"
import type * as Session from "../workspace/Session.ts"
import type { AnyDefinition, Requirements as ToolRequirements } from "./definition.ts"
import type { ToolResult } from "./ToolResult.ts"

/**
 * A budget and how much of it is left, in any unit. Results of tools are counted as ToolSettings measure them.
 *
 * @since 0.1.0
 */
export interface BudgetTracker {
  readonly limit: number
  /** The amount that is left, never below 0. */
  readonly left: Effect.Effect<number>
  /** Spends an amount. An amount above the remaining budget leaves 0. */
  readonly spend: (amount: number) => Effect.Effect<void>
}

/**
 * The context of a call, as its tool sees it.
 *
 * @since 0.1.0
 */
export interface RunContext {
  readonly prompt: Prompt<unknown>
  readonly renderedPrompt: Option.Option<RenderedPrompt>
  readonly adapter: Adapter
  readonly session: Session.Operations
  readonly deadline: Option.Option<DateTime.Utc>
  readonly budgetTracker: Option.Option<BudgetTracker>
  /**
   * The filesystem of the tool's section, or else of the prompt, with the policies applied. The filesystem that `prompt` gives
   * has no policies.
   */
  readonly filesystem: Option.Option<Algebra>
}

/**
 * The service through which a tool reads its context.
 *
 * @category services
 * @since 0.1.0
 */
export class ToolContext extends Context.Service<ToolContext, RunContext>()("fs-algebra/ToolContext") {}

/**
 * The errors of making a section.
 *
 * @since 0.1.0
 */
export type SectionError = FsError | Unsupported | SnapshotError | SessionError | MountError

/**
 * The parameters of `Prompt.render`.
 *
 * @since 0.1.0
 */
export type Params = Readonly<Record<string, unknown>>

/**
 * The services that every call of a prompt's tool has.
 *
 * @since 0.1.0
 */
export type Given = Filesystem | ToolContext

/**
 * A section: any object of this shape. With `filesystem` it is a workspace. `R` is the services that its tools, and those of
 * its children, need and that it does not provide.
 *
 * @category models
 * @since 0.1.0
 */
export interface Section<out R = never> {
  /** The key: 1 to 64 lower-case letters, digits, `_`, `-` and `.`, beginning with a letter; unique among its siblings. */
  readonly key: string
  readonly title: string
  /** Markdown, or a function that returns Markdown at each rendering. */
  readonly template: string | ((params: Params) => Effect.Effect<string, SectionError>)
  readonly tools: ReadonlyArray<AnyDefinition<R | Given>>
  readonly children: ReadonlyArray<Section<R>>
  /** True if a prompt may override the descriptions of its tools. */
  readonly acceptsOverrides: boolean
  /** The session that owns the section; in a run of another session its tools refuse calls. */
  readonly session?: Session.Operations | undefined
  /** The filesystem, always the same instance. It is made at first use and kept until the section's scope ends. */
  readonly filesystem?: Effect.Effect<Algebra, SectionError> | undefined
  /** The snapshots of the filesystem, made at first use. */
  readonly snapshots?: Effect.Effect<SnapshotStore.Operations, SectionError> | undefined
  /** True if tools outside the section work on its filesystem; `Prompt.make` then does not warn. @default false */
  readonly toolsElsewhere?: boolean | undefined
  /** Further services for its tools, such as Sandbox and Snapshots. */
  readonly services?: Effect.Effect<Context.Context<never>, SectionError> | undefined
  /** Makes the same section for another session. @default itself */
  readonly clone?: ((session: Session.Operations) => Effect.Effect<Section<R>, SectionError, Scope.Scope>) | undefined
}

/**
 * The services that the tools of a section need and the section does not provide.
 *
 * @since 0.1.0
 */
export type Requirements<S extends Section<unknown>> = S extends Section<infer R> ? Exclude<R, Given> : never

/**
 * The services that a section needs, given its tools `T`, its children `C` and the services `P` it provides to its own tools.
 *
 * @since 0.1.0
 */
export type Needed<T extends AnyDefinition<unknown>, C extends Section<unknown>, P> =
  | Exclude<ToolRequirements<T>, P | Given>
  | Requirements<C>

/**
 * An error in the structure of a prompt. `duplicateTool`: two tools have one name. `duplicateKey`: two sections of one parent
 * have one key. `invalid`: a malformed key, namespace, title or tool name, or an override whose tool is unknown or in a section
 * that accepts none.
 *
 * @category errors
 * @since 0.1.0
 */
export class PromptError extends Schema.TaggedError<PromptError>("fs-algebra/PromptError")("PromptError", {
  reason: Schema.Literals(["duplicateTool", "duplicateKey", "invalid"]),
  detail: Schema.String
}) {
  override get message(): string {
    return this.detail
  }
}

/**
 * The parts of a prompt that are the same in every run. `R` is the services that its tools need and its sections do not
 * provide.
 *
 * @since 0.1.0
 */
export interface Template<out R = never> {
  /** The namespace, such as `agents/coder`. */
  readonly ns: string
  readonly key: string
  readonly name?: string | undefined
  readonly sections: ReadonlyArray<Section<R>>
}

/**
 * A template with the overrides and the deadline of one run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Prompt<out R = never> extends Template<R> {
  /** Descriptions that replace those of tools, by tool name, in sections that accept overrides. */
  readonly overrides: Readonly<Record<string, string>>
  readonly deadline: Option.Option<DateTime.Utc>
}

/**
 * A tool of a rendered prompt, and the section it belongs to.
 *
 * @since 0.1.0
 */
export interface RenderedTool<out R = unknown> {
  /** The definition, with its description overridden if the prompt does so. */
  readonly definition: AnyDefinition<R | Given>
  readonly section: Section<R>
}

/**
 * A prompt in the form that a model receives: its text and its tools.
 *
 * @since 0.1.0
 */
export interface RenderedPrompt<out R = unknown> {
  readonly prompt: Prompt<R>
  /** The text, in Markdown. */
  readonly text: string
  /** The tools of all sections, in the order of the sections. */
  readonly tools: ReadonlyArray<RenderedTool<R>>
  readonly deadline: Option.Option<DateTime.Utc>
}

/**
 * A program that brings a prompt to a model and runs the tools that the model calls.
 *
 * @category models
 * @since 0.1.0
 */
export interface Adapter {
  readonly name: string
}

/**
 * The session, deadline and budget of a run.
 *
 * @since 0.1.0
 */
export interface RunOptions {
  readonly session: Session.Operations
  readonly params?: Params | undefined
  /** The deadline of the run; the earlier of this one and the prompt's applies. @default the prompt's */
  readonly deadline?: DateTime.DateTime | undefined
  /** @default no bound */
  readonly budgetTracker?: BudgetTracker | undefined
  /**
   * The checkpoints of this run. One is taken before each tool that may change something, with the id `pre:<tool>:<call id>`.
   * If the tool fails, dies or is interrupted, the checkpoint is rolled back and forgotten. A rollback restores the
   * checkpoint's session and the filesystem of its snapshots. @default none
   */
  readonly checkpoint?: Checkpoint.Operations | undefined
  /**
   * The number of checkpoints of successful calls to keep, at least 1. The oldest are removed when the next is taken. Each
   * holds the changes since the one before; for a VfsState each holds a whole copy. @default 100
   */
  readonly keep?: number | undefined
}

/**
 * The id and the context of a call.
 *
 * @since 0.1.0
 */
export interface CallOptions {
  /** @default a new UUID */
  readonly callId?: string | undefined
  /**
   * The context that the call belongs to. The tools of a section refuse a context of another session. Its deadline and budget
   * apply in addition to those of the run. @default the run's own
   */
  readonly context?: RunContext | undefined
}

/**
 * A call whose work another program does, such as a tool built into a model's provider. The call is checked by policies and
 * remembered like any other.
 *
 * It ends once: by `end`, `abort`, its deadline, or the end of the run, whichever comes first. All but `end` roll back its
 * changes. Meanwhile other calls can change the files too; a rollback undoes their changes as well.
 *
 * @since 0.1.0
 */
export interface Elsewhere {
  /**
   * Ends the call successfully and keeps its changes. Returns the message for the model, which is a failure if the
   * deadline has passed.
   */
  readonly end: (result?: {
    readonly message?: string | undefined
    readonly value?: unknown
  }) => Effect.Effect<ToolResult<unknown>>
  /** Ends the call as failed and rolls back its changes. Returns the message for the model. */
  readonly abort: (reason: string) => Effect.Effect<ToolResult<never>>
}

/**
 * One prompt that runs in one session.
 *
 * A call uses the policies, settings and listeners in the contexts of the run and of the call. All calls share the
 * record of the file versions that were read. When the scope closes, calls that have begun and not ended are aborted.
 *
 * @since 0.1.0
 */
export interface Run {
  readonly rendered: RenderedPrompt
  readonly context: RunContext
  /** The tools that a model may be offered: the rendered tools without those that a policy hides from lists. */
  readonly tools: ReadonlyArray<RenderedTool>
  /** Calls a tool and never fails. An unknown tool, input that does not decode and a failed tool are results. */
  readonly call: (tool: string, input: unknown, options?: CallOptions) => Effect.Effect<ToolResult<unknown>>
  /** Begins a call whose work another program does. Fails with the result of a refusal. */
  readonly begin: (tool: string, input: unknown, options?: CallOptions) => Effect.Effect<Elsewhere, ToolResult<never>>
}

/**
 * The options of a run, and the name and version of its MCP server.
 *
 * @since 0.1.0
 */
export interface McpOptions extends RunOptions {
  /** The name of the server. @default the prompt's name, or its key */
  readonly name?: string | undefined
  /** The version of the server. @default "0.1.0" */
  readonly version?: string | undefined
  /** True to send values as structured content, as `McpServer.Options` describes. @default false */
  readonly structured?: boolean | undefined
}

/**
 * The tools of a prompt as an effect toolkit types them.
 *
 * @since 0.1.0
 */
export type RunTools = Record<
  string,
  Tool.Tool<
    string,
    {
      readonly parameters: Schema.Codec<Readonly<Record<string, unknown>>>
      readonly success: Schema.Codec<ToolResult<unknown>, unknown>
      readonly failure: typeof Schema.Never
      readonly failureMode: "return"
    }
  >
>
