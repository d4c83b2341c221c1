/** Connects the command line to the process: streams, terminal, signals, exit code. */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import { IoError } from "../model/FsError.ts"
import { stateDirectory } from "../runtime/privateDirectory.ts"
import { parseMcpArguments } from "./mcpArgs.ts"
import { OutputFailed, Screen, type ScreenShape } from "./screen.ts"

const { env, stderr, stdin, stdout } = process

/** Tests whether to use colours, as https://no-color.org and https://force-color.org specify. */
const hasColors = (stream: NodeJS.WriteStream): boolean => {
  if (env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "") return false
  const forced = env["FORCE_COLOR"]
  if (forced !== undefined && forced !== "") return forced !== "0" && forced !== "false"
  return stream.isTTY === true && env["TERM"] !== "dumb"
}

/** Returns the width of the terminal in columns. Returns 80 if the stream is not a terminal, or reports 0 columns. */
const columnsOf = (stream: NodeJS.WriteStream): number => (stream.columns > 0 ? stream.columns : 80)

let status = ""

const clearStatus = (): void => {
  if (status !== "") stderr.write("\r\u001b[K")
  status = ""
}

const write = (stream: NodeJS.WriteStream, content: string | Uint8Array): Effect.Effect<void, OutputFailed> =>
  Effect.callback((resume) => {
    clearStatus()
    stream.write(content, (error: NodeJS.ErrnoException | null | undefined) => {
      if (error === null || error === undefined) resume(Effect.void)
      else resume(Effect.fail(new OutputFailed({ code: error.code ?? "EIO", detail: error.message })))
    })
  })

const makeScreen = (home: string): ScreenShape => ({
  program: env["npm_lifecycle_event"] === "start" ? "npm start --" : "fs-algebra",
  directory: process.cwd(),
  stateDirectory: stateDirectory({ platform: process.platform, environment: env, home }),
  isTerminal: stdout.isTTY === true,
  isInteractive: stdin.isTTY === true,
  showsProgress: stderr.isTTY === true && env["TERM"] !== "dumb",
  colors: hasColors(stdout),
  errorColors: hasColors(stderr),
  columns: columnsOf(stdout),
  write: (content) => write(stdout, content),
  warn: (line) => Effect.ignore(write(stderr, `${line}\n`)),
  writeError: (bytes) => Effect.ignore(write(stderr, bytes)),
  status: (line) =>
    Effect.sync(() => {
      clearStatus()
      status = line.slice(0, columnsOf(stderr) - 1)
      stderr.write(status)
    }),
  input: Stream.fromAsyncIterable<Uint8Array, IoError>(
    stdin,
    (error) => new IoError({ operation: "read", path: "standard input", detail: String(error) })
  )
})

const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

interface Started {
  readonly home: string
  readonly version: string
}

export const start = async (args: ReadonlyArray<string>, { home, version }: Started): Promise<void> => {
  // A stream whose reader has gone emits an error event. Without a listener, this event would end the process.
  for (const stream of [stdout, stderr]) stream.on("error", () => {})

  const server = parseMcpArguments(args)
  const program =
    server === undefined
      ? (await import("./main.ts")).run(args, { version })
      : (await import("./mcpMain.ts")).run(server, { version })

  const fiber = Effect.runFork(Effect.provideService(program, Screen, makeScreen(home)))
  let signalExitCode: number | undefined

  for (const [signal, code] of Object.entries(signals)) {
    process.on(signal, () => {
      // A second signal ends the process immediately, even during a write.
      if (signalExitCode !== undefined) process.exit(code)
      signalExitCode = code
      fiber.interruptUnsafe()
    })
  }

  // Keep the process alive while no I/O is pending.
  const keepAliveTimer = setInterval(() => {}, 0x7fffffff)
  fiber.addObserver((exit) => {
    clearInterval(keepAliveTimer)
    clearStatus()
    process.exit(signalExitCode ?? (Exit.isSuccess(exit) ? exit.value : signals.SIGINT))
  })
}
