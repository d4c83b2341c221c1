import { assert, describe, it } from "@effect/vitest"
import * as Api from "../../src/debug/page/api.ts"

/** Runs `use` with a server whose response has headers and the start of a body. `end` ends the body with an error. */
const withUnfinishedResponse = async <A>(use: (end: (error: unknown) => void) => Promise<A>): Promise<A> => {
  const real = globalThis.fetch
  let end: (error: unknown) => void = () => undefined
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(new TextEncoder().encode('{"media'))
      end = (error) => controller.error(error)
    }
  })
  globalThis.fetch = () => Promise.resolve(new Response(body, { status: 200 }))
  try {
    return await use((error) => end(error))
  } finally {
    globalThis.fetch = real
  }
}

const failureOf = async (request: Promise<unknown>): Promise<unknown> => {
  try {
    return { result: await request }
  } catch (error) {
    return error
  }
}

describe("a request of the debug page", () => {
  it("rejects with the reason of its signal if it is aborted after the headers", async () => {
    const abort = new AbortController()
    const error = await withUnfinishedResponse((end) => {
      const pending = failureOf(Api.file("a.png", undefined, abort.signal))
      abort.abort()
      end(abort.signal.reason)
      return pending
    })
    assert.strictEqual(error, abort.signal.reason)
  })

  it("rejects with an ApiError if the connection ends within the body", async () => {
    const error = await withUnfinishedResponse((end) => {
      const pending = failureOf(Api.file("a.png"))
      end(new TypeError("terminated"))
      return pending
    })
    assert.instanceOf(error, Api.ApiError)
    assert.deepInclude(error, { status: 0, message: "The answer of the server is not complete. Try again." })
  })
})
