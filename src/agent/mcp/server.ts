/**
 * The implementation of McpServer.ts, loaded on first use. A server of effect/ai takes as long to load as the rest of this
 * package.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Stdio } from "effect/Stdio"
import * as Server from "effect/ai/McpServer"
import type * as HttpRouter from "effect/http/HttpRouter"
import type { Filesystem } from "../../filesystem/Filesystem.ts"
import type { AnyDefinition, Requirements } from "../definition.ts"
import type { HttpOptions, Options } from "../McpServer.ts"
import * as Bounded from "./bounded.ts"
import * as Flow from "./flow.ts"
import { plan, type Plan } from "./plan.ts"
import { logsToStderr, protocols, serve } from "./serve.ts"
import { pipeOf } from "./stdio.ts"
import * as Versions from "./versions.ts"

/** Makes the plan of a server. McpServer.ts makes it from options, an adapter from a prompt. */
export type ServerPlanner<E, R> = (flow: Flow.Flow) => Effect.Effect<Plan<R>, E, R | Scope.Scope>

export const registrationLayer = <E, R>(planServer: ServerPlanner<E, R>): Layer.Layer<never, E, R | Server.McpServer> =>
  Layer.unwrap(Effect.map(planServer(Flow.make()), ({ registrations }) => registrations))

export const serveStdio = <E, R>(planServer: ServerPlanner<E, R>): Effect.Effect<void, E, R | Stdio> =>
  Effect.gen(function* () {
    const flow = Flow.make()
    const { changes, info, registrations } = yield* planServer(flow)
    const register = (subscribed: Effect.Effect<void>) => Layer.merge(registrations, changes(subscribed))
    yield* serve({ info, flow, ends: pipeOf(yield* Stdio), register })
  }).pipe(Effect.scoped) as Effect.Effect<void, E, R | Stdio>

export const serveHttp = <E, R>(
  planServer: ServerPlanner<E, R>,
  options: Pick<HttpOptions, "path" | "allowedOrigins" | "maxSessions" | "sessionIdleTimeout">
): Layer.Layer<never, E, R | HttpRouter.HttpRouter> =>
  Layer.unwrap(
    Effect.map(planServer(Flow.make()), ({ info, registrations }) =>
      Server.layerHttp({
        ...info,
        protocols,
        path: options.path ?? "/mcp",
        allowedOrigins: options.allowedOrigins,
        allowSessionTermination: true,
        allowSubscriptions: false,
        registrations
      }).pipe(Layer.provide(Versions.layer), Layer.provide(Bounded.layer(options)))
    )
  ).pipe(Layer.provide(logsToStderr)) as unknown as Layer.Layer<never, E, R | HttpRouter.HttpRouter>

const plannerOf =
  <T extends AnyDefinition<unknown>>(options: Options<T>): ServerPlanner<never, Filesystem | Requirements<T>> =>
  (flow) =>
    plan(options, flow)

export const registrations = <T extends AnyDefinition<unknown>>(options: Options<T>) => registrationLayer(plannerOf(options))

export const runStdio = <T extends AnyDefinition<unknown>>(options: Options<T>) => serveStdio(plannerOf(options))

export const layerHttp = <T extends AnyDefinition<unknown>>(options: HttpOptions<T>) => serveHttp(plannerOf(options), options)
