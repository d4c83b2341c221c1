import type * as InMemory from "../../src/backends/InMemory.ts"
import { directory, type Files } from "../../src/testing/Files.ts"

export const nested = (files: Files): InMemory.Tree => {
  const root: Record<string, unknown> = {}
  for (const [path, entry] of Object.entries(files)) {
    let at = root
    const names = path.split("/")
    const last = names.pop()!
    for (const name of names) at = (at[name] ??= {}) as Record<string, unknown>
    if (entry !== directory) at[last] = entry
    else at[last] ??= {}
  }
  return root as InMemory.Tree
}
