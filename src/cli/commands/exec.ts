import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { type ExecOptions, Sandbox } from "../../filesystem/Sandbox.ts"
import { minTimeout } from "../../filesystem/sandbox/bounds.ts"
import type { IoError } from "../../model/FsError.ts"
import { document } from "../answer.ts"
import { containerLayer } from "../container.ts"
import { Quit, usage } from "../exit.ts"
import { reportedLayer } from "../failure.ts"
import * as flags from "../flags.ts"
import { journalless } from "../journal/recording.ts"
import { errorLook } from "../look.ts"
import { mountless } from "../mounts.ts"
import { located } from "../paths.ts"
import { type OutputFailed, Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { subcommandOn } from "../subcommand.ts"

const Answer = Schema.Struct({
  exitCode: Schema.Int,
  stdout: Schema.String,
  stderr: Schema.String,
  durationMillis: Schema.Number,
  timedOut: Schema.Boolean,
  truncated: Schema.Boolean,
  processLimit: Schema.optionalKey(Schema.Int)
})

const newline = 0x0a

const environment = Effect.fnUntraced(function* (settings: ReadonlyArray<string>) {
  const env = new Map<string, string>()
  for (const setting of settings) {
    const at = setting.indexOf("=")
    if (at < 1) return yield* usage(`${JSON.stringify(setting)} sets no variable`, "Write --env NAME=VALUE.")
    env.set(setting.slice(0, at), setting.slice(at + 1))
  }
  return Object.fromEntries(env)
})

const streams = Effect.fnUntraced(function* (readsInput: boolean, isCollected: boolean) {
  const screen = yield* Screen
  const failed = yield* Deferred.make<never, OutputFailed | IoError>()
  let endsLine = true
  const onOutput: ExecOptions["onOutput"] = (bytes, stream) => {
    // Stop as a command does whose reader has gone: wait here until the failure ends the command.
    if (stream === "stdout") {
      return Effect.catch(screen.write(bytes), (error) => Effect.andThen(Deferred.fail(failed, error), Effect.never))
    }
    endsLine = bytes.at(-1) === newline
    return screen.writeError(bytes)
  }
  return {
    failed: Deferred.await(failed),
    stdin: readsInput
      ? Stream.catch(screen.input, (error) => Stream.drain(Stream.fromEffect(Deferred.fail(failed, error))))
      : undefined,
    onOutput: isCollected ? undefined : onOutput,
    note: (text: string) =>
      Effect.suspend(() => {
        const start = endsLine ? "" : "\n"
        endsLine = true
        return screen.warn(`${start}${errorLook(screen).yellow("note:")}  ${text}`)
      })
  }
})

export const exec = subcommandOn(
  reportedLayer(
    journalless("nobody sees what a command in a container changes")(
      mountless("the container has the directory itself")(containerLayer)
    )
  )
)(
  "exec",
  {
    summary: "Run a command in a container that has the directory",
    description: `Run one command in a container made of --image or --rootfs, where the directory is /workspace. It has no network,
no privileges, one processor, 1 GiB of memory and 256 processes. It runs as the owner of the directory where root runs this
program, else as 65534:65534 or as you. What it changes in /workspace is changed; everything else goes with the container, and
so does what the command leaves running. No shell reads the command: for pipes say sh -c. What it prints is printed as it comes,
and the exit code is its own: 124 when the time was up, 128 and the signal's number when a signal ended it.`,
    examples: [
      ["--image debian -- make test", "Whatever the project says"],
      ["--rootfs ./alpine --cwd src -- sh -c 'ls | wc -l'", "Of a root filesystem, in a directory"],
      ["--image python --stdin -- python3 - < tool.py", "With an input"]
    ]
  },
  {
    command: Argument.String("command").pipe(
      Argument.withDescription("The program and its arguments, after --"),
      Argument.variadic({ min: 1 })
    ),
    cwd: flags.text("cwd", "PATH", "Where it starts (default: the root)"),
    env: flags.repeated("env", "NAME=VALUE", "Set a variable (may be repeated)"),
    stdin: flags.toggle("stdin", "Give it standard input"),
    timeout: flags.natural("timeout", "SECONDS", "Stop it after so long (default: never)").pipe(
      Flag.filter(
        (seconds) => seconds === undefined || seconds >= minTimeout,
        (seconds) => `${seconds} is less than ${minTimeout}`
      )
    )
  },
  Effect.fnUntraced(function* ({ command, cwd, env, stdin: readsInput, timeout }) {
    const { json } = yield* Settings
    const sandbox = yield* Sandbox
    const { failed, note, onOutput, stdin } = yield* streams(readsInput, json)
    const running = sandbox.exec(command, {
      cwd: cwd === undefined ? undefined : yield* located(cwd),
      env: yield* environment(env),
      stdin,
      timeout: timeout === undefined ? Infinity : timeout * 1000,
      onOutput
    })
    const { durationMillis, exitCode, processLimit, stderr, stdout, timedOut, truncated } = yield* Effect.raceFirst(
      running,
      failed
    )
    if (json) {
      const answer = { exitCode, stdout, stderr, durationMillis, timedOut, truncated }
      yield* document(Answer, processLimit === undefined ? answer : { ...answer, processLimit }, () => "")
    } else {
      if (processLimit !== undefined) {
        yield* note(`it was refused a process, ${processLimit} are allowed; run fewer at once, or allow more with --pids`)
      }
      if (timedOut) yield* note("the time was up, and it was stopped; give it more with --timeout, or leave that out")
    }
    if (exitCode !== 0) yield* Effect.fail(new Quit({ code: exitCode }))
  })
)
