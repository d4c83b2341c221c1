import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import { sha256 } from "../../runtime/hash.ts"
import { sizeOf } from "../entries/contents.ts"
import type { JournalError } from "../errors.ts"
import { isMutation } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import type { Filter } from "./filter.ts"
import { isChangeSelected } from "./filter.ts"
import { type Operation, operations } from "./operations.ts"
import { VisibleChanges } from "./visible.ts"
import type { Change } from "./values.ts"

const versionOf = ({ asked, parts }: Operation): string | undefined => {
  const mode = "createMode" in asked ? asked.createMode : undefined
  const [only] = parts
  if (only === undefined || parts.length !== 1 || mode === "append" || mode === "appendExisting") return undefined
  return isBytes(only) ? sha256(only) : only.sha256
}

const bytesOf = (parts: Operation["parts"]): number => parts.reduce((size, part) => size + sizeOf(part), 0)

type Outcome = Pick<Change, "outcome" | "fault" | "message" | "bytes" | "version">

const withVersion = (version: string | undefined): { readonly version?: string } => (version === undefined ? {} : { version })

const outcomeOf = (operation: Operation): Outcome => {
  const { answered, kind, parts } = operation
  const answer = answered?.answer
  switch (answer?._tag) {
    case undefined:
      return { outcome: "unanswered", ...(kind === "FileWrite" ? { bytes: bytesOf(parts) } : {}) }
    case "FileFault":
      return { outcome: "failed", fault: answer.faultKind, message: answer.message }
    case "FileWritten":
      return { outcome: "done", bytes: answer.bytesWritten, ...withVersion(answer.version ?? versionOf(operation)) }
    case "FileEdited":
      return { outcome: "done", bytes: answer.bytesWritten, ...withVersion(answer.version) }
    case "FileMoved":
      return { outcome: "done", bytes: answer.bytes }
    default:
      return { outcome: "done" }
  }
}

type ChangeOperation = Operation & { readonly kind: Change["kind"] }

const isChangeOperation = (operation: Operation): operation is ChangeOperation => isMutation(operation.asked)

const changeOf = (operation: ChangeOperation): Change => {
  const { answered, asked, at, kind, path, position, to } = operation
  return {
    position,
    ...(answered === undefined ? {} : { answered: answered.position }),
    at,
    correlationId: asked.correlationId,
    kind,
    path,
    ...(to === undefined ? {} : { to }),
    ...outcomeOf(operation)
  }
}

export const changes = (journal: Scrivener<Entry>, filter?: Filter): Stream.Stream<Change, JournalError> =>
  Stream.suspend(() => {
    const visible = new VisibleChanges()
    return operations(journal).pipe(
      Stream.filter(isChangeOperation),
      Stream.flatMap((operation) => Stream.fromIterable(visible.take(changeOf(operation), operation))),
      Stream.filter((change) => isChangeSelected(filter, change))
    )
  })
