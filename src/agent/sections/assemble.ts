import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { type Algebra, Filesystem } from "../../filesystem/Filesystem.ts"
import type * as SnapshotStore from "../../history/SnapshotStore.ts"
import type * as Snapshots from "../../history/Snapshots.ts"
import { SnapshotError, SnapshotRestoreError } from "../../history/errors.ts"
import { withExclusiveLock } from "../../history/replace.ts"
import { type FsError, InvalidArgument, IoError, Unavailable } from "../../model/FsError.ts"
import { root } from "../../model/FsPath.ts"
import { realpathSync, tmpdir } from "../../runtime/node.ts"
import type { HostMount, MountError, Preview } from "../../workspace/HostMount.ts"
import type * as Session from "../../workspace/Session.ts"
import type { Purpose } from "../../workspace/temporary.ts"
import type { Needed, Params, Section, SectionError } from "../model.ts"
import type { AnyDefinition } from "../definition.ts"
import * as Tree from "./tree.ts"
import { overrideFault, type Overrides, withOverride } from "./tree.ts"

// Makes a value at its first use and keeps it until the scope ends. A failed or interrupted attempt releases its resources, and
// the next use tries again.

const scopeEnded = new Unavailable({ operation: "Section", path: root, detail: "the scope of the section is closed" })

const failIfClosed =
  (scope: Scope.Scope) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | Unavailable, R> =>
    Effect.suspend((): Effect.Effect<A, E | Unavailable, R> =>
      scope.state._tag === "Closed" ? Effect.fail(scopeEnded) : effect
    )

/** Memoizes a value. The value is made in the context in which `memoized` runs, not in the context of its first use. */
const memoized = <A, E, R>(
  make: Effect.Effect<A, E, R>
): Effect.Effect<Effect.Effect<A, E | Unavailable>, never, R | Scope.Scope> =>
  Effect.contextWith((context: Context.Context<R | Scope.Scope>) => {
    const outer = Context.get(context as Context.Context<Scope.Scope>, Scope.Scope)
    const lock = Semaphore.makeUnsafe(1)
    let kept: { readonly value: A } | undefined

    const makeValue = Effect.uninterruptibleMask((restore) =>
      Effect.map(Tree.releaseOnFailure(restore(make)), (value) => {
        kept = { value }
        return value
      })
    ).pipe(Effect.provideContext(context)) as Effect.Effect<A, E>

    const cachedOrMade = Effect.suspend(() => (kept === undefined ? makeValue : Effect.succeed(kept.value)))
    return Effect.succeed(
      failIfClosed(outer)(
        Effect.suspend(() => (kept === undefined ? lock.withPermit(failIfClosed(outer)(cachedOrMade)) : cachedOrMade))
      )
    )
  })

const failure = ({ code }: { readonly [detail: string]: unknown }): IoError =>
  new IoError({
    operation: "Section",
    path: root,
    detail: "cannot create a temporary directory",
    ...(typeof code === "string" && { code })
  })

/**
 * Makes a temporary directory that only this user can access, until the scope closes. Returns its absolute real path. In the
 * background, removes directories that killed processes left.
 */
export const makeTemporaryDirectory = (purpose: Purpose): Effect.Effect<string, IoError, Scope.Scope> =>
  Effect.gen(function* () {
    const { make, removeLeftovers: sweep } = yield* Effect.promise(() => import("../../workspace/temporary.ts"))
    const parent = yield* Effect.try({
      try: () => realpathSync(tmpdir()),
      catch: (error) => failure({ code: (error as NodeJS.ErrnoException).code })
    })
    const directory = yield* Effect.mapError(make(parent, purpose), failure)
    yield* Effect.forkScoped(sweep(parent))
    return directory
  })

const makeSnapshotStore = Effect.fnUntraced(function* (filesystem: Algebra, configuredDirectory: string | undefined) {
  const { make } = yield* Effect.promise(() => import("../../history/SnapshotStore.ts"))
  const directory = configuredDirectory ?? (yield* makeTemporaryDirectory("snapshots"))
  const makeSnapshots: Effect.Effect<SnapshotStore.Operations, SnapshotError, Filesystem | Scope.Scope> = make({ directory })
  return yield* Effect.provideService(makeSnapshots, Filesystem, filesystem)
})

