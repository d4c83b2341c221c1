import * as Effect from "effect/Effect"
import type { Edit } from "../../engine/edit.ts"
import { InvalidArgument } from "../../model/FsError.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { type Call, type Refused, refused } from "../definition.ts"
import { withoutCoreAdvice } from "./naming.ts"

export interface Replacement {
  readonly path?: string | undefined
  readonly old_string: string
  readonly new_string: string
  readonly replace_all?: boolean | undefined
  readonly if_match?: string | undefined
}

export interface Params extends Partial<Replacement> {
  readonly edits?: ReadonlyArray<Replacement> | undefined
}

export interface FileEdits {
  readonly path: FsPath
  readonly edits: ReadonlyArray<Edit>
  /** The model's names for the edits, such as `edits[3].`; empty for a single edit. */
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
  "Put every replacement into edits, and leave out old_string and new_string."
)
const ambiguousVersion = refused(
  "if_match beside edits of several files does not say which file has that version.",
  "Put if_match into the edits of that file."
)

/** The largest number of edits in a call. Each costs some microseconds during which no other call can run. */
const maxEdits = 5000

const tooManyEdits = (count: number): Refused =>
  refused(
    `edit_file was given ${count.toLocaleString("en-US")} edits, and at most ${maxEdits.toLocaleString("en-US")} are made at once.`,
    "Nothing was changed; send them in several calls, or write the file whole with write_file."
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

/** Returns the line ending of a text, or `undefined` if the text has no line ending or mixed ones. */
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

/** Groups the edits by file, in the order in which the files are first named. */
export const planEdits = Effect.fnUntraced(function* (params: Params, call: Call) {
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
          "another edit of the same file gives a different version; a file has only one"
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

const coreReferences = /^(?:edits\[\d+\] and edits\[\d+\] overlap|it does not occur in the file as it is; edits\[\d+\])/

/** Rewrites an error in the edits of one file so that it names the edits as the model numbered them. */
export const withModelNumbers = (error: InvalidArgument, { names }: FileEdits, tool: string): InvalidArgument => {
  const modelName = (index: string): string => (names[Number(index)] ?? "").replace(/\.$/, "")
  // Rewrite only the core's own references; elsewhere `edits[n]` may be text of the file.
  const detail = error.detail.replace(coreReferences, (text) =>
    text.replace(/edits\[(\d+)\]/g, (_, index: string) => modelName(index))
  )
  const [, index = "0", field] = /^(?:edits\[(\d+)\]\.)?(oldText|newText)$/.exec(error.argument) ?? []
  const known: Readonly<Record<string, string>> = { oldText: "old_string", newText: "new_string" }
  const argument =
    field !== undefined ? `${names[Number(index)]}${known[field]}` : error.argument === "changes" ? "edits" : error.argument
  return new InvalidArgument({ operation: tool, path: error.path, argument, detail: withoutCoreAdvice(detail) })
}
