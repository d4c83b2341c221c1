/**
 * An earlier dump of the same name, and which of its files a new dump may replace. The name of a file proves nothing: another program, or
 * a `SnapshotStore`, may keep its own `{id}.fs.zip` in the directory. So an archive is replaced only if the `.jsonl` beside it names its
 * hash, as its archive or as the one that it was about to replace when its process ended.
 */
import * as Effect from "effect/Effect"
import { basename, Fs } from "../../runtime/node.ts"
import { attempt } from "../../history/zip/outside.ts"
import type { Fault } from "../../model/FsError.ts"
import type { SessionError } from "../../model/sessionError.ts"
import { firstLine, hashOf, toError } from "./files.ts"
import { invalid } from "./ids.ts"
import type { Places } from "./places.ts"
import { longestText, namedIn } from "./saved.ts"

/** The files that stand in the places of a dump. */
export interface Earlier {
  /** The SHA-256 of the archive, if it belongs to the earlier dump. */
  readonly archive: string | undefined
  /** Identifies the entry in the place of the archive; empty if there is none. */
  readonly stamp: string
}

type Kind = "absent" | "file" | "directory" | "other"

const statOf = (path: string): Fs.BigIntStats | undefined => Fs.lstatSync(path, { bigint: true, throwIfNoEntry: false })

/** The kind of the entry itself: a link is "other", whatever it leads to. */
const kindAt = (path: string): Kind => {
  const stat = statOf(path)
  if (stat === undefined) return "absent"
  return stat.isFile() ? "file" : stat.isDirectory() ? "directory" : "other"
}

const stampOf = (path: string): string => {
  const stat = statOf(path)
  return stat === undefined ? "" : `${stat.dev} ${stat.ino} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`
}

/** The beginning of every dump of any version. */
const beginning = /^\{\s*"schemaVersion"\s*:\s*\d/

const longestBeginning = 256

const beginsAsDump = (path: string): boolean => {
  const descriptor = Fs.openSync(path, "r")
  try {
    const bytes = Buffer.alloc(longestBeginning)
    return beginning.test(bytes.toString("latin1", 0, Fs.readSync(descriptor, bytes, 0, bytes.length, 0)))
  } finally {
    Fs.closeSync(descriptor)
  }
}

const foreign = (operation: string, path: string, why: string): SessionError =>
  invalid(
    operation,
    `${JSON.stringify(basename(path))} cannot be replaced: ${why}; move it away, or dump into another directory`
  )

/** The hashes that the `.jsonl` names; none if it cannot be read as a dump. */
const namedBy = ({ lines }: Places): Effect.Effect<ReadonlySet<string>, Fault> =>
  Effect.catch(Effect.map(firstLine(lines, longestText), namedIn), (problem) =>
    problem._tag === "Overlong" ? Effect.succeed(new Set<string>()) : Effect.fail(problem)
  )

const ownedArchive = (places: Places): Effect.Effect<string | undefined, Fault> =>
  Effect.gen(function* () {
    const named = yield* namedBy(places)
    if (named.size === 0) return undefined
    const sha256 = yield* hashOf(places.archive)
    return named.has(sha256) ? sha256 : undefined
  })

/**
 * Looks at the two places of a dump. Fails with SessionError `invalid` if a file stands in the place of the `.jsonl` that is no dump, or,
 * for a dump that `hasArchive`, one in the place of the archive that the `.jsonl` does not name.
 */
export const earlierIn = (operation: string, places: Places, hasArchive: boolean): Effect.Effect<Earlier, SessionError> =>
  Effect.gen(function* () {
    const { archive, lines } = places
    const kinds = yield* attempt(() => ({ archive: kindAt(archive), lines: kindAt(lines) }))
    const stamp = yield* attempt(() => stampOf(archive))
    const isDump = kinds.lines === "file" && (yield* attempt(() => beginsAsDump(lines)))
    if (!isDump && (kinds.lines === "file" || kinds.lines === "other")) {
      return yield* Effect.fail(foreign(operation, lines, "it is no dump of a session"))
    }
    const owned = isDump && kinds.archive === "file" ? yield* ownedArchive(places) : undefined
    const isForeign = owned === undefined && (kinds.archive === "file" || kinds.archive === "other")
    if (hasArchive && isForeign) {
      const why = isDump ? `${JSON.stringify(basename(lines))} does not name it as its archive` : "it is no archive of a dump"
      return yield* Effect.fail(foreign(operation, archive, why))
    }
    return { archive: owned, stamp }
  }).pipe(
    Effect.mapError((problem) => (problem._tag === "SessionError" ? problem : toError(operation, places.directory)(problem)))
  )

/** Whether the place of the archive still holds what was looked at. */
export const isAsBefore = ({ archive }: Places, { stamp }: Earlier): boolean => stampOf(archive) === stamp
