/** The parameters and results of each spell. Fields are named as in the agent tools of the same names. Paths are relative to the branch. */
import * as Schema from "effect/Schema"
import type { SpellName } from "./entries.ts"

const path = Schema.String
const wellFormed = Schema.String.check(
  Schema.makeFilter((text: string) => text.isWellFormed() || "must be text without lone surrogates")
)
const nonNegativeInt = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

export const Encoding = Schema.Literals(["utf-8", "binary"])
export type Encoding = typeof Encoding.Type

export const Mode = Schema.Literals(["create", "overwrite", "replace", "append", "append_existing"])

const editFields = { old_string: wellFormed, new_string: wellFormed, replace_all: Schema.optionalKey(Schema.Boolean) }

const Change = Schema.Struct(editFields)
export type Change = typeof Change.Type

const readFile = {
  description: "Read a whole file. Text comes as text, anything else as base64.",
  parameters: Schema.Struct({ path }),
  result: Schema.Struct({ path, encoding: Encoding, content: Schema.String, size_bytes: nonNegativeInt })
}

const writeFile = {
  description: "Write a whole file, or with mode append add to its end. Without a mode there must be no such file yet.",
  parameters: Schema.Struct({
    path,
    /** The text; for the encoding "binary", base64, which may contain line breaks. */
    content: wellFormed,
    /** @default "create" */
    mode: Schema.optionalKey(Mode),
    /** @default "utf-8" */
    encoding: Schema.optionalKey(Encoding)
  }),
  result: Schema.Struct({ path, bytes_written: nonNegativeInt, mode: Mode })
}

const listDirectory = {
  description: "List a directory. One that is not there is empty.",
  parameters: Schema.Struct({
    /** @default the root */
    path: Schema.optionalKey(path),
    /** A glob relative to the path. @default everything */
    pattern: Schema.optionalKey(Schema.String),
    /** True to list everything below the directory, with paths relative to `path`. @default false */
    recursive: Schema.optionalKey(Schema.Boolean)
  }),
  /** All entries other than directories are in `files`. */
  result: Schema.Struct({ path, directories: Schema.Array(Schema.String), files: Schema.Array(Schema.String) })
}

const deleteFile = {
  description: "Delete a file or an empty directory, or with recursive a directory with everything in it.",
  parameters: Schema.Struct({
    path,
    /** @default false */
    recursive: Schema.optionalKey(Schema.Boolean),
    /** True if a missing entry is a success. @default false */
    allow_missing: Schema.optionalKey(Schema.Boolean)
  }),
  /** `deleted` counts files, links and others, without directories. */
  result: Schema.Struct({ path, deleted: nonNegativeInt })
}

const editFile = {
  description: "Replace text in a file: one place by old_string and new_string, or several by edits, all or none.",
  parameters: Schema.Struct({
    path,
    old_string: Schema.optionalKey(wellFormed),
    new_string: Schema.optionalKey(wellFormed),
    /** True to replace every occurrence; otherwise there must be exactly one. @default false */
    replace_all: Schema.optionalKey(Schema.Boolean),
    /** Several edits instead of the three fields above. Each is searched for in the original text. */
    edits: Schema.optionalKey(Schema.Array(Change))
  }).check(
    Schema.makeFilter(({ edits, new_string, old_string, replace_all }) => {
      if (edits === undefined) {
        return (old_string !== undefined && new_string !== undefined) || "must have old_string and new_string, or edits"
      }
      if (old_string !== undefined || new_string !== undefined || replace_all !== undefined) {
        return "must have either edits or old_string and new_string"
      }
      return edits.length > 0 || "must have at least one edit"
    })
  ),
  result: Schema.Struct({ path, replacements: nonNegativeInt, bytes_written: nonNegativeInt, diff: Schema.String })
}

/**
 * The spells by name, each with its description, parameters and result. Their values are the same in memory and in JSON.
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
export type Result<Name extends SpellName> = (typeof definitions)[Name]["result"]["Type"]

export const isSpellName = (name: string): name is SpellName => Object.hasOwn(definitions, name)
