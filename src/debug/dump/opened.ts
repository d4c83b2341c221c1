/**
 * An open dump: its sessions as they were written, with any slices, and their archive. If one of them is damaged, the other is
 * still shown, and the problem is reported beside it.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { viewOf } from "../../history/snapshotStore/service.ts"
import type { Manifest } from "../../history/zip/manifest.ts"
import { open as openFile } from "../../history/zip/outside.ts"
import { read } from "../../history/zip/reader.ts"
import { fromDescriptor } from "../../history/zip/spool.ts"
import type { DirectoryNode } from "../../history/tree.ts"
import { ArchiveError } from "../../history/errors.ts"
import { type Fault, promote } from "../../model/FsError.ts"
import { SessionError } from "../../model/sessionError.ts"
import { Limits } from "../../model/Limits.ts"
import { forEachLine } from "../../workspace/session/files.ts"
import { type OpenArchive, readConsistentPair, type Replaced } from "../../workspace/session/load.ts"
import { decodeSaved, maxTextBytes, type SavedSession } from "../../workspace/session/saved.ts"
import * as Tree from "../tree.ts"
import type { Event } from "../model.ts"
import { eventsOf } from "./events.ts"
import type { Place } from "./place.ts"

export interface Archive {
  readonly file: string
  readonly bytes: number
  readonly manifest: Manifest
  readonly node: DirectoryNode
  readonly filesystem: Algebra
  readonly tree: Effect.Effect<Tree.Tree>
}

export interface OpenDump {
  readonly place: Place
  readonly sessions: ReadonlyArray<SavedSession>
  readonly events: ReadonlyArray<Event>
  readonly archive: Archive | undefined
  readonly archiveProblem: string | undefined
  readonly sessionProblems: ReadonlyArray<string>
  readonly problems: ReadonlyArray<string>
}

interface Sessions {
  readonly all: ReadonlyArray<SavedSession>
  readonly problems: ReadonlyArray<string>
}

const sessionsIn = (lines: string): Effect.Effect<Sessions> =>
  Effect.gen(function* () {
    const all: Array<SavedSession> = []
    const problems: Array<string> = []
    yield* forEachLine(lines, maxTextBytes, (bytes, number) =>
      decodeSaved({ operation: "debug", prefix: `line ${number}: ` }, bytes).pipe(
        Effect.match({
          onFailure: ({ detail }) => void problems.push(detail),
          onSuccess: (saved) => void all.push(saved)
        })
      )
    ).pipe(
      Effect.catch((problem) =>
        Effect.sync(
          () =>
            void problems.push(
              problem._tag === "Overlong"
                ? `line ${problem.line}: it has more than ${maxTextBytes} bytes, and no session is written so`
                : promote(problem, "debug", lines).message
            )
        )
      )
    )
    if (all.length === 0 && problems.length === 0) problems.push("there is nothing in it")
    return { all, problems }
  })

const openArchive = Effect.fnUntraced(function* ({ opened, path }: OpenArchive) {
  const limits = yield* Limits
  const contents = yield* read(fromDescriptor(opened.descriptor, opened.size), { limits, policy: undefined })
  const { manifest, tree: node } = contents
  return {
    file: path,
    bytes: opened.size,
    manifest,
    node,
    filesystem: viewOf({ ...contents, path }),
    tree: yield* Effect.cached(Effect.sync(() => Tree.ofNode(node)))
  } satisfies Archive
})

type Problem = SessionError | ArchiveError | Fault | Replaced

const describeProblem = (problem: Problem, path: string): string => {
  if (problem instanceof SessionError) return problem.detail
  if (problem instanceof ArchiveError) return problem.message
  return problem._tag === "Replaced"
    ? "it is replaced by one dump after another"
    : promote(problem as Fault, "debug", path).message
}

const openPairedArchive = (
  place: Place,
  keepSessions: (sessions: Sessions) => void
): Effect.Effect<OpenArchive | undefined, Problem, Scope.Scope> => {
  const { archiveAlone: alone, lines } = place
  if (lines === undefined) return Effect.map(openFile(alone!), (opened) => ({ path: alone!, opened }))
  const reading = Effect.tap(sessionsIn(lines), (sessions) => Effect.sync(() => keepSessions(sessions)))
  return Effect.map(
    readConsistentPair(lines, reading, ({ all }) => all[0]?.archive),
    ({ archive }) => archive
  )
}

/** Opens the dump until the scope ends, even if its files are renamed meanwhile. */
export const open = (place: Place): Effect.Effect<OpenDump, never, Scope.Scope> =>
  Effect.gen(function* () {
    let sessions: Sessions = { all: [], problems: [] }
    const opening = Effect.flatMap(
      openPairedArchive(place, (read) => {
        sessions = read
      }),
      (archive) => (archive === undefined ? Effect.succeed(undefined) : openArchive(archive))
    )
    const result = yield* Effect.result(opening)
    const archive = result._tag === "Success" ? result.success : undefined
    const archiveProblem = result._tag === "Failure" ? describeProblem(result.failure, place.path) : undefined
    return {
      place,
      sessions: sessions.all,
      events: eventsOf(sessions.all),
      archive,
      archiveProblem,
      sessionProblems: sessions.problems,
      problems: [
        ...sessions.problems.map((problem) => `The sessions are not all there: ${problem}.`),
        ...(archiveProblem === undefined ? [] : [`The files cannot be shown: ${archiveProblem}.`])
      ]
    }
  })