/** Opens the kind of snapshots that suits the filesystem. If the machine has no git, the snapshots are archives. */
const openSnapshots = Effect.fnUntraced(function* (filesystem: Algebra) {
  const { layer, layerArchive, Snapshots } = yield* Effect.promise(() => import("../../history/Snapshots.ts"))
  const build = (snapshotLayer: typeof layer) =>
    Effect.map(Layer.build(Layer.fresh(Layer.provide(snapshotLayer, Layer.succeed(Filesystem, filesystem)))), (built) =>
      Context.get(built, Snapshots)
    )
  return yield* Effect.catchIf(
    build(layer),
    ({ reason }) => reason === "gitMissing",
    () => build(layerArchive)
  )
})

type MakeSnapshots = Effect.Effect<Snapshots.Operations, SnapshotError>

/** Returns a snapshot service that is made at its first use. Every call of a tool gets the service, but few calls use it. */
const lazySnapshots = (filesystem: Algebra, makeSnapshots: MakeSnapshots): Snapshots.Operations => ({
  snapshot: (options) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.snapshot(options)),
  restore: (snapshot, options) =>
    Effect.flatMap(
      Effect.mapError(
        makeSnapshots,
        ({ detail }) => new SnapshotRestoreError({ snapshotId: snapshot.snapshotId, reason: "unavailable", detail })
      ),
      (snapshots) => snapshots.restore(snapshot, options)
    ),
  diff: (from, to) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.diff(from, to)),
  view: (snapshot) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.view(snapshot)),
  list: Effect.flatMap(makeSnapshots, ({ list }) => list),
  forget: (snapshot) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.forget(snapshot)),
  transaction: (effect) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.transaction(effect)),
  exclusively: (effect) => withExclusiveLock(filesystem.port, effect),
  fork: (snapshot) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.fork(snapshot)),
  merge: (fork, options) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.merge(fork, options)),
  details: (snapshot) => Effect.flatMap(makeSnapshots, (snapshots) => snapshots.details(snapshot)),
  stats: Effect.flatMap(makeSnapshots, ({ stats }) => stats),
  collect: Effect.flatMap(makeSnapshots, ({ collect }) => collect)
})

const asSnapshotError = ({ detail }: Unavailable): SnapshotError =>
  new SnapshotError({ operation: "Snapshots", reason: "unavailable", detail })

const withSnapshots = Effect.fnUntraced(function* (filesystem: Algebra, services: Context.Context<never>) {
  const { Snapshots } = yield* Effect.promise(() => import("../../history/Snapshots.ts"))
  if (Option.isSome(Context.getOption(services, Snapshots))) return services
  const makeSnapshots = Effect.catchTag(yield* memoized(openSnapshots(filesystem)), "Unavailable", (error) =>
    Effect.fail(asSnapshotError(error))
  )
  return Context.add(services, Snapshots, lazySnapshots(filesystem, makeSnapshots)) as Context.Context<never>
})

export interface MountOptions {
  /**
   * The files to copy into the workspace, once and in order. Later mounts overwrite the files of earlier mounts. @default none
   */
  readonly mounts?: ReadonlyArray<HostMount> | undefined
  /** The absolute paths of the directories that may contain the sources of mounts. @default none, which refuses every mount */
  readonly allowedRoots?: ReadonlyArray<string> | undefined
}

type Previews = ReadonlyArray<Preview>

const loadHostMount = Effect.promise(() => import("../../workspace/HostMount.ts"))

export const isMounting = ({ mounts = [] }: MountOptions): boolean => mounts.length > 0

/** Fails if the options mount files into the existing directory that the given option names. */
export const refuseMountsInto = (
  directory: string | undefined,
  name: string,
  options: MountOptions
): Effect.Effect<void, InvalidArgument> =>
  directory !== undefined && isMounting(options)
    ? Effect.fail(invalid("mounts", `nothing can be mounted into an existing directory; omit either ${name} or mounts`))
    : Effect.void

