import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as EditModule from "../../engine/edit.ts"
import type { Edit } from "../../engine/edit.ts"
import type { EditResult } from "../../model/Entry.ts"
import { Conflict, type EditError, type FsError, InvalidArgument, promote } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { runInSlices } from "../../runtime/steps.ts"
import { applyChanges, type FileChange } from "../changes.ts"
import { type Call, define, optional, type Refused, refused } from "../definition.ts"
import { diffText, excerptDiff, withDiff } from "../text/fit.ts"
import { formatCount as plural, whole } from "../../model/words.ts"
import { withoutCoreAdvice } from "../toolPath.ts"

interface Replacement {
  readonly path?: string | undefined
  readonly old_string: string
  readonly new_string: string
  readonly replace_all?: boolean | undefined
  readonly if_match?: string | undefined
}

interface Params extends Partial<Replacement> {
  readonly edits?: ReadonlyArray<Replacement> | undefined
}

interface FileEdits {
  readonly path: FsPath
  readonly edits: ReadonlyArray<Edit>
  /** The prefix of each edit's arguments in messages, such as `edits[3].`; empty for a single edit. */
  readonly names: ReadonlyArray<string>
  readonly ifMatch: string | undefined
}

interface MutableFileEdits extends FileEdits {
  readonly edits: Array<Edit>
  readonly names: Array<string>
  ifMatch: string | undefined
}

const isBlank = (text: string | undefined): boolean => text === undefined || text === ""

const noEdits = refused(
  "edit_file was given nothing to replace.",
  "Give path, old_string and new_string, or edits: a list of objects with path, old_string and new_string."
)
const incompleteEdit = refused(
  "edit_file was given only one of old_string and new_string.",
  'Give both; to delete text, give "" as new_string, and to write a whole file use write_file.'
)
const ambiguousEdits = refused(
  "edit_file was given both old_string and edits.",
  "Put every replacement into edits, and omit old_string and new_string."
)
const ambiguousVersion = refused(
  "With edits of several files, if_match does not say which file must have that version.",
  "Put if_match into the edits of the file that must have this version."
)

/** The largest number of edits in a call. Each edit blocks other calls for some microseconds. */
const maxEdits = 5000

const tooManyEdits = (count: number): Refused =>
  refused(
    `edit_file was given ${whole(count)} edits, but one call may have at most ${whole(maxEdits)}.`,
    "Nothing was changed; send the edits in several calls, or write the whole file with write_file."
  )

const replacementsOf = (params: Params): ReadonlyArray<Replacement> | Refused => {
  const { edits, if_match, new_string, old_string, path, replace_all } = params
  if (edits !== undefined && edits.length > 0) {
    if (!isBlank(old_string) || !isBlank(new_string)) return ambiguousEdits
    if (edits.length > maxEdits) return tooManyEdits(edits.length)
    return edits.map((edit) => ({ ...edit, path: edit.path ?? path, replace_all: edit.replace_all ?? replace_all }))
  }
  if (old_string === undefined && new_string === undefined) return noEdits
  if (old_string === undefined || new_string === undefined) return incompleteEdit
  return [{ path, old_string, new_string, replace_all, if_match }]
}

const invalidArgument = (call: Call, path: string, argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation: call.tool, path, argument, detail })

const faultOfEdit = (
  call: Call,
  path: FsPath,
  { new_string, old_string }: Replacement,
  name: string
): InvalidArgument | undefined => {
  if (old_string === "") {
    const detail =
      "it is empty; to insert text, give the text next to the insertion and repeat it in new_string, and to write a whole file use write_file"
    return invalidArgument(call, path, `${name}old_string`, detail)
  }
  return old_string === new_string
    ? invalidArgument(
        call,
        path,
        `${name}new_string`,
        "it is the same as old_string, so nothing would change; give the replacement text"
      )
    : undefined
}

