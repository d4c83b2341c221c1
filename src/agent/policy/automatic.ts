/**
 * Takes a snapshot before the first change of a session and before each removal of a directory, so that both can be undone. The
 * call continues even if the snapshot fails; its result then says why there is no snapshot.
 */
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Semaphore from "effect/Semaphore"
import { resolveLink } from "../../engine/resolve.ts"
import type { SnapshotError } from "../../history/errors.ts"
import { Snapshots } from "../../history/snapshots/tag.ts"
import { makeShortIds, type FilesystemSnapshot } from "../../history/snapshots/value.ts"
import type { Operations } from "../../history/snapshots/operations.ts"
import { joinFitting } from "../text/fit.ts"
import type { ToolResult } from "../ToolResult.ts"
import { ToolSettings } from "../ToolSettings.ts"
import { asLabel, needsCheckpoint } from "./checkpoint.ts"
import { type Invocation, layer } from "./core.ts"

const snapshotLimits = { maxFiles: 50_000, maxBytes: 512 * 1024 * 1024 }
const snapshotTimeout = "10 seconds"

const maxAutomaticSnapshots = 20

const tagPrefix = "automatic checkpoint before "

interface Outcome {
  readonly snapshot?: FilesystemSnapshot
  readonly shortId?: string
  readonly why?: string
}

interface State {
  readonly checkpointLock: Semaphore.Semaphore
  first: { readonly outcome: Outcome; isReported: boolean; isShared: boolean } | undefined
  never: string | undefined
}

const tooSlow: Outcome = { why: `it would have taken longer than ${snapshotTimeout}` }

const permanentReasons: ReadonlySet<SnapshotError["reason"]> = new Set(["budget", "gitMissing", "refused"])

/** Tests whether this module took a snapshot. The tag alone is no proof, because any caller may choose the same tag. */
const isAutomatic = (snapshots: Operations, snapshot: FilesystemSnapshot): Effect.Effect<boolean> =>
  Effect.match(snapshots.details(snapshot), {
    onFailure: () => false,
    onSuccess: (details) => details.tool !== undefined && snapshot.tag === `${tagPrefix}${details.tool}`
  })

/**
 * Forgets all automatic checkpoints except the newest 20. Never forgets the first checkpoint of this session, because results of
 * the session offer this checkpoint for undo.
 */
const forgetOld = Effect.fnUntraced(function* (snapshots: Operations, all: ReadonlyArray<FilesystemSnapshot>, state: State) {
  const first = state.first?.outcome.snapshot?.snapshotId
  const own = all.filter(({ snapshotId, tag }) => snapshotId !== first && tag?.startsWith(tagPrefix) === true)
  for (const old of own.slice(0, -maxAutomaticSnapshots)) {
    if (yield* isAutomatic(snapshots, old)) yield* Effect.ignore(snapshots.forget(old))
  }
})

const hasChanged = (snapshots: Operations, { snapshot }: Outcome): Effect.Effect<boolean> =>
  snapshot === undefined
    ? Effect.succeed(false)
    : Effect.match(snapshots.diff(snapshot), { onFailure: () => true, onSuccess: (changes) => changes.length > 0 })

const takeCheckpoint = Effect.fnUntraced(function* (snapshots: Operations, { callId, tool }: Invocation, state: State) {
  if (state.never !== undefined) return { why: state.never } satisfies Outcome
  const taken = Effect.gen(function* () {
    const snapshot = yield* snapshots.snapshot({ tag: `${tagPrefix}${tool}`, tool, callId: asLabel(callId), ...snapshotLimits })
    const all = yield* snapshots.list
    yield* forgetOld(snapshots, all, state)
    return { snapshot, shortId: makeShortIds(all)(snapshot) } satisfies Outcome
  })
  const outcome = yield* Effect.catch(Effect.timeoutOption(taken, snapshotTimeout), ({ detail, reason }) => {
    // The detail after the first semicolon is advice for programmers.
    const why = detail.split(";")[0]!
    if (permanentReasons.has(reason)) state.never = why
    return Effect.succeedSome<Outcome>({ why })
  })
  if (Option.isNone(outcome)) state.never = tooSlow.why
  return Option.getOrElse(outcome, (): Outcome => tooSlow)
})

