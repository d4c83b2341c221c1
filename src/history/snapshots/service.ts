/** The snapshot service, which validates arguments, calls a storage strategy, and converts faults to errors. */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { findCommonBlocks, makeLineNumbering } from "../../engine/diff.ts"
import { wholeAt } from "../../engine/read.ts"
import { type Algebra, make as makeAlgebra } from "../../filesystem/Filesystem.ts"
import { type Fault, promote } from "../../model/FsError.ts"
import * as FsPathModule from "../../model/FsPath.ts"
import type { FsPath } from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Backend } from "../../port/Backend.ts"
import { Buffer } from "../../runtime/buffer.ts"
import { randomUUID } from "../../runtime/node.ts"
import { runInSlices, type Steps } from "../../runtime/steps.ts"
import { type ArchiveError, SnapshotError, SnapshotRestoreError, type StoreFault } from "../errors.ts"
import type { Mismatch } from "../transaction.ts"
import { isPermitted, withExclusiveLock } from "../replace.ts"
import type { Change } from "../tree.ts"
import { fork, MergeConflicts, mergeFork } from "./fork.ts"
import type { Details, Operations, RestoreOptions, RestoreResult, TransactionSnapshotOptions } from "./operations.ts"
import type { Label, Problem, StoredSnapshot, Strategy, TakeOptions } from "./strategy.ts"
import { FilesystemSnapshot, isSafety, safetyTag } from "./value.ts"

// The statistics of a snapshot are computed on request, so that taking a snapshot stays fast.

/** The largest number of changed files, and of bytes per file, for which lines are counted. */
const maxFiles = 500
const maxBytes = 1024 * 1024
/** The number of edits after which the diff stops searching. Beyond this number, the counts are approximate. */
const maxEdits = 100

interface LineCounts {
  readonly added: number
  readonly removed: number
}

const isBinary = (bytes: Uint8Array): boolean => bytes.includes(0)

const read = (port: Backend | undefined, path: FsPath): Effect.Effect<Uint8Array | undefined, Fault> =>
  port === undefined
    ? Effect.succeed(new Uint8Array())
    : Effect.flatMap(port.stat(path), (stat): Effect.Effect<Uint8Array | undefined, Fault> =>
        stat?.kind !== "file"
          ? Effect.succeed(new Uint8Array())
          : stat.sizeBytes > maxBytes
            ? Effect.succeed(undefined)
            : Effect.map(wholeAt(port, path, maxBytes), ({ bytes }) => bytes)
      )

const linesOf = function* (before: Uint8Array, after: Uint8Array): Steps<LineCounts> {
  if (isBinary(before) || isBinary(after)) return { added: 0, removed: 0 }
  const text = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1")
  const number = makeLineNumbering()
  const [old, now] = [yield* number(text(before)), yield* number(text(after))]
  let common = 0
  for (const { length } of yield* findCommonBlocks(old.ids, now.ids, maxEdits)) common += length
  return { added: now.ids.length - common, removed: old.ids.length - common }
}

const countLines = Effect.fnUntraced(function* (
  changes: ReadonlyArray<Change>,
  before: Backend | undefined,
  after: Backend
): Effect.fn.Return<LineCounts | undefined, Fault> {
  if (changes.length > maxFiles) return undefined
  let [added, removed] = [0, 0]
  for (const { path } of changes) {
    const [old, now] = [yield* read(before, path), yield* read(after, path)]
    if (old === undefined || now === undefined) return undefined
    const lines = yield* runInSlices(() => linesOf(old, now))
    added += lines.added
    removed += lines.removed
    yield* Effect.yieldNow
  }
  return { added, removed }
})

const filesIn = Effect.fnUntraced(function* (
  changes: ReadonlyArray<Change>,
  before: Backend | undefined,
  after: Backend
): Effect.fn.Return<number, Fault> {
  let files = 0
  for (const { _tag, path } of changes) {
    const stat = _tag === "Removed" ? yield* before!.stat(path) : yield* after.stat(path)
    if (stat?.kind !== "directory") files++
  }
  return files
})

const details = Effect.fnUntraced(function* (strategy: Strategy, kept: StoredSnapshot): Effect.fn.Return<Details, Problem> {
  const { label, previous, skipped = 0, snapshot } = kept
  const { bytes, files } = yield* kept.counts
  const { callId, tool } = label
  const known = {
    snapshot,
    files,
    bytes,
    ...(tool !== undefined && { tool }),
    ...(callId !== undefined && { callId }),
    ...(skipped > 0 && { skipped })
  }
  if (previous === undefined) return { ...known, filesChanged: files }
  const before = yield* strategy.find(previous)
  if (before === undefined) return known
  const changes = yield* strategy.diff(before, kept)
  const [old, now] = [yield* strategy.view(before), yield* strategy.view(kept)]
  const lines = yield* countLines(changes, old, now)
  return {
    ...known,
    filesChanged: yield* filesIn(changes, old, now),
    ...(lines && { linesAdded: lines.added, linesRemoved: lines.removed })
  }
})

