/**
 * Generates documentation from the code. `node test/documentation/make.ts` makes the API pages in dist/docs; the
 * argument `abilities` makes the tables of abilities, `adapters` the guide of the adapters, and `pictures` the pictures of the tour and the debug view.
 */
import * as Effect from "effect/Effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { guide, root, textOf } from "./markdown.ts"

const pictures = join(root, "src", "guides", "pictures")

const abilities = async (): Promise<ReadonlyArray<string>> => {
  const { fill, tables } = await import("./abilities.ts")
  const page = guide("abilities")
  writeFileSync(join(root, page), fill(textOf(page), await Effect.runPromise(tables)))
  return []
}

const adapters = async (): Promise<ReadonlyArray<string>> => {
  const found = await import("./adapters.ts")
  writeFileSync(join(root, guide("adapters")), found.pageOf(await found.adapters()))
  return []
}

const made: Readonly<Record<string, () => Promise<ReadonlyArray<string>>>> = {
  api: async () => (await import("./typedoc.ts")).makePages(join(root, "dist", "docs")),
  abilities,
  adapters,
  pictures: async () => {
    await (await import("./tourPicture.ts")).makeTourPicture(join(pictures, "tour.png"))
    await (await import("./debugPicture.ts")).makeDebugPicture(join(pictures, "debug.png"))
    return []
  }
}

const [what = "api"] = process.argv.slice(2)
const make = made[what]
if (make === undefined) {
  console.error(`There is no documentation ${what} to generate. Choose ${Object.keys(made).join(", ")}.`)
  process.exitCode = 2
} else {
  const complaints = await make()
  for (const complaint of complaints) console.error(complaint)
  if (complaints.length > 0) process.exitCode = 1
}
