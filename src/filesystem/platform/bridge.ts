import * as ByteSize from "effect/ByteSize"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { File, FileSystem, WatchEvent } from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import { resolve, type Resolved, resolveLink, withResolvedPath } from "../../engine/resolve.ts"
import type { FileStat, Kind, WatchEvent as OurEvent } from "../../model/Entry.ts"
import * as FsErrorModule from "../../model/FsError.ts"
import type { Fault, FsError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Backend, Child } from "../../port/Backend.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import type { Algebra } from "../Filesystem.ts"
import { type Action, type Caller, errorTags, make as makeCaller, readActions } from "../operations/call.ts"
import { badArgument, systemError, toPlatform } from "./errors.ts"

export interface Bridge {
  readonly fs: Algebra
  readonly port: Backend
  readonly isPermitted: Caller["isPermitted"]
  /** Runs a step on the port as an operation of the service, with its checks, limits and errors. */
  readonly runStep: <A>(
    method: string,
    path: string,
    run: (path: FsPath.FsPath) => Effect.Effect<A, Fault>,
    actions?: ReadonlyArray<Action>
  ) => Effect.Effect<A, FsError>
  readonly lookUp: (method: string, path: string, actions?: ReadonlyArray<Action>) => Effect.Effect<Resolved, FsError>
  readonly lookUpLink: (method: string, path: string, actions?: ReadonlyArray<Action>) => Effect.Effect<Resolved, FsError>
  readonly children: (method: string, path: string) => Effect.Effect<ReadonlyArray<Child>, FsError>
  readonly failPlatform: (method: string, path: string, error: FsError) => Effect.Effect<never, PlatformError>
  readonly withPlatformErrors: <A, R>(
    method: string,
    path: string,
    effect: Effect.Effect<A, FsError, R>
  ) => Effect.Effect<A, PlatformError, R>
}

export const make = (fs: Algebra): Bridge => {
  const { port } = fs
  const caller: Caller = makeCaller(port)

  const runStep: Bridge["runStep"] = (method, path, run, actions = readActions) =>
    caller.call(method, path, errorTags.write, actions, run)

  /**
   * Tests whether Node would report ENOTDIR for a path that is NotFound here. The test needs a lookup, so it runs only
   * after a failure.
   */
  const isBlocked = (path: FsPath.FsPath): Effect.Effect<boolean> =>
    Effect.match(resolve(port, path), { onFailure: () => false, onSuccess: ({ isBlocked: blocked }) => blocked })

  const failPlatform: Bridge["failPlatform"] = (method, path, error) => {
    if (error._tag !== "NotFound" && error._tag !== "InvalidPath") return Effect.fail(toPlatform(error, method, path))
    const parsed = FsPath.parse(error.path, port.rules?.policy)
    if (typeof parsed !== "string" || (error._tag === "InvalidPath" && FsPath.uncreatable(parsed) !== undefined)) {
      return Effect.fail(toPlatform(error, method, path, "BadArgument"))
    }
    return error._tag === "InvalidPath"
      ? Effect.fail(toPlatform(error, method, path))
      : Effect.flatMap(isBlocked(parsed), (blocked) =>
          Effect.fail(toPlatform(error, method, path, blocked ? "BadResource" : undefined))
        )
  }

  return {
    fs,
    port,
    isPermitted: caller.isPermitted,
    runStep,
    lookUp: (method, path, actions) => runStep(method, path, (path) => resolve(port, path), actions),
    lookUpLink: (method, path, actions) => runStep(method, path, (path) => resolveLink(port, path), actions),
    children: (method, path) =>
      runStep(method, path, (path) =>
        Effect.map(
          withResolvedPath(port, path, (at) => port.list(at)),
          (children) =>
            children.filter((child) => !TemporaryNames.isInProgress(child.name)).sort((a, b) => FsPath.compare(a.name, b.name))
        )
      ),
    failPlatform,
    withPlatformErrors: (method, path, effect) => Effect.catch(effect, (error) => failPlatform(method, path, error))
  }
}

