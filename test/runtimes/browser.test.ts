import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { Browser, Page } from "playwright-core"
import { hasChromium, launch } from "../debug/browser/chromium.ts"
import { forWeb, timeoutMillis } from "./engines.ts"
import { expected } from "./expected.ts"

const call = `(async () => ({
  memory: await kit.conformance({ programs: 20, hasThreads: false }),
  features: await kit.features()
}))()`

describe.skipIf(!hasChromium("the library in a browser"))("the library in Chromium", () => {
  let browser: Browser
  let page: Page
  let script: string

  beforeAll(async () => {
    ;[browser, script] = await Promise.all([launch(), forWeb("iife")])
    page = await browser.newPage()
    await page.setContent("<!doctype html><title>application</title>")
  })
  afterAll(() => browser?.close())

  const passes = ({ features, memory }: any): void => {
    assert.deepStrictEqual(memory.broken, [])
    assert.isAbove(memory.held, 800)
    assert.deepStrictEqual(features, expected)
  }

  it("keeps every law in memory, and makes archives, snapshots and tools, in a page", { timeout: timeoutMillis }, async () => {
    await page.addScriptTag({ content: script })
    passes(await page.evaluate(call))
  })

  it(
    "keeps every law in memory, and makes archives, snapshots and tools, in a worker",
    { timeout: timeoutMillis },
    async () => {
      const source = `${script}\n${call}.then((answer) => postMessage(answer), (error) => postMessage(String(error)))`
      passes(
        await page.evaluate(`new Promise((resolve, reject) => {
        const worker = new Worker(URL.createObjectURL(new Blob([${JSON.stringify(source)}], { type: "text/javascript" })))
        worker.onmessage = ({ data }) => resolve(data)
        worker.onerror = ({ message }) => reject(new Error(message))
      })`)
      )
    }
  )
})
