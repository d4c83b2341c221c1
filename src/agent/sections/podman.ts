/** Sections whose files are where programs run: in a container. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Container from "../../backends/Container.ts"
import type { Plan } from "../../backends/internal/container/options.ts"
import { Sandbox } from "../../filesystem/Sandbox.ts"
import * as FsError from "../../model/FsError.ts"
import { root } from "../../model/FsPath.ts"
import type { Snapshots } from "../../history/Snapshots.ts"
import type { AnyDefinition } from "../definition.ts"
import type { Needed, Section, SectionError } from "../Section.ts"
import { ToolSettings } from "../ToolSettings.ts"
import { assemble, type Common, forSession, invalid, type Workspace } from "./assemble.ts"
import * as Holder from "./holder.ts"
import { sandboxTools, seven } from "../kits.ts"
import { hydrated, isMounting, type Mounting, planned } from "./mounted.ts"
import * as Texts from "./texts.ts"
import * as Tree from "./tree.ts"

/** What starts the engine: effect's ChildProcessSpawner. */
export type Spawner = Exclude<Effect.Services<ReturnType<typeof Container.make>>, Scope.Scope>

/**
 * `image`, `engine` and whatever else a Container takes. `allowedRoots` are of `mounts` and `binds`.
 *
 * @since 0.1.0
 */
export interface PodmanOptions<T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>
  extends
    Common<T, C>,
    Mounting,
    Omit<Container.ContainerOptions, "strategy" | "start" | "hostDirectory" | "mounts" | "allowedRoots"> {
  /** Directories of the host that programs see as they are, beside the workspace. @default none */
  readonly binds?: Container.ContainerOptions["mounts"]
}

/**
 * Which container the section runs, and what is mounted into it.
 *
 * @since 0.1.0
 */
export interface PodmanSandboxOptions<
  T extends AnyDefinition<unknown> = AnyDefinition,
  C extends Section<unknown> = Section
> extends PodmanOptions<T, C> {
  /** Absolute, the workspace itself; it stays, and takes no mounts. @default one of its own, which goes with the last section that has it */
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

/** Options that can never be are refused before anything is made. */
const planOf = Effect.fnUntraced(function* (options: AnyOptions, strategy: Strategy) {
  if (options.hostDirectory !== undefined && isMounting(options)) {
    const detail = "a directory that is there is not mounted into; leave out either hostDirectory or mounts"
    return yield* Effect.fail(invalid("mounts", detail))
  }
  const { plan } = yield* Effect.promise(() => import("../../backends/internal/container/options.ts"))
  const [uid, gid] = [process.getuid?.(), process.getgid?.()]
  const made = plan(containerOptions(options, strategy), uid === undefined || gid === undefined ? undefined : { uid, gid })
  return "_tag" in made ? yield* Effect.fail(FsError.promote(made, "Section", root)) : made
})

const open = Effect.fnUntraced(function* (
  options: AnyOptions,
  strategy: Strategy
): Effect.fn.Return<Holder.Opened, SectionError, Scope.Scope | Spawner> {
  const { make } = yield* Effect.promise(() => import("../../backends/Container.ts"))
  const { filesystem, sandbox } = yield* make(containerOptions(options, strategy))
  const previews = yield* hydrated(filesystem, options)
  return { filesystem, services: Context.make(Sandbox, sandbox) as Context.Context<never>, previews }
})

const text = (plan: Plan) =>
  Effect.fnUntraced(function* (held: Holder.Held) {
    const { limits } = yield* ToolSettings
    return Texts.sandbox({ kit: Texts.sevenKit, limits, mounted: yield* held.mounted }, plan)
  })

interface Named {
  readonly key: string
  readonly title: string
  readonly strategy: Strategy
}

/** The services that the tools of such a section find beside its files. */
type Provided = Sandbox | Snapshots

const build = <T extends AnyDefinition<unknown>, C extends Section<unknown>>(
  { strategy, ...named }: Named,
  plan: Plan,
  options: PodmanSandboxOptions<T, C>,
  holder: Holder.Holder
): Effect.Effect<Workspace<Needed<T, C, Provided>>, SectionError, Scope.Scope> =>
  assemble<T, C, Provided>(
    {
      ...named,
      tools: [...seven, ...sandboxTools],
      holder,
      text: text(plan),
      clone: (session) =>
        Tree.allOrNothing(
          Effect.flatMap(forSession(options, session), (other) => build({ strategy, ...named }, plan, other, holder))
        )
    },
    options
  )

const begun = Effect.fnUntraced(function* <T extends AnyDefinition<unknown>, C extends Section<unknown>>(
  named: Named,
  options: PodmanSandboxOptions<T, C>
) {
  const plan = yield* planOf(options, named.strategy)
  const previews = yield* planned(options)
  const { snapshotDirectory } = options
  const holder = yield* Holder.make(open(options, named.strategy), { snapshotDirectory, previews })
  return yield* build(named, plan, options, holder)
})

/**
 * A container that keeps its files to itself, started at the first use. A clone has the same container. Fails with InvalidArgument for
 * options that no container can have, and with MountError for what could not be mounted now.
 *
 * Each snapshot of it reads all its files out of the container, so they are to be taken sparingly; where they are taken before every
 * tool that changes something, PodmanSandboxSection reads only what has changed.
 *
 * @since 0.1.0
 */
export const PodmanSection = <T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>(
  options: PodmanOptions<T, C>
): Effect.Effect<Workspace<Needed<T, C, Provided>>, SectionError, Scope.Scope | Spawner> =>
  begun({ key: "podman", title: "Sandbox", strategy: "exec" }, options)

/**
 * A container over a directory of the machine, which is made, and mounted into, at once; the container starts at the first command.
 * Files work before it and after it. What fails leaves nothing. A clone has the same directory and container.
 *
 * @since 0.1.0
 */
export const PodmanSandboxSection = <T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section>(
  options: PodmanSandboxOptions<T, C>
): Effect.Effect<Workspace<Needed<T, C, Provided>>, SectionError, Scope.Scope | Spawner> =>
  Tree.allOrNothing(
    Effect.tap(
      begun({ key: "podman.shell", title: "Podman Sandbox", strategy: "overlay" }, options),
      ({ filesystem }) => filesystem
    )
  )
