import { describe, it } from "@effect/vitest"
import { holds } from "./everywhere.ts"
import { looking } from "./everywhere.looking.ts"

describe("the same answers on every filesystem", () => {
  for (const row of looking) it.live(row.name, () => holds(row))
})
