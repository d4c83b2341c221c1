/** Makes two captures, keeps one and reports whether the bytes of each are still in memory. Needs --expose-gc. */
import * as Effect from "effect/Effect"
import * as InMemory from "../../src/backends/InMemory.ts"
import type { FsPath } from "../../src/model/FsPath.ts"
import type { Captured, MemoryHistory } from "../../src/port/history.ts"
import { performed } from "../performed.ts"

const path = "d/f" as FsPath
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

const port = await Effect.runPromise(InMemory.make({ tree: { d: { f: "0" } } }))
const history = port.history as MemoryHistory
const write = (size: number) => Effect.runPromise(port.write<never, never>(path, new Uint8Array(size), "replace"))

/** Returns the buffer of a capture, which only the capture holds once the file is overwritten. */
const bufferOf = async (captured: Captured) => {
  const whole = await Effect.runPromise(performed(history.view(captured), { _tag: "Read", path, maxBytes: Infinity }))
  return new WeakRef(whole!.bytes.buffer)
}

const captureOf = async (size: number) => {
  await write(size)
  const captured = await Effect.runPromise(history.capture)
  return { captured, buffer: await bufferOf(captured) }
}

const kept = await captureOf(100_000)
const { buffer: forgotten } = await captureOf(200_000)
await write(1)
await Effect.runPromise(history.restore(kept.captured))
await write(2)

for (let i = 0; i < 20 && forgotten.deref() !== undefined; i++) {
  await turn()
  globalThis.gc!()
}
const told = (ref: WeakRef<object>) => (ref.deref() === undefined ? "gone" : "there")
process.stdout.write(JSON.stringify({ held: told(kept.buffer), forgotten: told(forgotten) }))
// Keeps the capture reachable until here.
if (kept.captured.root === undefined) process.exitCode = 1
