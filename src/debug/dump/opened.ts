/**
 * Opens a dump: its sessions, with slices of any type, and its archive. If only one of the two is damaged, the other is still
 * shown, together with a description of the problem.
 */
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { log } from "../../agent/ToolEvents.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { ArchiveError } from "../../history/errors.ts"
import { viewOf } from "../../history/snapshotStore/service.ts"
import type { DirectoryNode } from "../../history/tree.ts"
import type { Manifest } from "../../history/zip/manifest.ts"
import { open as openFile } from "../../history/zip/hostFile.ts"
import { read } from "../../history/zip/reader.ts"
import { fromDescriptor } from "../../history/zip/spool.ts"
import { type Fault, promote } from "../../model/FsError.ts"
import { Limits } from "../../model/Limits.ts"
import { SessionError } from "../../model/sessionError.ts"
import { forEachLine } from "../../workspace/session/files.ts"
import { type OpenArchive, readConsistentPair, type Replaced } from "../../workspace/session/load.ts"
import { decodeSaved, maxTextBytes, type SavedSession } from "../../workspace/session/saved.ts"
import type { Event, FilesystemMeta, SessionInfo, SliceInfo } from "../model.ts"
import * as Tree from "../tree.ts"
import type { Place } from "./place.ts"

export const sessionsOf = (sessions: ReadonlyArray<SavedSession>): ReadonlyArray<SessionInfo> =>
  sessions.map(({ createdAt, parentId, sessionId, slices, tags }) => ({
    session_id: sessionId,
    parent_id: parentId ?? null,
    created_at: DateTime.formatIso(createdAt),
    tags,
    slices: slices.length,
    items: slices.reduce((sum, { items }) => sum + items.length, 0)
  }))

export const slicesOf = (sessions: ReadonlyArray<SavedSession>): ReadonlyArray<SliceInfo> =>
  sessions.flatMap(({ sessionId, slices }) =>
    slices.map(({ items, name, policy }) => ({ session_id: sessionId, name, policy, items: items.length }))
  )

export interface Slice extends SliceInfo {
  readonly all: ReadonlyArray<unknown>
}

export const sliceOf = (
  sessions: ReadonlyArray<SavedSession>,
  name: string,
  session: string | undefined
): Slice | undefined => {
  for (const { sessionId, slices } of sessions) {
    if (session !== undefined && session !== sessionId) continue
    const found = slices.find((slice) => slice.name === name)
    if (found !== undefined) {
      return { session_id: sessionId, name, policy: found.policy, items: found.items.length, all: found.items }
    }
  }
  return undefined
}

export const manifestOf = ({ bytes, manifest }: Archive): FilesystemMeta => ({
  name: "Archive",
  created_at: DateTime.formatIso(manifest.createdAt),
  file_count: manifest.fileCount,
  total_bytes: manifest.totalBytes,
  archive_bytes: bytes,
  case_sensitive: true
})

// Collects the calls of tools, and the other log items with a time, in the order of time. Calls without a time come last.

type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {}

const textIn = (fields: Fields, name: string): string | undefined =>
  typeof fields[name] === "string" ? fields[name] : undefined

const countIn = (fields: Fields, name: string): number | undefined =>
  Number.isSafeInteger(fields[name]) && (fields[name] as number) >= 0 ? (fields[name] as number) : undefined

const times = ["at", "timestamp", "time", "createdAt", "created_at"]

/**
 * Returns a time in milliseconds since 1970. The value is a number of milliseconds, or a text such as ISO 8601. Returns
 * `undefined` for other values.
 */
const millisOf = (value: unknown): number | undefined => {
  if (typeof value !== "string" && typeof value !== "number") return undefined
  return Option.getOrUndefined(Option.map(DateTime.make(value), DateTime.toEpochMillis))
}

const timeOf = (fields: Fields): number | undefined =>
  times.map((name) => millisOf(fields[name])).find((millis) => millis !== undefined)

const iso = (millis: number): string => DateTime.formatIso(DateTime.makeUnsafe(millis))

type Draft = Omit<Event, "index"> & { readonly millis: number | undefined }

type OptionalFields<A> = { -readonly [K in keyof A]?: A[K] | undefined }

const withoutUndefined = <A extends object>(fields: OptionalFields<A>): A =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as A

type Call = Pick<Event, "call_id" | "success" | "message" | "path" | "mode" | "size_bytes" | "duration_millis">

const callOf = (fields: Fields): Call =>
  withoutUndefined<Call>({
    call_id: textIn(fields, "callId"),
    success: typeof fields["success"] === "boolean" ? fields["success"] : undefined,
    message: textIn(fields, "message"),
    path: textIn(fields, "path"),
    mode: textIn(fields, "mode"),
    size_bytes: countIn(fields, "sizeBytes"),
    duration_millis: Number.isFinite(fields["durationMillis"]) ? (fields["durationMillis"] as number) : undefined
  })

const eventOf = (session: string, slice: string, item: unknown): Draft | undefined => {
  const fields = fieldsOf(item)
  const millis = timeOf(fields)
  const isCall = slice === log.name && typeof fields["tool"] === "string"
  if (!isCall && millis === undefined) return undefined
  return {
    session_id: session,
    slice,
    at: millis === undefined ? null : iso(millis),
    name: isCall ? (fields["tool"] as string) : (textIn(fields, "_tag") ?? textIn(fields, "type") ?? slice),
    ...(isCall ? callOf(fields) : undefined),
    item,
    millis
  }
}

const eventsOf = (sessions: ReadonlyArray<SavedSession>): ReadonlyArray<Event> => {
  const drafts: Array<Draft> = []
  for (const { sessionId, slices } of sessions) {
    for (const { items, name, policy } of slices) {
      if (policy !== "log") continue
      for (const item of items) {
        const event = eventOf(sessionId, name, item)
        if (event !== undefined) drafts.push(event)
      }
    }
  }
  drafts.sort((a, b) => (a.millis ?? Infinity) - (b.millis ?? Infinity) || 0)
  return drafts.map(({ millis: _, ...event }, index) => ({ index, ...event }))
}

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
                ? `line ${problem.line}: the line is longer than ${maxTextBytes} bytes, the limit for a line of a session`
                : promote(problem, "debug", lines).message
            )
        )
      )
    )
    if (all.length === 0 && problems.length === 0) problems.push("the file is empty")
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
    ? "the dump was replaced several times during the read; try again"
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

/** Opens the dump until the scope closes. The files remain readable even if another process renames them. */
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
        ...sessions.problems.map((problem) => `Some sessions cannot be shown: ${problem}.`),
        ...(archiveProblem === undefined ? [] : [`The files cannot be shown: ${archiveProblem}.`])
      ]
    }
  })