type Reason = SnapshotError["reason"]

const reasons: Partial<Record<string, Reason>> = {
  LimitExceeded: "budget",
  AccessDenied: "refused",
  Unavailable: "unavailable",
  InvalidArgument: "refused"
}

const isStoreFault = (problem: Problem): problem is StoreFault => problem._tag === "StoreFault"
const isMismatch = (problem: Problem): problem is Mismatch => problem._tag === "Mismatch"
const isArchiveError = (problem: Problem): problem is ArchiveError => problem._tag === "ArchiveError"

const detailOf = (problem: Problem, operation: string): string =>
  isStoreFault(problem)
    ? problem.detail
    : isArchiveError(problem)
      ? problem.message
      : isMismatch(problem)
        ? `the stored content of ${JSON.stringify(problem.path)} is damaged`
        : promote(problem, operation, FsPathModule.root).message

const reasonOf = (problem: Problem): Reason => {
  if (isStoreFault(problem)) return problem.reason
  if (isMismatch(problem)) return "corrupt"
  if (isArchiveError(problem))
    return problem.reason === "tooLarge" ? "budget" : problem.reason === "corrupt" ? "corrupt" : "refused"
  return reasons[problem._tag] ?? "io"
}

const toError =
  (operation: string, store?: string) =>
  (problem: Problem): SnapshotError =>
    new SnapshotError({ operation, reason: reasonOf(problem), detail: hideStorePath(detailOf(problem, operation), store) })

/** Removes the path of the store from a message, because users of the workspace must not see the path. */
const hideStorePath = (detail: string, store: string | undefined): string =>
  store === undefined ? detail : detail.replaceAll(`the store ${store}`, "the store").replaceAll(store, "the store")

export const orSnapshotError = <A, R>(
  operation: string,
  effect: Effect.Effect<A, Problem, R>
): Effect.Effect<A, SnapshotError, R> => Effect.mapError(effect, toError(operation))

const restoreReasons: Record<Reason, SnapshotRestoreError["reason"]> = {
  gitMissing: "unavailable",
  unknown: "unknown",
  corrupt: "corrupt",
  budget: "io",
  refused: "io",
  unavailable: "unavailable",
  io: "io"
}

const toRestoreError =
  (snapshotId: string, store: string | undefined) =>
  (problem: Problem): SnapshotRestoreError => {
    const isReadOnly = problem._tag === "AccessDenied" && "why" in problem && problem["why"] === "readOnly"
    const reason = isReadOnly ? "readOnly" : restoreReasons[reasonOf(problem)]
    return new SnapshotRestoreError({ snapshotId, reason, detail: hideStorePath(detailOf(problem, "restore"), store) })
  }

