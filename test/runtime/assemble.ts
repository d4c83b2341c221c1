/**
 * Assembles src/runtime/kernel.wat and writes the bytes to src/runtime/kernel.ts (`npm run kernel`). Run it after a change of
 * the source. kernel.test.ts compares both files.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import makeWabt from "wabt"

const path = (name: string) => fileURLToPath(new URL(`../../src/runtime/${name}`, import.meta.url))

export const assemble = async (source = readFileSync(path("kernel.wat"), "utf8")): Promise<string> => {
  const wabt = await makeWabt()
  const module = wabt.parseWat("kernel.wat", source, { simd: true, mutable_globals: true })
  try {
    module.resolveNames()
    module.validate()
    return Buffer.from(module.toBinary({}).buffer).toString("base64")
  } finally {
    module.destroy()
  }
}

const constant = (base64: string): string =>
  ["export const code =", (base64.match(/.{1,120}/g) ?? [""]).map((part) => `  "${part}"`).join(" +\n")].join("\n")

if (import.meta.main) {
  const before = readFileSync(path("kernel.ts"), "utf8")
  const after = before.replace(/export const code =(?:\s*\+?\s*"[^"]*")+/, constant(await assemble()))
  if (after !== before) writeFileSync(path("kernel.ts"), after)
}
