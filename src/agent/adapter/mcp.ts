import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import * as Changes from "../mcp/plan.ts"
import { makeServing, type Plan } from "../mcp/plan.ts"
import type { Flow } from "../mcp/flow.ts"
import * as Resources from "../mcp/resources.ts"
import { registerPrompts } from "../mcp/resources.ts"
import type { ServerPlanner } from "../mcp/server.ts"
import * as Tools from "../mcp/tools.ts"
import type { Adapter, Given, McpOptions, Prompt as PromptOf, PromptError, SectionError } from "../model.ts"
import { mergeContexts } from "../policy/core.ts"
import * as Prompt from "../Prompt.ts"
import { make } from "./run.ts"

export const planServer =
  <R>(
    adapter: Adapter,
    prompt: PromptOf<R>,
    options: McpOptions
  ): ServerPlanner<PromptError | SectionError, Exclude<R, Given>> =>
  (flow: Flow) =>
    Effect.gen(function* () {
      const { invoke, run } = yield* make(adapter, prompt, options)
      const workspace = Option.getOrUndefined(Prompt.workspace(prompt))
      const workspaceServices = yield* Effect.option(workspace?.services ?? Effect.succeed(Context.empty()))
      const surroundingContext = yield* Effect.context<never>()
      // Use the section's own services, so that change notices leave out what its policies hide.
      const watchContext = Option.map(Option.all([run.context.filesystem, workspaceServices]), ([filesystem, services]) =>
        Context.add(mergeContexts(surroundingContext, services), Filesystem, filesystem)
      )
      const calls = yield* makeServing(flow, options.structured, (definition, input) => {
        const offered = run.tools.find((tool) => tool.definition === definition)
        // A definition outside the list of tools reads a resource; it runs in the workspace section.
        return offered === undefined ? invoke({ definition, section: workspace! }, input) : run.call(definition.name, input)
      })
      const register = Effect.gen(function* () {
        for (const { definition } of run.tools) yield* Tools.register(definition, calls)
        if (workspace !== undefined) yield* Resources.register(calls)
        yield* registerPrompts(run.rendered.text)
      })
      return {
        info: {
          name: options.name ?? prompt.name ?? prompt.key,
          version: options.version ?? "0.1.0",
          instructions: run.rendered.text
        },
        registrations: Layer.effectDiscard(register),
        changes: (subscribed) =>
          Option.match(watchContext, {
            onNone: () => Layer.empty,
            onSome: (context) => Layer.provide(Changes.layer(subscribed), Layer.succeedContext(context))
          })
      } satisfies Plan<never>
    })
