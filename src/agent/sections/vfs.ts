import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import type { InMemoryOptions } from "../../backends/InMemory.ts"
import { make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import type * as VfsState from "../../workspace/VfsState.ts"
import type { Snapshots } from "../../history/Snapshots.ts"
import type { AnyDefinition } from "../definition.ts"
import type { Needed, Section, SectionError } from "../model.ts"
import { ToolSettings } from "../ToolSettings.ts"
import * as Holder from "./assemble.ts"
import {
  assemble,
  type CommonOptions,
  copyMounts,
  forSession,
  isMounting,
  type MountOptions,
  type Workspace
} from "./assemble.ts"
import { four, seven } from "../kits.ts"
import * as Texts from "./texts.ts"
import * as Tree from "./tree.ts"

/**
 * The options of a section with files in memory or in a session.
 *
 * @since 0.1.0
 */
export interface VfsOptions<T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>
  extends CommonOptions<T, C>, MountOptions, InMemoryOptions {}

type AnyVfsOptions = VfsOptions<AnyDefinition<unknown>, Section<unknown>>

const loadInMemory = Effect.promise(() => import("../../backends/InMemory.ts"))

/**
 * Makes the initial tree in a temporary session. A failed mount therefore does not change the caller's session, and mounts work
 * even if the options forbid writing.
 */
const makeMountedTree = Effect.fnUntraced(function* ({ caseInsensitive, policy, tree, ...options }: AnyVfsOptions) {
  const { makeSession, State } = yield* loadInMemory
  const { make } = yield* Effect.promise(() => import("../../workspace/Session.ts"))
  const mountSession = yield* make()
  const filesystem = makeAlgebra(yield* makeSession(mountSession, { caseInsensitive, policy, tree }))
  const previews = yield* copyMounts(filesystem, options)
  return { previews, tree: Option.getOrUndefined(yield* mountSession.latest(State)) }
}, Effect.scoped)

const openInMemory = Effect.fnUntraced(function* (
  options: AnyVfsOptions
): Effect.fn.Return<Holder.OpenedFilesystem, SectionError, Scope.Scope> {
  const { make, makeSession } = yield* loadInMemory
  const { session } = options
  const { previews, tree } = isMounting(options) ? yield* makeMountedTree(options) : { tree: options.tree }
  const initialOptions: InMemoryOptions = { ...options, tree }
  const backend = yield* session === undefined ? make(initialOptions) : makeSession(session, initialOptions)
  return { filesystem: makeAlgebra(backend), services: Context.empty(), previews }
})

const text = (kit: Texts.ToolNames) =>
  Effect.fnUntraced(function* (held: Holder.HeldFilesystem) {
    const { limits } = yield* ToolSettings
    return Texts.vfs({ toolNames: kit, limits, mounted: yield* held.mountList })
  })

/**
 * Makes a section with files in memory. With a session, the files are in the slice InMemory.State, and are rolled back, saved
 * and cloned with the session. Mounts are copied at first use; files that the session already has are kept. Fails with
 * MountError for mounts that cannot be made.
 *
 * @category constructors
 * @since 0.1.0
 */
export const VfsSection = <T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>(
  options: VfsOptions<T, C> = {}
): Effect.Effect<Workspace<Needed<T, C, Snapshots>>, SectionError, Scope.Scope> =>
  Effect.flatMap(Holder.share(openInMemory(options), options), (holder) =>
    assemble<T, C, Snapshots>(
      {
        key: "vfs",
        title: "Virtual Filesystem",
        tools: seven,
        sharedFilesystem: holder,
        text: text(Texts.sevenKit),
        clone: (session) => Tree.releaseOnFailure(Effect.flatMap(forSession(options, session), VfsSection<T, C>))
      },
      options
    )
  )

/**
 * The options of a section with the four tools, including the options of VfsState. Without a session `directory` has no effect.
 *
 * @since 0.1.0
 */
export interface VfsToolsOptions<T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>
  extends CommonOptions<T, C>, VfsState.Options {}

type AnyVfsToolsOptions = VfsToolsOptions<AnyDefinition<unknown>, Section<unknown>>

const openSessionFiles = Effect.fnUntraced(function* (
  options: AnyVfsToolsOptions
): Effect.fn.Return<Holder.OpenedFilesystem, SectionError, Scope.Scope> {
  const { policy = "vfs", session } = options
  if (session === undefined) return yield* openInMemory({ ...options, policy })
  const { make } = yield* Effect.promise(() => import("../../workspace/VfsState.ts"))
  const { filesystem, previews } = yield* make({ ...options, session })
  const mounted = yield* previews
  return { filesystem, services: Context.empty(), ...(mounted.length > 0 && { previews: mounted }) }
})

/**
 * Makes a section with the four tools. Without a session the files are in memory; with a session they are in a temporary
 * directory (VfsState). The files are made and mounts are copied immediately, or at first use if `start` is "lazy". A
 * failure removes everything that was made.
 *
 * @category constructors
 * @since 0.1.0
 */
export const VfsToolsSection = <T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>(
  options: VfsToolsOptions<T, C> = {}
): Effect.Effect<Workspace<Needed<T, C, Snapshots>>, SectionError, Scope.Scope> =>
  Tree.releaseOnFailure(
    Effect.gen(function* () {
      const section = yield* assemble<T, C, Snapshots>(
        {
          key: "vfs.tools",
          title: "Virtual Filesystem Tools",
          tools: four,
          sharedFilesystem: yield* Holder.share(openSessionFiles(options), options),
          text: text(Texts.fourKit),
          clone: (session) => Tree.releaseOnFailure(Effect.flatMap(forSession(options, session), VfsToolsSection<T, C>))
        },
        options
      )
      if (options.start !== "lazy") yield* section.filesystem
      return section
    })
  )