interface Refusal {
  readonly _tag: "Refusal"
  readonly snapshotId: string
  readonly reason: "unknown" | "incompatible"
  readonly detail: string
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

const isSnapshot = Schema.is(FilesystemSnapshot)

const incompatibility = (strategy: Strategy, port: Backend, snapshot: FilesystemSnapshot): string | undefined => {
  if (!strategy.commitRef.test(snapshot.commitRef))
    return `the commitRef of the snapshot does not belong to snapshots of the kind ${JSON.stringify(strategy.name)}`
  if (snapshot.rootPath !== strategy.rootPath && snapshot.rootPath !== port.info.root)
    return "the snapshot belongs to another root"
  if (snapshot.gitDir !== strategy.gitDir) return "the snapshot is in another store"
  return uuidPattern.test(snapshot.snapshotId) ? undefined : "the snapshotId is not a UUID"
}

const findSnapshot = (
  strategy: Strategy,
  port: Backend,
  value: FilesystemSnapshot
): Effect.Effect<StoredSnapshot, Problem | Refusal> => {
  const refuse = (reason: Refusal["reason"], detail: string, snapshotId = ""): Effect.Effect<never, Refusal> =>
    Effect.fail({ _tag: "Refusal", snapshotId, reason, detail })
  if (!isSnapshot(value)) return refuse("incompatible", "the argument is not a FilesystemSnapshot")
  const { commitRef, snapshotId } = value
  const why = incompatibility(strategy, port, value)
  if (why !== undefined) return refuse("incompatible", why, snapshotId)
  return Effect.flatMap(strategy.find(snapshotId), (kept): Effect.Effect<StoredSnapshot, Refusal> => {
    if (kept === undefined) return refuse("unknown", "there is no such snapshot", snapshotId)
    if (kept.snapshot.commitRef !== commitRef) return refuse("unknown", "the commitRef belongs to another snapshot", snapshotId)
    return Effect.succeed(kept)
  })
}

const isRefusal = (problem: Problem | Refusal): problem is Refusal => problem._tag === "Refusal"

const controlPattern = /[\u0000-\u001f\u007f]/

/** Returns the reason why a label is invalid. Labels are stored as lines of text and shown to users. */
const whyLabelRefused = (label: Label): string | undefined => {
  for (const [name, text] of Object.entries(label)) {
    if (text === undefined) continue
    if (typeof text !== "string" || !text.isWellFormed() || controlPattern.test(text) || text.length > 1000) {
      return `${name} must be a line of text of at most 1,000 characters`
    }
  }
  return undefined
}

/**
 * Returns the tag of a snapshot, or the id if the tag is missing or long. The tag of the safety snapshot contains this text.
 * Also returns the id of a safety snapshot, because otherwise the tags would grow with each restore.
 */
const titleOf = ({ label, snapshot }: StoredSnapshot): string => {
  const { tag } = label
  return tag === undefined || tag.length > 200 || isSafety(label) ? snapshot.snapshotId : tag
}

export const make = (strategy: Strategy, port: Backend): Operations => {
  const orError = <A>(operation: string, effect: Effect.Effect<A, Problem | Refusal>): Effect.Effect<A, SnapshotError> =>
    Effect.mapError(effect, (problem) =>
      isRefusal(problem)
        ? new SnapshotError({ operation, reason: problem.reason === "unknown" ? "unknown" : "refused", detail: problem.detail })
        : toError(operation, strategy.gitDir)(problem)
    )

  const orRestoreError = <A>(snapshot: FilesystemSnapshot, effect: Effect.Effect<A, Problem | Refusal>) =>
    Effect.mapError(effect, (problem): SnapshotRestoreError => {
      const snapshotId = isSnapshot(snapshot) ? snapshot.snapshotId : ""
      return isRefusal(problem)
        ? new SnapshotRestoreError({ snapshotId, reason: problem.reason, detail: problem.detail })
        : toRestoreError(snapshotId, strategy.gitDir)(problem)
    })

  const find = (snapshot: FilesystemSnapshot) => findSnapshot(strategy, port, snapshot)

  /**
   * Takes the snapshot for a transaction. Removes the snapshot if the call fails or is interrupted, because then no caller
   * can remove the snapshot.
   */
  const takePassing = (label: Label, options: TakeOptions): Effect.Effect<StoredSnapshot, Problem> =>
    Effect.suspend(() => {
      const snapshotId = randomUUID()
      const forgotten = Effect.flatMap(strategy.find(snapshotId), (kept) =>
        kept === undefined ? Effect.void : strategy.forget(kept)
      )
      return Effect.onError(strategy.take(label, { ...options, isPassing: true, snapshotId }), () => Effect.ignore(forgotten))
    })

  const take = (label: Label, options: TakeOptions): Effect.Effect<StoredSnapshot, Problem> => {
    const refused = whyLabelRefused(label)
    if (refused !== undefined) {
      return Effect.fail<Fault>({ _tag: "InvalidArgument", argument: "label", detail: refused })
    }
    return options.isPassing === true ? takePassing(label, options) : strategy.take(label, options)
  }

  const parsePaths = (
    paths: ReadonlyArray<string> | undefined
  ): Effect.Effect<ReadonlyArray<FsPathModule.FsPath> | undefined, Fault> =>
    paths === undefined
      ? Effect.succeed(undefined)
      : Effect.flatMap(Limits, (limits) =>
          Effect.forEach(paths, (text): Effect.Effect<FsPathModule.FsPath, Fault> => {
            const path = FsPathModule.parse(text, port.rules?.policy)
            const fault = typeof path === "string" ? FsPathModule.checkLimits(path, limits) : path
            return typeof path !== "string" || fault !== undefined
              ? Effect.fail({ ...(fault as Fault), path: String(text) })
              : Effect.succeed(path)
          })
        )

  /**
   * Rejects a path that leads through a symlink. The snapshot contains the symlink and not its target, so such a path would be
   * ambiguous.
   */
  const rejectLinks = Effect.fnUntraced(function* (path: FsPathModule.FsPath): Effect.fn.Return<void, Fault> {
    for (let above = FsPathModule.parent(path); above !== FsPathModule.root; above = FsPathModule.parent(above)) {
      if ((yield* port.stat(above))?.kind !== "symlink") continue
      const detail = `${JSON.stringify(above)} is a symlink; give the path of its target`
      return yield* Effect.fail<Fault>({ _tag: "InvalidArgument", path, argument: "paths", detail })
    }
  })

  const restoreSnapshot = Effect.fnUntraced(function* (
    snapshot: FilesystemSnapshot,
    options: RestoreOptions
  ): Effect.fn.Return<RestoreResult, Problem | Refusal> {
    if (!isPermitted(port)) return yield* Effect.fail<Fault>({ _tag: "AccessDenied", why: "readOnly" })
    const kept = yield* find(snapshot)
    const paths = yield* parsePaths(options.paths)
    for (const path of paths ?? []) yield* rejectLinks(path)
    const { dryRun, safety, verify } = options
    return yield* withExclusiveLock(
      port,
      Effect.gen(function* () {
        const restored = strategy.restore(kept, { paths, dryRun, verify })
        if (safety !== true || dryRun === true) return { changes: yield* restored }
        const before = yield* strategy.take({ tag: safetyTag("restoring", titleOf(kept)) }, { spared: kept })
        // Keep the safety snapshot if the restore fails, because the user may need it.
        const changes = yield* restored
        if (changes.length > 0) return { changes, safety: before.snapshot }
        yield* forgetQuietly(before)
        return { changes }
      })
    )
  })

  const forgetQuietly = (kept: StoredSnapshot): Effect.Effect<void> =>
    Effect.ignore(strategy.forget(kept), {
      log: "Warn",
      message: `fs-algebra: cannot forget the temporary snapshot ${kept.snapshot.snapshotId}; it stays in the store`
    })

  const viewOf = (kept: StoredSnapshot): Effect.Effect<Algebra, Problem> => Effect.map(strategy.view(kept), makeAlgebra)

  /** Restores the tree after a failed transaction. The caller combines a failure of this restore with the original cause. */
  const rollBack = (kept: StoredSnapshot): Effect.Effect<void, SnapshotRestoreError> =>
    Effect.asVoid(orRestoreError(kept.snapshot, Effect.andThen(strategy.restore(kept, {}), forgetQuietly(kept))))

  const restoring = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | SnapshotError | SnapshotRestoreError, R> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(orError("transaction", take({ tag: "transaction" }, { isPassing: true }))), (kept) =>
        Effect.matchCauseEffect(restore(effect), {
          onSuccess: (value): Effect.Effect<A, E | SnapshotError | SnapshotRestoreError, R> =>
            Effect.as(forgetQuietly(kept), value),
          onFailure: (cause) =>
            Effect.matchCauseEffect(rollBack(kept), {
              onSuccess: () => Effect.failCause(cause),
              onFailure: (other) => Effect.failCause(Cause.combine(cause, other))
            })
        })
      )
    )

  const transaction: Operations["transaction"] = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
    isPermitted(port)
      ? withExclusiveLock<A, E | SnapshotError | SnapshotRestoreError, R>(
          port,
          strategy.transaction?.(effect, toError("transaction", strategy.gitDir)) ?? restoring(effect)
        )
      : Effect.fail(toError("transaction")({ _tag: "AccessDenied", why: "readOnly" }))

  return {
    snapshot: (options: TransactionSnapshotOptions = {}) => {
      const { callId, isPassing, maxBytes, maxFiles, tag, tool } = options
      const bounds = { ...(maxBytes !== undefined && { maxBytes }), ...(maxFiles !== undefined && { maxFiles }) }
      const label: Label = {
        ...(tag !== undefined && { tag }),
        ...(tool !== undefined && { tool }),
        ...(callId !== undefined && { callId })
      }
      return orError(
        "snapshot",
        Effect.map(take(label, { bounds, isPassing }), ({ snapshot }) => snapshot)
      )
    },
    restore: (snapshot, options = {}) => orRestoreError(snapshot, restoreSnapshot(snapshot, options)),
    diff: (from, to) =>
      orError(
        "diff",
        Effect.flatMap(find(from), (kept) =>
          to === undefined ? strategy.diff(kept, undefined) : Effect.flatMap(find(to), (other) => strategy.diff(kept, other))
        )
      ),
    view: (snapshot) => orError("view", Effect.flatMap(find(snapshot), viewOf)),
    list: orError(
      "list",
      Effect.map(strategy.list, (all) => all.map(({ snapshot }) => snapshot))
    ),
    forget: (snapshot) => orError("forget", Effect.flatMap(find(snapshot), strategy.forget)),
    transaction,
    exclusively: (effect) => withExclusiveLock(port, effect),
    fork: (snapshot) =>
      orError(
        "fork",
        Effect.flatMap(find(snapshot), (kept) => fork(strategy, port, kept))
      ),
    merge: (forked, options = {}) =>
      Effect.mapError(mergeFork(strategy, port, forked, options), (problem) =>
        problem instanceof MergeConflicts ? problem : toError("merge", strategy.gitDir)(problem)
      ),
    details: (snapshot): Effect.Effect<Details, SnapshotError> =>
      orError(
        "details",
        Effect.flatMap(find(snapshot), (kept) => details(strategy, kept))
      ),
    stats: orError("stats", strategy.stats),
    collect: orError("collect", strategy.collect)
  }
}
