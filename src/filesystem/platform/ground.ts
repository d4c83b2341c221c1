/**
 * The ground under a port that stands on effect's FileSystem: paths of ours become paths of it, nothing on the way to them may be a
 * link, and its errors become faults. It cannot be asked to stay within a directory, so every way is looked at, step by step, before
 * it is taken; what someone exchanges in between is followed, which is why the confinement is only `best-effort`.
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
  /** The path on `fs`. */
  readonly at: (path: FsPath.FsPath) => string
  /** What has the name, or `undefined`. Only after `reach`, `seek` or `place`. */
  readonly look: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  /** What has the name; `undefined` also where the way leads through what is no directory. */
  readonly seek: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  /** What has the name, or NotFound. */
  readonly reach: (path: FsPath.FsPath) => Effect.Effect<File.Info, Fault>
  /** What has the name, where something could be put: its directory is there. */
  readonly place: (path: FsPath.FsPath) => Effect.Effect<File.Info | undefined, Fault>
  /** A name of `fs` as one of ours. */
  readonly nameOf: (name: string) => string
}

/**
 * With the fault that an error stands for. `wrongKind` is what BadResource without a code can only mean here. The limits in force are
 * for who calls the service; were this FileSystem one of ours, they would bind its own steps too.
 */
export const ask = <A, R>(effect: Effect.Effect<A, PlatformError, R>, wrongKind?: Fault): Effect.Effect<A, Fault, R> =>
  Effect.provideService(
    Effect.mapError(effect, (error) => fromPlatform(error, wrongKind)),
    Limits,
    unlimited
  )

/**
 * A FileSystem that is one of ours refuses the names that writes in progress have. There they have a number at their end, which what
 * stands on this port never sees: the first that is not refused, since one of ours may stand on another.
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

/** `top` is a real path. */
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

    /** What bars the way to the path, if anything does. */
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
