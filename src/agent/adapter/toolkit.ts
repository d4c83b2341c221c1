import * as Effect from "effect/Effect"
import type * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import type { Run, RunTools } from "../Adapter.ts"
import { toTool } from "../toolkit.ts"

type Params = { readonly toolCallId?: string | undefined }

export const toolkit = (run: Run): Effect.Effect<Toolkit.WithHandler<RunTools>> => {
  const made = Toolkit.make(...run.tools.map(({ definition }) => toTool(definition, "run") as Tool.Any))
  const handlers = Object.fromEntries(
    run.tools.map(({ definition: { name } }) => [
      name,
      (params: unknown, { toolCallId }: Params) => run.call(name, params, { callId: toolCallId })
    ])
  )
  return Effect.flatMap(made.toHandlers(handlers), (context) =>
    Effect.provideContext(made, context)
  ) as unknown as Effect.Effect<Toolkit.WithHandler<RunTools>>
}
