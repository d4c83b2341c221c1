/**
 * Deliberate faults of the stores behind a repository, for tests of programs and repositories: lost answers, partial and late
 * changes, full stores, slow and reordered calls.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import * as BlobStore from "../repository/BlobStore.ts"
import * as HeadStore from "../repository/HeadStore.ts"
import { StoreError } from "../repository/errors.ts"
import { sha256 } from "../runtime/hash.ts"
import type { StoreServices } from "./StoreLaws.ts"

/**
 * A call of a store. The first five belong to the store of blobs, the others to the store of heads.
 *
 * @since 0.1.0
 */
export type StoreStep =
  | "put"
  | "get"
  | "has"
  | "delete"
  | "list"
  | "getHead"
  | "compareAndSet"
  | "deleteHead"
  | "listHeads"
  | "changes"

/**
 * A fault of a call.
 *
 * - `no answer`: the call does nothing and fails with `unavailable`.
 * - `lost answer`: the call does its work and fails with `unavailable`.
 * - `late`: the call fails with `unavailable`. The call does its work after the next call without a fault or with `slow`, or in
 *   `settle`.
 * - `partial`: a `put` leaves damaged content, and `get` fails with `corrupt` until the content is put again. A `delete`
 *   of blobs deletes every second blob. Both fail with `unavailable`. Other calls do nothing, as with `no answer`.
 * - `full`, `corrupt`, `missing`: the call does nothing and fails with this reason.
 * - `hang`: the call never ends, but can be interrupted.
 * - `slow`: the call waits for this time, and then does its work.
 *
 * @since 0.1.0
 */
export type StoreFault =
  | "no answer"
  | "lost answer"
  | "late"
  | "partial"
  | "full"
  | "corrupt"
  | "missing"
  | "hang"
  | { readonly slow: Duration.Input }

/**
 * A planned fault, and the calls that it affects.
 *
 * @since 0.1.0
 */
export interface PlannedStoreFault {
  readonly step: StoreStep | ReadonlyArray<StoreStep>
  /**
   * The number, from 1, of the matching call that has the fault. Calls to which an earlier plan applies are not counted.
   * @default every matching call
   */
  readonly nth?: number | undefined
  readonly fault: StoreFault
}

/**
 * A call that was made, and its planned fault. `subject` is the hash or the workspace, or "" if the call has no or several
 * hashes.
 *
 * @since 0.1.0
 */
export interface StoreCall {
  readonly step: StoreStep
  readonly subject: string
  readonly fault?: StoreFault
}

/**
 * The planned faults, ready to be added to stores, and the calls of these stores.
 *
 * @since 0.1.0
 */
export interface FaultyStores {
  /** Adds the faults to the stores of a layer. */
  readonly wrap: <E, R>(layer: Layer.Layer<StoreServices, E, R>) => Layer.Layer<StoreServices, E, R>
  /** All calls so far, in order. */
  readonly calls: ReadonlyArray<StoreCall>
  /** An effect that does the work of all `late` calls that have not done it. */
  readonly settle: Effect.Effect<void>
  /** An effect that ends when a call hangs as planned. */
  readonly hung: Effect.Effect<void>
}

const unavailable = (step: StoreStep): StoreError =>
  new StoreError({ reason: "unavailable", detail: `the planned fault of ${step}: the store does not answer` })

const wrapStores =
  (
    change: (blobs: BlobStore.Operations, heads: HeadStore.Operations) => readonly [BlobStore.Operations, HeadStore.Operations]
  ) =>
  <E, R>(layer: Layer.Layer<StoreServices, E, R>): Layer.Layer<StoreServices, E, R> =>
    Layer.effectContext(
      Effect.map(Layer.build(layer), (context) => {
        const [blobs, heads] = change(Context.get(context, BlobStore.BlobStore), Context.get(context, HeadStore.HeadStore))
        return Context.add(Context.make(BlobStore.BlobStore, blobs), HeadStore.HeadStore, heads)
      })
    )

type Around = <A>(
  step: StoreStep,
  subject: string,
  work: Effect.Effect<A, StoreError>,
  partial?: Effect.Effect<unknown, StoreError>
) => Effect.Effect<A, StoreError>

