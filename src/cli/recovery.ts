/**
 * Completes or undoes a change that a killed process left unfinished in the root. The recovery runs when the root is
 * opened, if the command may change the affected paths. A line on standard error reports the outcome.
 */
import * as Effect from "effect/Effect"
import type { FsPath } from "../model/FsPath.ts"
import { type Recovery, describeOutcome } from "../port/hostRoots.ts"
import { writeRemark } from "./answer.ts"
import { errorStyle } from "./look.ts"
import { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"

export const reportingRecovery = (permits: (path: FsPath) => boolean): Effect.Effect<Recovery, never, Screen | Settings> =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const settings = yield* Settings
    const { text, yellow } = errorStyle(screen)
    return {
      permits,
      report: (settled) =>
        writeRemark(`${yellow("note:")}  ${text(describeOutcome(settled))}`, { unfinishedChange: settled }).pipe(
          Effect.provideService(Screen, screen),
          Effect.provideService(Settings, settings)
        )
    }
  })

export const fullRecovery = reportingRecovery(() => true)
