import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { FsError } from "../../model/FsError.ts"
import type { HostMount, MountError, Preview } from "../../workspace/HostMount.ts"

export interface Mounting {
  /** The files to copy in, once and in order; later mounts overwrite earlier ones. @default none */
  readonly mounts?: ReadonlyArray<HostMount> | undefined
  /** The absolute directories that must contain the sources of all mounts. @default none, which refuses every mount */
  readonly allowedRoots?: ReadonlyArray<string> | undefined
}

export type Previews = ReadonlyArray<Preview>

const loaded = Effect.promise(() => import("../../workspace/HostMount.ts"))

export const isMounting = ({ mounts = [] }: Mounting): boolean => mounts.length > 0

const mounting = <E>(
  options: Mounting,
  use: (
    module: Effect.Success<typeof loaded>,
    mounts: ReadonlyArray<HostMount>,
    allowed: { readonly allowedRoots: ReadonlyArray<string> }
  ) => Effect.Effect<Previews, E>
): Effect.Effect<Previews, E> =>
  isMounting(options)
    ? Effect.flatMap(loaded, (module) => use(module, options.mounts ?? [], { allowedRoots: options.allowedRoots ?? [] }))
    : Effect.succeed([])

/** Plans the mounts. Fails for an invalid mount before anything is made. */
export const planned = (options: Mounting): Effect.Effect<Previews, MountError> =>
  mounting(options, ({ plan }, mounts, allowed) => plan(mounts, allowed))

export const hydrated = (filesystem: Algebra, options: Mounting): Effect.Effect<Previews, MountError | FsError> =>
  mounting(options, ({ hydrate }, mounts, allowed) => hydrate(filesystem, mounts, allowed))

export const rendered = (previews: Previews): Effect.Effect<string> =>
  previews.length === 0 ? Effect.succeed("") : Effect.map(loaded, ({ render }) => render(previews))
