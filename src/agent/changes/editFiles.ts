/**
 * Edits files. For several files, all new contents are computed first, on bytes, and written at once if the versions are still
 * the same.
 */
import * as Effect from "effect/Effect"
import * as Edit from "../../engine/edit.ts"
import type { EditResult } from "../../model/Entry.ts"
import { Conflict, type EditError, type FsError, InvalidArgument, promote } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import type { Call } from "../definition.ts"
import { applyChanges, type FileChange } from "./apply.ts"
import { withModelNumbers, type FileEdits } from "./editPlan.ts"

export interface EditedFile {
  readonly path: FsPath
  readonly replacements: number
  readonly diff: string
  readonly version: string
}

const withModelNames =
  (file: FileEdits, { tool }: Call) =>
  <E extends FsError>(error: E): E | InvalidArgument =>
    error instanceof InvalidArgument ? withModelNumbers(error, file, tool) : error

const maxRememberedBytes = 1024 * 1024

const textOf = (bytes: Uint8Array): string | undefined => {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/**
 * Remembers the new text, so that later changes by others can be described; only the version, if the text cannot be read now.
 */
const rememberText = Effect.fnUntraced(function* ({ filesystem, memory }: Call, { bytesWritten, path, version }: EditResult) {
  memory.saw(path, version!)
  if (bytesWritten > maxRememberedBytes) return
  const read = yield* Effect.option(filesystem.readBytes(path, { version: true }))
  if (read._tag === "Some" && read.value.version === version) memory.saw(path, version!, textOf(read.value.content))
})

const editOne = Effect.fnUntraced(function* (
  call: Call,
  file: FileEdits
): Effect.fn.Return<EditedFile, EditError | InvalidArgument> {
  const { edits, ifMatch, path } = file
  const edited = yield* Effect.mapError(
    call.filesystem.edit(path, edits, { ...(ifMatch !== undefined && { ifMatch }), version: true }),
    withModelNames(file, call)
  )
  yield* rememberText(call, edited)
  return { path, replacements: edited.replacements, diff: edited.diff, version: edited.version! }
})

interface PlannedEdit {
  readonly file: FileEdits
  readonly edited: Edit.Edited
  readonly change: FileChange
}

const planEdit = Effect.fnUntraced(function* (call: Call, file: FileEdits): Effect.fn.Return<PlannedEdit, FsError> {
  const { edits, ifMatch, path } = file
  const { content, version } = yield* call.filesystem.readBytes(path, { version: true })
  if (ifMatch !== undefined && ifMatch !== version) {
    return yield* Effect.fail(new Conflict({ operation: call.tool, path, expected: ifMatch, actual: version! }))
  }
  const edited = yield* Edit.applyEdits(content, edits, path, call.settings.limits.maxFileSize)
  if ("_tag" in edited) return yield* Effect.fail(withModelNames(file, call)(promote(edited, call.tool, path)))
  return { file, edited, change: { path, before: version!, after: edited.bytes } }
})

const editAll = Effect.fnUntraced(function* (
  call: Call,
  files: ReadonlyArray<FileEdits>
): Effect.fn.Return<ReadonlyArray<EditedFile>, FsError> {
  const all = yield* Effect.forEach(files, (file) => planEdit(call, file))
  const changes = all.map(({ change }) => change)
  const changed = yield* Effect.mapError(
    applyChanges(call.filesystem, changes, { operation: call.tool }),
    withModelNames(files[0]!, call)
  )
  return all.map(({ edited: { bytes, diff, replacements }, file: { path } }, index) => {
    const version = changed[index]!.version!
    call.memory.saw(path, version, textOf(bytes))
    return { path, replacements, diff, version }
  })
})

/** Makes all edits or none. Each edit is searched for in the text before any edit. */
export const editFiles = (call: Call, files: ReadonlyArray<FileEdits>): Effect.Effect<ReadonlyArray<EditedFile>, FsError> => {
  const [only] = files
  if (files.length === 1) return Effect.map(editOne(call, only!), (edited) => [edited])
  const hasPrecondition = (path: string): boolean => files.some((file) => file.path === path && file.ifMatch !== undefined)
  // Without `if_match` for the file, a conflict is retried on the current content.
  return Effect.retry(editAll(call, files), {
    times: 4,
    while: (error) => error._tag === "Conflict" && !hasPrecondition(error.path)
  })
}
