/**
 * The interface that an adapter implements, the tested version, and its features that the adapter supports or does not support.
 *
 * The table of the adapters guide is generated from these values.
 */
export interface AdapterSupport {
  /** The name of the adapter: `fs-algebra/adapters/NAME`. */
  readonly name: string
  /** The foreign package or module whose interface the adapter implements. */
  readonly package: string
  /** The version of the package with which the tests run. */
  readonly version: string
  /** The parts of the foreign interface that the adapter offers. */
  readonly maps: ReadonlyArray<string>
  /** The parts that the adapter lacks, or that behave differently. */
  readonly missing: ReadonlyArray<string>
}
