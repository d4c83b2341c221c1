/**
 * Snapshots as ZIP archives in a temporary directory, which is removed with the layer.
 *
 * The archives also contain entries that an import would reject: symlinks that leave the tree, names that differ only in
 * case, and names that are not text. FIFOs, sockets and devices are only counted.
 */
import { createHash, Fs, join, randomUUID } from "../../runtime/node.ts"
import * as Clock from "effect/Clock"
import * as DateTime from "effect/DateTime"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/realms.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { type Fault, type FsError, located, toFault } from "../../model/FsError.ts"
import { Limits, unlimited } from "../../model/Limits.ts"
import { keepArchiveOf } from "../Archive.ts"
import { ArchiveError, storeFault, type StoreFault } from "../errors.ts"
import { withExclusiveLock, recoverTransactions, replaceTree } from "../replace.ts"
import { scan } from "../scan.ts"
import { type Change, countFiles, differences } from "../tree.ts"
import { make as makeView } from "../view.ts"
import { open as openOutside } from "../zip/hostFile.ts"
import { type Archived, read } from "../zip/reader.ts"
import * as Spool from "../zip/spool.ts"
import * as Outside from "./strategy.ts"
import {
  excludeGit,
  findExpired,
  type LayerOptions,
  type Problem,
  refuseWideRoot,
  rootOf,
  type StoredSnapshot,
  type Strategy,
  type TakeOptions
} from "./strategy.ts"
import { FilesystemSnapshot } from "./value.ts"

interface HeldArchive extends StoredSnapshot {
  readonly path: string
  /** The opened archive. The first use opens the archive, and `forget` closes it. */
  readonly archived: Effect.Effect<Archived, Problem>
  readonly scope: Scope.Closeable
  readonly isPassing: boolean
}

const toProblem = (error: ArchiveError | FsError): Problem =>
  error instanceof ArchiveError ? error : located(toFault(error), error.path)

