/**
 * The page: files beside this module. What is published has its program built; where the sources run as they are it is made in memory,
 * once, by what builds it.
 */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"

const here = new URL("../page/", import.meta.url)

const isSource = import.meta.url.endsWith(".ts")

const types: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8"
}

/** One name, or one in the directory of the program's parts; no dot begins one. */
const fit = /^(?:chunks\/)?[\w-][\w.-]*\.(css|html|js|svg|txt)$/

interface Builder {
  readonly bundle: () => Promise<ReadonlyMap<string, string>>
}

let bundled: Promise<ReadonlyMap<string, string>> | undefined

/** A computed specifier: what builds the page is no part of what is published. What has failed may work when it has been mended. */
const program = Effect.promise(() => {
  bundled ??= import(new URL("build.ts", here).href)
    .then(({ bundle }: Builder) => bundle())
    .catch((error: unknown) => {
      bundled = undefined
      throw error
    })
  return bundled
})

const onDisk = (name: string): Effect.Effect<string | undefined> =>
  Effect.promise(() => readFile(new URL(name, here), "utf8").catch(() => undefined))

/** What a page of this server may do: nothing that another could bring in. */
const policy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data: blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")

/** On every answer, whatever it is. */
export const headers = (nonce: string): Readonly<Record<string, string>> => ({
  "content-security-policy": policy(nonce),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin"
})

export const makeNonce = (): string => randomBytes(16).toString("base64")

const notBuilt = HttpServerResponse.text("The page has not been built. The API is there: see /openapi.json.\n", { status: 500 })

/** A file of the page; `undefined` where it has none of that name. */
export const answer = (path: string, nonce: string): Effect.Effect<HttpServerResponse.HttpServerResponse | undefined> =>
  Effect.gen(function* () {
    const name = path === "/" ? "index.html" : path.slice(1)
    const type = types[fit.exec(name)?.[1] ?? ""]
    if (type === undefined) return undefined
    const text = (yield* onDisk(name)) ?? (isSource ? (yield* program).get(name) : undefined)
    if (text === undefined) return name === "index.html" || name === "app.js" ? notBuilt : undefined
    return HttpServerResponse.text(name === "index.html" ? text.replaceAll("{{nonce}}", nonce) : text, { contentType: type })
  })
