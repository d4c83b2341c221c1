/**
 * Rules for tools, as layers over the layer of a toolkit. A policy sees the decoded call before it runs, and may give the tools
 * a filesystem that refuses operations.
 *
 * Layers of policies add to each other, whether they are provided one after another or merged:
 * `FilesystemToolkit.layer.pipe(Layer.provide([Policy.readBeforeWrite, Policy.access({ deny: { read: ".env" } })]))`.
 *
 * @since 0.1.0
 */
export {
  /** @since 0.1.0 */
  access
} from "./policy/access.ts"
export {
  /** @since 0.1.0 */
  checkpoint
} from "./policy/checkpoint.ts"
export {
  /** @since 0.1.0 */
  inForce,
  type Invocation,
  /** @since 0.1.0 */
  layer,
  /** @since 0.1.0 */
  offered,
  /** @since 0.1.0 */
  Policies,
  type Policy,
  type ToolKind
} from "./policy/core.ts"
export {
  /** @since 0.1.0 */
  readBeforeWrite
} from "./policy/readBeforeWrite.ts"
export type {
  /** @since 0.1.0 */
  AccessOptions,
  /** @since 0.1.0 */
  Globs
} from "./policy/rules.ts"
export {
  /** @since 0.1.0 */
  approval,
  /** @since 0.1.0 */
  deadline,
  /** @since 0.1.0 */
  mountPoint,
  /** @since 0.1.0 */
  order,
  /** @since 0.1.0 */
  readOnly,
  /** @since 0.1.0 */
  settings
} from "./policy/simple.ts"
