import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Covenant from "../Covenant.ts"
import type { Group } from "../Daemon.ts"
import type { JournalError } from "../errors.ts"
import {
  FileContent,
  FileContentChunk,
  FileDelete,
  FileDeleted,
  FileEdit,
  FileEdited,
  FileFault,
  FileList,
  FileListing,
  FileMetadata,
  FileRead,
  FileWrite,
  FileWritten
} from "../FileSystemEntry.ts"
import { Journal, type Entry, type Recorded, type Scrivener } from "../model.ts"
import { answer, type FileAnswer } from "./results.ts"
import * as Ids from "./definitions.ts"
import { requestFor, type SpellEntry, SpellFault, SpellInvocation, SpellResult } from "./definitions.ts"
import type { InvocationLog, NoAnswerError } from "./invocationLog.ts"

export interface SpellRouting {
  readonly spells: Scrivener<SpellEntry>
  readonly files: Scrivener<Entry>
  readonly invocations: InvocationLog
  readonly name: string
  readonly extended: boolean
  readonly maxBytes: number
}

const declareCovenant = ({ invocations, extended, files, maxBytes, name, spells }: SpellRouting) => {
  const ids = Ids.make(name)

  const routeInvocation = ({ entry, position }: Recorded<SpellInvocation>) =>
    Effect.map(invocations.waitUntilRead(position), () => {
      const { correlationId } = entry
      const page = invocations.state(correlationId)
      const isFirst = page?._tag === "Open" && page.position === position
      return isFirst ? [requestFor(entry, (step) => ids.idOf({ position, step, correlationId }), extended)] : []
    })

  const answerInvocation = (recorded: Recorded<FileAnswer>, { correlationId, position, step }: Ids.Derived) => {
    const page = invocations.state(correlationId)
    if (page?._tag !== "Open" || page.position !== position) return Effect.succeed([])
    const id = (step: Ids.Step) => ids.idOf({ position, step, correlationId })
    return answer({ journal: files, invocation: page.invocation, step, id, maxBytes }, recorded)
  }

  const routeAnswer = Effect.fnUntraced(function* (recorded: Recorded<FileAnswer>) {
    const derived = ids.parse(recorded.entry.correlationId)
    // Ignore a position after the last spell, because the entry belongs to another, longer journal of spells.
    if (derived === undefined || derived.position > (yield* spells.last)) return []
    yield* invocations.waitUntilRead(derived.position)
    return yield* answerInvocation(recorded, derived)
  })

  const edit = extended ? [FileEdit] : []
  const edited = extended ? [FileEdited] : []
  return Covenant.make<NoAnswerError>({
    branches: [
      Covenant.branch({ name: "spells", journal: spells, produces: [SpellInvocation], consumes: [SpellResult, SpellFault] }),
      Covenant.branch({
        name: "files",
        journal: files,
        produces: [FileContent, FileContentChunk, FileWritten, FileListing, FileDeleted, FileMetadata, FileFault, ...edited],
        consumes: [FileRead, FileWrite, FileList, FileDelete, ...edit]
      })
    ],
    routes: [
      Covenant.route({
        name: "ask",
        from: [SpellInvocation],
        to: [FileRead, FileWrite, FileList, FileDelete, ...edit, SpellFault],
        via: routeInvocation
      }),
      Covenant.route({
        name: "tell",
        from: [FileContent, FileContentChunk, FileWritten, FileListing, FileDeleted, FileFault, ...edited],
        to: [SpellResult, SpellFault, FileWrite],
        via: routeAnswer
      })
    ],
    terminal: [FileMetadata]
  })
}

/**
 * Returns the positions up to which all entries have been routed. Without an open invocation, these are the last positions.
 * Otherwise the spells are routed up to the first open invocation, and the journal of files is read from its beginning.
 */
const settledPositions = Effect.fnUntraced(function* ({ invocations, files, spells }: SpellRouting) {
  const last = yield* spells.last
  yield* invocations.waitUntilRead(last)
  const open = invocations.firstOpen()
  return open === undefined ? { spells: last, files: yield* files.last } : { spells: open - 1, files: 0 }
})

/**
 * Returns the daemons of the covenant. The caller must start the daemons. If a daemon fails, all callers that wait for an
 * answer fail too.
 */
export const make = Effect.fnUntraced(function* (
  routing: SpellRouting
): Effect.fn.Return<Group, Covenant.CovenantError | JournalError | NoAnswerError, Scope.Scope> {
  const covenant = yield* declareCovenant(routing)
  const { invocations, files, name } = routing
  const group = yield* Effect.provideService(
    Covenant.daemons(covenant, { name, after: yield* settledPositions(routing) }),
    Journal,
    files
  )
  for (const daemon of group.daemons) {
    const ended = Effect.flatMap(daemon.awaitStatus("Completed"), () => daemon.failure)
    const failingCallers = Effect.flatMap(ended, (failure) =>
      failure === undefined ? Effect.void : invocations.failAll(failure)
    )
    yield* Effect.forkScoped(Effect.ignore(failingCallers))
  }
  return group
})
