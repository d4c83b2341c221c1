/**
 * Tools of one's own, beside those of the kits: what is said of one here is what policies, toolkits, prompts and servers go by.
 *
 * @since 0.1.0
 */
export {
  /** @since 0.1.0 */
  type Access,
  /** @since 0.1.0 */
  type AnyDefinition,
  /** @since 0.1.0 */
  type Call,
  /** @since 0.1.0 */
  type Definition,
  /** @since 0.1.0 */
  define as make,
  /** @since 0.1.0 */
  refused,
  /** @since 0.1.0 */
  type Touch
} from "./definition.ts"
