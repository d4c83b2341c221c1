/**
 * Between a model and the tools of a prompt: an adapter renders the prompt once, and calls tools in its session by name with whatever the
 * model has sent.
 *
 * @since 0.1.0
 */
import type * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { Stdio } from "effect/Stdio"
import type * as Server from "effect/ai/McpServer"
import type * as Tool from "effect/ai/Tool"
import type * as Toolkit from "effect/ai/Toolkit"
import type * as HttpRouter from "effect/http/HttpRouter"
import type * as Session from "../workspace/Session.ts"
import type * as Checkpoint from "../workspace/Checkpoint.ts"
import { make as running } from "./adapter/run.ts"
import type { HttpOptions } from "./McpServer.ts"
import type { Given, Params, SectionError } from "./Section.ts"
import type { Prompt, PromptError, RenderedPrompt, RenderedTool } from "./Prompt.ts"
import type { BudgetTracker, Operations } from "./ToolContext.ts"
import type { ToolResult } from "./ToolResult.ts"

/**
 * Who brings a prompt to a model and runs the tools that it asks for.
 *
 * @since 0.1.0
 */
export interface Adapter {
  readonly name: string
}

/**
 * In which session a prompt runs, until when and for how much.
 *
 * @since 0.1.0
 */
export interface Options {
  readonly session: Session.Operations
  readonly params?: Params | undefined
  /** The earlier of this and the prompt's. @default the prompt's */
  readonly deadline?: DateTime.DateTime | undefined
  /** @default no bound */
  readonly budgetTracker?: BudgetTracker | undefined
  /**
   * Taken before each tool that may change something, by the id `pre:<tool>:<call id>`; rolled back, and forgotten, where the tool
   * fails, dies or is interrupted. It brings back what it covers: its session, and the filesystem that its snapshots are of. @default none
   */
  readonly checkpoint?: Checkpoint.Operations | undefined
  /**
   * How many checkpoints of calls that went well stay, at least 1: the oldest go when the next is taken. Each holds what changed since the
   * one before it, and of a VfsState a whole copy. @default 100
   */
  readonly keep?: number | undefined
}

/**
 * Of whom and within what a call of a tool is.
 *
 * @since 0.1.0
 */
export interface CallOptions {
  /** @default a new UUID */
  readonly callId?: string | undefined
  /**
   * Of whom the call is; the tools of a section refuse a context of another session. Its deadline and its budget count beside those of
   * the run. @default the run's own
   */
  readonly context?: Operations | undefined
}

/**
 * A tool that somebody else runs, such as one built into a model's provider: it is judged and remembered as if we had run it. It ends
 * once, by whatever comes first: `end`, `abort`, its deadline, or the end of the run, which take back all but the first. Whoever runs
 * it gets at the files meanwhile, and so do others; what they change is taken back with it.
 *
 * @since 0.1.0
 */
export interface Elsewhere {
  /** It has ended well: what it changed stays. Answers what to tell the model, which is a failure where its time was over before. */
  readonly end: (result?: {
    readonly message?: string | undefined
    readonly value?: unknown
  }) => Effect.Effect<ToolResult<unknown>>
  /** It has failed: what it changed is taken back. Answers what to tell the model. */
  readonly abort: (reason: string) => Effect.Effect<ToolResult<never>>
}

/**
 * One prompt at work in one session. Its calls go by the policies, settings and listeners that are around where it is made, and those
 * around the call; they share what has been read of each filesystem. What was begun and not ended when its scope closes is aborted.
 *
 * @since 0.1.0
 */
export interface Run {
  readonly rendered: RenderedPrompt
  readonly context: Operations
  /** What a model may be offered: the rendered tools without those that a policy keeps off lists. */
  readonly tools: ReadonlyArray<RenderedTool>
  /** Never fails: a tool that is not there, what does not decode, and what failed are results. */
  readonly call: (tool: string, input: unknown, options?: CallOptions) => Effect.Effect<ToolResult<unknown>>
  /** Fails with the result of a refusal. */
  readonly begin: (tool: string, input: unknown, options?: CallOptions) => Effect.Effect<Elsewhere, ToolResult<never>>
}

/**
 * One's own: `run` is what it calls tools with.
 *
 * @since 0.1.0
 */
export const make = (name: string): Adapter => Object.freeze({ name })

/**
 * The services that the tools of a prompt take from where the prompt is put to work.
 *
 * @since 0.1.0
 */
export type Needed<R> = Exclude<R, Given>

/**
 * Puts a prompt to work: makes its filesystem, renders it, and answers what calls its tools, until the scope closes. The services that
 * its tools need are taken from here. Fails as `Prompt.filesystem` and `Prompt.render` do, and with SessionError `invalid` for a
 * checkpoint of another session.
 *
 * @since 0.1.0
 */
export const run = <R>(
  adapter: Adapter,
  prompt: Prompt<R>,
  options: Options
): Effect.Effect<Run, PromptError | SectionError, Scope.Scope | Needed<R>> =>
  Effect.map(running(adapter, prompt, options), ({ run }) => run)

/**
 * A call that a scripted adapter makes.
 *
 * @since 0.1.0
 */
