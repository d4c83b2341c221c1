/** What McpServer.ts serves, loaded when it is first asked for: a server of effect/ai takes as long to load as all the rest. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Stdio } from "effect/Stdio"
import * as Server from "effect/ai/McpServer"
import type * as HttpRouter from "effect/http/HttpRouter"
import type { Filesystem } from "../../filesystem/Filesystem.ts"
import type { HttpOptions, Options } from "../McpServer.ts"
import * as Changes from "./changes.ts"
import * as Flow from "./flow.ts"
import { plan } from "./plan.ts"
import { logsToStderr, protocols, serve } from "./serve.ts"
import { endsOf } from "./stdio.ts"
import * as Versions from "./versions.ts"

export const registrations = (options: Options): Layer.Layer<never, never, Filesystem | Server.McpServer> =>
  Layer.unwrap(Effect.map(plan(options, Flow.make()), ({ registrations }) => registrations))

export const runStdio: (options: Options) => Effect.Effect<void, never, Filesystem | Stdio> = Effect.fnUntraced(function* (
  options: Options
) {
  const flow = Flow.make()
  const { info, registrations } = yield* plan(options, flow)
  const register = (subscribed: Effect.Effect<void>) => Layer.merge(registrations, Changes.layer(subscribed))
  yield* serve({ info, flow, ends: endsOf(yield* Stdio), register })
})

export const layerHttp = (options: HttpOptions): Layer.Layer<never, never, Filesystem | HttpRouter.HttpRouter> =>
  Layer.unwrap(
    Effect.map(plan(options, Flow.make()), ({ info, registrations }) =>
      Server.layerHttp({
        ...info,
        protocols,
        path: options.path ?? "/mcp",
        allowedOrigins: options.allowedOrigins,
        allowSessionTermination: true,
        allowSubscriptions: false,
        registrations
      }).pipe(Layer.provide(Versions.layer))
    )
  ).pipe(Layer.provide(logsToStderr)) as unknown as Layer.Layer<never, never, Filesystem | HttpRouter.HttpRouter>
