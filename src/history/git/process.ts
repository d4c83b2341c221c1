/**
 * Runs git, which the library uses only as an object store.
 *
 * Git runs without a shell, on a git directory and never on a work tree. Git receives only PATH from the environment of this
 * process. So the user's configuration, hooks, filters, attributes and trace settings have no effect.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as ChildProcess from "node:child_process"
import type { ChildProcessWithoutNullStreams } from "node:child_process"
import { Fs, join, stream, streams } from "../../runtime/node.ts"
import { isBytes } from "../../model/realms.ts"
import { configuredPath, findProgram, type Program } from "../../runtime/programs.ts"
import { type StoreFault, storeFault } from "../errors.ts"

export interface Git {
  readonly program: string
  readonly version: string
  readonly directory: string
  /**
   * Runs git to its end. Fails with git's message if the exit code is not 0. An interruption ends the process and waits for its
   * exit.
   */
  readonly run: (args: ReadonlyArray<string>, options?: RunOptions) => Effect.Effect<{ readonly stdout: Buffer }, StoreFault>
  /** Starts a process that lives as long as the scope. The caller reads and writes the streams of the process. */
  readonly start: (args: ReadonlyArray<string>) => Effect.Effect<Running, StoreFault, Scope.Scope>
}

export interface RunOptions {
  readonly input?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined
  /** The function that receives the output as it arrives. `run` then returns an empty `stdout`. */
  readonly onOutput?: ((bytes: Buffer) => void) | undefined
  /** The absolute path of a directory in which git creates new objects. Git can still read the objects of the store. */
  readonly objects?: string | undefined
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams
  /** A promise that resolves when the process has ended and its output was read completely. The promise never rejects. */
  readonly end: Promise<End>
}

export interface End {
  readonly code: number | null
  readonly signal: string | null
  readonly stderr: string
  readonly error?: NodeJS.ErrnoException | undefined
}

export interface Options {
  /**
   * The absolute paths of directories, such as the workspace, from which no program may run, because others can write to them.
   */
  readonly avoid?: ReadonlyArray<string> | undefined
  /** The oldest version of git that is accepted. @default [2, 25] */
  readonly minimumVersion?: readonly [major: number, minor: number] | undefined
}

const install = "install git, e.g. apt-get install git, apk add git or brew install git"

/** Settings that override every configuration file. The sizes limit the memory of git. */
const settings: ReadonlyArray<string> = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.attributesFile=/dev/null",
  "core.excludesFile=/dev/null",
  "core.commitGraph=false",
  "core.multiPackIndex=false",
  "core.logAllRefUpdates=false",
  "core.filesRefLockTimeout=1000",
  "core.packedRefsTimeout=1000",
  "core.bigFileThreshold=8m",
  "pack.windowMemory=64m",
  "pack.deltaCacheSize=64m",
  "pack.writeBitmaps=false",
  "gc.auto=0",
  "maintenance.auto=false",
  "commit.gpgsign=false"
]

const globalArguments = ["--no-pager", "--literal-pathspecs", ...settings.flatMap((setting) => ["-c", setting])]

/** Returns the environment variables of every git process. Omits HOME, because git before 2.32 ignores GIT_CONFIG_GLOBAL. */
const environmentOf = (path: string): NodeJS.ProcessEnv => ({
  PATH: path,
  LC_ALL: "C",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_NO_LAZY_FETCH: "1",
  // Versions before 2.45 know no GIT_NO_LAZY_FETCH. A partial clone could name a program that fetches objects.
  GIT_ALLOW_PROTOCOL: "none",
  GIT_TERMINAL_PROMPT: "0",
  GIT_OPTIONAL_LOCKS: "0"
})

const objectDirectoryEnvironment = (directory: string, objects: string | undefined): NodeJS.ProcessEnv =>
  objects === undefined
    ? {}
    : { GIT_OBJECT_DIRECTORY: objects, GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(join(directory, "objects")) }

