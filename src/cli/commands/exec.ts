import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { type ExecOptions, Sandbox } from "../../filesystem/Sandbox.ts"
import { minTimeoutSeconds } from "../../filesystem/sandbox/bounds.ts"
import type { IoError } from "../../model/FsError.ts"
import { writeDocument } from "../answer.ts"
import { containerLayer } from "../container.ts"
import { Quit, usage } from "../exit.ts"
import { reportedLayer } from "../failure.ts"
import * as flags from "../flags.ts"
import { withoutJournalFlag } from "../journal/recording.ts"
import { errorStyle } from "../look.ts"
import { withoutMountFlag } from "../mounts.ts"
import { toPathInRoot } from "../paths.ts"
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

const parseEnvironment = Effect.fnUntraced(function* (settings: ReadonlyArray<string>) {
  const env = new Map<string, string>()
  for (const setting of settings) {
    const at = setting.indexOf("=")
    if (at < 1) return yield* usage(`${JSON.stringify(setting)} does not set a variable`, "Write --env NAME=VALUE.")
    env.set(setting.slice(0, at), setting.slice(at + 1))
  }
  return Object.fromEntries(env)
})

const makeStreams = Effect.fnUntraced(function* (readsInput: boolean, isCollected: boolean) {
  const screen = yield* Screen
  const failed = yield* Deferred.make<never, OutputFailed | IoError>()
  let endsLine = true
  const onOutput: ExecOptions["onOutput"] = (bytes, stream) => {
    if (stream === "stdout") {
      // After a failed write, wait until the race with `failed` interrupts the command.
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
        return screen.warn(`${start}${errorStyle(screen).yellow("note:")}  ${text}`)
      })
  }
})

export const exec = subcommandOn(
  reportedLayer(
    withoutJournalFlag("the changes of a command in a container cannot be recorded")(
      withoutMountFlag("the container works on the directory itself")(containerLayer)
    )
  )
)(
  "exec",
  {
    summary: "Run a command in a container that has the directory",
    description: `Run one command in a container made of --image or --rootfs, with the directory as /workspace. The container has no network,
no privileges, one processor, 1 GiB of memory and 256 processes. If root runs this program, the command runs as the owner
of the directory; otherwise it runs as you or as 65534:65534. Changes in /workspace stay. All other files are removed with
the container, and all processes end with the command. No shell reads the command: use sh -c for pipes. Output is printed
as it arrives.
The exit code is that of the command, 124 after the time limit, or 128 plus the number of the signal that ended it.`,
    examples: [
      ["--image debian -- make test", "The tests of the project"],
      ["--rootfs ./alpine --cwd src -- sh -c 'ls | wc -l'", "With a root filesystem, in the directory src"],
      ["--image python --stdin -- python3 - < tool.py", "With a file as standard input"]
    ]
  },
  {
    command: Argument.String("command").pipe(
      Argument.withDescription("The program and its arguments, after --"),
      Argument.variadic({ min: 1 })
    ),
    cwd: flags.text("cwd", "PATH", "The directory that the command starts in (default: the root)"),
    env: flags.repeated("env", "NAME=VALUE", "Set an environment variable (may be repeated)"),
    stdin: flags.toggle("stdin", "Pass standard input to the command"),
    timeout: flags.natural("timeout", "SECONDS", "Stop the command after this time (default: never)").pipe(
      Flag.filter(
        (seconds) => seconds === undefined || seconds >= minTimeoutSeconds,
        (seconds) => `${seconds} is less than ${minTimeoutSeconds}`
      )
    )
  },
  Effect.fnUntraced(function* ({ command, cwd, env, stdin: readsInput, timeout }) {
    const { json } = yield* Settings
    const sandbox = yield* Sandbox
    const { failed, note, onOutput, stdin } = yield* makeStreams(readsInput, json)
    const running = sandbox.exec(command, {
      cwd: cwd === undefined ? undefined : yield* toPathInRoot(cwd),
      env: yield* parseEnvironment(env),
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
      yield* writeDocument(Answer, processLimit === undefined ? answer : { ...answer, processLimit }, () => "")
    } else {
      if (processLimit !== undefined) {
        yield* note(
          `a process was refused because the limit is ${processLimit} processes; run fewer at once, or raise the limit with --pids`
        )
      }
      if (timedOut) yield* note("the command was stopped at its time limit; give more time with --timeout, or omit --timeout")
    }
    if (exitCode !== 0) yield* Effect.fail(new Quit({ code: exitCode }))
  })
)
