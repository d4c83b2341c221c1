/**
 * The basis of a port over effect's FileSystem: maps paths, rejects symlinks on the way, and converts errors to faults.
 *
 * Effect's FileSystem cannot confine a path to a directory. So each component is checked before use. A process that
 * replaces one in between can escape, so the confinement is only `best-effort`.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import type { File, FileSystem } from "effect/FileSystem"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import type { FileStat, Kind } from "../../model/Entry.ts"
import type { Fault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits, unlimited } from "../../model/Limits.ts"
import * as TemporaryNames from "../../runtime/temporaryNames.ts"
import { fromPlatform } from "./errors.ts"

const notFound: Fault = { _tag: "NotFound" }
const notADirectory: Fault = { _tag: "NotADirectory" }
const reservedNameFault: Fault = { _tag: "InvalidPath", detail: "names of this form are kept for writes in progress" }

export interface RootedFileSystem {
  readonly fs: FileSystem
  readonly toHostPath: (path: FsPath.FsPath) => string
  /** Looks up a path whose components were checked before; `undefined` if it is absent. */
  readonly lstatEntry: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  readonly findEntry: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  readonly requireEntry: (path: FsPath.FsPath) => Effect.Effect<File.Info, Fault>
  /** Looks up a path at which an entry could be created: its directory must exist. */
  readonly findCreatable: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  readonly toShownName: (name: string) => string
}

/**
 * Converts errors to faults. `wrongKind` is the meaning of a BadResource without a code.
 *
 * The caller's limits do not apply here. If `fs` is a filesystem of this library, they would otherwise restrict its own
 * steps.
 */
export const toFaults = <A, R>(effect: Effect.Effect<A, PlatformError, R>, wrongKind?: Fault): Effect.Effect<A, Fault, R> =>
  Effect.provideService(
    Effect.mapError(effect, (error) => fromPlatform(error, wrongKind)),
    Limits,
    unlimited
  )

/**
 * Returns the suffix that this port adds to temporary names on `fs`.
 *
 * A FileSystem of this library refuses names of writes in progress. There the names get a number at the end, which
 * users of this port never see. Such filesystems can be stacked, so the first accepted number is used.
 */
const numberOf = Effect.fnUntraced(function* (fs: FileSystem, above: string): Effect.fn.Return<string> {
  for (let number = 0; ; number++) {
    const suffix = number === 0 ? "" : String(number)
    const isRefused = yield* TemporaryNames.withName((name) =>
      Effect.match(fs.access(above + name + suffix), {
        onFailure: ({ reason }) => reason._tag === "BadArgument" && number < 8,
        onSuccess: () => false
      })
    )
    if (!isRefused) return suffix
  }
})

/** Creates the basis for a directory, which must be given by its real path. */
export const make = (fs: FileSystem, rootPath: string): Effect.Effect<RootedFileSystem> => {
  const above = rootPath.endsWith("/") ? rootPath : `${rootPath}/`
  return Effect.map(numberOf(fs, above), (suffix) => {
    const toShownName = (name: string): string => {
      const shown = name.slice(0, name.length - suffix.length)
      return suffix !== "" && name.endsWith(suffix) && TemporaryNames.isOwnName(shown) ? shown : name
    }
    const isReserved = (name: string): boolean => toShownName(name) !== name
    const toHostName = (name: string): string => (TemporaryNames.isOwnName(name) ? name + suffix : name)
    const toHostPath = (path: FsPath.FsPath): string => {
      if (path === FsPath.root) return rootPath
      return above + (suffix === "" || !path.includes(".~") ? path : path.split("/").map(toHostName).join("/"))
    }

    const lstatEntry = (path: FsPath.FsPath): Effect.Effect<File.Info | undefined, Fault> =>
      Effect.catch(toFaults(fs.lstat(toHostPath(path)), notFound), (fault) =>
        fault._tag === "NotFound" || fault._tag === "NotADirectory" ? Effect.undefined : Effect.fail(fault)
      )

    const findObstacle = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<Fault | undefined, Fault> {
      for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) {
        const info = yield* lstatEntry(path.slice(0, end) as FsPath.FsPath)
        if (info === undefined) return notFound
        if (info.type !== "Directory") return notADirectory
      }
      return undefined
    })

    const checkPath = (path: FsPath.FsPath): Effect.Effect<Fault | undefined, Fault> =>
      isReserved(FsPath.name(path)) ? Effect.fail(reservedNameFault) : findObstacle(path)

    const findEntry = (path: FsPath.FsPath) =>
      Effect.flatMap(checkPath(path), (fault) => (fault === undefined ? lstatEntry(path) : Effect.undefined))

    return {
      fs,
      toHostPath,
      lstatEntry,
      findEntry,
      requireEntry: (path) =>
        Effect.flatMap(findEntry(path), (info) => (info === undefined ? Effect.fail(notFound) : Effect.succeed(info))),
      findCreatable: (path) =>
        Effect.flatMap(checkPath(path), (fault) => (fault === undefined ? lstatEntry(path) : Effect.fail(fault))),
      toShownName
    }
  })
}

export const kindOf = (type: File.Type): Kind =>
  type === "File" ? "file" : type === "Directory" ? "directory" : type === "SymbolicLink" ? "symlink" : "other"

const timeOf = (date: Option.Option<Date>): DateTime.Utc | undefined =>
  Option.isSome(date) ? DateTime.makeUnsafe(date.value.getTime()) : undefined

export const permissions = (info: File.Info): number => info.mode & 0o777

export const toStat = (path: FsPath.FsPath, info: File.Info): FileStat => {
  const kind = kindOf(info.type)
  const createdAt = timeOf(info.birthtime)
  const modifiedAt = timeOf(info.mtime)
  return {
    path,
    kind,
    isFile: kind === "file",
    isDirectory: kind === "directory",
    sizeBytes: kind === "file" || kind === "symlink" ? Number(info.size) : 0,
    ...(createdAt === undefined ? undefined : { createdAt }),
    ...(modifiedAt === undefined ? undefined : { modifiedAt }),
    mode: permissions(info),
    ...(kind === "symlink" ? { isSymlink: true } : undefined)
  }
}