/** Checks a `mode` argument and returns its permission bits. Ignores the file type bits, as the operating system does. */
export const permissionBits = (method: string, mode: number): Effect.Effect<number, PlatformError> =>
  !Number.isInteger(mode) || mode < 0 || mode > 0xffff_ffff
    ? Effect.fail(badArgument(method, "the mode must be a whole number from 0 to 2^32 - 1"))
    : (mode & 0o7000) === 0
      ? Effect.succeed(mode & 0o777)
      : Effect.fail(badArgument(method, "set-user-ID, set-group-ID and sticky bits are not supported"))

/**
 * Applies to a requested mode the same mask (umask) that the backend applied to the mode of the new entry.
 *
 * The new file has no execute bits, so the execute bits of `mode` are masked like its read bits.
 */
export const maskMode = (mode: number, made: FileStat): number =>
  made.mode === undefined ? mode : mode & (made.isDirectory ? made.mode : made.mode | ((made.mode >> 2) & 0o111))

const typeOf: { readonly [K in Kind]: File.Type } = {
  file: "File",
  directory: "Directory",
  symlink: "SymbolicLink",
  // The port does not distinguish FIFOs, sockets and devices.
  other: "Unknown"
}

const typeBits: { readonly [K in Kind]: number } = { file: 0o100000, directory: 0o040000, symlink: 0o120000, other: 0 }

const defaultMode: { readonly [K in Kind]: number } = { file: 0o644, directory: 0o755, symlink: 0o777, other: 0o644 }

const dateOf = (time: DateTime.Utc | undefined): Option.Option<Date> =>
  Option.map(Option.fromNullishOr(time), DateTime.toDateUtc)

export const infoOf = (stat: FileStat): File.Info => ({
  type: typeOf[stat.kind],
  mtime: dateOf(stat.modifiedAt),
  atime: Option.none(),
  birthtime: dateOf(stat.createdAt),
  dev: 0n,
  ino: Option.none(),
  mode: typeBits[stat.kind] | (stat.mode ?? defaultMode[stat.kind]),
  nlink: Option.none(),
  uid: Option.none(),
  gid: Option.none(),
  rdev: Option.none(),
  size: ByteSize.bytes(stat.sizeBytes),
  blksize: Option.none(),
  blocks: Option.none()
})

type ReadMethods = Pick<
  FileSystem,
  "access" | "stat" | "lstat" | "readDirectory" | "readDirectoryEntries" | "readFile" | "readLink" | "realPath" | "watch"
>

const tagOf = { Created: "Create", Updated: "Update", Removed: "Remove" } as const

