/**
 * Copies directories and files from the machine into any filesystem. A mount is plain data. The sources must be in allowed
 * roots. A call copies all mounts or none.
 *
 * - Files are copied with their permission bits, if the machine and the filesystem have permission bits.
 * - Directories are created only where files need them.
 * - Existing directories are merged, and existing files are overwritten. If two mounts have the same target, the later
 *   mount wins.
 *
 * A call fails with NotAFile if the target of a file is a directory, and with NotADirectory if the target is below a file.
 * Files of an earlier mount count as existing files. If two files of one mount have the same target, because of letter case or
 * links, the call fails with AlreadyExists. Names and paths have the same limits as in a write. `maxBytes` limits the total
 * size of a mount's files.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FsError } from "../model/FsError.ts"
import * as Plan from "./mount/plan.ts"
import { hydrate as hydrateAll } from "./mount/hydrate.ts"
import type { HostMount, MountError, Options, Preview } from "./mount/model.ts"

export { type HostMount, type LeftOut, MountError, type Options, type Preview } from "./mount/model.ts"

/**
 * Returns the entries that the mounts would copy, in the order of the mounts. Reads names and sizes, and opens no file. Fails
 * with MountError as `hydrate` does, except for errors that occur only when files are read.
 *
 * @category mounting
 * @since 0.1.0
 */
export const plan = (mounts: ReadonlyArray<HostMount>, options: Options): Effect.Effect<ReadonlyArray<Preview>, MountError> =>
  Effect.scoped(Effect.map(Plan.plan(mounts, options), (planned) => planned.map(Plan.previewOf)))

/**
 * Copies all mounts into the filesystem, and returns the copied entries of each mount.
 *
 * After a failure or an interruption, the filesystem is unchanged. If the process is killed during a copy to a disk of the host,
 * the next process that opens the filesystem completes or discards the copy.
 *
 * Each file is copied as it was at one moment. The call fails if a file is unreadable, or is written, removed or replaced
 * during the copy. FIFOs, sockets and devices are never opened. Each file is read twice, with constant memory use. Requires
 * write permission.
 *
 * @example
 * ```ts
 * const mounts = [{ hostPath: "docs", include: ["*.md"], mountPath: "reference" }]
 * const [docs] = yield* HostMount.hydrate(fs, mounts, { allowedRoots: ["/srv/project"] })
 * yield* Effect.log(docs?.entries)
 * ```
 * @category mounting
 * @since 0.1.0
 */
export const hydrate: (
  fs: Algebra,
  mounts: ReadonlyArray<HostMount>,
  options: Options
) => Effect.Effect<ReadonlyArray<Preview>, MountError | FsError> = hydrateAll

/**
 * The type of a function that copies mounts into a filesystem: `hydrate` or a substitute.
 *
 * @since 0.1.0
 */
export type Hydrate = typeof hydrate

/**
 * Returns a fingerprint of the mounts: 16 hexadecimal digits of the SHA-256 of their canonical form.
 *
 * The result does not depend on the order of keys. An omitted option and its default give the same result. The default of
 * `mountPath` is an exception, because it depends on the source.
 *
 * @since 0.1.0
 */
export const fingerprint: (mounts: ReadonlyArray<HostMount>) => string = Plan.fingerprint

/**
 * Renders the mounts for a prompt as a Markdown list. Each mount shows up to 10 entries and the number of further entries.
 *
 * Only the last name of an absolute source is shown. Without mounts the result is `""`.
 *
 * @since 0.1.0
 */
export const render: (previews: ReadonlyArray<Preview>) => string = Plan.render
