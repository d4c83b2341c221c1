/** The parameters and results of each spell, with the field names of the agent tools. Paths are relative to the branch. */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { CreateMode, type Edit, FileDelete, FileEdit, FileList, FileRead, FileWrite } from "../FileSystemEntry.ts"

// Correlation ids of file requests, derived from the position of the spell's invocation. So a repeated request has the same
// id, and the id of an answer identifies its spell.

/**
 * The step of a spell. A spell has the single step `ask`. Without FileEdit, an edit has the steps `read` and `write` instead.
 */
export type Step = "ask" | "read" | "write"

export interface Derived {
  /** The position of the invocation in the journal of spells. */
  readonly position: number
  readonly step: Step
  readonly correlationId: string
}

interface Ids {
  readonly idOf: (derived: Derived) => string
  /** Returns the parts of an id. Returns `undefined` for an id that no spell has made. */
  readonly parse: (id: string) => Derived | undefined
}

const derivedPattern = /^([1-9]\d*)\/(ask|read|write)\/([^]*)$/

export const make = (name: string): Ids => ({
  idOf: ({ correlationId, position, step }) => `${name}/${position}/${step}/${correlationId}`,
  parse: (id) => {
    const match = id.startsWith(`${name}/`) ? derivedPattern.exec(id.slice(name.length + 1)) : null
    return match === null ? undefined : { position: Number(match[1]), step: match[2] as Step, correlationId: match[3]! }
  }
})

/**
 * The names of the spells.
 *
 * @since 0.1.0
 */
export const SpellName = Schema.Literals(["read_file", "write_file", "list_directory", "delete_file", "edit_file"])
/** @since 0.1.0 */
export type SpellName = typeof SpellName.Type

/**
 * A request to carry out a spell. The caller creates the id, and uses the id once.
 *
 * @since 0.1.0
 */
export class SpellInvocation extends Schema.TaggedClass<SpellInvocation>("fs-algebra/SpellInvocation")("SpellInvocation", {
  correlationId: Schema.String,
  /** The spell's name. For a name that is not a `SpellName`, the answer is the fault UnknownSpell. */
  spell: Schema.String,
  /** The parameters. For invalid parameters, the answer is the fault InvalidParameters. */
  parameters: Schema.Json
}) {}

/**
 * The result of a spell. The spell's definition declares its schema.
 *
 * @since 0.1.0
 */
export class SpellResult extends Schema.TaggedClass<SpellResult>("fs-algebra/SpellResult")("SpellResult", {
  correlationId: Schema.String,
  spell: SpellName,
  result: Schema.Json
}) {}

/**
 * The kinds of spell fault.
 *
 * The first eleven kinds are the kinds of FileFault. Conflict, Unsupported and Unavailable come from the leaf, and have the same
 * meaning as in `FsError`. The other kinds are:
 *
 * - `NotText`: an edit of a file that is not text
 * - `InvalidArgument`: an edit that cannot be applied, for example because its text does not occur or occurs more than once
 * - `LimitExceeded`: a content that is too large for a result or a write
 * - `UnknownSpell`, `InvalidParameters`: the spell was not attempted
 *
 * @since 0.1.0
 */
export const SpellFaultKind = Schema.Literals([
  "NotFound",
  "AlreadyExists",
  "AccessDenied",
  "InvalidPath",
  "DirectoryNotEmpty",
  "NotADirectory",
  "NotAFile",
  "DiskFull",
  "IoError",
  "PathTooLong",
  "Timeout",
  "NotText",
  "InvalidArgument",
  "LimitExceeded",
  "Conflict",
  "Unsupported",
  "Unavailable",
  "UnknownSpell",
  "InvalidParameters"
])
/** @since 0.1.0 */
export type SpellFaultKind = typeof SpellFaultKind.Type

/**
 * The failure of a spell.
 *
 * @since 0.1.0
 */
export class SpellFault extends Schema.TaggedClass<SpellFault>("fs-algebra/SpellFault")("SpellFault", {
  correlationId: Schema.String,
  spell: Schema.String,
  faultKind: SpellFaultKind,
  path: Schema.optionalKey(Schema.String),
  message: Schema.String
}) {}

/** @since 0.1.0 */
export const SpellEntry = Schema.Union([SpellInvocation, SpellResult, SpellFault])
/**
 * Any entry in the journal of spells.
 *
 * @since 0.1.0
 */
export type SpellEntry = SpellInvocation | SpellResult | SpellFault

