/**
 * git is a program that stores objects for us, and knows of nothing else: it is run without a shell, on a git directory and never on
 * a work tree, with an environment of which only the PATH is anybody's own. So no user's configuration, hook, filter, attribute or
 * trace can take part, whatever the variables of this process say.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as ChildProcess from "node:child_process"
import type { ChildProcessWithoutNullStreams } from "node:child_process"
import { Fs, join, stream, streams } from "../../runtime/node.ts"
import { isBytes } from "../../model/bytes.ts"
import { configuredPath, find, type Program } from "../../runtime/programs.ts"
import { type StoreFault, storeFault } from "../errors.ts"

export interface Git {
  /** Absolute. */
  readonly program: string
  /** As git says it: "2.39.5". */
  readonly version: string
  /** The git directory, absolute. */
  readonly directory: string
  /** Fails with what git says when it ends with anything but 0. Interruption ends the process, and waits for its end. */
  readonly run: (args: ReadonlyArray<string>, options?: RunOptions) => Effect.Effect<{ readonly stdout: Buffer }, StoreFault>
  /** A process that lives as long as the scope, whose streams are the caller's. */
  readonly start: (args: ReadonlyArray<string>) => Effect.Effect<Running, StoreFault, Scope.Scope>
}

export interface RunOptions {
  readonly input?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined
  /** Given the output as it comes, which is then not collected. */
  readonly onOutput?: ((bytes: Buffer) => void) | undefined
  /** A directory, absolute, in which new objects are put in place of the store's own, which are still found. */
  readonly objects?: string | undefined
}

export interface Running {
  readonly child: ChildProcessWithoutNullStreams
  /** When it has ended and its streams have been read to their ends. Never fails. */
  readonly end: Promise<End>
}

export interface End {
  readonly code: number | null
  readonly signal: string | null
  /** At most the first 64 KiB. */
  readonly stderr: string
  /** That it could not be started. */
  readonly error?: NodeJS.ErrnoException | undefined
}

export interface Options {
  /** Directories, absolute, whose programs are not run: what others may write, such as the workspace. */
  readonly avoid?: ReadonlyArray<string> | undefined
  /** @default [2, 25] */
  readonly least?: readonly [major: number, minor: number] | undefined
}

const install = "install git, e.g. apt-get install git, apk add git or brew install git"

/** Over whatever stands in any file. The bytes are those that `core.bigFileThreshold` and the pack options let git hold in memory. */
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

const fixed = ["--no-pager", "--literal-pathspecs", ...settings.flatMap((setting) => ["-c", setting])]

/** All that git is told; without a HOME there are no files of the user's, in any version. */
const environmentOf = (path: string): NodeJS.ProcessEnv => ({
  PATH: path,
  LC_ALL: "C",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_CONFIG_SYSTEM: "/dev/null",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
  GIT_NO_LAZY_FETCH: "1",
  GIT_TERMINAL_PROMPT: "0",
  GIT_OPTIONAL_LOCKS: "0"
})

const elsewhere = (directory: string, objects: string | undefined): NodeJS.ProcessEnv =>
  objects === undefined
    ? {}
    : { GIT_OBJECT_DIRECTORY: objects, GIT_ALTERNATE_OBJECT_DIRECTORIES: JSON.stringify(join(directory, "objects")) }

const readable = (text: string): string => {
  const oneLine = text.trim().replace(/[\u0000-\u001f\u007f]+/g, " ")
  return oneLine.length > 500 ? `${oneLine.slice(0, 500)}…` : oneLine
}

/** What git's words mean; the first that fits. */
const meanings: ReadonlyArray<readonly [words: RegExp, reason: StoreFault["reason"], advice: string]> = [
  [/no space left|out of diskspace|disk quota exceeded/i, "io", "the disk is full"],
  [/read-only file system|permission denied/i, "unavailable", "the store may not be written"],
  [
    /\.lock'?: File exists/,
    "unavailable",
    "another process is at it; if none is, one was killed there: remove the .lock file that is named"
  ],
  [
    /corrupt|missing (?:blob|tree|commit|object|necessary)|bad (?:object|tree|packed)|inflate|could not (?:read|get)|unable to (?:read|parse)|not a valid|does not match index|non-existing|nonexistent|is a (?:blob|tree|tag), not/i,
    "corrupt",
    "the store is damaged"
  ]
]

/** How a process that has failed is told. */
export const failureOf = (command: string, { code, error, signal, stderr }: End): StoreFault => {
  if (error !== undefined) return storeFault("io", `git could not be started: ${readable(error.message)}`)
  const said = readable(stderr)
  const how = signal === null ? `ended with ${code}` : `was ended by ${signal}`
  const [, reason, advice] = meanings.find(([words]) => words.test(stderr)) ?? [undefined, "io" as const, undefined]
  return storeFault(
    reason,
    `${advice === undefined ? "" : `${advice}; `}git ${command} ${how}${said === "" ? "" : `: ${said}`}`
  )
}

const mostSaid = 2 ** 16

