/** A fake leaf with answers that the test gives. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { FsError } from "../../src/model/FsError.ts"
import * as F from "../../src/journal/FileSystemEntry.ts"
import type { JournalError } from "../../src/journal/errors.ts"
import type { Entry, Scrivener } from "../../src/journal/Journal.ts"

/** Answers each request with the entries that `answer` returns, in order, until the scope ends. */
export const answering = (
  journal: Scrivener<Entry>,
  answer: (entry: F.Efferent) => Effect.Effect<ReadonlyArray<Entry>, JournalError>
) =>
  Effect.flatMap(journal.last, (last) =>
    Effect.forkScoped(
      Stream.runForEach(journal.tail(last), ({ entry }) =>
        F.isEfferent(entry) ? Effect.flatMap(answer(entry), journal.appendAll) : Effect.void
      )
    )
  )

const kinds: ReadonlySet<string> = new Set(F.FaultKind.literals)

export const fault = (correlationId: string, path: string, error: FsError): F.FileFault =>
  new F.FileFault({
    correlationId,
    path,
    error,
    message: error.message,
    faultKind: kinds.has(error._tag) ? (error._tag as F.FaultKind) : "IoError"
  })
