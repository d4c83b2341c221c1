import * as Effect from "effect/Effect"
import * as Fs from "node:fs"
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import * as DateTime from "effect/DateTime"
import { attempt } from "../../history/zip/hostFile.ts"
import { promote } from "../../model/FsError.ts"
import { dumpPathsOf } from "../../workspace/session/places.ts"
import { type DebugError, makeDebugError } from "../errors.ts"
import type { DumpFile } from "../model.ts"

/** The location of a dump. At least one of its two files, the sessions and the archive, exists. */
export interface Place {
  /** The absolute real path of the served directory. */
  readonly directory: string
  /** The path relative to the directory, with "/" as separator on every system. */
  readonly path: string
  readonly name: string
  readonly lines: string | undefined
  /** The path of the archive if the dump has no `.jsonl` file, else `undefined`. */
  readonly archiveAlone: string | undefined
}

const [sessionsExtension, archiveExtension] = [".jsonl", ".fs.zip"] as const

const dumpNameOf = (name: string): string | undefined =>
  [sessionsExtension, archiveExtension]
    .filter((ending) => name.endsWith(ending))
    .map((ending) => name.slice(0, -ending.length))[0]

/** Returns the metadata of a path, or `undefined` if the path is missing, inaccessible, or part of a cycle of links. */
const statOf = (path: string): Fs.Stats | undefined => {
  try {
    return Fs.statSync(path)
  } catch {
    return undefined
  }
}

const isFile = (path: string): boolean => statOf(path)?.isFile() === true

/** Turns disk errors into DebugErrors with the given path. */
const withDebugErrors = <A>(path: string, run: () => A): Effect.Effect<A, DebugError> =>
  Effect.mapError(
    attempt(() => run() as never),
    (fault) =>
      makeDebugError(
        fault._tag === "NotFound" ? "missing" : "unreadable",
        promote(fault, "debug", path).message.replace(/^debug:? /, ""),
        path
      )
  )

const relativePath = (directory: string, file: string): string => relative(directory, file).split(sep).join("/")

const placeAt = (directory: string, file: string): Place => {
  const name = basename(file)
  const isArchive = name.endsWith(archiveExtension)
  const sessionsFileBeside = `${file.slice(0, -archiveExtension.length)}${sessionsExtension}`
  const lines = isArchive ? (isFile(sessionsFileBeside) ? sessionsFileBeside : undefined) : file
  return {
    directory,
    path: relativePath(directory, lines ?? file),
    name: dumpNameOf(name) ?? dumpPathsOf(file).name,
    lines,
    archiveAlone: lines === undefined ? file : undefined
  }
}

const sizeAt = (path: string): number => statOf(path)?.size ?? 0

const isBelow = (directory: string, path: string): boolean =>
  path.startsWith(directory.endsWith(sep) ? directory : directory + sep)

/** Tests whether the path, with links resolved, lies in the directory. A link out of the directory is not a dump. */
const staysIn = (directory: string, path: string): boolean => {
  try {
    return isBelow(directory, Fs.realpathSync(path))
  } catch {
    return false
  }
}

interface ListedDump extends DumpFile {
  readonly modified: number
}

const describeDumpAt = (directory: string, file: string): ListedDump | undefined => {
  const { archiveAlone, lines, path } = placeAt(directory, file)
  const archive = archiveAlone ?? dumpPathsOf(lines!).archive
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

/**
 * Lists the dumps of a directory. A `.jsonl` and an archive with the same name are one dump. Skips files that another process
 * removes during the call.
 */
const listDumps = (directory: string): ReadonlyArray<ListedDump> => {
  const names = Fs.readdirSync(directory).filter((name) => dumpNameOf(name) !== undefined)
  const lines = new Set(names.filter((name) => name.endsWith(sessionsExtension)))
  return names
    .filter((name) => lines.has(name) || !lines.has(dumpNameOf(name) + sessionsExtension))
    .map((name) => join(directory, name))
    .filter((file) => isFile(file) && staysIn(directory, file))
    .flatMap((file) => describeDumpAt(directory, file) ?? [])
    .sort((a, b) => b.modified - a.modified || (a.path < b.path ? -1 : 1))
}

export const list = (directory: string): Effect.Effect<ReadonlyArray<DumpFile>, DebugError> =>
  withDebugErrors(directory, () => listDumps(Fs.realpathSync(resolve(directory))).map(({ modified: _, ...file }) => file))

/** Finds a dump by the path of one of its files, or finds the newest dump of a directory. */
export const find = Effect.fnUntraced(function* (path: string) {
  const shown = JSON.stringify(path)
  const real = yield* withDebugErrors(path, () => Fs.realpathSync(resolve(path)))
  const stat = yield* withDebugErrors(path, () => Fs.statSync(real))
  if (stat.isDirectory()) {
    const [newest] = yield* withDebugErrors(path, () => listDumps(real))
    if (newest !== undefined) return placeAt(real, join(real, newest.path))
    return yield* makeDebugError("missing", `there is no dump in ${shown}: neither a .jsonl nor a .fs.zip`, path)
  }
  if (!stat.isFile()) return yield* makeDebugError("invalid", `${shown} is neither a file nor a directory`, path)
  if (dumpNameOf(basename(path)) === undefined && dumpNameOf(basename(real)) === undefined) {
    return yield* makeDebugError("invalid", `${shown} is not a dump: its name ends in neither .jsonl nor .fs.zip`, path)
  }
  return placeAt(dirname(real), real)
})

const isInvalidRequest = (path: string): boolean =>
  path === "" || path.length > 4096 || path.includes("\0") || isAbsolute(path) || /^[a-z]:/i.test(path)

/**
 * Finds a dump below the directory by its path in `list`. Refuses absolute paths, and paths that leave the directory by ".." or
 * through a link.
 */
export const findBelow = Effect.fnUntraced(function* (directory: string, path: string) {
  const shown = JSON.stringify(path.slice(0, 200))
  const forbiddenError = makeDebugError("forbidden", `${shown} is outside the served directory`)
  const file = resolve(directory, path)
  if (isInvalidRequest(path) || !isBelow(directory, file)) return yield* forbiddenError
  if (dumpNameOf(basename(file)) === undefined || !isFile(file)) {
    return yield* makeDebugError("missing", `there is no dump ${shown}`)
  }
  if (!staysIn(directory, file)) return yield* forbiddenError
  return yield* withDebugErrors(path, () => placeAt(directory, Fs.realpathSync(file)))
})

/** Returns a text that changes whenever a dump of the directory is written, added or removed. */
export const stamp = (directory: string): Effect.Effect<string> =>
  Effect.orElseSucceed(
    withDebugErrors(directory, () =>
      listDumps(directory)
        .map(({ modified, path, size_bytes: size }) => `${path} ${size} ${modified}`)
        .join("\n")
    ),
    () => ""
  )
