/**
 * Connects a model with the tools of a prompt. A run renders the prompt once, and then calls the prompt's tools by name, in one
 * session, with the model's input.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import type { Stdio } from "effect/Stdio"
import type * as Server from "effect/ai/McpServer"
import type * as Toolkit from "effect/ai/Toolkit"
import type * as HttpRouter from "effect/http/HttpRouter"
import { make as running } from "./adapter/run.ts"
import type { HttpOptions } from "./McpServer.ts"
import type { Adapter, Given, McpOptions, Prompt, PromptError, Run, RunOptions, RunTools, SectionError } from "./model.ts"
import type { ToolResult } from "./ToolResult.ts"

export type { Adapter, CallOptions, Elsewhere, McpOptions, Run, RunOptions as Options, RunTools } from "./model.ts"

/**
 * Makes a custom adapter. Pass the adapter to `run`, and call the tools of the returned run.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (name: string): Adapter => Object.freeze({ name })

/**
 * The services that the tools of a prompt get from the context in which the prompt runs.
 *
 * @since 0.1.0
 */
export type Needed<R> = Exclude<R, Given>

/**
 * Runs a prompt: makes its filesystem, renders the prompt, and serves calls of its tools until the scope closes. The tools get
 * the services they need from the surrounding context. Fails as `Prompt.filesystem` and `Prompt.render` do, and with SessionError
 * `invalid` for a checkpoint of another session.
 *
 * @category running
 * @since 0.1.0
 */
export const run = <R>(
  adapter: Adapter,
  prompt: Prompt<R>,
  options: RunOptions
): Effect.Effect<Run, PromptError | SectionError, Scope.Scope | Needed<R>> =>
  Effect.map(running(adapter, prompt, options), ({ run }) => run)

/**
 * One call in the script of a scripted adapter.
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
 * A call that a scripted adapter has made, with its result.
 *
 * @since 0.1.0
 */
export interface ScriptedTurn {
  readonly tool: string
  readonly input: unknown
  readonly result: ToolResult<unknown>
}

/**
 * The calls to make, in order, or a function that chooses the next call from the turns so far. The function returns `undefined`
 * to end the script.
 *
 * @since 0.1.0
 */
export type Script =
  | ReadonlyArray<ScriptedCall>
  | ((transcript: ReadonlyArray<ScriptedTurn>) => ScriptedCall | undefined | Effect.Effect<ScriptedCall | undefined>)

/**
 * An adapter that makes the calls of a script, for tests.
 *
 * @since 0.1.0
 */
export interface Scripted extends Adapter {
  /** Runs the script. Fails as `Adapter.run` does. A failed call does not end the script; its result is in the transcript. */
  readonly run: <R>(
    prompt: Prompt<R>,
    options: RunOptions
  ) => Effect.Effect<ReadonlyArray<ScriptedTurn>, PromptError | SectionError, Needed<R>>
}

/**
 * Makes an adapter that plays a written script in place of a model, for tests and examples.
 *
 * @example
 * ```ts
 * const session = yield* Session.make()
 * const files = yield* Section.VfsSection({ session })
 * const prompt = yield* Prompt.make({ ns: "agents", key: "writer", sections: [files] })
 * const call = { tool: "write_file", input: { path: "a.md", content: "one" } }
 * const transcript = yield* Adapter.scripted([call]).run(prompt, { session })
 * transcript.map(({ result }) => result.success) // => [true]
 * ```
 * @category constructors
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
            const chosenCall = typeof script === "function" ? script([...transcript]) : script[transcript.length]
            const next = Effect.isEffect(chosenCall) ? yield* chosenCall : chosenCall
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
 * A prompt that is served over MCP. Each way to serve starts a separate run. All runs and all clients share one session.
 *
 * @since 0.1.0
 */
export interface Mcp<out R = never> extends Adapter {
  /** Serves one client over standard input and output until the client disconnects. */
  readonly runStdio: Effect.Effect<void, PromptError | SectionError, Stdio | R>
  /** Serves one client as `runStdio` does, as a layer. The program goes on when the client disconnects. */
  readonly layerStdio: Layer.Layer<never, PromptError | SectionError, Stdio | R>
  /** Serves clients over HTTP. The HTTP server decides on which address it listens, and so which clients can reach it. */
  readonly layerHttp: (
    options?: Pick<HttpOptions, "path" | "allowedOrigins" | "maxSessions" | "sessionIdleTimeout">
  ) => Layer.Layer<never, PromptError | SectionError, HttpRouter.HttpRouter | R>
  /**
   * Registers the prompt on a server of effect/ai, for servers that also offer other tools, or use a transport other than
   * stdio and HTTP.
   */
  readonly registrations: Layer.Layer<never, PromptError | SectionError, Server.McpServer | R>
}

/** The server module, loaded on first use, because the server of effect/ai loads slowly. */
const serverModule = Effect.promise(() => import("./mcp/server.ts"))

/**
 * Makes an adapter that serves a prompt over the Model Context Protocol. Clients get the prompt's text, both as instructions and
 * as an MCP prompt. Clients also get the prompt's tools and, as resources, the files of its workspace.
 *
 * @category constructors
 * @since 0.1.0
 */
export const mcp = <R>(prompt: Prompt<R>, options: McpOptions): Mcp<Needed<R>> => {
  const runStdio: Mcp<Needed<R>>["runStdio"] = Effect.flatMap(serverModule, ({ planPrompt, serveStdio }) =>
    serveStdio(planPrompt(adapter, prompt, options))
  )
  const adapter: Mcp<Needed<R>> = Object.freeze<Mcp<Needed<R>>>({
    name: "mcp",
    runStdio,
    layerStdio: Layer.effectDiscard(Effect.forkScoped(runStdio)),
    layerHttp: (http = {}) =>
      Layer.unwrap(
        Effect.map(serverModule, ({ planPrompt, serveHttp }) => serveHttp(planPrompt(adapter, prompt, options), http))
      ),
    registrations: Layer.unwrap(
      Effect.map(serverModule, ({ planPrompt, registrationLayer }) => registrationLayer(planPrompt(adapter, prompt, options)))
    )
  })
  return adapter
}

/**
 * Converts the tools of a run to a toolkit of effect/ai with handlers, for
 * `LanguageModel.generateText({ prompt: run.rendered.text, toolkit })`.
 *
 * @since 0.1.0
 */
export const toolkit = (run: Run): Effect.Effect<Toolkit.WithHandler<RunTools>> =>
  Effect.flatMap(
    Effect.promise(() => import("./toolkit.ts")),
    ({ toolkit }) => toolkit(run)
  )
