import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { PosixHostOptions } from "../../backends/PosixHost.ts"
import { make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import type { Snapshots } from "../../history/Snapshots.ts"
import type { AnyDefinition } from "../definition.ts"
import type { Needed, Section, SectionError } from "../Section.ts"
import { ToolSettings } from "../ToolSettings.ts"
import { assemble, type CommonOptions, forSession, invalid, type Workspace } from "./assemble.ts"
import * as Digest from "./digest.ts"
import { makeTemporaryDirectory } from "./directory.ts"
import * as Holder from "./holder.ts"
import { seven } from "../kits.ts"
import { copyMounts, isMounting, type MountOptions, planMounts } from "./mounted.ts"
import * as Texts from "./texts.ts"
import * as Tree from "./tree.ts"

/**
 * The directory of the section, and its mounts.
 *
 * @since 0.1.0
 */
export interface WorkspaceOptions<T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>
  extends Omit<CommonOptions<T, C>, "tools">, MountOptions, Omit<PosixHostOptions, "root"> {
  /**
   * The absolute path of the directory; it stays, and takes no mounts.
   * @default a fresh temporary directory, removed with the last section that uses it
   */
  readonly root?: string | undefined
  /** Tools of your own beside the seven, or "none" for agents whose other tools work on the directory. @default the seven */
  readonly tools?: ReadonlyArray<T> | "none" | undefined
  /** True if the text includes the session's digest of the workspace. @default true */
  readonly digest?: boolean | undefined
}

type AnyWorkspaceOptions = WorkspaceOptions<AnyDefinition<unknown>, Section<unknown>>

const key = "workspace"

const loadHost = Effect.promise(() =>
  process.platform === "win32" ? import("../../backends/WindowsHost.ts") : import("../../backends/PosixHost.ts")
)

/** Copies the mounts in through a writable host, because the section's own may be read-only. */
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
    const digest = options.digest === false ? undefined : Texts.digest(yield* Digest.textOf(options.session, key), kit)
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
 * Makes a section over a directory of the machine. The directory is opened, or a fresh one made, at first use. A text that
 * names its path counts as a use. A clone shares the directory. Fails with MountError for mounts that cannot be made now.
 *
 * @category constructors
 * @since 0.1.0
 */
export const WorkspaceSection = Effect.fnUntraced(function* <
  T extends AnyDefinition<unknown> = AnyDefinition,
  C extends Section<unknown> = Section
>(options: WorkspaceOptions<T, C> = {}): Effect.fn.Return<Workspace<Needed<T, C, Snapshots>>, SectionError, Scope.Scope> {
  if (options.root !== undefined && isMounting(options)) {
    const detail = "nothing can be mounted into an existing directory; leave out either root or mounts"
    return yield* Effect.fail(invalid("mounts", detail))
  }
  const previews = yield* planMounts(options)
  const sharedFilesystem = yield* Holder.make(openDirectory(options), {
    snapshotDirectory: options.snapshotDirectory,
    previews
  })
  return yield* buildSection(options, sharedFilesystem)
})
