/** Carries out a recorded session again on another filesystem: steps at the port, and calls as a leaf does. */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import * as Caller from "../../filesystem/operations/call.ts"
import * as FsPath from "../../model/FsPath.ts"
import { type Fault, type FsError, toFault } from "../../model/FsError.ts"
import { JournalError } from "../errors.ts"
import type { FileContentChunk } from "../FileSystemEntry.ts"
import type { Entry, Scrivener } from "../Journal.ts"
import type { LeafContext, Work } from "../leaf/model.ts"
import { performRequest } from "../leaf/operations.ts"
import * as Settings from "../leaf/settings.ts"
import * as Views from "../leaf/views.ts"
import { isStep } from "../record/ids.ts"
import { type AnswerFields, fieldsOf } from "./answers.ts"
import { type Filter, isSelected } from "./filter.ts"
import { pathsOf } from "./load.ts"
import { type Operation, operations } from "./operations.ts"
import { runStep } from "./steps.ts"
import type { Difference } from "./values.ts"

const faultFields = (fault: Fault | FsError): AnswerFields => ({ answer: "fault", kind: fault._tag })

const sink = (
  journal: Scrivener<Entry>,
  fs: Algebra,
  { asked, parts }: Operation
): Effect.Effect<AnswerFields, JournalError | FsError> => {
  if (asked._tag !== "FileWriteChunk") return Effect.succeed({})
  const { createMode, createParents, ifMatch, path = "", version } = asked
  const content = Stream.flatMap(Stream.fromIterable(parts), (part) =>
    isBytes(part) ? Stream.make(part) : journal.contents.stream(part)
  )
  return Effect.map(
    Stream.run(content, fs.sink(path, { mode: createMode, createParents, version, ...(ifMatch !== undefined && { ifMatch }) })),
    ({ bytesWritten }) => ({ answer: "written", bytes: bytesWritten })
  )
}

/** Returns the view for a request of a branch that follows links itself, as an extended leaf does. */
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
    const serving = { fs, caller: Caller.make(fs.port), journal, settings, instance: "rerun" }
    const done = operation.asked._tag === "FileWriteChunk" ? sink(journal, fs, operation) : performCall(serving, operation)
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
    const { answered, asked, chunks, kind, path, position } = operation
    const { correlationId } = asked
    if (answered === undefined || !isSelected(filter, asked, pathsOf(operation))) return
    const expected = yield* fieldsOf(journal, answered.answer, chunks)
    const actual = yield* isStep(correlationId)
      ? runStep(journal, target, operation)
      : runCall(journal, target, settings as Settings.Settings, operation)
    if (!isSameAnswer(expected, actual)) out.push({ position, correlationId, kind, path, expected, actual })
  })
  yield* Stream.runForEach(operations(journal, until), rerunOperation)
  return out
})
