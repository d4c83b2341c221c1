import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { CreateMode, type Edit, FileDelete, FileEdit, FileList, FileRead, FileWrite } from "../FileSystemEntry.ts"
import { definitions, isSpellName, type Parameters } from "./definitions.ts"
import { SpellFault, type SpellInvocation, type SpellName } from "./entries.ts"
import type { Step } from "./ids.ts"

export type Request = FileRead | FileWrite | FileList | FileDelete | FileEdit

export interface SpellCall<Name extends SpellName = SpellName> {
  readonly spell: Name
  readonly parameters: Parameters<Name>
}

/** A union over the spells, so that each has its own type of parameters. */
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
    return spellFault(invocation, "UnknownSpell", `there is no spell ${JSON.stringify(spell)}; there are ${names}`)
  }
  const decoded = decoders[spell](parameters)
  return Result.isSuccess(decoded)
    ? ({ spell, parameters: decoded.success } as AnySpellCall)
    : spellFault(invocation, "InvalidParameters", `the parameters are not those of ${spell}: ${decoded.failure.message}`)
}

const encoder = new TextEncoder()
const decodeBase64 = Schema.decodeUnknownResult(Schema.Uint8ArrayFromBase64)

/** Returns the content's bytes; `undefined` if it is declared as base64 but is not. */
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
        ? spellFault(invocation, "InvalidParameters", "the content is said to be binary, and is not base64")
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
