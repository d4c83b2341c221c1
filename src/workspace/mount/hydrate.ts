/**
 * Copies the planned files, all or none: everything is staged and checked under hidden names, and then renamed into place in
 * one transaction. After a kill, the next start recovers from the record of the transaction.
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isBytes } from "../../model/bytes.ts"
import type { Algebra } from "../../filesystem/Filesystem.ts"
import { exchange, type Mismatch } from "../../history/exchange.ts"
import { taking } from "../../history/exchange/turn.ts"
import { alone, recovering } from "../../history/replace.ts"
import { type Fault, type FsError, located, promote } from "../../model/FsError.ts"
import * as FsPath from "../../model/FsPath.ts"
import { Limits } from "../../model/Limits.ts"
import type { Backend } from "../../port/Backend.ts"
import { TakingBack } from "../../port/Rules.ts"
import { changed, contentOf, idOfContent, type Origin } from "./content.ts"
import { type HostMount, MountError, type Options, type Preview } from "./model.ts"
import { type End, find, type Places } from "./places.ts"
import { pathOf, plan, type Planned, previewOf } from "./plan.ts"

const operation = "hydrate"

/** A wrapper for errors of the source files, to tell them from faults of the target filesystem. */
class Foreign {
  readonly error: MountError

  constructor(error: MountError) {
    this.error = error
  }
}

type Problem = Fault | Mismatch | Foreign | MountError

interface Wanted extends End {
  readonly origin: Origin
}

const readOnly: Fault = { _tag: "AccessDenied", why: "readOnly" }

/** Returns a check of target paths against the rules and limits, before the filesystem is read. */
const refusal = Effect.fnUntraced(function* (port: Backend) {
  const { policy, permits } = port.rules ?? {}
  const limits = yield* Limits
  return (path: FsPath.FsPath): Fault | undefined => {
    const parsed = FsPath.parse(path, policy)
    if (typeof parsed !== "string") return parsed
    return FsPath.checkLimits(path, limits) ?? (permits === undefined || permits("write", path) ? undefined : readOnly)
  }
})

const wantedBy = (planned: ReadonlyArray<Planned>): ReadonlyArray<Wanted> =>
  planned.flatMap((mount, group) =>
    mount.files.map((file): Wanted => {
      const { isFile, request, source } = mount
      const { mode, sizeBytes } = file
      return { path: pathOf(mount, file.path), mode, sizeBytes, group, origin: { request, source, file, isWhole: isFile } }
    })
  )

const contentsOf = (ends: Places<Wanted>["ends"]) => (at: FsPath.FsPath) => {
  const { origin } = ends.get(at)!
  const foreign = (error: MountError) => new Foreign(error)
  return Effect.map(Effect.mapError(contentOf(origin), foreign), (content) =>
    isBytes(content) ? content : Stream.mapError(content, foreign)
  )
}

const asCaller =
  (ends: Places<Wanted>["ends"]) =>
  (problem: Fault | Mismatch | Foreign): Problem => {
    if (problem instanceof Foreign) return problem
    const end = ends.get(problem["path"] as FsPath.FsPath)
    if (end === undefined) return problem
    return problem._tag === "Mismatch" ? changed(end.origin) : { ...problem, path: end.path }
  }

const put = Effect.fnUntraced(function* (
  port: Backend,
  wanted: ReadonlyArray<Wanted>,
  ids: ReadonlyMap<Origin, string>
): Effect.fn.Return<void, Problem> {
  yield* recovering(port)
  const { after, before, ends } = yield* find(port, wanted)
  const goal = { before, after: after(({ origin }) => ids.get(origin)!), content: contentsOf(ends) }
  const swapped = Effect.mapError(exchange<Foreign>(port, goal), asCaller(ends))
  // A transaction moves replaced files away for a moment. This is not a deletion, so write permission is enough.
  yield* port.rules?.permits?.("delete") === false ? Effect.provideService(swapped, TakingBack, true) : swapped
})

const copy = Effect.fnUntraced(function* (port: Backend, planned: ReadonlyArray<Planned>): Effect.fn.Return<void, Problem> {
  const refused = yield* refusal(port)
  const wanted = wantedBy(planned)
  for (const { path } of wanted) {
    const fault = refused(path)
    if (fault !== undefined) return yield* Effect.fail(located(fault, path))
  }
  if (wanted.length === 0) return
  const ids = new Map<Origin, string>()
  const last = new Map(wanted.map(({ origin, path }) => [path, origin]))
  for (const origin of last.values()) ids.set(origin, yield* idOfContent(origin))
  yield* alone(port, taking(port, put(port, wanted, ids)))
})

const failure = (problem: Problem): MountError | FsError => {
  if (problem instanceof MountError) return problem
  if (problem instanceof Foreign) return problem.error
  return promote(problem as Fault, operation, FsPath.root)
}

export const hydrate = (
  { port }: Algebra,
  mounts: ReadonlyArray<HostMount>,
  options: Options
): Effect.Effect<ReadonlyArray<Preview>, MountError | FsError> => {
  const mayWrite = !port.info.readOnly && port.rules?.permits?.("write") !== false
  const hydrated = Effect.gen(function* () {
    if (!mayWrite) return yield* Effect.fail(readOnly)
    const planned = yield* plan(mounts, options)
    yield* copy(port, planned)
    return planned.map(previewOf)
  })
  const called = Effect.mapError(Effect.scoped(hydrated), failure)
  return port.calls === undefined ? called : port.calls.effect({ operation, path: FsPath.root }, called)
}
