/** What of the machine is copied into the filesystem of a section, by its configuration alone. */
import * as Effect from "effect/Effect"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import type { FsError } from "../../model/FsError.ts"
import type { HostMount, MountError, Preview } from "../../workspace/HostMount.ts"

export interface Mounting {
  /** Copied in once, later ones over earlier ones. @default none */
  readonly mounts?: ReadonlyArray<HostMount> | undefined
  /** Absolute directories that what is mounted must lie in. @default none, which refuses every mount */
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

/** What there would be; what can be no mount is known then, before anything is made. */
export const planned = (options: Mounting): Effect.Effect<Previews, MountError> =>
  mounting(options, ({ plan }, mounts, allowed) => plan(mounts, allowed))

export const hydrated = (filesystem: Algebra, options: Mounting): Effect.Effect<Previews, MountError | FsError> =>
  mounting(options, ({ hydrate }, mounts, allowed) => hydrate(filesystem, mounts, allowed))

/** As a list of Markdown, empty where nothing is mounted. */
export const rendered = (previews: Previews): Effect.Effect<string> =>
  previews.length === 0 ? Effect.succeed("") : Effect.map(loaded, ({ render }) => render(previews))
