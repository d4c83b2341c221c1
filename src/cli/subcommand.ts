/**
 * How a command is made: its texts, with at least one example, its flags, and a handler that is given the filesystem and whose errors
 * are reported while that filesystem can still say what lies near.
 */
import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Command from "effect/cli/Command"
import { Recovery } from "../port/hostRoots.ts"
import { type Failure, reported } from "./failure.ts"
import { everything } from "./recovery.ts"
import type { Screen } from "./screen.ts"
import { Settings } from "./settings.ts"
import { settingsOf } from "./sharedFlags.ts"
import { workspaceLayer } from "./workspace.ts"

export interface About {
  /** For the list of commands. */
  readonly summary: string
  /** For the command's own help; the lines are wrapped already. */
  readonly description: string
  /** Arguments, without the program and the command, and what they do. */
  readonly examples: readonly [Example, ...ReadonlyArray<Example>]
}

type Example = readonly [args: string, description: string]

/** The texts alone. */
export const described =
  (about: About) =>
  <Name extends string, Input, ContextInput, E, R>(
    self: Command.Command<Name, Input, ContextInput, E, R>
  ): Command.Command<Name, Input, ContextInput, E, R> =>
    self.pipe(
      Command.withShortDescription(about.summary),
      Command.withDescription(about.description.replaceAll("\n", "\n  ")),
      Command.withExamples(({ commandPath }) =>
        about.examples.map(([args, description]) => ({ command: [...commandPath, args].join(" ").trim(), description }))
      )
    )

/**
 * With what it works on. `within`: the command that it is one of. `recovery`: what it may do about a change that a killed process has left
 * unfinished.
 */
export const subcommandOn =
  <LA, LE, LR>(layer: Layer.Layer<LA, LE, LR>, within?: string) =>
  <const Name extends string, const Config extends Command.Command.Config, E extends Failure, R>(
    name: Name,
    about: About,
    config: Config,
    handler: (input: Command.Command.Config.Infer<Config>) => Effect.Effect<void, E, R>,
    recovery: (input: Command.Command.Config.Infer<Config>) => Effect.Effect<Recovery, never, Screen | Settings> = () =>
      everything
  ) =>
    Command.make(name, config, (input) => reported(handler(input))).pipe(
      described(about),
      Command.provide(layer),
      Command.provideEffect(Recovery, recovery),
      Command.provideEffect(Settings, settingsOf(within === undefined ? name : `${within} ${name}`))
    )

export const subcommand = subcommandOn(workspaceLayer)
