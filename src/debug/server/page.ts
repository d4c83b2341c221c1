/**
 * Serves the files of the page. The published package contains the bundled program. A server that runs from the sources bundles
 * the program once, in memory.
 */
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { randomBytes } from "node:crypto"
import { readFile } from "node:fs/promises"

// This URL is correct in the sources, in the build, and in a chunk of the bundled command line (dist/cli/chunks).
const pageDirectory = new URL("../../debug/page/", import.meta.url)

const isSource = import.meta.url.endsWith(".ts")

const types: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8"
}

/** Matches the names of files to serve, including files in the directory `chunks`. A name must not begin with a dot. */
const validFileName = /^(?:chunks\/)?[\w-][\w.-]*\.(css|html|js|svg|txt)$/

interface Builder {
  readonly bundle: () => Promise<ReadonlyMap<string, string>>
}

let bundled: Promise<ReadonlyMap<string, string>> | undefined

/**
 * Bundles the program. The specifier is computed, because the published package lacks the bundler. A failure is not cached, so
 * that the next request tries again.
 */
const bundledProgram = Effect.promise(() => {
  bundled ??= import(new URL("build.ts", pageDirectory).href)
    .then(({ bundle }: Builder) => bundle())
    .catch((error: unknown) => {
      bundled = undefined
      throw error
    })
  return bundled
})

const onDisk = (name: string): Effect.Effect<string | undefined> =>
  Effect.promise(() => readFile(new URL(name, pageDirectory), "utf8").catch(() => undefined))

/** Returns the content security policy, which forbids all content from other origins. */
const contentSecurityPolicy = (nonce: string): string =>
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

export const headers = (nonce: string): Readonly<Record<string, string>> => ({
  "content-security-policy": contentSecurityPolicy(nonce),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin"
})

export const makeNonce = (): string => randomBytes(16).toString("base64")

const notBuilt = HttpServerResponse.text("The page has not been built. The API is available: see /openapi.json.\n", {
  status: 500
})

export const servePageFile = (path: string, nonce: string): Effect.Effect<HttpServerResponse.HttpServerResponse | undefined> =>
  Effect.gen(function* () {
    const name = path === "/" ? "index.html" : path.slice(1)
    const type = types[validFileName.exec(name)?.[1] ?? ""]
    if (type === undefined) return undefined
    const text = (yield* onDisk(name)) ?? (isSource ? (yield* bundledProgram).get(name) : undefined)
    if (text === undefined) return name === "index.html" || name === "app.js" ? notBuilt : undefined
    return HttpServerResponse.text(name === "index.html" ? text.replaceAll("{{nonce}}", nonce) : text, { contentType: type })
  })