export const makeLooking = (bridge: Bridge): ReadMethods => {
  const {
    withPlatformErrors: answer,
    children,
    failPlatform: failure,
    fs,
    lookUp: look,
    isPermitted: may,
    port,
    runStep: step
  } = bridge

  const failDenied = (path: string, what: string) =>
    Effect.fail(systemError("access", path, "PermissionDenied", `nobody may ${what} this entry`))

  const isWritable = (stat: FileStat): boolean =>
    may("write", stat.path) && (stat.mode === undefined || (stat.mode & 0o222) !== 0)

  const readable = (path: string, stat: FileStat): Effect.Effect<void, PlatformError> =>
    stat.isFile
      ? answer(
          "access",
          path,
          step("access", path, (path) => Effect.asVoid(Effect.scoped(Read.open(port, path))))
        )
      : stat.mode === undefined || (stat.mode & 0o444) !== 0
        ? Effect.void
        : failDenied(path, "read")

  const listWithinLimit = (method: string, path: string) =>
    answer(
      method,
      path,
      Effect.flatMap(Limits, ({ maxListEntries: allowed }) =>
        Effect.filterOrFail(
          children(method, path),
          ({ length }) => length <= allowed,
          ({ length: actual }) =>
            new FsErrorModule.LimitExceeded({ operation: method, path, limit: "maxListEntries", allowed, actual })
        )
      )
    )

  /** Returns all paths below the directory in path order. A symlink to a directory is listed but not entered. */
  const listRecursively = (path: string): Effect.Effect<Array<string>, PlatformError> =>
    answer(
      "readDirectory",
      path,
      Effect.flatMap(
        step("readDirectory", path, (path) => Effect.succeed(path)),
        (base) => Stream.runCollect(Stream.map(fs.walk(path), (entry) => FsPath.relative(base, entry.path) as string))
      )
    )

  const resolveEntry = (method: string, path: string): Effect.Effect<ResolvedEntry, FsErrorModule.FsError> =>
    Effect.flatMap(look(method, path), (found) =>
      found.stat === undefined
        ? Effect.fail(new FsErrorModule.NotFound({ operation: method, path }))
        : Effect.succeed({ path: found.path, stat: found.stat })
    )

  /**
   * Streams the events in a directory: those of its direct entries, or of all entries below it if `isRecursive`. For a
   * file, streams only the file's own events.
   */
  const streamEvents = (path: string, at: ResolvedEntry, isRecursive: boolean): Stream.Stream<WatchEvent, PlatformError> => {
    const base = at.stat.isDirectory ? at.path : FsPath.parent(at.path)
    const concerns = (event: OurEvent): boolean =>
      at.stat.isDirectory ? isRecursive || !FsPath.relative(base, event.path).includes("/") : event.path === at.path
    return fs.watch(base).pipe(
      Stream.filter(concerns),
      Stream.map((event): WatchEvent => ({ _tag: tagOf[event._tag], path: FsPath.relative(base, event.path) })),
      Stream.catch((error) => Stream.fromEffect(failure("watch", path, error)))
    )
  }

  return {
    access: (path, options) =>
      Effect.flatMap(answer("access", path, fs.stat(path)), (stat) => {
        const reading = options?.readable === true ? readable(path, stat) : Effect.void
        return options?.writable === true && !isWritable(stat) ? Effect.andThen(reading, failDenied(path, "write")) : reading
      }),
    stat: (path) => answer("stat", path, Effect.map(fs.stat(path), infoOf)),
    lstat: (path) => answer("lstat", path, Effect.map(fs.lstat(path), infoOf)),
    readDirectory: (path, options) =>
      options?.recursive === true
        ? listRecursively(path)
        : Effect.map(listWithinLimit("readDirectory", path), (children) => children.map((child) => child.name)),
    readDirectoryEntries: (path) =>
      Effect.map(listWithinLimit("readDirectoryEntries", path), (children) =>
        children.map((child) => ({ name: child.name, type: typeOf[child.kind] }))
      ),
    readFile: (path) =>
      answer(
        "readFile",
        path,
        Effect.map(fs.readBytes(path), ({ content }) => content)
      ),
    readLink: (path) => answer("readLink", path, fs.readLink(path)),
    realPath: (path) =>
      answer(
        "realPath",
        path,
        Effect.map(fs.realPath(path), (path) => (path === FsPath.root ? "/" : `/${path}`))
      ),
    watch: (path, options) =>
      Stream.unwrap(
        Effect.map(answer("watch", path, resolveEntry("watch", path)), (at) => {
          const stream = streamEvents(path, at, options?.recursive === true)
          return options?.onReady === undefined ? stream : withReadyCallback(stream, options.onReady)
        })
      )
  }
}

interface ResolvedEntry {
  readonly path: FsPath.FsPath
  readonly stat: FileStat
}

/** Calls `onReady` after the first pull of the stream, because a watch starts with this pull. */
const withReadyCallback = <A, E>(stream: Stream.Stream<A, E>, onReady: () => void): Stream.Stream<A, E> =>
  Stream.callback<A, E>((queue) =>
    Effect.andThen(Effect.forkScoped(Stream.runIntoQueue(stream, queue), { startImmediately: true }), Effect.sync(onReady))
  )
