import { notADirectory, notFound, unsupported, is as isFault } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Eager from "../../engine/eager.ts"
import * as Glob from "../../engine/glob.ts"
import * as Grep from "../../engine/grep.ts"
import { list } from "../../engine/list.ts"
import { nearestPaths } from "../../engine/nearest.ts"
import * as Read from "../../engine/read.ts"
import { statAt } from "../../engine/read.ts"
import { resolve, resolveLink, storedSpelling } from "../../engine/resolve.ts"
import * as Text from "../../engine/text.ts"
import * as Version from "../../engine/version.ts"
import * as Walk from "../../engine/walk.ts"
import type { FileStat, Kind, ReadBytesResult, ReadResult } from "../../model/Entry.ts"
import type { Fault, ReadBytesError, ReadError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { LimitsShape } from "../../model/Limits.ts"
import { runInSlices } from "../../runtime/steps.ts"
import type { Algebra, ReadBytesOptions, ReadOptions, SearchOptions } from "../Filesystem.ts"
import { type Caller, checkWholeNumber, errorTags, readActions, versioning } from "./call.ts"

const withPath = (stat: FileStat, path: FsPath.FsPath): FileStat => (stat.path === path ? stat : { ...stat, path })

const resolveDirectory = (
  self: Caller,
  path: FsPath.FsPath
): Effect.Effect<{ path: FsPath.FsPath; at: FsPath.FsPath }, Fault> =>
  Effect.flatMap(resolve(self.port, path), ({ path: at, stat }) =>
    stat === undefined
      ? Effect.fail(notFound)
      : stat.kind === "directory"
        ? Effect.succeed({ path, at })
        : Effect.fail(notADirectory)
  )

export const entryOperations = (
  self: Caller
): Pick<Algebra, "exists" | "stat" | "lstat" | "realPath" | "list" | "walk" | "watch"> => {
  const { call, parse, port, run, callStream } = self
  const reportsSymlinks = port.rules?.symlinks === "report"

  const statLink = (path: FsPath.FsPath): Effect.Effect<FileStat, Fault> =>
    Effect.flatMap(resolveLink(port, path), (found): Effect.Effect<FileStat, Fault> => {
      if (found.stat === undefined) return Effect.fail(notFound)
      if (found.stat.kind !== "symlink") return Effect.succeed(withPath(found.stat, path))
      return reportsSymlinks
        ? Effect.succeed({ ...found.stat, path, isSymlink: true })
        : Effect.flatMap(resolve(port, path), ({ stat }) =>
            stat === undefined ? Effect.fail(notFound) : Effect.succeed({ ...stat, path, isSymlink: true })
          )
    })
  const stat = (path: FsPath.FsPath): Effect.Effect<FileStat, Fault> =>
    Eager.flatMap(statAt(port, path), (stat) =>
      stat === undefined && port.links === undefined
        ? Effect.fail(notFound)
        : stat === undefined || stat.kind === "symlink"
          ? statLink(path)
          : Effect.succeed(withPath(stat, path))
    )
  const lstat = (path: FsPath.FsPath): Effect.Effect<FileStat, Fault> =>
    Effect.flatMap(resolveLink(port, path), ({ stat }) =>
      stat === undefined
        ? Effect.fail(notFound)
        : Effect.succeed(stat.kind === "symlink" ? { ...stat, path, isSymlink: true } : withPath(stat, path))
    )

  return {
    exists: (input) =>
      run("exists", input, errorTags.exists, (limits) => {
        const path = parse(input, limits)
        return typeof path !== "string"
          ? Effect.succeed(false)
          : Effect.matchEffect(stat(path), {
              onSuccess: () => Effect.succeed(true),
              onFailure: (fault) => (errorTags.exists.has(fault._tag) ? Effect.fail(fault) : Effect.succeed(false))
            })
      }),
    stat: (input) => call("stat", input, errorTags.stat, readActions, stat),
    lstat: (input) => call("lstat", input, errorTags.stat, readActions, lstat),
    realPath: (input) =>
      call("realPath", input, errorTags.stat, readActions, (path) =>
        Effect.flatMap(resolve(port, path), ({ path: at, stat }) =>
          stat === undefined ? Effect.fail(notFound) : storedSpelling(port, at)
        )
      ),
    list: (input = ".") =>
      call("list", input, errorTags.list, readActions, (path, limits) => list(port, path, limits.maxListEntries)),
    walk: (input = ".", options) =>
      callStream("walk", input, errorTags.list, (path, limits) => {
        const plan = Walk.plan(options ?? {}, { limits, caseSensitive: port.info.caseSensitive })
        return isFault(plan)
          ? Effect.fail(plan)
          : Effect.map(resolveDirectory(self, path), (base) => Walk.walk(port, base, plan))
      }),
    watch: (input = ".") =>
      callStream("watch", input, errorTags.watch, (path) => {
        const ability = port.watch
        if (ability === undefined) return Effect.fail(unsupported("watching"))
        return Effect.map(resolveDirectory(self, path), ({ at }) => {
          const events = ability(at)
          return at === path
            ? events
            : Stream.map(events, (event) => ({ ...event, path: FsPath.below(path, FsPath.relative(at, event.path)) }))
        })
      })
  }
}

interface Base {
  /** The path as the caller gave it. */
  readonly path: FsPath.FsPath
  /** The path with its symlinks resolved. */
  readonly at: FsPath.FsPath
  readonly kind: Kind
}

const pathOf = (options: SearchOptions | undefined): string => (options?.path === undefined ? "." : options.path)

const directoryKinds: ReadonlyArray<Kind> = ["directory"]
const grepBaseKinds: ReadonlyArray<Kind> = ["directory", "file"]

export const searchOperations = (self: Caller): Pick<Algebra, "glob" | "globStream" | "grep" | "grepStream"> => {
  const { call, port, callStream } = self
  const context = (limits: LimitsShape) => ({ limits, caseSensitive: port.info.caseSensitive })

  const failMissingBase = (path: FsPath.FsPath, kinds: ReadonlyArray<Kind>): Effect.Effect<never, Fault> =>
    Effect.flatMap(
      Effect.orElseSucceed(nearestPaths(port, path, kinds), () => []),
      (nearest) => Effect.fail(nearest.length === 0 ? notFound : { ...notFound, nearest })
    )

  const search = <Plan extends object, A>(
    path: FsPath.FsPath,
    plan: Plan | Fault,
    kinds: ReadonlyArray<Kind>,
    run: (base: Base, plan: Plan) => Effect.Effect<A, Fault>
  ): Effect.Effect<A, Fault> =>
    isFault(plan)
      ? Effect.fail(plan)
      : Effect.flatMap(resolve(port, path), ({ path: at, stat }) =>
          stat === undefined ? failMissingBase(path, kinds) : run({ path, at, kind: stat.kind }, plan)
        )
  const requireDirectory =
    <Plan, A>(run: (base: Base, plan: Plan) => Effect.Effect<A, Fault>) =>
    (base: Base, plan: Plan): Effect.Effect<A, Fault> =>
      base.kind === "directory" ? run(base, plan) : Effect.fail(notADirectory)

  return {
    glob: (pattern, options) =>
      call("glob", pathOf(options), errorTags.glob, readActions, (path, limits) =>
        search(
          path,
          Glob.plan(pattern, options ?? {}, context(limits)),
          directoryKinds,
          requireDirectory((base, plan) => Glob.collect(port, base, plan))
        )
      ),
    globStream: (pattern, options) =>
      callStream("globStream", pathOf(options), errorTags.glob, (path, limits) =>
        search(
          path,
          Glob.plan(pattern, options ?? {}, context(limits)),
          directoryKinds,
          requireDirectory((base, plan) => Effect.succeed(Glob.stream(port, base, plan)))
        )
      ),
    grep: (pattern, options) =>
      call("grep", pathOf(options), errorTags.grep, readActions, (path, limits) =>
        search(path, Grep.plan(pattern, options ?? {}, context(limits)), grepBaseKinds, (base, plan) =>
          Grep.collect(port, base, plan)
        )
      ),
    grepStream: (pattern, options) =>
      callStream("grepStream", pathOf(options), errorTags.grep, (path, limits) =>
        search(path, Grep.plan(pattern, options ?? {}, context(limits)), grepBaseKinds, (base, plan) =>
          Effect.succeed(Grep.stream(port, base, plan))
        )
      )
  }
}

const unboundedLength = Number.POSITIVE_INFINITY
const defaultChunkBytes = 65_536

const noBytes = new Uint8Array(0)

/** The largest file, in bytes, that is decoded and split without a yield to the event loop. */
const maxSyncBytes = 65_536

const textOf = (bytes: Uint8Array, encoding: string | undefined): Effect.Effect<string, Fault> => {
  const answer = (text: string | Fault) => (typeof text === "string" ? Effect.succeed(text) : Effect.fail(text))
  return bytes.length <= maxSyncBytes
    ? answer(Text.decode(bytes, encoding))
    : Effect.flatMap(
        runInSlices(() => Text.decodeSteps(bytes, encoding)),
        answer
      )
}

const pageOf = (text: string, offset: number, limit: number): Effect.Effect<Text.Page> =>
  text.length <= maxSyncBytes
    ? Effect.succeed(Text.page(text, offset, limit))
    : runInSlices(() => Text.pageSteps(text, offset, limit))

const checkEncoding = (encoding: string | undefined): Fault | undefined => {
  if (encoding === undefined) return undefined
  const text = Text.decode(noBytes, encoding)
  return typeof text === "string" ? undefined : text
}

export const contentOperations = (
  self: Caller
): Pick<Algebra, "read" | "readString" | "readBytes" | "version" | "stream" | "lines"> => {
  const { call, port, callStream } = self
  return {
    read: versioning<[path: string], ReadOptions, ReadResult, ReadError>((input, options) =>
      call("read", input, errorTags.read, readActions, (path, limits) => {
        const offset = options?.offset ?? 0
        const limit = options?.limit ?? limits.defaultReadLimit
        const fault = Text.checkPage(offset, limit) ?? checkEncoding(options?.encoding)
        if (fault !== undefined) return Effect.fail(fault)
        return Eager.flatMap(Read.whole(port, path, limits.maxReadBytes), (whole) => {
          const text = textOf(whole.bytes, options?.encoding)
          const page = Eager.flatMap(text, (text) => pageOf(text, offset, limit))
          return options?.version === true
            ? Effect.flatMap(page, (page) => Effect.map(Read.versionOf(whole), (version) => ({ path, ...page, version })))
            : Eager.map(page, (page) => ({ path, ...page }))
        })
      })
    ),
    readString: (input, encoding) =>
      call("readString", input, errorTags.read, readActions, (path, limits) => {
        const fault = checkEncoding(encoding)
        if (fault !== undefined) return Effect.fail(fault)
        return Eager.flatMap(Read.whole(port, path, limits.maxReadBytes), (whole) => textOf(whole.bytes, encoding))
      }),
    readBytes: versioning<[path: string], ReadBytesOptions, ReadBytesResult, ReadBytesError>((input, options) =>
      call("readBytes", input, errorTags.readBytes, readActions, (path, limits) => {
        const fault = checkWholeNumber("offset", options?.offset) ?? checkWholeNumber("limit", options?.limit)
        if (fault !== undefined) return Effect.fail(fault)
        const offset = options?.offset ?? 0
        const version = options?.version === true
        const answer = ({ bytes, offset, sizeBytes, version }: Read.Window): ReadBytesResult => {
          const limit = bytes.length
          const result = { path, content: bytes, sizeBytes, offset, limit, truncated: offset + limit < sizeBytes }
          return version === undefined ? result : { ...result, version }
        }
        if (offset !== 0 || options?.limit !== undefined) {
          const limit = options?.limit ?? unboundedLength
          return Effect.map(Read.window(port, path, offset, limit, limits.maxReadBytes, version), answer)
        }
        return Eager.flatMap(Read.whole(port, path, limits.maxReadBytes), (whole) => {
          const bytes = whole.isLent === true ? whole.bytes.slice() : whole.bytes
          const window = { bytes, offset: 0, sizeBytes: bytes.length }
          return version
            ? Effect.map(Read.versionOf(whole), (version) => answer({ ...window, version }))
            : Effect.succeed(answer(window))
        })
      })
    ),
    version: (input) =>
      call("version", input, errorTags.stream, readActions, (path) =>
        Effect.scoped(Effect.flatMap(Read.open(port, path), Version.ofHandle))
      ),
    stream: (input, options) =>
      callStream("stream", input, errorTags.stream, (path) => {
        const fault =
          checkWholeNumber("offset", options?.offset) ??
          checkWholeNumber("length", options?.length) ??
          checkWholeNumber("chunkSize", options?.chunkSize, 1)
        if (fault !== undefined) return Effect.fail(fault)
        const length = options?.length ?? unboundedLength
        return Effect.succeed(Read.stream(port, path, options?.offset ?? 0, length, options?.chunkSize ?? defaultChunkBytes))
      }),
    lines: (input) =>
      callStream("lines", input, errorTags.lines, (path) =>
        Effect.succeed(Text.lines(Read.stream(port, path, 0, unboundedLength, defaultChunkBytes)))
      )
  }
}
