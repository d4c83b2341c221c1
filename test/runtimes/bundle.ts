/** Bundles programs for the web, and runs scripts in a realm with only the globals of the web. */
import { fileURLToPath } from "node:url"
import { createContext, runInContext } from "node:vm"
import { rolldown } from "rolldown"

export const kit = fileURLToPath(new URL("kit.ts", import.meta.url))

export const bundled = async (format: "iife" | "es"): Promise<string> => {
  const made = await rolldown({ input: kit, platform: "browser", logLevel: "silent" })
  const { output } = await made.generate({ format, name: "kit" })
  await made.close()
  return output[0].code
}

/** The globals of every runtime with the Minimum Common Web API. */
const globals = [
  "AbortController",
  "AbortSignal",
  "CompressionStream",
  "DecompressionStream",
  "Event",
  "EventTarget",
  "MessageChannel",
  "ReadableStream",
  "TextDecoder",
  "TextEncoder",
  "TransformStream",
  "URL",
  "URLSearchParams",
  "WritableStream",
  "atob",
  "btoa",
  "clearInterval",
  "clearTimeout",
  "console",
  "crypto",
  "performance",
  "queueMicrotask",
  "setInterval",
  "setTimeout",
  "structuredClone"
] as const

/**
 * Runs a script in a realm without Node and returns its global `kit`. The realm has its own Uint8Array, RegExp and Error, but
 * an encoder of another realm, as in test runners with a simulated browser. `more` adds globals.
 */
export const inBareRealm = <A>(script: string, more: Record<string, unknown> = {}): A => {
  const known = Object.fromEntries(globals.map((name) => [name, (globalThis as Record<string, unknown>)[name]]))
  const realm = createContext({ ...known, ...more })
  return runInContext(`${script}\nkit`, realm) as A
}
