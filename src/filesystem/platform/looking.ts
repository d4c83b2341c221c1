import * as Effect from "effect/Effect"
import type { FileSystem, WatchEvent } from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import type { FileStat, WatchEvent as OurEvent } from "../../model/Entry.ts"
import * as FsError from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import { type Bridge, infoOf, typeOf } from "./bridge.ts"
import { systemError } from "./errors.ts"

type ReadMethods = Pick<
  FileSystem,
  "access" | "stat" | "lstat" | "readDirectory" | "readDirectoryEntries" | "readFile" | "readLink" | "realPath" | "watch"
>

const tagOf = { Created: "Create", Updated: "Update", Removed: "Remove" } as const

export const make = (bridge: Bridge): ReadMethods => {
  const {
    withPlatformErrors: answer,
    children,
    failPlatform: failure,
    fs,
    lookUp: look,
    lookUpLink: lookAtLink,
    isPermitted: may,
    port,
    runStep: step
  } = bridge

  const failDenied = (path: string, what: string) =>
    Effect.fail(systemError("access", path, "PermissionDenied", `its permission bits let nobody ${what} it`))

  const isWritable = (stat: FileStat): boolean =>
    may("write", stat.path) && (stat.mode === undefined || (stat.mode & 0o222) !== 0)

  /** Tests readability: a file is opened; for all others only the permission bits can be checked. */
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
            new FsError.LimitExceeded({ operation: method, path, limit: "maxListEntries", allowed, actual })
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

  const resolveEntry = (method: string, path: string): Effect.Effect<ResolvedEntry, FsError.FsError> =>
    Effect.flatMap(look(method, path), (found) =>
      found.stat === undefined
        ? Effect.fail(new FsError.NotFound({ operation: method, path }))
        : Effect.succeed({ path: found.path, stat: found.stat })
    )

  /**
   * Streams events of the direct entries, or of all entries if recursive; for a file, the events of its directory that concern
   * it.
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
    lstat: (path) =>
      answer(
        "lstat",
        path,
        Effect.flatMap(lookAtLink("lstat", path), ({ stat }) =>
          stat === undefined ? Effect.fail(new FsError.NotFound({ operation: "lstat", path })) : Effect.succeed(infoOf(stat))
        )
      ),
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
        Effect.map(resolveEntry("realPath", path), ({ path }) => (path === FsPath.root ? "/" : `/${path}`))
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

/** Pulls the stream before it calls `onReady`, because a watch starts with the first pull. */
const withReadyCallback = <A, E>(stream: Stream.Stream<A, E>, onReady: () => void): Stream.Stream<A, E> =>
  Stream.callback<A, E>((queue) =>
    Effect.andThen(Effect.forkScoped(Stream.runIntoQueue(stream, queue), { startImmediately: true }), Effect.sync(onReady))
  )
