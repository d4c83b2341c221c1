/**
 * A container with a workspace: a Filesystem of its files, and a Sandbox that runs commands where they are. It is run by podman, or by
 * docker with the same command line, without network, privileges and capabilities, as a user that is nobody, and within bounds of
 * memory, processors and processes. It goes with the scope, whatever has happened, and also when this process is killed; where that
 * cannot close it, because a program inside works against its end, it goes when the next Container of this engine is made.
 *
 * With the strategy `overlay` the workspace is a directory of the host. Files work before the container starts, which is at the first
 * command, and when it has ended; a container that has died is replaced at the next command, with the same files.
 *
 * With `exec` no disk is shared: the files live in the container and go with it, and one shell inside answers for them. When it has
 * died the first call to meet that, be it of files or a command, fails with Unavailable, which says that the files are gone; files stay
 * Unavailable until the next command has started another container, which is empty.
 *
 * Commands share the container. What one leaves running in the background ends with it, unless it is run with `detach`. Fetching an image and starting the container do not count as a command's time. Whoever may not change every file
 * (`readOnly`, `allowWrite`, `allowDelete`) has an overlay that commands cannot change at all; with `exec` these options are about the
 * Filesystem only.
 *
 * The engine is the first in the PATH, run with the environment of this process. Entries of the PATH that are relative or empty, or that
 * lead into `hostDirectory`, a mount that can be written, or the root of an open filesystem, do not count. Where root runs this program, the overlay directory is
 * given to the user inside, and so is what the Filesystem makes in it; what a `hostDirectory` holds already keeps its owner, and so does
 * a `hostDirectory` that belongs to somebody else than root: there the user inside may do what others may. On hosts with SELinux a
 * shared directory needs a label: `runArguments: ["--security-opt", "label=disable"]`.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"
import { type Algebra, Filesystem, make as makeAlgebra } from "../filesystem/Filesystem.ts"
import { Sandbox } from "../filesystem/Sandbox.ts"
import { type Fault, type InvalidArgument, type NotADirectory, shownPath, type StatError } from "../model/FsError.ts"
import { enforce } from "../port/Rules.ts"
import * as Identity from "../runtime/processIdentity.ts"
import * as Apart from "./internal/container/apart.ts"
import * as CommandLine from "./internal/container/commandLine.ts"
import * as Engine from "./internal/container/engine.ts"
import { sweep } from "./internal/container/leftovers.ts"
import * as Life from "./internal/container/life.ts"
import { type Caller, checkMounts, checkRootfs, type ContainerOptions, plan, type Plan } from "./internal/container/options.ts"
import { settle } from "./internal/container/ready.ts"
import * as Commands from "./internal/container/sandbox.ts"
import * as Shared from "./internal/container/shared.ts"

export type {
  /** @since 0.1.0 */
  ContainerMount,
  /** @since 0.1.0 */
  ContainerOptions
} from "./internal/container/options.ts"

/**
 * Unavailable where the engine is missing, refuses, or cannot start the container, with its own words; the others are about
 * `hostDirectory` and the options.
 *
 * @since 0.1.0
 */
export type ContainerError = StatError | NotADirectory | InvalidArgument

/**
 * The files of a container, and the commands that run where they are.
 *
 * @since 0.1.0
 */
export interface Container {
  readonly filesystem: Algebra
  readonly sandbox: typeof Sandbox.Service
}

const caller = (): Caller => {
  const [uid, gid] = [process.getuid?.(), process.getgid?.()]
  return uid === undefined || gid === undefined ? undefined : { uid, gid }
}

const answers = (engine: Engine.Engine): Effect.Effect<void, Fault> =>
  Effect.flatMap(engine.run(CommandLine.version), (ended) =>
    ended.code === 0 ? Effect.void : Effect.fail(Engine.failed(engine.program, "does not answer", ended))
  )

const promoted = <A, R>(effect: Effect.Effect<A, Fault, R>, { workdir }: Plan): Effect.Effect<A, ContainerError, R> =>
  Effect.mapError(effect, (fault) => Shared.promote(fault, workdir))

const lifeOf = (engine: Engine.Engine, planned: Plan, shared?: Shared.Shared): Effect.Effect<Life.Life, never, Scope.Scope> =>
  Life.make(engine, {
    check: Effect.all([shared?.check ?? Effect.void, checkMounts(planned), checkRootfs(planned)], { discard: true }),
    argsOf: (name) => CommandLine.run(planned, { name, owner: Identity.self(), directory: shared?.directory }),
    settle: settle(engine, planned, caller())
  })

const overlay = Effect.fnUntraced(function* (engine: Engine.Engine, planned: Plan, options: ContainerOptions) {
  const shared = yield* Shared.make(planned, options, caller())
  const { running } = yield* lifeOf(engine, planned, shared)
  if (planned.start === "eager") yield* promoted(running, planned)
  return { port: shared.port, running }
})

const exec = Effect.fnUntraced(function* (engine: Engine.Engine, planned: Plan, options: ContainerOptions) {
  const life = yield* lifeOf(engine, planned)
  return yield* promoted(Apart.make(engine, planned, options, life), planned)
})

/** Directories of the host that somebody may fill with programs: the shared one, and mounts that can be written. */
const served = ({ hostDirectory, mounts }: Plan): ReadonlyArray<string> => [
  ...(hostDirectory === undefined ? [] : [hostDirectory]),
  ...mounts.filter(({ readOnly }) => !readOnly).map(({ source }) => source)
]

/**
 * A container for as long as the scope lives.
 *
 * @since 0.1.0
 */
export const make = (options: ContainerOptions): Effect.Effect<Container, ContainerError, Scope.Scope | ChildProcessSpawner> =>
  Effect.gen(function* () {
    const planned = plan(options, caller())
    if ("_tag" in planned) {
      return yield* Effect.fail(Shared.promote(planned, shownPath(options.workdir ?? "/workspace")))
    }
    const engine = yield* Engine.make(planned.engine, served(planned))
    yield* promoted(answers(engine), planned)
    yield* Effect.forkScoped(sweep(engine))
    const { port, running } = yield* (planned.strategy === "exec" ? exec : overlay)(engine, planned, options)
    const filesystem = makeAlgebra(enforce(port))
    return { filesystem, sandbox: Commands.make({ engine, plan: planned, files: filesystem, running }) }
  })

/**
 * The same as services.
 *
 * @since 0.1.0
 */
export const layer = (options: ContainerOptions): Layer.Layer<Filesystem | Sandbox, ContainerError, ChildProcessSpawner> =>
  Layer.effectContext(
    Effect.map(make(options), ({ filesystem, sandbox }) => Context.add(Context.make(Filesystem, filesystem), Sandbox, sandbox))
  )
