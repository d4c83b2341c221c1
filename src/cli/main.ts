/** Runs a command line, given its arguments and a Screen, and returns the exit code. All output goes through the Screen. */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Stdio from "effect/Stdio"
import * as Terminal from "effect/Terminal"
import * as CliConfig from "effect/cli/CliConfig"
import * as CliError from "effect/cli/CliError"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as Completions from "effect/cli/Completions"
import * as Flag from "effect/cli/Flag"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import { ChildProcessSpawner, make as makeSpawner } from "effect/process/ChildProcessSpawner"
import { resolve } from "node:path"
import { editDistance } from "../engine/nearest.ts"
import { Limits } from "../model/Limits.ts"
import { Recovery } from "../port/hostRoots.ts"
import { foreignCommands, normaliseArguments } from "./argv.ts"
import { exportCommand, importCommand } from "./commands/archives.ts"
import { cat, edit, write } from "./commands/content.ts"
import { diff } from "./commands/diff.ts"
import { cp, mkdir, mv, rm } from "./commands/entries.ts"
import { exec } from "./commands/exec.ts"
import { journal } from "./commands/journal.ts"
import { ls, stat, tree } from "./commands/ls.ts"
import { debug, mcp, ProgramVersion } from "./commands/mcp.ts"
import { glob, grep } from "./commands/search.ts"
import { serve } from "./commands/serve.ts"
import { restore, snapshot, snapshots } from "./commands/snapshots.ts"
import { workspaces } from "./commands/workspaces.ts"
import { ended, exitCodes } from "./exit.ts"
import { reported } from "./failure.ts"
import { errorStyle, quote, styleFor } from "./look.ts"
import { fullRecovery } from "./recovery.ts"
import { isDirectoryAt } from "./root.ts"
import { Screen, type ScreenShape } from "./screen.ts"
import { limits, program, Settings } from "./settings.ts"
import { baseCommand, described, settingsOf, toSettings } from "./subcommand.ts"
import { hostLayer } from "./workspace.ts"

const formatter = (screen: ScreenShape): CliOutput.Formatter => {
  const { bold, green } = styleFor(screen)
  const base = CliOutput.defaultFormatter({ colors: screen.colors, inheritedFlags: "full", globalFlags: "none" })
  const codes = exitCodes.map(({ code, meaning }) => `  ${green(`${code}`.padStart(3))}  ${meaning}`).join("\n")
  return {
    ...base,
    formatHelpDoc: (doc) =>
      doc.commandPath?.length === 1 && doc.commandPath[0] === program
        ? `${base.formatHelpDoc(doc)}\n\n${bold("EXIT CODES")}\n${codes}`
        : base.formatHelpDoc(doc)
  }
}

const showTour = reported(
  Effect.flatMap(
    Effect.promise(() => import("./tour.ts")),
    ({ run }) => run
  )
).pipe(Effect.provide(hostLayer))

const tour = Command.make("tour", {}, () => showTour).pipe(
  described({
    summary: "Show the features on the files of this directory",
    description: `Load the directory into memory, without files that git ignores, and show the features on this copy, with timings: list,
glob, grep, an edit and its difference, a conflict, a typed failure. Nothing on disk is changed.`,
    examples: [
      ["", "On the current directory"],
      ["--root ~/src/project", "On another directory"]
    ]
  }),
  Command.provideEffect(Recovery, () => fullRecovery),
  Command.provideEffect(Settings, settingsOf("tour"))
)

export const command = baseCommand.pipe(
  Command.withHandler((flags) => Effect.provideService(showTour, Settings, toSettings(flags, "tour"))),
  Command.withSubcommands([
    { group: "LOOK", commands: [ls, tree, cat, stat] },
    { group: "FIND", commands: [glob, grep] },
    { group: "CHANGE", commands: [write, edit, mkdir, cp, mv, rm] },
    { group: "KEEP", commands: [snapshot, snapshots, diff, restore, exportCommand, importCommand, journal, workspaces] },
    { group: "RUN", commands: [exec] },
    { group: "SERVE", commands: [serve, debug, mcp] },
    { group: "LEARN", commands: [tour] }
  ]),
  described({
    summary: "Files of a directory, on the disk or in memory",
    description: `List, read, search and change the files of one directory. No path and no link leads out of it.
The commands work on the disk, or on a copy in memory that leaves the disk unchanged.`,
    examples: [
      ["", "The tour: the features, shown on the files of this directory"],
      ["tree", "The files of this directory"],
      ["grep 'TODO|FIXME' --glob '*.ts'", "Find lines"],
      ["edit README.md --old teh --new the --all --dry-run", "Show a change before it is made"],
      ["snapshot --tag 'works'", "Keep everything as it is; restore brings it back"],
      ["rm -r src --backend memory", "Try something on a copy"],
      ["tree --backend memory --mount ../shared:lib", "On a copy with additional files"],
      ["exec --image debian -- make test", "Run something in a container that has this directory, and no network"],
      ["--completions bash > ~/.local/share/bash-completion/completions/fs-algebra", "Complete with Tab"]
    ]
  })
)

/**
 * The services that effect/cli requires, mostly for prompts, which this program does not use. `Path` takes each path for absolute,
 * because effect/cli must not resolve the paths, which are relative to the root.
 */
const cliServices = Layer.mergeAll(
  FileSystem.layerNoop({}),
  Layer.effect(
    Path.Path,
    Effect.map(Path.Path, (path) => ({ ...path, isAbsolute: () => true }))
  ).pipe(Layer.provide(Path.layer)),
  Stdio.layerTest({}),
  Layer.succeed(
    Terminal.Terminal,
    Terminal.make({
      columns: Effect.succeed(80),
      rows: Effect.succeed(24),
      size: Effect.never,
      readInput: Effect.never,
      readLine: Effect.never,
      display: () => Effect.void
    })
  ),
  Layer.succeed(
    ChildProcessSpawner,
    makeSpawner(() => Effect.never)
  )
)