const lineEndingOf = (text: string): "\r\n" | "\n" | undefined => {
  const newlines = text.split("\n").length - 1
  const crlfs = text.split("\r\n").length - 1
  return newlines === 0 ? undefined : crlfs === newlines ? "\r\n" : crlfs === 0 ? "\n" : undefined
}

const withOldLineEndings = ({ new_string, old_string }: Replacement): string => {
  const ending = lineEndingOf(old_string)
  return ending === undefined ? new_string : new_string.replaceAll(/\r?\n/g, ending)
}

const editOf = (place: Replacement): Edit => ({
  oldText: place.old_string,
  newText: withOldLineEndings(place),
  match: place.replace_all === true ? "all" : "unique"
})

const planEdits = Effect.fnUntraced(function* (params: Params, call: Call) {
  const places = replacementsOf(params)
  if ("_tag" in places) return yield* Effect.fail(places)
  const isList = params.edits !== undefined && params.edits.length > 0
  const files = new Map<FsPath, MutableFileEdits>()
  for (const [index, place] of places.entries()) {
    const name = isList ? `edits[${index}].` : ""
    const path = yield* call.path(place.path ?? "", { argument: `${name}path` })
    const fault = faultOfEdit(call, path, place, name)
    if (fault !== undefined) return yield* Effect.fail(fault)
    const file = files.get(path) ?? { path, edits: [], names: [], ifMatch: undefined }
    files.set(path, file)
    if (file.ifMatch !== undefined && place.if_match !== undefined && file.ifMatch !== place.if_match) {
      return yield* Effect.fail(
        invalidArgument(
          call,
          path,
          `${name}if_match`,
          "another edit of the same file gives a different version; give the same version in both"
        )
      )
    }
    file.ifMatch ??= place.if_match
    file.edits.push(editOf(place))
    file.names.push(name)
  }
  const [first] = files.values()
  if (isList && params.if_match !== undefined) {
    if (files.size > 1) return yield* Effect.fail(ambiguousVersion)
    first!.ifMatch ??= params.if_match
  }
  return [...files.values()] as ReadonlyArray<FileEdits>
})

const coreReferences = /^(?:edits\[\d+\] and edits\[\d+\] overlap|it does not occur in the original text; edits\[\d+\])/

const withModelNumbers = (error: InvalidArgument, { names }: FileEdits, tool: string): InvalidArgument => {
  const modelName = (index: string): string => (names[Number(index)] ?? "").replace(/\.$/, "")
  // Rewrite only the references that the engine adds, because `edits[n]` may also occur in quoted text of the file.
  const detail = error.detail.replace(coreReferences, (text) =>
    text.replace(/edits\[(\d+)\]/g, (_, index: string) => modelName(index))
  )
  const [, index = "0", field] = /^(?:edits\[(\d+)\]\.)?(oldText|newText)$/.exec(error.argument) ?? []
  const known: Readonly<Record<string, string>> = { oldText: "old_string", newText: "new_string" }
  const argument =
    field !== undefined ? `${names[Number(index)]}${known[field]}` : error.argument === "changes" ? "edits" : error.argument
  return new InvalidArgument({ operation: tool, path: error.path, argument, detail: withoutCoreAdvice(detail) })
}

interface EditedFile {
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
  readonly edited: EditModule.Edited
  readonly change: FileChange
}

