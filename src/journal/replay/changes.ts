import * as Stream from "effect/Stream"
import * as FsPath from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import { sha256 } from "../../runtime/hash.ts"
import { isMutation } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../model.ts"
import { sizeOf } from "../entries/values.ts"
import type { JournalError } from "../errors.ts"
import { type Filter, isChangeSelected } from "./filter.ts"
import { type Operation, operations } from "./operations.ts"
import { HiddenNames } from "./paths.ts"
import type { Change } from "./values.ts"

// Reports changes by their effect on visible names. A transaction stages entries under hidden names. A rename from a hidden
// name makes a staged entry visible. A rename to a hidden name removes an entry.

interface StagedEntry {
  kind: "FileWrite" | "FileMakeDirectory" | "FileMakeLink"
  bytes?: number | undefined
  version?: string | undefined
  readonly entries: Map<string, StagedEntry>
}

const stagedEntry = (kind: StagedEntry["kind"], fields: Pick<StagedEntry, "bytes" | "version"> = {}): StagedEntry => ({
  kind,
  ...fields,
  entries: new Map()
})

const kinds: ReadonlySet<string> = new Set<StagedEntry["kind"]>(["FileWrite", "FileMakeDirectory", "FileMakeLink"])
const isCreationKind = (kind: Change["kind"]): kind is StagedEntry["kind"] => kinds.has(kind)

const stagedByMove = ({ answered }: Operation): StagedEntry => {
  const answer = answered?.answer
  return answer?._tag === "FileMoved" && answer.directories > 0
    ? stagedEntry("FileMakeDirectory")
    : stagedEntry("FileWrite", answer?._tag === "FileMoved" ? { bytes: answer.bytes } : {})
}

/**
 * The translator from recorded changes to changes of visible names. The recorded changes must arrive in the order of the
 * journal.
 */
class VisibleChanges {
  readonly #top = stagedEntry("FileMakeDirectory")
  readonly #hidden = new HiddenNames()

  take(change: Change, operation: Operation): ReadonlyArray<Change> {
    const { outcome, path, to } = change
    this.#hidden.observe(operation)
    if (to === undefined) {
      if (!this.#hidden.has(path)) return [change]
      if (outcome === "done") this.#prepare(change)
      return []
    }
    if (this.#hidden.has(path)) {
      const node = outcome === "done" ? this.#remove(path) : this.#at(path)
      if (!this.#hidden.has(to)) return this.#made(change, to, node ?? stagedByMove(operation))
      if (outcome === "done") this.#set(to, node ?? stagedByMove(operation))
      return []
    }
    if (!this.#hidden.has(to)) return [change]
    if (outcome === "done") this.#set(to, stagedByMove(operation))
    const { bytes: _, to: __, ...rest } = change
    return [{ ...rest, kind: "FileDelete" }]
  }

  #prepare({ bytes, kind, path, version }: Change): void {
    if (kind === "FileDelete") this.#remove(path)
    else if (isCreationKind(kind)) this.#set(path, stagedEntry(kind, { bytes, version }))
  }

  #made({ answered, at, correlationId, fault, message, outcome, position }: Change, to: FsPath.FsPath, top: StagedEntry) {
    const out: Array<Change> = []
    const pending: Array<readonly [path: FsPath.FsPath, node: StagedEntry]> = [[to, top]]
    for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
      const [path, { bytes, entries, kind, version }] = next
      out.push({
        position,
        ...(answered === undefined ? {} : { answered }),
        at,
        correlationId,
        kind,
        path,
        outcome,
        ...(fault === undefined ? {} : { fault }),
        ...(message === undefined ? {} : { message }),
        ...(bytes === undefined ? {} : { bytes }),
        ...(version === undefined ? {} : { version })
      })
      for (const [name, node] of [...entries].reverse()) pending.push([FsPath.join(path, name), node])
    }
    return out
  }

  #at(path: FsPath.FsPath): StagedEntry | undefined {
    let node: StagedEntry | undefined = this.#top
    for (const name of FsPath.segments(path)) node = node?.entries.get(name)
    return node
  }

  #set(path: FsPath.FsPath, node: StagedEntry): void {
    const names = [...FsPath.segments(path)]
    const last = names.pop()!
    let directory = this.#top
    for (const name of names) {
      const next = directory.entries.get(name) ?? stagedEntry("FileMakeDirectory")
      directory.entries.set(name, next)
      directory = next
    }
    directory.entries.set(last, node)
  }

  #remove(path: FsPath.FsPath): StagedEntry | undefined {
    const node = this.#at(path)
    this.#at(FsPath.parent(path))?.entries.delete(FsPath.name(path))
    return node
  }
}

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
