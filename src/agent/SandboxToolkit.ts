/**
 * Two tools that run programs next to the files: `shell` and `eval`. The tools can be combined with `FilesystemToolkit` or
 * `VfsToolkit`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import { Filesystem } from "../filesystem/Filesystem.ts"
import { Sandbox } from "../filesystem/Sandbox.ts"
import { type Bind, bindSession, toTool } from "./toolkit.ts"
import { evaluate, shell } from "./tools/sandbox.ts"

/**
 * The sandbox tools: `shell`, `eval`.
 *
 * @category toolkits
 * @since 0.1.0
 */
export const toolkit = Toolkit.make(toTool(shell, "sandbox"), toTool(evaluate, "sandbox"))

const handlers = (bind: Bind) => toolkit.of({ shell: bind(shell), eval: bind(evaluate) })

/**
 * Handlers that use the sandbox provided to the layer, for one session.
 *
 * @example
 * ```ts
 * const tools = yield* Effect.provide(SandboxToolkit.toolkit, SandboxToolkit.layer)
 * yield* Stream.runDrain(yield* tools.handle("shell", { command: "ls -l" }))
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Tool.HandlersFor<typeof toolkit.tools>, never, Filesystem | Sandbox> = toolkit.toLayer(
  Effect.gen(function* () {
    const own = Context.make(Filesystem, yield* Filesystem).pipe(Context.add(Sandbox, yield* Sandbox))
    return handlers(bindSession(own))
  })
)
