import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Container from "../../backends/Container.ts"
import type { Plan } from "../../backends/container/options.ts"
import { Sandbox } from "../../filesystem/Sandbox.ts"
import * as FsError from "../../model/FsError.ts"
import { root } from "../../model/FsPath.ts"
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
  type MountOptions,
  refuseMountsInto,
  type Workspace
} from "./assemble.ts"
import { sandboxTools, seven } from "../kits.ts"
import * as Texts from "./texts.ts"
import * as Tree from "./tree.ts"

export type Spawner = Exclude<Effect.Services<ReturnType<typeof Container.make>>, Scope.Scope>

/**
 * The options of a Container, such as `image` and `engine`, and of the section. `allowedRoots` applies to `mounts` and `binds`.
 *
 * @since 0.1.0
 */
export interface PodmanOptions<T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>
  extends
    CommonOptions<T, C>,
    MountOptions,
    Omit<Container.ContainerOptions, "strategy" | "start" | "hostDirectory" | "mounts" | "allowedRoots"> {
  /** Directories on the host that are bind-mounted into the container in addition to the workspace. @default none */
  readonly binds?: Container.ContainerOptions["mounts"]
}

/**
 * The options of a container over a directory on the machine.
 *
 * @since 0.1.0
 */
export interface PodmanSandboxOptions<
  T extends AnyDefinition<unknown> = AnyDefinition,
  C extends Section<unknown> = Section
> extends PodmanOptions<T, C> {
  /**
   * The absolute path of an existing workspace directory, which is never removed. Cannot be combined with `mounts`.
   * @default a new directory, removed with the last section that uses it
   */
  readonly hostDirectory?: string | undefined
}

type AnyOptions = PodmanSandboxOptions<AnyDefinition<unknown>, Section<unknown>>

type Strategy = "exec" | "overlay"

const containerOptions = (options: AnyOptions, strategy: Strategy): Container.ContainerOptions => ({
  ...options,
  strategy,
  mounts: options.binds,
  allowedRoots: options.allowedRoots
})

const planContainer = Effect.fnUntraced(function* (options: AnyOptions, strategy: Strategy) {
  yield* refuseMountsInto(options.hostDirectory, "hostDirectory", options)
  const { plan } = yield* Effect.promise(() => import("../../backends/container/options.ts"))
  const [uid, gid] = [process.getuid?.(), process.getgid?.()]
  const made = plan(containerOptions(options, strategy), uid === undefined || gid === undefined ? undefined : { uid, gid })
  return "_tag" in made ? yield* Effect.fail(FsError.promote(made, "Section", root)) : made
})

const openContainer = Effect.fnUntraced(function* (
  options: AnyOptions,
  strategy: Strategy
): Effect.fn.Return<Holder.OpenedFilesystem, SectionError, Scope.Scope | Spawner> {
  const { make } = yield* Effect.promise(() => import("../../backends/Container.ts"))
  const { filesystem, sandbox } = yield* make(containerOptions(options, strategy))
  const previews = yield* copyMounts(filesystem, options)
  return { filesystem, services: Context.make(Sandbox, sandbox) as Context.Context<never>, previews }
})

const text = (plan: Plan) =>
  Effect.fnUntraced(function* (held: Holder.HeldFilesystem) {
    const { limits } = yield* ToolSettings
    return Texts.sandbox({ toolNames: Texts.sevenKit, limits, mounted: yield* held.mountList }, plan)
  })

interface Named {
  readonly key: string
  readonly title: string
  readonly strategy: Strategy
}

type ProvidedServices = Sandbox | Snapshots

const buildSection = <T extends AnyDefinition<unknown>, C extends Section<unknown>>(
  { strategy, ...named }: Named,
  plan: Plan,
  options: PodmanSandboxOptions<T, C>,
  holder: Holder.SharedFilesystem
): Effect.Effect<Workspace<Needed<T, C, ProvidedServices>>, SectionError, Scope.Scope> =>
  assemble<T, C, ProvidedServices>(
    {
      ...named,
      tools: [...seven, ...sandboxTools],
      sharedFilesystem: holder,
      text: text(plan),
      clone: (session) =>
        Tree.releaseOnFailure(
          Effect.flatMap(forSession(options, session), (other) => buildSection({ strategy, ...named }, plan, other, holder))
        )
    },
    options
  )

const makeSection = Effect.fnUntraced(function* <T extends AnyDefinition<unknown>, C extends Section<unknown>>(
  named: Named,
  options: PodmanSandboxOptions<T, C>
) {
  const plan = yield* planContainer(options, named.strategy)
  return yield* buildSection(named, plan, options, yield* Holder.share(openContainer(options, named.strategy), options))
})

/**
 * Makes a section over a container. The container itself stores the files of the workspace, and starts at first use. A clone
 * shares the container. Fails with InvalidArgument for invalid options and with MountError for mounts that cannot be made.
 *
 * Each snapshot reads all files out of the container, so take snapshots sparingly. For a snapshot before every change use
 * PodmanSandboxSection, which reads only the changed files.
 *
 * @category constructors
 * @since 0.1.0
 */
export const PodmanSection = <T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>(
  options: PodmanOptions<T, C>
): Effect.Effect<Workspace<Needed<T, C, ProvidedServices>>, SectionError, Scope.Scope | Spawner> =>
  makeSection({ key: "podman", title: "Sandbox", strategy: "exec" }, options)

/**
 * Makes a section over a container that uses a directory on the machine. The directory is made, and the mounts are copied,
 * immediately; the container starts at the first command. The file tools also work before the container starts and after it
 * ends. A failure removes everything that was made. A clone shares the directory and the container.
 *
 * @category constructors
 * @since 0.1.0
 */
export const PodmanSandboxSection = <T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>(
  options: PodmanSandboxOptions<T, C>
): Effect.Effect<Workspace<Needed<T, C, ProvidedServices>>, SectionError, Scope.Scope | Spawner> =>
  Tree.releaseOnFailure(
    Effect.tap(
      makeSection({ key: "podman.shell", title: "Podman Sandbox", strategy: "overlay" }, options),
      ({ filesystem }) => filesystem
    )
  )