const withMounts = <E>(
  options: MountOptions,
  use: (
    module: Effect.Success<typeof loadHostMount>,
    mounts: ReadonlyArray<HostMount>,
    allowed: { readonly allowedRoots: ReadonlyArray<string> }
  ) => Effect.Effect<Previews, E>
): Effect.Effect<Previews, E> =>
  isMounting(options)
    ? Effect.flatMap(loadHostMount, (module) => use(module, options.mounts ?? [], { allowedRoots: options.allowedRoots ?? [] }))
    : Effect.succeed([])

const planMounts = (options: MountOptions): Effect.Effect<Previews, MountError> =>
  withMounts(options, ({ plan }, mounts, allowed) => plan(mounts, allowed))

export const copyMounts = (filesystem: Algebra, options: MountOptions): Effect.Effect<Previews, MountError | FsError> =>
  withMounts(options, ({ hydrate }, mounts, allowed) => hydrate(filesystem, mounts, allowed))

const renderMounts = (previews: Previews): Effect.Effect<string> =>
  previews.length === 0 ? Effect.succeed("") : Effect.map(loadHostMount, ({ render }) => render(previews))

// Shares a filesystem between sections. The filesystem is opened when one of the sections first uses it, and closed when the
// scope of the last section closes. A clone for another session can therefore share a directory or a container with its
// original.

export interface OpenedFilesystem {
  readonly filesystem: Algebra
  readonly services: Context.Context<never>
  readonly previews?: Previews | undefined
  readonly directory?: string | undefined
}

export interface HeldFilesystem {
  readonly mountList: Effect.Effect<string>
  readonly opened: Effect.Effect<OpenedFilesystem, SectionError>
  readonly snapshots: Effect.Effect<SnapshotStore.Operations, SectionError>
  readonly services: Effect.Effect<Context.Context<never>, SectionError>
}

/** An effect that keeps the shared filesystem open until the scope closes. Fails if the filesystem is closed already. */
export type SharedFilesystem = Effect.Effect<HeldFilesystem, Unavailable, Scope.Scope>

/** Shares the filesystem that `open` opens. Fails with MountError for mounts that cannot be made. */
export const share = Effect.fnUntraced(function* <R>(
  open: Effect.Effect<OpenedFilesystem, SectionError, R>,
  options: MountOptions & Pick<AnyCommonOptions, "snapshotDirectory">
): Effect.fn.Return<SharedFilesystem, MountError, Exclude<R, Scope.Scope>> {
  let previews = yield* planMounts(options)
  const resourceScope = yield* Scope.make()
  const memoizeInScope = <A, E, R2>(effect: Effect.Effect<A, E, R2>) => Scope.provide(memoized(effect), resourceScope)
  const opened = yield* memoizeInScope(
    Effect.tap(open, (opened) =>
      Effect.sync(() => {
        previews = opened.previews ?? previews
      })
    )
  )
  const snapshots = yield* memoizeInScope(
    Effect.flatMap(opened, ({ filesystem }) => makeSnapshotStore(filesystem, options.snapshotDirectory))
  )
  const services = yield* memoizeInScope(
    Effect.flatMap(opened, ({ filesystem, services }) => withSnapshots(filesystem, services))
  )

  let holders = 0
  const acquire = Effect.suspend(() => {
    if (resourceScope.state._tag === "Closed") return Effect.fail(scopeEnded)
    holders++
    return Effect.void
  })
  const release = Effect.suspend(() => (--holders === 0 ? Scope.close(resourceScope, Exit.void) : Effect.void))

  return Effect.gen(function* () {
    yield* Effect.acquireRelease(acquire, () => release)
    const whileHeld = failIfClosed(yield* Effect.scope)
    return {
      mountList: Effect.suspend(() => renderMounts(previews)),
      opened: whileHeld(opened),
      snapshots: whileHeld(snapshots),
      services: whileHeld(services)
    }
  })
})

