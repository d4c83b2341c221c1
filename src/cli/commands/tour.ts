import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import { Recovery } from "../../port/hostRoots.ts"
import { reported } from "../failure.ts"
import { fullRecovery } from "../recovery.ts"
import { Settings } from "../settings.ts"
import { settingsOf } from "../sharedFlags.ts"
import { described } from "../subcommand.ts"
import { hostLayer } from "../workspace.ts"

export const showTour = reported(
  Effect.flatMap(
    Effect.promise(() => import("../tour.ts")),
    ({ run }) => run
  )
).pipe(Effect.provide(hostLayer))

export const tour = Command.make("tour", {}, () => showTour).pipe(
  described({
    formatSummary: "Show the features on the files of this directory",
    description: `Load the directory into memory, without files that git ignores, and show on the copy, with timings: list, glob, grep,
an edit and its difference, a conflict, a typed failure. Nothing on disk is touched.`,
    examples: [
      ["", "On the current directory"],
      ["--root ~/src/project", "On another one"]
    ]
  }),
  Command.provideEffect(Recovery, () => fullRecovery),
  Command.provideEffect(Settings, settingsOf("tour"))
)
