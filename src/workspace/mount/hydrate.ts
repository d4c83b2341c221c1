/**
 * Copies the planned files, all or none: everything is staged and checked under hidden names, and then renamed into place in
 * one transaction. After a kill, the next start recovers from the record of the transaction.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { runTransaction, type Mismatch } from "../../history/exchange.ts"
import { withTreeLock } from "../../history/exchange/turn.ts"
import { withExclusiveLock, recoverTransactions } from "../../history/replace.ts"
import { type Fault, type FsError, located, promote } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Backend } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { changed, contentOf, idOfContent, type FileOrigin } from "./content.ts"
import { type HostMount, MountError, type Options, type Preview } from "./model.ts"
import { type TargetFile, buildTrees, type CopyTrees } from "./places.ts"
import { pathOf, plan, type PlannedMount, previewOf } from "./plan.ts"

const operation = "hydrate"

/** A wrapper for errors of the source files, to tell them from faults of the target filesystem. */
class SourceFailure {
  readonly error: MountError

  constructor(error: MountError) {
    this.error = error
  }
}

type Problem = Fault | Mismatch | SourceFailure | MountError

interface PlannedFile extends TargetFile {
  readonly origin: FileOrigin
}

const readOnly: Fault = { _tag: "AccessDenied", why: "readOnly" }

/** Returns a check of target paths against the rules and limits, before the filesystem is read. */
const makePathCheck = Effect.fnUntraced(function* (port: Backend) {
  const { policy, permits } = port.rules ?? {}
  const limits = yield* Limits
  return (path: FsPath.FsPath): Fault | undefined => {
    const parsed = FsPath.parse(path, policy)
    if (typeof parsed !== "string") return parsed
    return FsPath.checkLimits(path, limits) ?? (permits === undefined || permits("write", path) ? undefined : readOnly)
  }
})

const filesOf = (planned: ReadonlyArray<PlannedMount>): ReadonlyArray<PlannedFile> =>
  planned.flatMap((mount, group) =>
    mount.files.map((file): PlannedFile => {
      const { isFile, request, source } = mount
      const { mode, sizeBytes } = file
      return {
        path: pathOf(mount, file.path),
        mode,
        sizeBytes,
        mountIndex: group,
        origin: { request, source, file, isWholeSource: isFile }
      }
    })
  )

const contentsOf = (ends: CopyTrees<PlannedFile>["files"]) => (at: FsPath.FsPath) => {
  const { origin } = ends.get(at)!
  const asSourceFailure = (error: MountError) => new SourceFailure(error)
  return Effect.map(Effect.mapError(contentOf(origin), asSourceFailure), (content) =>
    isBytes(content) ? content : Stream.mapError(content, asSourceFailure)
  )
}

const withCallerPath =
  (ends: CopyTrees<PlannedFile>["files"]) =>
  (problem: Fault | Mismatch | SourceFailure): Problem => {
    if (problem instanceof SourceFailure) return problem
    const plannedFile = ends.get(problem["path"] as FsPath.FsPath)
    if (plannedFile === undefined) return problem
    return problem._tag === "Mismatch" ? changed(plannedFile.origin) : { ...problem, path: plannedFile.path }
  }

const copyStaged = Effect.fnUntraced(function* (
  port: Backend,
  plannedFiles: ReadonlyArray<PlannedFile>,
  ids: ReadonlyMap<FileOrigin, string>
): Effect.fn.Return<void, Problem> {
  yield* recoverTransactions(port)
  const { after, before, files: ends } = yield* buildTrees(port, plannedFiles)
  const transaction = { before, after: after(({ origin }) => ids.get(origin)!), content: contentsOf(ends) }
  const exchanged = Effect.mapError(runTransaction<SourceFailure>(port, transaction), withCallerPath(ends))
  // A transaction moves replaced files away for a moment. This is not a deletion, so write permission is enough.
  yield* port.rules?.permits?.("delete") === false ? Effect.provideService(exchanged, TakingBack, true) : exchanged
})

const copy = Effect.fnUntraced(function* (
  port: Backend,
  planned: ReadonlyArray<PlannedMount>
): Effect.fn.Return<void, Problem> {
  const faultOfPath = yield* makePathCheck(port)
  const plannedFiles = filesOf(planned)
  for (const { path } of plannedFiles) {
    const fault = faultOfPath(path)
    if (fault !== undefined) return yield* Effect.fail(located(fault, path))
  }
  if (plannedFiles.length === 0) return
  const ids = new Map<FileOrigin, string>()
  const lastOrigins = new Map(plannedFiles.map(({ origin, path }) => [path, origin]))
  for (const origin of lastOrigins.values()) ids.set(origin, yield* idOfContent(origin))
  yield* withExclusiveLock(port, withTreeLock(port, copyStaged(port, plannedFiles, ids)))
})

const errorOf = (problem: Problem): MountError | FsError => {
  if (problem instanceof MountError) return problem
  if (problem instanceof SourceFailure) return problem.error
  return promote(problem as Fault, operation, FsPath.root)
}

export const hydrate = (
  { port }: Algebra,
  mounts: ReadonlyArray<HostMount>,
  options: Options
): Effect.Effect<ReadonlyArray<Preview>, MountError | FsError> => {
  const mayWrite = !port.info.readOnly && port.rules?.permits?.("write") !== false
  const copyMounts = Effect.gen(function* () {
    if (!mayWrite) return yield* Effect.fail(readOnly)
    const planned = yield* plan(mounts, options)
    yield* copy(port, planned)
    return planned.map(previewOf)
  })
  const reported = Effect.mapError(Effect.scoped(copyMounts), errorOf)
  return port.calls === undefined ? reported : port.calls.effect({ operation, path: FsPath.root }, reported)
}