const toOneLine = (text: string): string => {
  const oneLine = text.trim().replace(/[\u0000-\u001f\u007f]+/g, " ")
  return oneLine.length > 500 ? `${oneLine.slice(0, 500)}…` : oneLine
}

const failurePatterns: ReadonlyArray<readonly [words: RegExp, reason: StoreFault["reason"], advice: string]> = [
  [/no space left|out of diskspace|disk quota exceeded/i, "io", "the disk is full"],
  [/read-only file system|permission denied/i, "unavailable", "this user may not write to the store"],
  [
    /\.lock'?: File exists/,
    "unavailable",
    "another process is using the store; if no process is using it, remove the .lock file that git names"
  ],
  [
    /corrupt|missing (?:blob|tree|commit|object|necessary)|bad (?:object|tree|packed)|inflate|could not (?:read|get)|unable to (?:read|parse)|not a valid|does not match index|non-existing|nonexistent|is a (?:blob|tree|tag), not/i,
    "corrupt",
    "the store is damaged"
  ]
]

export const failureOf = (command: string, { code, error, signal, stderr }: End): StoreFault => {
  if (error !== undefined) return storeFault("io", `git could not be started: ${toOneLine(error.message)}`)
  const said = toOneLine(stderr)
  const how = signal === null ? `exited with code ${code}` : `was killed by ${signal}`
  const [, reason, advice] = failurePatterns.find(([words]) => words.test(stderr)) ?? [undefined, "io" as const, undefined]
  return storeFault(
    reason,
    `${advice === undefined ? "" : `${advice}; `}git ${command} ${how}${said === "" ? "" : `: ${said}`}`
  )
}

const maxStderrLength = 2 ** 16

/** Loads `node:child_process` at the first use of git, so that programs without history do not load it. */
const loadChildProcess = (): typeof ChildProcess => process.getBuiltinModule("node:child_process")

const launch = (program: string, args: ReadonlyArray<string>, cwd: string, env: NodeJS.ProcessEnv): Running => {
  const child = loadChildProcess().spawn(program, args, { cwd, env, shell: false, windowsHide: true })
  let stderr = ""
  let error: NodeJS.ErrnoException | undefined
  child.stderr.on("data", (bytes: Buffer) => {
    if (stderr.length < maxStderrLength) stderr += bytes.toString()
  })
  // Ignore stream errors. The exit of the process reports the failure.
  for (const stream of [child.stdin, child.stdout, child.stderr]) stream.on("error", () => {})
  const end = new Promise<End>((resolve) => {
    child.on("error", (problem) => {
      error = problem
      if (child.pid === undefined) resolve({ code: null, signal: null, stderr, error })
    })
    child.on("close", (code, signal) => resolve({ code, signal, stderr, error: child.pid === undefined ? error : undefined }))
  })
  return { child, end }
}

/** The time in milliseconds between SIGTERM and SIGKILL, in which git removes its locks and temporary files. */
const terminationGraceMillis = 2000

/** Ends a process and waits for its exit. Sends SIGTERM before SIGKILL, because git removes its locks at SIGTERM. */
const terminate = ({ child }: Running): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    const timer = setTimeout(() => child.kill("SIGKILL"), terminationGraceMillis)
    child.ref()
    child.once("exit", () => {
      clearTimeout(timer)
      resume(Effect.void)
    })
    child.kill("SIGTERM")
  })

const dispose = (running: Running): Effect.Effect<void> =>
  Effect.ensuring(
    terminate(running),
    Effect.sync(() => {
      for (const stream of [running.child.stdin, running.child.stdout, running.child.stderr]) stream.destroy()
    })
  )

const startProcess = ({ path, program }: Program, args: ReadonlyArray<string>, cwd: string, objects?: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => launch(program, args, cwd, { ...environmentOf(path), ...objectDirectoryEnvironment(cwd, objects) }),
      catch: (error) => storeFault("io", `git could not be started: ${toOneLine(String(error))}`)
    }),
    dispose
  )

