import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Filesystem } from "../../filesystem/Filesystem.ts"
import type { Snapshots } from "../../history/Snapshots.ts"
import type { AnyDefinition } from "../definition.ts"
import type { Needed, Section, SectionError } from "../Section.ts"
import { assemble, type CommonOptions, forSession, type Workspace } from "./assemble.ts"
import * as Holder from "./holder.ts"
import { copyMounts, type MountOptions, planMounts } from "./mounted.ts"
import * as Tree from "./tree.ts"

/**
 * The options of a section over a filesystem of your own: a layer that needs `R` and provides `P`, tools `T`, and children `C`.
 *
 * @since 0.1.0
 */
export interface FilesystemOptions<
  R,
  T extends AnyDefinition<unknown> = AnyDefinition,
  C extends Section<unknown> = Section,
  P = never
>
  extends CommonOptions<T, C>, MountOptions, Pick<Section, "key" | "title" | "template" | "toolsElsewhere"> {
  /**
   * The layer of the filesystem. The section's tools also get its other services, such as a Sandbox; policies in it apply to
   * them.
   */
  readonly layer: Layer.Layer<Filesystem | P, SectionError, R>
}

const openFilesystem = Effect.fnUntraced(function* <R>(
  options: FilesystemOptions<R, AnyDefinition<unknown>, Section<unknown>>
) {
  const services = yield* Layer.build(Layer.fresh(options.layer))
  const filesystem = Context.get(services, Filesystem)
  const previews = yield* copyMounts(filesystem, options)
  // Leave out the filesystem itself: tools get it with the policies applied.
  return { filesystem, services: Context.omit(Filesystem)(services) as Context.Context<never>, previews }
})

const buildSection = <R, T extends AnyDefinition<unknown>, C extends Section<unknown>, P>(
  options: FilesystemOptions<R, T, C, P>,
  sharedFilesystem: Holder.SharedFilesystem
): Effect.Effect<Workspace<Needed<T, C, P | Snapshots>>, SectionError, Scope.Scope> =>
  assemble<T, C, P | Snapshots>(
    {
      key: options.key,
      title: options.title,
      tools: [],
      toolsElsewhere: options.toolsElsewhere,
      sharedFilesystem,
      text: (_, params) => (typeof options.template === "string" ? Effect.succeed(options.template) : options.template(params)),
      clone: (session) =>
        Tree.releaseOnFailure(Effect.flatMap(forSession(options, session), (other) => buildSection(other, sharedFilesystem)))
    },
    options
  )

/**
 * Makes a section over the filesystem of a layer. The layer is built at first use, and the mounts are then copied in. The
 * section has only the tools of the options: without `tools`, such as `Section.sevenTools`, a model cannot reach the files. A
 * clone shares the filesystem.
 *
 * @category constructors
 * @since 0.1.0
 */
export const FilesystemSection = Effect.fnUntraced(function* <
  R = never,
  T extends AnyDefinition<unknown> = AnyDefinition,
  C extends Section<unknown> = Section,
  P = never
>(
  options: FilesystemOptions<R, T, C, P>
): Effect.fn.Return<Workspace<Needed<T, C, P | Snapshots>>, SectionError, Scope.Scope | R> {
  const previews = yield* planMounts(options)
  const { snapshotDirectory } = options
  return yield* buildSection(options, yield* Holder.make(openFilesystem(options), { snapshotDirectory, previews }))
})
