/** The two strategies for storing and serving the files of a container. */
import { unavailable } from "../../model/Fault.ts"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as FsError from "../../model/FsError.ts"
import type { Fault, InvalidArgument, NotADirectory, StatError } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import type { Backend } from "../../port/Backend.ts"
import * as Request from "../../port/Request.ts"
import { makeRelativeTargets } from "../../port/absoluteLinks.ts"
import * as Workers from "../../runtime/workerPool.ts"
import * as OpenRoots from "../../runtime/openRoots.ts"
import { attempt } from "../posix/errors.ts"
import { type Confined, isSameFile, lstatEntry, type Owner, withPlace } from "../posix/place.ts"
import { backend } from "../posix/port.ts"
import * as PosixRoot from "../posix/root.ts"
import * as CommandLine from "./commandLine.ts"
import { type Engine, inRealTime } from "./engine.ts"
import { type Container, type ContainerManager, gone, random } from "./lifecycle.ts"
import type { Caller, ContainerOptions, Plan } from "./options.ts"
import * as Overlay from "./overlayDirectory.ts"
import * as Port from "./shell/port.ts"
import { bulkScript, program } from "./shell/script.ts"
import * as Session from "./shell/session.ts"

// The strategy `overlay`: the files are a host directory, served by a host filesystem.
//
// The host filesystem confines its paths, because programs in the container may create symlinks. The files can be used
// before the container starts and after it ends.

type ContainerError = StatError | NotADirectory | InvalidArgument

const tags = new Set([...FsError.tagsOf(FsError.StatError), "NotADirectory", "InvalidArgument"])

export const promote = (fault: Fault, path: string): ContainerError =>
  FsError.promote(fault, "Container", path, tags) as ContainerError

export interface SharedDirectory {
  readonly port: Backend
  readonly directory: string
  /** Fails if the path no longer leads to the directory that the filesystem has open. */
  readonly check: Effect.Effect<void, Fault>
}

/**
 * Returns the owner for created entries, so that the container's user can use them. Returns `undefined` unless root runs
 * the container as another user.
 */
const ownerOf = ({ user }: Plan, caller: Caller): Owner | undefined =>
  caller?.uid === 0 && (user.uid !== 0 || user.gid !== 0) ? user : undefined

const directoryMoved: Fault = unavailable("the shared directory has been moved or replaced, so no container was started")

const checkDirectory = (confined: Confined, directory: string): Effect.Effect<void, Fault> =>
  attempt(() =>
    withPlace(confined.directory(FsPath.root), ({ stats }) => {
      const found = lstatEntry(directory)
      const isSame = OpenRoots.resolvePath(directory) === directory && found !== undefined && isSameFile(found, stats)
      return isSame ? undefined : directoryMoved
    })
  )

/** Resolves absolute symlink targets as in the container, where the files are below `workdir`. */
const withContainerLinks = (port: Backend, workdir: string): Backend => ({
  ...port,
  links: port.links && { ...port.links, relative: makeRelativeTargets(() => [workdir]) }
})

const makeOverlay = Effect.mapError(Overlay.make, (fault) => promote(fault, "hostDirectory"))

export const makeShared = (
  plan: Plan,
  { allowDelete, allowWrite, policy, readOnly }: ContainerOptions,
  caller: Caller
): Effect.Effect<SharedDirectory, ContainerError, Scope.Scope> =>
  Effect.gen(function* () {
    const root = plan.hostDirectory ?? (yield* makeOverlay)
    const confined = yield* Effect.catchTag(PosixRoot.open("Container", { root }), "Unsupported", () =>
      Effect.fail(promote(unavailable("a shared directory requires a POSIX system"), root))
    )
    const owner = ownerOf(plan, caller)
    const isOwnDirectory = plan.hostDirectory === undefined
    if (owner !== undefined && (isOwnDirectory || !plan.isReadOnly)) {
      yield* Effect.mapError(Overlay.changeOwner(confined, owner), (fault) => promote(fault, root))
    }
    const options = { root, allowDelete, allowWrite, policy, readOnly }
    const place = owner === undefined ? confined : { ...confined, owner }
    const directory = OpenRoots.resolvePath(root) ?? root
    const port = withContainerLinks(backend(place, options, yield* Workers.shared, "Container"), plan.workdir)
    return {
      port: yield* PosixRoot.recoverTransactions("Container", confined, options, port),
      directory,
      check: checkDirectory(confined, directory)
    }
  })

