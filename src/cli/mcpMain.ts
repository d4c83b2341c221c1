/** The mcp command alone, for a command line that was read by mcpArgs.ts. */
import * as Effect from "effect/Effect"
import { Limits } from "../model/Limits.ts"
import { ended } from "./ended.ts"
import { reported } from "./failure.ts"
import { limits } from "./limits.ts"
import type { Quick } from "./mcpArgs.ts"
import { serve } from "./mcpServe.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"
import { workspaceLayer } from "./workspace.ts"

export const run = (
  { backend, input, root }: Quick,
  { version }: { readonly version: string }
): Effect.Effect<number, never, Screen> =>
  Effect.flatMap(Screen, (screen) =>
    reported(serve({ ...input, version })).pipe(
      Effect.provide(workspaceLayer),
      Effect.provideService(Settings, { command: "mcp", root, backend, json: false }),
      Effect.provideService(Limits, limits),
      ended(screen)
    )
  )
