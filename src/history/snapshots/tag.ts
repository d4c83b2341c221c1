/** The service of snapshots without its implementation, which is large. Tools and policies need only the service. */
import * as Context from "effect/Context"
import type { Operations } from "./operations.ts"

/**
 * The service that takes and restores snapshots of a filesystem.
 *
 * @category services
 * @since 0.1.0
 */
export class Snapshots extends Context.Service<Snapshots, Operations>()("fs-algebra/Snapshots") {}
