/** Builds the three interfaces of `node:fs` (callbacks, promises, synchronous calls) from one set of calls. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type * as NodeUtil from "node:util"
import { type Algebra, Filesystem, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import { makeRelativeTargets } from "../../port/absoluteLinks.ts"
import { builtin, isNode } from "../../runtime/node.ts"
import { errnoError } from "../errno.ts"
import { constants, invalidType, toOptions, toPath } from "./arguments.ts"
import { makeCopy } from "./copy.ts"
import { make as makeCore } from "./core.ts"
import { makeDescriptorCalls } from "./descriptors.ts"
import { makeEntryCalls } from "./entries.ts"
import {
  abortError,
  collect,
  Dir,
  FileHandle,
  isAborted,
  makeStreams,
  makeWatch,
  openDirectory,
  type Run,
  toSignal,
  watchChanges
} from "./objects.ts"
import { Dirent, Stats } from "./stats.ts"

type Call = (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, Error>
type Callback = (error: Error | null, ...values: ReadonlyArray<unknown>) => void

/** The system calls that ENOSYS errors name for some calls. For all other calls, these errors have the name of the call. */
const syscalls: Readonly<Record<string, string>> = {
  readdir: "scandir",
  copyFile: "copyfile",
  utimes: "utime",
  readFile: "open"
}

const rootLinks = (fs: Algebra): Algebra =>
  fs.port.links === undefined
    ? fs
    : makeAlgebra({ ...fs.port, links: { ...fs.port.links, relative: makeRelativeTargets(() => ["/"]) } })

const later = (run: () => void): void => (isNode ? process.nextTick(run) : queueMicrotask(run))

/**
 * Returns the `fs` object. `NodeFs.ts` states its type, because the calls take arguments of any type and check them.
 */
