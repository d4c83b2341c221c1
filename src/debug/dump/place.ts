/** Which dump is meant, and which lie beside it: a `.jsonl`, the `.fs.zip` of that name, or one of them alone. */
import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import * as DateTime from "effect/DateTime"
import { attempt } from "../../history/zip/outside.ts"
import { promote } from "../../model/FsError.ts"
import { placesOf } from "../../workspace/session/places.ts"
import { type DebugError, refuse } from "../errors.ts"
import type { DumpFile } from "../model.ts"

/** Where one dump lies; one of the two files at least. */
export interface Place {
  /** That is served; absolute, all links resolved. */
  readonly directory: string
  /** Below it, with "/" on every system. */
  readonly path: string
  /** Without its ending. */
  readonly name: string
  /** Absolute. */
  readonly lines: string | undefined
  /** The archive that was named, where there are no lines that could name another. */
  readonly alone: string | undefined
}

const [linesEnding, archiveEnding] = [".jsonl", ".fs.zip"] as const

const stem = (name: string): string | undefined =>
  [linesEnding, archiveEnding].filter((ending) => name.endsWith(ending)).map((ending) => name.slice(0, -ending.length))[0]

/** Of a name that leads to nothing, in a circle, or where this may not look: nothing. */
const statOf = (path: string): Fs.Stats | undefined => {
  try {
    return Fs.statSync(path)
  } catch {
    return undefined
  }
}

const isFile = (path: string): boolean => statOf(path)?.isFile() === true

/** What the disk says, told of the path as it was given. */
const looking = <A>(path: string, run: () => A): Effect.Effect<A, DebugError> =>
  Effect.mapError(
    attempt(() => run() as never),
    (fault) =>
      refuse(
        fault._tag === "NotFound" ? "missing" : "unreadable",
        promote(fault, "debug", path).message.replace(/^debug:? /, ""),
        path
      )
  )

const below = (directory: string, file: string): string => relative(directory, file).split(sep).join("/")

/** `file`: absolute, links resolved. */
const placeAt = (directory: string, file: string): Place => {
  const name = basename(file)
  const isArchive = name.endsWith(archiveEnding)
  const beside = `${file.slice(0, -archiveEnding.length)}${linesEnding}`
  const lines = isArchive ? (isFile(beside) ? beside : undefined) : file
  return {
    directory,
    path: below(directory, lines ?? file),
    name: stem(name) ?? placesOf(file).name,
    lines,
    alone: lines === undefined ? file : undefined
  }
}

const sizeAt = (path: string): number => statOf(path)?.size ?? 0

/** A link that leads out of the directory is nobody's dump here. */
const staysIn = (directory: string, path: string): boolean => {
  try {
    return Fs.realpathSync(path).startsWith(directory.endsWith(sep) ? directory : directory + sep)
  } catch {
    return false
  }
}

interface Listed extends DumpFile {
  readonly modified: number
}

const listedAt = (directory: string, file: string): Listed | undefined => {
  const { alone, lines, path } = placeAt(directory, file)
  const archive = alone ?? placesOf(lines!).archive
  const stat = statOf(lines ?? archive)
  if (stat === undefined) return undefined
  return {
    path,
    size_bytes: (lines === undefined ? 0 : stat.size) + sizeAt(archive),
    modified_at: DateTime.formatIso(DateTime.makeUnsafe(Math.trunc(stat.mtimeMs))),
    has_archive: isFile(archive),
    is_shown: false,
    modified: stat.mtimeMs
  }
}

/** One of each name: lines before an archive alone. Files that go meanwhile are passed over. */
const listedIn = (directory: string): ReadonlyArray<Listed> => {
  const names = Fs.readdirSync(directory).filter((name) => stem(name) !== undefined)
  const lines = new Set(names.filter((name) => name.endsWith(linesEnding)))
  return names
    .filter((name) => lines.has(name) || !lines.has(stem(name) + linesEnding))
    .map((name) => join(directory, name))
    .filter((file) => isFile(file) && staysIn(directory, file))
    .flatMap((file) => listedAt(directory, file) ?? [])
    .sort((a, b) => b.modified - a.modified || (a.path < b.path ? -1 : 1))
}

/** The dumps of a directory, the newest first. */
export const list = (directory: string): Effect.Effect<ReadonlyArray<DumpFile>, DebugError> =>
  looking(directory, () => listedIn(Fs.realpathSync(resolve(directory))).map(({ modified: _, ...file }) => file))

/** The dump that a path means: a file of it, or a directory, in which it is the newest. */
export const find = (path: string): Effect.Effect<Place, DebugError> =>
  Effect.flatMap(
    looking(path, () => {
      const real = Fs.realpathSync(resolve(path))
      const stat = Fs.statSync(real)
      if (stat.isDirectory()) {
        const [newest] = listedIn(real)
        return newest === undefined ? undefined : placeAt(real, join(real, newest.path))
      }
      if (!stat.isFile()) return null
      return stem(basename(path)) === undefined && stem(basename(real)) === undefined ? "other" : placeAt(dirname(real), real)
    }),
    (place) => {
      if (place === "other") {
        return Effect.fail(
          refuse("invalid", `${JSON.stringify(path)} is no dump: it ends neither in .jsonl nor in .fs.zip`, path)
        )
      }
      if (place === undefined) {
        return Effect.fail(
          refuse("missing", `there is no dump in ${JSON.stringify(path)}: neither a .jsonl nor a .fs.zip`, path)
        )
      }
      return place === null
        ? Effect.fail(refuse("invalid", `${JSON.stringify(path)} is neither a file nor a directory`, path))
        : Effect.succeed(place)
    }
  )

const isOdd = (path: string): boolean =>
  path === "" || path.length > 4096 || path.includes("\0") || isAbsolute(path) || /^[a-z]:/i.test(path)

/** Another dump below the directory, as `list` names it. Nothing leads out: no "..", no absolute path, no link. */
export const within = (directory: string, path: string): Effect.Effect<Place, DebugError> => {
  const shown = JSON.stringify(path.slice(0, 200))
  const outside = refuse("forbidden", `${shown} does not lie in the directory that is shown`)
  if (isOdd(path)) return Effect.fail(outside)
  const file = resolve(directory, path)
  if (!file.startsWith(directory.endsWith(sep) ? directory : directory + sep)) return Effect.fail(outside)
  if (stem(basename(file)) === undefined) return Effect.fail(refuse("missing", `there is no dump ${shown}`))
  return Effect.flatMap(
    looking(path, () => isFile(file)),
    (isThere): Effect.Effect<Place, DebugError> => {
      if (!isThere) return Effect.fail(refuse("missing", `there is no dump ${shown}`))
      if (!staysIn(directory, file)) return Effect.fail(outside)
      return looking(path, () => placeAt(directory, Fs.realpathSync(file)))
    }
  )
}

/** Another whenever a dump of the directory has been written, or has come or gone. */
export const stamp = (directory: string): Effect.Effect<string> =>
  Effect.orElseSucceed(
    looking(directory, () =>
      listedIn(directory)
        .map(({ modified, path, size_bytes: size }) => `${path} ${size} ${modified}`)
        .join("\n")
    ),
    () => ""
  )