// The strategy `exec`: the files exist only in the container, and one shell inside serves them.
//
// The files are lost with the container. After the loss, calls on the files fail until a command has started a new
// container. A command fails too if no call has reported the loss yet. So callers do not mistake the loss for an empty
// directory.

interface ExecFiles {
  readonly port: Backend
  readonly running: Effect.Effect<Container, Fault>
}

const filesLost: Fault = unavailable(
  "the container has ended, and its files are lost; the next command starts a new, empty container"
)

const delegatingPort = (latest: () => Backend, currentPort: Effect.Effect<Backend, Fault>): Backend => {
  const first = latest()
  const withPort = <A, E, R>(use: (port: Backend) => Effect.Effect<A, E, R>): Effect.Effect<A, E | Fault, R> =>
    Effect.flatMap(currentPort, use)
  const { attributes, links } = first
  return {
    ...first,
    stat: (path) => withPort((port) => port.stat(path)),
    list: (path) => withPort((port) => port.list(path)),
    open: (path) => withPort((port) => port.open(path)),
    write: (path, bytes, mode, how) => withPort((port) => port.write(path, bytes, mode, how)),
    makeDirectory: (path) => withPort((port) => port.makeDirectory(path)),
    remove: (path) => withPort((port) => port.remove(path)),
    rename: (from, to, options) => withPort((port) => port.rename(from, to, options)),
    links: links && {
      read: (path) => withPort((port) => port.links!.read(path)),
      relative: links.relative,
      make: (path, target) => withPort((port) => port.links!.make(path, target))
    },
    attributes: attributes && { set: (path, values) => withPort((port) => port.attributes!.set(path, values)) },
    // All containers of one plan handle the same requests, so the request tags of the first port apply to all ports.
    perform: Request.later(
      first.perform,
      withPort((port) => Effect.succeed(port.perform!))
    ),
    // An ended container needs no special case here, because the explorer reports a failure for each directory.
    explore: first.explore && ((pathOf, searches) => latest().explore!(pathOf, searches))
  }
}

/**
 * Kills the shell inside the container, because killing the engine's client does not end the shell. If the kill fails,
 * the shell ends with the container.
 */
const killShell = (container: Container, mark: string): Effect.Effect<void> =>
  inRealTime(Effect.ignore(Effect.timeoutOption(container.kill(mark, ""), "1 second")))

export const makeExec = (
  engine: Engine,
  plan: Plan,
  { allowDelete, allowWrite, policy, readOnly }: ContainerOptions,
  life: ContainerManager
): Effect.Effect<ExecFiles, Fault, Scope.Scope> =>
  Effect.gen(function* () {
    const script = program(bulkScript)
    const session = yield* Session.makeSession(
      Effect.suspend(() => {
        const container = life.latest()
        if (container === undefined || container.isEnded()) return Effect.fail(gone)
        const mark = random()
        return Effect.map(
          engine.start(CommandLine.session(container.name, script, mark), "held"),
          ({ stderr, stdin, stdout }) => ({ stderr, stdin, stdout, killInside: killShell(container, mark) })
        )
      })
    )
    const startPort = Effect.flatMap(life.running, (container) =>
      Effect.map(
        Port.make({ session, root: plan.workdir, name: "Container", allowDelete, allowWrite, policy, readOnly }),
        (port) => ({ container, port, isLossReported: false })
      )
    )
    let current = yield* startPort

    /** Fails if the container has ended, and records that the loss was reported. */
    const checkAlive = Effect.suspend((): Effect.Effect<void, Fault> => {
      if (!current.container.isEnded()) return Effect.void
      current.isLossReported = true
      return Effect.fail(filesLost)
    })

    const running = Effect.suspend((): Effect.Effect<Container, Fault> => {
      if (!current.isLossReported) return Effect.as(checkAlive, current.container)
      return Effect.map(startPort, (next) => {
        current = next
        return next.container
      })
    })

    /** The current port. Fails if the container has ended, even if a pending call has already reported another failure. */
    const currentPort = Effect.andThen(
      checkAlive,
      Effect.sync(() => current.port)
    )

    return { port: delegatingPort(() => current.port, currentPort), running }
  })
