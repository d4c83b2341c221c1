/**
 * The conformance kit, published as `fs-algebra/testing`. Laws are values, and `Law.verdict` runs a law without a test runner. Only
 * the functions of `Suite` need `@effect/vitest`.
 *
 * @since 0.1.0
 */

/** @since 0.1.0 */
export * as Agreement from "./Agreement.ts"
/** @since 0.1.0 */
export * as Arbitraries from "./Arbitraries.ts"
/** @since 0.1.0 */
export * as Faults from "./Faults.ts"
/** @since 0.1.0 */
export * as Files from "./Files.ts"
/** @since 0.1.0 */
export * as Law from "./Law.ts"
/** @since 0.1.0 */
export * as Laws from "./Laws.ts"
/** @since 0.1.0 */
export * as MockFilesystem from "./MockFilesystem.ts"
/** @since 0.1.0 */
export * as Model from "./Model.ts"
/** @since 0.1.0 */
export * as Policies from "./Policies.ts"
/** @since 0.1.0 */
export * as StoreFaults from "./StoreFaults.ts"
/** @since 0.1.0 */
export * as StoreLaws from "./StoreLaws.ts"
/** @since 0.1.0 */
export * as Suite from "./Suite.ts"

export {
  /** @since 0.1.0 */
  agreement,
  /** @since 0.1.0 */
  agrees
} from "./Agreement.ts"
export {
  /** @since 0.1.0 */
  adversarial,
  /** @since 0.1.0 */
  renameless,
  /** @since 0.1.0 */
  faulty
} from "./Faults.ts"
export {
  /** @since 0.1.0 */
  laws
} from "./Laws.ts"
export {
  /** @since 0.1.0 */
  faultyStores
} from "./StoreFaults.ts"
export {
  /** @since 0.1.0 */
  storeLaws
} from "./StoreLaws.ts"
export {
  /** @since 0.1.0 */
  policySuite,
  /** @since 0.1.0 */
  storeSuite,
  /** @since 0.1.0 */
  suite
} from "./Suite.ts"
