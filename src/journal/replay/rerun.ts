/**
 * Carries out a recorded session again on another filesystem. Steps of a recorder run at the port. Requests of a branch run as
 * in a leaf.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Read from "../../engine/read.ts"
import { removeWithContent } from "../../engine/remove.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import * as Caller from "../../filesystem/operations/call.ts"
import * as Faults from "../../model/Fault.ts"
import { type Fault, type FsError, toFault } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { isBytes } from "../../model/realms.ts"
import type { Backend } from "../../port/Backend.ts"
import type { CreateMode, FileContentChunk, FileRead, FileSetAttributes, Terminal } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../model.ts"
import { portModes } from "../entries/kinds.ts"
import { sizeOf, streamOfParts } from "../entries/values.ts"
import { JournalError } from "../errors.ts"
import type { LeafContext, Work } from "../leaf/model.ts"
import * as Views from "../leaf/operations.ts"
import { performRequest } from "../leaf/operations.ts"
import * as Settings from "../leaf/settings.ts"
import { isStep } from "../record/steps.ts"
import { type Filter, isSelected } from "./filter.ts"
import { pathsOf } from "./load.ts"
import { type AnswerFields, digestFieldsOf, fieldsOf, type Operation, operations } from "./operations.ts"
import type { Difference } from "./values.ts"

const linksUnsupported = Faults.unsupported("symbolic links")
const attributesUnsupported = Faults.unsupported("attributes")
const notFoundFields: AnswerFields = { answer: "fault", kind: "NotFound" }

/**
 * Returns the number of bytes to read. If the recorded read returned fewer bytes than requested before the end of the file,
 * returns the recorded number.
 */
const readLength = ({ answered }: Operation, { length = 0, offset = 0 }: FileRead): number => {
  const answer = answered?.answer
  if (answer?._tag !== "FileContent") return length
  const size = sizeOf(answer.content)
  return offset + size < answer.totalSize ? size : length
}

/** Reads a link if the request has no length, and a file otherwise. A request for 0 bytes is the record of an open. */
const read = (
  journal: Scrivener<Entry>,
  port: Backend,
  operation: Operation,
  asked: FileRead
): Effect.Effect<AnswerFields, Fault | JournalError> => {
  const { path } = operation
  const bytes: Effect.Effect<Uint8Array, Fault> =
    asked.length !== undefined
      ? Effect.scoped(
          Effect.flatMap(port.open(path), (handle) => Read.range(handle, asked.offset ?? 0, readLength(operation, asked)))
        )
      : port.links === undefined
        ? Effect.fail(linksUnsupported)
        : Effect.map(port.links.read(path), (target) => new TextEncoder().encode(target))
  return Effect.flatMap(bytes, (bytes) =>
    Effect.map(digestFieldsOf(journal, [bytes]), (digest) => ({ answer: "content", ...digest }))
  )
}

const write = (
  journal: Scrivener<Entry>,
  port: Backend,
  { parts, path }: Operation,
  createMode: CreateMode
): Effect.Effect<AnswerFields, Fault | JournalError> =>
  Effect.suspend(() => {
    const [only] = parts
    let bytes = 0
    const counted = Stream.map(streamOfParts(journal.contents, parts), (chunk) => {
      bytes += chunk.length
      return chunk
    })
    const written =
      parts.length === 1 && isBytes(only)
        ? Effect.sync(() => void (bytes = only.length)).pipe(
            Effect.andThen(port.write<never, never>(path, only, portModes[createMode]))
          )
        : port.write(path, counted, portModes[createMode])
    return Effect.map(written, () => ({ answer: "written", bytes }))
  })

const remove = (port: Backend, { path }: Operation, recursive: boolean): Effect.Effect<AnswerFields, Fault> =>
  Effect.map(recursive ? removeWithContent(port, path) : Effect.as(port.remove(path), { deleted: 1 }), ({ deleted }) => ({
    answer: "deleted",
    files: Math.max(1, deleted)
  }))

/** Sets the recorded attributes. Omits the mode if the recorded answer says that the leaf did not set it. */
const setAttributes = (
  port: Backend,
  { answered, path }: Operation,
  { mode, modified }: FileSetAttributes
): Effect.Effect<void, Fault> =>
  port.attributes === undefined
    ? Effect.fail(attributesUnsupported)
    : port.attributes.set(path, {
        ...(mode === undefined || isModeSkipped(answered?.answer) ? {} : { mode }),
        ...(modified === undefined ? {} : { modifiedAt: modified })
      })

const isModeSkipped = (answer: Terminal | undefined): boolean =>
  answer?._tag === "FileAttributesSet" && answer.skippedMode === true

const doneFields: AnswerFields = { answer: "done" }

const perform = (
  journal: Scrivener<Entry>,
  port: Backend,
  operation: Operation
): Effect.Effect<AnswerFields, Fault | JournalError> => {
  const { asked, path, to } = operation
  switch (asked._tag) {
    case "FileRead":
      return read(journal, port, operation, asked)
    case "FileStat":
      return Effect.map(port.stat(path), (stat) =>
        stat === undefined
          ? notFoundFields
          : { answer: "metadata", kind: stat.kind, ...(stat.isDirectory ? {} : { bytes: stat.sizeBytes }) }
      )
    case "FileList":
      return Effect.map(port.list(path), (all) => ({
        answer: "listing",
        entries: all.map(({ key, kind, name }) => `${key ?? name} ${kind}`).sort()
      }))
    case "FileWrite":
    case "FileWriteChunk":
      return write(journal, port, operation, asked.createMode ?? "overwrite")
    case "FileDelete":
      return remove(port, operation, asked.recursive === true)
    case "FileMakeDirectory":
      return Effect.as(port.makeDirectory(path), doneFields)
    case "FileMove":
      return Effect.as(port.rename(path, to!, { replace: asked.overwrite === true }), doneFields)
    case "FileMakeLink":
      return Effect.as(
        port.links === undefined ? Effect.fail(linksUnsupported) : port.links.make(path, asked.target),
        doneFields
      )
    case "FileSetAttributes":
      return Effect.as(setAttributes(port, operation, asked), doneFields)
    case "FileEdit":
      return Effect.fail(Faults.unsupported("edits at the port"))
  }
}

