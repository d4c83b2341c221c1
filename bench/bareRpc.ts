/** A bare server of effect/rpc on a Unix socket. It returns a file's bytes, or its size and time: `bareRpc.ts ROOT SOCKET`. */
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Rpc from "effect/rpc/Rpc"
import * as RpcGroup from "effect/rpc/RpcGroup"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import * as RpcServer from "effect/rpc/RpcServer"
import { readFile, stat } from "node:fs/promises"
import { join } from "node:path"

export const Bare = RpcGroup.make(
  Rpc.make("read", { payload: { path: Schema.String }, success: Schema.Uint8Array }),
  Rpc.make("stat", { payload: { path: Schema.String }, success: Schema.Struct({ size: Schema.Int, millis: Schema.Finite }) })
)

const serve = (root: string, path: string) =>
  RpcServer.layer(Bare, { disableTracing: true }).pipe(
    Layer.provide(
      Bare.toLayer({
        read: ({ path }) => Effect.promise(async () => new Uint8Array(await readFile(join(root, path)))),
        stat: ({ path }) =>
          Effect.promise(async () => {
            const { mtimeMs, size } = await stat(join(root, path))
            return { size, millis: mtimeMs }
          })
      })
    ),
    Layer.provide(RpcServer.layerProtocolSocketServer),
    Layer.provide(NodeSocketServer.layer({ path })),
    Layer.provide(RpcSerialization.layerSchemaBinary())
  )

if (import.meta.main) {
  const [root, path] = process.argv.slice(2)
  await Effect.runPromise(
    Effect.scoped(
      Effect.andThen(
        Layer.build(serve(root!, path!)),
        Effect.andThen(
          Effect.sync(() => console.log("started")),
          Effect.never
        )
      )
    )
  )
}