export interface CommonOptions<T extends AnyDefinition<unknown> = AnyDefinition, C extends Section<unknown> = Section> {
  /** The session that owns the section. In another session, the section's tools refuse calls. @default any session */
  readonly session?: Session.Operations | undefined
  /**
   * The absolute path of the directory that stores the snapshots. The snapshots remain after the section ends.
   * @default a temporary directory, removed with the filesystem
   */
  readonly snapshotDirectory?: string | undefined
  /** True if the section has the tools `snapshot`, `snapshots`, `restore` and `diff`. @default false */
  readonly snapshotTools?: boolean | undefined
  /** Custom tools, in addition to the tools of the section. @default none */
  readonly tools?: ReadonlyArray<T> | undefined
  /** @default none */
  readonly children?: ReadonlyArray<C> | undefined
  /** True if `overrides` and the overrides of a prompt may replace the descriptions of the section's tools. @default false */
  readonly acceptsOverrides?: boolean | undefined
  /** Replacement descriptions, by tool name, which require `acceptsOverrides`. @default none */
  readonly overrides?: Overrides | undefined
}

export const invalid = (argument: string, detail: string): InvalidArgument =>
  new InvalidArgument({ operation: "Section", path: root, argument, detail })

type AnyCommonOptions = CommonOptions<AnyDefinition<unknown>, Section<unknown>>

const toolsOf = Effect.fnUntraced(function* (own: ReadonlyArray<AnyDefinition<unknown>>, options: AnyCommonOptions) {
  const { acceptsOverrides = false, overrides = {}, snapshotTools = false } = options
  const { snapshotTools: extraTools } = snapshotTools
    ? yield* Effect.promise(() => import("../tools.ts"))
    : { snapshotTools: [] as ReadonlyArray<AnyDefinition> }
  const tools = [...own, ...extraTools, ...(options.tools ?? [])]
  for (const name of Object.keys(overrides)) {
    const why = overrideFault({ acceptsOverrides, tools }, name, overrides)
    if (why !== undefined) return yield* Effect.fail(invalid("overrides", why))
  }
  return tools.map((tool) => withOverride(tool, overrides) ?? tool)
})

interface SectionParts<R> {
  readonly key: string
  readonly title: string
  readonly tools: ReadonlyArray<AnyDefinition<unknown>>
  readonly toolsElsewhere?: boolean | undefined
  readonly sharedFilesystem: SharedFilesystem
  readonly text: (heldFilesystem: HeldFilesystem, params: Params) => Effect.Effect<string, SectionError>
  readonly clone: Workspace<R>["clone"]
}

/**
 * A section with a filesystem, its snapshots, and the services that its tools need.
 *
 * @since 0.1.0
 */
export interface Workspace<out R = never> extends Section<R> {
  readonly filesystem: NonNullable<Section["filesystem"]>
  readonly snapshots: NonNullable<Section["snapshots"]>
  readonly services: NonNullable<Section["services"]>
  readonly clone: (session: Session.Operations) => Effect.Effect<Workspace<R>, SectionError, Scope.Scope>
}

/** Assembles a section. `P` is the services that the shared filesystem provides to the section's tools. */
export const assemble = Effect.fnUntraced(function* <T extends AnyDefinition<unknown>, C extends Section<unknown>, P>(
  parts: SectionParts<Needed<T, C, P>>,
  options: CommonOptions<T, C>
): Effect.fn.Return<Workspace<Needed<T, C, P>>, SectionError, Scope.Scope> {
  const tools = yield* toolsOf(parts.tools, options)
  const heldFilesystem = yield* parts.sharedFilesystem
  const section: Workspace<unknown> = {
    key: parts.key,
    title: parts.title,
    template: (params: Params) => parts.text(heldFilesystem, params),
    tools: Object.freeze(tools),
    children: Object.freeze([...(options.children ?? [])]),
    acceptsOverrides: options.acceptsOverrides ?? false,
    session: options.session,
    toolsElsewhere: parts.toolsElsewhere ?? false,
    filesystem: Effect.map(heldFilesystem.opened, ({ filesystem }) => filesystem),
    snapshots: heldFilesystem.snapshots,
    services: heldFilesystem.services,
    clone: parts.clone
  }
  return Object.freeze(section) as Workspace<Needed<T, C, P>>
})

export const forSession = <O extends Pick<AnyCommonOptions, "children" | "session">>(
  options: O,
  session: Session.Operations
): Effect.Effect<O, SectionError, Scope.Scope> =>
  Effect.map(Tree.cloneSections(options.children ?? [], session), (children) => ({ ...options, session, children }))
