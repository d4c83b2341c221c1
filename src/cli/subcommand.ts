/**
 * Makes commands from help texts, flags and a handler that uses a filesystem. Errors are reported while the filesystem is open,
 * so that the report can suggest similar names.
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as CliError from "effect/cli/CliError"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import { dialectOf } from "../backends/container/dialect.ts"
import { Recovery } from "../port/hostRoots.ts"
import { type Failure, reported } from "./failure.ts"
import * as flags from "./flags.ts"
import { parseMountFlag } from "./mounts.ts"
import { fullRecovery } from "./recovery.ts"
import { program, Settings } from "./settings.ts"
import { workspaceLayer } from "./workspace.ts"
import { misplacedFlags, toRoot } from "./workspaceRoot.ts"

// The flags that all commands share. The flags are separate from the settings, because the settings can also be made without
// flags.

export const baseCommand = Command.make(program).pipe(
  Command.withSharedFlags({
    root: Flag.Directory("root").pipe(
      Flag.withDescription("The directory that paths are relative to (default: the current one), or the URL of a server"),
      Flag.withMetavar("DIR"),
      Flag.optional,
      Flag.map(Option.getOrUndefined),
      flags.nonBlank("a directory, not blank; omit --root for the current directory")
    ),
    backend: Flag.Literals("backend", ["host", "memory", "container"]).pipe(
      Flag.withDescription("Work on the directory, a copy of it in memory, or with a container"),
      Flag.withMetavar("BACKEND"),
      Flag.withDefault("host" as const)
    ),
    hardlinks: Flag.Literals("hardlinks", ["allow", "reject"]).pipe(
      Flag.withDescription("Whether files with several names (hard links) may be read and appended to"),
      Flag.withMetavar("HARDLINKS"),
      Flag.withDefault("allow" as const)
    ),
    mount: Flag.String("mount").pipe(
      Flag.withDescription("With --backend memory: also copy SOURCE to TARGET; a file goes into TARGET (may be repeated)"),
      Flag.withMetavar("SOURCE[:TARGET]"),
      Flag.filterMap(
        (text) => Option.fromUndefinedOr(parseMountFlag(text)),
        () => "SOURCE or SOURCE:TARGET, without blank parts; SOURCE:/ means the root"
      ),
      Flag.atLeast(0)
    ),
    image: flags.text("image", "IMAGE", "The image of the container"),
    rootfs: flags.text(
      "rootfs",
      "DIR",
      "A directory with the root filesystem of the container, instead of --image (podman only)"
    ),
    engine: Flag.String("engine").pipe(
      Flag.withDescription("The container engine: podman, docker or nerdctl, or the path of one of them"),
      Flag.withMetavar("ENGINE"),
      Flag.filter(
        (text) => dialectOf(text) !== undefined,
        () => "podman, docker or nerdctl, or the path of a program with one of these names"
      ),
      Flag.withDefault("podman")
    ),
    pids: flags.natural("pids", "COUNT", "The largest number of processes in the container (default: 256)").pipe(
      Flag.filter(
        (count) => count !== 0,
        () => "at least 1"
      )
    ),
    journal: flags
      .text("journal", "FILE", "Record each change in this journal; it is created if missing")
      .pipe(flags.nonBlank("the name of a file, not blank")),
    tokenFile: flags
      .text("token-file", "FILE", "A private file with the token of the server (default: the variable FS_ALGEBRA_TOKEN)")
      .pipe(flags.nonBlank("the name of a file, not blank")),
    store: flags
      .text("store", "URL", "The store of the workspace or, without --workspace, the directory that holds the snapshots")
      .pipe(flags.nonBlank("the address of a store or a directory, not blank")),
    workspace: flags.text("workspace", "NAME", "Work on this workspace of --store, instead of a directory"),
    // `run` applies this flag before the arguments are parsed, because usage errors have colours too.
    color: Flag.Literals("color", ["auto", "always", "never"]).pipe(
      Flag.withDescription("Whether to use colours; without a value: always"),
      Flag.withMetavar("WHEN"),
      Flag.withOptionalValue("always"),
      Flag.withDefault("auto" as const)
    ),
    json: Flag.Boolean("json").pipe(
      Flag.withDescription("Answer with JSON: one document, or one line for each item of a list"),
      Flag.withoutNegation,
      Flag.withDefault(false)
    )
  })
)

export const toSettings = (
  {
    backend,
    engine,
    hardlinks,
    image,
    journal,
    json,
    mount,
    pids,
    root,
    rootfs,
    store,
    tokenFile,
    workspace
  }: Effect.Success<typeof baseCommand>,
  command: string
) => ({
  command,
  root: store !== undefined && workspace !== undefined ? toRoot({ store, workspace }) : (root ?? "."),
  store: workspace === undefined ? store : undefined,
  refusal: misplacedFlags({ root, store, workspace }, command),
  backend,
  container: { engine, image, rootfs, pids },
  hardlinks,
  mounts: mount,
  journal,
  tokenFile,
  json
})

export const settingsOf = (command: string) => Effect.map(baseCommand, (flags) => toSettings(flags, command))

export interface About {
  readonly summary: string
  /** The description in the command's help, with line breaks. */
  readonly description: string
  /** Examples, each with arguments after the name of the command, and a description. */
  readonly examples: readonly [Example, ...ReadonlyArray<Example>]
}

type Example = readonly [args: string, description: string]

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

export const refuseFlags = <Name extends string, Input, ContextInput, E, R>(
  faultOf: (input: Input) => string | undefined
): ((self: Command.Command<Name, Input, ContextInput, E, R>) => Command.Command<Name, Input, ContextInput, E, R>) =>
  Command.validate((input) => {
    const message = faultOf(input)
    return message === undefined ? Effect.void : Effect.fail(new CliError.ValidationError({ message }))
  })

/**
 * Makes a command with the layer that it works on. `within` is its parent command. Changes that a killed process left unfinished
 * are recovered first.
 */
export const subcommandOn =
  <LA, LE, LR>(layer: Layer.Layer<LA, LE, LR>, within?: string) =>
  <const Name extends string, const Config extends Command.Command.Config, E extends Failure, R>(
    name: Name,
    about: About,
    config: Config,
    handler: (input: Command.Command.Config.Infer<Config>) => Effect.Effect<void, E, R>
  ) =>
    Command.make(name, config, (input) => reported(handler(input))).pipe(
      described(about),
      Command.provide(layer),
      Command.provideEffect(Recovery, () => fullRecovery),
      Command.provideEffect(Settings, settingsOf(within === undefined ? name : `${within} ${name}`))
    )

export const subcommand = subcommandOn(workspaceLayer)