const hashOf = (path: string): Effect.Effect<string, Problem> =>
  Effect.tryPromise({
    try: async () => {
      const hash = createHash("sha256")
      for await (const bytes of Fs.createReadStream(path, { highWaterMark: 1024 * 1024 })) hash.update(bytes as Buffer)
      return hash.digest("hex")
    },
    catch: (error) => storeFault("io", `the archive of a snapshot cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  })

/** Converts a fault of the archive file. Omits the path, because the archive is not in the captured filesystem. */
const toStoreFault = ({ _tag }: Fault): StoreFault => storeFault("io", `the archive of a snapshot cannot be opened: ${_tag}`)

const toReadFault = (problem: ArchiveError | Fault): Fault =>
  problem instanceof ArchiveError ? { _tag: "IoError", detail: problem.message } : problem

const forgottenFault = storeFault("unknown", "the snapshot was forgotten")

/**
 * Returns an effect that opens a resource at its first use and keeps it open for the scope. A failure is not cached, and
 * releases all resources that were opened before the failure.
 */
const openOnce = <A, E>(scope: Scope.Scope, open: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<Effect.Effect<A, E>> => {
  const opened = Effect.flatMap(Scope.fork(scope), (own) =>
    Effect.onExit(Scope.provide(open, own), (exit) => (Exit.isSuccess(exit) ? Effect.void : Scope.close(own, exit)))
  )
  return Effect.cachedWithTTL(opened, (exit) => (Exit.isSuccess(exit) ? Infinity : 0))
}

export const make = (fs: Algebra, options: LayerOptions): Effect.Effect<Strategy, Problem, Scope.Scope> =>
  Effect.gen(function* () {
    const { port } = fs
    const { caseSensitive } = port.info
    const rootPath = rootOf(port)
    const refused = port.history?._tag === "Directory" ? refuseWideRoot(port.history.root, options) : undefined
    if (refused !== undefined) return yield* Effect.fail(refused)
    const directory = yield* Outside.makeTemporaryDirectory("fs-algebra-archives-")
    yield* Outside.reserveDirectory(directory)
    yield* withExclusiveLock(port, recoverTransactions(port))
    const layerScope = yield* Effect.scope
    const all = new Map<string, HeldArchive>()
    const excludes = excludeGit(options.git === "exclude")
    let newest: string | undefined
    const visibleSnapshots = (): ReadonlyArray<HeldArchive> => [...all.values()].filter(({ isPassing }) => !isPassing)

    const withLimits = <A, E, R>(
      effect: Effect.Effect<A, E, R>,
      { maxBytes = options.maxBytes, maxFiles = options.maxFiles }: TakeOptions["bounds"] = {}
    ): Effect.Effect<A, E, R> =>
      Effect.flatMap(Limits, (limits) =>
        Effect.provideService(effect, Limits, {
          ...limits,
          maxArchiveEntries: maxFiles ?? limits.maxArchiveEntries,
          maxArchiveBytes: maxBytes ?? limits.maxArchiveBytes
        })
      )

    const open = Effect.fnUntraced(function* (
      path: string,
      expected: string
    ): Effect.fn.Return<Archived, Problem, Scope.Scope> {
      const { descriptor, size } = yield* Effect.mapError(openOutside(path), toStoreFault)
      if ((yield* hashOf(path)) !== expected)
        return yield* Effect.fail(storeFault("corrupt", "the archive of the snapshot was modified"))
      // The hash proves that `take` wrote the archive within the limits of that call. The current limits must not prevent a
      // restore.
      const rules = { limits: unlimited, policy: port.rules?.policy }
      return yield* read(Spool.fromDescriptor(descriptor, size), rules, { backend: port.info.name, caseSensitive })
    })

    const findHeld = (kept: StoredSnapshot): Effect.Effect<HeldArchive, Problem> => {
      const found = all.get(kept.snapshot.snapshotId)
      return found === undefined ? Effect.fail(forgottenFault) : Effect.succeed(found)
    }
    const archived = (kept: StoredSnapshot): Effect.Effect<Archived, Problem> =>
      Effect.flatMap(findHeld(kept), ({ archived }) => archived)

    const forget = ({ snapshot }: StoredSnapshot): Effect.Effect<void> =>
      Effect.suspend(() => {
        const found = all.get(snapshot.snapshotId)
        if (found === undefined) return Effect.void
        all.delete(snapshot.snapshotId)
        if (newest === snapshot.snapshotId) newest = visibleSnapshots().at(-1)?.snapshot.snapshotId
        const removed = Effect.promise(() => Fs.promises.rm(found.path, { force: true }).catch(() => {}))
        return Effect.andThen(Scope.close(found.scope, Exit.void), removed)
      })

    const scanCurrent = Effect.suspend(() =>
      withExclusiveLock(port, Effect.andThen(recoverTransactions(port), scan(port, { excludes })))
    )

    const take: Strategy["take"] = Effect.fnUntraced(function* (
      label,
      { bounds, isPassing = false, snapshotId = randomUUID(), spared } = {}
    ) {
      const path = join(directory, `${snapshotId}.zip`)
      const createdAt = yield* DateTime.now
      let skipped = 0
      const kept = keepArchiveOf(fs, path, { excludes, onSkipped: () => void skipped++ })
      const exported = Effect.mapError(kept, toProblem)
      yield* withExclusiveLock(port, Effect.andThen(recoverTransactions(port), withLimits(exported, bounds)))
      const sha256 = yield* hashOf(path)
      const { tag } = label
      const snapshot = new FilesystemSnapshot({
        snapshotId,
        createdAt,
        commitRef: `zip:${sha256}`,
        rootPath,
        ...(tag !== undefined && { tag })
      })
      const scope = yield* Scope.fork(layerScope)
      const archived = yield* openOnce(scope, open(path, sha256))
      const census = Effect.map(archived, ({ tree }) => countFiles(tree))
      const heldArchive: HeldArchive = {
        isPassing,
        snapshot,
        label,
        path,
        scope,
        archived,
        counts: census,
        skipped,
        ...(newest !== undefined && { previous: newest })
      }
      all.set(snapshotId, heldArchive)
      if (isPassing) return heldArchive
      newest = snapshotId
      const now = yield* Clock.currentTimeMillis
      for (const old of findExpired(visibleSnapshots(), options.retention, now, spared)) yield* forget(old)
      return heldArchive
    })

    return {
      name: "archive",
      rootPath,
      commitRef: /^zip:[0-9a-f]{64}$/,
      take,
      list: Effect.sync(visibleSnapshots),
      find: (snapshotId) => Effect.sync(() => all.get(snapshotId)),
      restore: (kept, { dryRun, paths, verify }) =>
        Effect.gen(function* () {
          const { content, tree, unpack } = yield* archived(kept)
          const replaceWith = (dryRun: boolean | undefined): Effect.Effect<ReadonlyArray<Change>, Problem> =>
            replaceTree<ArchiveError>(port, { after: tree, content, unpack, paths, dryRun, scan: { excludes } })
          const changes = yield* replaceWith(dryRun)
          if (verify === true && dryRun !== true) {
            const [left] = yield* replaceWith(true)
            if (left !== undefined)
              return yield* Effect.fail(storeFault("io", `"${left.path}" differs from the snapshot after the restore`))
          }
          return changes
        }),
      diff: (from, to) =>
        Effect.gen(function* () {
          const { tree } = yield* archived(from)
          const after = to === undefined ? (yield* scanCurrent).tree : (yield* archived(to)).tree
          return differences(tree, after, caseSensitive)
        }),
      tree: (kept) => Effect.map(archived(kept), ({ tree }) => tree),
      now: Effect.map(scan(port, { excludes }), ({ tree }) => tree),
      view: (kept) =>
        Effect.map(archived(kept), ({ content, tree }) =>
          makeView({
            name: "Snapshot",
            root: rootPath,
            caseSensitive,
            relative: port.links?.relative,
            tree,
            content: (path, file) =>
              Effect.mapBoth(content(path, file), {
                onFailure: toReadFault,
                onSuccess: (bytes) => (isBytes(bytes) ? bytes : Stream.mapError(bytes, toReadFault))
              })
          })
        ),
      forget,
      stats: Effect.sync(() => {
        let bytes = 0
        for (const { path } of all.values()) bytes += Fs.statSync(path, { throwIfNoEntry: false })?.size ?? 0
        return { bytes, objects: all.size, snapshots: visibleSnapshots().length }
      }),
      collect: Effect.void
    }
  })
