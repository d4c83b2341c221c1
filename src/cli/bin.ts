#!/usr/bin/env node
/** The only module that accesses the process: its arguments, streams, terminal, signals and exit code. */
import { readFileSync, writeSync } from "node:fs"
import * as NodeModule from "node:module"
import { homedir } from "node:os"
import { join } from "node:path"
import type { Effect as Effect_ } from "effect/Effect"
import { makePrivateDirectory, stateDirectory } from "../runtime/privateDirectory.ts"
import { isTooOld } from "./nodeVersion.ts"
import type { ScreenShape } from "./screen.ts"

const { engines, version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly engines: { readonly node: string }
  readonly version: string
}

if (isTooOld(process.version, engines.node)) {
  process.stderr.write(
    `error: fs-algebra needs Node ${engines.node}, but this is ${process.version}\nhint:  Install a newer Node.\n`
  )
  process.exit(9)
}

const args = process.argv.slice(2)

// Scripts request the version often, so print it without loading the modules below. If the output fails, the normal path
// reports the error.
if (args.length === 1 && (args[0] === "--version" || args[0] === "-v")) {
  try {
    writeSync(1, `fs-algebra v${version}\n`)
    process.exit(0)
  } catch {}
}

const home = (): string => {
  try {
    return homedir()
  } catch {
    return ""
  }
}

/**
 * Returns the directory for Node's compile cache, or `undefined` if there is no private directory. By default Node uses a fixed
 * name in the shared temporary directory. Another user could create this directory and put code there that Node would run.
 */
const compileCache = (): string | undefined => {
  const state = stateDirectory({ platform: process.platform, environment: process.env, home: home() })
  if (state === undefined) return undefined
  const own = join(state, "fs-algebra")
  const cache = join(own, "compile-cache")
  try {
    return makePrivateDirectory(own) && makePrivateDirectory(cache) ? cache : undefined
  } catch {
    return undefined
  }
}

// Enable the cache before large modules are loaded. The cache halves the time until the first line of output.
const cache = compileCache()
if (cache !== undefined) NodeModule.enableCompileCache(cache)

const Effect = await import("effect/Effect")
const Exit = await import("effect/Exit")
const Stream = await import("effect/Stream")
const { IoError } = await import("../model/FsError.ts")
const { OutputFailed, Screen } = await import("./screen.ts")
const { parseMcpArguments: quick } = await import("./mcpArgs.ts")

const { env, stderr, stdin, stdout } = process

/** Tests whether to use colours, as https://no-color.org and https://force-color.org specify. */
const hasColors = (stream: NodeJS.WriteStream): boolean => {
  if (env["NO_COLOR"] !== undefined && env["NO_COLOR"] !== "") return false
  const forced = env["FORCE_COLOR"]
  if (forced !== undefined && forced !== "") return forced !== "0" && forced !== "false"
  return stream.isTTY === true && env["TERM"] !== "dumb"
}

/** Returns the width of the terminal; some terminals report 0 columns. */
const columnsOf = (stream: NodeJS.WriteStream): number => (stream.columns > 0 ? stream.columns : 80)

let status = ""

const clearStatus = (): void => {
  if (status !== "") stderr.write("\r\u001b[K")
  status = ""
}

const write = (stream: NodeJS.WriteStream, content: string | Uint8Array): Effect_<void, InstanceType<typeof OutputFailed>> =>
  Effect.callback((resume) => {
    clearStatus()
    stream.write(content, (error: NodeJS.ErrnoException | null | undefined) => {
      if (error === null || error === undefined) resume(Effect.void)
      else resume(Effect.fail(new OutputFailed({ code: error.code ?? "EIO", detail: error.message })))
    })
  })

// A stream whose reader has gone emits an error event. Without a listener, this event would end the process.
for (const stream of [stdout, stderr]) stream.on("error", () => {})

const screen: ScreenShape = {
  program: env["npm_lifecycle_event"] === "start" ? "npm start --" : "fs-algebra",
  directory: process.cwd(),
  stateDirectory: stateDirectory({ platform: process.platform, environment: env, home: home() }),
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
  input: Stream.fromAsyncIterable<Uint8Array, InstanceType<typeof IoError>>(
    stdin,
    (error) => new IoError({ operation: "read", path: "standard input", detail: String(error) })
  )
}

const server = quick(args)
const program =
  server === undefined
    ? (await import("./main.ts")).run(args, { version })
    : (await import("./mcpMain.ts")).run(server, { version })

const fiber = Effect.runFork(Effect.provideService(program, Screen, screen))

const signals = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const
let signalExitCode: number | undefined

for (const [signal, code] of Object.entries(signals)) {
  process.on(signal, () => {
    // A second signal ends the process at once, even during a write.
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
