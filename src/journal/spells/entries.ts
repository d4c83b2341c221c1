import * as Schema from "effect/Schema"

/**
 * The names of the spells.
 *
 * @since 0.1.0
 */
export const SpellName = Schema.Literals(["read_file", "write_file", "list_directory", "delete_file", "edit_file"])
/** @since 0.1.0 */
export type SpellName = typeof SpellName.Type

/**
 * A request to carry out a spell. The caller creates the id, and uses it once.
 *
 * @since 0.1.0
 */
export class SpellInvocation extends Schema.TaggedClass<SpellInvocation>("fs-algebra/SpellInvocation")("SpellInvocation", {
  correlationId: Schema.String,
  /** The spell's name. A name that is not a `SpellName` is answered with UnknownSpell. */
  spell: Schema.String,
  /** The parameters. Invalid ones are answered with InvalidParameters. */
  parameters: Schema.Json
}) {}

/**
 * The result of a spell, in the form that the spell's definition gives.
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
 * The first eleven are those of FileFault. NotText: an edit of a file that is not text. InvalidArgument: an edit whose text does not occur,
 * or occurs more than once. LimitExceeded: a content is larger than a result or a write may be. Conflict, Unsupported and Unavailable come
 * from an extended leaf, and mean the same as in `FsError`. After UnknownSpell and InvalidParameters nothing was attempted.
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
