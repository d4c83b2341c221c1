/**
 * Rules for tools, as layers that are provided to the layer of a toolkit. A policy sees the decoded call before it runs, and may
 * give the tools a filesystem that refuses operations.
 *
 * Policy layers accumulate, whether they are provided one after another or merged:
 * `FilesystemToolkit.layer.pipe(Layer.provide([Policy.readBeforeWrite, Policy.access({ deny: { read: ".env" } })]))`.
 *
 * @since 0.1.0
 */
export { access } from "./policy/access.ts"
export { checkpoint } from "./policy/checkpoint.ts"
export { inForce, type Invocation, layer, offered, Policies, type Policy, type ToolKind } from "./policy/core.ts"
export { readBeforeWrite } from "./policy/readBeforeWrite.ts"
export type { AccessOptions, Globs } from "./policy/access.ts"
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