const writeInput = async ({ child }: Running, input: RunOptions["input"]): Promise<unknown> => {
  try {
    if (input === undefined || typeof input === "string" || isBytes(input)) child.stdin.end(input)
    else await streams().pipeline(stream().Readable.from(input, { objectMode: false }), child.stdin)
    return undefined
  } catch (error) {
    // End git, because git cannot detect that its input is incomplete.
    child.kill("SIGTERM")
    return error
  }
}

interface Outcome {
  readonly end: End
  readonly stdout: Buffer
  readonly inputError: unknown
}

const runToEnd = (running: Running, { input, onOutput }: RunOptions): Effect.Effect<Outcome> =>
  Effect.promise(async () => {
    const parts: Array<Buffer> = []
    running.child.stdout.on("data", onOutput ?? ((bytes: Buffer) => void parts.push(bytes)))
    const [end, inputError] = await Promise.all([running.end, writeInput(running, input)])
    return { end, stdout: Buffer.concat(parts), inputError }
  })

const runWith = (
  self: Program,
  cwd: string,
  leadingArguments: ReadonlyArray<string>,
  args: ReadonlyArray<string>,
  options: RunOptions
) =>
  Effect.scoped(
    Effect.gen(function* () {
      const running = yield* startProcess(self, [...leadingArguments, ...args], cwd, options.objects)
      const { end, inputError, stdout } = yield* runToEnd(running, options)
      if (end.code !== 0 || end.error !== undefined) return yield* Effect.fail(toRunFault(self, cwd, args[0]!, end))
      if (inputError !== undefined)
        return yield* Effect.fail(storeFault("io", `git ${args[0]!} did not receive all of its input`))
      return { stdout }
    })
  )

/** Converts the failure of a git process to a fault. ENOENT means that the program or the directory is missing. */
const toRunFault = ({ program }: Program, cwd: string, command: string, end: End): StoreFault => {
  if (end.error?.code !== "ENOENT") return failureOf(command, end)
  return Fs.existsSync(cwd)
    ? storeFault("gitMissing", `${program} no longer exists; ${install}`)
    : storeFault("unavailable", `${cwd} no longer exists`)
}

const versionOf = (self: Program): Effect.Effect<string, StoreFault> =>
  Effect.flatMap(runWith(self, "/", [], ["version"], {}), ({ stdout }) => {
    const [, version] = /^git version (\d+\.\d+(?:\.\d+)*)/.exec(stdout.toString()) ?? []
    return version === undefined
      ? Effect.fail(
          storeFault("gitMissing", `${self.program} is not git: it printed ${JSON.stringify(toOneLine(stdout.toString()))}`)
        )
      : Effect.succeed(version)
  })

const isAtLeast = (version: string, [major, minor]: readonly [number, number]): boolean => {
  const [a = 0, b = 0] = version.split(".").map(Number)
  return a > major || (a === major && b >= minor)
}

/** Finds git in the PATH and binds it to a git directory. Fails with "gitMissing" if git is missing or too old. */
export const make = (
  directory: string,
  { avoid = [], minimumVersion = [2, 25] }: Options = {}
): Effect.Effect<Git, StoreFault> =>
  Effect.gen(function* () {
    const self = findProgram("git", yield* configuredPath, avoid)
    if (self === undefined) return yield* Effect.fail(storeFault("gitMissing", `git is not in the PATH; ${install}`))
    const version = yield* versionOf(self)
    if (!isAtLeast(version, minimumVersion)) {
      const detail = `git ${version} is too old: version ${minimumVersion.join(".")} or later is required; ${install}`
      return yield* Effect.fail(storeFault("gitMissing", detail))
    }
    const leadingArguments = [...globalArguments, `--git-dir=${directory}`]
    return {
      program: self.program,
      version,
      directory,
      run: (args, options = {}) => runWith(self, directory, leadingArguments, args, options),
      start: (args) => startProcess(self, [...leadingArguments, ...args], directory)
    }
  })