export interface ScriptedCall {
  readonly tool: string
  readonly input: unknown
  /** @default a new UUID */
  readonly callId?: string | undefined
}

/**
 * A call that a scripted adapter has made, and its answer.
 *
 * @since 0.1.0
 */
export interface ScriptedTurn {
  readonly tool: string
  readonly input: unknown
  readonly result: ToolResult<unknown>
}

/**
 * What to call, one after the other; or what says the next by what has been answered so far, `undefined` to end.
 *
 * @since 0.1.0
 */
export type Script =
  | ReadonlyArray<ScriptedCall>
  | ((transcript: ReadonlyArray<ScriptedTurn>) => ScriptedCall | undefined | Effect.Effect<ScriptedCall | undefined>)

/**
 * An adapter that makes the calls that it was given, for tests.
 *
 * @since 0.1.0
 */
export interface Scripted extends Adapter {
  /** Fails as the `run` of this module does; what tools fail with is in the transcript. */
  readonly run: <R>(
    prompt: Prompt<R>,
    options: Options
  ) => Effect.Effect<ReadonlyArray<ScriptedTurn>, PromptError | SectionError, Needed<R>>
}

/**
 * A model whose part is written down, for tests and examples.
 *
 * @since 0.1.0
 */
export const scripted = (script: Script): Scripted => {
  const adapter: Scripted = Object.freeze<Scripted>({
    name: "scripted",
    run: (prompt, options) =>
      Effect.scoped(
        Effect.gen(function* () {
          const { call } = yield* run(adapter, prompt, options)
          const transcript: Array<ScriptedTurn> = []
          while (true) {
            const said = typeof script === "function" ? script([...transcript]) : script[transcript.length]
            const next = Effect.isEffect(said) ? yield* said : said
            if (next === undefined) return transcript
            const { callId, input, tool } = next
            transcript.push({ tool, input, result: yield* call(tool, input, { callId }) })
          }
        })
      )
  })
  return adapter
}

/**
 * The options of a run, and what the MCP server says of itself.
 *
 * @since 0.1.0
 */
export interface McpOptions extends Options {
  /** What the server calls itself. @default the prompt's name, or its key */
  readonly name?: string | undefined
  /** Of the server. @default "0.1.0" */
  readonly version?: string | undefined
  /** Send values as structured content, as `McpServer.Options` says. @default false */
  readonly structured?: boolean | undefined
}

/**
 * A prompt that is served. Each of these is a run of its own, in the one session, which all its clients share.
 *
 * @since 0.1.0
 */
export interface Mcp<out R = never> extends Adapter {
  /** Serves one client over standard input and output until it hangs up. */
  readonly runStdio: Effect.Effect<void, PromptError | SectionError, Stdio | R>
  /** The same as a layer, which ends nothing when the client hangs up. */
  readonly layerStdio: Layer.Layer<never, PromptError | SectionError, Stdio | R>
  /** Where the server listens, and who may reach it, is for the HTTP server to say. */
  readonly layerHttp: (
    options?: Pick<HttpOptions, "path" | "allowedOrigins" | "maxSessions" | "sessionIdleTimeout">
  ) => Layer.Layer<never, PromptError | SectionError, HttpRouter.HttpRouter | R>
  /** For a server of effect/ai that has other things too, or another transport. */
  readonly registrations: Layer.Layer<never, PromptError | SectionError, Server.McpServer | R>
}

/** A server of effect/ai takes as long to load as all the rest. */
const served = Effect.promise(() => Promise.all([import("./mcp/server.ts"), import("./adapter/mcp.ts")]))

/**
 * Serves a prompt over the Model Context Protocol: its text as instructions and as the one prompt, its tools, and the files of its
 * workspace, where it has one, as resources.
 *
 * @since 0.1.0
 */
export const mcp = <R>(prompt: Prompt<R>, options: McpOptions): Mcp<Needed<R>> => {
  const runStdio: Mcp<Needed<R>>["runStdio"] = Effect.flatMap(served, ([{ overStdio }, { planning }]) =>
    overStdio(planning(adapter, prompt, options))
  )
  const adapter: Mcp<Needed<R>> = Object.freeze<Mcp<Needed<R>>>({
    name: "mcp",
    runStdio,
    layerStdio: Layer.effectDiscard(Effect.forkScoped(runStdio)),
    layerHttp: (http = {}) =>
      Layer.unwrap(Effect.map(served, ([{ overHttp }, { planning }]) => overHttp(planning(adapter, prompt, options), http))),
    registrations: Layer.unwrap(
      Effect.map(served, ([{ registered }, { planning }]) => registered(planning(adapter, prompt, options)))
    )
  })
  return adapter
}

/**
 * The tools of a prompt, as effect's toolkits have them.
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

/**
 * The tools of a run as a toolkit of effect/ai, with their handlers: for
 * `LanguageModel.generateText({ prompt: run.rendered.text, toolkit })`.
 *
 * @since 0.1.0
 */
export const toolkit = (run: Run): Effect.Effect<Toolkit.WithHandler<RunTools>> =>
  Effect.flatMap(
    Effect.promise(() => import("./adapter/toolkit.ts")),
    ({ toolkit }) => toolkit(run)
  )
