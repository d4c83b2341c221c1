/** The types of sections, prompts, adapters and tool contexts, in one file because they refer to one another. */
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
 * A budget and its remaining amount. Each result of a tool costs the size that `ToolSettings.measure` returns for its message.
 *
 * @since 0.1.0
 */
export interface BudgetTracker {
  readonly limit: number
  /** The remaining amount, at least 0. */
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
   * The filesystem of the tool's section or, if the section has none, of the prompt, with the policies applied. In `Run.context`,
   * this property is the filesystem that `Prompt.filesystem` returns, without policies.
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
 * The errors that can occur when a section, its filesystem or its text is made.
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
 * The services that every tool of a prompt gets.
 *
 * @since 0.1.0
 */
export type Given = Filesystem | ToolContext

/**
 * A section: any object of this shape. A section with a `filesystem` is a workspace. `R` is the services that the tools of the
 * section and of its children need, but the section does not provide.
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
  /** True if a prompt may override the descriptions of the section's tools. */
  readonly acceptsOverrides: boolean
  /** The session that owns the section. In a run of another session, the section's tools refuse calls. */
  readonly session?: Session.Operations | undefined
  /** The filesystem: always the same instance, opened at first use, and open until the section's scope closes. */
  readonly filesystem?: Effect.Effect<Algebra, SectionError> | undefined
  /** The snapshots of the filesystem, opened at first use. */
  readonly snapshots?: Effect.Effect<SnapshotStore.Operations, SectionError> | undefined
  /** True if tools outside the section work on its filesystem; `Prompt.make` then does not warn. @default false */
  readonly toolsElsewhere?: boolean | undefined
  /** Further services for the tools of the section, such as Sandbox and Snapshots. */
  readonly services?: Effect.Effect<Context.Context<never>, SectionError> | undefined
  /** Returns an equivalent section for another session. @default the section, with its children cloned */
  readonly clone?: ((session: Session.Operations) => Effect.Effect<Section<R>, SectionError, Scope.Scope>) | undefined
}

/**
 * The services that the tools of a section need, but the section does not provide.
 *
 * @since 0.1.0
 */
export type Requirements<S extends Section<unknown>> = S extends Section<infer R> ? Exclude<R, Given> : never

/**
 * The services that a section needs from outside. `T` is its tools, `C` its children, and `P` the services that it provides to
 * its tools.
 *
 * @since 0.1.0
 */
export type Needed<T extends AnyDefinition<unknown>, C extends Section<unknown>, P> =
  | Exclude<ToolRequirements<T>, P | Given>
  | Requirements<C>

/**
 * An error in the structure of a prompt. `duplicateTool`: two tools have the same name. `duplicateKey`: two sections of one
 * parent have the same key. `invalid`: a malformed key, namespace, name or title, or a section that contains itself. An override
 * is `invalid` if it is no valid description, if its tool is unknown, or if the tool's section does not accept overrides.
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
 * The parts of a prompt that are the same in every run. `R` is the services that its tools need, but its sections do not
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
  /** Replacement descriptions, by tool name. The section of each tool must accept overrides. */
  readonly overrides: Readonly<Record<string, string>>
  readonly deadline: Option.Option<DateTime.Utc>
}

/**
 * A tool of a rendered prompt, and the section it belongs to.
 *
 * @since 0.1.0
 */
export interface RenderedTool<out R = unknown> {
  /** The definition. If the prompt has an override for the tool, the description is the override. */
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
 * A program that sends a prompt to a model and runs the tools that the model calls.
 *
 * @category models
 * @since 0.1.0
 */
export interface Adapter {
  readonly name: string
}

/**
 * The options of a run: its session, parameters, deadline, budget and checkpoints.
 *
 * @since 0.1.0
 */
export interface RunOptions {
  readonly session: Session.Operations
  readonly params?: Params | undefined
  /**
   * The deadline of the run. The earlier of this deadline and the prompt's deadline applies. @default the deadline of the
   * prompt
   */
  readonly deadline?: DateTime.DateTime | undefined
  /** @default no bound */
  readonly budgetTracker?: BudgetTracker | undefined
  /**
   * The checkpoints of this run. A checkpoint with the id `pre:<tool>:<call id>` is taken before each call that may change
   * something. If the tool fails, dies or is interrupted, the checkpoint is rolled back and forgotten. A rollback restores the
   * checkpoint's session and the filesystem of its snapshots. @default none
   */
  readonly checkpoint?: Checkpoint.Operations | undefined
  /**
   * The number of checkpoints of successful calls to keep, at least 1. A further checkpoint replaces the oldest. @default 100
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
   * The context to which the call belongs. A context of another session is refused. The deadline and the budget of this context
   * apply in addition to the deadline and the budget of the run. @default the context of the run
   */
  readonly context?: RunContext | undefined
}

/**
 * A call whose work another program does, such as a tool built into a model's provider. Policies and events apply as to any
 * other call.
 *
 * `end`, `abort`, the deadline or the end of the run ends the call, whichever comes first. If the run has a `checkpoint`, every
 * ending except `end` rolls back the changes of the call, and also the changes that other calls made meanwhile.
 *
 * @since 0.1.0
 */
export interface Elsewhere {
  /**
   * Ends the call successfully and keeps its changes. Returns the result for the model. The result is a failure if the
   * deadline has passed.
   */
  readonly end: (result?: {
    readonly message?: string | undefined
    readonly value?: unknown
  }) => Effect.Effect<ToolResult<unknown>>
  /** Ends the call as failed, and rolls back its changes if the run has a `checkpoint`. Returns the result for the model. */
  readonly abort: (reason: string) => Effect.Effect<ToolResult<never>>
}

/**
 * One prompt that runs in one session.
 *
 * A call uses the policies, settings and listeners in the contexts of the run and of the call. All calls on one
 * filesystem share a record of the file versions that were read. Closing the scope ends the running calls of `begin`, and later
 * calls are refused.
 *
 * @since 0.1.0
 */
export interface Run {
  readonly rendered: RenderedPrompt
  readonly context: RunContext
  /** The tools to offer to a model: the rendered tools, without those that a policy hides. */
  readonly tools: ReadonlyArray<RenderedTool>
  /** Calls a tool. Never fails: an unknown tool, invalid input and a failed tool return a result without success. */
  readonly call: (tool: string, input: unknown, options?: CallOptions) => Effect.Effect<ToolResult<unknown>>
  /** Begins a call whose work another program does. If the call is refused, fails with the result of the refusal. */
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
  /** True if results contain structured content, as `McpServer.Options` describes. @default false */
  readonly structured?: boolean | undefined
}

/**
 * The type of a prompt's tools in a toolkit of effect.
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