const path = Schema.String
const wellFormed = Schema.String.check(
  Schema.makeFilter((text: string) => text.isWellFormed() || "must be text without lone surrogates")
)
const nonNegativeInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const Encoding = Schema.Literals(["utf-8", "binary"])
export type Encoding = typeof Encoding.Type

const Mode = Schema.Literals(["create", "overwrite", "replace", "append", "append_existing"])

const editFields = { old_string: wellFormed, new_string: wellFormed, replace_all: Schema.optionalKey(Schema.Boolean) }

const Change = Schema.Struct(editFields)
type Change = typeof Change.Type

const readFile = {
  description: "Read a whole file. Returns text as text, and other content as base64.",
  parameters: Schema.Struct({ path }),
  result: Schema.Struct({ path, encoding: Encoding, content: Schema.String, size_bytes: nonNegativeInt })
}

const writeFile = {
  description: "Write a whole file, or append to a file with mode append. Without a mode, the file must not exist.",
  parameters: Schema.Struct({
    path,
    /** The text, or base64 for the encoding "binary". The base64 may contain line breaks. */
    content: wellFormed,
    /** @default "create" */
    mode: Schema.optionalKey(Mode),
    /** @default "utf-8" */
    encoding: Schema.optionalKey(Encoding)
  }),
  result: Schema.Struct({ path, bytes_written: nonNegativeInt, mode: Mode })
}

const listDirectory = {
  description: "List a directory. A directory that does not exist is listed as empty.",
  parameters: Schema.Struct({
    /** @default the root */
    path: Schema.optionalKey(path),
    /** A glob relative to the path. @default everything */
    pattern: Schema.optionalKey(Schema.String),
    /** True to list all entries below the directory, with paths relative to `path`. @default false */
    recursive: Schema.optionalKey(Schema.Boolean)
  }),
  /** `files` contains all entries that are not directories. */
  result: Schema.Struct({ path, directories: Schema.Array(Schema.String), files: Schema.Array(Schema.String) })
}

const deleteFile = {
  description: "Delete a file or an empty directory. With recursive, delete a directory and its contents.",
  parameters: Schema.Struct({
    path,
    /** @default false */
    recursive: Schema.optionalKey(Schema.Boolean),
    /** True if deleting a missing entry succeeds. @default false */
    allow_missing: Schema.optionalKey(Schema.Boolean)
  }),
  /** `deleted` is the number of deleted entries that are not directories. */
  result: Schema.Struct({ path, deleted: nonNegativeInt })
}

const editFile = {
  description: "Replace text in a file: one match with old_string and new_string, or several with edits, all or none.",
  parameters: Schema.Struct({
    path,
    old_string: Schema.optionalKey(wellFormed),
    new_string: Schema.optionalKey(wellFormed),
    /** True to replace every occurrence. If not, the text must occur exactly once. @default false */
    replace_all: Schema.optionalKey(Schema.Boolean),
    /** Several edits, instead of `old_string`, `new_string` and `replace_all`. Each edit matches the original text. */
    edits: Schema.optionalKey(Schema.Array(Change))
  }).check(
    Schema.makeFilter(({ edits, new_string, old_string, replace_all }) => {
      if (edits === undefined) {
        return (
          (old_string !== undefined && new_string !== undefined) ||
          "the parameters must have old_string and new_string, or edits"
        )
      }
      if (old_string !== undefined || new_string !== undefined || replace_all !== undefined) {
        return "the parameters must have either edits, or old_string and new_string"
      }
      return edits.length > 0 || "the parameter `edits` must have at least one edit"
    })
  ),
  result: Schema.Struct({ path, replacements: nonNegativeInt, bytes_written: nonNegativeInt, diff: Schema.String })
}

/**
 * The spells by name, each with its description, parameters and result. The values have the same form in memory and in JSON.
 *
 * @since 0.1.0
 */
export const definitions = {
  read_file: readFile,
  write_file: writeFile,
  list_directory: listDirectory,
  delete_file: deleteFile,
  edit_file: editFile
} as const satisfies Readonly<Record<SpellName, unknown>>

/**
 * The parameters of a spell.
 *
 * @since 0.1.0
 */
export type Parameters<Name extends SpellName> = (typeof definitions)[Name]["parameters"]["Type"]

/**
 * The result of a spell.
 *
 * @since 0.1.0
 */
export type DefinitionResult<Name extends SpellName> = (typeof definitions)[Name]["result"]["Type"]

const isSpellName = (name: string): name is SpellName => Object.hasOwn(definitions, name)

