/**
 * Directories and files of the machine, copied into any filesystem: by configuration alone, from allowed places alone, all or nothing.
 *
 * @since 0.1.0
 */
import type * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Algebra } from "../filesystem/Filesystem.ts"
import type { FsError } from "../model/FsError.ts"

/**
 * `outside`: in none of the allowed roots. `missing`: nothing is there, or no longer. `invalid`: a path, pattern or number that cannot
 * be one. `budget`: more than `maxBytes`. `unreadable`: a file that may not be read, or is none. `changed`: it became another while
 * it was copied.
 *
 * @since 0.1.0
 */
export class MountError extends Schema.TaggedError<MountError>("fs-algebra/MountError")("MountError", {
  /** As it was given. */
  hostPath: Schema.String,
  reason: Schema.Literals(["outside", "missing", "invalid", "budget", "unreadable", "changed"]),
  /** Below the source, where one file is at fault. */
  path: Schema.optionalKey(Schema.String),
  detail: Schema.String
}) {
  override get message(): string {
    return `${JSON.stringify(this.hostPath)} cannot be mounted: ${this.detail}`
  }
}

/** @since 0.1.0 */
export interface HostMount {
  /** Absolute, or relative to an allowed root. */
  readonly hostPath: string
  /** Where it goes: a path, or its segments. @default `hostPath` where that is relative, else its last name */
  readonly mountPath?: string | ReadonlyArray<string> | undefined
  /** Globs, relative to the source. Blank ones are ignored. @default everything */
  readonly include?: ReadonlyArray<string> | undefined
  /** Beats `include`. @default nothing */
  readonly exclude?: ReadonlyArray<string> | undefined
  /** Of all files together. 0 admits only empty ones. @default no bound */
  readonly maxBytes?: number | undefined
  /** Copy what links lead to, inside the allowed root. @default false: they are left out */
  readonly followSymlinks?: boolean | undefined
}

/** @since 0.1.0 */
export interface Options {
  /** Absolute directories that sources must lie in. With none, every mount is refused. */
  readonly allowedRoots: ReadonlyArray<string>
}

/** @since 0.1.0 */
export interface Preview {
  /** As it was given. */
  readonly source: string
  /** In the filesystem. */
  readonly target: string
  /** Paths in the filesystem, in path order, at most 20. */
  readonly entries: ReadonlyArray<string>
  readonly files: number
  readonly bytes: number
}

declare const hydrateSignature: (
  fs: Algebra,
  mounts: ReadonlyArray<HostMount>,
  options: Options
) => Effect.Effect<ReadonlyArray<Preview>, MountError | FsError>
export type Hydrate = typeof hydrateSignature
