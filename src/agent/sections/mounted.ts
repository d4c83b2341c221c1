import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { FsError } from "../../model/FsError.ts"
import type { HostMount, MountError, Preview } from "../../workspace/HostMount.ts"

export interface MountOptions {
  /** The files to copy in, once and in order; later mounts overwrite earlier ones. @default none */
  readonly mounts?: ReadonlyArray<HostMount> | undefined
  /** The absolute directories that must contain the sources of all mounts. @default none, which refuses every mount */
  readonly allowedRoots?: ReadonlyArray<string> | undefined
}

export type Previews = ReadonlyArray<Preview>

const loadHostMount = Effect.promise(() => import("../../workspace/HostMount.ts"))

export const isMounting = ({ mounts = [] }: MountOptions): boolean => mounts.length > 0

const withMounts = <E>(
  options: MountOptions,
  use: (
    module: Effect.Success<typeof loadHostMount>,
    mounts: ReadonlyArray<HostMount>,
    allowed: { readonly allowedRoots: ReadonlyArray<string> }
  ) => Effect.Effect<Previews, E>
): Effect.Effect<Previews, E> =>
  isMounting(options)
    ? Effect.flatMap(loadHostMount, (module) => use(module, options.mounts ?? [], { allowedRoots: options.allowedRoots ?? [] }))
    : Effect.succeed([])

/** Plans the mounts. Fails for an invalid mount before anything is made. */
export const planMounts = (options: MountOptions): Effect.Effect<Previews, MountError> =>
  withMounts(options, ({ plan }, mounts, allowed) => plan(mounts, allowed))

export const copyMounts = (filesystem: Algebra, options: MountOptions): Effect.Effect<Previews, MountError | FsError> =>
  withMounts(options, ({ hydrate }, mounts, allowed) => hydrate(filesystem, mounts, allowed))

export const renderMounts = (previews: Previews): Effect.Effect<string> =>
  previews.length === 0 ? Effect.succeed("") : Effect.map(loadHostMount, ({ render }) => render(previews))
