/**
 * Copies directories and files of the machine into any filesystem. Mounts are plain configuration. Their sources must
 * lie in allowed roots, and either all mounts are copied or none.
 *
 * - Files are copied with their permission bits, if both sides have these.
 * - Directories are created only where files need them.
 * - Existing directories are merged, existing files are overwritten, and the later of two mounts wins.
 *
 * A file at the place of a directory fails with NotAFile, and a path below a file fails with NotADirectory, as for any
 * write. This also holds for files of an earlier mount. Two files of one mount with the same target, due to case or
 * links, fail with AlreadyExists. Names and paths have the limits of a write. `maxBytes` limits the total size of the
 * files of a mount.
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
 * Returns what the mounts would copy, in their order. Reads names and sizes, and opens no file. Fails with MountError as
 * `hydrate` does, except for errors that occur only when files are read.
 *
 * @category mounting
 * @since 0.1.0
 */
export const plan = (mounts: ReadonlyArray<HostMount>, options: Options): Effect.Effect<ReadonlyArray<Preview>, MountError> =>
  Effect.scoped(Effect.map(Plan.plan(mounts, options), (planned) => planned.map(Plan.previewOf)))

/**
 * Copies all mounts into the filesystem, and returns the copied entries of each mount.
 *
 * After a failure or an interruption, the filesystem is unchanged. After a kill, the next process that opens the
 * filesystem completes the copy or discards it.
 *
 * Each file is copied as it was at one moment. The call fails if a file is unreadable, or is written, removed or
 * replaced during the copy. FIFOs, sockets and devices are never opened. Each file is read twice, in constant memory.
 * Requires write permission.
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
 * Returns 16 hexadecimal digits of the SHA-256 of the mounts in canonical form.
 *
 * The result does not depend on the order of keys, or on whether defaults are written out. The default of `mountPath` is
 * the exception, because it depends on the source.
 *
 * @since 0.1.0
 */
export const fingerprint: (mounts: ReadonlyArray<HostMount>) => string = Plan.fingerprint

/**
 * Renders the mounts for a prompt: a Markdown list with up to 10 entries of each mount, and the number of further
 * entries.
 *
 * Shows only the last name of an absolute source. Returns `""` for no mounts.
 *
 * @since 0.1.0
 */
export const render: (previews: ReadonlyArray<Preview>) => string = Plan.render