export const build = Effect.fnUntraced(function* (
  hasRootLinks: boolean
): Effect.fn.Return<Readonly<Record<string, unknown>>, never, Filesystem> {
  const given = yield* Filesystem
  const context = yield* Effect.context<never>()
  const core = makeCore(hasRootLinks ? rootLinks(given) : given)
  const entries = makeEntryCalls(core)
  const contents = makeDescriptorCalls(core, entries)
  const runExit = Effect.runPromiseExitWith(context)
  const runSyncExit = Effect.runSyncExitWith(context)

  const run: Run = async (effect, signal) => {
    if (isAborted(signal)) throw abortError(signal!)
    // Only an AbortSignal can interrupt a running call. Any other object with `aborted` is checked only before the call.
    const exit = await runExit(effect, { signal: signal instanceof AbortSignal ? signal : undefined })
    if (Exit.isSuccess(exit)) return exit.value
    throw isAborted(signal) ? abortError(signal!) : Cause.squash(exit.cause)
  }

  /** Tests whether a call could not end synchronously, and interrupts such a call. */
  const isAsync = (exit: Exit.Exit<unknown, unknown>): boolean => {
    const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
    if (!Cause.isAsyncFiberError(error)) return false
    Effect.runForkWith(context)(Fiber.interrupt(error.fiber))
    return true
  }

  /** Runs a call synchronously. Does not start a call on an asynchronous backend, because its change would happen later. */
  const runSync = (name: string, effect: Effect.Effect<unknown, Error>, path: unknown): unknown => {
    const call = { syscall: syscalls[name] ?? name, ...(typeof path === "string" ? { path } : undefined) }
    // Other backends than virtual ones may read synchronously, but never write synchronously.
    if (core.fs.port.info.confinement !== "virtual" || isAsync(runSyncExit(core.fs.exists("."))))
      throw errnoError("ENOSYS", call)
    const exit = runSyncExit(effect)
    if (Exit.isSuccess(exit)) return exit.value
    if (isAsync(exit)) throw errnoError("ENOSYS", call)
    throw Cause.squash(exit.cause)
  }

  const { appendFile, copyFile, open, readFile, truncate, writeFile, ...descriptorCalls } = contents
  const common = {
    ...entries.calls,
    appendFile,
    copyFile,
    cp: makeCopy(core),
    open,
    opendir: (path: unknown, options?: unknown) => openDirectory(entries, path, options),
    readFile,
    realpath: entries.realpath("lstat"),
    truncate,
    writeFile
  }
  const all = { ...common, ...descriptorCalls } as unknown as Readonly<
    Record<keyof typeof common | keyof typeof descriptorCalls, Call>
  >
  const realpathNative = entries.realpath("realpath") as Call

  const withCallback =
    (call: Call, results: (value: unknown, args: ReadonlyArray<unknown>) => ReadonlyArray<unknown> = (value) => [value]) =>
    (...args: ReadonlyArray<unknown>): void => {
      const callback = args.at(-1)
      if (typeof callback !== "function") throw invalidType("cb", "of type function", callback)
      const rest = args.slice(0, -1)
      const signal = findSignal(rest)
      run(call(...rest), signal).then(
        (value) => later(() => (callback as Callback)(null, ...(value === undefined ? [] : results(value, rest)))),
        (error: Error) => later(() => (callback as Callback)(error))
      )
    }

  const callbacks: Record<string, unknown> = {}
  const synchronous: Record<string, unknown> = {}
  for (const [name, call] of Object.entries(all)) {
    const isTransfer = ["read", "readv", "write", "writev"].includes(name)
    const faced = withCallback(call, isTransfer ? (count, args) => [count, args[1]] : undefined)
    callbacks[name] = faced
    synchronous[`${name}Sync`] = (...args: ReadonlyArray<unknown>) => runSync(name, call(...args), args[0])
    if (isTransfer && isNode) {
      const count = name.startsWith("read") ? "bytesRead" : "bytesWritten"
      const key = name.endsWith("v") ? "buffers" : "buffer"
      const promised = async (...args: ReadonlyArray<unknown>) => ({ [count]: await run(call(...args)), [key]: args[1] })
      Object.assign(faced, { [builtin<typeof NodeUtil>("node:util").promisify.custom]: promised })
    }
  }
  Object.assign(callbacks["realpath"]!, { native: withCallback(realpathNative) })
  Object.assign(synchronous["realpathSync"]!, {
    native: (...args: ReadonlyArray<unknown>) => runSync("realpath", realpathNative(...args), args[0])
  })

  const exists = (path: unknown): Effect.Effect<boolean> =>
    Effect.suspend(() => Effect.match(all.access(path), { onFailure: () => false, onSuccess: () => true })).pipe(
      Effect.catchDefect(() => Effect.succeed(false))
    )

  const promised: Record<string, unknown> = { constants }
  for (const name of Object.keys(common) as Array<keyof typeof common>) {
    promised[name] = async (...args: ReadonlyArray<unknown>) => run(all[name](...args), findSignal(args))
  }
  const streams = makeStreams({
    open: callbacks["open"],
    read: callbacks["read"],
    write: callbacks["write"],
    writev: callbacks["writev"],
    fsync: callbacks["fsync"],
    close: callbacks["close"]
  })
  const handleOf = (file: unknown): number | undefined => (file instanceof FileHandle ? file.fd : undefined)
  const promises = Object.assign(promised, {
    open: async (...args: ReadonlyArray<unknown>) =>
      new FileHandle((await run(all.open(...args))) as number, contents, run, streams),
    realpath: async (...args: ReadonlyArray<unknown>) => run(realpathNative(...args)),
    readFile: async (file: unknown, options?: unknown) => run(all.readFile(handleOf(file) ?? file, options), toSignal(options)),
    writeFile: async (file: unknown, data: unknown, options?: unknown) =>
      run(all.writeFile(handleOf(file) ?? file, await collect(data, options), options), toSignal(options)),
    appendFile: async (file: unknown, data: unknown, options?: unknown) =>
      run(all.appendFile(handleOf(file) ?? file, await collect(data, options), options), toSignal(options)),
    watch: (path: unknown, options?: unknown) => {
      const changes = watchChanges(core, toPath(path, "filename"), toOptions(options))
      const signal = toSignal(options)
      return Stream.toAsyncIterableWith(signal === undefined ? changes : Stream.merge(changes, failOnAbort(signal)), context)
    }
  })

  return {
    ...callbacks,
    ...synchronous,
    exists: (path: unknown, callback: (isThere: boolean) => void) => {
      if (typeof callback !== "function") throw invalidType("cb", "of type function", callback)
      run(exists(path)).then((isThere) => later(() => callback(isThere)))
    },
    existsSync: (path: unknown) => runSync("access", exists(path), path),
    createReadStream: (path: unknown, options?: unknown) => streams.read(path, toOptions(options)),
    createWriteStream: (path: unknown, options?: unknown) => streams.write(path, toOptions(options)),
    watch: makeWatch(core, Effect.runForkWith(context)),
    promises,
    constants,
    Dir,
    Dirent,
    Stats
  }
})

const failOnAbort = (signal: AbortSignal): Stream.Stream<never, Error> =>
  Stream.fromEffect(
    Effect.callback<never, Error>((resume) => {
      const abort = () => resume(Effect.fail(abortError(signal)))
      if (signal.aborted) abort()
      else signal.addEventListener("abort", abort, { once: true })
      return Effect.sync(() => signal.removeEventListener("abort", abort))
    })
  )

/** Returns the signal of a call's last argument, if these are options. */
const findSignal = (args: ReadonlyArray<unknown>): AbortSignal | undefined => {
  const options = args.at(-1)
  return typeof options === "object" && options !== null && "signal" in options ? toSignal(options) : undefined
}