const planEdit = Effect.fnUntraced(function* (call: Call, file: FileEdits): Effect.fn.Return<PlannedEdit, FsError> {
  const { edits, ifMatch, path } = file
  const { content, version } = yield* call.filesystem.readBytes(path, { version: true })
  if (ifMatch !== undefined && ifMatch !== version) {
    return yield* Effect.fail(new Conflict({ operation: call.tool, path, expected: ifMatch, actual: version! }))
  }
  const edited = yield* EditModule.applyEdits(content, edits, path, call.settings.limits.maxFileSize)
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

/** Makes all edits or none. Each old text is searched for in the original text of the file. */
const editFiles = (call: Call, files: ReadonlyArray<FileEdits>): Effect.Effect<ReadonlyArray<EditedFile>, FsError> => {
  const [only] = files
  if (files.length === 1) return Effect.map(editOne(call, only!), (edited) => [edited])
  const hasPrecondition = (path: string): boolean => files.some((file) => file.path === path && file.ifMatch !== undefined)
  // After a conflict, retry with the current content of the file, unless the call has `if_match` for the file.
  return Effect.retry(editAll(call, files), {
    times: 4,
    while: (error) => error._tag === "Conflict" && !hasPrecondition(error.path)
  })
}

const path = Schema.String.annotate({
  description: "File, relative to the root; with edits: the file of the edits without a path"
})
const oldString = Schema.String.annotate({
  description: "The text exactly as in the file, without line numbers, and long enough to occur only once"
})
const newString = Schema.String.annotate({ description: "Replacement text; empty deletes" })
const replaceAll = Schema.Boolean.annotate({ description: "Replace every occurrence" })
const ifMatch = Schema.String.annotate({ description: "Write only if the file still has this version, which stat shows" })

const edits = Schema.Array(
  Schema.Struct({
    path: optional(Schema.String, "Another file"),
    old_string: Schema.String.annotate({ description: "As above" }),
    new_string: Schema.String.annotate({ description: "As above" }),
    replace_all: optional(Schema.Boolean, "As above"),
    if_match: optional(Schema.String, "As above")
  })
).annotate({
  description: "Use instead of old_string and new_string; each old_string is found in the original text"
})

const countReplacements = (files: ReadonlyArray<EditedFile>): number =>
  files.reduce((sum, { replacements }) => sum + replacements, 0)

const describeEdits = (files: ReadonlyArray<EditedFile>): ReadonlyArray<string> => {
  const each = files.map(
    ({ path, replacements, version }) => `${path}: ${plural(replacements, "replacement")}, version ${version}`
  )
  return files.length === 1
    ? [`edited ${each[0]!}`]
    : [
        `edited ${plural(files.length, "file")}: ${plural(countReplacements(files), "replacement")}`,
        ...each.map((line) => `  ${line}`)
      ]
}

export const editFile = define({
  name: "edit_file",
  description:
    "Replace old_string by new_string in a file, or make several edits in one or more files, all or none. Line endings and encoding are kept.",
  parameters: Schema.Struct({
    path: Schema.optionalKey(path),
    old_string: Schema.optionalKey(oldString),
    new_string: Schema.optionalKey(newString),
    replace_all: Schema.optionalKey(replaceAll),
    if_match: Schema.optionalKey(ifMatch),
    edits: Schema.optionalKey(edits)
  }),
  value: Schema.Struct({
    path: Schema.String,
    replacements: Schema.Int,
    diff: Schema.String,
    version: Schema.String,
    files: Schema.Array(Schema.Struct({ path: Schema.String, replacements: Schema.Int, version: Schema.String }))
  }),
  does: "changes",
  idempotent: false,
  examples: [
    { path: "src/main.ts", old_string: "const port = 80", new_string: "const port = 8080" },
    {
      edits: [
        { path: "a.ts", old_string: "oldName", new_string: "newName", replace_all: true },
        { path: "b.ts", old_string: "import { oldName }", new_string: "import { newName }" }
      ]
    }
  ],
  touches: (params, call) =>
    Effect.map(planEdits(params, call), (files) => files.map(({ path }) => ({ access: "write" as const, path }))),
  handle: Effect.fnUntraced(function* (params, call) {
    const files = yield* editFiles(call, yield* planEdits(params, call))
    const [{ path, version }] = files as [EditedFile]
    const diff = yield* runInSlices(() => excerptDiff(files.map((file) => file.diff).join("")))
    return {
      message: withDiff(describeEdits(files), diff, call.settings),
      value: {
        path,
        replacements: countReplacements(files),
        diff: diffText(diff),
        version,
        files: files.map(({ path, replacements, version }) => ({ path, replacements, version }))
      }
    }
  })
})
