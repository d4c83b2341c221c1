import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { PosixHostOptions } from "../../backends/PosixHost.ts"
import { Filesystem, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import type { Snapshots } from "../../history/Snapshots.ts"
import * as Slice from "../../model/Slice.ts"
import type * as Session from "../../workspace/Session.ts"
import type { Needed, Section, SectionError } from "../model.ts"
import { ToolSettings } from "../ToolSettings.ts"
import type { AnyDefinition } from "../definition.ts"
import { seven } from "../kits.ts"
import * as Holder from "./assemble.ts"
import {
  assemble,
  type CommonOptions,
  copyMounts,
  forSession,
  isMounting,
  makeTemporaryDirectory,
  type MountOptions,
  refuseMountsInto,
  type Workspace
} from "./assemble.ts"
import * as Texts from "./texts.ts"
import * as Tree from "./tree.ts"

/**
 * A summary of the workspace of a section.
 *
 * @since 0.1.0
 */
export interface WorkspaceDigest {
  readonly section: string
  /** The summary, in Markdown. */
  readonly text: string
}

/**
 * The digests of a session, one per section: `session.dispatch(Section.WorkspaceDigest, { section: "workspace", text })`.
 *
 * @since 0.1.0
 */
export const WorkspaceDigest: Slice.Slice<WorkspaceDigest> = Slice.make(
  "WorkspaceDigest",
  Schema.Struct({ section: Schema.String, text: Schema.String }),
  { reduce: Slice.upsert((digest: WorkspaceDigest) => digest.section) }
)

export const textOf = (session: Session.Operations | undefined, section: string): Effect.Effect<string> =>
  session === undefined
    ? Effect.succeed("")
    : Effect.map(session.all(WorkspaceDigest), (digests) => digests.find((one) => one.section === section)?.text.trim() ?? "")

/**
 * The options of a section over a custom filesystem. The layer needs `R` and also provides `P`; the section has the tools `T`
 * and the children `C`.
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
   * The layer of the filesystem. The tools of the section also get the layer's other services, such as a Sandbox. Policies that
   * the layer provides apply to these tools.
   */
  readonly layer: Layer.Layer<Filesystem | P, SectionError, R>
}

const openFilesystem = Effect.fnUntraced(function* <R>(
  options: FilesystemOptions<R, AnyDefinition<unknown>, Section<unknown>>
) {
  const services = yield* Layer.build(Layer.fresh(options.layer))
  const filesystem = Context.get(services, Filesystem)
  const previews = yield* copyMounts(filesystem, options)
  // Omit the filesystem from the services, because tools get the filesystem with the policies applied.
  return { filesystem, services: Context.omit(Filesystem)(services) as Context.Context<never>, previews }
})

const buildCustomSection = <R, T extends AnyDefinition<unknown>, C extends Section<unknown>, P>(
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
        Tree.releaseOnFailure(
          Effect.flatMap(forSession(options, session), (other) => buildCustomSection(other, sharedFilesystem))
        )
    },
    options
  )

/**
 * Makes a section over the filesystem of a layer. The layer is built at first use, and then the mounts are copied. A model can
 * access the files only with the tools in the options, for example `Section.sevenTools`. A clone shares the filesystem.
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
  return yield* buildCustomSection(options, yield* Holder.share(openFilesystem(options), options))
})

/**
 * The options of a section over a directory on the machine.
 *
 * @since 0.1.0
 */
export interface WorkspaceOptions<T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>
  extends Omit<CommonOptions<T, C>, "tools">, MountOptions, Omit<PosixHostOptions, "root"> {
  /**
   * The absolute path of an existing directory, which is never removed. Cannot be combined with `mounts`.
   * @default a new temporary directory, removed with the last section that uses it
   */
  readonly root?: string | undefined
  /**
   * Custom tools, in addition to the seven, or "none" for agents that access the directory with other tools. @default the seven
   */
  readonly tools?: ReadonlyArray<T> | "none" | undefined
  /** True if the text includes the session's digest of the workspace. @default true */
  readonly digest?: boolean | undefined
}

type AnyWorkspaceOptions = WorkspaceOptions<AnyDefinition<unknown>, Section<unknown>>

const key = "workspace"

const loadHost = Effect.promise(() =>
  process.platform === "win32" ? import("../../backends/WindowsHost.ts") : import("../../backends/PosixHost.ts")
)

/** Copies the mounts through a writable host, because the filesystem of the section may be read-only. */
const copyMountsInto = Effect.fnUntraced(function* (root: string, options: AnyWorkspaceOptions) {
  const { make } = yield* loadHost
  return yield* copyMounts(makeAlgebra(yield* make({ root })), options)
}, Effect.scoped)

const openDirectory = Effect.fnUntraced(function* (
  options: AnyWorkspaceOptions
): Effect.fn.Return<Holder.OpenedFilesystem, SectionError, Scope.Scope> {
  const { make } = yield* loadHost
  const root = options.root ?? (yield* makeTemporaryDirectory("workspace"))
  const previews = isMounting(options) ? yield* copyMountsInto(root, options) : undefined
  const filesystem = makeAlgebra(yield* make({ ...options, root }))
  return { filesystem, services: Context.empty(), previews, directory: root }
})

const text = (options: AnyWorkspaceOptions) =>
  Effect.fnUntraced(function* (heldFilesystem: Holder.HeldFilesystem) {
    const { limits } = yield* ToolSettings
    const hasTools = options.tools !== "none"
    const kit = hasTools ? Texts.sevenKit : undefined
    const directory = hasTools ? undefined : (yield* heldFilesystem.opened).directory
    const digest = options.digest === false ? undefined : Texts.digest(yield* textOf(options.session, key), kit)
    return Texts.workspace({ toolNames: kit, limits, mounted: yield* heldFilesystem.mountList }, directory, digest)
  })

const buildSection = <T extends AnyDefinition<unknown>, C extends Section<unknown>>(
  options: WorkspaceOptions<T, C>,
  sharedFilesystem: Holder.SharedFilesystem
): Effect.Effect<Workspace<Needed<T, C, Snapshots>>, SectionError, Scope.Scope> => {
  const { tools, ...rest } = options
  const toolSets = tools === "none" ? { own: [], more: undefined } : { own: seven, more: tools }
  return assemble<T, C, Snapshots>(
    {
      key,
      title: "Workspace",
      tools: toolSets.own,
      toolsElsewhere: tools === "none",
      sharedFilesystem,
      text: text(options),
      clone: (session) =>
        Tree.releaseOnFailure(Effect.flatMap(forSession(options, session), (other) => buildSection(other, sharedFilesystem)))
    },
    { ...rest, tools: toolSets.more }
  )
}

/**
 * Makes a section over a directory on the machine. The directory is opened or made at first use. Rendering a text that contains
 * the path of the directory counts as a use. A clone shares the directory. Fails with MountError for mounts that cannot be
 * made, and with InvalidArgument for `root` together with `mounts`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const WorkspaceSection = Effect.fnUntraced(function* <
  T extends AnyDefinition<unknown> = AnyDefinition,
  C extends Section<unknown> = Section
>(options: WorkspaceOptions<T, C> = {}): Effect.fn.Return<Workspace<Needed<T, C, Snapshots>>, SectionError, Scope.Scope> {
  yield* refuseMountsInto(options.root, "root", options)
  return yield* buildSection(options, yield* Holder.share(openDirectory(options), options))
})
