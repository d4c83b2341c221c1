/** What is asked of a spell, and what it answers, as entries of a journal of their own. */
import * as Schema from "effect/Schema"

/**
 * The spells there are.
 *
 * @since 0.1.0
 */
export const SpellName = Schema.Literals(["read_file", "write_file", "list_directory", "delete_file", "edit_file"])
/** @since 0.1.0 */
export type SpellName = typeof SpellName.Type

/**
 * Somebody asks for a spell. Whoever asks makes the id, and uses it once.
 *
 * @since 0.1.0
 */
export class SpellInvocation extends Schema.TaggedClass<SpellInvocation>("fs-algebra/SpellInvocation")("SpellInvocation", {
  correlationId: Schema.String,
  /** Anything; what is no `SpellName` is answered with UnknownSpell. */
  spell: Schema.String,
  /** Anything; what is not as the spell has it is answered with InvalidParameters. */
  parameters: Schema.Json
}) {}

/**
 * The spell has been carried out. `result` is as `parameters` and `result` of the spell's definition say.
 *
 * @since 0.1.0
 */
export class SpellResult extends Schema.TaggedClass<SpellResult>("fs-algebra/SpellResult")("SpellResult", {
  correlationId: Schema.String,
  spell: SpellName,
  result: Schema.Json
}) {}

/**
 * Why a spell was not carried out: what went wrong with the file, or with what was asked.
 *
 * The first eleven are those of FileFault. NotText: an edit of what is no text. InvalidArgument: an edit whose text is not there, or not
 * once. LimitExceeded: more than a result may hold, or than a write may. Conflict, Unsupported and Unavailable: as of `FsError`, from
 * a leaf that is extended. UnknownSpell and InvalidParameters: nothing was tried.
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
 * The spell has failed.
 *
 * @since 0.1.0
 */
export class SpellFault extends Schema.TaggedClass<SpellFault>("fs-algebra/SpellFault")("SpellFault", {
  correlationId: Schema.String,
  /** As it was asked for. */
  spell: Schema.String,
  faultKind: SpellFaultKind,
  /** Of the file, where it is about one. */
  path: Schema.optionalKey(Schema.String),
  message: Schema.String
}) {}

/** @since 0.1.0 */
export const SpellEntry = Schema.Union([SpellInvocation, SpellResult, SpellFault])
/**
 * What the journal of spells holds.
 *
 * @since 0.1.0
 */
export type SpellEntry = SpellInvocation | SpellResult | SpellFault
