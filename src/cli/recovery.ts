/**
 * What a command does about a change that a killed process has left unfinished in the root: it is finished when the root is opened, unless
 * the command may not change its paths, and one line on standard error says what has become of it.
 */
import * as Effect from "effect/Effect"
import type { FsPath } from "../model/FsPath.ts"
import { type Recovery, sentence } from "../port/hostRoots.ts"
import { remark } from "./answer.ts"
import { errorLook } from "./look.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"

/** Reports each change that opening a root finished or left, on standard error. */
export const telling = (permits: (path: FsPath) => boolean): Effect.Effect<Recovery, never, Screen | Settings> =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const settings = yield* Settings
    const { text, yellow } = errorLook(screen)
    return {
      permits,
      report: (settled) =>
        remark(`${yellow("note:")}  ${text(sentence(settled))}`, { unfinishedChange: settled }).pipe(
          Effect.provideService(Screen, screen),
          Effect.provideService(Settings, settings)
        )
    }
  })

/** A command that has no rules of its own may finish everything. */
export const everything = telling(() => true)