/** Loaded when git is first run: who keeps no history needs no processes. */
const processes = (): typeof ChildProcess => process.getBuiltinModule("node:child_process")

const launch = (program: string, args: ReadonlyArray<string>, cwd: string, env: NodeJS.ProcessEnv): Running => {
  const child = processes().spawn(program, args, { cwd, env, shell: false, windowsHide: true })
  let stderr = ""
  let error: NodeJS.ErrnoException | undefined
  child.stderr.on("data", (bytes: Buffer) => {
    if (stderr.length < mostSaid) stderr += bytes.toString()
  })
  // That nobody reads any more is told by how the process ends.
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

/** Milliseconds that git has to remove its locks and temporary files. */
const grace = 2000

/** First by a signal at which git removes its locks, and waits for the end: nothing goes on that nobody knows of. */
const terminate = ({ child }: Running): Effect.Effect<void> =>
  Effect.callback<void>((resume) => {
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return resume(Effect.void)
    const timer = setTimeout(() => child.kill("SIGKILL"), grace)
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

const started = ({ path, program }: Program, args: ReadonlyArray<string>, cwd: string, objects?: string) =>
  Effect.acquireRelease(
    Effect.try({
      try: () => launch(program, args, cwd, { ...environmentOf(path), ...elsewhere(cwd, objects) }),
      catch: (error) => storeFault("io", `git could not be started: ${readable(String(error))}`)
    }),
    dispose
  )

/** Answers what the source has failed with. */
const feed = async ({ child }: Running, input: RunOptions["input"]): Promise<unknown> => {
  try {
    if (input === undefined || typeof input === "string" || isBytes(input)) child.stdin.end(input)
    else await streams().pipeline(stream().Readable.from(input, { objectMode: false }), child.stdin)
    return undefined
  } catch (error) {
    // git cannot know that its input lacks its end.
    child.kill("SIGTERM")
    return error
  }
}

interface Outcome {
  readonly end: End
  readonly stdout: Buffer
  readonly inputError: unknown
}

const finished = (running: Running, { input, onOutput }: RunOptions): Effect.Effect<Outcome> =>
  Effect.promise(async () => {
    const parts: Array<Buffer> = []
    running.child.stdout.on("data", onOutput ?? ((bytes: Buffer) => void parts.push(bytes)))
    const [end, inputError] = await Promise.all([running.end, feed(running, input)])
    return { end, stdout: Buffer.concat(parts), inputError }
  })

const runWith = (self: Program, cwd: string, before: ReadonlyArray<string>, args: ReadonlyArray<string>, options: RunOptions) =>
  Effect.scoped(
    Effect.gen(function* () {
      const running = yield* started(self, [...before, ...args], cwd, options.objects)
      const { end, inputError, stdout } = yield* finished(running, options)
      if (end.code !== 0 || end.error !== undefined) return yield* Effect.fail(explained(self, cwd, args[0]!, end))
      if (inputError !== undefined)
        return yield* Effect.fail(storeFault("io", `git ${args[0]!} was not given all of its input`))
      return { stdout }
    })
  )

/** The system says ENOENT for the program and for the directory. */
const explained = ({ program }: Program, cwd: string, command: string, end: End): StoreFault => {
  if (end.error?.code !== "ENOENT") return failureOf(command, end)
  return Fs.existsSync(cwd)
    ? storeFault("gitMissing", `${program} is not there any more; ${install}`)
    : storeFault("unavailable", `${cwd} is not there any more`)
}

const versionOf = (self: Program): Effect.Effect<string, StoreFault> =>
  Effect.flatMap(runWith(self, "/", [], ["version"], {}), ({ stdout }) => {
    const [, version] = /^git version (\d+\.\d+(?:\.\d+)*)/.exec(stdout.toString()) ?? []
    return version === undefined
      ? Effect.fail(
          storeFault("gitMissing", `${self.program} is not git: it says ${JSON.stringify(readable(stdout.toString()))}`)
        )
      : Effect.succeed(version)
  })

const isAtLeast = (version: string, [major, minor]: readonly [number, number]): boolean => {
  const [a = 0, b = 0] = version.split(".").map(Number)
  return a > major || (a === major && b >= minor)
}

/** The git in the PATH, for the git directory `directory`. Fails with "gitMissing" where there is none, or one too old. */
export const make = (directory: string, { avoid = [], least = [2, 25] }: Options = {}): Effect.Effect<Git, StoreFault> =>
  Effect.gen(function* () {
    const self = find("git", yield* configuredPath, avoid)
    if (self === undefined) return yield* Effect.fail(storeFault("gitMissing", `there is no git in the PATH; ${install}`))
    const version = yield* versionOf(self)
    if (!isAtLeast(version, least)) {
      const wanted = `git ${version} is too old, at least ${least.join(".")} is needed; ${install}`
      return yield* Effect.fail(storeFault("gitMissing", wanted))
    }
    const before = [...fixed, `--git-dir=${directory}`]
    return {
      program: self.program,
      version,
      directory,
      run: (args, options = {}) => runWith(self, directory, before, args, options),
      start: (args) => started(self, [...before, ...args], directory)
    }
  })