const removesDirectory = ({ filesystem: { port }, touches }: Invocation): Effect.Effect<boolean> =>
  touches.some(({ access }) => access === "write")
    ? Effect.succeed(false)
    : Effect.map(
        Effect.forEach(
          touches.filter(({ access }) => access === "delete"),
          ({ path }) =>
            Effect.match(resolveLink(port, path), {
              onFailure: () => false,
              onSuccess: ({ stat }) => stat?.kind === "directory"
            })
        ),
        (found) => found.includes(true)
      )

const describeOutcome = ({ shortId, why }: Outcome, before: string, undo: (shortId: string) => string): string =>
  shortId === undefined
    ? `No checkpoint was taken before ${before}: ${why}.`
    : `Checkpoint ${shortId} contains all files as they were before ${before}; ${undo(shortId)}.`

const appendText = <V>(result: ToolResult<V>, text: string) =>
  Effect.map(ToolSettings, (settings) => {
    const whole = `${result.message}\n${text}`
    const message =
      settings.measure(whole) <= settings.budget
        ? whole
        : joinFitting([text, ...result.message.split("\n")], settings, (shown) => `[cut: ${shown - 1} lines of the result]`)
    return { ...result, message }
  })

const sessionStart = "this session's first change"

/** Makes the policy. `undo` returns the end of a sentence that tells how to restore the snapshot with the given id. */
export const automatic = (undo: (shortId: string) => string): Layer.Layer<never> => {
  const states = new WeakMap<object, State>()
  const stateOf = (session: object): State => {
    const state = states.get(session) ?? { checkpointLock: Semaphore.makeUnsafe(1), first: undefined, never: undefined }
    states.set(session, state)
    return state
  }

  const kept = <V, R>(snapshots: Operations, invocation: Invocation, call: Effect.Effect<ToolResult<V>, never, R>) =>
    Effect.gen(function* () {
      const state = stateOf(invocation.memory.session)
      const isRemoval = yield* removesDirectory(invocation)
      const own = yield* state.checkpointLock.withPermit(
        Effect.gen(function* () {
          if (state.first !== undefined && !isRemoval) {
            state.first.isShared = true
            return undefined
          }
          const outcome = yield* takeCheckpoint(snapshots, invocation, state)
          if (state.first !== undefined) return { outcome, isFirst: false }
          state.first = { outcome, isReported: false, isShared: false }
          return { outcome, isFirst: true }
        })
      )
      const result = yield* call
      const { first } = state
      if (!result.success) {
        // Keep the checkpoint if another call has relied on it meanwhile.
        const isShared = () => own?.isFirst === true && first?.isShared === true
        if (own === undefined || isShared()) return result
        if (yield* hasChanged(snapshots, own.outcome)) {
          if (own.isFirst && first !== undefined) first.isReported = true
          return yield* appendText(
            result,
            describeOutcome(own.outcome, "this call, which failed after it had changed some files", undo)
          )
        }
        const { snapshot } = own.outcome
        const forget = Effect.gen(function* () {
          if (isShared()) return
          if (own.isFirst) state.first = undefined
          if (snapshot !== undefined) yield* Effect.ignore(snapshots.forget(snapshot))
        })
        // Check again whether the checkpoint is shared, because another call may have begun during the comparison.
        yield* state.checkpointLock.withPermit(forget)
        return result
      }
      if (own?.isFirst === false) return yield* appendText(result, describeOutcome(own.outcome, "this removal", undo))
      if (first === undefined || first.isReported) return result
      first.isReported = true
      return yield* appendText(result, describeOutcome(first.outcome, sessionStart, undo))
    })

  return layer(
    Effect.map(Effect.serviceOption(Snapshots), (service) => ({
      name: "automatic",
      around: <V, R>(invocation: Invocation, call: Effect.Effect<ToolResult<V>, never, R>) =>
        // A restore needs no checkpoint, because it takes a snapshot of the current state itself.
        Option.isNone(service) || !needsCheckpoint(invocation) || invocation.past === "restores"
          ? call
          : kept(service.value, invocation, call)
    }))
  )
}
