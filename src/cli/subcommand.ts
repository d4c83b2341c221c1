/**
 * Makes commands: their texts with at least one example, their flags, and a handler with a filesystem. Errors are reported
 * while the filesystem is open, so that similar names can be suggested.
 */
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Command from "effect/cli/Command"
import { Recovery } from "../port/hostRoots.ts"
import { type Failure, reported } from "./failure.ts"
import { fullRecovery } from "./recovery.ts"
import type { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"
import { settingsOf } from "./sharedFlags.ts"
import { workspaceLayer } from "./workspace.ts"

export interface About {
  readonly formatSummary: string
  /** The text for the command's own help, already wrapped. */
  readonly description: string
  /** Arguments, without the program and the command, with a description. */
  readonly examples: readonly [Example, ...ReadonlyArray<Example>]
}

type Example = readonly [args: string, description: string]

export const described =
  (about: About) =>
  <Name extends string, Input, ContextInput, E, R>(
    self: Command.Command<Name, Input, ContextInput, E, R>
  ): Command.Command<Name, Input, ContextInput, E, R> =>
    self.pipe(
      Command.withShortDescription(about.formatSummary),
      Command.withDescription(about.description.replaceAll("\n", "\n  ")),
      Command.withExamples(({ commandPath }) =>
        about.examples.map(([args, description]) => ({ command: [...commandPath, args].join(" ").trim(), description }))
      )
    )

/**
 * Makes a command with the layer that it works on. `within` is its parent command. `recovery` returns what the command may do
 * about a change that a killed process left unfinished.
 */
export const subcommandOn =
  <LA, LE, LR>(layer: Layer.Layer<LA, LE, LR>, within?: string) =>
  <const Name extends string, const Config extends Command.Command.Config, E extends Failure, R>(
    name: Name,
    about: About,
    config: Config,
    handler: (input: Command.Command.Config.Infer<Config>) => Effect.Effect<void, E, R>,
    recovery: (input: Command.Command.Config.Infer<Config>) => Effect.Effect<Recovery, never, Screen | Settings> = () =>
      fullRecovery
  ) =>
    Command.make(name, config, (input) => reported(handler(input))).pipe(
      described(about),
      Command.provide(layer),
      Command.provideEffect(Recovery, recovery),
      Command.provideEffect(Settings, settingsOf(within === undefined ? name : `${within} ${name}`))
    )

export const subcommand = subcommandOn(workspaceLayer)
