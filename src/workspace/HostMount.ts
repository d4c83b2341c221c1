/**
 * Directories and files of the machine, copied into any filesystem: by configuration alone, from allowed places alone, all or nothing.
 *
 * What is copied are files, with their permission bits where both sides have them, also onto a file that was there; directories only as
 * far as files need them. Existing directories merge, existing files are overwritten, and of two mounts the later one wins. A file where
 * a directory is, be it of an earlier mount, is NotAFile, and a path below a file NotADirectory, as for any write; two files of one mount
 * that the filesystem takes for one, because of case or links, are AlreadyExists. Limits on names and paths are those of a write; how
 * large a file may be is for `maxBytes` to say, as with a copy.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FsError } from "../model/FsError.ts"
import * as Fingerprint from "./mount/fingerprint.ts"
import { hydrate as hydrateAll } from "./mount/hydrate.ts"
import type { HostMount, MountError, Options, Preview } from "./mount/model.ts"
import * as Plan from "./mount/plan.ts"
import * as Render from "./mount/render.ts"

export {
  /** @since 0.1.0 */
  type HostMount,
  /** @since 0.1.0 */
  type LeftOut,
  /** @since 0.1.0 */
  MountError,
  /** @since 0.1.0 */
  type Options,
  /** @since 0.1.0 */
  type Preview
} from "./mount/model.ts"

/**
 * What the mounts would copy, in their order. Looks at names and sizes, and opens no file. Fails with MountError as `hydrate` does, but
 * for what is only met when files are read.
 *
 * @since 0.1.0
 */
export const plan = (mounts: ReadonlyArray<HostMount>, options: Options): Effect.Effect<ReadonlyArray<Preview>, MountError> =>
  Effect.scoped(Effect.map(Plan.plan(mounts, options), (planned) => planned.map(Plan.previewOf)))

/**
 * Copies all mounts into the filesystem, which is what it was when that fails, is interrupted, or the process is killed and the next one
 * has begun. Each file is as it was at one moment; one that is written to, removed or exchanged meanwhile fails the call, and so does
 * one that may not be read. Constant memory beside what the filesystem keeps: files pass through a piece at a time, each read twice.
 * FIFOs, sockets and devices are never opened. Needs permission to write; answers what was copied, mount by mount.
 *
 * @since 0.1.0
 */
export const hydrate: (
  fs: Algebra,
  mounts: ReadonlyArray<HostMount>,
  options: Options
) => Effect.Effect<ReadonlyArray<Preview>, MountError | FsError> = hydrateAll

/**
 * What copies mounts into a filesystem: `hydrate`, or what stands in for it.
 *
 * @since 0.1.0
 */
export type Hydrate = typeof hydrate

/**
 * 16 hexadecimal digits, of the SHA-256 of the mounts in canonical form: the same for the same mounts, in whatever order their keys are
 * written and whether defaults are written out. Only where a mount goes that does not say so is not filled in, since that depends on what
 * is there.
 *
 * @since 0.1.0
 */
export const fingerprint: (mounts: ReadonlyArray<HostMount>) => string = Fingerprint.fingerprint

/**
 * For a prompt: a Markdown list with 10 of each mount's entries, and how many there are beside them; of an absolute source only its last
 * name. `""` for no mounts.
 *
 * @since 0.1.0
 */
export const render: (previews: ReadonlyArray<Preview>) => string = Render.render
