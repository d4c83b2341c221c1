/** A worker thread that serves files in memory. */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as InMemory from "../../src/backends/InMemory.ts"
import * as Remote from "../../src/remote/Remote.ts"

Effect.runFork(Layer.launch(Layer.provide(Remote.layerServerWorker(), InMemory.layer())))
