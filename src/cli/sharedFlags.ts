/** The flags of what every command takes. They stand apart from the settings that they make, which are needed where no flags are. */
import * as Effect from "effect/Effect"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { program } from "./settings.ts"

/** The command that all others are below. */
export const base = Command.make(program).pipe(
  Command.withSharedFlags({
    root: Flag.Directory("root").pipe(
      Flag.withDescription("The directory that paths are relative to (default: the current one)"),
      Flag.withMetavar("DIR"),
      // An unset variable in a client's configuration is blank, and means no directory that anybody has chosen.
      Flag.filter(
        (root) => root.trim() !== "",
        () => "it is blank; leave it out for the current directory"
      ),
      Flag.withDefault(".")
    ),
    backend: Flag.Literals("backend", ["host", "memory"]).pipe(
      Flag.withDescription("The directory itself, or a copy of it in memory: then nothing on disk changes"),
      Flag.withMetavar("BACKEND"),
      Flag.withDefault("host" as const)
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Answer with JSON: one document, or one line for each item of a list"),
      Flag.withoutNegation,
      Flag.withDefault(false)
    )
  })
)

/** The settings of one command below it. */
export const settingsOf = (command: string) => Effect.map(base, (flags) => ({ ...flags, command }))
