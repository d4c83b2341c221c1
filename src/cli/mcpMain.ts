/**
 * The mcp command alone, for a command line that was read by mcpArgs.ts. Over standard input it greets the client before it loads what it
 * serves, since a client waits for the greeting, and is busy with it for as long as that takes.
 */
import { statSync } from "node:fs"
import { basename, resolve } from "node:path"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Flow from "../agent/mcp/flow.ts"
import { instructions } from "../agent/mcp/guide.ts"
import { type Early, early } from "../agent/mcp/kits.ts"
import { serve } from "../agent/mcp/serve.ts"
import * as Limits from "../model/Limits.ts"
import { ended } from "./ended.ts"
import type { Quick } from "./mcpArgs.ts"
import { Screen, type ScreenShape } from "./screen.ts"

const isDirectory = (path: string): boolean => {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

const load = Effect.promise(() => import("./mcpServe.ts"))

/** Nothing in it can be wrong; whether any other is a glob is known once the globs are loaded. */
const isPlainGlob = (glob: string): boolean =>
  /^(?!.*\.\.|.*\/\.?(?:\/|$)|.*\*\*[^/]|.*[^/]\*\*)(?=.*[\w*?-])[\w.*?/-]{1,1000}$/.test(glob)

/** Whatever is not plain is for those who can say what is wrong with it. */
const known = ({ backend, input, root }: Quick, { directory, stateDirectory }: ScreenShape): Early | undefined => {
  const hasSnapshots = input.snapshots && (backend === "memory" || stateDirectory !== undefined)
  const isPlain = input.http === undefined && [...input.allow, ...input.deny].every(isPlainGlob)
  return isPlain && isDirectory(resolve(directory, root)) ? early(input.tools, hasSnapshots) : undefined
}

const greeting = (quick: Quick, version: string, { certain, names }: Early) =>
  Effect.gen(function* () {
    const { directory, input: bytes, write } = yield* Screen
    const flow = Flow.make()
    const { limits, readOnly } = quick.input
    const workspace = basename(resolve(directory, quick.root))
    const info = {
      name: "fs-algebra",
      version,
      instructions: instructions({ names, limits: Limits[limits], readOnly, workspace })
    }
    const register = (subscribed: Effect.Effect<void>) =>
      Layer.unwrap(Effect.map(load, ({ layer }) => layer({ ...quick, version }, flow, subscribed)))
    yield* serve({ certain, ends: { input: bytes, write }, flow, info, register })
  })

export const run = (quick: Quick, { version }: { readonly version: string }): Effect.Effect<number, never, Screen> =>
  Effect.flatMap(Screen, (screen) => {
    const plain = known(quick, screen)
    const running =
      plain === undefined ? Effect.flatMap(load, ({ run }) => run({ ...quick, version })) : greeting(quick, version, plain)
    return running.pipe(Effect.provideService(Logger.LogToStderr, true), ended(screen))
  })
