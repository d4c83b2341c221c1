/** `exec`: one command in a container that has the root at hand, with what it printed and the code it ended with. */
import { Buffer } from "node:buffer"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Argument from "effect/cli/Argument"
import * as Flag from "effect/cli/Flag"
import { type ExecResult, Sandbox } from "../../filesystem/Sandbox.ts"
import { maxStdin, maxStream, maxTimeout, minTimeout } from "../../filesystem/sandbox/bounds.ts"
import { document } from "../answer.ts"
import { containerLayer } from "../container.ts"
import { Complaint, Quit, wrongUsage } from "../exit.ts"
import { reportedLayer } from "../failure.ts"
import * as flags from "../flags.ts"
import * as humanise from "../humanise.ts"
import { journalless } from "../journal/recording.ts"
import { errorLook } from "../look.ts"
import { mountless } from "../mounts.ts"
import { Screen } from "../screen.ts"
import { Settings } from "../settings.ts"
import { subcommandOn } from "../subcommand.ts"

const Answer = Schema.Struct({
  exitCode: Schema.Int,
  stdout: Schema.String,
  stderr: Schema.String,
  durationMillis: Schema.Number,
  timedOut: Schema.Boolean,
  truncated: Schema.Boolean
})

const usage = (message: string, hint: string): Complaint =>
  new Complaint({ error: { _tag: "UsageError" }, message, hint, code: wrongUsage })

const environment = Effect.fnUntraced(function* (settings: ReadonlyArray<string>) {
  const env = new Map<string, string>()
  for (const setting of settings) {
    const at = setting.indexOf("=")
    if (at < 1) return yield* usage(`${JSON.stringify(setting)} sets no variable`, "Write --env NAME=VALUE.")
    env.set(setting.slice(0, at), setting.slice(at + 1))
  }
  return Object.fromEntries(env)
})

const standardInput = Effect.gen(function* () {
  const { input } = yield* Screen
  const chunks: Array<Uint8Array> = []
  let size = 0
  const tooMuch = usage(
    `standard input is more than ${humanise.bytes(maxStdin)}`,
    "Put it in a file below the root, and have the command read that."
  )
  yield* Stream.runForEach(input, (bytes): Effect.Effect<void, Complaint> => {
    chunks.push(bytes)
    size += bytes.length
    return size > maxStdin ? Effect.fail(tooMuch) : Effect.void
  })
  return Buffer.concat(chunks)
})

/** What the document leaves out, for people. */
const remarks = Effect.fnUntraced(function* ({ stderr, timedOut, truncated }: ExecResult) {
  const screen = yield* Screen
  const { yellow } = errorLook(screen)
  if (stderr !== "") yield* screen.warn(stderr.replace(/\n$/, ""))
  if (truncated) {
    yield* screen.warn(`${yellow("note:")}  of each stream only the first ${humanise.bytes(maxStream)} are shown`)
  }
  if (timedOut) yield* screen.warn(`${yellow("note:")}  the time was up, and it was stopped; give it more with --timeout`)
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
no privileges, one processor, 1 GiB of memory, and at most 120 seconds. What it changes in /workspace is changed; everything
else goes with the container. No shell reads the command: for pipes say sh -c. What it prints is printed, and the exit code
is its own.`,
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
    timeout: flags.natural("timeout", "SECONDS", "Stop it after so long, 1 to 120 (default: 30)").pipe(
      Flag.filter(
        (seconds) => seconds === undefined || (seconds >= minTimeout && seconds <= maxTimeout),
        (seconds) => `${seconds} is not between ${minTimeout} and ${maxTimeout}`
      )
    )
  },
  Effect.fnUntraced(function* ({ command, cwd, env, stdin, timeout }) {
    const { json } = yield* Settings
    const sandbox = yield* Sandbox
    const result = yield* sandbox.exec(command, {
      cwd,
      env: yield* environment(env),
      stdin: stdin ? yield* standardInput : undefined,
      timeout: timeout === undefined ? undefined : timeout * 1000
    })
    const { durationMillis, exitCode, stderr, stdout, timedOut, truncated } = result
    yield* document(Answer, { exitCode, stdout, stderr, durationMillis, timedOut, truncated }, () => stdout)
    if (!json) yield* remarks(result)
    if (exitCode !== 0) yield* Effect.fail(new Quit({ code: exitCode }))
  })
)
