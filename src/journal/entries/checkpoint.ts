/** A leaf's note in the journal, from which the next one starts. */
import * as Schema from "effect/Schema"

/** A whole number of at least 0. */
const whole = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/**
 * A leaf says up to where every request has an answer, so that the next leaf need not read the journal from its beginning. Only leaves with
 * `extended` append it, and one obeys it only if `code` proves that its own installation made it and the entry at `through` is the one
 * that was there; otherwise it reads the journal from the beginning.
 *
 * @since 0.1.0
 */
export class LeafCheckpoint extends Schema.TaggedClass<LeafCheckpoint>("fs-algebra/LeafCheckpoint")("LeafCheckpoint", {
  /** Every request up to this position has an answer. */
  through: whole,
  /** The SHA-256 of the entry at that position. */
  digest: Schema.String,
  /** The leaves at that position. */
  leaves: Schema.Array(
    Schema.Struct({
      daemon: Schema.String,
      instance: Schema.String,
      prefix: Schema.String,
      extended: Schema.Boolean,
      /** Milliseconds. */
      grace: whole,
      position: whole,
      /** It serves its paths. */
      running: Schema.Boolean,
      /** It has ended and was not replaced. */
      down: Schema.Boolean,
      /** It has not said that it has ended. */
      unfinished: Schema.Boolean,
      /** It did not say what it began, and has not ended well. */
      silent: Schema.Boolean
    })
  ),
  /** What only the installation of the leaf can make of all the rest. */
  code: Schema.String
}) {}
