/**
 * Decides which files of an earlier dump a new dump may replace, because another program may have its own `{id}.fs.zip` in the
 * directory. An archive is replaced only if the `.jsonl` beside it names its hash, as the current archive or as one that an
 * unfinished dump was replacing.
 */
import * as Effect from "effect/Effect"
import { basename, Fs } from "../../runtime/node.ts"
import { attempt } from "../../history/zip/outside.ts"
import type { Fault } from "../../model/FsError.ts"
import type { SessionError } from "../../model/sessionError.ts"
import { readFirstLine, hashOf, toError } from "./files.ts"
import { invalid } from "./ids.ts"
import type { DumpPaths } from "./places.ts"
import { maxTextBytes, namedHashesIn } from "./saved.ts"

export interface EarlierDump {
  /** The SHA-256 of the archive, if it belongs to the earlier dump. */
  readonly archive: string | undefined
  /** A stamp that identifies the entry at the archive's place; empty if there is none. */
  readonly stamp: string
}

type Kind = "absent" | "file" | "directory" | "other"

const statOf = (path: string): Fs.BigIntStats | undefined => Fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })

/** Returns the kind of the entry itself. A link is "other", whatever it leads to. */
const kindAt = (path: string): Kind => {
  const stat = statOf(path)
  if (stat === undefined) return "absent"
  return stat.isFile() ? "file" : stat.isDirectory() ? "directory" : "other"
}

const stampOf = (path: string): string => {
  const stat = statOf(path)
  return stat === undefined ? "" : `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`
}

/** The first bytes of every dump of any version. */
const dumpStart = /^\{\s*"schemaVersion"\s*:\s*\d/

const maxDumpStartBytes = 256

const beginsAsDump = (path: string): boolean => {
  const descriptor = Fs.openSync(path, "r")
  try {
    const bytes = Buffer.alloc(maxDumpStartBytes)
    return dumpStart.test(bytes.toString("latin1", 0, Fs.readSync(descriptor, bytes, 0, bytes.length, 0)))
  } finally {
    Fs.closeSync(descriptor)
  }
}

const notReplaceable = (operation: string, path: string, why: string): SessionError =>
  invalid(
    operation,
    `${JSON.stringify(basename(path))} cannot be replaced: ${why}; move it away, or dump into another directory`
  )

/** Returns the hashes that the `.jsonl` names; empty if it cannot be read as a dump. */
const namedHashes = ({ lines }: DumpPaths): Effect.Effect<ReadonlySet<string>, Fault> =>
  Effect.catch(Effect.map(readFirstLine(lines, maxTextBytes), namedHashesIn), (problem) =>
    problem._tag === "Overlong" ? Effect.succeed(new Set<string>()) : Effect.fail(problem)
  )

const ownArchiveHash = (places: DumpPaths): Effect.Effect<string | undefined, Fault> =>
  Effect.gen(function* () {
    const named = yield* namedHashes(places)
    if (named.size === 0) return undefined
    const sha256 = yield* hashOf(places.archive)
    return named.has(sha256) ? sha256 : undefined
  })

/**
 * Reads the two places of a dump. Fails with SessionError `invalid` if the `.jsonl` is not a dump. If the new dump `hasArchive`, also fails
 * if the file at the archive's place is not named by the `.jsonl`.
 */
export const readEarlierDump = (
  operation: string,
  places: DumpPaths,
  hasArchive: boolean
): Effect.Effect<EarlierDump, SessionError> =>
  Effect.gen(function* () {
    const { archive, lines } = places
    const kinds = yield* attempt(() => ({ archive: kindAt(archive), lines: kindAt(lines) }))
    const stamp = yield* attempt(() => stampOf(archive))
    const isDump = kinds.lines === "file" && (yield* attempt(() => beginsAsDump(lines)))
    if (!isDump && (kinds.lines === "file" || kinds.lines === "other")) {
      return yield* Effect.fail(notReplaceable(operation, lines, "it is no dump of a session"))
    }
    const ownHash = isDump && kinds.archive === "file" ? yield* ownArchiveHash(places) : undefined
    const isForeign = ownHash === undefined && (kinds.archive === "file" || kinds.archive === "other")
    if (hasArchive && isForeign) {
      const why = isDump ? `${JSON.stringify(basename(lines))} does not name it as its archive` : "it is no archive of a dump"
      return yield* Effect.fail(notReplaceable(operation, archive, why))
    }
    return { archive: ownHash, stamp }
  }).pipe(
    Effect.mapError((problem) => (problem._tag === "SessionError" ? problem : toError(operation, places.directory)(problem)))
  )

export const isArchiveUnchanged = ({ archive }: DumpPaths, { stamp }: EarlierDump): boolean => stampOf(archive) === stamp
