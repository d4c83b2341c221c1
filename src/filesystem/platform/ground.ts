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
const reserved: Fault = { _tag: "InvalidPath", detail: "names of this form are kept for writes in progress" }

export interface Ground {
  readonly fs: FileSystem
  readonly at: (path: FsPath.FsPath) => string
  /** Looks up a path whose components were checked before; `undefined` if it is absent. */
  readonly look: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  readonly seek: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  readonly reach: (path: FsPath.FsPath) => Effect.Effect<File.Info, Fault>
  /** Looks up a path at which an entry could be created: its directory must exist. */
  readonly place: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  readonly nameOf: (name: string) => string
}

/**
 * Converts errors to faults. `wrongKind` is the meaning of a BadResource without a code.
 *
 * The caller's limits do not apply here. If `fs` is a filesystem of this library, they would otherwise restrict its own
 * steps.
 */
export const ask = <A, R>(effect: Effect.Effect<A, PlatformError, R>, wrongKind?: Fault): Effect.Effect<A, Fault, R> =>
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
    const isRefused = yield* TemporaryNames.using((name) =>
      Effect.match(fs.access(above + name + suffix), {
        onFailure: ({ reason }) => reason._tag === "BadArgument" && number < 8,
        onSuccess: () => false
      })
    )
    if (!isRefused) return suffix
  }
})

/** Creates the basis for a directory, which must be given by its real path. */
export const make = (fs: FileSystem, top: string): Effect.Effect<Ground> => {
  const above = top.endsWith("/") ? top : `${top}/`
  return Effect.map(numberOf(fs, above), (suffix) => {
    const nameOf = (name: string): string => {
      const shown = name.slice(0, name.length - suffix.length)
      return suffix !== "" && name.endsWith(suffix) && TemporaryNames.isOurs(shown) ? shown : name
    }
    const isReserved = (name: string): boolean => nameOf(name) !== name
    const spelled = (name: string): string => (TemporaryNames.isOurs(name) ? name + suffix : name)
    const at = (path: FsPath.FsPath): string => {
      if (path === FsPath.root) return top
      return above + (suffix === "" || !path.includes(".~") ? path : path.split("/").map(spelled).join("/"))
    }

    const look = (path: FsPath.FsPath): Effect.Effect<File.Info | undefined, Fault> =>
      Effect.catch(ask(fs.lstat(at(path)), notFound), (fault) =>
        fault._tag === "NotFound" || fault._tag === "NotADirectory" ? Effect.undefined : Effect.fail(fault)
      )

    const obstacle = Effect.fnUntraced(function* (path: FsPath.FsPath): Effect.fn.Return<Fault | undefined, Fault> {
      for (let end = path.indexOf("/"); end !== -1; end = path.indexOf("/", end + 1)) {
        const info = yield* look(path.slice(0, end) as FsPath.FsPath)
        if (info === undefined) return notFound
        if (info.type !== "Directory") return notADirectory
      }
      return undefined
    })

    const check = (path: FsPath.FsPath): Effect.Effect<Fault | undefined, Fault> =>
      isReserved(FsPath.name(path)) ? Effect.fail(reserved) : obstacle(path)

    const seek = (path: FsPath.FsPath) =>
      Effect.flatMap(check(path), (fault) => (fault === undefined ? look(path) : Effect.undefined))

    return {
      fs,
      at,
      look,
      seek,
      reach: (path) =>
        Effect.flatMap(seek(path), (info) => (info === undefined ? Effect.fail(notFound) : Effect.succeed(info))),
      place: (path) => Effect.flatMap(check(path), (fault) => (fault === undefined ? look(path) : Effect.fail(fault))),
      nameOf
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