const maxFlagDistance = 2

/**
 * Returns the most similar flags, or none if no flag is similar enough. The candidates are the suggestions of effect/cli for
 * the command, and the flags that all commands share.
 */
const similarFlags = ({ option, suggestions }: CliError.UnrecognizedOption): ReadonlyArray<string> => {
  const shared = Completions.fromCommand(command).flags.map(({ name }) => `--${name}`)
  const known = [...new Set([...suggestions, ...shared])]
  const distances = known.map((name) => editDistance(option, name))
  const least = Math.min(...distances)
  return least > maxFlagDistance ? [] : known.filter((_, i) => distances[i] === least)
}

/**
 * Returns the message for an unknown flag. A single letter gets no suggestion, because it is unlikely to be a misspelled flag.
 */
const unrecognized = (error: CliError.UnrecognizedOption): string =>
  /^-[^-]$/.test(error.option)
    ? `Unrecognized flag: ${error.option} in command ${error.command?.join(" ") ?? program}`
    : new CliError.UnrecognizedOption({ ...error, suggestions: similarFlags(error) }).message

/** Returns the message of an error. If one of our checks refused a value, its message replaces the message of effect/cli. */
const messageOf = (error: CliError.CliError): string =>
  error._tag === "UnrecognizedOption"
    ? unrecognized(error)
    : error._tag === "InvalidValue" &&
        [error.value, `"${error.value}"`].some((value) => error.expected.startsWith(`${value} is `))
      ? `Invalid value for flag --${error.option}: ${error.expected}`
      : error.message

/**
 * Returns the command that lists a directory, for a user who typed the directory in place of a command. A blank word, as from an
 * unset variable, is no directory, because `--root` refuses it.
 */
const listCommandFor = ({ directory }: ScreenShape, word: string): string | undefined =>
  word.trim() !== "" && isDirectoryAt(resolve(directory, word)) ? `ls --root ${quote(word)}` : undefined

const reportUsage = (screen: ScreenShape, json: boolean, event: CliOutput.Presenter.InvalidInvocation): Effect.Effect<void> => {
  const { bold, dim, red, text } = errorStyle(screen)
  const unknown = event.errors.filter(({ _tag }) => _tag === "UnknownSubcommand")
  // An unknown command causes errors about its flags, so do not show these errors.
  const messages = (unknown.length > 0 ? unknown : event.errors).map(messageOf)
  const [name] = event.errors.flatMap((error) => (error._tag === "UnknownSubcommand" ? [error.subcommand] : []))
  const counterpart =
    event.commandPath.length === 1 && name !== undefined
      ? (foreignCommands.get(name) ?? listCommandFor(screen, name))
      : undefined
  const hint = `${counterpart === undefined ? "See" : `Try ${program} ${counterpart}, or see`} ${event.commandPath.join(" ")} --help`
  if (json) {
    return screen.warn(JSON.stringify({ error: { _tag: "UsageError" }, message: messages.join("; "), hint }))
  }
  const lines = messages.map((message) => `${red(bold("error:"))} ${text(message)}`)
  return screen.warn([...lines, `${dim("usage:")} ${event.helpDoc.usage}`, `${dim("hint:")}  ${hint}`].join("\n"))
}

const makeCliLayer = (screen: ScreenShape, json: boolean) => {
  const print = (text: string) => Effect.orDie(screen.write(`${text}\n`))
  const format = formatter(screen)
  return Layer.mergeAll(
    CliOutput.layer(format),
    CliOutput.layerPresenter({
      present: (event) =>
        event._tag === "InvalidInvocation"
          ? reportUsage(screen, json, event)
          : print(event._tag === "Help" ? format.formatHelpDoc(event.helpDoc) : format.formatVersion(event.name, event.version))
    }),
    CliConfig.layer({
      builtIns: [
        GlobalFlag.Help,
        GlobalFlag.Version,
        {
          ...GlobalFlag.Completions,
          flag: GlobalFlag.Completions.flag.pipe(
            Flag.withDescription("Print the completion script"),
            Flag.withMetavar("SHELL")
          ),
          run: (shell: Option.Option<Completions.Shell>, { command }: GlobalFlag.HandlerContext) =>
            Option.isNone(shell)
              ? Effect.void
              : print(Completions.generate(program, shell.value, Completions.fromCommand(command)))
        }
      ]
    }),
    Layer.succeed(Limits, limits)
  )
}

const withColorFlag = (screen: ScreenShape, flags: ReadonlyArray<string>): ScreenShape => {
  const color = flags.find((flag) => flag === "--color" || flag.startsWith("--color="))
  if (color === undefined || color === "--color=auto") return screen
  const colors = color !== "--color=never"
  return { ...screen, colors, errorColors: colors }
}

/** Runs one command line and returns its exit code. Never fails, but can be interrupted. */
export const run = (args: ReadonlyArray<string>, options: { readonly version: string }): Effect.Effect<number, never, Screen> =>
  Effect.flatMap(Screen, (given) => {
    const normalisedArguments = normaliseArguments(Completions.fromCommand(command), args)
    const end = normalisedArguments.indexOf("--")
    const flags = end === -1 ? normalisedArguments : normalisedArguments.slice(0, end)
    const json = flags.includes("--json")
    const screen = withColorFlag(given, flags)
    return Command.runWith(
      command,
      options
    )(normalisedArguments).pipe(
      ended(screen),
      Effect.provide([cliServices, makeCliLayer(screen, json)]),
      Effect.provideService(Screen, screen),
      Effect.provideService(ProgramVersion, options.version)
    )
  })
