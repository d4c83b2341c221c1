/** A real browser reads a site that HttpStaticFiles serves from memory. */
import { assert, describe, it } from "@effect/vitest"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import { createServer } from "node:http"
import type { Page } from "playwright-core"
import * as HttpStaticFiles from "../../src/adapters/HttpStaticFiles.ts"
import { Filesystem, InMemory } from "../../src/index.ts"
import { complaintsOf, hasChromium, launch, soon } from "../debug/browser/chromium.ts"

/** Returns a silent WAV file of 8,000 samples a second, one byte each. Format: RIFF header, `fmt ` chunk, `data` chunk. */
const silence = (seconds: number): Uint8Array => {
  const size = 8000 * seconds
  const file = Buffer.alloc(44 + size, 128)
  file.write("RIFF", 0, "latin1")
  file.writeUInt32LE(36 + size, 4)
  file.write("WAVEfmt ", 8, "latin1")
  file.writeUInt32LE(16, 16)
  file.writeUInt16LE(1, 20)
  file.writeUInt16LE(1, 22)
  file.writeUInt32LE(8000, 24)
  file.writeUInt32LE(8000, 28)
  file.writeUInt16LE(1, 32)
  file.writeUInt16LE(8, 34)
  file.write("data", 36, "latin1")
  file.writeUInt32LE(size, 40)
  return file
}

const tree = {
  "index.html": `<!doctype html><meta charset="utf-8"><title>site</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="style.css"><p id="text">waiting</p><audio src="silence.wav" preload="metadata"></audio>
<script type="module" src="app.mjs"></script>`,
  "style.css": "p { color: rgb(1, 2, 3) }",
  "app.mjs":
    'import { word } from "./größe 1%25.mjs"\nconst { sum } = await (await fetch("data.json")).json()\ndocument.querySelector("#text").textContent = `${word} ${sum}`\n',
  "größe 1%.mjs": 'export const word = "loaded"\n',
  "data.json": '{"sum":42}',
  "silence.wav": silence(600)
}

const serving = Effect.gen(function* () {
  const services = yield* Layer.build(
    HttpRouter.serve(HttpStaticFiles.layer({ cacheControl: "no-cache" }), { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provideMerge(InMemory.layer({ tree })),
      Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
    )
  )
  const origin = yield* Effect.provide(
    HttpServer.HttpServer.use(({ address }) =>
      Effect.succeed(address._tag === "InetAddressV4" ? `http://127.0.0.1:${address.port}` : "")
    ),
    services
  )
  return { origin, fs: yield* Effect.provide(Filesystem.Filesystem, services) }
})

const withPage = Effect.map(
  Effect.acquireRelease(
    Effect.promise(() => launch()),
    (browser) => Effect.promise(() => browser.close())
  ),
  (browser) => Effect.promise(() => browser.newPage())
)

const textOf = (page: Page) => () => page.textContent("#text")

describe.skipIf(!hasChromium("HttpStaticFiles in a browser"))("a browser on HttpStaticFiles", () => {
  it.live("loads a page with a style, modules and data, revalidates it with the ETag, and gets changed content", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { fs, origin } = yield* serving
        const page = yield* yield* withPage
        const complaints = complaintsOf(page, origin)
        yield* Effect.promise(async () => {
          await page.goto(`${origin}/`)
          await soon(textOf(page)).toBe("loaded 42")
          assert.strictEqual(await page.evaluate('getComputedStyle(document.querySelector("p")).color'), "rgb(1, 2, 3)")
          const again = await page.evaluate<ReadonlyArray<number>>(`(async () => {
            const { headers } = await fetch("data.json", { cache: "no-store" })
            const conditional = { cache: "no-store", headers: { "if-none-match": headers.get("etag") } }
            return [(await fetch("data.json", conditional)).status, (await fetch("app.mjs", conditional)).status]
          })()`)
          assert.deepStrictEqual(again, [304, 200])
        })
        yield* fs.write("data.json", '{"sum":43}')
        yield* Effect.promise(async () => {
          await page.reload()
          await soon(textOf(page)).toBe("loaded 43")
        })
        assert.deepStrictEqual(complaints, [])
      })
    )
  )

  it.live("seeks in a recording of 4.8 MB by byte ranges", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { origin } = yield* serving
        const page = yield* yield* withPage
        const statuses: Array<number> = []
        page.on("response", (response) => {
          if (response.url().endsWith(".wav")) statuses.push(response.status())
        })
        yield* Effect.promise(async () => {
          await page.goto(`${origin}/`)
          const audio = 'document.querySelector("audio")'
          await soon(() => page.evaluate(`${audio}.duration`)).toBe(600)
          await page.evaluate(`${audio}.currentTime = 590`)
          await soon(() => page.evaluate(`!${audio}.seeking && ${audio}.readyState >= 2 && ${audio}.currentTime`)).toBe(590)
        })
        assert.isNotEmpty(statuses)
        assert.deepStrictEqual(
          statuses.filter((status) => status !== 206),
          []
        )
      })
    )
  )
})