const runStep = (
  journal: Scrivener<Entry>,
  { port }: Algebra,
  operation: Operation
): Effect.Effect<AnswerFields, JournalError> =>
  Effect.catchIf(
    perform(journal, port, operation),
    (error): error is Fault => error._tag !== "JournalError",
    (fault) => Effect.succeed<AnswerFields>({ answer: "fault", kind: fault._tag })
  )

const faultFields = (fault: Fault | FsError): AnswerFields => ({ answer: "fault", kind: fault._tag })

const sink = (
  { fs, journal }: LeafContext,
  { asked, parts }: Operation
): Effect.Effect<AnswerFields, JournalError | FsError> => {
  if (asked._tag !== "FileWriteChunk") return Effect.succeed({})
  const { createMode, createParents, ifMatch, path = "", version } = asked
  return Effect.map(
    Stream.run(
      streamOfParts(journal.contents, parts),
      fs.sink(path, { mode: createMode, createParents, version, ...(ifMatch !== undefined && { ifMatch }) })
    ),
    ({ bytesWritten }) => ({ answer: "written", bytes: bytesWritten })
  )
}

/** Returns the context for a request. A branch that follows links itself gets the view of an extended leaf. */
const viewOf = (serving: LeafContext, asked: Operation["asked"]): LeafContext =>
  asked.links === undefined
    ? serving
    : Views.make({ ...serving, settings: { ...serving.settings, extended: true } }).viewFor(asked)

const performCall = (
  serving: Omit<LeafContext, "tell">,
  { asked, path, position, to }: Operation
): Effect.Effect<AnswerFields, JournalError | FsError> =>
  Effect.suspend(() => {
    const chunks: Array<FileContentChunk> = []
    const work: Work = {
      intent: asked,
      givenPath: asked.path ?? "",
      path,
      to,
      position,
      transfer: undefined,
      earlierWork: undefined,
      mounts: [],
      isOwn: true,
      ownership: { owns: () => true, isPrefixDirectory: () => false },
      isAnswered: false,
      hasBegun: false
    }
    const tell: LeafContext["tell"] = (_, entries) =>
      Effect.sync(() => {
        for (const entry of entries) if (entry._tag === "FileContentChunk") chunks.push(entry)
      })
    return Effect.flatMap(performRequest(viewOf({ ...serving, tell }, asked), work), (answer) =>
      fieldsOf(serving.journal, answer, answer._tag === "FileContentChunk" ? [...chunks, answer] : [])
    )
  })

const pathFault = ({ asked }: Operation): Fault | undefined => {
  for (const input of [asked.path ?? "", ...("to" in asked ? [asked.to] : [])]) {
    const path = FsPath.parse(input, "branch")
    if (typeof path !== "string") return path
  }
  return undefined
}

const runCall = (
  journal: Scrivener<Entry>,
  fs: Algebra,
  settings: Settings.Settings,
  operation: Operation
): Effect.Effect<AnswerFields, JournalError> =>
  Effect.suspend(() => {
    const fault = pathFault(operation)
    if (fault !== undefined) return Effect.succeed(faultFields(fault))
    const { asked } = operation
    const serving = { fs, caller: Caller.make(fs.port), journal, settings, instance: "rerun" }
    const done =
      asked._tag === "FileWriteChunk"
        ? sink(viewOf({ ...serving, tell: () => Effect.void }, asked), operation)
        : performCall(serving, operation)
    return Effect.catchIf(
      done,
      (error): error is FsError => !(error instanceof JournalError),
      (error) => Effect.succeed(faultFields(toFault(error)))
    )
  })

const isSameAnswer = (expected: AnswerFields, actual: AnswerFields): boolean =>
  JSON.stringify(expected) === JSON.stringify(actual)

export const rerun = Effect.fnUntraced(function* (
  journal: Scrivener<Entry>,
  target: Algebra,
  options: { readonly until?: number | undefined; readonly filter?: Filter | undefined } = {}
): Effect.fn.Return<ReadonlyArray<Difference>, JournalError> {
  const { filter, until } = options
  const settings = Settings.parseOptions(target, {})
  const out: Array<Difference> = []
  const rerunOperation = Effect.fnUntraced(function* (operation: Operation): Effect.fn.Return<void, JournalError> {
    const { answered, asked, chunks, isWhole, kind, path, position } = operation
    const { correlationId } = asked
    if (answered === undefined || !isWhole || !isSelected(filter, asked, pathsOf(operation))) return
    const expected = yield* fieldsOf(journal, answered.answer, chunks)
    const actual = yield* isStep(correlationId)
      ? runStep(journal, target, operation)
      : runCall(journal, target, settings as Settings.Settings, operation)
    if (!isSameAnswer(expected, actual)) out.push({ position, correlationId, kind, path, expected, actual })
  })
  yield* Stream.runForEach(operations(journal, until), rerunOperation)
  return out
})