const around = (run: Around, blobs: BlobStore.Operations, heads: HeadStore.Operations) => {
  const opened = <A>(step: StoreStep, subject: string, stream: Stream.Stream<A, StoreError>) =>
    Stream.unwrap(run(step, subject, Effect.succeed(stream)))
  const changed: readonly [BlobStore.Operations, HeadStore.Operations] = [
    {
      put: (bytes) =>
        Effect.suspend(() => {
          const copy = new Uint8Array(bytes)
          return run("put", sha256(copy), blobs.put(copy))
        }),
      get: (hash, range) => run("get", hash, blobs.get(hash, range)),
      has: (hashes) => run("has", hashes.length === 1 ? hashes[0]! : "", blobs.has(hashes)),
      delete: (hashes) =>
        run(
          "delete",
          hashes.length === 1 ? hashes[0]! : "",
          blobs.delete(hashes),
          blobs.delete(hashes.filter((_, n) => n % 2 === 0))
        ),
      list: opened("list", "", blobs.list)
    },
    {
      get: (workspace) => run("getHead", workspace, heads.get(workspace)),
      compareAndSet: (workspace, expected, next) =>
        run("compareAndSet", workspace, heads.compareAndSet(workspace, expected, next)),
      delete: (workspace, expected) => run("deleteHead", workspace, heads.delete(workspace, expected)),
      list: opened("listHeads", "", heads.list),
      changes: (workspace) => opened("changes", workspace, heads.changes(workspace))
    }
  ]
  return changed
}

/**
 * Plans faults of stores. If several plans match a call, the first plan applies.
 *
 * @example
 * ```ts
 * const full = faultyStores([{ step: "put", nth: 1, fault: "full" }])
 * const put = BlobStore.BlobStore.use((blobs) => blobs.put(Uint8Array.of(1)))
 * const error = yield* Effect.flip(Effect.provide(put, full.wrap(Stores.layerMemory)))
 * error.reason // => "full"
 * ```
 * @category combinators
 * @since 0.1.0
 */
export const faultyStores = (plan: ReadonlyArray<PlannedStoreFault>): FaultyStores => {
  const calls: Array<StoreCall> = []
  const counts = plan.map(() => 0)
  const damaged = new Set<string>()
  const late: Array<Effect.Effect<void>> = []
  const hangSignal = Deferred.makeUnsafe<void>()

  const next = (step: StoreStep, subject: string): StoreFault | undefined => {
    const found = plan.find((planned, n) => {
      if (typeof planned.step === "string" ? planned.step !== step : !planned.step.includes(step)) return false
      counts[n]!++
      return planned.nth === undefined || planned.nth === counts[n]
    })
    calls.push(found === undefined ? { step, subject } : { step, subject, fault: found.fault })
    return found?.fault
  }

  const settle: Effect.Effect<void> = Effect.suspend(() => Effect.all(late.splice(0), { discard: true }))

  const run: Around = (step, subject, work, partial = Effect.void) =>
    Effect.suspend(() => {
      const fault = next(step, subject)
      const failure = Effect.fail(unavailable(step))
      const faultless = Effect.suspend(() => {
        if (step === "get" && damaged.has(subject)) {
          return Effect.fail(new StoreError({ reason: "corrupt", detail: `the planned fault: the blob ${subject} is damaged` }))
        }
        if (step === "put") damaged.delete(subject)
        return work
      })
      switch (fault) {
        case undefined:
          return Effect.ensuring(faultless, settle)
        case "no answer":
          return failure
        case "lost answer":
          return Effect.andThen(faultless, failure)
        case "late":
          late.push(Effect.ignore(faultless))
          return failure
        case "partial":
          if (step !== "put") return Effect.andThen(partial, failure)
          return Effect.andThen(
            Effect.tap(work, () => Effect.sync(() => damaged.add(subject))),
            failure
          )
        case "hang":
          return Effect.andThen(Deferred.succeed(hangSignal, undefined), Effect.never)
        case "full":
        case "corrupt":
        case "missing":
          return Effect.fail(new StoreError({ reason: fault, detail: `the planned fault of ${step}: ${fault}` }))
        default:
          return Effect.andThen(Effect.sleep(fault.slow), Effect.ensuring(faultless, settle))
      }
    })

  return {
    wrap: wrapStores((blobs, heads) => around(run, blobs, heads)),
    calls,
    settle,
    hung: Deferred.await(hangSignal)
  }
}

const maxPauses = 8

const pauses: Effect.Effect<void> = Effect.flatMap(Random.nextIntBetween(0, maxPauses), (count) =>
  Effect.repeat(Effect.yieldNow, { times: count })
)

/**
 * Adds random pauses to the stores of a layer, before and after the work of each call. So concurrent calls take effect and answer
 * in a random order. The random numbers come from effect's `Random`. The stores still satisfy all laws.
 *
 * @category combinators
 * @since 0.1.0
 */
export const reordered: <E, R>(layer: Layer.Layer<StoreServices, E, R>) => Layer.Layer<StoreServices, E, R> = wrapStores(
  (blobs, heads) =>
    around(
      (_step, _subject, work) =>
        Effect.andThen(
          pauses,
          Effect.andThen(Effect.exit(work), (exit) => Effect.andThen(pauses, exit))
        ),
      blobs,
      heads
    )
)
