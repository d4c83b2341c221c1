import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import * as DateTime from "effect/DateTime"
import { attempt } from "../../history/zip/outside.ts"
import { promote } from "../../model/FsError.ts"
import { placesOf } from "../../workspace/session/places.ts"
import { type DebugError, refuse } from "../errors.ts"
import type { DumpFile } from "../model.ts"

/** The location of a dump; at least one of its two files exists. */
export interface Place {
  /** The served directory: absolute and without links. */
  readonly directory: string
  /** The path below the directory, with "/" on every system. */
  readonly path: string
  readonly name: string
  readonly lines: string | undefined
  /** The archive, if there is no file of sessions that could name another. */
  readonly alone: string | undefined
}

const [linesEnding, archiveEnding] = [".jsonl", ".fs.zip"] as const

const stem = (name: string): string | undefined =>
  [linesEnding, archiveEnding].filter((ending) => name.endsWith(ending)).map((ending) => name.slice(0, -ending.length))[0]

/** Returns the metadata of a path, or `undefined` if it is missing, in a circle of links, or inaccessible. */
const statOf = (path: string): Fs.Stats | undefined => {
  try {
    return Fs.statSync(path)
  } catch {
    return undefined
  }
}

const isFile = (path: string): boolean => statOf(path)?.isFile() === true

/** Reports errors of the disk under the path as it was given. */
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

/** Tests whether a path stays in the directory; a link out of it does not count as a dump. */
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

/** Lists one dump per name, preferring sessions to an archive alone. Files that disappear meanwhile are skipped. */
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

export const list = (directory: string): Effect.Effect<ReadonlyArray<DumpFile>, DebugError> =>
  looking(directory, () => listedIn(Fs.realpathSync(resolve(directory))).map(({ modified: _, ...file }) => file))

/** Finds the dump of a path: a file of the dump, or a directory, which stands for its newest dump. */
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

/**
 * Finds another dump below the directory, by its path in `list`. Refuses paths that lead out: "..", absolute paths and links.
 */
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

/** Returns a text that changes whenever a dump of the directory is written, added or removed. */
export const stamp = (directory: string): Effect.Effect<string> =>
  Effect.orElseSucceed(
    looking(directory, () =>
      listedIn(directory)
        .map(({ modified, path, size_bytes: size }) => `${path} ${size} ${modified}`)
        .join("\n")
    ),
    () => ""
  )
