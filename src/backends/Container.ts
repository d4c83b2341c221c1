/**
 * A container with a workspace: a Filesystem of its files, and a Sandbox that runs commands in the container.
 *
 * The engine is podman, docker or nerdctl. By default, the container has no network, privileges or capabilities. The container
 * runs as an unprivileged user with limits on memory, processors and processes.
 *
 * The container is removed when the scope closes or this process is killed. If a program in the container prevents the
 * removal, the next Container of the same engine removes the container.
 *
 * With the strategy `overlay`, the workspace is a directory on the host. By default, the first command starts the container.
 * The Filesystem works before the container starts and after it has ended. If the container has died, the next command starts
 * a new one with the same files.
 *
 * With the strategy `exec`, no disk is shared: the files exist only in the container, and one shell inside serves them. If
 * the container has died, its files are lost, and the next call fails with Unavailable and says so. All calls of the
 * Filesystem fail until a command has started a new, empty container.
 *
 * Commands share the container. Background processes of a command end with the command, unless it runs with `detach`. The
 * time limit of a command does not include fetching the image and starting the container.
 *
 * With write restrictions (`readOnly`, `allowWrite`, `allowDelete`), commands cannot change the overlay at all. With
 * `exec`, these options restrict only the Filesystem.
 *
 * The engine is the first program of its name in the PATH, and runs with the environment of this process. PATH entries are
 * ignored if they are relative, empty, or inside `hostDirectory`, a writable mount or the root of an open filesystem.
 *
 * If root runs this program, the container's user becomes the owner of the overlay directory, and of the entries that the
 * Filesystem creates there. Existing entries of a `hostDirectory` keep their owner. A `hostDirectory` that does not belong
 * to root also keeps its owner. The user of the container then has the permissions that its mode gives to others.
 *
 * On hosts with SELinux, a shared directory needs a label: `runArguments: ["--security-opt", "label=disable"]`.
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
import * as Strategies from "./container/strategies.ts"
import * as CommandLine from "./container/commandLine.ts"
import * as Engine from "./container/engine.ts"
import * as Life from "./container/lifecycle.ts"
import { awaitReady, sweep } from "./container/lifecycle.ts"
import { type Caller, checkMounts, checkRootfs, type ContainerOptions, plan, type Plan } from "./container/options.ts"
import * as Commands from "./container/sandbox.ts"

export type { ContainerMount, ContainerOptions } from "./container/options.ts"

/**
 * The errors of a container.
 *
 * Unavailable means that the engine is missing or cannot start the container; the detail quotes the message of the
 * engine. The other errors concern `hostDirectory` and the options.
 *
 * @since 0.1.0
 */
export type ContainerError = StatError | NotADirectory | InvalidArgument

/**
 * The files of a container, and the commands that run in it.
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
    ended.code === 0 ? Effect.void : Effect.fail(Engine.engineFault(engine.program, "does not answer", ended))
  )

const promoted = <A, R>(effect: Effect.Effect<A, Fault, R>, { workdir }: Plan): Effect.Effect<A, ContainerError, R> =>
  Effect.mapError(effect, (fault) => Strategies.promote(fault, workdir))

const lifeOf = (
  engine: Engine.Engine,
  planned: Plan,
  shared?: Strategies.SharedDirectory
): Effect.Effect<Life.ContainerManager, never, Scope.Scope> =>
  Life.make(engine, {
    check: Effect.all([shared?.check ?? Effect.void, checkMounts(planned), checkRootfs(planned)], { discard: true }),
    argsOf: (name) => CommandLine.run(planned, { name, owner: Identity.self(), directory: shared?.directory }),
    settle: awaitReady(engine, planned, caller())
  })

const overlay = Effect.fnUntraced(function* (engine: Engine.Engine, planned: Plan, options: ContainerOptions) {
  const shared = yield* Strategies.makeShared(planned, options, caller())
  const { running } = yield* lifeOf(engine, planned, shared)
  if (planned.start === "eager") yield* promoted(running, planned)
  return { port: shared.port, running }
})

const exec = Effect.fnUntraced(function* (engine: Engine.Engine, planned: Plan, options: ContainerOptions) {
  const life = yield* lifeOf(engine, planned)
  return yield* promoted(Strategies.makeExec(engine, planned, options, life), planned)
})

const served = ({ hostDirectory, mounts }: Plan): ReadonlyArray<string> => [
  ...(hostDirectory === undefined ? [] : [hostDirectory]),
  ...mounts.filter(({ readOnly }) => !readOnly).map(({ source }) => source)
]

/**
 * Creates a container, which is removed when the scope closes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: ContainerOptions): Effect.Effect<Container, ContainerError, Scope.Scope | ChildProcessSpawner> =>
  Effect.gen(function* () {
    const planned = plan(options, caller())
    if ("_tag" in planned) {
      return yield* Effect.fail(Strategies.promote(planned, shownPath(options.workdir ?? "/workspace")))
    }
    const engine = yield* Engine.make(planned.program, served(planned))
    yield* promoted(answers(engine), planned)
    yield* Effect.forkScoped(sweep(engine))
    const { port, running } = yield* (planned.strategy === "exec" ? exec : overlay)(engine, planned, options)
    const filesystem = makeAlgebra(enforce(port))
    return { filesystem, sandbox: Commands.make({ engine, plan: planned, files: filesystem, running }) }
  })

/**
 * Provides the files and commands of a container as services.
 *
 * @example
 * ```ts
 * const list = Sandbox.Sandbox.use((sandbox) => sandbox.exec(["ls"]))
 * yield* list.pipe(
 *   Effect.provide(Container.layer({ image: "docker.io/library/alpine" })),
 *   Effect.provide(NodeServices.layer)
 * )
 * ```
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: ContainerOptions): Layer.Layer<Filesystem | Sandbox, ContainerError, ChildProcessSpawner> =>
  Layer.effectContext(
    Effect.map(make(options), ({ filesystem, sandbox }) => Context.add(Context.make(Filesystem, filesystem), Sandbox, sandbox))
  )