type Request = FileRead | FileWrite | FileList | FileDelete | FileEdit

interface SpellCall<Name extends SpellName = SpellName> {
  readonly spell: Name
  readonly parameters: Parameters<Name>
}

/** The union of the calls of all spells, each with its own type of parameters. */
export type AnySpellCall = { readonly [Name in SpellName]: SpellCall<Name> }[SpellName]

const spellFault = (
  { correlationId, spell }: SpellInvocation,
  faultKind: SpellFault["faultKind"],
  message: string
): SpellFault => new SpellFault({ correlationId, spell, faultKind, message })

const names = Object.keys(definitions).join(", ")

const strictParsing = { errors: "all", onExcessProperty: "error" } as const

const decoders: Readonly<Record<SpellName, (parameters: unknown) => Result.Result<unknown, Schema.SchemaError>>> = {
  read_file: Schema.decodeUnknownResult(definitions.read_file.parameters, strictParsing),
  write_file: Schema.decodeUnknownResult(definitions.write_file.parameters, strictParsing),
  list_directory: Schema.decodeUnknownResult(definitions.list_directory.parameters, strictParsing),
  delete_file: Schema.decodeUnknownResult(definitions.delete_file.parameters, strictParsing),
  edit_file: Schema.decodeUnknownResult(definitions.edit_file.parameters, strictParsing)
}

export const parseInvocation = (invocation: SpellInvocation): AnySpellCall | SpellFault => {
  const { parameters, spell } = invocation
  if (!isSpellName(spell)) {
    return spellFault(invocation, "UnknownSpell", `there is no spell ${JSON.stringify(spell)}; the spells are ${names}`)
  }
  const decoded = decoders[spell](parameters)
  return Result.isSuccess(decoded)
    ? ({ spell, parameters: decoded.success } as AnySpellCall)
    : spellFault(invocation, "InvalidParameters", `the parameters of ${spell} are invalid: ${decoded.failure.message}`)
}

const encoder = new TextEncoder()
const decodeBase64 = Schema.decodeUnknownResult(Schema.Uint8ArrayFromBase64)

/** Returns the bytes of the content. Returns `undefined` for the encoding "binary" if the content is not base64. */
const bytesOf = ({ content, encoding = "utf-8" }: Parameters<"write_file">): Uint8Array | undefined => {
  if (encoding === "utf-8") return encoder.encode(content)
  const decoded = decodeBase64(content.replace(/[ \t\r\n]/g, ""))
  return Result.isSuccess(decoded) ? decoded.success : undefined
}

const modes = {
  create: CreateMode.CreateNew,
  overwrite: CreateMode.CreateOrReplace,
  replace: CreateMode.ReplaceExisting,
  append: CreateMode.CreateOrAppend,
  append_existing: CreateMode.AppendExisting
} as const

export const editsOf = ({ edits, new_string, old_string, replace_all = false }: Parameters<"edit_file">) =>
  (edits ?? [{ old_string: old_string!, new_string: new_string!, replace_all }]).map((edit): typeof Edit.Type => ({
    oldText: edit.old_string,
    newText: edit.new_string,
    match: edit.replace_all === true ? "all" : "unique"
  }))

export const requestFor = (
  invocation: SpellInvocation,
  id: (step: Step) => string,
  extended: boolean
): Request | SpellFault => {
  const spellCall = parseInvocation(invocation)
  if ("_tag" in spellCall) return spellCall
  switch (spellCall.spell) {
    case "read_file":
      return new FileRead({ correlationId: id("ask"), path: spellCall.parameters.path })
    case "write_file": {
      const { mode = "create", path } = spellCall.parameters
      const content = bytesOf(spellCall.parameters)
      return content === undefined
        ? spellFault(invocation, "InvalidParameters", "the encoding is binary, but the content is not base64")
        : new FileWrite({ correlationId: id("ask"), path, content, createMode: modes[mode] })
    }
    case "list_directory": {
      const { path = "/", ...options } = spellCall.parameters
      return new FileList({ correlationId: id("ask"), path, ...options })
    }
    case "delete_file": {
      const { path, recursive = false } = spellCall.parameters
      return new FileDelete({ correlationId: id("ask"), path, recursive })
    }
    case "edit_file": {
      const { path } = spellCall.parameters
      return extended
        ? new FileEdit({ correlationId: id("ask"), path, edits: editsOf(spellCall.parameters) })
        : new FileRead({ correlationId: id("read"), path })
    }
  }
}
